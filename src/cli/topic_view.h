#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "cli/kafka_client.h"

// What topic, produce and consume ask a broker about topics. Errors, besides KafkaClient's:
// not_found (no such topic), invalid and io with Kafka's code and the broker's words.
namespace polylog::cli {

struct PartitionView {
  std::int32_t id = 0;
  std::int32_t leader = -1;
  std::int32_t leader_epoch = -1;
  std::int16_t error_code = 0;
  std::size_t replicas = 0;
};

struct TopicView {
  std::string name;
  Uuid id;  // zero: the broker knows no topic ids
  bool internal = false;
  std::vector<PartitionView> partitions;  // ascending
};

// All topics, by name.
Result<std::vector<TopicView>> list_topics(KafkaClient& client);

// With `create` a missing topic is made as the broker makes topics for producers, and waited for.
Result<TopicView> find_topic(KafkaClient& client, const std::string& name, bool create = false);

// Special timestamps of ListOffsets.
inline constexpr std::int64_t latest_offset = -1;
inline constexpr std::int64_t earliest_offset = -2;

enum class IsolationLevel : std::int8_t { read_uncommitted = 0, read_committed = 1 };

// By partition. For a time: the first record at or after it; -1 where there is none.
using PartitionOffsets = std::map<std::int32_t, std::int64_t>;
Result<PartitionOffsets> list_offsets(KafkaClient& client, const std::string& topic,
                                      const std::vector<std::int32_t>& partitions,
                                      std::int64_t timestamp,
                                      IsolationLevel isolation = IsolationLevel::read_uncommitted);

// Fails when the broker that `client` talks to leads not all of `partitions` (empty: all).
Result<void> check_led_here(const KafkaClient& client, const TopicView& topic,
                            const std::vector<std::int32_t>& partitions);

struct ConfigView {
  std::string name;
  std::string value;
  std::string source;  // topic, broker, default, or Kafka's number for another one
  std::string documentation;
};
// By name. Secrets have an empty value.
Result<std::vector<ConfigView>> topic_configs(KafkaClient& client, const std::string& topic);

// True when the broker itself says that it keeps what a topic with this configuration holds.
bool waits_for_compaction(const std::vector<ConfigView>& configs);

}  // namespace polylog::cli
