#pragma once

#include "base/assert.h"
#include "bytes/slice.h"
#include "bytes/writer.h"

namespace polylog::protocol::kafka {

// Decodes `body` as the message whose API key it is, in any version. What decodes has to encode,
// and its encoding has to be a fixed point (the input itself may hold unknown tagged fields, a bool
// of 2, or bytes behind the end).
struct FuzzBody {
  std::int16_t api_key;
  std::int16_t version;
  Slice body;

  template <typename Message>
  void operator()() const {
    if (Message::api_key != api_key) return;
    const auto message = Message::decode(body, version);
    if (!message) return;
    const Slice once = encode(*message);
    const auto again = Message::decode(once, version);
    POLYLOG_ASSERT(again.has_value());
    const Slice twice = encode(*again);
    POLYLOG_ASSERT(as_text(once.view()) == as_text(twice.view()));
  }

  template <typename Message>
  Slice encode(const Message& message) const {
    ByteWriter out;
    POLYLOG_ASSERT(message.encode(out, version).has_value());
    return Slice::of(out.take().flatten());
  }
};

}  // namespace polylog::protocol::kafka
