#include "cli/group_record_text.h"

#include "bytes/reader.h"
#include "cli/json.h"
#include "cli/text.h"
#include "format/kafka/consumer_group_records.h"
#include "format/kafka/group_records.h"

namespace polylog::cli {
namespace {

using namespace format::kafka;

void add_optional(JsonWriter& json, std::string_view name, const std::optional<std::string>& text) {
  json.key(name);
  if (text) {
    json.value(*text);
  } else {
    json.null();
  }
}

void add_numbers(JsonWriter& json, std::string_view name,
                 const std::vector<std::int32_t>& numbers) {
  json.key(name).begin_array();
  for (const std::int32_t number : numbers) json.value(number);
  json.end_array();
}

std::string short_text(ByteReader& in) {
  const std::int16_t size = in.i16();
  if (size < 0) {
    in.fail();
    return {};
  }
  return std::string(in.text(static_cast<std::size_t>(size)));
}

// Nullable bytes of 4 bytes' length, in base64.
void add_user_data(JsonWriter& json, ByteReader& in) {
  json.key("userData");
  const std::int32_t size = in.i32();
  if (size < 0) {
    json.null();
  } else {
    json.value(to_base64(in.bytes(static_cast<std::size_t>(size))));
  }
}

void add_topic_partitions(JsonWriter& json, std::string_view name, ByteReader& in) {
  constexpr std::size_t topic_bytes_min = 6;
  json.key(name).begin_array();
  for (std::size_t topics = in.count(in.i32(), topic_bytes_min); topics > 0; --topics) {
    json.begin_object().field("topic", short_text(in));
    std::vector<std::int32_t> numbers;
    for (std::size_t count = in.count(in.i32(), sizeof(std::int32_t)); count > 0; --count) {
      numbers.push_back(in.i32());
    }
    add_numbers(json, "partitions", numbers);
    json.end_object();
  }
  json.end_array();
}

// ConsumerProtocolSubscription, versions 0 to 3; nothing when it is none.
std::optional<std::string> subscription_text(ByteView bytes) {
  ByteReader in(bytes);
  const std::int16_t version = in.i16();
  JsonWriter json;
  json.begin_object().key("topics").begin_array();
  for (std::size_t count = in.count(in.i32(), sizeof(std::int16_t)); count > 0; --count) {
    json.value(short_text(in));
  }
  json.end_array();
  add_user_data(json, in);
  if (version >= 1) add_topic_partitions(json, "ownedPartitions", in);
  if (version >= 2) json.field("generationId", in.i32());
  if (version >= 3) {
    json.key("rackId");
    const std::int16_t size = in.i16();
    if (size < 0) {
      json.null();
    } else {
      json.value(std::string(in.text(static_cast<std::size_t>(size))));
    }
  }
  json.end_object();
  return in.ok() ? std::optional(json.take()) : std::nullopt;
}

std::optional<std::string> assignment_text(ByteView bytes) {
  ByteReader in(bytes);
  in.i16();
  JsonWriter json;
  json.begin_object();
  add_topic_partitions(json, "assignedPartitions", in);
  add_user_data(json, in);
  json.end_object();
  return in.ok() ? std::optional(json.take()) : std::nullopt;
}

// JSON made elsewhere, or the bytes in base64.
std::string or_base64(const std::optional<std::string>& made, ByteView bytes) {
  if (made) return *made;
  JsonWriter json;
  json.value(to_base64(bytes));
  return json.take();
}

std::string member_text(const GroupMember& member, std::int16_t version, bool consumer) {
  JsonWriter json;
  json.begin_object().field("memberId", member.id);
  if (version >= 3) add_optional(json, "groupInstanceId", member.instance_id);
  json.field("clientId", member.client_id).field("clientHost", member.host);
  if (version >= 1) json.field("rebalanceTimeout", member.rebalance_timeout_ms);
  json.field("sessionTimeout", member.session_timeout_ms);
  std::string out = json.take();
  const auto nested = [&](const char* name, const std::string& text) {
    out += std::string(",\"") + name + "\":" + text;
  };
  nested("subscription", or_base64(consumer ? subscription_text(member.subscription) : std::nullopt,
                                   member.subscription));
  nested("assignment", or_base64(consumer ? assignment_text(member.assignment) : std::nullopt,
                                 member.assignment));
  return out + "}";
}

std::string group_text(const GroupMetadata& group, std::int16_t version) {
  JsonWriter json;
  json.begin_object().field("protocolType", group.protocol_type);
  json.field("generation", group.generation);
  add_optional(json, "protocol", group.protocol);
  add_optional(json, "leader", group.leader);
  if (version >= 2) json.field("currentStateTimestamp", group.state_since.value());
  std::string out = json.take() + ",\"members\":[";
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    out += (i == 0 ? "" : ",") +
           member_text(group.members[i], version, group.protocol_type == "consumer");
  }
  return out + "]}";
}

std::string commit_text(const OffsetCommit& commit, std::int16_t version) {
  JsonWriter json;
  json.begin_object().field("offset", commit.offset);
  if (version >= 3) json.field("leaderEpoch", commit.leader_epoch.value());
  json.field("metadata", commit.metadata).field("commitTimestamp", commit.committed.value());
  if (version == 1) {
    json.field("expireTimestamp", commit.expires ? commit.expires->value() : std::int64_t{-1});
  }
  if (!commit.topic_id.is_zero()) json.field("topicId", commit.topic_id.to_string());
  json.end_object();
  return json.take();
}

void add_assigned(JsonWriter& json, std::string_view name,
                  const std::vector<AssignedTopic>& topics) {
  json.key(name).begin_array();
  for (const AssignedTopic& topic : topics) {
    json.begin_object().field("topicId", topic.topic.to_string());
    add_numbers(json, "partitions", topic.partitions);
    if (topic.epochs) add_numbers(json, "assignmentEpochs", *topic.epochs);
    json.end_object();
  }
  json.end_array();
}

std::string text_of(const GroupEpochValue& value) {
  JsonWriter json;
  json.begin_object().field("epoch", value.epoch).field("metadataHash", value.metadata_hash);
  json.end_object();
  return json.take();
}

std::string text_of(const MemberMetadataValue& value) {
  JsonWriter json;
  json.begin_object();
  add_optional(json, "instanceId", value.instance_id);
  add_optional(json, "rackId", value.rack_id);
  json.field("clientId", value.client_id).field("clientHost", value.client_host);
  json.key("subscribedTopicNames").begin_array();
  for (const std::string& topic : value.topics) json.value(topic);
  json.end_array();
  add_optional(json, "subscribedTopicRegex", value.regular_expression);
  json.field("rebalanceTimeoutMs", value.rebalance_timeout_ms);
  add_optional(json, "serverAssignor", value.assignor);
  json.key("classicMemberMetadata");
  if (!value.classic) {
    json.null();
  } else {
    json.begin_object().field("sessionTimeoutMs", value.classic->session_timeout_ms);
    json.key("supportedProtocols").begin_array();
    for (const ClassicProtocolValue& protocol : value.classic->protocols) {
      json.begin_object().field("name", protocol.name);
      json.field("metadata", to_base64(protocol.metadata)).end_object();
    }
    json.end_array().end_object();
  }
  json.end_object();
  return json.take();
}

std::string text_of(const TargetEpochValue& value) {
  JsonWriter json;
  json.begin_object().field("assignmentEpoch", value.epoch);
  json.field("assignmentTimestamp", value.timestamp_ms).end_object();
  return json.take();
}

std::string text_of(const TargetAssignmentValue& value) {
  JsonWriter json;
  json.begin_object();
  add_assigned(json, "topicPartitions", value.topics);
  json.end_object();
  return json.take();
}

std::string text_of(const CurrentAssignmentValue& value) {
  JsonWriter json;
  json.begin_object().field("memberEpoch", value.epoch);
  json.field("previousMemberEpoch", value.previous_epoch);
  json.field("state", std::int32_t{value.state});
  add_assigned(json, "assignedPartitions", value.assigned);
  add_assigned(json, "partitionsPendingRevocation", value.revoking);
  json.end_object();
  return json.take();
}

std::string text_of(const RegularExpressionValue& value) {
  JsonWriter json;
  json.begin_object().key("topics").begin_array();
  for (const std::string& topic : value.topics) json.value(topic);
  json.end_array().field("version", value.version).field("timestamp", value.timestamp_ms);
  json.end_object();
  return json.take();
}

Result<std::string> consumer_value_text(ConsumerGroupRecord kind, ByteView bytes) {
  const auto text = [](const auto& decoded) -> Result<std::string> {
    if (!decoded) return fail(decoded.error());
    return text_of(*decoded);
  };
  switch (kind) {
    case ConsumerGroupRecord::group_epoch: return text(decode_group_epoch(bytes));
    case ConsumerGroupRecord::member_metadata: return text(decode_member_metadata(bytes));
    case ConsumerGroupRecord::target_epoch: return text(decode_target_epoch(bytes));
    case ConsumerGroupRecord::target_assignment: return text(decode_target_assignment(bytes));
    case ConsumerGroupRecord::current_assignment: return text(decode_current_assignment(bytes));
    case ConsumerGroupRecord::regular_expression: return text(decode_regular_expression(bytes));
    case ConsumerGroupRecord::partition_metadata: break;
  }
  return fail(Errc::unsupported, "the value of a record that is not written any more");
}

std::string typed(const char* kind, std::int16_t number, const std::string& data) {
  return std::string("{\"") + kind + "\":\"" + std::to_string(number) + "\",\"data\":" + data + "}";
}

std::string consumer_key_text(const ConsumerGroupKey& key) {
  JsonWriter json;
  json.begin_object().field("groupId", key.group);
  switch (key.record) {
    case ConsumerGroupRecord::member_metadata:
    case ConsumerGroupRecord::target_assignment:
    case ConsumerGroupRecord::current_assignment: json.field("memberId", key.subject); break;
    case ConsumerGroupRecord::regular_expression:
      json.field("regularExpression", key.subject);
      break;
    default: break;
  }
  json.end_object();
  return json.take();
}

}  // namespace

Result<GroupRecordText> group_record_text(const Record& record) {
  if (!record.key) return fail(Errc::corrupt, "a record without a key");
  POLYLOG_ASSIGN(type, group_key_type(*record.key));
  std::int16_t version = -1;
  if (record.value) {
    if (record.value->size() < sizeof version) return fail(Errc::corrupt, "a value of no length");
    version = load_big<std::int16_t>(record.value->data());
  }
  GroupRecordText text;
  JsonWriter json;
  if (is_consumer_group_key(*record.key)) {
    POLYLOG_ASSIGN(key, decode_consumer_group_key(*record.key));
    text.key = typed("type", type, consumer_key_text(key));
    if (!record.value) return text;
    POLYLOG_ASSIGN(value, consumer_value_text(key.record, *record.value));
    text.value = typed("version", version, value);
  } else if (type == group_metadata_key) {
    POLYLOG_ASSIGN(group, decode_group_metadata_key(*record.key));
    json.begin_object().field("group", group).end_object();
    text.key = typed("type", type, json.take());
    if (!record.value) return text;
    POLYLOG_ASSIGN(value, decode_group_metadata(*record.value));
    text.value = typed("version", version, group_text(value, version));
  } else {
    POLYLOG_ASSIGN(key, decode_offset_commit_key(*record.key));
    json.begin_object().field("group", key.group).field("topic", key.partition.topic);
    json.field("partition", key.partition.partition).end_object();
    text.key = typed("type", type, json.take());
    if (!record.value) return text;
    POLYLOG_ASSIGN(value, decode_offset_commit(*record.value));
    text.value = typed("version", version, commit_text(value, version));
  }
  return text;
}

}  // namespace polylog::cli
