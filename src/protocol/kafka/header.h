#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "bytes/slice.h"
#include "bytes/writer.h"

namespace polylog::protocol::kafka {

// What precedes every body (Kafka protocol guide, "Request Header" and "Response Header"). A
// frame is the bytes behind the 4-byte size.

// Request header v1 and v2; v2, with tagged fields, belongs to the flexible versions of an API.
// The client id has the classic 16-bit length in both.
struct RequestHeader {
  std::int16_t api_key = 0;
  std::int16_t api_version = 0;
  std::int32_t correlation_id = 0;
  std::optional<std::string> client_id{};
  std::size_t header_bytes = 0;  // where the body begins; set by decode, ignored by encode

  // Errors: unsupported (no codec for the key, so the header's form is unknown; Kafka closes the
  // connection), invalid (truncated or malformed). The version is not checked: for ApiVersions,
  // one out of range is answered; everywhere else the body's decode refuses it.
  static Result<RequestHeader> decode(const Slice& frame);
  // REQUIRES: `frame` is what this was decoded from.
  Slice body(const Slice& frame) const {
    return frame.sub(header_bytes, frame.size() - header_bytes);
  }
  Result<void> encode(ByteWriter& out) const;
};

// Response header v0 and v1; v1, with tagged fields, belongs to the flexible versions, except for
// ApiVersions: a client that asks for them does not know yet what the broker speaks.
struct ResponseHeader {
  std::int32_t correlation_id = 0;
  std::size_t header_bytes = 0;  // where the body begins; set by decode, ignored by encode

  // The form follows from the request that is answered.
  static Result<ResponseHeader> decode(const Slice& frame, std::int16_t api_key,
                                       std::int16_t api_version);
  Slice body(const Slice& frame) const {
    return frame.sub(header_bytes, frame.size() - header_bytes);
  }
  void encode(ByteWriter& out, std::int16_t api_key, std::int16_t api_version) const;
};

}  // namespace polylog::protocol::kafka
