#include "base/fifo.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

namespace polylog {
namespace {

TEST(Fifo, does_what_a_deque_does) {
  std::mt19937 random(1);
  Fifo<std::shared_ptr<int>> fifo;
  std::deque<int> model;
  for (int i = 0; i < 20'000; ++i) {
    // Longer and shorter in turn.
    const unsigned grows = (i / 500) % 2 == 0 ? 60 : 40;
    if (random() % 100 < grows) {
      fifo.push_back(std::make_shared<int>(i));
      model.push_back(i);
    } else if (!model.empty()) {
      ASSERT_EQ(*fifo.front(), model.front());
      fifo.pop_front();
      model.pop_front();
    }
    ASSERT_EQ(fifo.size(), model.size());
    ASSERT_EQ(fifo.empty(), model.empty());
    if (!model.empty()) {
      const std::size_t at = random() % model.size();
      ASSERT_EQ(*fifo[at], model[at]);
    }
  }
}

TEST(Fifo, what_is_erased_leaves_the_others_in_order) {
  Fifo<std::shared_ptr<int>> fifo;
  for (int i = 0; i < 10; ++i) fifo.push_back(std::make_shared<int>(i));
  for (int i = 0; i < 3; ++i) fifo.pop_front();
  fifo.erase_if([](const auto& item) { return *item % 2 == 0; });
  ASSERT_EQ(fifo.size(), 4U);
  for (std::size_t i = 0; i < fifo.size(); ++i) EXPECT_EQ(*fifo[i], 3 + 2 * static_cast<int>(i));
}

TEST(Fifo, what_was_taken_out_is_let_go_at_once) {
  Fifo<std::shared_ptr<int>> fifo;
  const auto first = std::make_shared<int>(1);
  fifo.push_back(first);
  fifo.push_back(std::make_shared<int>(2));
  fifo.pop_front();
  EXPECT_EQ(first.use_count(), 1);
}

}  // namespace
}  // namespace polylog
