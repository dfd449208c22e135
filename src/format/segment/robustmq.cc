#include "format/segment/robustmq.h"

#include <boost/json.hpp>
#include <limits>

#include "base/crc.h"
#include "format/segment/archive.h"
#include "format/segment/frame.h"

namespace polylog::format::segment {
namespace {

namespace json = boost::json;

constexpr std::size_t pair_bytes = 2 * ArchiveReader::string_bytes;
constexpr std::size_t at_of(std::size_t index) { return robustmq_root_fields[index].at; }
static_assert(robustmq_root_fields[1].size == ArchiveReader::string_bytes);
static_assert(robustmq_root_fields[3].size == ArchiveReader::optional_vector_bytes);

std::optional<Timestamp> to_ms(std::uint64_t seconds) {
  constexpr std::uint64_t seconds_max = std::numeric_limits<std::int64_t>::max() / 1000;
  if (seconds > seconds_max) return std::nullopt;
  return Timestamp(static_cast<std::int64_t>(seconds * 1000));
}

struct Root {
  std::uint64_t offset = 0;
  std::uint32_t data_crc = 0;
};

void read_lists(ArchiveReader& in, std::size_t root, RobustmqRecord& out) {
  // The counts are checked: so many elements lie within the archive.
  if (const auto headers = in.optional_vector(root + at_of(3), pair_bytes)) {
    out.record.headers.reserve(headers->count);
    for (std::size_t i = 0; i < headers->count && in.ok(); ++i) {
      const std::size_t at = headers->at + i * pair_bytes;
      const std::string_view name = in.string(at);
      const std::string_view value = in.string(at + ArchiveReader::string_bytes);
      out.record.headers.push_back({name, as_bytes(value)});
    }
  }
  if (const auto tags = in.optional_vector(root + at_of(5), ArchiveReader::string_bytes)) {
    out.tags.reserve(tags->count);
    for (std::size_t i = 0; i < tags->count && in.ok(); ++i) {
      out.tags.push_back(in.string(tags->at + i * ArchiveReader::string_bytes));
    }
  }
}

Result<Root> read_archive(ByteView metadata, RobustmqRecord& out) {
  if (metadata.size() < robustmq_root_bytes) {
    return fail(Errc::corrupt, "the metadata is too short for a record of RobustMQ");
  }
  const std::size_t root = metadata.size() - robustmq_root_bytes;
  ArchiveReader in(metadata);
  Root found;
  found.offset = in.number<std::uint64_t>(root + at_of(0));
  out.shard = in.string(root + at_of(1));
  out.segment = in.number<std::uint32_t>(root + at_of(2));
  read_lists(in, root, out);
  out.record.key = in.optional_bytes(root + at_of(4));
  const auto created = to_ms(in.number<std::uint64_t>(root + at_of(6)));
  const auto expires = in.number<std::uint64_t>(root + at_of(7));
  found.data_crc = in.number<std::uint32_t>(root + at_of(8));
  if (expires != 0) out.expires = to_ms(expires);
  if (!in.ok() || !created || (expires != 0 && !out.expires)) {
    return fail(Errc::corrupt, "the metadata is not an archive as RobustMQ writes it");
  }
  out.record.timestamp = *created;
  return found;
}

// The members of the mqtt part, read with serde's rules: an Option may be missing or null,
// anything else must be there. The first fault sticks.
class Members {
 public:
  explicit Members(const json::object& object) : object_(object) {}

  bool ok() const { return ok_; }

  std::string text(const char* name) {
    const json::value* value = find(name);
    if (value == nullptr || !value->is_string()) return fault<std::string>();
    return to_text(*value);
  }
  std::optional<std::string> optional_text(const char* name) {
    if (absent(name)) return std::nullopt;
    return text(name);
  }
  bool flag(const char* name) {
    const json::value* value = find(name);
    return value != nullptr && value->is_bool() ? value->get_bool() : fault<bool>();
  }
  std::optional<std::uint8_t> optional_byte(const char* name) {
    if (absent(name)) return std::nullopt;
    return byte(*find(name));
  }
  std::optional<std::vector<std::uint8_t>> optional_bytes(const char* name) {
    if (absent(name)) return std::nullopt;
    const json::array* array = find(name)->if_array();
    std::vector<std::uint8_t> bytes;
    if (array == nullptr) return fault<std::vector<std::uint8_t>>();
    bytes.reserve(array->size());
    for (const json::value& element : *array) bytes.push_back(byte(element));
    return bytes;
  }
  std::vector<std::pair<std::string, std::string>> text_pairs(const char* name) {
    std::vector<std::pair<std::string, std::string>> pairs;
    const json::value* value = find(name);
    const json::array* array = value != nullptr ? value->if_array() : nullptr;
    if (array == nullptr) return fault<decltype(pairs)>();
    pairs.reserve(array->size());
    for (const json::value& element : *array) {
      const json::array* pair = element.if_array();
      if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() ||
          !(*pair)[1].is_string()) {
        return fault<decltype(pairs)>();
      }
      pairs.emplace_back(to_text((*pair)[0]), to_text((*pair)[1]));
    }
    return pairs;
  }

 private:
  const json::value* find(const char* name) const { return object_.if_contains(name); }
  bool absent(const char* name) const {
    const json::value* value = find(name);
    return value == nullptr || value->is_null();
  }
  static std::string to_text(const json::value& value) {
    const json::string& string = value.get_string();
    return {string.data(), string.size()};
  }
  std::uint8_t byte(const json::value& value) {
    const std::int64_t* number = value.if_int64();
    if (number == nullptr || *number < 0 || *number > 255) return fault<std::uint8_t>();
    return static_cast<std::uint8_t>(*number);
  }
  template <typename T>
  T fault() {
    ok_ = false;
    return T{};
  }

  const json::object& object_;
  bool ok_ = true;
};

Result<RobustmqMqtt> read_mqtt(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return fail(Errc::corrupt, "RobustMQ's mqtt part is not a JSON object");
  Members in(*object);
  RobustmqMqtt part;
  part.client_id = in.text("client_id");
  part.retain = in.flag("retain");
  part.payload_format = in.optional_byte("format_indicator");
  part.response_topic = in.optional_text("response_topic");
  part.correlation = in.optional_bytes("correlation_data");
  part.content_type = in.optional_text("content_type");
  part.user_properties = in.text_pairs("user_properties");
  if (!in.ok()) return fail(Errc::corrupt, "RobustMQ's mqtt part has a member of another type");
  return part;
}

Result<void> read_parts(ByteView protocol_data, RobustmqRecord& out) {
  if (protocol_data.empty()) return {};
  const std::string_view text = as_text(protocol_data);
  json::error_code error;
  const json::value root = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) {
    return fail(Errc::corrupt, "RobustMQ's protocol data is not JSON: " + error.message());
  }
  const json::object* object = root.if_object();
  if (object == nullptr) {
    return fail(Errc::corrupt, "RobustMQ's protocol data is not a JSON object");
  }
  for (const auto& [name, value] : *object) {
    if (value.is_null()) continue;
    if (name == "mqtt") {
      POLYLOG_ASSIGN(part, read_mqtt(value));
      out.mqtt = std::move(part);
    } else {
      out.other_parts.emplace_back(name.data(), name.size());
    }
  }
  return {};
}

}  // namespace

Result<RobustmqRecord> decode_robustmq(ByteView bytes) {
  POLYLOG_ASSIGN(frame, parse_frame(bytes));
  RobustmqRecord out;
  POLYLOG_ASSIGN(root, read_archive(frame.metadata, out));
  if (root.offset != static_cast<std::uint64_t>(frame.offset.value())) {
    return fail(Errc::corrupt, "the offsets in the frame and in RobustMQ's metadata differ");
  }
  if (crc32(frame.data) != root.data_crc) {
    return fail(Errc::corrupt, "the data does not have the CRC-32 in RobustMQ's metadata");
  }
  out.record.offset = frame.offset;
  out.record.value = frame.data;
  POLYLOG_TRY(read_parts(frame.protocol_data, out));
  return out;
}

StoredRecord to_stored(const RobustmqRecord& record) {
  StoredRecord out;
  out.record = record.record;
  out.append_time = record.record.timestamp;
  out.expires = record.expires;
  for (const std::string_view tag : record.tags) {
    out.record.headers.push_back({robustmq_tag_header, as_bytes(tag)});
  }
  if (!record.mqtt) return out;
  const RobustmqMqtt& from = *record.mqtt;
  for (const auto& [name, value] : from.user_properties) {
    out.record.headers.push_back({name, as_bytes(value)});
  }
  MqttPart part;
  part.qos = 1;
  part.retain = from.retain;
  part.payload_format = from.payload_format;
  if (from.content_type) part.content_type = *from.content_type;
  if (from.response_topic) part.response_topic = *from.response_topic;
  if (from.correlation) part.correlation = ByteView(*from.correlation);
  part.client_id = from.client_id;
  out.mqtt = part;
  return out;
}

}  // namespace polylog::format::segment
