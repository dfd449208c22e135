#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"

// What a KRaft cluster knows of itself: records of its metadata log and of the log's snapshots, as
// far as they say which topics there are and how they are set (Kafka 4.4's metadata schemas). Page:
// docs/formats/kafka-cluster-metadata.md. Never written here.
namespace polylog::format::kafka {

inline constexpr std::string_view cluster_metadata_topic = "__cluster_metadata";

struct TopicMade {
  std::string name;
  Uuid id;
};
struct PartitionMade {
  Uuid topic;
  std::int32_t partition = 0;
};
struct TopicRemoved {
  Uuid id;
};
// Kafka's numbers of what a setting is of. Others exist and may come.
inline constexpr std::int8_t topic_resource = 2;
inline constexpr std::int8_t broker_resource = 4;  // without a name: the default of all brokers
inline constexpr std::int8_t group_resource = 32;
struct SettingChanged {
  std::int8_t resource = 0;
  std::string of;  // its name
  std::string name;
  std::optional<std::string> value;  // nothing: unset
};
// Of users, client ids and addresses, by type; without a name: the default.
using QuotaOf = std::map<std::string, std::optional<std::string>>;
struct QuotaChanged {
  QuotaOf of;
  std::string name;
  double value = 0;
  bool removed = false;
};
struct ProducerIdsGiven {
  std::int64_t next = 0;  // those below were given out
};
enum class MetadataTransaction { begin, end, abort };

// monostate: a record of something else.
using MetadataRecord =
    std::variant<std::monostate, TopicMade, PartitionMade, TopicRemoved, SettingChanged,
                 QuotaChanged, ProducerIdsGiven, MetadataTransaction>;

// The value of a record. corrupt: it does not read. unsupported: one of the above, in a version
// that is not known here.
Result<MetadataRecord> decode_metadata_record(ByteView value);

// What the records in a row come to.
class ClusterMetadata {
 public:
  struct Topic {
    Uuid id;
    std::int32_t partitions = 0;
    std::map<std::string, std::string> settings;  // its own
  };
  using Settings = std::map<std::string, std::string>;

  // corrupt: it can't come after those before.
  Result<void> apply(const MetadataRecord& record);
  // No more records come: an open transaction counts as aborted.
  void finish() { held_.reset(); }

  const std::map<std::string, Topic>& topics() const { return topics_; }
  // Of all but topics, by resource and name.
  const std::map<std::pair<std::int8_t, std::string>, Settings>& settings() const {
    return settings_;
  }
  const std::map<QuotaOf, std::map<std::string, double>>& quotas() const { return quotas_; }
  std::int64_t producer_ids_end() const { return producer_ids_end_; }

 private:
  Result<void> take(const MetadataRecord& record);
  void change(const SettingChanged& setting);
  void change(const QuotaChanged& quota);

  std::map<std::string, Topic> topics_;
  std::map<Uuid, std::string> names_;
  std::map<std::pair<std::int8_t, std::string>, Settings> settings_;
  std::map<QuotaOf, std::map<std::string, double>> quotas_;
  std::int64_t producer_ids_end_ = 0;
  std::optional<std::vector<MetadataRecord>> held_;  // of an open transaction
};

}  // namespace polylog::format::kafka
