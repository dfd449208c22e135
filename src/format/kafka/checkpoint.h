#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "record/epochs.h"

// The small text files of a Kafka log directory (Kafka 4.3 log format, sections
// "leader-epoch-checkpoint" to ".kafka_cleanshutdown"). Each has a page in docs/formats/.
//
// Parsing is strict: an error (corrupt; unsupported for another version) names the line and what
// is wrong with it. No bytes at all is a valid file without entries. The last line of a
// checkpoint must be complete: a number cut in half would still be a number.
namespace polylog::format::kafka {

inline constexpr int checkpoint_version = 0;

// leader-epoch-checkpoint: `epoch startOffset` per line, both rising strictly.
Result<std::vector<EpochList::Entry>> parse_epoch_checkpoint(std::string_view text);
std::string format_epoch_checkpoint(std::span<const EpochList::Entry> entries);

// recovery-point-, replication-, log-start- and cleaner-offset-checkpoint: `topic partition
// offset` per line, in any order. Should a partition come twice, its last line counts.
struct PartitionOffset {
  TopicPartition id;
  Offset offset;
  bool operator==(const PartitionOffset&) const = default;
};
Result<std::vector<PartitionOffset>> parse_offset_checkpoint(std::string_view text);
std::string format_offset_checkpoint(std::span<const PartitionOffset> entries);

// partition.metadata: the topic's id. The id of all zeros is refused.
Result<Uuid> parse_partition_metadata(std::string_view text);
std::string format_partition_metadata(const Uuid& topic);

// meta.properties: whose directory it is. Version 0 called the node's id broker.id and knew no
// directory ids.
struct MetaProperties {
  int version = 1;
  std::string cluster_id;  // by convention 22 characters, as Uuid writes them; any text is legal
  std::int32_t node_id = 0;
  std::optional<Uuid> directory_id;
  bool operator==(const MetaProperties&) const = default;
};
Result<MetaProperties> parse_meta_properties(std::string_view text);
std::string format_meta_properties(const MetaProperties& properties);

// .kafka_cleanshutdown: that it exists is what counts. -1 = no epoch known, which is also what
// the empty file that Kafka wrote before 3.7 says.
Result<std::int64_t> parse_clean_shutdown(std::string_view text);
std::string format_clean_shutdown(std::int64_t broker_epoch);

}  // namespace polylog::format::kafka
