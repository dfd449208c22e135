#include "server/kafka/fetch_reader.h"

#include <algorithm>
#include <utility>

#include "format/kafka/record_batch.h"
#include "server/kafka/epoch_check.h"

namespace polylog::server::kafka {
namespace {

using PartitionData = FetchReader::PartitionData;

// From this size on a piece is sent as it is instead of being copied together with the next.
constexpr std::size_t piece_bytes_min = 64 * 1024;

}  // namespace

Slice join_batches(const std::vector<Batch>& batches, std::size_t& taken) {
  taken = batches.size();
  if (batches.empty()) return {};
  if (batches.size() == 1 || batches.front().bytes.size() >= piece_bytes_min) {
    taken = 1;
    return batches.front().bytes;
  }
  std::vector<std::uint8_t> joined;
  for (const Batch& batch : batches) {
    const ByteView bytes = batch.bytes.view();
    joined.insert(joined.end(), bytes.begin(), bytes.end());
  }
  return Slice::of(std::move(joined));
}

void FetchReader::ColdRead::run() {
  if (log) found = log->read(from, limits);
  if (found && transcoder) found = transcoder->from_native(*found);
}

FetchReader::FetchReader(Context& context, FetchRules rules,
                         std::vector<std::shared_ptr<FetchedPartition>> asked)
    : context_(context), rules_(rules), asked_(std::move(asked)) {
  targets_.reserve(asked_.size());
  std::shared_ptr<broker::Topic> topic;
  for (const std::shared_ptr<FetchedPartition>& entry : asked_) {
    const bool same =
        topic && (rules_.by_id ? topic->id == entry->topic_id : topic->name == entry->topic);
    if (!same) {
      topic =
          rules_.by_id ? context_.broker.find(entry->topic_id) : context_.broker.find(entry->topic);
    }
    Target& target = targets_.emplace_back();
    target.topic_known = topic != nullptr;
    const std::int32_t index = entry->asked.partition;
    if (topic && index >= 0 && static_cast<std::size_t>(index) < topic->partitions.size()) {
      target.partition = topic->partitions[static_cast<std::size_t>(index)];
    }
  }
  begin_pass();
}

FetchReader::~FetchReader() { unsubscribe(); }

void FetchReader::begin_pass() {
  next_ = 0;
  bytes_ = 0;
  records_ = 0;
  urgent_ = false;
  answers_.assign(asked_.size(), PartitionData());
}

void FetchReader::refuse(PartitionData& answer, ErrorCode code) {
  urgent_ = true;
  answer.error_code = context_.wire(code);
  answer.high_watermark = -1;
  answer.last_stable_offset = -1;
  answer.log_start_offset = -1;
}

ErrorCode FetchReader::unknown(const Target& target) const {
  const bool gone = !target.topic_known || (target.partition && target.partition->removed());
  return rules_.by_id && gone ? ErrorCode::unknown_topic_id : ErrorCode::unknown_topic_or_partition;
}

// Fills what is known without reading; false when nothing is to be read.
bool FetchReader::check(std::size_t index, PartitionData& answer) {
  const FetchedPartition& asked = *asked_[index];
  Target& target = targets_[index];
  answer.partition_index = asked.asked.partition;
  answer.records = Slice();  // never null: clients take that for a protocol error (BR-19)
  if (rules_.isolation == broker::Isolation::read_uncommitted) {
    answer.aborted_transactions = std::nullopt;
  }
  if (!target.partition || target.partition->removed()) {
    refuse(answer, unknown(target));
    return false;
  }
  broker::Partition& partition = *target.partition;
  const ErrorCode epoch = check_epoch(partition, asked.asked.current_leader_epoch);
  if (epoch != ErrorCode::none) {
    refuse(answer, epoch);
    return false;
  }
  target.seen_end = partition.visible_end(rules_.isolation);
  target.seen_start = partition.log_start();
  answer.high_watermark = partition.high_watermark().value();
  answer.last_stable_offset = partition.last_stable().value();
  answer.log_start_offset = target.seen_start.value();
  if (asked.asked.last_fetched_epoch < 0) return true;

  const LeaderEpoch last(asked.asked.last_fetched_epoch);
  const EpochOffset end = end_of_epoch(partition, last);
  if (end.epoch == no_epoch) {
    refuse(answer, ErrorCode::offset_out_of_range);
    return false;
  }
  if (end.epoch < last || end.end.value() < asked.asked.fetch_offset) {
    urgent_ = true;
    answer.diverging_epoch.epoch = end.epoch.value();
    answer.diverging_epoch.end_offset = end.end.value();
    return false;
  }
  return true;
}

std::optional<FetchReader::ColdRead> FetchReader::advance() {
  while (next_ < asked_.size()) {
    const std::size_t index = next_++;
    if (!check(index, answers_[index])) continue;
    broker::Partition& partition = *targets_[index].partition;
    const auto& asked = asked_[index]->asked;
    const Offset from(asked.fetch_offset);

    storage::ReadLimits limits;
    const std::size_t left = rules_.bytes_max > bytes_ ? rules_.bytes_max - bytes_ : 0;
    limits.bytes_max =
        std::min(left, static_cast<std::size_t>(std::max(asked.partition_max_bytes, 0)));
    limits.first_whole = bytes_ == 0;
    limits.wait = false;
    limits.end = targets_[index].seen_end;
    std::optional<broker::Transcoder> transcoder = partition.transcoder();
    const broker::ShownCache::Place shown_at = place(index);
    if (transcoder && from >= targets_[index].seen_start) {
      if (const auto* known = context_.broker.shown().find(shown_at, limits)) {
        take(index, *known);
        continue;
      }
    }
    Result<std::vector<Batch>> found = partition.read(from, limits, rules_.isolation);
    if (!found && found.error().code == Errc::would_block) {
      limits.wait = true;
      return ColdRead{index, partition.shared_log(), from, limits, std::move(transcoder),
                      shown_at, {}};
    }
    if (found && transcoder) {
      if (broker::total_bytes(*found) > broker::Transcoder::inline_bytes_max) {
        return ColdRead{index,    nullptr,         from, limits, std::move(transcoder),
                        shown_at, std::move(found)};
      }
      found = transcoder->from_native(*found);
      if (found) context_.broker.shown().put(shown_at, limits, *found);
    }
    take(index, std::move(found));
  }
  return std::nullopt;
}

broker::ShownCache::Place FetchReader::place(std::size_t index) const {
  const broker::Partition& partition = *targets_[index].partition;
  broker::ShownCache::Place place;
  place.topic = partition.topic_id();
  place.partition = partition.id().partition;
  place.from = Offset(asked_[index]->asked.fetch_offset);
  place.log_append_time =
      partition.config().timestamp_type == broker::TimestampType::log_append_time;
  return place;
}

void FetchReader::finish(ColdRead read) {
  if (read.found && read.transcoder) {
    context_.broker.shown().put(read.place, read.limits, *read.found);
  }
  take(read.index, std::move(read.found));
}

void FetchReader::take(std::size_t index, Result<std::vector<Batch>> found) {
  PartitionData& answer = answers_[index];
  const Target& target = targets_[index];
  if (!found) {
    const Errc code = found.error().code;
    if (code != Errc::out_of_range && code != Errc::not_found) {
      log_warn(context_.storage_trouble, "kafka: cannot read " + target.partition->id().topic +
                                             "-" + std::to_string(answer.partition_index) + ": " +
                                             found.error().to_string());
    }
    refuse(answer, code == Errc::not_found ? unknown(target) : error_code(code));
    return;
  }
  std::size_t taken = 0;
  Slice records = join_batches(*found, taken);
  if (records.empty()) return;
  for (std::size_t i = 0; i < taken; ++i) {
    records_ += static_cast<std::uint64_t>((*found)[i].info.records);
  }
  bytes_ += records.size();
  answer.records = std::move(records);
  if (rules_.isolation == broker::Isolation::read_committed) {
    const Offset last = (*found)[taken - 1].info.last;
    add_aborted(target, {Offset(asked_[index]->asked.fetch_offset), last + 1}, answer);
  }
}

void FetchReader::add_aborted(const Target& target, OffsetRange range, PartitionData& answer) {
  const storage::Store& store = context_.broker.store(target.partition->config().layout);
  const storage::TransactionIndex* transactions = store.transactions();
  if (transactions == nullptr) return;
  const Result<std::vector<AbortedTransaction>> aborted =
      transactions->aborted(target.partition->log(), range);
  if (!aborted) {
    // Without the list a reader would take aborted records for good ones.
    log_warn(context_.storage_trouble, "kafka: cannot read the transaction index of " +
                                           target.partition->id().topic + ": " +
                                           aborted.error().to_string());
    bytes_ -= answer.records->size();
    answer.records = Slice();
    refuse(answer, error_code(aborted.error().code));
    return;
  }
  for (const AbortedTransaction& transaction : *aborted) {
    auto& out = answer.aborted_transactions->emplace_back();
    out.producer_id = transaction.producer.value();
    out.first_offset = transaction.first.value();
  }
}

bool FetchReader::satisfied() const {
  return urgent_ || asked_.empty() || bytes_ >= rules_.bytes_min;
}

bool FetchReader::subscribe(broker::Signal* signal) {
  signal_ = signal;
  bool quiet = true;
  for (const Target& target : targets_) {
    if (!target.partition) continue;
    target.partition->subscribe(signal);
    quiet = quiet && !target.partition->removed() &&
            target.partition->visible_end(rules_.isolation) == target.seen_end &&
            target.partition->log_start() == target.seen_start;
  }
  return quiet;
}

void FetchReader::unsubscribe() {
  if (signal_ == nullptr) return;
  for (const Target& target : targets_) {
    if (target.partition) target.partition->unsubscribe(signal_);
  }
  signal_ = nullptr;
}

std::vector<FetchAnswer> FetchReader::summary() const {
  std::vector<FetchAnswer> summary;
  summary.reserve(answers_.size());
  for (const PartitionData& answer : answers_) {
    FetchAnswer& out = summary.emplace_back();
    out.high_watermark = answer.high_watermark;
    out.log_start = answer.log_start_offset;
    out.has_records = answer.records && !answer.records->empty();
    out.has_error = answer.error_code != 0 || answer.diverging_epoch.epoch >= 0;
  }
  return summary;
}

}  // namespace polylog::server::kafka
