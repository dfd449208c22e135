#include "format/kafka/record_batch.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/crc.h"
#include "bytes/endian.h"
#include "record/producers.h"

namespace polylog::format::kafka {
namespace {

// offset, size and magic: as far as the formats of all ages agree.
constexpr std::size_t common_bytes = header_at::magic + 1;
// crc, magic, attributes and the two lengths of the smallest message ever written.
constexpr std::int32_t legacy_length_min = 14;

// Empty when the fields make sense together.
std::string_view structure_fault(const BatchHeader& header) {
  if (header.size() < header_bytes) return "the batch is shorter than its header";
  if (header.base_offset < Offset(0)) return "negative base offset";
  if (header.last_offset_delta < 0) return "negative last offset delta";
  if (header.records_count < 0) return "negative record count";
  if (header.base_offset.value() >
      std::numeric_limits<std::int64_t>::max() - header.last_offset_delta) {
    return "the last offset exceeds 2^63-1";
  }
  return {};
}

}  // namespace

std::int32_t BatchHeader::last_sequence() const {
  return base_sequence < 0 ? -1 : sequence_plus(base_sequence, last_offset_delta);
}

BatchHeader decode_header(ByteView bytes) {
  POLYLOG_ASSERT(bytes.size() >= header_bytes);
  const std::uint8_t* at = bytes.data();
  BatchHeader header;
  header.base_offset = Offset(load_big<std::int64_t>(at + header_at::base_offset));
  header.batch_length = load_big<std::int32_t>(at + header_at::batch_length);
  header.leader_epoch = LeaderEpoch(load_big<std::int32_t>(at + header_at::leader_epoch));
  header.magic = load_big<std::int8_t>(at + header_at::magic);
  header.crc = load_big<std::uint32_t>(at + header_at::crc);
  header.attributes = load_big<std::int16_t>(at + header_at::attributes);
  header.last_offset_delta = load_big<std::int32_t>(at + header_at::last_offset_delta);
  header.base_timestamp = Timestamp(load_big<std::int64_t>(at + header_at::base_timestamp));
  header.max_timestamp = Timestamp(load_big<std::int64_t>(at + header_at::max_timestamp));
  header.producer_id = ProducerId(load_big<std::int64_t>(at + header_at::producer_id));
  header.producer_epoch = load_big<std::int16_t>(at + header_at::producer_epoch);
  header.base_sequence = load_big<std::int32_t>(at + header_at::base_sequence);
  header.records_count = load_big<std::int32_t>(at + header_at::records_count);
  return header;
}

void encode_header(const BatchHeader& header, std::span<std::uint8_t, header_bytes> out) {
  std::uint8_t* at = out.data();
  store_big(at + header_at::base_offset, header.base_offset.value());
  store_big(at + header_at::batch_length, header.batch_length);
  store_big(at + header_at::leader_epoch, header.leader_epoch.value());
  store_big(at + header_at::magic, header.magic);
  store_big(at + header_at::crc, header.crc);
  store_big(at + header_at::attributes, header.attributes);
  store_big(at + header_at::last_offset_delta, header.last_offset_delta);
  store_big(at + header_at::base_timestamp, header.base_timestamp.value());
  store_big(at + header_at::max_timestamp, header.max_timestamp.value());
  store_big(at + header_at::producer_id, header.producer_id.value());
  store_big(at + header_at::producer_epoch, header.producer_epoch);
  store_big(at + header_at::base_sequence, header.base_sequence);
  store_big(at + header_at::records_count, header.records_count);
}

Result<BatchHeader> parse_header(ByteView bytes) {
  if (bytes.size() >= common_bytes) {
    const auto magic = static_cast<std::int8_t>(bytes[header_at::magic]);
    if (magic == 0 || magic == 1) {
      return fail(Errc::unsupported, "message format magic " + std::to_string(magic) +
                                         " (from before Kafka 0.11); only magic 2 is handled");
    }
    if (magic != current_magic) {
      return fail(Errc::corrupt, "unknown batch magic " + std::to_string(magic));
    }
  }
  if (bytes.size() < header_bytes) {
    return fail(Errc::corrupt, "a batch header takes 61 bytes, not " +
                                   std::to_string(bytes.size()));
  }
  const BatchHeader header = decode_header(bytes);
  if (header.batch_length < 0) return fail(Errc::corrupt, "negative batch length");
  if (const std::string_view fault = structure_fault(header); !fault.empty()) {
    return fail(Errc::corrupt, std::string(fault));
  }
  return header;
}

bool crc_matches(ByteView batch) {
  POLYLOG_ASSERT(batch.size() >= header_bytes);
  return crc32c(batch.subspan(crc_covers_from)) ==
         load_big<std::uint32_t>(batch.data() + header_at::crc);
}

BatchInfo to_info(const BatchHeader& header) {
  BatchInfo info;
  info.first = header.base_offset;
  info.last = header.last_offset();
  info.records = header.records_count;
  info.max_timestamp = header.max_timestamp;
  info.producer = {header.producer_id, header.producer_epoch, header.base_sequence,
                   header.last_sequence()};
  info.epoch = header.leader_epoch;
  info.transactional = header.transactional();
  info.control = header.control();
  return info;
}

void patch_base_offset(HeaderBytes header, Offset base) {
  store_big(header.data() + header_at::base_offset, base.value());
}

void patch_leader_epoch(HeaderBytes header, LeaderEpoch epoch) {
  store_big(header.data() + header_at::leader_epoch, epoch.value());
}

void patch_timestamps(HeaderBytes header, ByteView rest, std::int16_t attributes,
                      Timestamp max_timestamp) {
  store_big(header.data() + header_at::attributes, attributes);
  store_big(header.data() + header_at::max_timestamp, max_timestamp.value());
  patch_crc(header, rest);
}

void patch_crc(HeaderBytes header, ByteView rest) {
  const std::uint32_t crc = crc32c_extend(crc32c(header.subspan(crc_covers_from)), rest);
  store_big(header.data() + header_at::crc, crc);
}

FrameHead next_frame(ByteView head, std::uint64_t remaining) {
  POLYLOG_ASSERT(head.size() >= std::min<std::uint64_t>(remaining, header_bytes));
  FrameHead frame;
  if (remaining <= common_bytes) {
    frame.state = FrameState::torn;
    frame.why = "the file ends inside a batch header";
    return frame;
  }
  const auto length = load_big<std::int32_t>(head.data() + header_at::batch_length);
  const auto magic = static_cast<std::int8_t>(head[header_at::magic]);
  if (length == 0 && magic == 0) {
    frame.state = FrameState::zeros;
    frame.why = "length and magic are zero: space without data";
    return frame;
  }
  if (length < legacy_length_min) {
    frame.why = "the batch length is too small for any format";
    return frame;
  }
  frame.size = static_cast<std::uint64_t>(length) + prefix_bytes;
  if (frame.size > remaining) {
    frame.state = FrameState::torn;
    frame.why = "the file ends inside the batch";
    return frame;
  }
  if (magic == 0 || magic == 1) {
    frame.state = FrameState::legacy;
    frame.why = "a message set from before magic 2 (Kafka 0.11)";
    return frame;
  }
  if (magic != current_magic) {
    frame.why = "unknown batch magic";
    return frame;
  }
  if (frame.size < header_bytes) {
    frame.why = "the batch is shorter than its header";
    return frame;
  }
  frame.header = decode_header(head);
  frame.why = structure_fault(frame.header);
  frame.state = frame.why.empty() ? FrameState::complete : FrameState::corrupt;
  return frame;
}

}  // namespace polylog::format::kafka
