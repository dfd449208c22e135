#include "format/rocketmq/batch_body.h"

#include <gtest/gtest.h>

#include "bytes/endian.h"
#include "format/rocketmq/check_values.h"

namespace polylog::format::rocketmq {
namespace {

using check::Bytes;
using check::from_hex;

constexpr std::string_view two_items =
    "0000001d"
    "00000000"
    "00000000"
    "00000007"
    "00000002"
    "6869"
    "0005"
    "6101620261"
    "00000016"
    "00000000"
    "00000000"
    "00000000"
    "00000000"
    "0000";

TEST(BatchBodies, are_items_back_to_back) {
  const Bytes bytes = from_hex(two_items);
  std::vector<BatchItem> items;
  const auto done = for_each_batch_item(bytes, [&](const BatchItem& item) -> Result<void> {
    items.push_back(item);
    return {};
  });
  ASSERT_TRUE(done) << done.error().to_string();
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].flag, 7);
  EXPECT_EQ(as_text(items[0].body), "hi");
  EXPECT_EQ(items[0].properties,
            "a\x01"
            "b\x02"
            "a");
  EXPECT_TRUE(items[1].body.empty() && items[1].properties.empty());
  Bytes again;
  for (const BatchItem& item : items) ASSERT_TRUE(append_batch_item(item, again));
  EXPECT_EQ(again, bytes);
}

TEST(BatchBodies, total_size_is_not_looked_at) {
  Bytes bytes = from_hex(two_items);
  store_big(bytes.data(), std::int32_t{-1});
  ByteView rest(bytes);
  ASSERT_TRUE(take_batch_item(rest));
  EXPECT_EQ(rest.size(), batch_item_bytes_min);
}

TEST(BatchBodies, cut_anywhere_are_corrupt) {
  const Bytes bytes = from_hex(two_items);
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    if (size == 29) continue;  // between the two
    const auto done = for_each_batch_item(ByteView(bytes).first(size),
                                          [](const BatchItem&) -> Result<void> { return {}; });
    ASSERT_FALSE(done) << size;
    EXPECT_EQ(done.error().code, Errc::corrupt);
  }
}

TEST(BatchBodies, impossible_lengths_are_corrupt) {
  for (const std::int32_t length : {-1, 1000, 2147483647}) {
    Bytes bytes = from_hex(two_items);
    store_big(bytes.data() + 16, length);
    ByteView rest(bytes);
    EXPECT_EQ(take_batch_item(rest).error().code, Errc::corrupt);
    EXPECT_EQ(rest.size(), bytes.size());
  }
  Bytes bytes = from_hex(two_items);
  store_big(bytes.data() + 22, std::int16_t{-1});
  ByteView rest(bytes);
  EXPECT_EQ(take_batch_item(rest).error().code, Errc::corrupt);
}

TEST(BatchBodies, properties_of_32767_bytes_fit_and_one_more_do_not) {
  Bytes bytes;
  const std::string most(32'767, 'p');
  ASSERT_TRUE(append_batch_item({0, {}, most}, bytes));
  ByteView rest(bytes);
  EXPECT_EQ(take_batch_item(rest).value().properties, most);
  EXPECT_EQ(append_batch_item({0, {}, most + "p"}, bytes).error().code, Errc::too_large);
}

}  // namespace
}  // namespace polylog::format::rocketmq
