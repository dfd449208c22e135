#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/group_view.h"
#include "cli/json.h"

namespace polylog::cli {

// How far a group is in one partition.
struct GroupLag {
  TopicPartition where;
  std::optional<std::int64_t> committed;  // nothing: no offset
  std::int64_t end = 0;
  std::optional<std::int64_t> lag_ms;  // the age of the first record not read yet; 0: none
  std::string member;                  // who reads it; empty: nobody
};

// What members read and what has an offset, by topic and number. `now_ms` counts the ages.
Result<std::vector<GroupLag>> group_lags(KafkaClient& client, Groups& groups,
                                         const GroupDescription& group, std::int64_t now_ms);

// "0.2s", "75.0s", "3h25m", "2d4h".
std::string format_age(std::int64_t ms);

std::string group_text(const GroupDescription& group, const std::vector<GroupLag>& lags);
void add_group(JsonWriter& json, const GroupDescription& group, const std::vector<GroupLag>& lags);

}  // namespace polylog::cli
