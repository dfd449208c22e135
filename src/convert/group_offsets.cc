#include "convert/group_offsets.h"

#include <algorithm>

#include "bytes/reader.h"
#include "bytes/writer.h"
#include "format/kafka/records.h"
#include "format/rocketmq/config_json.h"
#include "format/rocketmq/names.h"
#include "format/rocketmq/properties.h"

namespace polylog::convert {
namespace {

constexpr std::int16_t key_type = 1;
constexpr std::int16_t key_type_oldest = 0;
constexpr std::int16_t value_version = 3;
constexpr std::int16_t value_version_max = 4;
constexpr std::size_t text_bytes_max = 32767;

Result<void> put_text(ByteWriter& out, std::string_view text) {
  if (text.size() > text_bytes_max) {
    return fail(Errc::too_large, "the name of a group or topic is over 32,767 bytes");
  }
  out.i16(static_cast<std::int16_t>(text.size()));
  out.text(text);
  return {};
}

std::string take_text(ByteReader& in) {
  const std::int16_t size = in.i16();
  if (size < 0) in.fail();
  return std::string(in.text(size < 0 ? 0 : static_cast<std::size_t>(size)));
}

}  // namespace

std::int32_t partition_of_group(std::string_view group, std::int32_t partitions) {
  const std::int32_t hash = format::rocketmq::java_hash(group);
  if (hash == INT32_MIN) return 0;
  return (hash < 0 ? -hash : hash) % partitions;
}

Result<std::vector<std::uint8_t>> encode_key(const GroupOffset& offset) {
  ByteWriter out;
  out.i16(key_type);
  POLYLOG_TRY(put_text(out, offset.group));
  POLYLOG_TRY(put_text(out, offset.partition.topic));
  out.i32(offset.partition.partition);
  return out.take_bytes();
}

std::vector<std::uint8_t> encode_value(const GroupOffset& offset, Timestamp committed) {
  ByteWriter out;
  out.i16(value_version);
  out.i64(offset.offset);
  out.i32(-1);  // leader epoch: not known
  out.i16(0);   // metadata: ""
  out.i64(committed.value());
  return out.take_bytes();
}

Result<std::vector<std::uint8_t>> offsets_batch(const std::vector<GroupOffset>& offsets,
                                                Timestamp committed) {
  format::kafka::BatchOptions options;
  options.epoch = LeaderEpoch(0);
  format::kafka::BatchBuilder builder(options);
  for (const GroupOffset& offset : offsets) {
    POLYLOG_ASSIGN(key, encode_key(offset));
    const std::vector<std::uint8_t> value = encode_value(offset, committed);
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
  ByteReader key(*record.key);
  const std::int16_t type = key.i16();
  if (key.ok() && type != key_type && type != key_type_oldest) return std::optional<GroupOffset>();
  GroupOffset offset;
  offset.group = take_text(key);
  offset.partition.topic = take_text(key);
  offset.partition.partition = key.i32();
  ByteReader value(*record.value);
  const std::int16_t version = value.i16();
  offset.offset = value.i64();
  if (!key.ok() || !value.ok() || version < 0 || version > value_version_max) {
    return fail(Errc::corrupt, "a committed offset does not read");
  }
  return std::optional(std::move(offset));
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
