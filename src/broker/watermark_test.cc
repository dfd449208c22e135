#include "broker/watermark.h"

#include <chrono>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "broker/broker_fakes.h"

namespace polylog::broker {
namespace {

std::int64_t in_ms(std::int64_t ms) { return SystemClock().steady_ns() + ms * 1'000'000; }

struct WatermarkTest : testing::Test {
  Pending<Result<void>> reach(std::int64_t target, std::int64_t deadline = forever) {
    return Pending<Result<void>>(reactor, mark->reached(target, deadline));
  }
  void turn() { reactor.context().poll(); }

  Reactor reactor;
  std::unique_ptr<Watermark> mark = std::make_unique<Watermark>(reactor.context(), 10);
};

TEST_F(WatermarkTest, a_target_that_is_reached_needs_no_waiting) {
  auto at = reach(10);
  turn();
  ASSERT_TRUE(at.done());
  EXPECT_TRUE(at.get());
}

TEST_F(WatermarkTest, an_advance_wakes_those_it_passes_and_no_others) {
  auto low = reach(12);
  auto high = reach(13);
  turn();
  EXPECT_FALSE(low.done());
  mark->advance(12);
  turn();
  ASSERT_TRUE(low.done());
  EXPECT_TRUE(low.get());
  EXPECT_FALSE(high.done());
  mark->advance(20);
  turn();
  EXPECT_TRUE(high.done());
}

TEST_F(WatermarkTest, a_lower_value_is_ignored) {
  mark->advance(5);
  EXPECT_EQ(mark->value(), 10);
}

TEST_F(WatermarkTest, the_deadline_answers_timed_out) {
  auto waits = reach(11, in_ms(5));
  const Result<void> result = waits.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::timed_out);
  mark->advance(11);  // nobody is left to wake
}

TEST_F(WatermarkTest, a_deadline_in_the_past_answers_timed_out) {
  auto waits = reach(11, 0);
  const Result<void> result = waits.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::timed_out);
}

TEST_F(WatermarkTest, an_advance_before_the_expired_timer_is_handled_wins) {
  auto waits = reach(11, in_ms(2));
  turn();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  mark->advance(11);
  turn();
  ASSERT_TRUE(waits.done());
  EXPECT_TRUE(waits.get());
}

TEST_F(WatermarkTest, failing_beyond_a_position_leaves_those_below_it_waiting) {
  auto kept = reach(12);
  auto lost = reach(13);
  turn();
  mark->fail_beyond(12, Error{Errc::no_space, "full"});
  turn();
  EXPECT_FALSE(kept.done());
  ASSERT_TRUE(lost.done());
  EXPECT_EQ(lost.get().error().code, Errc::no_space);
  mark->advance(12);
  turn();
  EXPECT_TRUE(kept.get());
}

TEST_F(WatermarkTest, failed_waiters_do_not_stop_later_ones) {
  auto lost = reach(13);
  turn();
  mark->fail_waiters(Error{Errc::io, "bad"});
  auto later = reach(13);
  turn();
  EXPECT_FALSE(lost.get());
  EXPECT_FALSE(later.done());
  mark->advance(13);
  EXPECT_TRUE(later.get());
}

TEST_F(WatermarkTest, closing_fails_later_waits_beyond_the_value_only) {
  auto waits = reach(13);
  turn();
  mark->close(Error{Errc::io, "bad"});
  turn();
  EXPECT_EQ(waits.get().error().code, Errc::io);
  auto beyond = reach(11);
  auto within = reach(10);
  turn();
  EXPECT_EQ(beyond.get().error().code, Errc::io);
  EXPECT_TRUE(within.get());
}

TEST_F(WatermarkTest, destroying_it_wakes_whoever_waits) {
  auto waits = reach(13);
  turn();
  mark.reset();
  turn();
  ASSERT_TRUE(waits.done());
  EXPECT_EQ(waits.get().error().code, Errc::unavailable);
}

TEST(WatermarkShutdown, coroutines_that_still_wait_are_destroyed_with_the_reactor) {
  auto reactor = std::make_unique<Reactor>();
  Watermark mark(reactor->context(), 0);
  Pending<Result<void>> waits(*reactor, mark.reached(1, forever));
  reactor->context().poll();
  EXPECT_FALSE(waits.done());
  reactor.reset();  // the waiter takes itself off the watermark
  EXPECT_FALSE(waits.done());
}

struct SignalTest : testing::Test {
  Reactor reactor;
  Signal signal{reactor.context()};
};

TEST_F(SignalTest, a_raise_is_remembered_until_waited_for) {
  signal.raise();
  signal.raise();
  Pending<bool> first(reactor, signal.wait(in_ms(1000)));
  reactor.context().poll();
  ASSERT_TRUE(first.done());
  EXPECT_TRUE(first.get());
  Pending<bool> second(reactor, signal.wait(in_ms(5)));
  EXPECT_FALSE(second.get());
}

TEST_F(SignalTest, a_raise_wakes_the_waiter) {
  Pending<bool> waits(reactor, signal.wait(forever));
  reactor.context().poll();
  EXPECT_FALSE(waits.done());
  signal.raise();
  reactor.context().poll();
  ASSERT_TRUE(waits.done());
  EXPECT_TRUE(waits.get());
}

}  // namespace
}  // namespace polylog::broker
