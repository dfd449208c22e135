#include "cli/group.h"

#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/group_report.h"
#include "cli/group_view.h"
#include "cli/json.h"
#include "cli/offset_reset.h"
#include "cli/text.h"
#include "cli/time_text.h"

namespace polylog::cli {
namespace {

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_json(JsonWriter& json) { print(json.take() + "\n"); }

// Connects, runs, reports. `run` returns the exit code.
template <typename F>
int with_groups(const GroupOptions& options, F&& run) {
  auto client = KafkaClient::connect(options.client);
  if (!client) return complain(client.error().context);
  Groups groups(options.client, **client);
  const Result<int> code = run(**client, groups);
  if (!code) return complain(code.error().context);
  return finished(stdout, *code);
}

// One that concerns the group alone: the others can still be done.
bool of_the_group(const Error& error) {
  return error.code == Errc::not_found || error.code == Errc::invalid;
}

Result<ResetTarget> parse_target(const GroupOptions& options) {
  using Kind = ResetTarget::Kind;
  ResetTarget target;
  if (options.to_latest) target.kind = Kind::latest;
  if (options.to_current) target.kind = Kind::current;
  if (options.to_offset) {
    target.kind = Kind::offset;
    target.value = *options.to_offset;
  }
  if (options.shift_by) {
    target.kind = Kind::shift;
    target.value = *options.shift_by;
  }
  if (!options.to_datetime.empty()) {
    POLYLOG_ASSIGN(time, parse_datetime(options.to_datetime));
    target.kind = Kind::time;
    target.value = time;
  }
  if (!options.by_duration.empty()) {
    POLYLOG_ASSIGN(duration, parse_duration(options.by_duration));
    target.kind = Kind::time;
    target.value = SystemClock().now().value() - duration;
  }
  return target;
}

Result<void> read_plan(const std::string& path, const std::string& group, ResetTarget& target) {
  std::ifstream in(path == "-" ? "/dev/stdin" : path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return fail(Errc::invalid, path + " cannot be read");
  POLYLOG_ASSIGN(lines, parse_reset_lines(text.str()));
  target.kind = ResetTarget::Kind::plan;
  for (const ResetLine& line : lines) {
    if (line.group.empty() || line.group == group) target.plan[line.where] = line.offset;
  }
  if (target.plan.empty()) return fail(Errc::invalid, path + " has no offsets of '" + group + "'");
  return {};
}

std::string note_text(const ResetStep& step) {
  switch (step.note) {
    case ResetStep::Note::none: return "";
    case ResetStep::Note::above_the_end: return std::to_string(step.asked) + " is above the end";
    case ResetStep::Note::below_the_start:
      return std::to_string(step.asked) + " is below the start";
    case ResetStep::Note::no_record: return "no record at or after that time";
  }
  return "";
}

std::string steps_text(const std::vector<ResetStep>& steps) {
  std::vector<std::vector<std::string>> rows = {
      {"TOPIC", "PARTITION", "BEFORE", "AFTER", "CHANGE", "NOTE"}};
  for (const ResetStep& step : steps) {
    const std::int64_t change = step.after - step.before.value_or(step.after);
    rows.push_back({step.where.topic, std::to_string(step.where.partition),
                    step.before ? std::to_string(*step.before) : "-", std::to_string(step.after),
                    step.before ? (change > 0 ? "+" : "") + std::to_string(change) : "-",
                    note_text(step)});
  }
  return format_table(rows);
}

// A file that --from-file takes to bring the old offsets back: all else in it is remarks.
std::string undo_text(const std::vector<ResetStep>& steps) {
  std::istringstream lines(steps_text(steps));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += "# " + line + "\n";
  text += "# the offsets before, for --from-file:\n";
  for (const ResetStep& step : steps) {
    text += step.before ? format_reset_line(step.where, *step.before) + "\n"
                        : "# " + step.where.topic + "," + std::to_string(step.where.partition) +
                              " had no offset\n";
  }
  return text;
}

void add_steps(JsonWriter& json, const std::string& group, bool executed,
               const std::vector<ResetStep>& steps) {
  json.begin_object().field("name", group).field("executed", executed);
  json.key("offsets").begin_array();
  for (const ResetStep& step : steps) {
    json.begin_object().field("topic", step.where.topic).field("partition", step.where.partition);
    json.key("before");
    if (step.before) {
      json.value(*step.before);
    } else {
      json.null();
    }
    json.field("after", step.after).field("note", note_text(step)).end_object();
  }
  json.end_array().end_object();
}

Result<std::vector<TopicPartition>> reset_partitions(KafkaClient& client,
                                                     const GroupOptions& options,
                                                     const CommittedOffsets& committed) {
  if (!options.all_topics) return find_partitions(client, options.topics);
  std::vector<TopicPartition> partitions;
  for (const auto& [where, offset] : committed) partitions.push_back(where);
  return partitions;
}

// No members, or a group that is not there yet.
Result<void> check_idle(Groups& groups, const std::string& name) {
  const auto group = groups.describe(name);
  if (!group) {
    if (group.error().code == Errc::not_found) return {};
    return fail(group.error());
  }
  if (group->members.empty() && (group->state == "Empty" || group->state == "Dead")) return {};
  const std::size_t count = group->members.size();
  return fail(Errc::invalid, "group '" + name + "' has " + std::to_string(count) +
                                 " active member" + (count == 1 ? "" : "s") + " (" + group->state +
                                 "): stop them before its offsets are moved");
}

Result<std::vector<ResetStep>> reset_one(KafkaClient& client, Groups& groups,
                                         const GroupOptions& options, ResetTarget target,
                                         const std::string& name) {
  POLYLOG_TRY(check_idle(groups, name));
  if (!options.from_file.empty()) POLYLOG_TRY(read_plan(options.from_file, name, target));
  POLYLOG_ASSIGN(committed, groups.committed(name));
  std::vector<TopicPartition> partitions;
  if (options.from_file.empty()) {
    POLYLOG_ASSIGN(found, reset_partitions(client, options, committed));
    partitions = std::move(found);
    if (partitions.empty()) {
      return fail(Errc::invalid, "group '" + name + "' has no offsets: name topics with --topic");
    }
  }
  POLYLOG_ASSIGN(steps, plan_reset(client, target, partitions, committed));
  if (!options.execute) return steps;
  CommittedOffsets offsets;
  for (const ResetStep& step : steps) offsets[step.where].offset = step.after;
  POLYLOG_ASSIGN(errors, groups.commit(name, offsets));
  for (const auto& [where, code] : errors) {
    return fail(Errc::invalid, "group '" + name + "', " + where.topic + "-" +
                                   std::to_string(where.partition) + ": " + wire_error(code));
  }
  return steps;
}

}  // namespace

int group_list(const GroupOptions& options) {
  return with_groups(options, [&](KafkaClient&, Groups& groups) -> Result<int> {
    POLYLOG_ASSIGN(found, groups.list(options.states));
    JsonWriter json;
    json.begin_object().key("groups").begin_array();
    std::vector<std::vector<std::string>> rows = {{"NAME", "TYPE", "STATE", "PROTOCOL"}};
    for (const GroupListing& group : found) {
      json.begin_object().field("name", group.id).field("type", group.type);
      json.field("state", group.state).field("protocol", group.protocol_type).end_object();
      rows.push_back({group.id, group.type, group.state,
                      group.protocol_type.empty() ? "-" : group.protocol_type});
    }
    json.end_array().end_object();
    if (options.json) {
      print_json(json);
    } else if (rows.size() > 1) {
      print(format_table(rows));
    }
    return exit_done;
  });
}

int group_describe(const GroupOptions& options) {
  return with_groups(options, [&](KafkaClient& client, Groups& groups) -> Result<int> {
    int code = exit_done;
    JsonWriter json;
    json.begin_object().key("groups").begin_array();
    bool first = true;
    for (const std::string& name : options.names) {
      const auto group = groups.describe(name);
      if (!group) {
        if (!of_the_group(group.error())) return fail(group.error());
        code = complain(group.error().context);
        continue;
      }
      POLYLOG_ASSIGN(lags, group_lags(client, groups, *group, SystemClock().now().value()));
      add_group(json, *group, lags);
      if (options.json) continue;
      print((first ? "" : "\n") + group_text(*group, lags));
      first = false;
    }
    json.end_array().end_object();
    if (options.json) print_json(json);
    return code;
  });
}

int group_reset(const GroupOptions& options) {
  const auto target = parse_target(options);
  if (!target) return complain(target.error().context, exit_usage);
  if (options.from_file.empty() && options.topics.empty() && !options.all_topics) {
    return complain("which offsets? give --topic NAME, --topic NAME:0,1 or --all-topics",
                    exit_usage);
  }
  return with_groups(options, [&](KafkaClient& client, Groups& groups) -> Result<int> {
    int code = exit_done;
    JsonWriter json;
    json.begin_object().key("groups").begin_array();
    bool first = true;
    for (const std::string& name : options.names) {
      const auto steps = reset_one(client, groups, options, *target, name);
      if (!steps) {
        if (!of_the_group(steps.error())) return fail(steps.error());
        code = complain(steps.error().context);
        continue;
      }
      add_steps(json, name, options.execute, *steps);
      if (options.json) continue;
      std::string title = options.names.size() > 1 ? "group " + name + "\n" : "";
      if (options.execute && !title.empty()) title.insert(0, "# ");
      print((first ? "" : "\n") + title +
            (options.execute ? undo_text(*steps) : steps_text(*steps)));
      first = false;
    }
    json.end_array().end_object();
    if (options.json) print_json(json);
    if (!options.json && !options.execute && !first) {
      print("\nnothing has changed; --execute moves the offsets\n");
    }
    return code;
  });
}

int group_delete(const GroupOptions& options) {
  return with_groups(options, [&](KafkaClient&, Groups& groups) -> Result<int> {
    int code = exit_done;
    JsonWriter json;
    json.begin_object().key("groups").begin_array();
    for (const std::string& name : options.names) {
      POLYLOG_ASSIGN(answer, groups.remove(name));
      if (answer != 0) {
        code = complain("group '" + name + "' was not deleted: " + wire_error(answer));
        continue;
      }
      json.begin_object().field("name", name).field("deleted", true).end_object();
      if (!options.json) print("deleted " + name + "\n");
    }
    json.end_array().end_object();
    if (options.json) print_json(json);
    return code;
  });
}

}  // namespace polylog::cli
