#include "broker/groups/shard.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <utility>

#include "base/assert.h"
#include "broker/groups/coordinator_impl.h"
#include "format/kafka/records.h"

// A shard at work: events, what they write, and the answers that wait for it. Loading is in
// shard_load.cc.
namespace polylog::broker::groups {
namespace {

// A log is written anew when it is beyond both.
constexpr std::uint64_t long_log_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t long_log_factor = 4;
constexpr std::size_t batch_bytes_max = std::size_t{512} << 10;
constexpr std::size_t record_overhead_bytes = 16;

std::size_t bytes_of(const GroupRecord& record) {
  return record.key.size() + (record.value ? record.value->size() : 0) + record_overhead_bytes;
}

}  // namespace

Shard::Shard(Coordinator::Impl& owner, std::int32_t index, std::shared_ptr<Partition> partition)
    : owner_(owner), index_(index), partition_(std::move(partition)) {}

Shard::~Shard() = default;

void Shard::report(const std::string& line) const {
  owner_.report("__consumer_offsets-" + std::to_string(index_) + ": " + line);
}

GroupError Shard::ready() const {
  switch (state_) {
    case State::loading: return GroupError::load_in_progress;
    case State::ready: return GroupError::none;
    case State::closed: return GroupError::not_coordinator;
  }
  return GroupError::not_coordinator;
}

GroupEntry* Shard::find(const std::string& group) {
  const auto it = groups_.find(group);
  return it == groups_.end() ? nullptr : &it->second;
}

GroupEntry& Shard::add(const std::string& group, std::unique_ptr<Group> machine) {
  GroupEntry entry{std::move(machine), GroupOffsets(group)};
  return groups_.emplace(group, std::move(entry)).first->second;
}

void Shard::erase(const std::string& group) {
  const auto it = groups_.find(group);
  if (it == groups_.end()) return;
  owner_.unschedule(*this, group, it->second);
  groups_.erase(it);
}

// ----------------------------------------------------------------------------------- events

void Shard::answer(std::function<void(GroupError)> give) {
  event_answers_.push_back(std::move(give));
}

void Shard::finish(const std::string& group) {
  if (GroupEntry* const entry = find(group); entry != nullptr) {
    owner_.schedule(*this, group, *entry);
  }
  write_out();
}

void Shard::finish() {
  for (auto& [group, entry] : groups_) owner_.schedule(*this, group, entry);
  write_out();
}

void Shard::write_out() {
  if (!records_.empty()) {
    const GroupRecords records = std::exchange(records_, {});
    const Result<Written> written = append(records);
    if (!written) return write_failed(written.error());
    waiting_.push_back({written->last, nullptr});
  }
  hand_out();
}

// Answers that wait for nothing leave now.
void Shard::hand_out() {
  const auto answers = std::exchange(event_answers_, {});
  if (!waiting_.empty()) {
    for (const auto& give : answers) waiting_.push_back({std::nullopt, give});
    if (std::exchange(answering_, true)) return;
    boost::asio::co_spawn(owner_.broker.reactor().context(), run_answers(shared_from_this(), life_),
                          boost::asio::detached);
    return;
  }
  for (const auto& give : answers) give(GroupError::none);
}

// One batch, unless that would be large: the rest of an event that a kill cuts in two is lost as if
// the kill had come before it.
Result<Shard::Written> Shard::append(std::span<const GroupRecord> records) {
  const auto segment_bytes = static_cast<std::size_t>(partition_->config().log.segment_bytes);
  const std::size_t bytes_max = std::min(batch_bytes_max, segment_bytes / 2);
  std::optional<Written> written;
  while (!records.empty()) {
    std::size_t count = 0, bytes = 0;
    do {
      bytes += bytes_of(records[count++]);
    } while (count < records.size() && bytes + bytes_of(records[count]) <= bytes_max);
    POLYLOG_ASSIGN(appended, append_batch(records.first(count)));
    written = Written{written ? written->first : appended, appended};
    records = records.subspan(count);
  }
  POLYLOG_ASSERT(written);  // there is nothing to be acknowledged otherwise
  return *written;
}

Result<Partition::Appended> Shard::append_batch(std::span<const GroupRecord> records) {
  const Timestamp now(owner_.now().wall_ms);
  format::kafka::BatchBuilder builder({});
  for (const GroupRecord& written : records) {
    Record record;
    record.timestamp = written.timestamp_ms < 0 ? now : Timestamp(written.timestamp_ms);
    record.key = ByteView(written.key);
    if (written.value) record.value = ByteView(*written.value);
    POLYLOG_TRY(builder.add(record));
  }
  POLYLOG_ASSIGN(bytes, builder.finish());
  log_bytes_ += bytes.size();
  Batch batch;
  batch.info = format::kafka::to_info(format::kafka::decode_header(bytes));
  batch.bytes = Slice::of(std::move(bytes));
  return partition_->append(std::move(batch));
}

Async<void> Shard::run_answers(std::shared_ptr<Shard> self, std::uint64_t life) {
  while (self->life_ == life && !self->waiting_.empty()) {
    const std::optional<Partition::Appended> written = self->waiting_.front().written;
    if (written) {
      const Partition::Appended appended = *written;
      const Result<void> safe =
          co_await self->partition_->acknowledged(appended, Acks::all, INT64_MAX);
      if (self->life_ != life) co_return;
      if (!safe) {
        self->write_failed(safe.error());
        co_return;
      }
    }
    const Waiting next = std::move(self->waiting_.front());
    self->waiting_.pop_front();
    if (next.give) next.give(GroupError::none);
  }
  if (self->life_ != life) co_return;
  self->answering_ = false;
  self->shorten_if_long();
}

// What memory says was not written: only the log knows what is true now.
void Shard::write_failed(const Error& error) {
  const bool gone = error.code == Errc::not_found;
  drop(GroupError::not_coordinator);
  if (gone || owner_.broker.closing()) {
    state_ = State::closed;
    return;
  }
  load_later(error);
}

void Shard::close(GroupError error) {
  drop(error);
  state_ = State::closed;
}

void Shard::drop(GroupError error) {
  ++life_;
  state_ = State::loading;
  answering_ = false;
  shortening_ = false;
  for (auto& [group, entry] : groups_) {
    owner_.unschedule(*this, group, entry);
    entry.group->give_up(error);
  }
  groups_.clear();
  records_.clear();
  const auto waiting = std::exchange(waiting_, {});
  const auto answers = std::exchange(event_answers_, {});
  for (const Waiting& its : waiting) {
    if (its.give) its.give(error);
  }
  for (const auto& give : answers) give(error);
}

void Shard::drop_topic(const std::string& topic) {
  if (state_ == State::loading) {
    deleted_while_loading_.insert(topic);
    return;
  }
  for (auto& [group, entry] : groups_) entry.offsets.erase_topic(topic, records_);
}

// ----------------------------------------------------------------------------- a long log

// Nothing compacts the log, so it is written anew from memory when it has grown long, and what
// lies before goes.
void Shard::shorten_if_long() {
  if (state_ != State::ready || shortening_ || log_bytes_ < long_log_bytes ||
      log_bytes_ < long_log_factor * state_bytes_) {
    return;
  }
  GroupRecords all;
  for (const auto& [group, entry] : groups_) {
    entry.group->snapshot(all, owner_.now());
    entry.offsets.snapshot(all);
  }
  state_bytes_ = 0;
  for (const GroupRecord& record : all) state_bytes_ += bytes_of(record);
  if (log_bytes_ < long_log_factor * state_bytes_) return;

  // An empty state needs one record too, for the log to be cut in front of.
  if (all.empty()) all.push_back({Bytes{0, 2, 0, 0}, std::nullopt});
  const Result<Written> written = append(all);
  if (!written) return write_failed(written.error());
  waiting_.push_back({written->last, nullptr});
  shortening_ = true;
  boost::asio::co_spawn(owner_.broker.reactor().context(),
                        run_shorten(shared_from_this(), *written, life_), boost::asio::detached);
  hand_out();
}

Async<void> Shard::run_shorten(std::shared_ptr<Shard> self, Written state, std::uint64_t life) {
  const Partition::Appended last = state.last;
  const Result<void> safe = co_await self->partition_->acknowledged(last, Acks::all, INT64_MAX);
  if (self->life_ != life || !safe) co_return;  // whoever waits for it too sees the failure
  const Offset before = state.first.base;
  const Result<Offset> cut = co_await self->owner_.broker.delete_records(self->partition_, before);
  if (self->life_ != life) co_return;
  self->shortening_ = false;
  if (cut) {
    self->log_bytes_ = self->state_bytes_;
  } else {
    // Nothing is lost: the log is longer than it need be.
    self->report("cannot be shortened: " + cut.error().to_string());
  }
}

}  // namespace polylog::broker::groups
