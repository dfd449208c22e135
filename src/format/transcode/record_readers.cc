#include "format/transcode/record_readers.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace polylog::format {
namespace {

// The part that all records of a batch share. Compaction leaves fewer records than the batch's
// numbers span: they count backwards from the last number then, by which the next batch is judged.
std::optional<segment::ProducerPart> producer_of(const kafka::BatchHeader& header) {
  if (header.producer_id.value() < 0) return std::nullopt;
  segment::ProducerPart part{header.producer_id, std::max<std::int16_t>(header.producer_epoch, -1),
                             -1, 0, header.records_count};
  if (header.base_sequence >= 0) {
    constexpr std::int64_t sequences = std::int64_t{1} + std::numeric_limits<std::int32_t>::max();
    const std::int64_t base = std::int64_t{header.last_sequence()} - (header.records_count - 1);
    part.base_sequence = static_cast<std::int32_t>(base < 0 ? base + sequences : base);
  }
  return part;
}

ByteView address_of(const rocketmq::Host& host) {
  return ByteView(host.address).first(host.v6 ? 16 : 4);
}

}  // namespace

Result<void> KafkaRecords::open_batch() {
  POLYLOG_ASSIGN(reader, kafka::RecordReader::open(rest_, output_max_));
  const kafka::BatchHeader& header = reader.header();
  if (header.control() || header.transactional()) {
    return fail(Errc::unsupported, header.control()
                                       ? "control records have a form in Kafka's layout only"
                                       : "transactions have a form in Kafka's layout only");
  }
  if (!first_base_) first_base_ = header.base_offset;
  producer_ = producer_of(header);
  rest_ = rest_.subspan(header.size());
  reader_.emplace(std::move(reader));
  return {};
}

Result<bool> KafkaRecords::next(segment::StoredRecord& record) {
  for (;;) {
    if (reader_) {
      POLYLOG_ASSIGN(more, reader_->next(record.record));
      if (more) break;
      reader_.reset();
    }
    if (rest_.empty()) return false;
    POLYLOG_TRY(open_batch());
  }
  const kafka::BatchHeader& header = reader_->header();
  record.record.offset = first_ + (record.record.offset - *first_base_);
  record.shows_append_time = header.timestamp_type() == kafka::TimestampType::log_append_time;
  record.append_time = record.shows_append_time ? header.max_timestamp : append_time_;
  record.producer = producer_;
  if (producer_) ++producer_->index;
  return true;
}

Result<bool> MessageRecords::next(segment::StoredRecord& record) {
  if (rest_.empty()) return false;
  const rocketmq::FrameHead head = rocketmq::next_frame(rest_, rest_.size());
  if (head.state != rocketmq::FrameState::complete) {
    return fail(Errc::corrupt, "not a sequence of whole messages");
  }
  const ByteView bytes = rest_.first(static_cast<std::size_t>(head.size));
  const Result<rocketmq::Message> parsed = rocketmq::parse(bytes);
  if (!parsed) return fail(parsed.error());
  const rocketmq::Message& message = *parsed;
  rest_ = rest_.subspan(bytes.size());
  born_host_ = message.born_host;
  store_host_ = message.store_host;

  record.record.offset = Offset(message.queue_offset);
  record.record.timestamp = Timestamp(message.born_timestamp);
  record.record.key.reset();
  record.record.value = message.body;
  record.record.headers.clear();
  record.append_time = Timestamp(message.store_timestamp);
  record.shows_append_time = shows_append_time_;
  constexpr std::int32_t host_bits =
      rocketmq::sys_flag::born_host_v6 | rocketmq::sys_flag::store_host_v6;
  record.rocketmq = segment::RocketmqPart{
      .flag = message.flag,
      .sys_flag = message.sys_flag & ~host_bits,
      .born_address = address_of(born_host_),
      .born_port = born_host_.port,
      .store_address = address_of(store_host_),
      .store_port = store_host_.port,
      .reconsume_times = message.reconsume_times,
      .prepared_transaction_offset = message.prepared_transaction_offset,
      .properties = message.properties,
  };
  return true;
}

Result<bool> FrameRecords::next(segment::StoredRecord& record) {
  if (rest_.empty()) return false;
  const segment::FrameHead head = segment::next_frame(rest_, rest_.size());
  if (head.state != segment::FrameState::complete) {
    return fail(Errc::corrupt, "not a sequence of whole frames");
  }
  const ByteView frame = rest_.first(static_cast<std::size_t>(head.size));
  Result<segment::StoredRecord> decoded = segment::decode(frame);
  if (!decoded) return fail(std::move(decoded).error());
  if (decoded->rocketmq && decoded->mqtt) {
    return fail(Errc::corrupt, "the frame at offset " + std::to_string(head.offset.value()) +
                                   " has the parts of two protocols");
  }
  rest_ = rest_.subspan(frame.size());
  record = *std::move(decoded);
  return true;
}

}  // namespace polylog::format
