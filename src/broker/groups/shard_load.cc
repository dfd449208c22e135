#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <utility>

#include "broker/groups/coordinator_impl.h"
#include "broker/groups/replay.h"
#include "broker/groups/shard.h"

// How a shard comes to its groups: reading its log, on the pool, portion by portion.
namespace polylog::broker::groups {
namespace {

constexpr std::int64_t retry_ms = 1000;
constexpr std::size_t notes_max = 10;

}  // namespace

void Shard::load() {
  state_ = State::loading;
  log_bytes_ = 0;
  boost::asio::co_spawn(owner_.broker.reactor().context(), run_load(shared_from_this(), life_),
                        boost::asio::detached);
}

void Shard::load_later(const Error& cause) {
  std::string trouble = cause.to_string();
  if (trouble != trouble_) report("loads its groups anew: " + trouble);
  trouble_ = std::move(trouble);
  owner_.broker.reactor().after(retry_ms, [weak = weak_from_this(), life = life_] {
    const std::shared_ptr<Shard> self = weak.lock();
    if (self && self->life_ == life && self->state_ == State::loading) self->load();
  });
}

Async<void> Shard::run_load(std::shared_ptr<Shard> self, std::uint64_t life) {
  // After a failed sync the log holds what may still be lost: nobody is shown that.
  const LogPosition written = self->partition_->log_state().log->end();
  self->owner_.broker.submit(self->partition_->log_state());
  const Result<void> safe = co_await self->partition_->acknowledged(written, Acks::all, INT64_MAX);
  if (self->life_ != life) co_return;
  if (!safe) {
    ++self->life_;
    self->load_later(safe.error());
    co_return;
  }
  const std::shared_ptr<storage::PartitionLog> log = self->partition_->shared_log();
  const auto bytes_max =
      static_cast<std::size_t>(self->owner_.broker.settings().max_decompressed_bytes);
  Replay replay(self->owner_.consumer_limits, &self->owner_.stats.rebalances);
  const OffsetRange range = log->offsets();
  std::size_t notes = 0;
  for (Offset at = range.start; at < range.end;) {
    LogPortion portion;
    std::function<void()> read = [&portion, &log, at, range, bytes_max] {
      portion = read_portion(*log, at, range.end, bytes_max);
    };
    co_await self->owner_.broker.pool().run(std::move(read));
    if (self->life_ != life) co_return;
    if (!portion.read) {
      ++self->life_;
      self->load_later(portion.read.error());
      co_return;
    }
    at = portion.next;
    self->log_bytes_ += portion.bytes;
    std::vector<std::string> lines = std::move(portion.notes);
    std::vector<std::string> more = replay.take(std::move(portion));
    lines.insert(lines.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
    for (const std::string& line : lines) {
      if (++notes <= notes_max) self->report("skipped: " + line);
    }
  }
  if (notes > notes_max) {
    self->report(std::to_string(notes - notes_max) + " more records were skipped");
  }
  self->loaded(replay);
}

void Shard::loaded(Replay& replay) {
  if (replay.open_transactions() > 0) {
    report(std::to_string(replay.open_transactions()) +
           " transaction(s) never ended: their offsets do not count");
  }
  state_ = State::ready;
  trouble_.clear();
  for (auto& [group, from] : replay.finish()) {
    std::unique_ptr<Group> machine;
    if (from.consumer) {
      from.consumer->loaded(owner_.now());
      machine = std::move(from.consumer);
    } else {
      machine = owner_.load_classic(group, from.classic.value_or(format::kafka::GroupMetadata()));
    }
    add(group, std::move(machine)).offsets = std::move(from.offsets);
  }
  drop_stale_topics();
  finish();
  shorten_if_long();
}

// Topics that were deleted when nobody could note it: during the load, or just before a crash. A
// topic of that name may be there again, under another id.
void Shard::drop_stale_topics() {
  std::set<std::string> stale = std::exchange(deleted_while_loading_, {});
  for (auto& [group, entry] : groups_) {
    std::vector<std::string> gone;
    for (const auto& [topic, partitions] : entry.offsets.topics()) {
      const auto now = owner_.topics.find(topic);
      const bool other = std::any_of(partitions.begin(), partitions.end(), [&](const auto& its) {
        const Uuid& then = its.second.topic_id;
        return !then.is_zero() && (!now || now->id != then);
      });
      if (other || stale.contains(topic)) gone.push_back(topic);
    }
    for (const std::string& topic : gone) entry.offsets.erase_topic(topic, records_);
  }
}

}  // namespace polylog::broker::groups
