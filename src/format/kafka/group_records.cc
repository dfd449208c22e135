#include "format/kafka/group_records.h"

#include <algorithm>
#include <utility>

#include "bytes/reader.h"
#include "bytes/writer.h"

namespace polylog::format::kafka {
namespace {

constexpr std::int16_t plain_offset_value = 3;
constexpr std::int16_t expiring_offset_value = 1;
constexpr std::int16_t identified_offset_value = 4;
constexpr std::int16_t plain_metadata_value = 3;
constexpr std::int16_t first_flexible = 4;
constexpr std::size_t uuid_bytes = 16;
constexpr std::uint32_t topic_id_tag = 0;
// A member at its smallest, in every version: four lengths and the session timeout.
constexpr std::size_t member_bytes_min = 9;
constexpr std::size_t topic_bytes_min = 2;

Error cut() { return {Errc::corrupt, "a record of a group does not read"}; }

// Reads the strings and arrays of either form: with fixed lengths, or compact.
class Reader {
 public:
  explicit Reader(ByteView bytes) : in_(bytes) {}
  void flexible(bool on) { flexible_ = on; }

  std::int16_t i16() { return in_.i16(); }
  std::int32_t i32() { return in_.i32(); }
  std::int64_t i64() { return in_.i64(); }
  bool ok() const { return in_.ok(); }
  bool complete() const { return in_.ok() && in_.remaining() == 0; }

  std::optional<std::string> nullable_text() {
    const std::int64_t size = flexible_ ? compact() : in_.i16();
    if (size < 0) return std::nullopt;
    return std::string(in_.text(in_.count(size, 1)));
  }
  std::string text() {
    std::optional<std::string> value = nullable_text();
    if (!value) in_.fail();
    return std::move(value).value_or("");
  }
  std::vector<std::uint8_t> blob() {
    const std::int64_t size = flexible_ ? compact() : in_.i32();
    return to_vector(in_.bytes(in_.count(size, 1)));
  }
  std::size_t count(std::size_t element_bytes_min) {
    return in_.count(flexible_ ? compact() : in_.i32(), element_bytes_min);
  }
  void skip_tags() {
    each_tag([](std::uint32_t, ByteView) {});
  }
  template <typename F>
  void each_tag(F&& f) {
    if (!flexible_) return;
    const std::size_t tags = in_.count(in_.unsigned_varint(), 2);
    for (std::size_t i = 0; i < tags && in_.ok(); ++i) {
      const std::uint32_t tag = in_.unsigned_varint();
      f(tag, in_.bytes(in_.count(in_.unsigned_varint(), 1)));
    }
  }

 private:
  std::int64_t compact() { return std::int64_t{in_.unsigned_varint()} - 1; }

  ByteReader in_;
  bool flexible_ = false;
};

Result<void> put_text(ByteWriter& out, std::string_view text) {
  if (text.size() > group_text_bytes_max) {
    return fail(Errc::too_large, "a name or text of a group is over 32,767 bytes");
  }
  out.i16(static_cast<std::int16_t>(text.size()));
  out.text(text);
  return {};
}

Result<void> put_text(ByteWriter& out, const std::optional<std::string>& text) {
  if (text) return put_text(out, std::string_view(*text));
  out.i16(-1);
  return {};
}

void put_blob(ByteWriter& out, const std::vector<std::uint8_t>& bytes) {
  out.i32(static_cast<std::int32_t>(bytes.size()));
  out.bytes(bytes);
}

// The version in front of a value.
Result<std::int16_t> take_version(Reader& in, std::int16_t max) {
  const std::int16_t version = in.i16();
  if (!in.ok() || version < 0) return fail(cut());
  if (version > max) {
    return fail(Errc::unsupported,
                "a group's record has version " + std::to_string(version) + " of its value");
  }
  in.flexible(version >= first_flexible);
  return version;
}

GroupMember take_member(Reader& in, std::int16_t version) {
  GroupMember member;
  member.id = in.text();
  if (version >= 3) member.instance_id = in.nullable_text();
  member.client_id = in.text();
  member.host = in.text();
  if (version >= 1) member.rebalance_timeout_ms = in.i32();
  member.session_timeout_ms = in.i32();
  member.subscription = in.blob();
  member.assignment = in.blob();
  in.skip_tags();
  return member;
}

}  // namespace

Result<std::int16_t> group_key_type(ByteView key) {
  ByteReader in(key);
  const std::int16_t type = in.i16();
  if (!in.ok()) return fail(cut());
  return type;
}

Result<std::vector<std::uint8_t>> encode_offset_commit_key(const OffsetCommitKey& key) {
  ByteWriter out;
  out.i16(offset_commit_key);
  POLYLOG_TRY(put_text(out, std::string_view(key.group)));
  POLYLOG_TRY(put_text(out, std::string_view(key.partition.topic)));
  out.i32(key.partition.partition);
  return out.take_bytes();
}

Result<std::vector<std::uint8_t>> encode_offset_commit(const OffsetCommit& value) {
  std::int16_t version = plain_offset_value;
  if (!value.topic_id.is_zero()) version = identified_offset_value;
  if (value.expires) version = expiring_offset_value;
  ByteWriter out;
  out.i16(version);
  out.i64(value.offset);
  if (version >= 3) out.i32(value.leader_epoch.value());
  if (version >= first_flexible) {
    if (value.metadata.size() > group_text_bytes_max) {
      return fail(Errc::too_large, "the metadata of an offset is over 32,767 bytes");
    }
    out.unsigned_varint(static_cast<std::uint32_t>(value.metadata.size() + 1));
    out.text(value.metadata);
  } else {
    POLYLOG_TRY(put_text(out, std::string_view(value.metadata)));
  }
  out.i64(value.committed.value());
  if (version == expiring_offset_value) out.i64(value.expires->value());
  if (version >= first_flexible) {
    out.unsigned_varint(1);
    out.unsigned_varint(topic_id_tag);
    out.unsigned_varint(uuid_bytes);
    out.bytes(value.topic_id.bytes);
  }
  return out.take_bytes();
}

Result<std::vector<std::uint8_t>> encode_group_metadata_key(std::string_view group) {
  ByteWriter out;
  out.i16(group_metadata_key);
  POLYLOG_TRY(put_text(out, group));
  return out.take_bytes();
}

Result<std::vector<std::uint8_t>> encode_group_metadata(const GroupMetadata& value) {
  ByteWriter out;
  out.i16(plain_metadata_value);
  POLYLOG_TRY(put_text(out, std::string_view(value.protocol_type)));
  out.i32(value.generation);
  POLYLOG_TRY(put_text(out, value.protocol));
  POLYLOG_TRY(put_text(out, value.leader));
  out.i64(value.state_since.value());
  out.i32(static_cast<std::int32_t>(value.members.size()));
  for (const GroupMember& member : value.members) {
    POLYLOG_TRY(put_text(out, std::string_view(member.id)));
    POLYLOG_TRY(put_text(out, member.instance_id));
    POLYLOG_TRY(put_text(out, std::string_view(member.client_id)));
    POLYLOG_TRY(put_text(out, std::string_view(member.host)));
    out.i32(member.rebalance_timeout_ms);
    out.i32(member.session_timeout_ms);
    put_blob(out, member.subscription);
    put_blob(out, member.assignment);
  }
  return out.take_bytes();
}

Result<OffsetCommitKey> decode_offset_commit_key(ByteView key) {
  Reader in(key);
  const std::int16_t type = in.i16();
  OffsetCommitKey decoded;
  decoded.group = in.text();
  decoded.partition.topic = in.text();
  decoded.partition.partition = in.i32();
  const bool ours = type == offset_commit_key || type == offset_commit_key_oldest;
  if (!in.complete() || !ours) return fail(cut());
  return decoded;
}

Result<OffsetCommit> decode_offset_commit(ByteView value) {
  Reader in(value);
  POLYLOG_ASSIGN(version, take_version(in, offset_commit_value_max));
  OffsetCommit commit;
  commit.offset = in.i64();
  if (version >= 3) commit.leader_epoch = LeaderEpoch(in.i32());
  commit.metadata = in.text();
  commit.committed = Timestamp(in.i64());
  if (version == expiring_offset_value) {
    // -1 is "as the broker is set", and no time in the past (KAFKA-7403).
    const std::int64_t expires = in.i64();
    if (expires >= 0) commit.expires = Timestamp(expires);
  }
  bool id_fits = true;
  in.each_tag([&](std::uint32_t tag, ByteView field) {
    if (tag != topic_id_tag) return;
    id_fits = field.size() == uuid_bytes;
    if (id_fits) std::copy(field.begin(), field.end(), commit.topic_id.bytes.begin());
  });
  if (!in.complete() || !id_fits) return fail(cut());
  return commit;
}

Result<std::string> decode_group_metadata_key(ByteView key) {
  Reader in(key);
  const std::int16_t type = in.i16();
  std::string group = in.text();
  if (!in.complete() || type != group_metadata_key) return fail(cut());
  return group;
}

Result<GroupMetadata> decode_group_metadata(ByteView value) {
  Reader in(value);
  POLYLOG_ASSIGN(version, take_version(in, group_metadata_value_max));
  GroupMetadata metadata;
  metadata.protocol_type = in.text();
  metadata.generation = in.i32();
  metadata.protocol = in.nullable_text();
  metadata.leader = in.nullable_text();
  if (version >= 2) metadata.state_since = Timestamp(in.i64());
  const std::size_t members = in.count(member_bytes_min);
  metadata.members.reserve(members);
  for (std::size_t i = 0; i < members && in.ok(); ++i) {
    metadata.members.push_back(take_member(in, version));
  }
  in.skip_tags();
  if (!in.complete()) return fail(cut());
  return metadata;
}

std::optional<std::vector<std::string>> subscribed_topics(ByteView metadata) {
  Reader in(metadata);
  if (const std::int16_t version = in.i16(); !in.ok() || version < 0) return std::nullopt;
  const std::size_t count = in.count(topic_bytes_min);
  std::vector<std::string> topics;
  topics.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) topics.push_back(in.text());
  if (!in.ok()) return std::nullopt;
  return topics;
}

}  // namespace polylog::format::kafka
