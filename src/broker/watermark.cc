#include "broker/watermark.h"

#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace polylog::broker {

namespace asio = boost::asio;

namespace {

// The deadline is the timer's expiry; a cancelled timer is the wake-up.
asio::steady_timer::time_point time_point_of(std::int64_t deadline_ns) {
  return asio::steady_timer::time_point(std::chrono::nanoseconds(deadline_ns));
}

Error timed_out() { return Error{Errc::timed_out, "the deadline passed first"}; }

}  // namespace

// -------------------------------------------------------------------------------- Watermark

struct Watermark::Impl {
  struct Waiter;
  using Waiters = std::multimap<std::int64_t, Waiter*>;

  // Lives in the frame of the waiting coroutine, which may be destroyed without being resumed.
  struct Waiter {
    Waiter(Impl& impl, std::int64_t target, std::int64_t deadline_ns)
        : timer(impl.context, time_point_of(deadline_ns)),
          owner(&impl),
          place(impl.waiters.emplace(target, this)) {}
    ~Waiter() {
      if (owner != nullptr) owner->waiters.erase(place);
    }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    void wake(Result<void> with) {
      owner = nullptr;
      outcome = std::move(with);
      timer.cancel();
    }

    asio::steady_timer timer;
    Impl* owner;  // null once woken: `place` is gone then, and the watermark may be
    Waiters::iterator place;
    Result<void> outcome = fail(timed_out());  // unless woken before
  };

  Impl(asio::io_context& context_in, std::int64_t value_in)
      : context(context_in), value(value_in) {}

  // Wakes whoever waits for more than `position`.
  void fail_beyond(std::int64_t position, const Error& error) {
    const auto first = waiters.upper_bound(position);
    for (auto it = first; it != waiters.end(); ++it) it->second->wake(fail(error));
    waiters.erase(first, waiters.end());
  }

  asio::io_context& context;
  std::int64_t value;
  Waiters waiters;  // all of them for more than `value`
  std::unique_ptr<const Error> closed;
};

Watermark::Watermark(asio::io_context& context, std::int64_t value)
    : impl_(std::make_unique<Impl>(context, value)) {}

Watermark::~Watermark() { fail_waiters(Error{Errc::unavailable, "shutting down"}); }

std::int64_t Watermark::value() const { return impl_->value; }

void Watermark::advance(std::int64_t to) {
  if (to <= impl_->value) return;
  impl_->value = to;
  auto& waiters = impl_->waiters;
  auto it = waiters.begin();
  for (; it != waiters.end() && it->first <= to; ++it) it->second->wake({});
  waiters.erase(waiters.begin(), it);
}

void Watermark::fail_waiters(const Error& error) { impl_->fail_beyond(impl_->value, error); }

void Watermark::fail_beyond(std::int64_t position, const Error& error) {
  impl_->fail_beyond(position, error);
}

void Watermark::close(const Error& error) {
  if (!impl_->closed) impl_->closed = std::make_unique<const Error>(error);
  fail_waiters(error);
}

Async<Result<void>> Watermark::reached(std::int64_t target, std::int64_t deadline_ns) {
  if (impl_->value >= target) co_return Result<void>();
  if (impl_->closed) co_return fail(*impl_->closed);
  Impl::Waiter waiter(*impl_, target, deadline_ns);
  boost::system::error_code ignored;
  auto token = asio::redirect_error(asio::use_awaitable, ignored);
  co_await waiter.timer.async_wait(token);
  // The watermark itself may be gone by now; the waiter knows.
  co_return std::move(waiter.outcome);
}

// ----------------------------------------------------------------------------------- Signal

struct Signal::Impl {
  explicit Impl(asio::io_context& context) : timer(context) {}
  asio::steady_timer timer;
  bool raised = false;
};

Signal::Signal(asio::io_context& context) : impl_(std::make_shared<Impl>(context)) {}

// Whoever waits holds the state and is woken with "not raised".
Signal::~Signal() { impl_->timer.cancel(); }

void Signal::raise() {
  if (std::exchange(impl_->raised, true)) return;
  impl_->timer.cancel();
}

Async<bool> Signal::wait(std::int64_t deadline_ns) {
  const std::shared_ptr<Impl> impl = impl_;
  if (!impl->raised) {
    impl->timer.expires_at(time_point_of(deadline_ns));
    boost::system::error_code ignored;
    auto token = asio::redirect_error(asio::use_awaitable, ignored);
    co_await impl->timer.async_wait(token);
  }
  const bool raised = std::exchange(impl->raised, false);
  co_return raised;
}

}  // namespace polylog::broker
