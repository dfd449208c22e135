#include "broker/quotas/rate.h"

#include <gtest/gtest.h>

namespace polylog::broker::quotas {
namespace {

constexpr Windows windows;  // eleven of a second

TEST(SampledRate, a_first_burst_is_averaged_over_all_windows_but_one) {
  SampledRate rate;
  rate.record(1000, 5000, windows);
  EXPECT_DOUBLE_EQ(rate.per_second(5000, windows), 100);
  EXPECT_EQ(rate.wait_ms(100, 5000, windows), 0);
  rate.record(500, 5000, windows);
  // 150 a second instead of 100 over ten seconds: silent for five more
  EXPECT_EQ(rate.wait_ms(100, 5000, windows), 5000);
}

TEST(SampledRate, it_is_back_at_its_limit_after_the_wait) {
  SampledRate rate;
  rate.record(1500, 0, windows);
  const std::int64_t wait = rate.wait_ms(100, 0, windows);
  ASSERT_EQ(wait, 5000);
  EXPECT_LE(rate.per_second(10'999, windows), 150.0);
  EXPECT_EQ(rate.per_second(11'000, windows), 0) << "the window is past";
}

TEST(SampledRate, a_steady_use_at_the_limit_never_waits) {
  SampledRate rate;
  for (std::int64_t now = 0; now < 60'000; now += 100) {
    rate.record(10, now, windows);
    EXPECT_EQ(rate.wait_ms(101, now, windows), 0) << now;
  }
  EXPECT_NEAR(rate.per_second(60'000, windows), 100, 10);
}

// What a client that waits as told gets through in a minute is what its limit allows.
TEST(SampledRate, who_waits_as_told_keeps_to_the_limit) {
  SampledRate rate;
  const Windows two{2, 1000};
  double passed = 0;
  std::int64_t now = 0;
  while (now < 60'000) {
    rate.record(70, now, two);
    passed += 70;
    now += 1 + rate.wait_ms(100, now, two);
  }
  EXPECT_NEAR(passed, 6000, 600);
}

TEST(SampledRate, what_is_taken_back_does_not_count) {
  SampledRate rate;
  rate.record(1000, 0, windows);
  rate.record(5000, 100, windows);
  rate.record(-5000, 100, windows);
  EXPECT_EQ(rate.wait_ms(100, 100, windows), 0);
  EXPECT_FALSE(rate.empty(100, windows));
  EXPECT_TRUE(rate.empty(11'001, windows));
}

TEST(SampledRate, no_wait_is_longer_than_a_response_can_say) {
  SampledRate rate;
  rate.record(1e18, 0, windows);
  EXPECT_EQ(rate.wait_ms(1e-6, 0, windows), INT32_MAX);
}

TEST(TokenBucket, a_burst_is_free_and_what_goes_beyond_is_waited_for) {
  TokenBucket tokens;
  tokens.take(110, 10, 777, windows);
  EXPECT_EQ(tokens.wait_ms(10, 777, windows), 0) << "11 s of 10 a second were saved up";
  tokens.take(60, 10, 777, windows);
  EXPECT_EQ(tokens.wait_ms(10, 777, windows), 6000);
  EXPECT_EQ(tokens.wait_ms(10, 4777, windows), 2000);
  EXPECT_EQ(tokens.wait_ms(10, 6777, windows), 0);
}

TEST(TokenBucket, no_more_is_saved_up_than_the_windows_give) {
  TokenBucket tokens;
  tokens.take(1, 10, 0, windows);
  tokens.take(111, 10, 1'000'000, windows);
  EXPECT_EQ(tokens.wait_ms(10, 1'000'000, windows), 100);
}

}  // namespace
}  // namespace polylog::broker::quotas
