#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

// Names in a Kafka log directory (Kafka 4.3 log format, "Directory layout" and "Segment
// naming"). Page: docs/formats/kafka-directory.md.
//
// A segment is named after its base offset: the first offset that is, or will be, written into
// it. That is a lower bound of the offsets inside (compaction may remove the first records); the
// next segment's name is the upper bound. It is not the last offset of the segment before.
// A `.snapshot` is named by another rule: the producer state in it is that of everything below.
namespace polylog::format::kafka {

enum class SegmentFile : std::uint8_t { log, index, timeindex, txnindex, snapshot };

// What a suffix behind the whole name says about an operation under way.
enum class FileStage : std::uint8_t {
  live,
  deleted,  // to be unlinked
  cleaned,  // output of compaction, unfinished
  swap,     // output of compaction, finished, being put in place
};

struct SegmentFileName {
  Offset offset;
  SegmentFile file = SegmentFile::log;
  FileStage stage = FileStage::live;
  bool operator==(const SegmentFileName&) const = default;
};

std::string_view suffix(SegmentFile file);  // ".log"
std::string segment_file_name(Offset offset, SegmentFile file,
                              FileStage stage = FileStage::live);
// Nothing: a name with a foreign suffix, which Kafka ignores in a partition directory. invalid:
// one of Kafka's suffixes behind something that is not an offset of 20 digits; Kafka refuses to
// load such a partition.
Result<std::optional<SegmentFileName>> parse_segment_file_name(std::string_view name);

// 1 to 249 characters of [a-zA-Z0-9._-], not "." and not "..". invalid otherwise, with the
// reason in a sentence.
Result<void> check_topic_name(std::string_view topic);

enum class DirectoryStage : std::uint8_t {
  live,
  deleted,  // "-delete": to be removed
  stray,    // "-stray": no longer assigned here; not served
  future,   // "-future": being moved here from another log directory
};

struct PartitionDirectory {
  TopicPartition id;  // deleted and stray: the topic may be cut at its end
  DirectoryStage stage = DirectoryStage::live;
  std::string unique;  // 32 hex digits; empty when live
  bool operator==(const PartitionDirectory&) const = default;
};

// "topic-3". The topic ends at the last '-'.
std::string partition_directory_name(const TopicPartition& id);
// "topic-3.0123456789abcdef0123456789abcdef-delete". For deleted and stray the topic is cut so
// that the name takes at most 255 bytes. REQUIRES: stage is not live.
std::string partition_directory_name(const TopicPartition& id, DirectoryStage stage,
                                     const Uuid& unique);
// invalid: any other name. A Kafka broker refuses to start when one lies in its log directory,
// except for those of exempt_directory().
Result<PartitionDirectory> parse_partition_directory(std::string_view name);
// Directories at the root of a log directory that are no partitions and yet allowed.
bool exempt_directory(std::string_view name);

// Files at the root of a log directory.
inline constexpr std::string_view meta_properties_file = "meta.properties";
inline constexpr std::string_view recovery_point_checkpoint_file =
    "recovery-point-offset-checkpoint";
inline constexpr std::string_view high_watermark_checkpoint_file = "replication-offset-checkpoint";
inline constexpr std::string_view log_start_checkpoint_file = "log-start-offset-checkpoint";
inline constexpr std::string_view cleaner_checkpoint_file = "cleaner-offset-checkpoint";
inline constexpr std::string_view clean_shutdown_file = ".kafka_cleanshutdown";
inline constexpr std::string_view lock_file = ".lock";
// Files of each partition directory.
inline constexpr std::string_view epoch_checkpoint_file = "leader-epoch-checkpoint";
inline constexpr std::string_view partition_metadata_file = "partition.metadata";

}  // namespace polylog::format::kafka
