// Giving topics more partitions. The order of the steps, and what a crash between any two of them
// leaves, is in docs/decisions/topic-creation-and-deletion.md.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <utility>

#include "broker/broker_impl.h"

namespace polylog::broker {

using TopicError = Broker::TopicError;
using TopicOutcome = Broker::TopicOutcome;

namespace {

TopicOutcome check_growth(const Topic* topic, std::int32_t partitions) {
  if (topic == nullptr) return refuse(TopicError::unknown, "This server has no such topic.");
  const auto now = static_cast<std::int32_t>(topic->partitions.size());
  if (partitions == now) {
    return refuse(TopicError::invalid_partitions,
                  "Topic already has " + std::to_string(now) + " partition(s).");
  }
  if (partitions < now) {
    return refuse(TopicError::invalid_partitions, "The topic " + topic->name + " currently has " +
                                                      std::to_string(now) + " partition(s); " +
                                                      std::to_string(partitions) +
                                                      " would not be an increase.");
  }
  if (partitions > Broker::partitions_per_topic_max) {
    return refuse(TopicError::invalid_partitions,
                  "A topic has at most " + std::to_string(Broker::partitions_per_topic_max) +
                      " partitions here, not " + std::to_string(partitions) + ".");
  }
  return {};
}

}  // namespace

// The catalogue's commit is the moment the new partitions exist, and never taken back: load()
// makes those that a crash kept from being made, and checkpoint() those that found no room.
Result<void> Broker::Impl::make_growth(Growth& growth) {
  // Whether a failed commit took effect is not known: where it did the next start makes them.
  POLYLOG_TRY(catalog->set_partitions(growth.name, growth.after));
  growth.noted = true;
  Result<void> made;
  for (std::int32_t index = growth.before; index < growth.after; ++index) {
    std::shared_ptr<storage::PartitionLog>& place = growth.logs.emplace_back();
    if (!made) continue;  // the others would fail likewise
    auto log = growth.store->create({growth.name, index}, growth.id, growth.config);
    if (log) {
      place = std::move(*log);
    } else {
      made = fail(std::move(log).error());
    }
  }
  return made;
}

Async<TopicOutcome> Broker::grow_topic(std::string name, std::int32_t partitions,
                                       bool validate_only) {
  const std::shared_ptr<Impl> impl = impl_;
  const NameLocks::Hold hold = co_await impl->names->acquire(name);
  if (impl->closing) co_return refuse(TopicError::storage, "the broker is stopping");
  const std::shared_ptr<Topic> topic = find(name);
  TopicOutcome outcome = check_growth(topic.get(), partitions);
  if (outcome.error != TopicError::none || validate_only) co_return outcome;

  Impl::Growth growth;
  growth.name = topic->name;
  growth.id = topic->id;
  growth.store = impl->stores.of(topic->config.layout);
  growth.config = topic->config.log;
  const std::uint64_t settings_seen = impl->settings_changes;
  growth.before = static_cast<std::int32_t>(topic->partitions.size());
  growth.after = partitions;
  Result<void> made;
  std::function<void()> make = [&made, &growth, &impl] { made = impl->make_growth(growth); };
  co_await pool_.run(std::move(make));
  if (impl->closing) co_return refuse(TopicError::storage, "the broker is stopping");
  const Error why = made ? Error{} : made.error();
  if (growth.noted) {
    impl->extend(topic, growth.logs, why);
    if (impl->settings_changes != settings_seen) impl->configure(*topic, topic->config);
    impl->tell(*topic, TopicEvent::grown);
  }
  if (made) {
    outcome.topic = topic;
    co_return outcome;
  }
  outcome = refuse(TopicError::storage, made.error().to_string());
  if (growth.noted) {
    outcome.message += "; the topic has " + std::to_string(partitions) +
                       " partitions from now on, those that are missing will be made later";
    impl->report("topic " + name + ": " + outcome.message);
  }
  co_return outcome;
}

}  // namespace polylog::broker
