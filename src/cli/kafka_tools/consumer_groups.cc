#include <algorithm>
#include <climits>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "cli/group_view.h"
#include "cli/kafka_tools/java_errors.h"
#include "cli/kafka_tools/table.h"
#include "cli/offset_reset.h"
#include "cli/text.h"
#include "cli/time_text.h"
#include "cli/topic_view.h"
#include "protocol/kafka/errors.h"

// kafka-consumer-groups: what ConsumerGroupCommand prints (Kafka 4.4, tools). Errors in the middle
// of the work are words on stdout and leave the exit code 0, as they do there.
namespace polylog::cli::kafka_tools {
namespace {

using protocol::kafka::ErrorCode;
using protocol::kafka::to_wire;

constexpr std::size_t column = 15;
const std::string missing = "-";

constexpr const char* scenarios[] = {"to-offset",   "to-earliest", "to-current", "to-latest",
                                     "by-duration", "to-datetime", "from-file",  "shift-by"};

void print_error(const std::string& what) { print("\nError: " + what + "\n"); }

std::string number(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : missing;
}

// A line of columns; the last one is not padded.
struct Line {
  std::string text;
  Line& add(const std::string& cell, std::size_t width) {
    text += pad(cell, width) + " ";
    return *this;
  }
};

std::size_t widest(std::size_t least, const std::string& text) {
  return std::max(least, text.size());
}

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) {
    const std::size_t first = word.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    words.push_back(word.substr(first, word.find_last_not_of(' ') - first + 1));
  }
  return words;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

struct Row {
  TopicPartition where;
  std::optional<std::int64_t> offset, end;
  std::optional<std::int32_t> epoch;
  std::string consumer = missing, host = missing, client = missing;
};

class GroupCommand {
 public:
  GroupCommand(const Tool& tool, const Arguments& arguments, const ClientOptions& options,
               KafkaClient& client)
      : tool_(tool), arguments_(arguments), client_(client), groups_(options, client) {}

  // Wrong usage that shows only now ends the tool with 1.
  int code() const { return code_; }

  Result<void> list() {
    POLYLOG_ASSIGN(state, arguments_.value("state"));
    POLYLOG_ASSIGN(type, arguments_.value("type"));
    const bool states = arguments_.has("state"), types = arguments_.has("type");
    POLYLOG_ASSIGN(wanted_states, parse_states(state.value_or("")));
    POLYLOG_ASSIGN(wanted_types, parse_types(type.value_or("")));
    POLYLOG_ASSIGN(all, groups_.list(wanted_states, wanted_types));
    std::erase_if(all, [](const GroupListing& group) { return !of_consumers(group); });
    std::size_t width = column;
    for (const GroupListing& group : all) width = widest(width, group.id);
    width += 10;
    if (!states && !types) {
      for (const GroupListing& group : all) print(group.id + "\n");
      return {};
    }
    const auto line = [&](const std::string& id, const std::string& kind,
                          const std::string& condition) {
      std::string text = pad(id, width);
      if (types) text += " " + pad(kind, 20);
      if (states) text += " " + pad(condition, 20);
      print(text + "\n");
    };
    line("GROUP", "TYPE", "STATE");
    for (const GroupListing& group : all) {
      line(group.id, group.type.empty() ? "Unknown" : group.type,
           group.state.empty() ? "Unknown" : group.state);
    }
    return {};
  }

  Result<void> describe() {
    POLYLOG_ASSIGN(names, chosen());
    std::vector<GroupDescription> found;
    for (const std::string& name : names) {
      auto description = groups_.describe(name);
      if (!description && description.error().code == Errc::not_found) {
        return fail(Errc::not_found,
                    "org.apache.kafka.common.errors.GroupIdNotFoundException: "
                    "Group " +
                        name + " not found.");
      }
      if (!description) return fail(description.error());
      found.push_back(std::move(*description));
    }
    std::sort(found.begin(), found.end(),
              [](const GroupDescription& a, const GroupDescription& b) { return a.id < b.id; });
    for (const GroupDescription& group : found) {
      if (arguments_.has("members")) {
        print_members(group);
      } else if (arguments_.has("state")) {
        print_state(group);
      } else {
        POLYLOG_TRY(print_offsets(group));
      }
    }
    return {};
  }

  Result<void> reset() {
    POLYLOG_ASSIGN(names, chosen());
    std::vector<std::pair<std::string, std::vector<ResetStep>>> done;
    for (const std::string& name : names) {
      const auto group = groups_.describe(name);
      if (!group && group.error().code != Errc::not_found) return fail(group.error());
      std::vector<ResetStep> steps;
      if (group && group->state != "Empty" && group->state != "Dead") {
        print_error("Assignments can only be reset if the group '" + name +
                    "' is inactive, but the current state is " + group->state + ".");
      } else {
        POLYLOG_ASSIGN(planned, plan(name));
        steps = std::move(planned);
        if (code_ != 0) return {};
        if (arguments_.has("execute")) POLYLOG_TRY(execute(name, steps));
      }
      done.emplace_back(name, std::move(steps));
    }
    if (arguments_.has("export")) {
      print_csv(done);
    } else {
      print_steps(done);
    }
    return {};
  }

  Result<void> remove() {
    POLYLOG_ASSIGN(names, chosen());
    std::vector<std::string> removed;
    std::string problems;
    for (const std::string& name : names) {
      POLYLOG_ASSIGN(code, groups_.remove(name));
      const WireAnswer said{code, {}};
      if (code == 0) {
        removed.push_back(name);
      } else {
        problems +=
            "* Group '" + name + "' could not be deleted due to: " + java_exception(said) + "\n";
      }
    }
    std::string list;
    for (const std::string& name : removed) list += (list.empty() ? "'" : ", '") + name + "'";
    if (problems.empty()) {
      print("Deletion of requested consumer groups (" + list + ") was successful.\n");
      return {};
    }
    print_error("Deletion of some consumer groups failed:");
    print(problems);
    if (!removed.empty()) {
      print("\nThese consumer groups were deleted successfully: " + list + "\n");
    }
    return {};
  }

  Result<void> remove_offsets();

 private:
  // Groups of other protocols (Connect's) are not listed.
  static bool of_consumers(const GroupListing& group) {
    return group.protocol_type == "consumer" || group.protocol_type.empty();
  }

  static Result<std::vector<std::string>> parse_states(const std::string& text) {
    static const std::vector<std::string> known = {
        "Empty", "PreparingRebalance", "Stable",     "CompletingRebalance",
        "Dead",  "Assigning",          "Reconciling"};
    std::vector<std::string> states;
    for (const std::string& word : split_words(text)) {
      const auto at = std::find_if(known.begin(), known.end(), [&](const std::string& state) {
        return lower(state) == lower(word);
      });
      if (at == known.end()) {
        return fail(Errc::out_of_range,
                    "Invalid state list '" + text +
                        "'. Valid states are: Empty, PreparingRebalance, Stable, "
                        "CompletingRebalance, Dead, Assigning, Reconciling");
      }
      states.push_back(*at);
    }
    return states;
  }

  static Result<std::vector<std::string>> parse_types(const std::string& text) {
    std::vector<std::string> types;
    for (const std::string& word : split_words(text)) {
      types.push_back(lower(word));
      if (types.back() == "classic" || types.back() == "consumer") continue;
      return fail(Errc::out_of_range,
                  "Invalid types list '" + text + "'. Valid types are: Classic, Consumer");
    }
    return types;
  }

  Result<std::vector<std::string>> chosen() {
    if (!arguments_.has("all-groups")) return arguments_.values("group");
    POLYLOG_ASSIGN(all, groups_.list());
    std::vector<std::string> names;
    for (const GroupListing& group : all) {
      if (of_consumers(group)) names.push_back(group.id);
    }
    return names;
  }

  // Says on stderr what a reader of the table should know.
  static void print_condition(const GroupDescription& group) {
    if (group.state == "Empty") {
      failed("\nConsumer group '" + group.id + "' has no active members.");
    } else if (group.state != "Stable" && group.state != "Dead") {
      failed("\nWarning: Consumer group '" + group.id + "' is rebalancing.");
    }
  }

  Result<std::vector<Row>> offset_rows(const GroupDescription& group);
  Result<void> print_offsets(const GroupDescription& group);
  void print_members(const GroupDescription& group) const;
  void print_state(const GroupDescription& group) const;

  Result<std::vector<ResetStep>> plan(const std::string& group);
  Result<ResetTarget> target(const std::string& group);
  Result<std::vector<TopicPartition>> reset_partitions(const CommittedOffsets& committed);
  Result<void> execute(const std::string& group, const std::vector<ResetStep>& steps);
  static void warn(const std::vector<ResetStep>& steps);

  using Done = std::vector<std::pair<std::string, std::vector<ResetStep>>>;
  void print_csv(const Done& done) const {
    const bool named = arguments_.values("group").size() != 1;
    for (const auto& [group, steps] : done) {
      for (const ResetStep& step : steps) {
        print((named ? group + "," : "") + format_reset_line(step.where, step.after) + "\n");
      }
    }
    print("\n");
  }
  static void print_steps(const Done& done) {
    std::size_t group_width = column, topic_width = column;
    for (const auto& [group, steps] : done) {
      group_width = widest(group_width, group);
      for (const ResetStep& step : steps) topic_width = widest(topic_width, step.where.topic);
    }
    if (!done.empty()) {
      print("\n" + pad("GROUP", group_width) + " " + pad("TOPIC", topic_width) + " " +
            pad("PARTITION", 10) + " NEW-OFFSET");
    }
    for (const auto& [group, steps] : done) {
      for (const ResetStep& step : steps) {
        print("\n" + pad(group, group_width) + " " + pad(step.where.topic, topic_width) + " " +
              pad(std::to_string(step.where.partition), 10) + " " + std::to_string(step.after));
      }
    }
    print("\n");
  }

  // As the originals: the words, then the help.
  void wrong(const std::string& what) { code_ = wrong_usage(tool_, what); }

  const Tool& tool_;
  const Arguments& arguments_;
  KafkaClient& client_;
  Groups groups_;
  int code_ = 0;
};

// Members with the most partitions first, then what nobody reads.
Result<std::vector<Row>> GroupCommand::offset_rows(const GroupDescription& group) {
  POLYLOG_ASSIGN(committed, groups_.committed(group.id));
  std::vector<const GroupMember*> members;
  for (const GroupMember& member : group.members) {
    if (!member.assigned.empty()) members.push_back(&member);
  }
  std::sort(members.begin(), members.end(), [](const GroupMember* a, const GroupMember* b) {
    const auto fewer = a->assigned.size() <=> b->assigned.size();
    return fewer != 0 ? fewer > 0 : a < b;  // both lie in group.members
  });
  std::vector<Row> rows;
  CommittedOffsets unread = committed;
  for (const GroupMember* member : members) {
    for (const TopicPartition& where : member->assigned) {
      Row row;
      row.where = where;
      row.consumer = member->id;
      row.host = member->host;
      row.client = member->client_id;
      rows.push_back(row);
      unread.erase(where);
    }
  }
  for (const auto& [where, offset] : unread) rows.emplace_back().where = where;
  std::vector<TopicPartition> partitions;
  for (const Row& row : rows) partitions.push_back(row.where);
  POLYLOG_ASSIGN(end, list_offsets_of(client_, partitions, latest_offset));
  for (Row& row : rows) {
    if (const auto at = end.find(row.where); at != end.end()) row.end = at->second;
    const auto at = committed.find(row.where);
    if (at == committed.end()) continue;
    row.offset = at->second.offset;
    if (at->second.leader_epoch >= 0) row.epoch = at->second.leader_epoch;
  }
  return rows;
}

Result<void> GroupCommand::print_offsets(const GroupDescription& group) {
  POLYLOG_ASSIGN(rows, offset_rows(group));
  print_condition(group);
  if (rows.empty()) return {};
  std::size_t topic_width = column, consumer_width = column, host_width = column;
  const std::size_t group_width = widest(column, group.id);
  for (const Row& row : rows) {
    topic_width = widest(topic_width, row.where.topic);
    consumer_width = widest(consumer_width, row.consumer);
    host_width = widest(host_width, row.host);
  }
  const bool verbose = arguments_.has("verbose");
  const auto line = [&](const std::vector<std::string>& cells) {
    Line out;
    out.add(cells[0], group_width).add(cells[1], topic_width).add(cells[2], 10);
    if (verbose) out.add(cells[3], column);
    out.add(cells[4], column).add(cells[5], column).add(cells[6], column);
    out.add(cells[7], consumer_width).add(cells[8], host_width);
    print("\n" + out.text + cells[9]);
  };
  line({"GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG",
        "CONSUMER-ID", "HOST", "CLIENT-ID"});
  for (const Row& row : rows) {
    std::optional<std::int64_t> lag;
    if (row.offset && row.end) lag = *row.end - *row.offset;
    line({group.id, row.where.topic, std::to_string(row.where.partition),
          row.epoch ? std::to_string(*row.epoch) : missing, number(row.offset), number(row.end),
          number(lag), row.consumer, row.host, row.client});
  }
  print("\n");
  return {};
}

// "orders:0,1;payments:2"; "-" for none.
std::string assignment_text(const std::vector<TopicPartition>& partitions) {
  if (partitions.empty()) return missing;
  std::string out;
  const std::string* topic = nullptr;
  for (const TopicPartition& where : partitions) {
    if (topic != nullptr && *topic == where.topic) {
      out += "," + std::to_string(where.partition);
    } else {
      out += (out.empty() ? "" : ";") + where.topic + ":" + std::to_string(where.partition);
    }
    topic = &where.topic;
  }
  return out;
}

void GroupCommand::print_members(const GroupDescription& group) const {
  print_condition(group);
  std::size_t group_width = column, id_width = column, instance_width = 17, host_width = column;
  std::size_t client_width = column, current_width = 20, target_width = 20;
  bool instances = false;
  for (const GroupMember& member : group.members) {
    group_width = widest(group_width, group.id);
    id_width = widest(id_width, member.id);
    instance_width = widest(instance_width, member.instance_id.value_or(""));
    host_width = widest(host_width, member.host);
    client_width = widest(client_width, member.client_id);
    current_width = widest(current_width, assignment_text(member.assigned));
    target_width = widest(target_width, assignment_text(member.target));
    instances = instances || (member.instance_id && !member.instance_id->empty());
  }
  const bool verbose = arguments_.has("verbose");
  const auto line = [&](const std::vector<std::string>& cells) {
    Line out;
    out.add(cells[0], group_width).add(cells[1], id_width);
    if (instances) out.add(cells[2], instance_width);
    out.add(cells[3], host_width).add(cells[4], client_width).add(cells[5], column);
    if (verbose) {
      out.add(cells[6], column).add(cells[7], current_width);
      out.add(cells[8], column).add(cells[9], target_width);
    }
    print(out.text + "\n");
  };
  print("\n");
  line({"GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS",
        "CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"});
  for (const GroupMember& member : group.members) {
    const std::string epoch = member.epoch ? std::to_string(*member.epoch) : missing;
    const std::string target_epoch =
        group.target_epoch ? std::to_string(*group.target_epoch) : missing;
    line({group.id, member.id, member.instance_id.value_or(""), member.host, member.client_id,
          std::to_string(member.assigned.size()), epoch, assignment_text(member.assigned),
          target_epoch, assignment_text(member.target)});
  }
}

void GroupCommand::print_state(const GroupDescription& group) const {
  print_condition(group);
  const std::size_t group_width = widest(column, group.id);
  const std::string coordinator =
      group.coordinator + "  (" + std::to_string(group.coordinator_id) + ")";
  const std::size_t coordinator_width = widest(25, coordinator);
  const bool verbose = arguments_.has("verbose");
  const auto line = [&](const std::vector<std::string>& cells) {
    Line out;
    out.add(cells[0], group_width).add(cells[1], coordinator_width).add(cells[2], 20);
    out.add(cells[3], 20);
    if (verbose) out.add(cells[4], column).add(cells[5], 25);
    print("\n" + out.text + cells[6]);
  };
  line({"GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "GROUP-EPOCH",
        "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"});
  line({group.id, coordinator, group.assignor.empty() ? missing : group.assignor, group.state,
        group.group_epoch ? std::to_string(*group.group_epoch) : missing,
        group.target_epoch ? std::to_string(*group.target_epoch) : missing,
        std::to_string(group.members.size())});
  print("\n");
}

Result<std::vector<TopicPartition>> GroupCommand::reset_partitions(
    const CommittedOffsets& committed) {
  if (arguments_.has("all-topics")) {
    std::vector<TopicPartition> partitions;
    for (const auto& [where, offset] : committed) partitions.push_back(where);
    return partitions;
  }
  const std::vector<std::string> topics = arguments_.values("topic");
  if (topics.empty()) {
    if (!arguments_.has("from-file")) {
      wrong("One of the reset scopes should be defined: --all-topics, --topic.");
    }
    return std::vector<TopicPartition>{};
  }
  auto found = find_partitions(client_, topics);
  if (!found && found.error().code == Errc::not_found) {
    const WireAnswer unknown{to_wire(ErrorCode::unknown_topic_or_partition), {}};
    return fail(Errc::not_found, java_message(unknown));
  }
  return found;
}

Result<ResetTarget> GroupCommand::target(const std::string& group) {
  using Kind = ResetTarget::Kind;
  ResetTarget target;
  if (arguments_.has("to-offset")) {
    POLYLOG_ASSIGN(value, arguments_.number("to-offset", INT64_MIN, INT64_MAX));
    target.kind = Kind::offset;
    target.value = *value;
  } else if (arguments_.has("shift-by")) {
    POLYLOG_ASSIGN(value, arguments_.number("shift-by", INT64_MIN, INT64_MAX));
    target.kind = Kind::shift;
    target.value = *value;
  } else if (arguments_.has("to-latest")) {
    target.kind = Kind::latest;
  } else if (arguments_.has("to-current")) {
    target.kind = Kind::current;
  } else if (arguments_.has("to-datetime")) {
    POLYLOG_ASSIGN(text, arguments_.value("to-datetime"));
    if (text->find('T') == std::string::npos) {
      return fail(Errc::invalid,
                  "java.text.ParseException: Error parsing timestamp. It does not "
                  "contain a 'T' according to ISO8601 format");
    }
    POLYLOG_ASSIGN(time, parse_datetime(*text));
    target.kind = Kind::time;
    target.value = time;
  } else if (arguments_.has("by-duration")) {
    POLYLOG_ASSIGN(text, arguments_.value("by-duration"));
    POLYLOG_ASSIGN(duration, parse_duration(*text));
    target.kind = Kind::time;
    target.value = SystemClock().now().value() - duration;
  } else if (arguments_.has("from-file")) {
    POLYLOG_ASSIGN(path, arguments_.value("from-file"));
    std::ifstream in(*path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return fail(Errc::io, "java.io.IOException: Unable to read file " + *path);
    POLYLOG_ASSIGN(lines, parse_reset_lines(text.str()));
    target.kind = Kind::plan;
    for (const ResetLine& line : lines) {
      if (line.group.empty() || line.group == group) target.plan[line.where] = line.offset;
    }
    if (target.plan.empty()) print_error("No reset plan for group " + group + " found");
  }
  return target;
}

Result<std::vector<ResetStep>> GroupCommand::plan(const std::string& group) {
  POLYLOG_ASSIGN(committed, groups_.committed(group));
  POLYLOG_ASSIGN(partitions, reset_partitions(committed));
  if (code_ != 0) return std::vector<ResetStep>{};
  const bool any = std::any_of(std::begin(scenarios), std::end(scenarios),
                               [&](const char* flag) { return arguments_.has(flag); });
  if (!any) {
    wrong(
        "Option '[reset-offsets]' requires one of the following scenarios: [[to-offset], "
        "[to-earliest], [to-current], [to-latest], [by-duration], [to-datetime], [from-file], "
        "[shift-by]]");
    return std::vector<ResetStep>{};
  }
  POLYLOG_ASSIGN(wanted, target(group));
  auto steps = plan_reset(client_, wanted, partitions, committed);
  if (!steps && steps.error().code == Errc::invalid) {
    wrong(steps.error().context);
    return std::vector<ResetStep>{};
  }
  if (steps) warn(*steps);
  return steps;
}

void GroupCommand::warn(const std::vector<ResetStep>& steps) {
  for (const ResetStep& step : steps) {
    const std::string where = step.where.topic + "-" + std::to_string(step.where.partition);
    const bool above = step.note == ResetStep::Note::above_the_end;
    if (step.note == ResetStep::Note::no_record) {
      print("\nWarn: Partition " + std::to_string(step.where.partition) + " from topic " +
            step.where.topic + " is empty. Falling back to latest known offset.\n");
    } else if (step.note != ResetStep::Note::none) {
      failed("WARN New offset (" + std::to_string(step.asked) + ") is " +
             (above ? "higher than latest" : "lower than earliest") +
             " offset for topic partition " + where + ". Value will be set to " +
             std::to_string(step.after) + ".");
    }
  }
}

Result<void> GroupCommand::execute(const std::string& group, const std::vector<ResetStep>& steps) {
  CommittedOffsets offsets;
  for (const ResetStep& step : steps) offsets[step.where].offset = step.after;
  if (offsets.empty()) return {};
  POLYLOG_ASSIGN(errors, groups_.commit(group, offsets));
  for (const auto& [where, code] : errors) {
    const WireAnswer said{code, {}};
    return fail(Errc::invalid, java_exception(said));
  }
  return {};
}

Result<void> GroupCommand::remove_offsets() {
  const std::vector<std::string> topics = arguments_.values("topic");
  POLYLOG_ASSIGN(group, arguments_.value("group"));
  const WireAnswer unknown{to_wire(ErrorCode::unknown_topic_or_partition), {}};
  std::vector<TopicPartition> partitions;
  PartitionErrors results;
  for (const std::string& topic : topics) {
    const auto found = find_partitions(client_, {topic});
    if (found) {
      partitions.insert(partitions.end(), found->begin(), found->end());
    } else if (found.error().code == Errc::not_found) {
      results[{topic.substr(0, topic.find(':')), -1}] = unknown.error_code;
    } else {
      return fail(found.error());
    }
  }
  std::sort(partitions.begin(), partitions.end());
  WireAnswer whole;
  if (!partitions.empty()) {
    POLYLOG_ASSIGN(removed, groups_.remove_offsets(*group, partitions));
    whole.error_code = removed.error_code;
    for (const TopicPartition& where : partitions) {
      const auto at = removed.partitions.find(where);
      results[where] = removed.error_code != 0          ? removed.error_code
                       : at != removed.partitions.end() ? at->second
                                                        : unknown.error_code;
    }
  }
  bool part = false;
  for (const TopicPartition& where : partitions) part = part || results[where] != 0;
  if (whole.error_code != 0) {
    print_error(java_message(whole));
  } else if (part) {
    print_error("Encountered some partition-level error, see the follow-up details.");
  } else {
    print("Request succeeded for deleting offsets from group " + *group + ".\n");
  }
  std::size_t width = column;
  for (const auto& [where, code] : results) width = widest(width, where.topic);
  print("\n" + pad("TOPIC", width) + " " + pad("PARTITION", 10) + " " + pad("STATUS", column));
  for (const auto& [where, code] : results) {
    const WireAnswer said{code, {}};
    const std::string status = code == 0 ? "Successful" : "Error: " + java_exception(said);
    print("\n" + pad(where.topic, width) + " " +
          pad(where.partition < 0 ? missing : std::to_string(where.partition), 10) + " " +
          pad(status, column));
  }
  print("\n");
  return {};
}

std::string conflict(const Arguments& arguments, const char* flag,
                     const std::vector<const char*>& others) {
  if (!arguments.has(flag)) return {};
  for (const char* other : others) {
    if (std::string_view(other) == flag || !arguments.has(other)) continue;
    return std::string("Option \"[") + flag + "]\" can't be used with option \"[" + other + "]\"";
  }
  return {};
}

// What is wrong with the flags together; empty: nothing.
std::string usage_problem(const Arguments& arguments) {
  const auto count = [&](const std::vector<const char*>& flags) {
    return std::count_if(flags.begin(), flags.end(),
                         [&](const char* flag) { return arguments.has(flag); });
  };
  const bool any_group = arguments.has("group") || arguments.has("all-groups");
  for (const char* action : {"describe", "delete", "reset-offsets"}) {
    if (arguments.has(action) && !any_group) {
      return std::string("Option [") + action +
             "] takes one of these options: [all-groups], [group]";
    }
  }
  if (arguments.has("describe") && count({"members", "offsets", "state"}) > 1) {
    return "Option [describe] takes at most one of these options: [members], [offsets], [state]";
  }
  if (arguments.has("describe") && !arguments.values("state").empty()) {
    return "Option [describe] does not take a value for [state]";
  }
  if (arguments.has("delete") && arguments.has("topic")) {
    return "The consumer does not support topic-specific offset deletion from a consumer group.";
  }
  if (arguments.has("delete-offsets") && (!arguments.has("group") || !arguments.has("topic"))) {
    return "Option [delete-offsets] takes the following options: [topic], [group]";
  }
  if (arguments.has("reset-offsets") && count({"dry-run", "execute"}) > 1) {
    return "Option [reset-offsets] only accepts one of [execute] and [dry-run]";
  }
  for (const char* flag : scenarios) {
    const auto problem = conflict(arguments, flag, {std::begin(scenarios), std::end(scenarios)});
    if (arguments.has("reset-offsets") && !problem.empty()) return problem;
  }
  for (const auto& problem :
       {conflict(arguments, "group", {"all-groups"}), conflict(arguments, "group", {"list"}),
        conflict(arguments, "topic", {"list", "describe"})}) {
    if (!problem.empty()) return problem;
  }
  if (count({"list", "describe", "delete", "reset-offsets", "delete-offsets"}) != 1) {
    return "Command must include exactly one action: --list, --describe, --delete, "
           "--reset-offsets, --delete-offsets, --validate-regex";
  }
  return {};
}

}  // namespace

std::vector<Flag> consumer_groups_flags() {
  using enum Flag::Value;
  return {
      bootstrap_flag(),
      command_config_flag(),
      {"list", none, "List the groups"},
      {"describe", none, "Show groups: offsets and lag, or members, or state"},
      {"delete", none, "Delete groups without members"},
      {"reset-offsets", none, "Show where offsets would go, or move them"},
      {"delete-offsets", none, "Delete offsets of topics"},
      {"validate-regex", required, "Check a regular expression for subscriptions"},
      {"group", required, "A group; may be repeated"},
      {"all-groups", none, "All groups"},
      {"topic", required, "A topic, or topic:0,1 with partitions; may be repeated"},
      {"all-topics", none, "All topics that the group has offsets of"},
      {"offsets", none, "With --describe: offsets and lag (default)", "describe"},
      {"members", none, "With --describe: members", "describe"},
      {"state", optional, "With --describe: state. With --list: states, or only those given",
       "describe list"},
      {"type", optional, "With --list: types, or only those given", "list"},
      {"verbose", none, "With --describe: more columns", "describe"},
      {"timeout", required, "How long to wait for an answer, in ms"},
      {"dry-run", none, "Only show where offsets would go (default)"},
      {"execute", none, "Move the offsets"},
      {"export", none, "Print the offsets as lines for --from-file"},
      {"from-file", required, "To the offsets in a file of lines topic,partition,offset"},
      {"to-earliest", none, "To the first record"},
      {"to-latest", none, "To the end"},
      {"to-current", none, "To where the group is"},
      {"to-offset", required, "To an offset"},
      {"shift-by", required, "By so many records, back with a minus"},
      {"to-datetime", required, "To a time, as in 2026-01-31T12:00:00.000"},
      {"by-duration", required, "To so long ago, as in PT1H30M"},
  };
}

int run_consumer_groups(const Tool& tool, const Arguments& arguments) {
  if (const auto regex = arguments.values("validate-regex"); !regex.empty()) {
    return failed(
        "--validate-regex is not supported: subscribe with the expression, and the "
        "broker checks it");
  }
  if (!arguments.has("bootstrap-server")) {
    return wrong_usage(tool, "Missing required argument \"[bootstrap-server]\"");
  }
  if (arguments.has("reset-offsets") && !arguments.has("dry-run") && !arguments.has("execute")) {
    failed(
        "WARN: No action will be performed as the --execute option is missing. In version 5.0, "
        "this command will require either --dry-run or --execute to be specified. You should "
        "add the --dry-run option explicitly if you are scripting this command and want to keep "
        "the current default behavior without prompting.");
  }
  if (const std::string problem = usage_problem(arguments); !problem.empty()) {
    return wrong_usage(tool, problem);
  }
  ClientOptions options;
  const auto timeout = arguments.number("timeout", 1, INT_MAX);
  if (!timeout) return wrong_usage(tool, timeout.error().context);
  options.request_ms = timeout->value_or(options.request_ms);
  auto client = connect(arguments, options);
  if (!client) {
    print_error("Executing consumer group command failed due to " + client.error().context);
    return 1;
  }
  GroupCommand command(tool, arguments, options, **client);
  const Result<void> done = arguments.has("list")             ? command.list()
                            : arguments.has("describe")       ? command.describe()
                            : arguments.has("delete")         ? command.remove()
                            : arguments.has("delete-offsets") ? command.remove_offsets()
                                                              : command.reset();
  if (done) return command.code();
  if (done.error().code == Errc::out_of_range) return wrong_usage(tool, done.error().context);
  print_error("Executing consumer group command failed due to " + done.error().context);
  return 0;
}

}  // namespace polylog::cli::kafka_tools
