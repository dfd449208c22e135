#include "format/kafka/validate.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "bytes/endian.h"
#include "format/kafka/record_stream.h"

namespace polylog::format::kafka {
namespace {

using Failure = tl::unexpected<ValidationError>;

// Faulty records named in an answer: enough to find the cause, too few to amplify a request.
constexpr std::size_t record_faults_max = 32;
constexpr std::int16_t produce_version_magic2 = 3;
constexpr std::int16_t produce_version_zstd = 7;
// Above this, changing the codec is work for the pool: gzip does some 50 MB/s.
constexpr std::size_t inline_recompress_max = 32 * 1024;

Failure refuse(BatchFault code, std::string message) {
  ValidationError error;
  error.code = code;
  error.message = std::move(message);
  return Failure(std::move(error));
}

std::string out_of_range_message(std::int64_t timestamp, const ValidationRules& rules) {
  return "timestamp " + std::to_string(timestamp) + " is too far from the broker's " +
         std::to_string(rules.now.value()) + " (allowed: " +
         std::to_string(rules.before_max_ms) + " ms before, " +
         std::to_string(rules.after_max_ms) + " ms after)";
}

bool timestamp_allowed(std::int64_t timestamp, const ValidationRules& rules) {
  if (timestamp == no_timestamp.value()) return true;
  if (timestamp < 0) return false;
  const std::int64_t now = rules.now.value();
  return now - timestamp <= rules.before_max_ms && timestamp - now <= rules.after_max_ms;
}

Failure wrong_magic(std::int8_t magic, const ValidationRules& rules) {
  if (magic != 0 && magic != 1) {
    return refuse(BatchFault::corrupt_message, "unknown batch magic " + std::to_string(magic));
  }
  return refuse(rules.produce_version < produce_version_magic2
                    ? BatchFault::unsupported_for_message_format
                    : BatchFault::invalid_record,
                "message format magic " + std::to_string(magic) + " is no longer accepted");
}

// Exactly one batch of magic 2 that fills the field.
tl::expected<BatchHeader, ValidationError> single_batch(ByteView bytes,
                                                        const ValidationRules& rules) {
  if (bytes.empty()) return refuse(BatchFault::invalid_record, "no record batch in the request");
  if (bytes.size() <= header_at::magic) {
    return refuse(BatchFault::corrupt_message, "the batch is cut inside its header");
  }
  const auto magic = static_cast<std::int8_t>(bytes[header_at::magic]);
  if (magic != current_magic) return wrong_magic(magic, rules);
  if (bytes.size() < header_bytes) {
    return refuse(BatchFault::corrupt_message, "the batch is cut inside its header");
  }
  const BatchHeader header = decode_header(bytes);
  if (header.batch_length < 0 || header.size() < header_bytes || header.size() > bytes.size()) {
    return refuse(BatchFault::corrupt_message,
                  "batch length " + std::to_string(header.batch_length) + " does not fit the " +
                      std::to_string(bytes.size()) + " bytes of the field");
  }
  if (header.size() < bytes.size()) {
    return refuse(BatchFault::invalid_record, "more than one record batch for the partition");
  }
  return header;
}

// The header's promises; empty when all hold.
std::string header_fault(const BatchHeader& header) {
  if (header.control()) return "clients may not write control batches";
  if (header.base_offset != Offset(0)) {
    return "the base offset must be 0, not " + std::to_string(header.base_offset.value());
  }
  if (header.records_count <= 0) {
    return "a batch with a record count of " + std::to_string(header.records_count);
  }
  if (header.last_offset_delta != header.records_count - 1) {
    return "the last offset delta " + std::to_string(header.last_offset_delta) +
           " does not fit " + std::to_string(header.records_count) + " records";
  }
  if (header.has_delete_horizon()) return "only a broker sets a delete horizon";
  if (header.producer_id < no_producer) return "negative producer id";
  if (header.producer_id != no_producer) {
    if (header.producer_epoch < 0) return "a producer id without an epoch";
    if (header.base_sequence < 0) return "a producer id without a sequence number";
  } else if (header.transactional()) {
    return "a transactional batch without a producer id";
  }
  return {};
}

// Kafka's own reader wants these of a frame; its consumers could not read the topic otherwise.
bool lz4_readable_by_kafka(ByteView payload) {
  constexpr std::size_t flags_at = 4;
  constexpr std::uint8_t version_and_independent = 0x60;
  constexpr std::uint8_t version_independent_mask = 0xE0;
  constexpr std::uint8_t reserved_mask = 0x03;
  if (payload.size() <= flags_at) return true;  // cut: the decompressor says so
  const std::uint8_t flags = payload[flags_at];
  return (flags & version_independent_mask) == version_and_independent &&
         (flags & reserved_mask) == 0;
}

tl::expected<Codec, ValidationError> usable_codec(const BatchHeader& header, ByteView payload,
                                                  const ValidationRules& rules) {
  const std::optional<Codec> codec = header.codec();
  if (!codec) {
    return refuse(BatchFault::unsupported_compression_type,
                  "unassigned codec " + std::to_string(header.attributes & codec_mask));
  }
  if (*codec == Codec::zstd && rules.produce_version < produce_version_zstd) {
    return refuse(BatchFault::unsupported_compression_type,
                  "zstd needs Produce version 7 or later, this is " +
                      std::to_string(rules.produce_version));
  }
  if (*codec == Codec::lz4 && !lz4_readable_by_kafka(payload)) {
    return refuse(BatchFault::invalid_record,
                  "an lz4 frame must be version 1 with independent blocks and no dictionary");
  }
  return *codec;
}

// Visits every record without keeping any of it.
class RecordCheck {
 public:
  RecordCheck(const BatchHeader& header, const ValidationRules& rules)
      : rules_(rules),
        base_timestamp_(header.base_timestamp.value()),
        count_(header.records_count),
        create_time_(rules.timestamp_type == TimestampType::create_time) {}

  // The largest timestamp, or why the batch is refused.
  tl::expected<Timestamp, ValidationError> run(RecordStream& stream) {
    RecordParts parts;
    for (std::int32_t i = 0; i < count_; ++i) {
      if (ByteView body; stream.take_whole(body)) [[likely]] {
        if (const char* fault = parse_parts(body, parts)) return malformed(i, fault);
      } else if (Result<void> walked = stream.walk(parts); !walked) {
        return stream_fault(i, std::move(walked).error());
      }
      judge(i, parts);
    }
    Result<bool> ended = stream.at_end();
    if (!ended) return stream_fault(count_, std::move(ended).error());
    if (!*ended) {
      return refuse(BatchFault::invalid_record, "bytes are left over behind the last record");
    }
    if (faults_ > 0) return refused();
    return Timestamp(max_timestamp_);
  }

 private:
  void judge(std::int32_t index, const RecordParts& parts) {
    const auto timestamp = static_cast<std::int64_t>(
        static_cast<std::uint64_t>(base_timestamp_) +
        static_cast<std::uint64_t>(parts.timestamp_delta));
    max_timestamp_ = std::max(max_timestamp_, timestamp);
    const std::int32_t key_bytes_min = rules_.compacted ? 0 : -1;
    const bool right = parts.offset_delta == index && parts.key_bytes >= key_bytes_min &&
                       parts.value_bytes >= -1 &&
                       (!create_time_ || timestamp_allowed(timestamp, rules_));
    if (!right) [[unlikely]] note_faults(index, parts, timestamp);
  }

  // Out of the way of the loop: it builds sentences.
  [[gnu::noinline]] void note_faults(std::int32_t index, const RecordParts& parts,
                                     std::int64_t timestamp) {
    if (parts.offset_delta != index) {
      add(index, "the offset delta is " + std::to_string(parts.offset_delta) + " instead of " +
                     std::to_string(index));
    } else if (parts.key_bytes < 0 && rules_.compacted) {
      add(index, "a compacted topic needs a key in every record");
    } else if (parts.key_bytes < -1 || parts.value_bytes < -1) {
      add(index, "a key or value with a negative length other than -1");
    }
    if (create_time_ && !timestamp_allowed(timestamp, rules_)) {
      timestamp_fault_ = true;
      add(index, out_of_range_message(timestamp, rules_));
    }
  }

  void add(std::int32_t index, std::string message) {
    ++faults_;
    if (named_.size() < record_faults_max) named_.push_back({index, std::move(message)});
  }

  Failure refused() {
    ValidationError error;
    error.code = timestamp_fault_ ? BatchFault::invalid_timestamp : BatchFault::invalid_record;
    error.message = std::to_string(faults_) + " faults in the records, the first: record " +
                    std::to_string(named_.front().index) + ": " + named_.front().message;
    error.records = std::move(named_);
    return Failure(std::move(error));
  }

  static Failure malformed(std::int32_t index, const std::string& fault) {
    ValidationError error;
    error.code = BatchFault::invalid_record;
    error.message = "record " + std::to_string(index) + ": " + fault;
    error.records.push_back({index, fault});
    return Failure(std::move(error));
  }

  static Failure stream_fault(std::int32_t index, Error cause) {
    if (cause.code == Errc::invalid) return malformed(index, cause.context);
    ValidationError error;
    error.output_over_cap = cause.code == Errc::too_large;
    error.code = error.output_over_cap ? BatchFault::message_too_large
                                       : BatchFault::corrupt_message;
    error.message = std::move(cause.context);
    return Failure(std::move(error));
  }

  const ValidationRules& rules_;
  const std::int64_t base_timestamp_;
  const std::int32_t count_;
  const bool create_time_;
  std::int64_t max_timestamp_ = no_timestamp.value();
  std::int64_t faults_ = 0;
  bool timestamp_fault_ = false;
  std::vector<RecordFault> named_;
};

// Attributes as they will be stored. Kafka reads the low byte only and writes the rest as zero.
std::int16_t stored_attributes(const BatchHeader& header, const ValidationRules& rules,
                               Codec codec) {
  int attributes = (header.attributes & 0xff & ~codec_mask) | static_cast<int>(codec);
  if (rules.timestamp_type == TimestampType::log_append_time) attributes |= log_append_time_bit;
  return static_cast<std::int16_t>(attributes);
}

// The batch's header before the payload of another codec.
tl::expected<std::vector<std::uint8_t>, ValidationError> recompressed(
    ByteView batch, Codec from, Codec to, const ValidationRules& rules) {
  Result<std::vector<std::uint8_t>> plain =
      decompress_all(from, batch.subspan(header_bytes), rules.output_max);
  if (!plain) return refuse(BatchFault::corrupt_message, std::move(plain).error().context);
  Result<std::vector<std::uint8_t>> payload =
      to == Codec::none ? std::move(plain)
                        : compress(to, rules.level.value_or(default_level(to)), *plain);
  if (!payload) return refuse(BatchFault::invalid_record, std::move(payload).error().context);
  const std::size_t size = header_bytes + payload->size();
  if (size > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    return refuse(BatchFault::message_too_large, "more than 2^31-1 bytes after recompression");
  }
  std::vector<std::uint8_t> bytes;
  bytes.reserve(size);
  bytes.insert(bytes.end(), batch.begin(), batch.begin() + header_bytes);
  bytes.insert(bytes.end(), payload->begin(), payload->end());
  store_big(bytes.data() + header_at::batch_length,
            static_cast<std::int32_t>(size - prefix_bytes));
  return bytes;
}

// The bytes to store: the received ones when they are right as they are.
tl::expected<Slice, ValidationError> stored_bytes(const Slice& records, const BatchHeader& header,
                                                  Codec codec, Timestamp max_timestamp,
                                                  const ValidationRules& rules) {
  const Codec target = rules.target.value_or(codec);
  const bool append_time = rules.timestamp_type == TimestampType::log_append_time;
  if (target == codec && !append_time && header.max_timestamp == max_timestamp) return records;
  std::vector<std::uint8_t> changed;
  if (target == codec) {
    changed = to_vector(records.view());
  } else {
    auto rebuilt = recompressed(records.view(), codec, target, rules);
    if (!rebuilt) return Failure(std::move(rebuilt).error());
    changed = *std::move(rebuilt);
  }
  patch_timestamps(HeaderBytes(changed.data(), header_bytes),
                   ByteView(changed).subspan(header_bytes),
                   stored_attributes(header, rules, target), max_timestamp);
  return Slice::of(std::move(changed));
}

Failure too_large(std::size_t size, const ValidationRules& rules) {
  return refuse(BatchFault::message_too_large,
                "a batch of " + std::to_string(size) + " bytes exceeds max.message.bytes " +
                    std::to_string(rules.max_message_bytes));
}

bool exceeds(std::size_t size, std::int64_t limit) { return std::cmp_greater(size, limit); }

}  // namespace

tl::expected<Batch, ValidationError> validate(const Slice& records, const ValidationRules& rules) {
  const ByteView bytes = records.view();
  auto header = single_batch(bytes, rules);
  if (!header) return Failure(std::move(header).error());
  if (exceeds(bytes.size(), rules.max_message_bytes)) return too_large(bytes.size(), rules);
  if (!crc_matches(bytes)) {
    return refuse(BatchFault::corrupt_message, "the checksum of the batch is wrong");
  }
  if (std::string fault = header_fault(*header); !fault.empty()) {
    return refuse(BatchFault::invalid_record, std::move(fault));
  }
  if (header->timestamp_type() == TimestampType::log_append_time) {
    return refuse(BatchFault::invalid_timestamp, "only a broker sets the log append time");
  }
  const ByteView payload = bytes.subspan(header_bytes);
  auto codec = usable_codec(*header, payload, rules);
  if (!codec) return Failure(std::move(codec).error());

  RecordStream stream(*codec, payload, rules.output_max);
  auto max_timestamp = RecordCheck(*header, rules).run(stream);
  if (!max_timestamp) return Failure(std::move(max_timestamp).error());
  if (rules.timestamp_type == TimestampType::log_append_time) *max_timestamp = rules.now;

  auto stored = stored_bytes(records, *header, *codec, *max_timestamp, rules);
  if (!stored) return Failure(std::move(stored).error());
  if (exceeds(stored->size(), rules.max_message_bytes)) return too_large(stored->size(), rules);
  if (exceeds(stored->size(), rules.segment_bytes)) {
    return refuse(BatchFault::record_list_too_large,
                  "a batch of " + std::to_string(stored->size()) +
                      " bytes exceeds segment.bytes " + std::to_string(rules.segment_bytes));
  }
  Batch batch;
  batch.format = BatchFormat::kafka;
  batch.info = to_info(*header);
  batch.info.max_timestamp = *max_timestamp;
  batch.bytes = *std::move(stored);
  return batch;
}

bool needs_pool(ByteView records, const ValidationRules& rules) {
  if (records.size() < header_bytes) return false;
  const std::optional<Codec> codec = decode_header(records).codec();
  if (!codec) return false;
  const ByteView payload = records.subspan(header_bytes);
  const bool recompress = rules.target.value_or(*codec) != *codec;
  if (*codec == Codec::none && !recompress) return false;
  return output_estimate(*codec, payload) >
         (recompress ? inline_recompress_max : inline_output_max);
}

}  // namespace polylog::format::kafka
