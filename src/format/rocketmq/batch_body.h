#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"

// The body of a batch that a client sends (RocketMQ store format, "Plain batch, inner batch"):
// items back to back, each `int totalSize, int magic, int crc, int flag, int bodyLength, body,
// short propertiesLength, properties`. A plain batch becomes one record an item; an inner batch
// keeps this as the body of a single record.
namespace polylog::format::rocketmq {

inline constexpr std::size_t batch_item_bytes_min = 22;

// The views point into what it was read from, or is written from.
struct BatchItem {
  std::int32_t flag = 0;
  ByteView body;
  std::string_view properties;
  std::size_t size() const { return batch_item_bytes_min + body.size() + properties.size(); }
};

// Takes one item off the front. corrupt: lengths below 0 or beyond the end. As RocketMQ does, it
// goes by the inner lengths: totalSize, magic and crc are not looked at.
Result<BatchItem> take_batch_item(ByteView& rest);

// Appends an item, magic and crc 0 as clients write them. too_large: properties over 32,767 bytes,
// item over 2^31-1.
Result<void> append_batch_item(const BatchItem& item, std::vector<std::uint8_t>& out);

// Calls f(const BatchItem&) -> Result<void> for each item. Nothing to do for an empty body.
template <typename F>
Result<void> for_each_batch_item(ByteView body, F&& f) {
  while (!body.empty()) {
    POLYLOG_ASSIGN(item, take_batch_item(body));
    POLYLOG_TRY(f(item));
  }
  return {};
}

}  // namespace polylog::format::rocketmq
