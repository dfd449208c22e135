#include <cstdint>

#include "base/assert.h"
#include "format/kafka/consumer_group_records.h"
#include "format/kafka/consumer_protocol.h"

// The input is a record of a KIP-848 group, its key or its value: what reads is written and read
// again to the same, and so is what consumers tell each other.

using namespace polylog;
using namespace polylog::format::kafka;

namespace {

template <typename Decode>
void same_again(ByteView bytes, Decode&& decode) {
  const auto read = decode(bytes);
  if (!read) return;
  const auto again = decode(ByteView(encode(*read)));
  POLYLOG_ASSERT(again.has_value());
  POLYLOG_ASSERT(*again == *read);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes(data, size);
  if (const auto key = decode_consumer_group_key(bytes)) {
    POLYLOG_ASSERT(is_consumer_group_key(bytes));
    POLYLOG_ASSERT(encode_key(*key) == to_vector(bytes));
  }
  same_again(bytes, decode_group_epoch);
  same_again(bytes, decode_member_metadata);
  same_again(bytes, decode_target_epoch);
  same_again(bytes, decode_target_assignment);
  same_again(bytes, decode_current_assignment);
  same_again(bytes, decode_regular_expression);
  if (const auto subscription = decode_subscription(bytes)) {
    POLYLOG_ASSERT(decode_subscription(encode(*subscription)).has_value());
  }
  if (const auto assignment = decode_assignment(bytes)) {
    POLYLOG_ASSERT(decode_assignment(encode(*assignment)).has_value());
  }
  return 0;
}
