#include "fs/sim_content.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

namespace polylog::fs::sim {
namespace {

std::vector<std::uint8_t> bytes_of(const Content& content) {
  std::vector<std::uint8_t> bytes(content.size());
  EXPECT_EQ(content.read(0, bytes), bytes.size());
  return bytes;
}

TEST(SimContent, behaves_like_a_plain_vector_and_copies_stay_apart) {
  std::mt19937_64 random(7);
  std::vector<std::pair<Content, std::vector<std::uint8_t>>> all(1);
  for (int i = 0; i < 3000; ++i) {
    const std::size_t which = random() % all.size();
    auto& [content, model] = all[which];
    const std::size_t position = random() % 20'000;
    switch (random() % 4) {
      case 0: {
        content.resize(position);
        model.resize(position);
        break;
      }
      case 1: {
        if (all.size() < 8) {
          const auto copy = all[which];
          all.push_back(copy);
        } else {
          const auto copy = all[which];
          all[random() % all.size()] = copy;
        }
        break;
      }
      default: {
        const std::vector<std::uint8_t> bytes(random() % 9000, static_cast<std::uint8_t>(random()));
        content.write(position, bytes);
        if (!bytes.empty() && model.size() < position + bytes.size()) {
          model.resize(position + bytes.size());
        }
        std::copy(bytes.begin(), bytes.end(),
                  model.begin() + (bytes.empty() ? 0 : static_cast<std::ptrdiff_t>(position)));
      }
    }
    if (i % 50 != 0) continue;
    for (const auto& [one, expected] : all) ASSERT_EQ(bytes_of(one), expected);
  }
}

TEST(SimContent, holes_are_zeros_and_cost_nothing) {
  Content content;
  content.resize(Content::size_max);
  EXPECT_EQ(content.size(), Content::size_max);
  std::array<std::uint8_t, 4> into{1, 2, 3, 4};
  EXPECT_EQ(content.read(Content::size_max - 4, into), 4U);
  EXPECT_EQ(into, (std::array<std::uint8_t, 4>{}));
}

TEST(SimContent, comparison_looks_at_bytes_and_not_at_pages) {
  const std::vector<std::uint8_t> zeros(5000);
  Content a;
  Content b;
  a.resize(5000);
  b.write(0, zeros);
  EXPECT_TRUE(a == b);
  b.write(4999, as_bytes("x"));
  EXPECT_FALSE(a == b);
  a.resize(5001);
  EXPECT_FALSE(a == b);
}

}  // namespace
}  // namespace polylog::fs::sim
