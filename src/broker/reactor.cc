#include "broker/reactor.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace polylog::broker {

namespace asio = boost::asio;

// ---------------------------------------------------------------------------------- Reactor

struct Reactor::Impl {
  // A timer with its task. Lives in `timers` until it has nothing more to do.
  struct Timer {
    explicit Timer(asio::io_context& context) : wait(context) {}
    asio::steady_timer wait;
    std::chrono::milliseconds period{0};  // 0: once
    std::function<void()> task;
    std::list<Timer>::iterator self;
  };

  // One thread runs the context, which lets Asio keep what a handler posts in a private queue.
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::list<Timer> timers;

  void add(std::int64_t first_ms, std::int64_t period_ms, std::function<void()> task) {
    Timer& timer = timers.emplace_back(context);
    timer.self = std::prev(timers.end());
    timer.period = std::chrono::milliseconds(period_ms);
    timer.task = std::move(task);
    timer.wait.expires_after(std::chrono::milliseconds(first_ms));
    arm(timer);
  }

  void arm(Timer& timer) {
    timer.wait.async_wait([this, &timer](const boost::system::error_code& error) {
      if (!error) fire(timer);
    });
  }

  void fire(Timer& timer) {
    if (timer.period.count() == 0) {
      const std::function<void()> task = std::move(timer.task);
      timers.erase(timer.self);
      task();
      return;
    }
    timer.task();
    const auto now = std::chrono::steady_clock::now();
    timer.wait.expires_at(std::max(timer.wait.expiry() + timer.period, now));
    arm(timer);
  }
};

Reactor::Reactor() : impl_(std::make_unique<Impl>()) {}
Reactor::~Reactor() = default;

asio::io_context& Reactor::context() { return impl_->context; }
void Reactor::run() { impl_->context.run(); }
void Reactor::stop() { impl_->context.stop(); }
void Reactor::post(std::function<void()> task) { asio::post(impl_->context, std::move(task)); }

void Reactor::every(std::int64_t period_ms, std::function<void()> task, std::int64_t first_ms) {
  const std::int64_t period = std::max<std::int64_t>(period_ms, 1);
  impl_->add(first_ms < 0 ? period : first_ms, period, std::move(task));
}

void Reactor::after(std::int64_t delay_ms, std::function<void()> task) {
  impl_->add(std::max<std::int64_t>(delay_ms, 0), 0, std::move(task));
}

// ------------------------------------------------------------------------------------- Pool

struct Pool::Impl {
  struct Job {
    std::function<void()> work;
    std::function<void()> done;  // posted to the reactor
  };

  explicit Impl(Reactor& reactor_in) : reactor(reactor_in) {}

  Reactor& reactor;
  std::mutex mutex;
  std::condition_variable more;
  std::condition_variable idle;
  std::deque<Job> jobs;
  std::size_t running = 0;
  bool stopping = false;
  std::vector<std::thread> threads;

  bool push(Job job, bool bounded) {
    {
      const std::lock_guard lock(mutex);
      if (bounded && jobs.size() >= queue_max) return false;
      jobs.push_back(std::move(job));
    }
    more.notify_one();
    return true;
  }

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      more.wait(lock, [this] { return stopping || !jobs.empty(); });
      if (jobs.empty()) return;
      Job job = std::move(jobs.front());
      jobs.pop_front();
      ++running;
      lock.unlock();
      job.work();
      job.work = nullptr;  // what it holds goes here and not on the reactor
      if (job.done) reactor.post(std::move(job.done));
      job.done = nullptr;
      lock.lock();
      --running;
      if (running == 0 && jobs.empty()) idle.notify_all();
    }
  }
};

Pool::Pool(Reactor& reactor, std::size_t threads) : impl_(std::make_unique<Impl>(reactor)) {
  for (std::size_t i = 0; i < std::max<std::size_t>(threads, 1); ++i) {
    impl_->threads.emplace_back([impl = impl_.get()] { impl->loop(); });
  }
}

Pool::~Pool() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->more.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
}

namespace {

// Starts a job for a suspended coroutine. The handler that resumes it moves only, a
// std::function must copy: hence the shared_ptr. Hooked to no cancellation slot on purpose.
template <typename Push>
struct StartJob {
  Push push;

  template <typename Handler>
  void operator()(Handler handler) {
    auto resume = std::make_shared<Handler>(std::move(handler));
    push([resume = std::move(resume)] { std::move(*resume)(); });
  }
};

}  // namespace

Async<void> Pool::run(std::function<void()> work) {
  auto push = [impl = impl_.get(), &work](std::function<void()> done) {
    impl->push({std::move(work), std::move(done)}, false);
  };
  StartJob<decltype(push)> start{std::move(push)};
  constexpr asio::use_awaitable_t<> token;
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(std::move(start), token);
}

bool Pool::submit(std::function<void()> work, std::function<void()> done) {
  return impl_->push({std::move(work), std::move(done)}, true);
}

void Pool::drain() {
  std::unique_lock lock(impl_->mutex);
  impl_->idle.wait(lock, [this] { return impl_->running == 0 && impl_->jobs.empty(); });
}

}  // namespace polylog::broker
