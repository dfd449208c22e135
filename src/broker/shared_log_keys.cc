#include "broker/shared_log_keys.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "broker/config_value.h"

namespace polylog::broker {
namespace {

using storage::SharedLogConfig;
using Type = ConfigKey::Type;

constexpr std::int64_t int_max = INT32_MAX;
constexpr std::int64_t hour_ms = 3600000;
constexpr std::int64_t queue_entry_bytes = 20;
constexpr std::int64_t index_header_bytes = 40;
constexpr std::int64_t index_slot_bytes = 4;
constexpr std::int64_t index_entry_bytes = 20;
constexpr std::int64_t record_extra_bytes = 65536;  // RocketMQ's room for all but the body
constexpr std::size_t delay_levels_max = 64;
constexpr std::string_view delay_levels_default =
    "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";

// Puts a checked number into a field of any integral type.
template <auto field>
void put(SharedLogConfig& config, std::int64_t value) {
  auto& place = config.*field;
  place = static_cast<std::remove_reference_t<decltype(place)>>(value);
}

void put_reserved(SharedLogConfig& config, std::int64_t hours) {
  config.reserved_ms = hours * hour_ms;
}

// A queue file holds whole entries; RocketMQ rounds up too.
void put_queue_file(SharedLogConfig& config, std::int64_t bytes) {
  const std::int64_t entries = (bytes + queue_entry_bytes - 1) / queue_entry_bytes;
  config.queue_file_bytes = entries * queue_entry_bytes;
}

constexpr SharedLogKey keys[] = {
    {"checkCRCOnRecover", "true", Type::boolean, 0, 1, nullptr,
     "Recovery compares every body with its checksum", "recovery always does"},
    {"cleanFileForciblyEnable", "false", Type::boolean, 0, 1,
     put<&SharedLogConfig::forced_deletion>,
     "Over diskSpaceCleanForciblyRatio the oldest commit log files go, however young they are",
     ""},
    {"commitLogFileSize", "", Type::integer, 4096, int_max,
     put<&SharedLogConfig::commit_log_file_bytes>, "Older name of mappedFileSizeCommitLog", ""},
    {"deleteWhen", "04", Type::string, 0, 0, nullptr,
     "Hours of the day, local time, at which expired commit log files are deleted: two digits, "
     "several separated by semicolons",
     ""},
    {"diskMaxUsedSpaceRatio", "75", Type::integer, 10, 95, put<&SharedLogConfig::disk_ratio_max>,
     "Over this share of the disk, in percent, expired files are deleted at any hour", ""},
    {"diskSpaceCleanForciblyRatio", "85", Type::integer, 10, 99,
     put<&SharedLogConfig::disk_ratio_forced>,
     "Share of the disk, in percent, over which cleanFileForciblyEnable acts", ""},
    {"fileReservedTime", "72", Type::integer, 1, int_max, put_reserved,
     "Hours a commit log file is kept after its last write; no topic in this layout keeps records "
     "longer",
     ""},
    {"flushCommitLogTimed", "true", Type::boolean, 0, 1, nullptr,
     "ASYNC_FLUSH syncs on a timer rather than when enough is dirty",
     "ASYNC_FLUSH keeps to flushIntervalCommitLog either way"},
    {"flushDiskType", "", Type::string, 0, 0, nullptr,
     "Default of polylog.flush for topics in RocketMQ's layout: SYNC_FLUSH is ack, ASYNC_FLUSH is "
     "interval with flushIntervalCommitLog; without it polylog.flush decides",
     ""},
    {"flushIntervalCommitLog", "500", Type::integer, 1, int_max, nullptr,
     "Milliseconds between syncs under ASYNC_FLUSH", ""},
    {"flushIntervalConsumeQueue", "1000", Type::integer, 1, int_max,
     put<&SharedLogConfig::queue_flush_interval_ms>,
     "Milliseconds that index entries may wait in memory before they go to their files", ""},
    {"mapedFileSizeCommitLog", "", Type::integer, 4096, int_max,
     put<&SharedLogConfig::commit_log_file_bytes>, "Older name of mappedFileSizeCommitLog", ""},
    {"mapedFileSizeConsumeQueue", "", Type::integer, 20, int_max - queue_entry_bytes,
     put_queue_file, "Older name of mappedFileSizeConsumeQueue", ""},
    {"mappedFileSizeCommitLog", "1073741824", Type::integer, 4096, int_max,
     put<&SharedLogConfig::commit_log_file_bytes>,
     "Size of a commit log file in bytes; a store keeps the size it was made with", ""},
    {"mappedFileSizeConsumeQueue", "6000000", Type::integer, 20, int_max - queue_entry_bytes,
     put_queue_file, "Size of a consume queue file in bytes, rounded up to entries of 20", ""},
    {"mappedFilesAheadCommitLog", "1", Type::integer, 0, 16, put<&SharedLogConfig::files_ahead>,
     "Commit log files made ready before they are needed", ""},
    {"maxHashSlotNum", "5000000", Type::integer, 1, int_max, put<&SharedLogConfig::index_slots>,
     "Hash slots of a key index file", ""},
    {"maxIndexNum", "20000000", Type::integer, 2, int_max, put<&SharedLogConfig::index_entries>,
     "Entries of a key index file", ""},
    {"maxMessageSize", "4194304", Type::integer, 1, int_max - record_extra_bytes,
     put<&SharedLogConfig::body_bytes_max>,
     "Largest value of a record in RocketMQ's layout, in bytes", ""},
    {"messageDelayLevel", delay_levels_default, Type::string, 0, 0, nullptr,
     "Delay of each level from 1 on: numbers with s, m, h or d, separated by blanks", ""},
    {"messageIndexEnable", "true", Type::boolean, 0, 1, put<&SharedLogConfig::index_enabled>,
     "Records are found by key too", ""},
};

// Several names for one setting: who gives two of them must mean the same.
constexpr std::pair<std::string_view, std::string_view> older_names[] = {
    {"commitLogFileSize", "mappedFileSizeCommitLog"},
    {"commitLogFileSize", "mapedFileSizeCommitLog"},
    {"mapedFileSizeCommitLog", "mappedFileSizeCommitLog"},
    {"mapedFileSizeConsumeQueue", "mappedFileSizeConsumeQueue"},
};

Result<void> check_older_names(const SettingValues& values) {
  for (const auto& [older, newer] : older_names) {
    const auto first = values.find(std::string(older));
    const auto second = values.find(std::string(newer));
    if (first == values.end() || second == values.end()) continue;
    if (trimmed(first->second) == trimmed(second->second)) continue;
    return fail(Errc::invalid, std::string(older) + " and " + std::string(newer) +
                                   " are the same setting and differ");
  }
  return {};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<std::vector<int>> parse_delete_hours(std::string_view text) {
  std::vector<int> hours;
  for (const std::string_view part : split(text, ';')) {
    if (part.empty()) continue;  // RocketMQ takes "04;" too
    POLYLOG_ASSIGN(hour, parse_integer("deleteWhen", part, 0, 23));
    hours.push_back(static_cast<int>(hour));
  }
  if (hours.empty()) return fail(Errc::invalid, "deleteWhen: at least one hour, as in 04 or 04;16");
  std::sort(hours.begin(), hours.end());
  hours.erase(std::unique(hours.begin(), hours.end()), hours.end());
  return hours;
}

Result<std::string> parse_delay_levels(std::string_view text) {
  std::string levels;
  std::size_t count = 0;
  for (const std::string_view part : split(text, ' ')) {
    if (part.empty()) continue;
    const std::string_view units = "smhd";
    if (part.size() < 2 || units.find(part.back()) == std::string_view::npos) {
      return fail(Errc::invalid, "messageDelayLevel: '" + std::string(part.substr(0, 32)) +
                                     "' must be a number with s, m, h or d");
    }
    POLYLOG_TRY(parse_integer("messageDelayLevel", part.substr(0, part.size() - 1), 1, 1'000'000)
                    .map([](std::int64_t) {}));
    levels += (levels.empty() ? "" : " ") + std::string(part);
    ++count;
  }
  if (count == 0 || count > delay_levels_max) {
    return fail(Errc::invalid, "messageDelayLevel: must have 1 to 64 levels");
  }
  return levels;
}

// A file that RocketMQ maps is below 2 GiB.
Result<void> check_index_size(const SharedLogConfig& config) {
  const std::int64_t bytes = index_header_bytes + index_slot_bytes * config.index_slots +
                             index_entry_bytes * config.index_entries;
  if (bytes <= int_max) return {};
  return fail(Errc::invalid, "maxHashSlotNum and maxIndexNum make a file of " +
                                 std::to_string(bytes) + " bytes: at most " +
                                 std::to_string(int_max));
}

Result<void> apply(SharedLogConfig& config, const SharedLogKey& key, const std::string& text) {
  if (key.name == "deleteWhen") {
    POLYLOG_ASSIGN(hours, parse_delete_hours(text));
    config.delete_hours = std::move(hours);
    return {};
  }
  if (key.name == "messageDelayLevel") {
    POLYLOG_ASSIGN(levels, parse_delay_levels(text));
    config.delay_levels = std::move(levels);
    return {};
  }
  if (key.name == "flushDiskType") {
    return parse_word(key.name, text, "SYNC_FLUSH|ASYNC_FLUSH").map([](const std::string&) {});
  }
  if (key.type == Type::boolean) {
    POLYLOG_ASSIGN(on, parse_boolean(key.name, text));
    if (key.set != nullptr) key.set(config, on ? 1 : 0);
    return {};
  }
  POLYLOG_ASSIGN(value, parse_integer(key.name, text, key.min, key.max));
  if (key.set != nullptr) key.set(config, value);
  return {};
}

}  // namespace

std::span<const SharedLogKey> shared_log_keys() { return keys; }

const SharedLogKey* find_shared_log_key(std::string_view name) {
  const auto* at = std::lower_bound(
      std::begin(keys), std::end(keys), name,
      [](const SharedLogKey& key, std::string_view wanted) { return key.name < wanted; });
  return at != std::end(keys) && at->name == name ? at : nullptr;
}

Result<storage::SharedLogConfig> shared_log_config(const SettingValues& values) {
  SharedLogConfig config;
  for (const SharedLogKey& key : keys) {
    const auto given = values.find(std::string(key.name));
    if (given != values.end()) POLYLOG_TRY(apply(config, key, given->second));
  }
  POLYLOG_TRY(check_older_names(values));
  POLYLOG_TRY(check_index_size(config));
  return config;
}

Result<std::optional<FlushPolicy>> shared_log_flush(const SettingValues& values) {
  const auto type = values.find("flushDiskType");
  if (type == values.end()) return std::optional<FlushPolicy>();
  POLYLOG_ASSIGN(word, parse_word("flushDiskType", type->second, "SYNC_FLUSH|ASYNC_FLUSH"));
  if (word == "SYNC_FLUSH") return std::optional(FlushPolicy{FlushPolicy::Kind::ack, 0});
  const SharedLogKey& interval = *find_shared_log_key("flushIntervalCommitLog");
  const auto given = values.find(std::string(interval.name));
  const std::string text(given == values.end() ? interval.default_value : given->second);
  POLYLOG_ASSIGN(ms, parse_integer(interval.name, text, interval.min, interval.max));
  return std::optional(FlushPolicy{FlushPolicy::Kind::interval, ms});
}

}  // namespace polylog::broker
