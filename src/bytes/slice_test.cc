#include "bytes/slice.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace polylog {
namespace {

TEST(Slice, takes_bytes_over_without_copying) {
  std::vector<std::uint8_t> bytes{1, 2, 3};
  const std::uint8_t* const at = bytes.data();
  const Slice slice = Slice::of(std::move(bytes));
  EXPECT_EQ(slice.data(), at);
  EXPECT_EQ(to_vector(slice.view()), (std::vector<std::uint8_t>{1, 2, 3}));
}

TEST(Slice, a_part_keeps_the_whole_alive) {
  std::weak_ptr<const void> watch;
  Slice part;
  {
    const Slice whole = Slice::copy_of(as_bytes("hello world"));
    watch = whole.owner();
    part = whole.sub(6, 5);
  }
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(as_text(part.view()), "world");
  part = {};
  EXPECT_TRUE(watch.expired());
}

TEST(Slice, parts_may_be_empty_and_reach_the_end) {
  const Slice slice = Slice::unowned(as_bytes("abc"));
  EXPECT_TRUE(slice.sub(3, 0).empty());
  EXPECT_EQ(as_text(slice.sub(1, 2).view()), "bc");
  EXPECT_EQ(slice.owner(), nullptr);
}

TEST(SliceDeathTest, a_part_outside_is_our_own_mistake) {
  const Slice slice = Slice::unowned(as_bytes("abc"));
  EXPECT_DEATH(slice.sub(2, 2), "assertion failed");
  EXPECT_DEATH(slice.sub(4, 0), "assertion failed");
  EXPECT_DEATH(slice.sub(1, static_cast<std::size_t>(-1)), "assertion failed");
}

}  // namespace
}  // namespace polylog
