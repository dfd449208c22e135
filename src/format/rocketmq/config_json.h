#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

// The tables under config/ (RocketMQ store format, "config/*.json"). Page:
// docs/formats/rocketmq-config.md.
//
// Parsing takes what RocketMQ's writer makes: JSON whose numeric keys may stand without quotes.
// Members that are missing or null keep their defaults; members not known here are kept and
// written again. corrupt: anything else, with the member's name. Formatting gives strict JSON,
// sorted, indented by tabs as RocketMQ's.
namespace polylog::format::rocketmq {

inline constexpr std::string_view topics_file = "topics.json";
inline constexpr std::string_view subscription_groups_file = "subscriptionGroup.json";
inline constexpr std::string_view consumer_offsets_file = "consumerOffset.json";
inline constexpr std::string_view delay_offsets_file = "delayOffset.json";
inline constexpr std::string_view backup_suffix = ".bak";  // read when the file itself is no use

// Rises with each change; others compare all three for equality.
struct DataVersion {
  std::int64_t counter = 0;
  std::int64_t state_version = 0;
  std::int64_t timestamp = 0;  // ms
  bool operator==(const DataVersion&) const = default;
  void next(std::int64_t now_ms) {
    timestamp = now_ms;
    ++counter;
  }
};

using Attributes = std::map<std::string, std::string>;
// Members not known here: name and value, the value as JSON text on one line.
using OtherMembers = std::map<std::string, std::string>;

namespace perm {
inline constexpr std::int32_t inherit = 1;
inline constexpr std::int32_t write = 2;
inline constexpr std::int32_t read = 4;
inline constexpr std::int32_t priority = 8;
}  // namespace perm

struct TopicConfig {
  std::int32_t read_queue_nums = 16;
  std::int32_t write_queue_nums = 16;
  std::int32_t perm = perm::read | perm::write;
  std::int32_t topic_sys_flag = 0;
  bool order = false;
  std::string topic_filter_type = "SINGLE_TAG";
  Attributes attributes;  // queue.type, cleanup.policy, message.type, reserve.time
  OtherMembers others;
  bool operator==(const TopicConfig&) const = default;
};
struct TopicTable {
  DataVersion version;
  std::map<std::string, TopicConfig> topics;
  OtherMembers others;
  bool operator==(const TopicTable&) const = default;
};
Result<TopicTable> parse_topics(std::string_view text);
std::string format_topics(const TopicTable& table);

struct GroupConfig {
  bool consume_enable = true;
  bool consume_from_min_enable = true;
  bool consume_broadcast_enable = true;
  bool consume_message_orderly = false;
  bool notify_consumer_ids_changed_enable = true;
  std::int32_t retry_queue_nums = 1;
  std::int32_t retry_max_times = 16;
  std::int64_t broker_id = 0;
  std::int64_t which_broker_when_consume_slowly = 1;
  std::int32_t group_sys_flag = 0;
  std::int32_t consume_timeout_minute = 15;
  Attributes attributes;
  OtherMembers others;  // groupRetryPolicy, subscriptionDataSet
  bool operator==(const GroupConfig&) const = default;
};
struct GroupTable {
  DataVersion version;
  std::map<std::string, GroupConfig> groups;
  OtherMembers others;  // forbiddenTable
  bool operator==(const GroupTable&) const = default;
};
Result<GroupTable> parse_subscription_groups(std::string_view text);
std::string format_subscription_groups(const GroupTable& table);

// By queue id, or by delay level: the next offset to read.
using QueueOffsets = std::map<std::int32_t, std::int64_t>;

struct ConsumerOffsetTable {
  DataVersion version;
  std::map<std::string, QueueOffsets> offsets;  // by "topic@group"
  OtherMembers others;  // without groupTopicMap, which RocketMQ derives from the offsets
  bool operator==(const ConsumerOffsetTable&) const = default;
};
Result<ConsumerOffsetTable> parse_consumer_offsets(std::string_view text);
std::string format_consumer_offsets(const ConsumerOffsetTable& table);

struct DelayOffsetTable {
  DataVersion version;
  QueueOffsets offsets;  // by level, 1..18
  OtherMembers others;
  bool operator==(const DelayOffsetTable&) const = default;
};
Result<DelayOffsetTable> parse_delay_offsets(std::string_view text);
std::string format_delay_offsets(const DelayOffsetTable& table);

}  // namespace polylog::format::rocketmq
