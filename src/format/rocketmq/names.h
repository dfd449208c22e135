#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// Names in a RocketMQ store directory (RocketMQ store format, "Directory tree", "Rules shared by
// all mapped file queues") and of topics.
namespace polylog::format::rocketmq {

inline constexpr std::string_view commit_log_directory = "commitlog";
inline constexpr std::string_view consume_queue_directory = "consumequeue";
inline constexpr std::string_view consume_queue_ext_directory = "consumequeue_ext";
inline constexpr std::string_view batch_queue_directory = "batchconsumequeue";
inline constexpr std::string_view index_directory = "index";
inline constexpr std::string_view config_directory = "config";
inline constexpr std::string_view checkpoint_file = "checkpoint";
inline constexpr std::string_view abort_file = "abort";
inline constexpr std::string_view lock_file = "lock";

inline constexpr std::string_view schedule_topic = "SCHEDULE_TOPIC_XXXX";
inline constexpr std::string_view half_topic = "RMQ_SYS_TRANS_HALF_TOPIC";
inline constexpr std::string_view half_operations_topic = "RMQ_SYS_TRANS_OP_HALF_TOPIC";

// 20 decimal digits. REQUIRES: position >= 0.
std::string file_name(std::int64_t position);
std::optional<std::int64_t> parse_file_name(std::string_view name);

// A polylog (Kafka) topic name as this layout's: letters, digits, '_' and '-' as they are, '.' as
// %2E, '%' as %25. too_large: over 127 bytes then; invalid: a character that has no form here.
// Names of system topics come out as they are: whoever creates topics asks is_internal_topic().
Result<std::string> to_stored_topic(std::string_view name);
// The reverse. A name that to_stored_topic() can't have made (RocketMQ's own topics) is taken as
// it is; internal ones (is_internal_topic) too.
std::string from_stored_topic(std::string_view stored);

// %RETRY%, %DLQ%, %LMQ%, rmq_sys_ and the fixed system topics: not offered to other protocols.
bool is_internal_topic(std::string_view stored);

// What RocketMQ takes as a topic: 1 to 255 characters of [%|a-zA-Z0-9_-] (over 127 it lets only
// %RETRY% names pass). Nothing of it can leave the directory it names. too_large, invalid.
Result<void> check_stored_topic(std::string_view stored);

}  // namespace polylog::format::rocketmq
