#include "broker/shared_fakes.h"

#include <algorithm>

#include "broker/broker_fakes.h"

namespace polylog::broker {

// --------------------------------------------------------------------------- SharedFakeLog

SharedFakeLog::SharedFakeLog() : file(std::make_shared<FakeFile>()) {}

LogPosition SharedFakeLog::end_now() const {
  return written.empty() ? LogPosition(0) : written.back().end;
}

LogPosition SharedFakeLog::end() const {
  const std::lock_guard lock(mutex);
  return end_now();
}

LogPosition SharedFakeLog::durable_end() const {
  const std::lock_guard lock(mutex);
  return durable;
}

Result<void> SharedFakeLog::begin_epoch(LeaderEpoch epoch) {
  latest_epoch = epoch;
  return {};
}

void SharedFakeLog::write_all() {
  for (Frame& frame : staged) {
    if (latest_epoch != no_epoch) epochs.assign(latest_epoch, frame.start);
    written.push_back(std::move(frame));
  }
  staged.clear();
}

Result<void> SharedFakeLog::write_staged() {
  const std::lock_guard lock(mutex);
  ++writes;
  const std::optional<Errc> error =
      failed ? Errc::unavailable : std::exchange(write_error, std::nullopt);
  if (error) {
    staged.clear();
    return fail(*error, "write");
  }
  write_all();
  return {};
}

Result<std::optional<storage::DirtyLog>> SharedFakeLog::dirty() {
  const std::lock_guard lock(mutex);
  if (durable == end_now()) return std::nullopt;
  storage::DirtyLog dirty;
  dirty.log = shared_from_this();
  dirty.end = end_now();
  dirty.files = {file};
  return dirty;
}

void SharedFakeLog::settled(const storage::DirtyLog& done, bool synced) {
  const std::lock_guard lock(mutex);
  if (!synced) failed = true;
  if (synced) durable = done.end;
}

// --------------------------------------------------------------------- SharedFakePartition

Offset SharedFakePartition::end_in(const std::vector<SharedFakeLog::Frame>& frames,
                                   Offset end) const {
  for (const SharedFakeLog::Frame& frame : frames) {
    if (frame.id == id_) end = frame.batch.info.last + 1;
  }
  return end;
}

OffsetRange SharedFakePartition::offsets() const {
  const std::lock_guard lock(log_->mutex);
  return {start, end_in(log_->written, start)};
}

Result<storage::Staged> SharedFakePartition::append(Batch batch) {
  const std::lock_guard lock(log_->mutex);
  if (log_->failed) return fail(Errc::unavailable, "failed before");
  if (const auto error = std::exchange(log_->append_drops, std::nullopt)) {
    log_->staged.clear();
    return fail(*error, "roll");
  }
  if (const auto error = std::exchange(log_->append_rolls, std::nullopt)) {
    log_->write_all();
    return fail(*error, "roll");
  }
  const Offset base = end_in(log_->staged, end_in(log_->written, start));
  const LogPosition at = log_->staged.empty() ? log_->end_now() : log_->staged.back().end;
  batch.info.first = base;
  batch.info.last = base + (batch.info.records - 1);
  batch.info.epoch = log_->latest_epoch;
  const LogPosition end = at + batch.info.records * record_positions;
  if (batch.info.producer.id != no_producer) producers_.update(batch.info, end);
  const Offset offset_end = batch.info.last + 1;
  log_->staged.push_back({id_, std::move(batch), at, end});
  return storage::Staged{{base, offset_end}, end};
}

Result<std::vector<Batch>> SharedFakePartition::read(Offset from,
                                                     storage::ReadLimits limits) const {
  const std::lock_guard lock(log_->mutex);
  if (from < start || from > limits.end) return fail(Errc::out_of_range, "read");
  std::vector<Batch> found;
  for (const SharedFakeLog::Frame& frame : log_->written) {
    const BatchInfo& info = frame.batch.info;
    if (frame.id == id_ && info.last >= from && info.last < limits.end) {
      found.push_back(frame.batch);
    }
  }
  return found;
}

Result<void> SharedFakePartition::advance_start(Offset to) {
  const std::lock_guard lock(log_->mutex);
  start = std::max(start, to);
  return {};
}

Offset SharedFakePartition::offset_at(LogPosition position) const {
  ++position_lookups;
  const std::lock_guard lock(log_->mutex);
  Offset end = start;
  for (const SharedFakeLog::Frame& frame : log_->written) {
    if (frame.id == id_ && frame.end <= position) end = frame.batch.info.last + 1;
  }
  return end;
}

EpochEnd SharedFakePartition::end_of_epoch(LeaderEpoch epoch) const {
  const EpochEnd of_log = log_->epochs.end_of(epoch, log_->end());
  if (of_log.epoch == no_epoch) return of_log;
  return {of_log.epoch, LogPosition(offset_at(of_log.end).value())};
}

// ------------------------------------------------------------------------- SharedFakeStore

SharedFakePartition& SharedFakeDisk::add(const TopicPartition& id, const Uuid& topic) {
  Queue& queue = queues[id];
  queue.topic = topic;
  queue.partition = std::make_shared<SharedFakePartition>(id, log);
  return *queue.partition;
}

Result<std::shared_ptr<storage::PartitionLog>> SharedFakeStore::create(
    const TopicPartition& id, const Uuid& topic, const storage::LogConfig& c) {
  const std::lock_guard lock(mutex_);
  if (disk_.create_error) return fail(*disk_.create_error, "create");
  if (disk_.queues.contains(id)) return fail(Errc::exists, id.topic);
  disk_.add(id, topic).configure(c);
  return disk_.queues[id].partition;
}

std::shared_ptr<storage::PartitionLog> SharedFakeStore::find(const TopicPartition& id) const {
  const std::lock_guard lock(mutex_);
  const auto it = disk_.queues.find(id);
  return it == disk_.queues.end() ? nullptr : it->second.partition;
}

std::vector<TopicPartition> SharedFakeStore::partitions() const {
  std::vector<TopicPartition> all;
  for (const auto& [id, queue] : disk_.queues) all.push_back(id);
  return all;
}

std::optional<Uuid> SharedFakeStore::topic_id(const TopicPartition& id) const {
  const auto it = disk_.queues.find(id);
  if (it == disk_.queues.end() || it->second.topic.is_zero()) return std::nullopt;
  return it->second.topic;
}

// A topic made again begins anew: what the log still holds of the old one is skipped.
Result<void> SharedFakeStore::remove(const TopicPartition& id) {
  const std::lock_guard lock(mutex_);
  if (disk_.queues.erase(id) == 0) return fail(Errc::not_found, id.topic);
  const std::lock_guard log_lock(disk_.log->mutex);
  for (SharedFakeLog::Frame& frame : disk_.log->written) {
    if (frame.id == id) frame.id.topic.clear();
  }
  for (SharedFakeLog::Frame& frame : disk_.log->staged) {
    if (frame.id == id) frame.id.topic.clear();
  }
  return {};
}

Result<storage::Retained> SharedFakeStore::retain(const TopicPartition& id, Offset, Timestamp) {
  const std::lock_guard lock(mutex_);
  disk_.retained.add(id);
  return storage::Retained{};
}

Result<void> SharedFakeStore::checkpoint() {
  ++disk_.checkpoints;
  return {};
}

Result<void> SharedFakeStore::tend(Timestamp) {
  const int now = ++disk_.tending;
  if (now > disk_.tending_max) disk_.tending_max = now;
  if (disk_.on_tend) disk_.on_tend();
  ++disk_.tended;
  --disk_.tending;
  if (disk_.tend_error) return fail(*disk_.tend_error, "tend");
  return {};
}

Result<void> SharedFakeStore::close() {
  ++disk_.closed;
  return {};
}

}  // namespace polylog::broker
