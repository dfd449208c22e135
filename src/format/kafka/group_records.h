#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"

// Records of __consumer_offsets about committed offsets and classic groups (Kafka 4.3 log format,
// "Internal topics"; schemas OffsetCommitKey/Value, LegacyOffsetCommitKey/Value and
// GroupMetadataKey/Value). Byte tables: docs/formats/kafka-consumer-offsets.md. The KIP-848
// records are in consumer_group_records.h.
namespace polylog::format::kafka {

inline constexpr std::int16_t offset_commit_key_oldest = 0;
inline constexpr std::int16_t offset_commit_key = 1;
inline constexpr std::int16_t group_metadata_key = 2;
inline constexpr std::int16_t offset_commit_value_max = 4;
inline constexpr std::int16_t group_metadata_value_max = 4;
inline constexpr std::size_t group_text_bytes_max = 32767;

// The fields of the values in their order, with the versions that have them. Version 4 has compact
// lengths, and tagged fields at its end.
struct GroupRecordField {
  std::string_view name;
  std::string_view type;
  std::int16_t first_version;
  std::int16_t last_version;
};
inline constexpr std::array<GroupRecordField, 6> offset_commit_fields{{
    {"offset", "int64", 0, 4},
    {"leaderEpoch", "int32", 3, 4},
    {"metadata", "string", 0, 4},
    {"commitTimestamp", "int64", 0, 4},
    {"expireTimestamp", "int64", 1, 1},
    {"topicId", "uuid, tag 0", 4, 4},
}};
inline constexpr std::array<GroupRecordField, 14> group_metadata_fields{{
    {"protocolType", "string", 0, 4},
    {"generation", "int32", 0, 4},
    {"protocol", "nullable string", 0, 4},
    {"leader", "nullable string", 0, 4},
    {"currentStateTimestamp", "int64", 2, 4},
    {"members", "array of the following", 0, 4},
    {"memberId", "string", 0, 4},
    {"groupInstanceId", "nullable string", 3, 4},
    {"clientId", "string", 0, 4},
    {"clientHost", "string", 0, 4},
    {"rebalanceTimeout", "int32", 1, 4},
    {"sessionTimeout", "int32", 0, 4},
    {"subscription", "bytes", 0, 4},
    {"assignment", "bytes", 0, 4},
}};

// The type in front of every key. corrupt: shorter than that.
Result<std::int16_t> group_key_type(ByteView key);

struct OffsetCommitKey {
  std::string group;
  TopicPartition partition;
  bool operator==(const OffsetCommitKey&) const = default;
};
struct OffsetCommit {
  std::int64_t offset = -1;  // the next one to read
  LeaderEpoch leader_epoch = no_epoch;
  std::string metadata;
  Timestamp committed = no_timestamp;
  std::optional<Timestamp> expires;  // nothing: the broker's retention counts
  Uuid topic_id;                     // zero: not known
  bool operator==(const OffsetCommit&) const = default;
};

struct GroupMember {
  std::string id;
  std::optional<std::string> instance_id;
  std::string client_id;
  std::string host;
  std::int32_t rebalance_timeout_ms = -1;  // -1: the session timeout
  std::int32_t session_timeout_ms = 0;
  std::vector<std::uint8_t> subscription;
  std::vector<std::uint8_t> assignment;
  bool operator==(const GroupMember&) const = default;
};
struct GroupMetadata {
  std::string protocol_type;  // "": none
  std::int32_t generation = 0;
  std::optional<std::string> protocol;
  std::optional<std::string> leader;
  Timestamp state_since = no_timestamp;
  std::vector<GroupMember> members;
  bool operator==(const GroupMetadata&) const = default;
};

// Encoders. too_large: a text over 32,767 bytes, which no request can hold either. Values are
// written in the version Kafka writes: 3, or 1 with an expiry of its own and 4 with a topic id
// (offset commits); 3 (group metadata).
Result<std::vector<std::uint8_t>> encode_offset_commit_key(const OffsetCommitKey& key);
Result<std::vector<std::uint8_t>> encode_offset_commit(const OffsetCommit& value);
Result<std::vector<std::uint8_t>> encode_group_metadata_key(std::string_view group);
Result<std::vector<std::uint8_t>> encode_group_metadata(const GroupMetadata& value);

// Decoders, of every version. corrupt: the bytes end too early, go on too long, or a count can't
// be; unsupported: a later version.
Result<OffsetCommitKey> decode_offset_commit_key(ByteView key);
Result<OffsetCommit> decode_offset_commit(ByteView value);
Result<std::string> decode_group_metadata_key(ByteView key);
Result<GroupMetadata> decode_group_metadata(ByteView value);

// Topics of a ConsumerProtocolSubscription, the metadata of members of protocol type "consumer".
// Later versions are read as far as they are known; what follows is not looked at. Nothing when it
// does not read.
std::optional<std::vector<std::string>> subscribed_topics(ByteView metadata);

}  // namespace polylog::format::kafka
