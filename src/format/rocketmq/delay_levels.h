#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/rocketmq/message.h"

// Delivery after a delay by level (RocketMQ store format, "Delayed delivery", "Level based"): level
// L waits in queue L-1 of SCHEDULE_TOPIC_XXXX; its queue entry holds the time of delivery.
namespace polylog::format::rocketmq {

inline constexpr std::string_view delay_levels_default =
    "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";

// Immutable; any thread.
class DelayLevels {
 public:
  // messageDelayLevel: numbers with a unit (s, m, h, d), one space or more between them. invalid:
  // no level, another unit, or a delay over 2^63-1 ms.
  static Result<DelayLevels> parse(std::string_view text);
  static DelayLevels standard();  // delay_levels_default

  int level_max() const { return static_cast<int>(durations_ms_.size()); }
  // Above the largest is the largest; 0 and below is no delay and comes out as it is.
  int clamp(int level) const { return level > level_max() ? level_max() : level; }
  // -1: no such level.
  std::int64_t duration_ms(int level) const;
  // A second later when there is no such level.
  std::int64_t delivery_time(int level, std::int64_t store_timestamp) const;
  // When an entry with that time is really due: now at the latest when it lies further ahead than
  // the level allows, because the clock was set back.
  std::int64_t corrected_time(int level, std::int64_t delivery_time, std::int64_t now) const;

 private:
  std::vector<std::int64_t> durations_ms_;  // of level i + 1
};

constexpr std::int32_t delay_queue_of(int level) { return level - 1; }
constexpr int delay_level_of(std::int32_t queue_id) { return queue_id + 1; }

// The property DELAY as a number; 0 when there is none or it is no number.
int delay_level(std::string_view properties);

// What the queue entry of a stored message says: the time of delivery in the schedule topic, the
// hash of the tag elsewhere.
std::int64_t entry_tags_code(const Message& message, const DelayLevels& levels);

}  // namespace polylog::format::rocketmq
