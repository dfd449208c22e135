#include "convert/group_offsets.h"

#include <algorithm>

#include "format/kafka/group_records.h"
#include "format/kafka/records.h"
#include "format/rocketmq/config_json.h"
#include "format/rocketmq/names.h"

namespace polylog::convert {
namespace {

namespace stored = format::kafka;

}  // namespace

Result<std::vector<std::uint8_t>> offsets_batch(const std::vector<GroupOffset>& offsets,
                                                Timestamp committed) {
  format::kafka::BatchOptions options;
  options.epoch = LeaderEpoch(0);
  format::kafka::BatchBuilder builder(options);
  for (const GroupOffset& offset : offsets) {
    POLYLOG_ASSIGN(key, stored::encode_offset_commit_key({offset.group, offset.partition}));
    stored::OffsetCommit commit;
    commit.offset = offset.offset;
    commit.committed = committed;
    POLYLOG_ASSIGN(value, stored::encode_offset_commit(commit));
    Record record;
    record.timestamp = committed;
    record.key = ByteView(key);
    record.value = ByteView(value);
    POLYLOG_TRY(builder.add(record));
  }
  return builder.finish();
}

Result<std::optional<GroupOffset>> decode_offset(const Record& record) {
  if (!record.key || !record.value) return std::optional<GroupOffset>();
  POLYLOG_ASSIGN(type, stored::group_key_type(*record.key));
  if (type != stored::offset_commit_key && type != stored::offset_commit_key_oldest) {
    return std::optional<GroupOffset>();
  }
  POLYLOG_ASSIGN(key, stored::decode_offset_commit_key(*record.key));
  POLYLOG_ASSIGN(value, stored::decode_offset_commit(*record.value));
  return std::optional(GroupOffset{std::move(key.group), std::move(key.partition), value.offset});
}

Result<std::vector<GroupOffset>> parse_rocketmq_offsets(std::string_view text) {
  std::vector<GroupOffset> offsets;
  if (text.empty()) return offsets;
  POLYLOG_ASSIGN(table, format::rocketmq::parse_consumer_offsets(text));
  for (const auto& [name, queues] : table.offsets) {
    const std::size_t at = name.find('@');
    if (at == std::string::npos) continue;
    const std::string topic = format::rocketmq::from_stored_topic(name.substr(0, at));
    for (const auto& [queue, offset] : queues) {
      offsets.push_back({name.substr(at + 1), {topic, queue}, offset});
    }
  }
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

}  // namespace polylog::convert
