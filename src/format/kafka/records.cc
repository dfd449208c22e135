#include "format/kafka/records.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "base/assert.h"
#include "bytes/reader.h"
#include "bytes/writer.h"
#include "format/kafka/varint.h"

namespace polylog::format::kafka {
namespace {

constexpr std::int64_t int32_max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t record_length_bytes_max = 5;
constexpr std::int16_t control_version = 0;

// Hostile deltas may overflow; the sum then wraps instead of being undefined.
std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_subtract(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

std::optional<ByteView> nullable(const std::uint8_t* at, std::int32_t size) {
  if (size < 0) return std::nullopt;
  return ByteView(at, static_cast<std::size_t>(size));
}

// The body was checked by parse_parts(): nothing here can run past it.
void read_headers(const RecordParts& parts, ByteView body, std::vector<Header>& headers) {
  headers.clear();
  if (parts.header_count == 0) return;
  headers.reserve(static_cast<std::size_t>(parts.header_count));
  const std::uint8_t* at = parts.headers;
  const std::uint8_t* const end = body.data() + body.size();
  for (std::int32_t i = 0; i < parts.header_count; ++i) {
    std::int32_t size = 0;
    read_varint(at, end, size);
    Header header;
    header.name = as_text({at, static_cast<std::size_t>(size)});
    at += size;
    read_varint(at, end, size);
    header.value = nullable(at, size);
    at += std::max(size, 0);
    headers.push_back(header);
  }
}

std::size_t sized_bytes(const std::optional<ByteView>& bytes) {
  if (!bytes) return 1;
  return varlong_size(static_cast<std::int64_t>(bytes->size())) + bytes->size();
}

// Appends numbers and bytes without clearing the room for them first.
class Appender {
 public:
  explicit Appender(std::vector<std::uint8_t>& to) : to_(to) {}

  void byte(std::uint8_t value) { *at_++ = value; }
  // A dozen may stand between two flush().
  void number(std::int64_t value) { at_ = write_varlong(at_, value); }
  void sized(const std::optional<ByteView>& bytes) {
    number(bytes ? static_cast<std::int64_t>(bytes->size()) : -1);
    if (!bytes || bytes->empty()) return;
    flush();
    to_.insert(to_.end(), bytes->begin(), bytes->end());
  }
  void flush() {
    to_.insert(to_.end(), numbers_.data(), at_);
    at_ = numbers_.data();
  }

 private:
  std::vector<std::uint8_t>& to_;
  std::array<std::uint8_t, 128> numbers_;
  std::uint8_t* at_ = numbers_.data();
};

std::size_t body_bytes(const Record& record, std::int64_t timestamp_delta, std::int64_t delta) {
  std::size_t size = 1 + varlong_size(timestamp_delta) + varlong_size(delta);
  size += sized_bytes(record.key) + sized_bytes(record.value);
  size += varlong_size(static_cast<std::int64_t>(record.headers.size()));
  for (const Header& header : record.headers) {
    size += sized_bytes(as_bytes(header.name)) + sized_bytes(header.value);
  }
  return size;
}

}  // namespace

RecordReader::RecordReader(const BatchHeader& header, Codec codec, ByteView payload,
                           std::size_t output_max)
    : header_(header), stream_(codec, payload, output_max) {}

Result<RecordReader> RecordReader::open(ByteView batch, std::size_t output_max) {
  POLYLOG_ASSIGN(header, parse_header(batch));
  if (header.size() > batch.size()) {
    return fail(Errc::corrupt, "the batch is cut: " + std::to_string(batch.size()) + " of " +
                                   std::to_string(header.size()) + " bytes");
  }
  const ByteView payload = batch.first(header.size()).subspan(header_bytes);
  // An empty batch keeps its codec bits when something other than Kafka's cleaner emptied it.
  const std::optional<Codec> codec =
      payload.empty() && header.records_count == 0 ? Codec::none : header.codec();
  if (!codec) {
    return fail(Errc::corrupt,
                "unassigned codec " + std::to_string(header.attributes & codec_mask));
  }
  return RecordReader(header, *codec, payload, output_max);
}

Result<bool> RecordReader::next(Record& record) {
  if (read_ == header_.records_count) {
    if (!std::exchange(ended_, true)) {
      POLYLOG_ASSIGN(end, stream_.at_end());
      if (!end) return fail(Errc::invalid, "bytes are left over behind the last record");
    }
    return false;
  }
  ByteView body;
  if (!stream_.take_whole(body)) {
    POLYLOG_ASSIGN(assembled, stream_.assemble());
    body = assembled;
  }
  RecordParts parts;
  if (const char* fault = parse_parts(body, parts)) return fail(Errc::invalid, fault);
  if (parts.offset_delta <= last_delta_ || parts.offset_delta > header_.last_offset_delta) {
    return fail(Errc::invalid, "a record's offset delta " + std::to_string(parts.offset_delta) +
                                   " is out of order or beyond the batch's last");
  }
  last_delta_ = parts.offset_delta;
  ++read_;
  record.offset = header_.base_offset + parts.offset_delta;
  record.timestamp =
      header_.timestamp_type() == TimestampType::log_append_time
          ? header_.max_timestamp
          : Timestamp(wrapping_add(header_.base_timestamp.value(), parts.timestamp_delta));
  record.key = nullable(parts.key, parts.key_bytes);
  record.value = nullable(parts.value, parts.value_bytes);
  read_headers(parts, body, record.headers);
  return true;
}

Result<void> BatchBuilder::add(const Record& record) { return append(record, last_delta_ + 1); }

Result<void> BatchBuilder::add_at_offset(const Record& record) {
  const std::int64_t delta = record.offset - options_.base_offset;
  if (delta <= last_delta_) {
    return fail(Errc::invalid, "offset " + std::to_string(record.offset.value()) +
                                   " does not rise, or lies below the batch's base");
  }
  return append(record, delta);
}

Result<void> BatchBuilder::append(const Record& record, std::int64_t delta) {
  if (delta > int32_max) return fail(Errc::invalid, "a batch spans at most 2^31 offsets");
  if (record.timestamp < no_timestamp) {
    return fail(Errc::invalid, "timestamp " + std::to_string(record.timestamp.value()) +
                                   " is negative and not -1");
  }
  if (count_ == 0) base_timestamp_ = options_.delete_horizon.value_or(record.timestamp);
  const std::int64_t timestamp_delta =
      wrapping_subtract(record.timestamp.value(), base_timestamp_.value());
  const std::size_t body = body_bytes(record, timestamp_delta, delta);
  if (body > static_cast<std::size_t>(int32_max) - uncompressed_bytes() ||
      body + record_length_bytes_max >
          static_cast<std::size_t>(int32_max) - uncompressed_bytes()) {
    return fail(Errc::too_large, "a batch holds at most 2^31-1 bytes");
  }
  if (batch_.empty()) batch_.resize(header_bytes);
  const std::size_t at = batch_.size();
  Appender out(batch_);
  out.number(static_cast<std::int64_t>(body));
  out.byte(0);  // attributes
  out.number(timestamp_delta);
  out.number(delta);
  out.sized(record.key);
  out.sized(record.value);
  out.number(static_cast<std::int64_t>(record.headers.size()));
  for (const Header& header : record.headers) {
    out.flush();
    out.sized(as_bytes(header.name));
    out.sized(header.value);
  }
  out.flush();
  POLYLOG_ASSERT(batch_.size() == at + varlong_size(static_cast<std::int64_t>(body)) + body);
  ++count_;
  last_delta_ = delta;
  max_timestamp_ = std::max(max_timestamp_, record.timestamp);
  return {};
}

Result<std::vector<std::uint8_t>> BatchBuilder::finish() {
  const bool plain = count_ == 0 || options_.codec == Codec::none;
  std::vector<std::uint8_t> batch = std::exchange(batch_, {});
  batch.resize(std::max(batch.size(), header_bytes));
  if (!plain) {
    const ByteView records = ByteView(batch).subspan(header_bytes);
    POLYLOG_ASSIGN(compressed,
                   compress(options_.codec,
                            options_.level.value_or(default_level(options_.codec)), records));
    batch.resize(header_bytes);
    batch.insert(batch.end(), compressed.begin(), compressed.end());
  }
  const ByteView body = ByteView(batch).subspan(header_bytes);
  if (body.size() > static_cast<std::size_t>(int32_max) - header_bytes) {
    return fail(Errc::too_large, "a batch holds at most 2^31-1 bytes");
  }
  BatchHeader header;
  header.base_offset = options_.base_offset;
  header.batch_length = static_cast<std::int32_t>(header_bytes - prefix_bytes + body.size());
  header.leader_epoch = options_.epoch;
  int attributes = plain ? 0 : static_cast<int>(options_.codec);
  if (options_.append_time) attributes |= log_append_time_bit;
  if (options_.transactional) attributes |= transactional_bit;
  if (options_.control) attributes |= control_bit;
  if (options_.delete_horizon && count_ > 0) attributes |= delete_horizon_bit;
  header.attributes = static_cast<std::int16_t>(attributes);
  header.last_offset_delta = options_.last_offset_delta.value_or(
      static_cast<std::int32_t>(std::max<std::int64_t>(last_delta_, 0)));
  header.base_timestamp = base_timestamp_;
  header.max_timestamp =
      options_.append_time.value_or(options_.max_timestamp.value_or(max_timestamp_));
  header.producer_id = options_.producer_id;
  header.producer_epoch = options_.producer_epoch;
  header.base_sequence = options_.base_sequence;
  header.records_count = count_;

  const HeaderBytes head(batch.data(), header_bytes);
  encode_header(header, head);
  patch_crc(head, body);

  count_ = 0;
  last_delta_ = -1;
  base_timestamp_ = max_timestamp_ = no_timestamp;
  return batch;
}

Result<ControlRecord> parse_control(ByteView batch) {
  constexpr std::size_t output_max = 1024 * 1024;  // control batches are never compressed
  POLYLOG_ASSIGN(reader, RecordReader::open(batch, output_max));
  POLYLOG_ASSERT(reader.header().control());
  Record record;
  POLYLOG_ASSIGN(more, reader.next(record));
  if (!more) return fail(Errc::invalid, "a control batch without a record");
  ByteReader key(record.key.value_or(ByteView()));
  key.skip(sizeof(control_version));
  ControlRecord control;
  control.type = static_cast<ControlType>(key.i16());
  if (!key.ok()) return fail(Errc::invalid, "a control record's key is shorter than 4 bytes");
  if (!control.is_end_transaction()) return control;
  ByteReader value(record.value.value_or(ByteView()));
  value.skip(sizeof(control_version));
  control.coordinator_epoch = value.i32();
  if (!value.ok()) return fail(Errc::invalid, "a marker's value is shorter than 6 bytes");
  return control;
}

std::vector<std::uint8_t> build_marker(const Marker& marker) {
  ByteWriter key;
  key.i16(control_version);
  key.i16(static_cast<std::int16_t>(marker.commit ? ControlType::commit : ControlType::abort));
  ByteWriter value;
  value.i16(control_version);
  value.i32(marker.coordinator_epoch);

  BatchOptions options;
  options.base_offset = marker.offset;
  options.epoch = marker.epoch;
  options.producer_id = marker.producer_id;
  options.producer_epoch = marker.producer_epoch;
  options.transactional = true;
  options.control = true;
  BatchBuilder builder(options);
  Record record;
  record.timestamp = marker.timestamp;
  record.key = ByteView(key.own_bytes());
  record.value = ByteView(value.own_bytes());
  const Result<void> added = builder.add(record);
  POLYLOG_ASSERT(added.has_value());
  Result<std::vector<std::uint8_t>> batch = builder.finish();
  POLYLOG_ASSERT(batch && batch->size() == marker_bytes);
  return *std::move(batch);
}

}  // namespace polylog::format::kafka
