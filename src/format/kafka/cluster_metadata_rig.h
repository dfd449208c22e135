#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "bytes/writer.h"

// Test only: records of Kafka's metadata log.
namespace polylog::format::kafka::metadata_rig {

using Bytes = std::vector<std::uint8_t>;

inline Uuid id_of(std::uint8_t number) {
  Uuid id;
  id.bytes.back() = number;
  return id;
}

// A record's value: frame version, type, version, fields, and the tagged fields behind them.
class Value {
 public:
  explicit Value(std::uint32_t type, std::uint32_t version = 0, std::uint32_t frame = 1) {
    out_.unsigned_varint(frame);
    out_.unsigned_varint(type);
    out_.unsigned_varint(version);
  }
  Value& text(std::string_view text) {
    out_.unsigned_varint(static_cast<std::uint32_t>(text.size() + 1));
    out_.text(text);
    return *this;
  }
  Value& null() {
    out_.unsigned_varint(0);
    return *this;
  }
  Value& u8(std::uint8_t value) {
    out_.u8(value);
    return *this;
  }
  Value& i32(std::int32_t value) {
    out_.i32(value);
    return *this;
  }
  Value& u64(std::uint64_t value) {
    out_.u64(value);
    return *this;
  }
  Value& uuid(const Uuid& id) {
    out_.bytes(id.bytes);
    return *this;
  }
  Bytes end() {
    out_.unsigned_varint(0);
    return out_.take_bytes();
  }

 private:
  ByteWriter out_;
};

inline Bytes topic(std::string_view name, std::uint8_t id) {
  return Value(2).text(name).uuid(id_of(id)).end();
}
inline Bytes partition(std::uint8_t topic_id, std::int32_t index, std::uint32_t version = 2) {
  return Value(3, version).i32(index).uuid(id_of(topic_id)).text("replicas and more").end();
}
inline Bytes removal(std::uint8_t id) { return Value(9).uuid(id_of(id)).end(); }
inline Bytes setting(std::int8_t resource, std::string_view of, std::string_view name,
              std::optional<std::string_view> value) {
  Value made(4);
  made.u8(static_cast<std::uint8_t>(resource)).text(of).text(name);
  return value ? made.text(*value).end() : made.null().end();
}
inline Bytes transaction(std::uint32_t type) { return Value(type).end(); }

}  // namespace polylog::format::kafka::metadata_rig
