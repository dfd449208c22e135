#include "format/rocketmq/batch_body.h"

#include <limits>

#include "bytes/endian.h"
#include "bytes/reader.h"
#include "format/rocketmq/message.h"

namespace polylog::format::rocketmq {
namespace {

constexpr std::size_t item_bytes_max = std::numeric_limits<std::int32_t>::max();

template <typename T>
void append_big(std::vector<std::uint8_t>& out, T value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof(T));
  store_big(out.data() + at, value);
}

}  // namespace

Result<BatchItem> take_batch_item(ByteView& rest) {
  ByteReader reader(rest);
  reader.skip(3 * sizeof(std::int32_t));
  BatchItem item;
  item.flag = reader.i32();
  item.body = reader.bytes(reader.count(reader.i32(), 1));
  item.properties = reader.text(reader.count(reader.i16(), 1));
  if (!reader.ok()) return fail(Errc::corrupt, "message batch: an item runs past the end");
  rest = rest.subspan(reader.position());
  return item;
}

Result<void> append_batch_item(const BatchItem& item, std::vector<std::uint8_t>& out) {
  if (item.properties.size() > properties_bytes_max) {
    return fail(Errc::too_large, "the properties take at most 32767 bytes, not " +
                                     std::to_string(item.properties.size()));
  }
  if (item.size() > item_bytes_max)
    return fail(Errc::too_large, "an item has at most 2^31-1 bytes");
  out.reserve(out.size() + item.size());
  append_big(out, static_cast<std::int32_t>(item.size()));
  append_big(out, std::int32_t{0});
  append_big(out, std::int32_t{0});
  append_big(out, item.flag);
  append_big(out, static_cast<std::int32_t>(item.body.size()));
  out.insert(out.end(), item.body.begin(), item.body.end());
  append_big(out, static_cast<std::int16_t>(item.properties.size()));
  const ByteView properties = as_bytes(item.properties);
  out.insert(out.end(), properties.begin(), properties.end());
  return {};
}

}  // namespace polylog::format::rocketmq
