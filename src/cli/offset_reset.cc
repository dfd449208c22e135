#include "cli/offset_reset.h"

#include <algorithm>
#include <climits>

#include "cli/text.h"
#include "cli/topic_view.h"

namespace polylog::cli {
namespace {

std::string name(const TopicPartition& where) {
  return where.topic + "-" + std::to_string(where.partition);
}

// The fields of a line of comma-separated values. A field in double quotes may hold commas.
Result<std::vector<std::string>> split_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return fail(Errc::invalid, "a quote that does not end");
  return fields;
}

std::optional<ResetLine> to_line(const std::vector<std::string>& fields) {
  if (fields.size() != 3 && fields.size() != 4) return std::nullopt;
  const std::size_t at = fields.size() - 3;
  const auto partition = parse_integer(fields[at + 1]);
  const auto offset = parse_integer(fields[at + 2]);
  const bool fits = partition && offset && *partition >= 0 && *partition <= INT_MAX && *offset >= 0;
  if (!fits || fields[at].empty()) return std::nullopt;
  return ResetLine{
      at == 1 ? fields[0] : "", {fields[at], static_cast<std::int32_t>(*partition)}, *offset};
}

using Offsets = std::map<TopicPartition, std::int64_t>;

// Within the log, with a remark when it was not.
Result<void> clamp(KafkaClient& client, std::vector<ResetStep>& steps) {
  std::vector<TopicPartition> partitions;
  for (const ResetStep& step : steps) partitions.push_back(step.where);
  POLYLOG_ASSIGN(start, list_offsets_of(client, partitions, earliest_offset));
  POLYLOG_ASSIGN(end, list_offsets_of(client, partitions, latest_offset));
  for (ResetStep& step : steps) {
    const std::int64_t first = start.at(step.where), last = end.at(step.where);
    if (step.asked > last) step.note = ResetStep::Note::above_the_end;
    if (step.asked < first) step.note = ResetStep::Note::below_the_start;
    step.after = std::clamp(step.asked, std::min(first, last), last);
  }
  return {};
}

}  // namespace

Result<Offsets> list_offsets_of(KafkaClient& client, const std::vector<TopicPartition>& partitions,
                                std::int64_t timestamp) {
  std::map<std::string, std::vector<std::int32_t>> topics;
  for (const TopicPartition& where : partitions) topics[where.topic].push_back(where.partition);
  Offsets offsets;
  for (const auto& [topic, numbers] : topics) {
    POLYLOG_ASSIGN(found, list_offsets(client, topic, numbers, timestamp));
    for (const auto& [number, offset] : found) offsets[{topic, number}] = offset;
  }
  return offsets;
}

Result<std::vector<ResetStep>> plan_reset(KafkaClient& client, const ResetTarget& target,
                                          const std::vector<TopicPartition>& partitions,
                                          const CommittedOffsets& committed) {
  using Kind = ResetTarget::Kind;
  std::vector<ResetStep> steps;
  if (target.kind == Kind::plan) {
    for (const auto& [where, offset] : target.plan) steps.push_back({where, {}, offset, offset});
  } else {
    for (const TopicPartition& where : partitions) steps.push_back({where, {}, 0, target.value});
  }
  std::vector<TopicPartition> asked;
  for (ResetStep& step : steps) {
    asked.push_back(step.where);
    if (const auto at = committed.find(step.where); at != committed.end()) {
      step.before = at->second.offset;
    }
  }
  Offsets end, at_time;
  if (target.kind == Kind::latest || target.kind == Kind::current || target.kind == Kind::time) {
    POLYLOG_ASSIGN(found, list_offsets_of(client, asked, latest_offset));
    end = std::move(found);
  }
  if (target.kind == Kind::time || target.kind == Kind::earliest) {
    const std::int64_t when = target.kind == Kind::time ? target.value : earliest_offset;
    POLYLOG_ASSIGN(found, list_offsets_of(client, asked, when));
    at_time = std::move(found);
  }
  for (ResetStep& step : steps) {
    switch (target.kind) {
      case Kind::earliest: step.after = at_time.at(step.where); break;
      case Kind::latest: step.after = end.at(step.where); break;
      case Kind::current: step.after = step.before.value_or(end.at(step.where)); break;
      case Kind::time:
        step.after = at_time.at(step.where);
        if (step.after < 0) {
          step.after = end.at(step.where);
          step.note = ResetStep::Note::no_record;
        }
        break;
      case Kind::shift:
        if (!step.before) {
          return fail(Errc::invalid, "Cannot shift offset for partition " + name(step.where) +
                                         " since there is no current committed offset");
        }
        if (__builtin_add_overflow(*step.before, target.value, &step.asked)) {
          step.asked = target.value < 0 ? INT64_MIN : INT64_MAX;
        }
        break;
      case Kind::offset:
      case Kind::plan: break;
    }
  }
  const bool bounded =
      target.kind == Kind::shift || target.kind == Kind::offset || target.kind == Kind::plan;
  if (bounded) POLYLOG_TRY(clamp(client, steps));
  return steps;
}

Result<std::vector<TopicPartition>> find_partitions(KafkaClient& client,
                                                    const std::vector<std::string>& topics) {
  std::vector<TopicPartition> partitions;
  for (const std::string& given : topics) {
    const std::size_t colon = given.find(':');
    const std::string topic = given.substr(0, colon);
    POLYLOG_ASSIGN(found, find_topic(client, topic));
    if (colon == std::string::npos) {
      for (const PartitionView& partition : found.partitions) {
        partitions.push_back({topic, partition.id});
      }
      continue;
    }
    std::string_view left = std::string_view(given).substr(colon + 1);
    for (bool more = true; more;) {
      const std::size_t comma = std::min(left.find(','), left.size());
      const auto number = parse_integer(left.substr(0, comma));
      more = comma < left.size();
      left.remove_prefix(std::min(comma + 1, left.size()));
      if (!number) {
        return fail(Errc::invalid, "'" + given + "': partitions are numbers, as in orders:0,1");
      }
      if (*number < 0 || static_cast<std::size_t>(*number) >= found.partitions.size()) {
        return fail(Errc::not_found,
                    "topic '" + topic + "' has " + std::to_string(found.partitions.size()) +
                        " partitions, numbered from 0; there is no " + std::to_string(*number));
      }
      partitions.push_back({topic, static_cast<std::int32_t>(*number)});
    }
  }
  std::sort(partitions.begin(), partitions.end());
  partitions.erase(std::unique(partitions.begin(), partitions.end()), partitions.end());
  return partitions;
}

Result<std::vector<ResetLine>> parse_reset_lines(std::string_view text) {
  std::vector<ResetLine> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const auto fields = split_fields(line);
    const auto parsed = fields ? to_line(*fields) : std::nullopt;
    if (!parsed) {
      return fail(Errc::invalid, "line " + std::to_string(number) +
                                     " is neither TOPIC,PARTITION,OFFSET nor "
                                     "GROUP,TOPIC,PARTITION,OFFSET");
    }
    lines.push_back(*parsed);
  }
  return lines;
}

std::string format_reset_line(const TopicPartition& where, std::int64_t offset) {
  return where.topic + "," + std::to_string(where.partition) + "," + std::to_string(offset);
}

}  // namespace polylog::cli
