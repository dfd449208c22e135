#include "format/rocketmq/delay_levels.h"

#include <charconv>
#include <limits>

#include "base/assert.h"
#include "format/rocketmq/names.h"
#include "format/rocketmq/properties.h"

namespace polylog::format::rocketmq {
namespace {

constexpr std::int64_t unknown_level_ms = 1000;

std::int64_t unit_ms(char unit) {
  switch (unit) {
    case 's': return 1000;
    case 'm': return 60 * 1000;
    case 'h': return 60 * 60 * 1000;
    case 'd': return 24 * 60 * 60 * 1000;
    default: return 0;
  }
}

// -1 when it is none.
std::int64_t parse_duration(std::string_view word) {
  const std::int64_t unit = unit_ms(word.back());
  word.remove_suffix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (unit == 0 || error != std::errc() || end != word.data() + word.size() || number < 0 ||
      number > std::numeric_limits<std::int64_t>::max() / unit) {
    return -1;
  }
  return number * unit;
}

std::int64_t saturating_add(std::int64_t time, std::int64_t duration_ms) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return time > 0 && duration_ms > most - time ? most : time + duration_ms;
}

}  // namespace

Result<DelayLevels> DelayLevels::parse(std::string_view text) {
  DelayLevels levels;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (word.empty()) continue;
    const std::int64_t duration = parse_duration(word);
    if (duration < 0) {
      return fail(Errc::invalid, "delay level " + std::to_string(levels.level_max() + 1) + ": '" +
                                     std::string(word.substr(0, 40)) +
                                     "' is not a number with s, m, h or d behind it");
    }
    levels.durations_ms_.push_back(duration);
  }
  if (levels.durations_ms_.empty()) return fail(Errc::invalid, "no delay level is given");
  return levels;
}

DelayLevels DelayLevels::standard() {
  auto levels = parse(delay_levels_default);
  POLYLOG_ASSERT(levels.has_value());
  return std::move(*levels);
}

std::int64_t DelayLevels::duration_ms(int level) const {
  if (level < 1 || level > level_max()) return -1;
  return durations_ms_[static_cast<std::size_t>(level - 1)];
}

std::int64_t DelayLevels::delivery_time(int level, std::int64_t store_timestamp) const {
  const std::int64_t duration = duration_ms(level);
  return saturating_add(store_timestamp, duration < 0 ? unknown_level_ms : duration);
}

std::int64_t DelayLevels::corrected_time(int level, std::int64_t delivery_time,
                                         std::int64_t now) const {
  const std::int64_t duration = duration_ms(level);
  if (duration < 0) return delivery_time;
  return delivery_time > saturating_add(now, duration) ? now : delivery_time;
}

int delay_level(std::string_view properties) {
  const auto text = find_property(properties, property::delay);
  if (!text) return 0;
  int level = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), level);
  return error == std::errc() && end == text->data() + text->size() ? level : 0;
}

std::int64_t entry_tags_code(const Message& message, const DelayLevels& levels) {
  if (message.topic == schedule_topic) {
    const int level = levels.clamp(delay_level(message.properties));
    if (level > 0) return levels.delivery_time(level, message.store_timestamp);
  }
  return tags_code(find_property(message.properties, property::tags).value_or(std::string_view()));
}

}  // namespace polylog::format::rocketmq
