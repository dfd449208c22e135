#include "cli/group_report.h"

#include <algorithm>
#include <map>

#include "cli/fetcher.h"
#include "cli/offset_reset.h"
#include "cli/text.h"
#include "cli/topic_view.h"

namespace polylog::cli {
namespace {

constexpr std::int32_t fetch_wait_ms = 50;
constexpr int fetches_max = 4;  // over transaction markers and compacted batches

// When the first record at or behind an offset was written. Nothing: there is none, or it has no
// time.
Result<std::optional<std::int64_t>> record_time(KafkaClient& client, const TopicPartition& where,
                                                std::int64_t offset) {
  std::optional<std::int64_t> time;
  Fetcher fetcher(IsolationLevel::read_uncommitted, earliest_offset);
  Fetcher::Positions positions;
  positions[where] = {offset, -1};
  fetcher.assign(std::move(positions));
  const Fetcher::Visit visit = [&](const Fetcher::Fetched& fetched) {
    if (fetched.record.timestamp != no_timestamp) time = fetched.record.timestamp.value();
    return false;
  };
  for (int fetches = 0; fetches < fetches_max; ++fetches) {
    POLYLOG_ASSIGN(visited, fetcher.poll(client, fetch_wait_ms, visit));
    if (visited > 0) break;
  }
  return time;
}

std::string number(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "-";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

void optional_field(JsonWriter& json, std::string_view name,
                    const std::optional<std::int64_t>& value) {
  json.key(name);
  if (value) {
    json.value(*value);
  } else {
    json.null();
  }
}

}  // namespace

Result<std::vector<GroupLag>> group_lags(KafkaClient& client, Groups& groups,
                                         const GroupDescription& group, std::int64_t now_ms) {
  POLYLOG_ASSIGN(committed, groups.committed(group.id));
  std::map<TopicPartition, std::string> readers;
  for (const auto& [where, offset] : committed) readers[where];
  for (const GroupMember& member : group.members) {
    for (const TopicPartition& where : member.assigned) readers[where] = member.id;
  }
  std::vector<TopicPartition> partitions;
  for (const auto& [where, member] : readers) partitions.push_back(where);
  POLYLOG_ASSIGN(ends, list_offsets_of(client, partitions, latest_offset));
  std::vector<GroupLag> lags;
  for (const auto& [where, member] : readers) {
    GroupLag& lag = lags.emplace_back();
    lag.where = where;
    lag.member = member;
    lag.end = ends.at(where);
    const auto at = committed.find(where);
    if (at == committed.end()) continue;
    lag.committed = at->second.offset;
    lag.lag_ms = 0;
    if (*lag.committed >= lag.end) continue;
    POLYLOG_ASSIGN(time, record_time(client, where, *lag.committed));
    lag.lag_ms.reset();
    if (time) lag.lag_ms = std::max<std::int64_t>(now_ms - *time, 0);
  }
  return lags;
}

std::string format_age(std::int64_t ms) {
  constexpr std::int64_t minute = 60, hour = 60 * minute, day = 24 * hour;
  const std::int64_t seconds = ms / 1000;
  if (seconds < 10 * minute) {
    return std::to_string(seconds) + "." + std::to_string(ms % 1000 / 100) + "s";
  }
  if (seconds < day) {
    return std::to_string(seconds / hour) + "h" + std::to_string(seconds % hour / minute) + "m";
  }
  return std::to_string(seconds / day) + "d" + std::to_string(seconds % day / hour) + "h";
}

std::string group_text(const GroupDescription& group, const std::vector<GroupLag>& lags) {
  std::int64_t total = 0, age = 0;
  std::vector<std::vector<std::string>> rows = {
      {"TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "BEHIND", "MEMBER"}};
  for (const GroupLag& lag : lags) {
    std::optional<std::int64_t> records;
    if (lag.committed) records = lag.end - *lag.committed;
    total += std::max<std::int64_t>(records.value_or(0), 0);
    age = std::max(age, lag.lag_ms.value_or(0));
    rows.push_back({lag.where.topic, std::to_string(lag.where.partition), number(lag.committed),
                    std::to_string(lag.end), number(records),
                    lag.lag_ms ? format_age(*lag.lag_ms) : "-", or_dash(lag.member)});
  }
  const std::string coordinator =
      group.coordinator + " (" + std::to_string(group.coordinator_id) + ")";
  std::string text =
      format_table({{"group", group.id},
                    {"type", group.type},
                    {"state", group.state},
                    {"assignor", or_dash(group.assignor)},
                    {"coordinator", coordinator},
                    {"members", std::to_string(group.members.size())},
                    {"lag", std::to_string(total) + (total == 1 ? " record, " : " records, ") +
                                format_age(age) + " behind"}});
  if (rows.size() > 1) text += "\n" + format_table(rows);
  if (group.members.empty()) return text;
  std::vector<std::vector<std::string>> members = {
      {"MEMBER", "CLIENT", "HOST", "INSTANCE", "PARTITIONS"}};
  for (const GroupMember& member : group.members) {
    members.push_back({member.id, member.client_id, member.host,
                       or_dash(member.instance_id.value_or("")),
                       std::to_string(member.assigned.size())});
  }
  return text + "\n" + format_table(members);
}

void add_group(JsonWriter& json, const GroupDescription& group, const std::vector<GroupLag>& lags) {
  json.begin_object().field("name", group.id).field("type", group.type);
  json.field("state", group.state).field("assignor", group.assignor);
  json.field("coordinator", group.coordinator).field("coordinator_id", group.coordinator_id);
  json.key("members").begin_array();
  for (const GroupMember& member : group.members) {
    json.begin_object().field("id", member.id).key("instance_id");
    if (member.instance_id) {
      json.value(*member.instance_id);
    } else {
      json.null();
    }
    json.field("client_id", member.client_id).field("host", member.host);
    json.key("partitions").begin_array();
    for (const TopicPartition& where : member.assigned) {
      json.begin_object().field("topic", where.topic).field("partition", where.partition);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().key("offsets").begin_array();
  for (const GroupLag& lag : lags) {
    json.begin_object().field("topic", lag.where.topic).field("partition", lag.where.partition);
    optional_field(json, "committed", lag.committed);
    json.field("end", lag.end);
    std::optional<std::int64_t> records;
    if (lag.committed) records = lag.end - *lag.committed;
    optional_field(json, "lag", records);
    optional_field(json, "lag_ms", lag.lag_ms);
    json.field("member", lag.member).end_object();
  }
  json.end_array().end_object();
}

}  // namespace polylog::cli
