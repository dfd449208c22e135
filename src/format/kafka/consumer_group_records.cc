#include "format/kafka/consumer_group_records.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "bytes/reader.h"
#include "bytes/writer.h"

namespace polylog::format::kafka {
namespace {

constexpr std::int16_t value_version = 0;
constexpr std::size_t uuid_bytes = 16;
// A topic of an assignment at its smallest: id, no partitions, no tagged fields.
constexpr std::size_t assigned_topic_bytes_min = uuid_bytes + 2;
constexpr std::size_t classic_protocol_bytes_min = 3;

bool has_subject(ConsumerGroupRecord record) {
  switch (record) {
    case ConsumerGroupRecord::group_epoch:
    case ConsumerGroupRecord::partition_metadata:
    case ConsumerGroupRecord::target_epoch: return false;
    case ConsumerGroupRecord::member_metadata:
    case ConsumerGroupRecord::target_assignment:
    case ConsumerGroupRecord::current_assignment:
    case ConsumerGroupRecord::regular_expression: return true;
  }
  return false;
}

bool known(std::int16_t record) {
  return (record >= 3 && record <= 8) ||
         record == static_cast<std::int16_t>(ConsumerGroupRecord::regular_expression);
}

// Writes the flexible form of Kafka's messages: compact lengths (one more than the size, zero for
// null) and tagged fields.
class Writer {
 public:
  Writer() { out_.i16(value_version); }

  void i8(std::int8_t value) { out_.i8(value); }
  void i32(std::int32_t value) { out_.i32(value); }
  void i64(std::int64_t value) { out_.i64(value); }
  void length(std::size_t size) { out_.unsigned_varint(static_cast<std::uint32_t>(size + 1)); }
  void null() { out_.unsigned_varint(0); }
  void text(std::string_view value) {
    length(value.size());
    out_.text(value);
  }
  void text(const std::optional<std::string>& value) {
    value ? text(std::string_view(*value)) : null();
  }
  void texts(const std::vector<std::string>& values) {
    length(values.size());
    for (const std::string& value : values) text(std::string_view(value));
  }
  void blob(ByteView value) {
    length(value.size());
    out_.bytes(value);
  }
  void numbers(const std::vector<std::int32_t>& values) {
    length(values.size());
    for (const std::int32_t value : values) i32(value);
  }
  void no_tags() { out_.unsigned_varint(0); }
  // The only tagged field of its struct, tag 0.
  void tag_zero(ByteView field) {
    out_.unsigned_varint(1);
    out_.unsigned_varint(0);
    out_.unsigned_varint(static_cast<std::uint32_t>(field.size()));
    out_.bytes(field);
  }
  void uuid(const Uuid& value) { out_.bytes(value.bytes); }
  std::vector<std::uint8_t> take() { return out_.take_bytes(); }
  // What was written, without the version: the content of a tagged field.
  std::vector<std::uint8_t> take_field() {
    std::vector<std::uint8_t> bytes = out_.take_bytes();
    bytes.erase(bytes.begin(), bytes.begin() + sizeof(value_version));
    return bytes;
  }

 private:
  ByteWriter out_;
};

// Reads the same; failures stick in the ByteReader below it.
class Reader {
 public:
  explicit Reader(ByteView bytes) : in_(bytes) {}

  std::int16_t i16() { return in_.i16(); }
  std::int8_t i8() { return in_.i8(); }
  std::int32_t i32() { return in_.i32(); }
  std::int64_t i64() { return in_.i64(); }
  bool complete() const { return in_.ok() && in_.remaining() == 0; }
  bool present() { return in_.unsigned_varint() != 0; }  // of a nullable struct

  // Nothing: null.
  std::optional<std::size_t> length(std::size_t element_bytes_min) {
    const std::uint32_t claimed = in_.unsigned_varint();
    if (claimed == 0) return std::nullopt;
    return in_.count(std::int64_t{claimed} - 1, element_bytes_min);
  }
  std::size_t count(std::size_t element_bytes_min) {
    const std::optional<std::size_t> count = length(element_bytes_min);
    if (!count) in_.fail();
    return count.value_or(0);
  }
  std::optional<std::string> nullable_text() {
    const std::optional<std::size_t> size = length(1);
    if (!size) return std::nullopt;
    return std::string(in_.text(*size));
  }
  std::string text() { return std::string(in_.text(count(1))); }
  std::vector<std::uint8_t> blob() { return to_vector(in_.bytes(count(1))); }
  std::vector<std::string> texts() {
    std::vector<std::string> values(count(1));
    for (std::string& value : values) value = text();
    return values;
  }
  std::vector<std::int32_t> numbers() {
    std::vector<std::int32_t> values(count(sizeof(std::int32_t)));
    for (std::int32_t& value : values) value = i32();
    return values;
  }
  Uuid uuid() {
    Uuid id;
    const ByteView bytes = in_.bytes(uuid_bytes);
    if (in_.ok()) std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
    return id;
  }
  // Calls read(field) for tag 0, skips all others.
  template <typename F>
  void tags(F&& read) {
    const std::size_t fields = in_.count(in_.unsigned_varint(), 2);
    std::int64_t last = -1;
    for (std::size_t i = 0; i < fields && in_.ok(); ++i) {
      const std::int64_t tag = in_.unsigned_varint();
      if (tag <= last) in_.fail();
      last = tag;
      const ByteView content = in_.bytes(in_.unsigned_varint());
      if (!in_.ok() || tag != 0) continue;
      Reader field(content);
      read(field);
      if (!field.complete()) in_.fail();
    }
  }
  void tags() {
    const std::size_t fields = in_.count(in_.unsigned_varint(), 2);
    for (std::size_t i = 0; i < fields && in_.ok(); ++i) {
      in_.unsigned_varint();
      in_.skip(in_.unsigned_varint());
    }
  }

 private:
  ByteReader in_;
};

// Reads a value by `read`, after its version and up to its last byte.
template <typename Value, typename F>
Result<Value> decode_value(ByteView bytes, std::string_view what, F&& read) {
  Reader in(bytes);
  const std::int16_t version = in.i16();
  if (bytes.size() >= sizeof(version) && version != value_version) {
    return polylog::fail(Errc::unsupported,
                         std::string(what) + " of version " + std::to_string(version));
  }
  Value value;
  read(in, value);
  if (!in.complete()) {
    return polylog::fail(Errc::corrupt, std::string(what) + ": bytes are missing or left over");
  }
  return value;
}

void write_topics(Writer& out, const std::vector<AssignedTopic>& topics, bool with_epochs) {
  out.length(topics.size());
  for (const AssignedTopic& topic : topics) {
    out.uuid(topic.topic);
    out.numbers(topic.partitions);
    if (with_epochs && topic.epochs) {
      Writer field;
      field.numbers(*topic.epochs);
      out.tag_zero(field.take_field());
    } else {
      out.no_tags();
    }
  }
}

std::vector<AssignedTopic> read_topics(Reader& in, bool with_epochs) {
  std::vector<AssignedTopic> topics(in.count(assigned_topic_bytes_min));
  for (AssignedTopic& topic : topics) {
    topic.topic = in.uuid();
    topic.partitions = in.numbers();
    if (!with_epochs) {
      in.tags();
      continue;
    }
    in.tags([&topic](Reader& field) {
      const std::optional<std::size_t> count = field.length(sizeof(std::int32_t));
      if (!count) return;
      topic.epochs.emplace(*count);
      for (std::int32_t& epoch : *topic.epochs) epoch = field.i32();
    });
    // Kafka takes the member's epoch for all of them then, and so does who reads this.
    if (topic.epochs && topic.epochs->size() != topic.partitions.size()) topic.epochs.reset();
  }
  return topics;
}

std::vector<std::uint8_t> classic_field(const ClassicMemberValue& classic) {
  Writer out;
  out.length(0);  // the mark of a struct that is there
  out.i32(classic.session_timeout_ms);
  out.length(classic.protocols.size());
  for (const ClassicProtocolValue& protocol : classic.protocols) {
    out.text(std::string_view(protocol.name));
    out.blob(protocol.metadata);
    out.no_tags();
  }
  out.no_tags();
  return out.take_field();
}

std::optional<ClassicMemberValue> read_classic(Reader& in) {
  if (!in.present()) return std::nullopt;
  ClassicMemberValue classic;
  classic.session_timeout_ms = in.i32();
  classic.protocols.resize(in.count(classic_protocol_bytes_min));
  for (ClassicProtocolValue& protocol : classic.protocols) {
    protocol.name = in.text();
    protocol.metadata = in.blob();
    in.tags();
  }
  in.tags();
  return classic;
}

}  // namespace

bool is_consumer_group_key(ByteView key) {
  ByteReader in(key);
  const std::int16_t record = in.i16();
  return in.ok() && known(record);
}

std::vector<std::uint8_t> encode_key(const ConsumerGroupKey& key) {
  ByteWriter out;
  const auto text = [&out](const std::string& value) {
    POLYLOG_ASSERT(value.size() <= std::numeric_limits<std::int16_t>::max());
    out.i16(static_cast<std::int16_t>(value.size()));
    out.text(value);
  };
  out.i16(static_cast<std::int16_t>(key.record));
  text(key.group);
  if (has_subject(key.record)) text(key.subject);
  return out.take_bytes();
}

Result<ConsumerGroupKey> decode_consumer_group_key(ByteView key) {
  ByteReader in(key);
  const std::int16_t record = in.i16();
  if (in.ok() && !known(record)) {
    return polylog::fail(Errc::unsupported, "key of kind " + std::to_string(record));
  }
  const auto text = [&in] { return std::string(in.text(in.count(in.i16(), 1))); };
  ConsumerGroupKey read;
  read.record = static_cast<ConsumerGroupRecord>(record);
  read.group = text();
  if (has_subject(read.record)) read.subject = text();
  if (!in.ok() || in.remaining() != 0) {
    return polylog::fail(Errc::corrupt, "key of a consumer group: bytes are missing or left over");
  }
  return read;
}

std::vector<std::uint8_t> encode(const GroupEpochValue& value) {
  Writer out;
  out.i32(value.epoch);
  if (value.metadata_hash == 0) {
    out.no_tags();
  } else {
    Writer field;
    field.i64(value.metadata_hash);
    out.tag_zero(field.take_field());
  }
  return out.take();
}

Result<GroupEpochValue> decode_group_epoch(ByteView bytes) {
  return decode_value<GroupEpochValue>(
      bytes, "group epoch", [](Reader& in, GroupEpochValue& value) {
        value.epoch = in.i32();
        in.tags([&value](Reader& field) { value.metadata_hash = field.i64(); });
      });
}

std::vector<std::uint8_t> encode(const MemberMetadataValue& value) {
  Writer out;
  out.text(value.instance_id);
  out.text(value.rack_id);
  out.text(std::string_view(value.client_id));
  out.text(std::string_view(value.client_host));
  out.texts(value.topics);
  out.text(value.regular_expression);
  out.i32(value.rebalance_timeout_ms);
  out.text(value.assignor);
  // Without the field Kafka would read a classic member without protocols: "none" is written out.
  out.tag_zero(value.classic ? classic_field(*value.classic) : std::vector<std::uint8_t>{0});
  return out.take();
}

Result<MemberMetadataValue> decode_member_metadata(ByteView bytes) {
  return decode_value<MemberMetadataValue>(
      bytes, "member of a consumer group", [](Reader& in, MemberMetadataValue& value) {
        value.instance_id = in.nullable_text();
        value.rack_id = in.nullable_text();
        value.client_id = in.text();
        value.client_host = in.text();
        value.topics = in.texts();
        value.regular_expression = in.nullable_text();
        value.rebalance_timeout_ms = in.i32();
        value.assignor = in.nullable_text();
        in.tags([&value](Reader& field) { value.classic = read_classic(field); });
      });
}

std::vector<std::uint8_t> encode(const TargetEpochValue& value) {
  Writer out;
  out.i32(value.epoch);
  if (value.timestamp_ms == 0) {
    out.no_tags();
  } else {
    Writer field;
    field.i64(value.timestamp_ms);
    out.tag_zero(field.take_field());
  }
  return out.take();
}

Result<TargetEpochValue> decode_target_epoch(ByteView bytes) {
  return decode_value<TargetEpochValue>(
      bytes, "target assignment's epoch", [](Reader& in, TargetEpochValue& value) {
        value.epoch = in.i32();
        in.tags([&value](Reader& field) { value.timestamp_ms = field.i64(); });
      });
}

std::vector<std::uint8_t> encode(const TargetAssignmentValue& value) {
  Writer out;
  write_topics(out, value.topics, false);
  out.no_tags();
  return out.take();
}

Result<TargetAssignmentValue> decode_target_assignment(ByteView bytes) {
  return decode_value<TargetAssignmentValue>(bytes, "target assignment",
                                             [](Reader& in, TargetAssignmentValue& value) {
                                               value.topics = read_topics(in, false);
                                               in.tags();
                                             });
}

std::vector<std::uint8_t> encode(const CurrentAssignmentValue& value) {
  Writer out;
  out.i32(value.epoch);
  out.i32(value.previous_epoch);
  out.i8(value.state);
  write_topics(out, value.assigned, true);
  write_topics(out, value.revoking, true);
  out.no_tags();
  return out.take();
}

Result<CurrentAssignmentValue> decode_current_assignment(ByteView bytes) {
  return decode_value<CurrentAssignmentValue>(bytes, "current assignment",
                                              [](Reader& in, CurrentAssignmentValue& value) {
                                                value.epoch = in.i32();
                                                value.previous_epoch = in.i32();
                                                value.state = in.i8();
                                                value.assigned = read_topics(in, true);
                                                value.revoking = read_topics(in, true);
                                                in.tags();
                                              });
}

std::vector<std::uint8_t> encode(const RegularExpressionValue& value) {
  Writer out;
  out.texts(value.topics);
  out.i64(value.version);
  out.i64(value.timestamp_ms);
  out.no_tags();
  return out.take();
}

Result<RegularExpressionValue> decode_regular_expression(ByteView bytes) {
  return decode_value<RegularExpressionValue>(bytes, "resolved regular expression",
                                              [](Reader& in, RegularExpressionValue& value) {
                                                value.topics = in.texts();
                                                value.version = in.i64();
                                                value.timestamp_ms = in.i64();
                                                in.tags();
                                              });
}

}  // namespace polylog::format::kafka
