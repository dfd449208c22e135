// Generated from Example.json; do not edit.
#pragma once

#include <limits>

#include "protocol/kafka/message.h"

namespace polylog::protocol::kafka {

struct Example {
  static constexpr std::string_view message_name = "Example";
  static constexpr std::int16_t api_key = -1;
  static constexpr std::int16_t min_version = 1;
  static constexpr std::int16_t max_version = 4;
  static constexpr std::int16_t first_flexible_version = 3;

  struct Endpoint {
    std::string host{};
    std::uint16_t port = 9092;

    void decode_fields(Decoder& in, std::int16_t version);
    void encode_fields(Encoder& out, std::int16_t version) const;
    // What the shortest one takes on the wire.
    static std::size_t encoded_bytes_min(std::int16_t version);
    bool operator==(const Endpoint&) const = default;
  };

  double ratio = 0.5;
  std::int32_t broker_id = -1;
  std::int64_t big_number = std::numeric_limits<std::int64_t>::min();
  bool enabled = true;
  std::string old_name = "none";
  std::optional<std::string> nickname{std::in_place};
  Slice blob{};
  std::optional<Slice> maybe_blob{};
  std::int16_t version_field = 0;
  Endpoint main{};
  std::optional<Endpoint> spare{};
  std::optional<std::vector<Endpoint>> others{std::in_place};
  std::uint32_t flags = 4294967295;
  std::optional<std::vector<std::string>> names{};
  std::vector<Uuid> ids{};

  static Result<Example> decode(const Slice& body, std::int16_t version);
  Result<void> encode(ByteWriter& out, std::int16_t version) const;

  void decode_fields(Decoder& in, std::int16_t version);
  void encode_fields(Encoder& out, std::int16_t version) const;
};

}  // namespace polylog::protocol::kafka
