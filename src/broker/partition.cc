#include "broker/partition.h"

#include <algorithm>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "broker/broker.h"

namespace polylog::broker {

// ------------------------------------------------------------------------------ Generations

void Generations::end(LogPosition written) {
  if (!ended_.empty() && ended_.back().written == written) {
    ended_.back().last = current_;  // a full disk ends many in the same place
  } else {
    ended_.push_back({current_, current_, written});
    if (ended_.size() > remembered_max) ended_.erase(ended_.begin());
  }
  ++current_;
}

bool Generations::kept(std::uint64_t generation, LogPosition end) const {
  if (generation == current_) return true;
  for (const Ended& ended : ended_) {
    if (generation >= ended.first && generation <= ended.last) return end <= ended.written;
  }
  return false;
}

// --------------------------------------------------------------------------------- LogState

LogState::LogState(boost::asio::io_context& context, std::shared_ptr<storage::Log> log_in,
                   bool shared_in)
    : log(std::move(log_in)),
      shared(shared_in),
      written(context, log->end().value()),
      durable(context, log->durable_end().value()) {
  // A record at an offset once shown may be another one after an unclean stop; a new epoch is
  // what tells clients to look (KIP-320). After a clean stop too: the epoch that an earlier start
  // reported and never used is written nowhere, and no start may report a lower one.
  epoch = log->epoch() + 1;
}

Result<void> LogState::begin_epoch() {
  if (epoch_begun) return {};
  POLYLOG_TRY(log->begin_epoch(epoch));
  epoch_begun = true;
  return {};
}

void LogState::note_staged(Partition& partition, const storage::Staged& staged_now) {
  if (!shared) return;
  unwritten.push_back({staged_now.end, &partition, staged_now.offsets.end});
  ++partition.passing_;
}

void LogState::note_written(Partition& partition, Offset offset_end) {
  const LogPosition end(written.value());
  if (end.value() <= durable.value()) {
    partition.synced(offset_end);
    return;
  }
  unsynced.push_back({end, &partition, offset_end});
  ++partition.passing_;
}

void LogState::pass_written() {
  const LogPosition end(written.value());
  for (const Passing& passing : unwritten) {
    Partition& partition = *passing.partition;
    --partition.passing_;
    if (passing.end > end) continue;
    partition.wrote(passing.offset_end);
    if (!partition.acknowledges_syncs()) continue;
    if (passing.end.value() <= durable.value()) {
      partition.synced(passing.offset_end);
      continue;
    }
    unsynced.push_back(passing);
    ++partition.passing_;
  }
  unwritten.clear();
}

void LogState::pass_durable() {
  const LogPosition end(durable.value());
  while (!unsynced.empty() && unsynced.front().end <= end) {
    const Passing passing = unsynced.front();
    unsynced.pop_front();
    --passing.partition->passing_;
    passing.partition->synced(passing.offset_end);
  }
}

void LogState::forget(Partition& partition) {
  if (partition.passing_ == 0) return;
  const auto its = [&](const Passing& passing) { return passing.partition == &partition; };
  std::erase_if(unwritten, its);
  unsynced.erase_if(its);
  partition.passing_ = 0;
}

// -------------------------------------------------------------------------------- Partition

Partition::Partition(Broker& broker, TopicPartition id, Uuid topic_id,
                     std::shared_ptr<storage::PartitionLog> log, std::shared_ptr<LogState> state,
                     std::shared_ptr<const TopicConfig> config, BatchFormat native)
    : broker_(broker),
      id_(std::move(id)),
      topic_id_(topic_id),
      log_(std::move(log)),
      state_(std::move(state)),
      config_(std::move(config)),
      native_(native) {
  if (!state_->shared) {
    state_->partitions.push_back(this);
    return;
  }
  const OffsetRange offsets = log_->offsets();
  const bool all_durable =
      offsets.empty() || state_->durable.value() >= state_->written.value();
  written_end_ = offsets.end;
  durable_end_ =
      all_durable ? offsets.end : log_->offset_at(LogPosition(state_->durable.value()));
  if (durable_end_ < written_end_) state_->note_written(*this, written_end_);
}

Partition::~Partition() {
  std::erase(state_->partitions, this);
  state_->forget(*this);
}

std::optional<Transcoder> Partition::transcoder() const {
  if (native_ == BatchFormat::kafka) return std::nullopt;
  const Settings& settings = broker_.settings();
  format::SegmentTarget segment;
  segment.append_time = broker_.clock().now();
  segment.output_max = static_cast<std::size_t>(settings.max_decompressed_bytes);
  format::RocketmqTarget target;
  // Creating and adopting have checked the name.
  target.topic = stored_topic(native_, id_.topic).value_or(id_.topic);
  target.queue_id = id_.partition;
  target.store_host = broker_.store_host();
  target.body_bytes_max = static_cast<std::size_t>(settings.shared_log.body_bytes_max);
  target.output_max = static_cast<std::size_t>(settings.max_decompressed_bytes);
  return Transcoder(native_, std::move(target), segment,
                    config_->timestamp_type == TimestampType::log_append_time);
}

void Partition::configure(std::shared_ptr<const TopicConfig> config) {
  visible_floor_ = high_watermark();
  config_ = std::move(config);
  log_->configure(config_->log);
  if (acknowledges_syncs()) {
    if (state_->staged) state_->sync_wanted = true;
    if (state_->shared && durable_end_ < written_end_) state_->note_written(*this, written_end_);
    if (state_->durable.value() < state_->written.value()) broker_.submit(*state_);
  }
  notify();
}

void Partition::remove() {
  if (std::exchange(removed_, true)) return;
  std::erase(state_->partitions, this);
  state_->forget(*this);
  // In a shared log others wait too, and what is on its way gets there.
  if (!state_->shared && state_->partitions.empty()) {
    const Error error{Errc::not_found, "topic " + id_.topic + " was deleted"};
    state_->written.close(error);
    state_->durable.close(error);
  }
  notify();
}

Offset Partition::log_start() const { return log_->offsets().start; }

Offset Partition::high_watermark() const {
  if (state_->shared) {
    return std::max(visible_floor_, acknowledges_syncs() ? durable_end_ : written_end_);
  }
  const Watermark& bound = acknowledges_syncs() ? state_->durable : state_->written;
  return std::max(visible_floor_, log_->offset_at(LogPosition(bound.value())));
}

Offset Partition::last_stable() const {
  return std::min(log_->first_unstable(), high_watermark());
}

Offset Partition::visible_end(Isolation isolation) const {
  return isolation == Isolation::read_committed ? last_stable() : high_watermark();
}

LeaderEpoch Partition::epoch() const { return state_->epoch; }

// Of an epoch later than all that have records the log knows nothing, but ours began at its end:
// there any epoch between the two ended, as the last one that has records did. Kafka's leaders
// note their epoch when they begin, and answer so.
EpochEnd Partition::end_of_epoch(LeaderEpoch epoch) const {
  const EpochEnd known = log_->end_of_epoch(epoch);
  if (known.epoch != no_epoch || epoch == no_epoch || epoch > state_->epoch) return known;
  const OffsetRange offsets = log_->offsets();
  const LogPosition end(offsets.end.value());
  if (epoch == state_->epoch) return {epoch, end};
  for (LeaderEpoch later = state_->epoch; later > epoch; later = later - 1) {
    // Not later than all: lost with the damage of a sidecar.
    if (log_->end_of_epoch(later).epoch != no_epoch) return known;
  }
  for (LeaderEpoch earlier = epoch; earlier > no_epoch; earlier = earlier - 1) {
    const EpochEnd last = log_->end_of_epoch(earlier);
    if (last.epoch != no_epoch) return {last.epoch, end};
  }
  return offsets.empty() ? EpochEnd{epoch, end} : known;
}

Result<Partition::Appended> Partition::append(Batch batch) {
  if (removed_) return fail(Errc::not_found, "topic " + id_.topic + " was deleted");
  if (state_->failed) {
    return fail(Errc::unavailable, "the log refuses writes until restart: " +
                                       state_->failure.to_string());
  }
  if (broker_.closing()) return fail(Errc::unavailable, "the broker is stopping");

  Appended appended;
  appended.generation = state_->generations.current();
  // Markers come from the coordinator, which has its own checks.
  if (!batch.info.control && batch.info.producer.id != no_producer) {
    const ProducerState::Check check = log_->check_producer(batch.info);
    appended.verdict = check.verdict;
    if (check.verdict == ProducerState::Verdict::duplicate) {
      appended.base = check.original.start;
      appended.end = check.original_end;
      appended.duplicate_timestamp = check.original_timestamp;
    }
    if (check.verdict != ProducerState::Verdict::accept) return appended;
  }

  POLYLOG_TRY(state_->begin_epoch());
  Result<storage::Staged> staged = log_->append(std::move(batch));
  if (!staged) {
    // A roll that failed may have taken what this turn staged before with it: find out now,
    // before another append gets the same positions.
    if (state_->staged) broker_.write_now(*state_, staged.error());
    return fail(std::move(staged).error());
  }
  appended.base = staged->offsets.start;
  appended.end = staged->end;
  state_->staged_end = staged->end;
  state_->note_staged(*this, *staged);
  if (acknowledges_syncs()) {
    state_->sync_wanted = true;
  } else if (config_->flush.kind == FlushPolicy::Kind::interval) {
    const std::int64_t shortest = state_->flush_interval_ms;
    const std::int64_t asked = std::max<std::int64_t>(config_->flush.interval_ms, 1);
    state_->flush_interval_ms = shortest == 0 ? asked : std::min(shortest, asked);
  }
  broker_.staged(*state_);
  return appended;
}

const Watermark& Partition::awaited(Acks acks) const {
  return acks == Acks::all && acknowledges_syncs() ? state_->durable : state_->written;
}

bool Partition::is_acknowledged(const Appended& appended, Acks acks) const {
  return acks == Acks::none ||
         (state_->generations.kept(appended.generation, appended.end) &&
          awaited(acks).value() >= appended.end.value());
}

Async<Result<void>> Partition::acknowledged(Appended appended, Acks acks,
                                            std::int64_t deadline_ns) {
  if (is_acknowledged(appended, acks)) co_return Result<void>();
  const std::shared_ptr<LogState> state = state_;  // outlives the partition while we wait
  if (!state->generations.kept(appended.generation, appended.end)) {
    co_return fail(state->failure);
  }
  // The policy that counts is the one of the moment the wait begins.
  Watermark& watermark =
      acks == Acks::all && acknowledges_syncs() ? state->durable : state->written;
  Result<void> result = co_await watermark.reached(appended.end.value(), deadline_ns);
  co_return result;
}

Async<Result<void>> Partition::acknowledged(LogPosition end, Acks acks,
                                            std::int64_t deadline_ns) {
  Appended appended;
  appended.end = end;
  appended.generation = state_->generations.current();
  return acknowledged(appended, acks, deadline_ns);
}

Result<std::vector<Batch>> Partition::read(Offset from, storage::ReadLimits limits,
                                           Isolation isolation) {
  if (removed_) return fail(Errc::not_found, "topic " + id_.topic + " was deleted");
  limits.end = visible_end(isolation);
  // Beyond what may be shown, but not beyond what exists: nothing to see yet.
  if (from > limits.end && from <= log_->offsets().end) return std::vector<Batch>();
  return log_->read(from, limits);
}

void Partition::notify() {
  for (Signal* signal : signals_) signal->raise();
}

void Partition::wrote() {
  if (!acknowledges_syncs()) notify();
}

void Partition::wrote(Offset offset_end) {
  written_end_ = std::max(written_end_, offset_end);
  wrote();
}

void Partition::synced() {
  if (acknowledges_syncs()) notify();
}

void Partition::synced(Offset offset_end) {
  durable_end_ = std::max(durable_end_, offset_end);
  synced();
}

}  // namespace polylog::broker
