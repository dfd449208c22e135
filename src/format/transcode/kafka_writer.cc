#include "format/transcode/kafka_writer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace polylog::format {
namespace {

// Where one batch ends and the next begins.
constexpr std::size_t batch_bytes_usual = std::size_t{1} << 20;

// No less than the record takes.
std::size_t record_bytes_max(const Record& record) {
  constexpr std::size_t lengths_bytes_max = 40;
  constexpr std::size_t header_lengths_bytes_max = 10;
  std::size_t size = lengths_bytes_max;
  if (record.key) size += record.key->size();
  if (record.value) size += record.value->size();
  for (const Header& header : record.headers) {
    size += header_lengths_bytes_max + header.name.size();
    if (header.value) size += header.value->size();
  }
  return size;
}

// Kafka knows no time before -1.
Timestamp shown(Timestamp time) { return std::max(time, no_timestamp); }

}  // namespace

bool KafkaWriter::full() const {
  const std::size_t begun_bytes = builder_ ? builder_->uncompressed_bytes() : 0;
  return finished_bytes_ + begun_bytes + terms_.wasted_bytes() > output_max_;
}

bool KafkaWriter::fits(const segment::StoredRecord& stored, LeaderEpoch epoch) const {
  const Record& record = stored.record;
  return builder_ && options_.epoch == epoch &&
         options_.append_time.has_value() == stored.shows_append_time &&
         (!stored.shows_append_time || *options_.append_time == record.timestamp) &&
         builder_->uncompressed_bytes() + record_bytes_max(record) <= batch_bytes_usual &&
         record.offset - options_.base_offset <= std::numeric_limits<std::int32_t>::max();
}

Result<void> KafkaWriter::begin_batch(const segment::StoredRecord& stored, LeaderEpoch epoch) {
  POLYLOG_TRY(end_batch());
  options_ = {};
  options_.base_offset = stored.record.offset;
  options_.epoch = epoch;
  if (stored.shows_append_time) options_.append_time = stored.record.timestamp;
  builder_.emplace(options_);
  // A record takes less in a batch than by itself.
  const std::size_t left = input_bytes_ - std::min(input_bytes_, finished_bytes_);
  builder_->reserve(std::min(left, batch_bytes_usual));
  return {};
}

Result<void> KafkaWriter::write(segment::StoredRecord& stored, LeaderEpoch epoch) {
  Record& record = stored.record;
  if (record.offset.value() <= last_offset_) {
    return fail(Errc::corrupt, "the record at offset " + std::to_string(record.offset.value()) +
                                   " follows that at " + std::to_string(last_offset_));
  }
  const bool message = stored.rocketmq.has_value();
  if (Result<void> applied = terms_.apply(stored); !applied) {
    applied.error().context +=
        (message ? ", in the message at queue offset " : ", in the record at offset ") +
        std::to_string(record.offset.value());
    return fail(std::move(applied).error());
  }
  record.timestamp = shown(stored.shown_time());
  if (!fits(stored, epoch)) POLYLOG_TRY(begin_batch(stored, epoch));
  POLYLOG_TRY(builder_->add_at_offset(record));
  last_offset_ = record.offset.value();
  return {};
}

Result<std::vector<Batch>> KafkaWriter::finish() {
  POLYLOG_TRY(end_batch());
  return std::move(batches_);
}

Result<void> KafkaWriter::end_batch() {
  if (!builder_) return {};
  POLYLOG_ASSIGN(bytes, builder_->finish());
  builder_.reset();
  // One that ended early, as when each record has a time of its own.
  if (bytes.capacity() > 2 * bytes.size()) bytes.shrink_to_fit();
  finished_bytes_ += bytes.size();
  POLYLOG_ASSIGN(header, kafka::parse_header(bytes));
  batches_.push_back({BatchFormat::kafka, kafka::to_info(header), Slice::of(std::move(bytes))});
  return {};
}

}  // namespace polylog::format
