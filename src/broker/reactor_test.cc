#include "broker/reactor.h"

#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "broker/broker_fakes.h"

namespace polylog::broker {
namespace {

Async<std::pair<std::thread::id, std::thread::id>> threads_of(Pool& pool) {
  std::thread::id worker;
  std::function<void()> work = [&worker] { worker = std::this_thread::get_id(); };
  co_await pool.run(std::move(work));
  const std::pair<std::thread::id, std::thread::id> both{worker, std::this_thread::get_id()};
  co_return both;
}

TEST(Pool, works_on_its_thread_and_resumes_on_the_reactor) {
  Reactor reactor;
  Pool pool(reactor, 1);
  Pending<std::pair<std::thread::id, std::thread::id>> pending(reactor, threads_of(pool));
  const auto [worker, resumed] = pending.get();
  EXPECT_NE(worker, std::this_thread::get_id());
  EXPECT_NE(worker, std::thread::id());
  EXPECT_EQ(resumed, std::this_thread::get_id());
}

TEST(Pool, refuses_work_nobody_waits_for_when_the_queue_is_full) {
  Reactor reactor;
  std::atomic<std::size_t> ran = 0;
  std::size_t accepted = 0;
  {
    Pool pool(reactor, 1);
    std::promise<void> gate;
    auto opened = gate.get_future();
    std::promise<void> begun;
    pool.submit(
        [&] {
          begun.set_value();
          opened.wait();
        },
        nullptr);
    begun.get_future().wait();
    while (pool.submit([&ran] { ++ran; }, nullptr)) ++accepted;
    EXPECT_EQ(accepted, Pool::queue_max);
    gate.set_value();
    pool.drain();
    EXPECT_EQ(ran, accepted);
    EXPECT_TRUE(pool.submit([&ran] { ++ran; }, nullptr));
  }
  EXPECT_EQ(ran, accepted + 1);  // destruction finishes what is queued
}

TEST(Pool, posts_done_to_the_reactor) {
  Reactor reactor;
  Pool pool(reactor, 2);
  std::thread::id done_on;
  pool.submit([] {}, [&] { done_on = std::this_thread::get_id(); });
  pool.drain();
  EXPECT_EQ(done_on, std::thread::id());
  while (done_on == std::thread::id()) reactor.context().run_one();
  EXPECT_EQ(done_on, std::this_thread::get_id());
}

TEST(Pool, a_coroutine_destroyed_while_its_work_is_done_already_is_no_harm) {
  auto reactor = std::make_unique<Reactor>();
  auto pool = std::make_unique<Pool>(*reactor, 1);
  Pending<std::pair<std::thread::id, std::thread::id>> pending(*reactor, threads_of(*pool));
  reactor->context().poll_one();
  pool.reset();
  reactor.reset();
  EXPECT_FALSE(pending.done());
}

TEST(Reactor, a_posted_task_runs_behind_what_is_queued) {
  Reactor reactor;
  std::string order;
  reactor.post([&] {
    order += "a";
    reactor.post([&] { order += "c"; });
  });
  reactor.post([&] { order += "b"; });
  reactor.context().poll();
  EXPECT_EQ(order, "abc");
}

TEST(Reactor, every_runs_again_and_after_runs_once) {
  Reactor reactor;
  int often = 0;
  int once = 0;
  reactor.after(1, [&] { ++once; });
  reactor.every(2, [&] {
    if (++often == 5) reactor.stop();
  }, 0);
  reactor.run();
  EXPECT_EQ(often, 5);
  EXPECT_EQ(once, 1);
}

TEST(Reactor, stop_from_another_thread_ends_run) {
  Reactor reactor;
  std::thread other([&] { reactor.stop(); });
  reactor.run();
  other.join();
}

}  // namespace
}  // namespace polylog::broker
