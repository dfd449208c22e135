#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "broker/topic_config.h"

namespace polylog::broker {

// A topic key with its rule (Kafka log format, "Configs", topic-level). Numbers lie in
// [min, max]; `words` are the accepted strings, separated by '|', "" for any.
struct TopicKey {
  ConfigKey key;
  std::int64_t min = INT64_MIN;
  std::int64_t max = INT64_MAX;
  std::string_view words = {};
};
std::span<const TopicKey> topic_keys();  // sorted by name
const TopicKey* find_topic_key(std::string_view name);

// The broker-level names that supply a topic key's default, most specific first, each in units of
// its own: log.retention.hours for retention.ms.
struct BrokerSynonym {
  std::string_view name;
  std::string_view topic_key;
  std::int64_t unit_ms = 1;  // more than 1: a whole number of units of so many ms
  // What Kafka prints for it; "=" for the topic key's own, "" where it has none of its own and
  // the next in the list decides.
  std::string_view default_value = "=";
};
std::span<const BrokerSynonym> broker_synonyms();

// Checks one value against its key's rule; `shown_as` is the name the user wrote.
Result<void> check_topic_value(const TopicKey& rule, std::string_view shown_as,
                               std::string_view value);

}  // namespace polylog::broker
