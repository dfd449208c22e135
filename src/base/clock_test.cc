#include "base/clock.h"

#include <gtest/gtest.h>

#include <chrono>

namespace polylog {
namespace {

TEST(SystemClock, wall_time_is_milliseconds_since_1970) {
  const auto expected = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  EXPECT_NEAR(static_cast<double>(SystemClock().now().value()),
              static_cast<double>(expected.count()), 5000.0);
}

TEST(SystemClock, steady_time_never_goes_back) {
  const SystemClock clock;
  std::int64_t last = clock.steady_ns();
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t at = clock.steady_ns();
    EXPECT_GE(at, last);
    last = at;
  }
}

TEST(ManualClock, moves_only_by_hand) {
  ManualClock clock{Timestamp(1000)};
  const std::int64_t started_ns = clock.steady_ns();
  EXPECT_EQ(clock.now(), Timestamp(1000));
  clock.advance_ms(25);
  EXPECT_EQ(clock.now(), Timestamp(1025));
  EXPECT_EQ(clock.steady_ns() - started_ns, 25'000'000);
}

TEST(ManualClock, a_jump_of_the_wall_leaves_steady_time_alone) {
  ManualClock clock{Timestamp(1000)};
  const std::int64_t started_ns = clock.steady_ns();
  clock.jump_wall_to(Timestamp(-5));
  EXPECT_EQ(clock.now(), Timestamp(-5));
  EXPECT_EQ(clock.steady_ns(), started_ns);
}

}  // namespace
}  // namespace polylog
