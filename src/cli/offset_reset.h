#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "cli/group_view.h"
#include "cli/kafka_client.h"

// Where a group's committed offsets are to be moved.
namespace polylog::cli {

struct ResetTarget {
  enum class Kind {
    earliest,
    latest,
    current,  // what is committed, and the end where nothing is
    offset,   // `value`
    shift,    // what is committed, and `value` records
    time,     // the first record at or after `value`, ms since 1970
    plan,     // `plan`
  } kind = Kind::earliest;
  std::int64_t value = 0;
  std::map<TopicPartition, std::int64_t> plan;
};

struct ResetStep {
  enum class Note {
    none,
    above_the_end,    // `asked` lies above it: the end was taken
    below_the_start,  // the same below the start
    no_record,        // there is none at or after the time: the end was taken
  };
  TopicPartition where;
  std::optional<std::int64_t> before;  // nothing: no offset was committed
  std::int64_t after = 0;
  std::int64_t asked = 0;
  Note note = Note::none;
};

// One step for each of `partitions`, or of the plan, in their order. invalid: a shift of a
// partition that has no offset.
Result<std::vector<ResetStep>> plan_reset(KafkaClient& client, const ResetTarget& target,
                                          const std::vector<TopicPartition>& partitions,
                                          const CommittedOffsets& committed);

// "orders" or "orders:0,2". Partitions of topics named without numbers come from the broker.
// invalid: a number that is none. not_found: no such topic or partition.
Result<std::vector<TopicPartition>> find_partitions(KafkaClient& client,
                                                    const std::vector<std::string>& topics);

// Offsets of partitions of any topics at a special time or a time.
Result<std::map<TopicPartition, std::int64_t>> list_offsets_of(
    KafkaClient& client, const std::vector<TopicPartition>& partitions, std::int64_t timestamp);

// Lines of TOPIC,PARTITION,OFFSET or GROUP,TOPIC,PARTITION,OFFSET, as Kafka's tools export and take
// them; the group is empty where the line has none. Empty lines and those that begin
// with # do not count. invalid: anything
// else, with the line's number.
struct ResetLine {
  std::string group;
  TopicPartition where;
  std::int64_t offset = 0;
};
Result<std::vector<ResetLine>> parse_reset_lines(std::string_view text);
std::string format_reset_line(const TopicPartition& where, std::int64_t offset);

}  // namespace polylog::cli
