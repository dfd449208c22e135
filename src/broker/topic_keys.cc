#include "broker/topic_keys.h"

#include <algorithm>
#include <string>

#include "broker/config_value.h"

namespace polylog::broker {
namespace {

using Type = ConfigKey::Type;

constexpr std::int64_t int_max = INT32_MAX;
constexpr std::int64_t hour_ms = 3600000;
constexpr std::int64_t minute_ms = 60000;
constexpr std::int64_t segment_bytes_min = 1048576;
constexpr std::string_view later = "compaction is not built yet";
constexpr std::string_view no_tiers = "there is no remote storage";
constexpr std::string_view no_replicas = "there is one node";

constexpr TopicKey keys[] = {
    {{"cleanup.policy", "log.cleanup.policy", "delete", Type::list,
      "What happens to old records: delete, compact, both, or nothing when empty. compact is "
      "accepted, and described as not compacted yet",
      ""}},
    {{"compression.gzip.level", "compression.gzip.level", "-1", Type::integer,
      "Level when the broker itself compresses with gzip: 1 to 9, or -1 for zlib's own", ""},
     -1, 9},
    {{"compression.lz4.level", "compression.lz4.level", "9", Type::integer,
      "Level when the broker itself compresses with lz4: 1 to 17", ""},
     1, 17},
    {{"compression.type", "compression.type", "producer", Type::string,
      "producer keeps batches as they came; uncompressed or a codec's name (gzip, snappy, lz4, "
      "zstd) makes the broker rewrite those that differ",
      ""},
     0, 0, "uncompressed|zstd|lz4|snappy|gzip|producer"},
    {{"compression.zstd.level", "compression.zstd.level", "3", Type::integer,
      "Level when the broker itself compresses with zstd: -131072 to 22", ""},
     -131072, 22},
    {{"delete.retention.ms", "log.cleaner.delete.retention.ms", "86400000", Type::long_integer,
      "How long a compacted topic keeps deletion markers", later},
     0},
    {{"file.delete.delay.ms", "log.segment.delete.delay.ms", "60000", Type::long_integer,
      "How long a deleted segment's files stay under their .deleted names", ""},
     0},
    {{"flush.messages", "log.flush.interval.messages", "9223372036854775807", Type::long_integer,
      "1 means polylog.flush = ack; so does any other number but the largest, which says nothing",
      ""},
     1},
    {{"flush.ms", "log.flush.interval.ms", "9223372036854775807", Type::long_integer,
      "N means polylog.flush = interval:N, 0 means ack; the largest number says nothing", ""},
     0},
    {{"follower.replication.throttled.replicas", "", "", Type::list,
      "Followers whose replication is throttled: partition:broker pairs, or *", no_replicas}},
    {{"index.interval.bytes", "log.index.interval.bytes", "4096", Type::integer,
      "Bytes of records between two entries of the offset and time indexes", ""},
     0, int_max},
    {{"leader.replication.throttled.replicas", "", "", Type::list,
      "Leaders whose replication is throttled: partition:broker pairs, or *", no_replicas}},
    {{"local.retention.bytes", "log.local.retention.bytes", "-2", Type::long_integer,
      "Bytes kept here when older ones are in remote storage; -2 is retention.bytes", no_tiers},
     -2},
    {{"local.retention.ms", "log.local.retention.ms", "-2", Type::long_integer,
      "Time kept here when older records are in remote storage; -2 is retention.ms", no_tiers},
     -2},
    {{"max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms", "9223372036854775807",
      Type::long_integer, "A record is compacted at the latest after this time", later},
     1},
    {{"max.message.bytes", "message.max.bytes", "1048588", Type::integer,
      "Largest record batch, as stored", ""},
     0, int_max},
    {{"message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms", "3600000",
      Type::long_integer, "Records whose time is further in the future than this are refused", ""},
     0},
    {{"message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms",
      "9223372036854775807", Type::long_integer,
      "Records whose time is further in the past than this are refused", ""},
     0},
    {{"message.timestamp.type", "log.message.timestamp.type", "CreateTime", Type::string,
      "CreateTime keeps the producer's time, LogAppendTime puts the broker's", ""},
     0, 0, "CreateTime|LogAppendTime"},
    {{"min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio", "0.5", Type::real,
      "Share of uncompacted bytes from which a log is compacted", later},
     0, 1},
    {{"min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms", "0", Type::long_integer,
      "A record stays uncompacted at least this long", later},
     0},
    {{"min.insync.replicas", "min.insync.replicas", "1", Type::integer,
      "Replicas that must have a record before acks=all is answered; more than one can't be met "
      "by one node, and such writes are refused",
      ""},
     1, int_max},
    {{"polylog.flush", "polylog.flush", "ack", Type::string,
      "When an acknowledged record is on disk: ack, interval:MS or never", ""}},
    {{"polylog.layout", "polylog.layout", "kafka", Type::string,
      "On-disk layout, for good: kafka, rocketmq or segment", ""},
     0, 0, "kafka|rocketmq|segment"},
    {{"preallocate", "log.preallocate", "false", Type::boolean,
      "Reserve a segment's space when it is made", "segments grow as they are written"}},
    {{"remote.log.copy.disable", "", "false", Type::boolean,
      "No new segments to remote storage", no_tiers}},
    {{"remote.log.delete.on.disable", "", "false", Type::boolean,
      "Delete what is in remote storage when it is switched off", no_tiers}},
    {{"remote.storage.enable", "", "false", Type::boolean,
      "Keep old segments in remote storage; true is refused", no_tiers}},
    {{"retention.bytes", "log.retention.bytes", "-1", Type::long_integer,
      "Bytes kept per partition; -1 for no limit", ""},
     -1},
    {{"retention.ms", "log.retention.ms", "604800000", Type::long_integer,
      "How long records are kept; -1 for ever", ""},
     -1},
    {{"segment.bytes", "log.segment.bytes", "1073741824", Type::integer,
      "Size at which a new segment begins, at least 1 MiB", ""},
     segment_bytes_min, int_max},
    {{"segment.index.bytes", "log.index.size.max.bytes", "10485760", Type::integer,
      "Largest index file; a full one begins a new segment", ""},
     4, int_max},
    {{"segment.jitter.ms", "log.roll.jitter.ms", "0", Type::long_integer,
      "Up to this much is taken off segment.ms at random, so that logs don't roll together", ""},
     0},
    {{"segment.ms", "log.roll.ms", "604800000", Type::long_integer,
      "Age at which a new segment begins", ""},
     1},
    {{"unclean.leader.election.enable", "unclean.leader.election.enable", "false", Type::boolean,
      "A replica that lags may become leader", no_replicas}},
};

constexpr BrokerSynonym synonyms[] = {
    {"compression.gzip.level", "compression.gzip.level"},
    {"compression.lz4.level", "compression.lz4.level"},
    {"compression.type", "compression.type"},
    {"compression.zstd.level", "compression.zstd.level"},
    {"log.cleaner.delete.retention.ms", "delete.retention.ms"},
    {"log.cleaner.max.compaction.lag.ms", "max.compaction.lag.ms"},
    {"log.cleaner.min.cleanable.ratio", "min.cleanable.dirty.ratio"},
    {"log.cleaner.min.compaction.lag.ms", "min.compaction.lag.ms"},
    {"log.cleanup.policy", "cleanup.policy"},
    {"log.flush.interval.messages", "flush.messages"},
    {"log.flush.interval.ms", "flush.ms", 1, ""},
    {"log.flush.scheduler.interval.ms", "flush.ms"},
    {"log.index.interval.bytes", "index.interval.bytes"},
    {"log.index.size.max.bytes", "segment.index.bytes"},
    {"log.local.retention.bytes", "local.retention.bytes"},
    {"log.local.retention.ms", "local.retention.ms"},
    {"log.message.timestamp.after.max.ms", "message.timestamp.after.max.ms"},
    {"log.message.timestamp.before.max.ms", "message.timestamp.before.max.ms"},
    {"log.message.timestamp.type", "message.timestamp.type"},
    {"log.preallocate", "preallocate"},
    {"log.retention.bytes", "retention.bytes"},
    {"log.retention.ms", "retention.ms", 1, ""},
    {"log.retention.minutes", "retention.ms", minute_ms, ""},
    {"log.retention.hours", "retention.ms", hour_ms, "168"},
    {"log.roll.ms", "segment.ms", 1, ""},
    {"log.roll.hours", "segment.ms", hour_ms, "168"},
    {"log.roll.jitter.ms", "segment.jitter.ms", 1, ""},
    {"log.roll.jitter.hours", "segment.jitter.ms", hour_ms, "0"},
    {"log.segment.bytes", "segment.bytes"},
    {"log.segment.delete.delay.ms", "file.delete.delay.ms"},
    {"message.max.bytes", "max.message.bytes"},
    {"min.insync.replicas", "min.insync.replicas"},
    {"polylog.flush", "polylog.flush"},
    {"polylog.layout", "polylog.layout"},
    {"unclean.leader.election.enable", "unclean.leader.election.enable"},
};

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<void> check_cleanup_policy(std::string_view shown_as, std::string_view value) {
  POLYLOG_ASSIGN(items, parse_list(shown_as, value));
  for (const std::string& item : items) {
    POLYLOG_TRY(parse_word(shown_as, item, "delete|compact"));
  }
  return {};
}

Result<void> check_throttled_replicas(std::string_view shown_as, std::string_view value) {
  if (trimmed(value) == "*") return {};
  POLYLOG_ASSIGN(items, parse_list(shown_as, value));
  for (const std::string& item : items) {
    const std::string_view text(item);
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || !is_digits(text.substr(0, colon)) ||
        !is_digits(text.substr(colon + 1))) {
      return fail(Errc::invalid,
                  std::string(shown_as) + ": must be partition:broker pairs, or *");
    }
  }
  return {};
}

Result<void> check_flush(std::string_view shown_as, std::string_view value) {
  if (auto parsed = FlushPolicy::parse(value); !parsed) {
    return fail(Errc::invalid, std::string(shown_as) + ": " + parsed.error().context);
  }
  return {};
}

}  // namespace

std::span<const TopicKey> topic_keys() { return keys; }

const TopicKey* find_topic_key(std::string_view name) {
  const auto* at = std::lower_bound(
      std::begin(keys), std::end(keys), name,
      [](const TopicKey& key, std::string_view wanted) { return key.key.name < wanted; });
  return at != std::end(keys) && at->key.name == name ? at : nullptr;
}

std::span<const BrokerSynonym> broker_synonyms() { return synonyms; }

Result<void> check_topic_value(const TopicKey& rule, std::string_view shown_as,
                               std::string_view value) {
  switch (rule.key.type) {
    case Type::boolean: {
      POLYLOG_ASSIGN(on, parse_boolean(shown_as, value));
      if (on && rule.key.name == "remote.storage.enable") {
        return fail(Errc::unsupported, std::string(shown_as) + " = true: " + std::string(no_tiers));
      }
      return {};
    }
    case Type::integer:
    case Type::long_integer: {
      POLYLOG_ASSIGN(value_in_range, parse_integer(shown_as, value, rule.min, rule.max));
      if (rule.key.name == "compression.gzip.level" && value_in_range == 0) {
        return fail(Errc::invalid, std::string(shown_as) + " = 0: must be 1 to 9, or -1");
      }
      return {};
    }
    case Type::real: {
      POLYLOG_TRY(parse_real(shown_as, value, static_cast<double>(rule.min),
                             static_cast<double>(rule.max)));
      return {};
    }
    case Type::string: {
      if (rule.key.name == "polylog.flush") return check_flush(shown_as, value);
      POLYLOG_TRY(parse_word(shown_as, value, rule.words));
      return {};
    }
    case Type::list: break;
  }
  if (rule.key.name == "cleanup.policy") return check_cleanup_policy(shown_as, value);
  return check_throttled_replicas(shown_as, value);
}

const std::vector<ConfigKey>& topic_config_keys() {
  static const std::vector<ConfigKey> all = [] {
    std::vector<ConfigKey> out;
    for (const TopicKey& key : keys) out.push_back(key.key);
    return out;
  }();
  return all;
}

}  // namespace polylog::broker
