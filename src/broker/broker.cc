#include "broker/broker.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "base/assert.h"
#include "broker/broker_impl.h"

namespace polylog::broker {

namespace {

// How long a log waits that found no room for what must be written before its sync.
constexpr std::int64_t retry_ms = 1000;
constexpr std::int64_t producer_ids_per_block = 1000;
constexpr std::int64_t write_report_interval_ns = 1'000'000'000;
// From here on the writes of a turn take longer than it takes to wake a thread for half of them.
constexpr std::size_t shared_writes_min = 32;
// So many logs go to a sync round at once, while the rest of the turn is written.
constexpr std::size_t submitted_together = 64;
// A turn over so many logs ends at once: they are synced while the requests behind are read.
constexpr std::size_t turn_logs_max = 200;

}  // namespace

// ------------------------------------------------------------------------- writes and syncs

Broker::Impl::Impl(Broker& broker_in, fs::FileSystem& fs_in,
                   std::unique_ptr<meta::Catalog> catalog_in, Stores stores_in)
    : broker(broker_in),
      fs(fs_in),
      catalog(std::move(catalog_in)),
      stores(std::move(stores_in)),
      report_to([](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }),
      names(std::make_shared<NameLocks>(broker.reactor_.context())),
      help([this](std::function<void()> task) { return broker.pool_.submit(std::move(task), {}); }),
      rounds_done(broker.reactor_.context(), 0),
      producer_ids(broker.reactor_.context()) {}

void Broker::Impl::start_durability(MakeDurability make) {
  Durability::Completion completion = [weak = weak_from_this(), box = inbox,
                                       &reactor = broker.reactor_](
                                          std::vector<Durability::Outcome> outcomes) {
    bool first = false;
    {
      const std::lock_guard lock(box->mutex);
      first = box->outcomes.empty();
      box->outcomes.insert(box->outcomes.end(), std::make_move_iterator(outcomes.begin()),
                           std::make_move_iterator(outcomes.end()));
    }
    if (!first) return;  // a task is on its way
    reactor.post([weak] {
      if (const auto impl = weak.lock()) impl->take_outcomes();
    });
  };
  durability = make ? make(std::move(completion))
                    : make_threaded_durability(fs, std::move(stores.volume), std::move(completion),
                                               stores.journal);
}

void Broker::Impl::report(const std::string& line) const { report_to(line); }

std::shared_ptr<LogState> Broker::Impl::state_of(const std::shared_ptr<storage::Log>& log,
                                                 bool shared) {
  std::shared_ptr<LogState>& state = states[log.get()];
  if (!state) state = std::make_shared<LogState>(broker.reactor_.context(), log, shared);
  return state;
}

void Broker::Impl::staged(LogState& state) {
  state.staged = true;
  if (std::exchange(state.listed, true)) return;
  staged_logs.push_back(state.shared_from_this());
  if (staged_logs.size() >= turn_logs_max) return end_of_turn();
  if (turn_posted) return;
  turn_posted = true;
  // Behind everything that is queued now: what it stages joins this turn's writes.
  broker.reactor_.post([weak = weak_from_this()] {
    if (const auto impl = weak.lock()) impl->end_of_turn();
  });
}

void Broker::Impl::end_of_turn() {
  static const Error not_written{Errc::io, "what was staged was not written"};
  turn_posted = false;
  std::vector<std::shared_ptr<LogState>> logs;
  logs.swap(staged_logs);
  for (const auto& state : logs) state->listed = false;
  if (logs.size() < shared_writes_min) {
    for (const auto& state : logs) write(*state, not_written);
  } else {
    write_shared(logs, not_written);
  }
  logs.clear();
  if (staged_logs.empty()) staged_logs.swap(logs);  // keeps the capacity
  advance_points();
}

// With a thread of the pool. Nobody stages anything meanwhile: the reactor is here.
void Broker::Impl::write_shared(const std::vector<std::shared_ptr<LogState>>& states_written,
                                const Error& cause) {
  std::vector<std::shared_ptr<storage::Log>> logs;
  logs.reserve(states_written.size());
  for (const auto& state : states_written) logs.push_back(state->log);
  const auto writes = std::make_shared<TurnWrites>(std::move(logs));
  help.call(writes);
  std::vector<std::shared_ptr<storage::Log>> to_sync;
  for (std::size_t i = 0; i < states_written.size(); ++i) {
    LogState& state = *states_written[i];
    if (wrote(state, writes->outcome(i), cause) && !state.failed) to_sync.push_back(state.log);
    const bool last = i + 1 == states_written.size();
    if (durability && (to_sync.size() >= submitted_together || (last && !to_sync.empty()))) {
      durability->submit(std::exchange(to_sync, {}));
    }
  }
}

// `cause` is an append's error that may have dropped what was staged before it.
void Broker::Impl::write(LogState& state, const Error& cause) {
  if (wrote(state, state.log->write_staged(), cause)) submit(state);
}

// True when the log is to be synced now.
bool Broker::Impl::wrote(LogState& state, const Result<void>& written, const Error& cause) {
  state.staged = false;
  const bool sync = std::exchange(state.sync_wanted, false);
  const std::int64_t interval_ms = std::exchange(state.flush_interval_ms, 0);
  if (!written) {
    // A roll may have written some of it before; who shares the log is told of that much.
    const std::int64_t rolled = state.shared ? state.log->end().value() : 0;
    if (rolled > state.written.value()) {
      state.written.advance(rolled);
      if (sync) submit(state);
    }
    write_failed(state, written.error());
    state.pass_written();
    return false;
  }
  const LogPosition end = state.log->end();
  state.written.advance(end.value());
  if (end < state.staged_end) write_failed(state, cause);
  if (!sync && interval_ms > 0) flush_within(state, interval_ms);
  state.pass_written();
  for (Partition* partition : state.partitions) partition->wrote();
  return sync;
}

// The engine has cut the file back to what was written before, so a full disk or a failed write
// costs the batches of this turn and nothing else. Only an engine that could not cut back says
// unavailable.
void Broker::Impl::write_failed(LogState& state, const Error& error) {
  const std::int64_t written = state.written.value();
  state.failure = error;
  state.staged_end = LogPosition(written);
  state.generations.end(LogPosition(written));
  state.written.fail_beyond(written, error);
  state.durable.fail_beyond(written, error);
  if (error.code == Errc::unavailable) {
    state.failed = true;
    state.written.close(error);
  }
  const std::int64_t now = broker.clock_.steady_ns();
  if (now < next_write_report_ns) return;  // a full disk fails every turn of every log
  next_write_report_ns = now + write_report_interval_ns;
  report("write failed: " + error.to_string());
}

void Broker::Impl::submit(LogState& state) {
  if (durability && !state.failed) durability->submit(state.log);
}

void Broker::Impl::flush_within(LogState& state, std::int64_t interval_ms) {
  if (std::exchange(state.flush_pending, true)) return;
  IntervalQueue& queue = interval_queues[interval_ms];
  const std::int64_t due = broker.clock_.steady_ns() + interval_ms * 1'000'000;
  queue.emplace_back(due, state.weak_from_this());
  if (queue.size() > 1) return;  // the front one has armed the timer
  broker.reactor_.after(interval_ms, [weak = weak_from_this(), interval_ms] {
    if (const auto impl = weak.lock()) impl->fire_interval(interval_ms);
  });
}

// All logs of a queue have the same interval, so the front one is due first.
void Broker::Impl::fire_interval(std::int64_t interval_ms) {
  IntervalQueue& queue = interval_queues[interval_ms];
  const std::int64_t now = broker.clock_.steady_ns();
  while (!queue.empty() && queue.front().first <= now) {
    if (const auto state = queue.front().second.lock()) {
      state->flush_pending = false;
      submit(*state);
    }
    queue.pop_front();
  }
  if (queue.empty()) {
    interval_queues.erase(interval_ms);
    return;
  }
  const std::int64_t wait_ms = (queue.front().first - now) / 1'000'000 + 1;
  broker.reactor_.after(wait_ms, [weak = weak_from_this(), interval_ms] {
    if (const auto impl = weak.lock()) impl->fire_interval(interval_ms);
  });
}

void Broker::Impl::take_outcomes() {
  std::vector<Durability::Outcome> outcomes;
  {
    const std::lock_guard lock(inbox->mutex);
    outcomes.swap(inbox->outcomes);
  }
  std::uint64_t round = 0;
  std::size_t failed = 0;
  const Error* error = nullptr;
  for (const Durability::Outcome& outcome : outcomes) {
    round = std::max(round, outcome.round);
    const auto it = states.find(outcome.log.get());
    if (it == states.end()) continue;  // deleted meanwhile
    const std::shared_ptr<LogState> state = it->second;
    settle(*state, outcome);
    if (outcome.result || outcome.retriable) continue;
    ++failed;
    if (error == nullptr) error = &outcome.result.error();
  }
  if (failed > 0) {
    report("sync failed, " + std::to_string(failed) +
           " log(s) refuse writes until restart: " + error->to_string());
  }
  rounds_done.advance(static_cast<std::int64_t>(round));
  if (points_round == 0 || round < points_round) return;
  points_round = 0;
  advancing = false;
  advance_points();
}

void Broker::Impl::settle(LogState& state, const Durability::Outcome& outcome) {
  if (outcome.result) {
    const std::int64_t before = state.durable.value();
    state.durable.advance(outcome.end.value());
    if (state.durable.value() == before) return;
    state.pass_durable();
    for (Partition* partition : state.partitions) partition->synced();
    return;
  }
  const Error& error = outcome.result.error();
  state.failure = error;
  if (!outcome.retriable) {
    state.failed = true;
    state.durable.close(error);
    return;
  }
  // What is written stays and becomes durable once there is room, acknowledged or not.
  state.durable.fail_beyond(outcome.end.value(), error);
  retries.insert(state.shared_from_this());
  if (std::exchange(retry_armed, true)) return;
  broker.reactor_.after(retry_ms, [weak = weak_from_this()] {
    if (const auto impl = weak.lock()) impl->retry_submissions();
  });
}

void Broker::Impl::retry_submissions() {
  retry_armed = false;
  for (const auto& state : std::exchange(retries, {})) submit(*state);
}

// ----------------------------------------------------------------------------------- Broker

storage::Store* Broker::Stores::of(storage::Layout layout) const {
  switch (layout) {
    case storage::Layout::kafka: return kafka.get();
    case storage::Layout::rocketmq: return rocketmq.get();
    case storage::Layout::segment: return segment.get();
  }
  return nullptr;
}

std::vector<std::pair<storage::Layout, storage::Store*>> Broker::Stores::opened() const {
  using storage::Layout;
  std::vector<std::pair<Layout, storage::Store*>> all;
  for (const Layout layout : {Layout::kafka, Layout::rocketmq, Layout::segment}) {
    if (storage::Store* const store = of(layout)) all.emplace_back(layout, store);
  }
  return all;
}

Broker::Broker(Reactor& reactor, Pool& pool, fs::FileSystem& fs, const Clock& clock,
               const Settings& settings, std::unique_ptr<meta::Catalog> catalog, Stores stores,
               MakeDurability make_durability)
    : reactor_(reactor),
      pool_(pool),
      clock_(clock),
      fixed_settings_(settings),
      settings_(settings),
      quotas_({settings.quota_windows, std::int64_t{settings.quota_window_seconds} * 1000},
              {settings.mutation_quota_windows,
               std::int64_t{settings.mutation_quota_window_seconds} * 1000}) {
  POLYLOG_ASSERT(catalog != nullptr && stores.kafka != nullptr);
  cluster_id_ = catalog->cluster_id();
  store_host_ = parse_origin(settings.shared_log.store_host);
  impl_ = std::make_shared<Impl>(*this, fs, std::move(catalog), std::move(stores));
  impl_->start_durability(std::move(make_durability));
}

// Without close() this is an unclean stop, which costs a recovery and nothing else.
Broker::~Broker() {
  impl_->closing = true;
  pool_.drain();
  impl_->durability.reset();
}

void Broker::observe_topics(TopicObserver observer) {
  impl_->topic_observers.push_back(std::move(observer));
}
void Broker::set_report(Report report) { impl_->report_to = std::move(report); }

Result<std::vector<std::string>> Broker::load() { return impl_->load(); }

void Broker::start_background() { impl_->start_background(); }

bool Broker::closing() const { return impl_->closing; }

Result<void> Broker::close() {
  if (std::exchange(impl_->closing, true)) return {};
  pool_.drain();
  impl_->end_of_turn();
  for (const auto& [log, state] : impl_->states) {
    impl_->submit(*state);
  }
  impl_->durability->drain();
  impl_->take_outcomes();
  impl_->durability.reset();
  const Error error{Errc::unavailable, "the broker is stopping"};
  for (const auto& [log, state] : impl_->states) {
    state->written.close(error);
    state->durable.close(error);
  }
  Result<void> closed;
  for (const auto& [layout, store] : impl_->stores.opened()) {
    Result<void> this_one = store->close();
    if (!this_one && closed) closed = std::move(this_one);
  }
  return closed;
}

std::shared_ptr<Topic> Broker::find(const std::string& name) const {
  const auto it = impl_->by_name.find(name);
  return it == impl_->by_name.end() ? nullptr : it->second;
}

std::shared_ptr<Topic> Broker::find(const Uuid& id) const {
  const auto it = impl_->by_id.find(id);
  return it == impl_->by_id.end() ? nullptr : it->second;
}

std::shared_ptr<Partition> Broker::find(const std::string& topic, std::int32_t partition) const {
  const auto it = impl_->by_name.find(topic);
  if (it == impl_->by_name.end() || partition < 0) return nullptr;
  const auto& partitions = it->second->partitions;
  const auto index = static_cast<std::size_t>(partition);
  return index < partitions.size() ? partitions[index] : nullptr;
}

std::vector<std::shared_ptr<Topic>> Broker::topics() const {
  std::vector<std::shared_ptr<Topic>> all;
  all.reserve(impl_->by_name.size());
  for (const auto& [name, topic] : impl_->by_name) all.push_back(topic);
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a->name < b->name; });
  return all;
}

void Broker::staged(LogState& state) { impl_->staged(state); }
void Broker::write_now(LogState& state, const Error& cause) { impl_->write(state, cause); }
void Broker::submit(LogState& state) { impl_->submit(state); }

storage::Store& Broker::store(storage::Layout layout) {
  storage::Store* const store = impl_->stores.of(layout);
  POLYLOG_ASSERT(store != nullptr);
  return *store;
}

Async<Result<Offset>> Broker::delete_records(std::shared_ptr<Partition> partition, Offset before) {
  if (closing()) co_return fail(Errc::unavailable, "the broker is stopping");
  LogState& state = partition->log_state();
  if (state.failed) co_return fail(Errc::unavailable, state.failure.to_string());
  if (before > partition->high_watermark()) {
    co_return fail(Errc::out_of_range, "offset " + std::to_string(before.value()) +
                                           " is beyond the high watermark " +
                                           std::to_string(partition->high_watermark().value()));
  }
  Result<void> raised;
  std::function<void()> raise = [&raised, &partition, before] {
    raised = partition->log().advance_start(before);
  };
  co_await pool_.run(std::move(raise));
  if (!raised) co_return fail(std::move(raised).error());
  partition->notify();
  if (closing() || partition->removed()) {
    co_return fail(Errc::unavailable, "deleted, but not known to be durable");
  }
  const std::uint64_t round = impl_->durability->submit(state.log);
  Result<void> ended =
      co_await impl_->rounds_done.reached(static_cast<std::int64_t>(round), INT64_MAX);
  if (!ended) co_return fail(std::move(ended).error());
  if (state.failed) co_return fail(state.failure);
  co_return partition->log_start();
}

Async<std::vector<Broker::StoreUsage>> Broker::usage(
    std::vector<std::shared_ptr<Partition>> partitions) {
  const std::shared_ptr<Impl> impl = impl_;
  std::map<storage::Layout, std::vector<std::shared_ptr<Partition>>> by_layout;
  for (std::shared_ptr<Partition>& partition : partitions) {
    by_layout[partition->config().layout].push_back(std::move(partition));
  }
  std::vector<StoreUsage> all;
  std::function<void()> measure = [&all, &by_layout, &impl] {
    for (const auto& [layout, store] : impl->stores.opened()) {
      StoreUsage& usage = all.emplace_back();
      usage.directory = store->directory();
      for (const std::shared_ptr<Partition>& partition : by_layout[layout]) {
        usage.partitions.emplace_back(partition->id(), partition->log().measured_bytes());
      }
      const Result<std::uint64_t> total = impl->fs.total_bytes(usage.directory);
      const Result<std::uint64_t> free = impl->fs.free_bytes(usage.directory);
      if (total) usage.volume_bytes = *total;
      if (free) usage.free_bytes = *free;
      if (!total) usage.volume = fail(total.error());
      if (!free) usage.volume = fail(free.error());
    }
  };
  co_await pool_.run(std::move(measure));
  co_return all;
}

Async<Result<ProducerId>> Broker::next_producer_id() {
  const std::shared_ptr<Impl> impl = impl_;
  Impl::ProducerIds& ids = impl->producer_ids;
  while (ids.next == ids.end) {
    if (impl->closing) co_return fail(Errc::unavailable, "the broker is stopping");
    if (ids.reserving) {  // share it, its failure too
      Result<void> ended =
          co_await ids.reservations.reached(ids.reservations.value() + 1, INT64_MAX);
      if (!ended) co_return fail(std::move(ended).error());
      if (!ids.last) co_return fail(ids.last.error());
      continue;
    }
    ids.reserving = true;
    Result<meta::ProducerIdBlock> block;
    std::function<void()> reserve = [&block, catalog = impl->catalog.get()] {
      block = catalog->reserve_producer_ids(producer_ids_per_block);
    };
    co_await pool_.run(std::move(reserve));
    ids.reserving = false;
    ids.last = {};
    if (block) {
      ids.next = block->first;
      ids.end = block->first + block->count;
    } else {
      ids.last = fail(block.error());
    }
    ids.reservations.advance(ids.reservations.value() + 1);
    if (!block) co_return fail(std::move(block).error());
  }
  const ProducerId given(ids.next++);
  co_return given;
}

}  // namespace polylog::broker
