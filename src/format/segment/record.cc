#include "format/segment/record.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/crc.h"
#include "bytes/endian.h"
#include "format/segment/field_io.h"
#include "format/segment/record_parts.h"
#include "record/producers.h"

namespace polylog::format::segment {
namespace {

constexpr std::size_t length_max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t crc_at = frame_at::metadata + metadata_at::crc;
constexpr std::size_t header_bytes_min = 2;  // empty name, null value

// Times other than the first are kept as their distance from it, in arithmetic that wraps, so that
// every pair of values comes back.
std::int64_t distance(Timestamp from, Timestamp to) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(to.value()) -
                                   static_cast<std::uint64_t>(from.value()));
}
Timestamp moved(Timestamp from, std::int64_t distance) {
  return Timestamp(static_cast<std::int64_t>(static_cast<std::uint64_t>(from.value()) +
                                             static_cast<std::uint64_t>(distance)));
}

// One part of the protocol data, if the record has it, with its own size and with tag and length.
template <typename Part>
struct PartSize {
  explicit PartSize(const std::optional<Part>& part)
      : inner(part ? encoded_size(*part) : 0),
        whole(part ? 1 + unsigned_size(inner) + inner : 0) {}
  std::size_t inner;
  std::size_t whole;
};

struct Sizes {
  explicit Sizes(const StoredRecord& record)
      : producer(record.producer), rocketmq(record.rocketmq), mqtt(record.mqtt) {
    const Record& it = record.record;
    metadata = metadata_at::rest + zigzag_size(it.timestamp.value());
    if (record.append_time != no_timestamp) {
      metadata += zigzag_size(distance(it.timestamp, record.append_time));
    }
    if (record.expires) metadata += zigzag_size(distance(it.timestamp, *record.expires));
    if (it.key) metadata += unsigned_size(it.key->size()) + it.key->size();
    if (!it.headers.empty()) {
      metadata += unsigned_size(it.headers.size());
      for (const Header& header : it.headers) {
        metadata += unsigned_size(header.name.size()) + header.name.size();
        const std::size_t value = header.value ? header.value->size() : 0;
        metadata += value + (header.value ? zigzag_size(static_cast<std::int64_t>(value)) : 1);
      }
    }
    protocol_data = producer.whole + rocketmq.whole + mqtt.whole;
    data = it.value ? it.value->size() : 0;
  }
  std::size_t total() const { return metadata + protocol_data + data; }

  PartSize<ProducerPart> producer;
  PartSize<RocketmqPart> rocketmq;
  PartSize<MqttPart> mqtt;
  std::size_t metadata = 0;
  std::size_t protocol_data = 0;
  std::size_t data = 0;
};

std::uint8_t flags_of(const StoredRecord& record) {
  unsigned flags = 0;
  if (record.record.key) flags |= record_flags::has_key;
  if (!record.record.value) flags |= record_flags::null_value;
  if (!record.record.headers.empty()) flags |= record_flags::has_headers;
  if (record.append_time != no_timestamp) flags |= record_flags::has_append_time;
  if (record.shows_append_time) flags |= record_flags::shows_append_time;
  if (record.expires) flags |= record_flags::expires;
  return static_cast<std::uint8_t>(flags);
}

void write_metadata(const StoredRecord& record, FieldWriter& out) {
  const Record& it = record.record;
  out.u8(record_version);
  out.u8(flags_of(record));
  out.u32(0);  // the checksum's place
  out.zigzag(it.timestamp.value());
  if (record.append_time != no_timestamp) {
    out.zigzag(distance(it.timestamp, record.append_time));
  }
  if (record.expires) out.zigzag(distance(it.timestamp, *record.expires));
  if (it.key) out.counted(*it.key);
  if (it.headers.empty()) return;
  out.length(it.headers.size());
  for (const Header& header : it.headers) {
    out.counted(header.name);
    if (header.value) {
      out.zigzag(static_cast<std::int64_t>(header.value->size()));
      out.bytes(*header.value);
    } else {
      out.zigzag(-1);
    }
  }
}

template <typename Part>
void write_part(std::uint32_t tag, const std::optional<Part>& part, const PartSize<Part>& size,
                FieldWriter& out) {
  if (!part) return;
  out.length(tag);
  out.length(size.inner);
  write(*part, out);
}

Result<void> check(const StoredRecord& record, const Sizes& sizes) {
  if (sizes.total() > length_max) {
    // A name beyond the limit is the record's fault, whatever else it holds.
    for (const Header& header : record.record.headers) {
      if (header.name.size() > length_max) {
        return fail(Errc::invalid, "a header's name has 2147483647 bytes at most");
      }
    }
    return fail(Errc::too_large, "a record has 2147483647 bytes at most");
  }
  if (record.producer) POLYLOG_TRY(check(*record.producer));
  if (record.rocketmq) POLYLOG_TRY(check(*record.rocketmq));
  if (record.mqtt) POLYLOG_TRY(check(*record.mqtt));
  return {};
}

// Room for `size` more bytes; grows by doubling, unlike reserve().
void make_room(std::vector<std::uint8_t>& out, std::size_t size) {
  const std::size_t needed = out.size() + size;
  if (needed > out.capacity()) out.reserve(std::max(needed, 2 * out.capacity()));
}

// Over all of a whole frame but the checksum and the offset.
std::uint32_t crc_unplaced(ByteView frame) {
  constexpr std::size_t from = frame_at::total_length;
  const std::uint32_t crc = crc32c(frame.subspan(from, crc_at - from));
  return crc32c_extend(crc, frame.subspan(crc_at + 4));
}

std::uint32_t crc_placed(std::uint32_t unplaced, ByteView frame) {
  return crc32c_extend(unplaced, frame.subspan(frame_at::offset, 8));
}

tl::unexpected<Error> does_not_fit() {
  return fail(Errc::corrupt, "the record's metadata does not fit its fields");
}

Result<void> check_version(ByteView metadata) {
  if (metadata.size() < metadata_at::rest) return does_not_fit();
  if (metadata[metadata_at::version] != record_version) {
    return fail(Errc::unsupported,
                "record metadata of version " + std::to_string(metadata[metadata_at::version]) +
                    ", only version 1 of polylog's is known");
  }
  if ((metadata[metadata_at::flags] & ~record_flags::known) != 0) {
    return fail(Errc::unsupported, "record metadata with flags of a later version");
  }
  return {};
}

struct Times {
  Timestamp created;
  Timestamp appended = no_timestamp;
};
Times read_times(std::uint8_t flags, FieldReader& in) {
  Times times{Timestamp(in.zigzag64())};
  if ((flags & record_flags::has_append_time) != 0) {
    times.appended = moved(times.created, in.zigzag64());
  }
  return times;
}

Result<void> read_headers(FieldReader& in, std::vector<Header>& headers) {
  const std::size_t count = in.length();
  if (count == 0 || count > in.remaining() / header_bytes_min) return does_not_fit();
  headers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    Header header{in.counted_text(), std::nullopt};
    const std::int32_t size = in.zigzag32();
    if (size >= 0) {
      header.value = in.bytes(static_cast<std::size_t>(size));
    } else if (size != -1) {
      return does_not_fit();
    }
    headers.push_back(header);
  }
  return {};
}

Result<void> read_metadata(ByteView metadata, StoredRecord& out) {
  POLYLOG_TRY(check_version(metadata));
  const std::uint8_t flags = metadata[metadata_at::flags];
  FieldReader in(metadata.subspan(metadata_at::rest));
  const Times times = read_times(flags, in);
  out.record.timestamp = times.created;
  out.append_time = times.appended;
  out.shows_append_time = (flags & record_flags::shows_append_time) != 0;
  if ((flags & record_flags::expires) != 0) out.expires = moved(times.created, in.zigzag64());
  if ((flags & record_flags::has_key) != 0) out.record.key = in.counted();
  if ((flags & record_flags::has_headers) != 0) {
    POLYLOG_TRY(read_headers(in, out.record.headers));
  }
  if (!in.ok() || !in.done()) return does_not_fit();
  return {};
}

// Calls f(tag, bytes) -> Result<bool> for each part until it says false.
template <typename F>
Result<void> for_each_part(ByteView protocol_data, F&& f) {
  FieldReader in(protocol_data);
  std::uint32_t before = 0;
  while (!in.done()) {
    const std::uint32_t tag = in.length();
    const ByteView bytes = in.counted();
    if (!in.ok() || tag <= before) {
      return fail(Errc::corrupt, "the record's protocol data is not a sequence of parts");
    }
    before = tag;
    POLYLOG_ASSIGN(go_on, f(tag, bytes));
    if (!go_on) break;
  }
  return {};
}

Result<void> decode_into(StoredRecord& out, ByteView frame) {
  POLYLOG_ASSIGN(parsed, parse_frame(frame));
  POLYLOG_TRY(read_metadata(parsed.metadata, out));
  out.record.offset = parsed.offset;
  if ((parsed.metadata[metadata_at::flags] & record_flags::null_value) == 0) {
    out.record.value = parsed.data;
  } else if (!parsed.data.empty()) {
    return fail(Errc::corrupt, "the record's value is null and has bytes");
  }
  POLYLOG_TRY(for_each_part(
      parsed.protocol_data, [&](std::uint32_t tag, ByteView bytes) -> Result<bool> {
        if (tag == part_tag::producer) {
          POLYLOG_ASSIGN(part, read_producer_part(bytes));
          out.producer = part;
        } else if (tag == part_tag::rocketmq) {
          POLYLOG_ASSIGN(part, read_rocketmq_part(bytes));
          out.rocketmq = part;
        } else if (tag == part_tag::mqtt) {
          POLYLOG_ASSIGN(part, read_mqtt_part(bytes));
          out.mqtt = part;
        }
        return true;
      }));
  return {};
}

}  // namespace

Result<void> encode(const StoredRecord& record, std::vector<std::uint8_t>& out) {
  const Sizes sizes(record);
  POLYLOG_TRY(check(record, sizes));
  const std::size_t start = out.size();
  const std::size_t size = frame_fixed_bytes + sizes.total();
  make_room(out, size);
  out.resize(start + size - sizes.data);
  FieldWriter writer(out.data() + start);
  writer.u64(0);
  writer.u32(sizes.total());
  writer.u32(sizes.metadata);
  write_metadata(record, writer);
  writer.u32(sizes.protocol_data);
  write_part(part_tag::producer, record.producer, sizes.producer, writer);
  write_part(part_tag::rocketmq, record.rocketmq, sizes.rocketmq, writer);
  write_part(part_tag::mqtt, record.mqtt, sizes.mqtt, writer);
  writer.u32(sizes.data);
  POLYLOG_ASSERT(writer.at() == out.data() + out.size());
  if (record.record.value) {
    out.insert(out.end(), record.record.value->begin(), record.record.value->end());
  }
  std::uint8_t* const frame = out.data() + start;
  store_big(frame + crc_at, crc_unplaced({frame, size}));
  return {};
}

void place(MutableBytes frame, Offset offset) {
  POLYLOG_ASSERT(frame.size() >= frame_fixed_bytes + metadata_at::rest && offset >= Offset(0));
  store_big(frame.data() + frame_at::offset, static_cast<std::uint64_t>(offset.value()));
  const auto unplaced = load_big<std::uint32_t>(frame.data() + crc_at);
  store_big(frame.data() + crc_at, crc_placed(unplaced, frame));
}

bool crc_matches(ByteView frame) {
  const Result<Frame> parsed = parse_frame(frame);
  return parsed && is_ours(*parsed) &&
         crc_placed(crc_unplaced(frame), frame) == load_big<std::uint32_t>(frame.data() + crc_at);
}

bool is_ours(const Frame& frame) { return check_version(frame.metadata).has_value(); }

Result<RecordHead> decode_head(ByteView frame) {
  POLYLOG_ASSIGN(parsed, parse_frame(frame));
  POLYLOG_TRY(check_version(parsed.metadata));
  const std::uint8_t flags = parsed.metadata[metadata_at::flags];
  FieldReader in(parsed.metadata.subspan(metadata_at::rest));
  const Times times = read_times(flags, in);
  if (!in.ok()) return does_not_fit();
  const bool shows_append_time = (flags & record_flags::shows_append_time) != 0;
  RecordHead head{parsed.offset, shows_append_time ? times.appended : times.created, std::nullopt};
  POLYLOG_TRY(for_each_part(
      parsed.protocol_data, [&](std::uint32_t tag, ByteView bytes) -> Result<bool> {
        if (tag == part_tag::producer) {
          POLYLOG_ASSIGN(part, read_producer_part(bytes));
          head.producer = part;
        }
        return false;  // it is the first of all
      }));
  return head;
}

Result<StoredRecord> decode(ByteView frame) {
  Result<StoredRecord> record;  // filled in place: it is too large to be moved for each record
  if (Result<void> done = decode_into(*record, frame); !done) {
    record = fail(std::move(done).error());
  }
  return record;
}

BatchInfo to_info(const RecordHead& head) {
  BatchInfo info;
  info.first = head.offset;
  info.last = head.offset;
  info.records = 1;
  info.max_timestamp = head.shown_time;
  if (head.producer) {
    const ProducerPart& part = *head.producer;
    const std::int32_t sequence =
        part.base_sequence < 0 ? -1 : sequence_plus(part.base_sequence, part.index);
    info.producer = {part.id, part.epoch, sequence, sequence};
  }
  return info;
}

void fold(BatchInfo& batch, const RecordHead& next) {
  const BatchInfo one = to_info(next);
  batch.last = one.last;
  batch.records += 1;
  batch.max_timestamp = std::max(batch.max_timestamp, one.max_timestamp);
  if (batch.producer.id == one.producer.id && batch.producer.epoch == one.producer.epoch) {
    batch.producer.last_sequence = one.producer.last_sequence;
  }
}

}  // namespace polylog::format::segment
