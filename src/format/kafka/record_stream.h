#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"
#include "format/kafka/compression.h"
#include "format/kafka/varint.h"

// The record encoding (Kafka log format, "Record") below the level of Record: what decoding and
// produce validation share, without an allocation per record.
namespace polylog::format::kafka {

// One record's fields as they lie in its body (what its length counts).
struct RecordParts {
  std::int64_t timestamp_delta = 0;
  std::int32_t offset_delta = 0;
  std::int32_t key_bytes = -1;    // negative = null
  std::int32_t value_bytes = -1;  // negative = null
  std::int32_t header_count = 0;
  // Into the body; null from RecordStream::walk(), which keeps no bytes.
  const std::uint8_t* key = nullptr;
  const std::uint8_t* value = nullptr;
  const std::uint8_t* headers = nullptr;
};

// Takes one body apart and checks that its fields consume it exactly. Returns null, or a phrase
// saying what is wrong.
const char* parse_parts(ByteView body, RecordParts& parts);

// Hands out record bodies one after the other from a payload that may be compressed. Bytes are
// decompressed as they are needed; a body that lies across two pieces of output is either
// assembled in a buffer that grows as its bytes arrive, or walked over without keeping them.
// The payload must outlive it.
//
// Errors: invalid for a malformed encoding, corrupt and too_large as Decompressor gives them.
class RecordStream {
 public:
  RecordStream(Codec codec, ByteView payload, std::size_t output_max);

  // True when the next body lies whole in the bytes at hand: nearly always. The view lives until
  // the next call of anything here.
  bool take_whole(ByteView& body) {
    const std::uint8_t* at = window_.data();
    const std::uint8_t* const end = at + window_.size();
    std::int32_t length = 0;
    if (!read_varint(at, end, length) || length < 0 || length > end - at) return false;
    body = {at, static_cast<std::size_t>(length)};
    window_ = {at + length, end};
    return true;
  }
  // When it does not. A record longer than the output cap is refused before it is buffered.
  Result<ByteView> assemble();
  // Checks the next body as parse_parts() does, keeping nothing of it.
  Result<void> walk(RecordParts& parts);

  // True when nothing is left, which takes decompressing to the end of the stream.
  Result<bool> at_end();

 private:
  class Walker;

  // The next piece into window_; false at the end of the stream.
  Result<bool> refill();

  std::optional<Decompressor> stream_;  // nothing when stored plain
  std::size_t output_max_;
  ByteView window_;
  std::vector<std::uint8_t> carry_;
};

}  // namespace polylog::format::kafka
