// What the broker does by itself: retention, producer expiry, progress files, and finishing what
// a full disk interrupted.

#include <algorithm>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "broker/broker_impl.h"

namespace polylog::broker {

namespace asio = boost::asio;

namespace {

constexpr std::int64_t first_retention_ms = 30'000;   // Kafka's too
constexpr std::int64_t checkpoint_max_ms = 30'000;    // of the sidecar
constexpr std::size_t partitions_per_job = 64;        // one hop to the pool serves so many
constexpr std::int64_t tend_report_interval_ns = 60'000'000'000;

// A task for a timer that does nothing once the broker is gone or stopping.
template <typename Impl>
std::function<void()> while_alive(const std::shared_ptr<Impl>& impl, void (Impl::*task)()) {
  return [weak = std::weak_ptr<Impl>(impl), task] {
    const auto alive = weak.lock();
    if (alive && !alive->closing) (alive.get()->*task)();
  };
}

}  // namespace

// One pass of retention over all partitions, in jobs of a few.
struct Broker::Impl::Sweep {
  struct Part {
    std::shared_ptr<Partition> partition;
    storage::Store* store;
    Offset visible;
    Result<storage::Retained> retained;
  };
  std::vector<std::shared_ptr<Partition>> partitions;
  std::size_t next = 0;
  std::vector<Part> job;
  std::size_t failed = 0;
  std::string first_failure;
};

void Broker::Impl::start_background() {
  const Settings& settings = broker.settings_;
  Reactor& reactor = broker.reactor_;
  const auto self = shared_from_this();
  const std::int64_t retention_ms = settings.retention_check_interval_ms;
  reactor.every(retention_ms, while_alive(self, &Impl::retain_all),
                std::min(retention_ms, first_retention_ms));
  reactor.every(settings.producer_id_expiration_check_ms,
                while_alive(self, &Impl::expire_producers));
  reactor.every(std::min(settings.checkpoint_interval_ms, checkpoint_max_ms),
                while_alive(self, &Impl::checkpoint));
  reactor.every(settings.shared_log.queue_flush_interval_ms, while_alive(self, &Impl::tend));
}

std::vector<std::shared_ptr<Partition>> Broker::Impl::all_partitions() const {
  std::vector<std::shared_ptr<Partition>> all;
  for (const auto& [name, topic] : by_name) {
    all.insert(all.end(), topic->partitions.begin(), topic->partitions.end());
  }
  return all;
}

// -------------------------------------------------------------------------------- retention

void Broker::Impl::retain_all() {
  if (retaining) return;
  retaining = true;
  auto sweep = std::make_shared<Sweep>();
  sweep->partitions = all_partitions();
  retain_next(std::move(sweep));
}

void Broker::Impl::retain_next(std::shared_ptr<Sweep> sweep) {
  for (const Sweep::Part& part : sweep->job) {
    if (!part.retained) {
      if (part.partition->removed() || part.retained.error().code == Errc::not_found) continue;
      if (sweep->failed++ == 0) {
        sweep->first_failure = part.partition->id().topic + "-" +
                               std::to_string(part.partition->id().partition) + ": " +
                               part.retained.error().to_string();
      }
    } else if (part.retained->segments_removed > 0) {
      part.partition->notify();
    }
  }
  sweep->job.clear();
  while (sweep->next < sweep->partitions.size() && sweep->job.size() < partitions_per_job) {
    const std::shared_ptr<Partition>& partition = sweep->partitions[sweep->next++];
    if (partition->removed()) continue;
    storage::Store* const store = stores.of(partition->config().layout);
    sweep->job.push_back({partition, store, partition->high_watermark(), {}});
  }
  if (sweep->job.empty() || closing) {
    retaining = false;
    if (sweep->failed > 0) {
      report("retention failed for " + std::to_string(sweep->failed) + " partition(s), first " +
             sweep->first_failure);
    }
    return;
  }
  const auto work = [sweep, now = broker.clock_.now()] {
    for (Sweep::Part& part : sweep->job) {
      const TopicPartition& id = part.partition->id();
      // A topic deleted and made again meanwhile has the name, but not this visible end.
      if (part.store->find(id) != part.partition->shared_log()) continue;
      part.retained = part.store->retain(id, part.visible, now);
    }
  };
  const auto done = [weak = weak_from_this(), sweep] {
    if (const auto impl = weak.lock()) impl->retain_next(sweep);
  };
  if (!broker.pool_.submit(work, done)) retaining = false;  // too busy: at the next tick
}

// -------------------------------------------------------------------------- producer expiry

void Broker::Impl::expire_producers() {
  if (expiring) return;
  const Timestamp before = broker.clock_.now() - broker.settings_.producer_id_expiration_ms;
  const auto work = [partitions = all_partitions(), before] {
    for (const auto& partition : partitions) partition->log().expire_producers(before);
  };
  const auto done = [weak = weak_from_this()] {
    if (const auto impl = weak.lock()) impl->expiring = false;
  };
  expiring = broker.pool_.submit(work, done);
}

// ------------------------------------------------------------------------------- checkpoint

// Progress files are written with or after what they describe: first a sync round for all that
// no topic's policy asked to be synced, then the files. The engine writes no more into them than
// it knows to be durable, so the round need not have ended.
void Broker::Impl::checkpoint() {
  for (const auto& [log, state] : states) submit(*state);
  finish_deletions();
  if (!missing.empty() && !std::exchange(making, true)) {
    asio::co_spawn(broker.reactor_.context(), make_missing(shared_from_this()), asio::detached);
  }
  if (checkpointing) return;
  auto result = std::make_shared<Result<void>>();
  const auto work = [result, opened = stores.opened()] {
    for (const auto& [layout, store] : opened) {
      Result<void> written = store->checkpoint();
      if (!written && *result) *result = std::move(written);
    }
  };
  const auto done = [weak = weak_from_this(), result] {
    const auto impl = weak.lock();
    if (!impl) return;
    impl->checkpointing = false;
    if (!*result) impl->report("checkpoint failed: " + result->error().to_string());
  };
  checkpointing = broker.pool_.submit(work, done);
}

// Between checkpoints recovery points move on with what is written, a few logs at a time: what has
// to be synced for them goes into one round, and the next few come when that has ended. Nobody
// who appends waits for it.
void Broker::Impl::advance_points() {
  if (advancing || closing) return;
  std::vector<storage::Store*> due;
  for (storage::Store* const store : {stores.kafka.get(), stores.segment.get()}) {
    if (store != nullptr && store->points_due()) due.push_back(store);
  }
  if (due.empty()) return;
  auto logs = std::make_shared<std::vector<std::shared_ptr<storage::Log>>>();
  const auto work = [logs, due = std::move(due)] {
    for (storage::Store* const store : due) {
      for (auto& log : store->advance_points()) logs->push_back(std::move(log));
    }
  };
  const auto done = [weak = weak_from_this(), logs] {
    const auto impl = weak.lock();
    if (!impl) return;
    for (const auto& log : *logs) {
      const auto known = impl->states.find(log.get());
      if (known == impl->states.end() || known->second->failed || !impl->durability) continue;
      impl->points_round = impl->durability->submit(log);
    }
    impl->advancing = impl->points_round != 0;
  };
  advancing = broker.pool_.submit(work, done);
}

// ------------------------------------------------------------------------------------ tending

// What stores keep in memory goes to its files, the next file is made, what failed is mended.
void Broker::Impl::tend() {
  if (tending) return;
  auto result = std::make_shared<Result<void>>();
  const auto work = [result, opened = stores.opened(), now = broker.clock_.now()] {
    for (const auto& [layout, store] : opened) {
      Result<void> tended = store->tend(now);
      if (!tended && *result) *result = std::move(tended);
    }
  };
  const auto done = [weak = weak_from_this(), result] {
    const auto impl = weak.lock();
    if (!impl) return;
    impl->tending = false;
    const std::int64_t now_ns = impl->broker.clock_.steady_ns();
    if (*result || now_ns < impl->next_tend_report_ns) return;
    impl->next_tend_report_ns = now_ns + tend_report_interval_ns;
    impl->report("tending the store failed: " + result->error().to_string());
  };
  tending = broker.pool_.submit(work, done);
}

// ------------------------------------------------------------------- what was left unfinished

void Broker::Impl::finish_deletions() {
  if (deleting || deletions.empty()) return;
  auto tried = std::make_shared<std::map<std::string, Deletion>>(deletions);
  const auto work = [tried, impl = this] {
    for (auto& [name, deletion] : *tried) {
      deletion.finished = impl->remove_topic(deletion).has_value();
    }
  };
  const auto done = [weak = weak_from_this(), tried] {
    const auto impl = weak.lock();
    if (!impl) return;
    impl->deleting = false;
    for (auto& [name, deletion] : *tried) {
      if (deletion.finished) {
        impl->deletions.erase(name);
      } else {
        impl->deletions[name] = std::move(deletion);
      }
    }
  };
  deleting = broker.pool_.submit(work, done);
}

Async<void> Broker::Impl::make_missing(std::shared_ptr<Impl> self) {
  for (const Missing& wanted : std::vector<Missing>(self->missing)) {
    const std::shared_ptr<Topic> topic = wanted.topic;
    const TopicPartition id{topic->name, wanted.partition};
    std::string name = topic->name;
    const NameLocks::Hold hold = co_await self->names->acquire(std::move(name));
    if (self->closing) break;
    Result<std::shared_ptr<storage::PartitionLog>> made;
    if (!topic->deleting) {
      std::function<void()> make = [&made, &id, topic, config = topic->config.log,
                                    store = self->stores.of(topic->config.layout)] {
        made = store->create(id, topic->id, config);
      };
      co_await self->broker.pool_.run(std::move(make));
      if (!made || self->closing) continue;
      self->put_in_place(*topic, wanted.partition, std::move(*made));
    }
    std::erase_if(self->missing, [&id](const Missing& other) {
      return other.topic->name == id.topic && other.partition == id.partition;
    });
  }
  self->making = false;
}

void Broker::Impl::put_in_place(Topic& topic, std::int32_t index,
                                std::shared_ptr<storage::PartitionLog> log) {
  auto& place = topic.partitions[static_cast<std::size_t>(index)];
  const std::shared_ptr<Partition> before = place;
  states.erase(before->log_state().log.get());
  place = make_partition(topic, index, std::move(log),
                         std::make_shared<const TopicConfig>(topic.config));
  before->remove();  // whoever waits at the old one looks again
}

}  // namespace polylog::broker
