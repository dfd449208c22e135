#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"

// Records of __consumer_offsets that hold a group of the KIP-848 protocol (Kafka 4.3, message
// schemas of the group coordinator: ConsumerGroup*Key and ConsumerGroup*Value). A record without a
// value is a tombstone. Byte tables: docs/formats/kafka-consumer-groups.md.
namespace polylog::format::kafka {

// The number a key begins with.
enum class ConsumerGroupRecord : std::int16_t {
  group_epoch = 3,
  partition_metadata = 4,  // written before Kafka 4.1: skipped when read, and deleted
  member_metadata = 5,
  target_epoch = 6,
  target_assignment = 7,
  current_assignment = 8,
  regular_expression = 16,
};

struct ConsumerGroupKey {
  ConsumerGroupRecord record = ConsumerGroupRecord::group_epoch;
  std::string group;
  std::string subject;  // the member's id or the expression; "" in keys that are the group's alone
  bool operator==(const ConsumerGroupKey&) const = default;
};

// Whether a key is one of ours at all: looks at its first two bytes only.
bool is_consumer_group_key(ByteView key);
std::vector<std::uint8_t> encode_key(const ConsumerGroupKey& key);
// unsupported: another kind of record. corrupt: bytes missing or left over.
Result<ConsumerGroupKey> decode_consumer_group_key(ByteView key);

// Values. Decoders answer unsupported for another version than 0, corrupt for bytes missing or
// left over; tagged fields they do not know are skipped.

struct GroupEpochValue {
  std::int32_t epoch = 0;
  std::int64_t metadata_hash = 0;
  bool operator==(const GroupEpochValue&) const = default;
};

struct ClassicProtocolValue {
  std::string name;
  std::vector<std::uint8_t> metadata;
  bool operator==(const ClassicProtocolValue&) const = default;
};

// What is known of a member that joined by the classic protocol.
struct ClassicMemberValue {
  std::int32_t session_timeout_ms = 0;
  std::vector<ClassicProtocolValue> protocols;
  bool operator==(const ClassicMemberValue&) const = default;
};

struct MemberMetadataValue {
  std::optional<std::string> instance_id;
  std::optional<std::string> rack_id;
  std::string client_id;
  std::string client_host;
  std::vector<std::string> topics;
  std::optional<std::string> regular_expression;
  std::int32_t rebalance_timeout_ms = -1;
  std::optional<std::string> assignor;
  std::optional<ClassicMemberValue> classic;
  bool operator==(const MemberMetadataValue&) const = default;
};

struct TargetEpochValue {
  std::int32_t epoch = 0;
  std::int64_t timestamp_ms = 0;  // when it was computed; 0 = unknown
  bool operator==(const TargetEpochValue&) const = default;
};

struct AssignedTopic {
  Uuid topic;
  std::vector<std::int32_t> partitions;
  // Of a current assignment only, one for each partition: the epoch at which the member got it.
  std::optional<std::vector<std::int32_t>> epochs;
  bool operator==(const AssignedTopic&) const = default;
};

struct TargetAssignmentValue {
  std::vector<AssignedTopic> topics;
  bool operator==(const TargetAssignmentValue&) const = default;
};

struct CurrentAssignmentValue {
  std::int32_t epoch = 0;
  std::int32_t previous_epoch = 0;
  std::int8_t state = 0;
  std::vector<AssignedTopic> assigned;
  std::vector<AssignedTopic> revoking;
  bool operator==(const CurrentAssignmentValue&) const = default;
};

struct RegularExpressionValue {
  std::vector<std::string> topics;
  std::int64_t version = 0;
  std::int64_t timestamp_ms = 0;
  bool operator==(const RegularExpressionValue&) const = default;
};

std::vector<std::uint8_t> encode(const GroupEpochValue& value);
std::vector<std::uint8_t> encode(const MemberMetadataValue& value);
std::vector<std::uint8_t> encode(const TargetEpochValue& value);
std::vector<std::uint8_t> encode(const TargetAssignmentValue& value);
std::vector<std::uint8_t> encode(const CurrentAssignmentValue& value);
std::vector<std::uint8_t> encode(const RegularExpressionValue& value);

Result<GroupEpochValue> decode_group_epoch(ByteView bytes);
Result<MemberMetadataValue> decode_member_metadata(ByteView bytes);
Result<TargetEpochValue> decode_target_epoch(ByteView bytes);
Result<TargetAssignmentValue> decode_target_assignment(ByteView bytes);
Result<CurrentAssignmentValue> decode_current_assignment(ByteView bytes);
Result<RegularExpressionValue> decode_regular_expression(ByteView bytes);

}  // namespace polylog::format::kafka
