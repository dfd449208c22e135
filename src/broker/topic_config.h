#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/store.h"

namespace polylog::broker {

// When an acknowledged record must be on disk (design: "What an acknowledgement means").
struct FlushPolicy {
  enum class Kind { ack, interval, never };
  Kind kind = Kind::ack;
  std::int64_t interval_ms = 0;  // interval only
  bool operator==(const FlushPolicy&) const = default;
  std::string to_string() const;                        // "ack", "interval:250", "never"
  static Result<FlushPolicy> parse(std::string_view text);
};

enum class TimestampType { create_time, log_append_time };

// What a topic's settings come to: Kafka's topic configs (Kafka log format, "Configs") plus
// polylog.flush and polylog.layout, overrides on top of the broker's defaults.
struct TopicConfig {
  storage::LogConfig log;
  storage::Layout layout = storage::Layout::kafka;
  FlushPolicy flush;
  std::int32_t max_message_bytes = 1048588;
  std::int32_t min_insync_replicas = 1;
  TimestampType timestamp_type = TimestampType::create_time;
  std::int64_t timestamp_before_max_ms = INT64_MAX;
  std::int64_t timestamp_after_max_ms = 3600000;
  std::string compression_type = "producer";  // "uncompressed" or a codec's name: recompress
  std::int32_t gzip_level = -1, lz4_level = 9, zstd_level = 3;
  bool compact = false;          // asked for
  bool delete_policy = true;     // cleanup.policy contains delete
};

// One known key, for validation, `describe` and the guide. `internal.segment.bytes` (a segment
// size from 14 bytes on, for tests, as in Kafka) is accepted too, but not listed.
struct ConfigKey {
  std::string_view name;
  std::string_view broker_name;    // the broker-level synonym that supplies the default; "" none
  std::string_view default_value;  // as Kafka prints it
  enum class Type { boolean, string, integer, long_integer, real, list } type;
  std::string_view help;
  std::string_view no_effect;      // why it is accepted and changes nothing; "": it acts
};
const std::vector<ConfigKey>& topic_config_keys();  // sorted by name

std::string_view layout_name(storage::Layout layout);
std::optional<storage::Layout> parse_layout(std::string_view name);

// `overrides` are the topic's own, `defaults` broker-level settings under their broker names.
// `layout` is the one the topic was created in, where it exists already: it outranks what
// `defaults` say. Other settings among `defaults` are passed over. A layout whose records lie in
// one log for all topics keeps none longer than the store does (fileReservedTime): a longer
// retention comes out as that. invalid: unknown key, a value outside its range, or two that
// contradict each other; unsupported: nothing here can do it yet. The context is fit to show a
// user.
Result<TopicConfig> resolve_topic_config(const std::map<std::string, std::string>& overrides,
                                         const std::map<std::string, std::string>& defaults,
                                         std::optional<storage::Layout> layout = std::nullopt);

// The same for settings somebody asks for now. invalid too: what the topic's layout can't keep to,
// that is a retention of its own beyond the store's, or compaction.
Result<TopicConfig> accept_topic_config(const std::map<std::string, std::string>& overrides,
                                        const std::map<std::string, std::string>& defaults,
                                        std::optional<storage::Layout> layout = std::nullopt);

// What `describe` shows for one key.
struct ConfigEntry {
  enum class Source { topic, broker, default_value };
  const ConfigKey* key = nullptr;
  std::string value;
  Source source = Source::default_value;
};
// Every key of topic_config_keys(), in that order. The flush settings agree with each other
// whichever of them was set: polylog.flush = ack shows as flush.messages = 1, and so on.
// REQUIRES: resolve_topic_config accepts the same arguments.
std::vector<ConfigEntry> describe_topic_config(
    const std::map<std::string, std::string>& overrides,
    const std::map<std::string, std::string>& defaults,
    std::optional<storage::Layout> layout = std::nullopt);

}  // namespace polylog::broker
