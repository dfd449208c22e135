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
    if (ended_.size() > remembered_max) ended_.pop_front();
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

LogState::LogState(boost::asio::io_context& context, std::shared_ptr<storage::Log> log_in)
    : log(std::move(log_in)),
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

// -------------------------------------------------------------------------------- Partition

Partition::Partition(Broker& broker, TopicPartition id, Uuid topic_id,
                     std::shared_ptr<storage::PartitionLog> log, std::shared_ptr<LogState> state,
                     std::shared_ptr<const TopicConfig> config)
    : broker_(broker),
      id_(std::move(id)),
      topic_id_(topic_id),
      log_(std::move(log)),
      state_(std::move(state)),
      config_(std::move(config)) {
  state_->partitions.push_back(this);
}

Partition::~Partition() { std::erase(state_->partitions, this); }

void Partition::configure(std::shared_ptr<const TopicConfig> config) {
  visible_floor_ = high_watermark();
  config_ = std::move(config);
  log_->configure(config_->log);
  if (acknowledges_syncs() && state_->durable.value() < state_->written.value()) {
    broker_.submit(*state_);
  }
  notify();
}

void Partition::remove() {
  if (std::exchange(removed_, true)) return;
  std::erase(state_->partitions, this);
  if (state_->partitions.empty()) {
    const Error error{Errc::not_found, "topic " + id_.topic + " was deleted"};
    state_->written.close(error);
    state_->durable.close(error);
  }
  notify();
}

Offset Partition::log_start() const { return log_->offsets().start; }

Offset Partition::high_watermark() const {
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

EpochEnd Partition::end_of_epoch(LeaderEpoch epoch) const {
  if (epoch == state_->epoch && !state_->epoch_begun) return {epoch, state_->log->end()};
  return log_->end_of_epoch(epoch);
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

void Partition::synced() {
  if (acknowledges_syncs()) notify();
}

}  // namespace polylog::broker
