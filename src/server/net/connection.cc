#include "server/net/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <deque>

#include "server/net/response_queue.h"
#include "server/net/socket.h"

namespace polylog::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::size_t pieces_max = 256;  // of one gathered write; the system's limit is 1024

std::int64_t steady_now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

// What is on its way to the peer: chains in order, the first `sent` bytes gone already.
struct Outgoing {
  std::deque<Chain> chains;
  std::size_t sent = 0;   // of chains.front()
  std::size_t bytes = 0;  // not sent, of all

  void add(Chain chain) {
    bytes += chain.size();
    if (chain.size() > 0) chains.push_back(std::move(chain));
  }

  std::size_t gather(std::array<iovec, pieces_max>& pieces) const {
    std::size_t count = 0;
    std::size_t skip = sent;
    for (const Chain& chain : chains) {
      if (count == pieces.size()) break;
      chain.for_each([&](ByteView piece) {
        const std::size_t skipped = std::min(skip, piece.size());
        skip -= skipped;
        piece = piece.subspan(skipped);
        if (piece.empty() || count == pieces.size()) return;
        pieces[count++] = {const_cast<std::uint8_t*>(piece.data()), piece.size()};
      });
    }
    return count;
  }

  void advance(std::size_t count) {
    bytes -= count;
    sent += count;
    while (!chains.empty() && sent >= chains.front().size()) {
      sent -= chains.front().size();
      chains.pop_front();
    }
  }
};

}  // namespace

struct Connection::Impl {
  Impl(std::unique_ptr<Socket> socket_in, Peer peer_in, ConnectionShared& shared_in,
       std::shared_ptr<FrameHandler> handler_in, std::function<void(Connection&)> closed_in)
      : socket(std::move(socket_in)),
        peer(std::move(peer_in)),
        shared(shared_in),
        frames(shared.buffers, shared.cut, shared.frame_bytes_max),
        handler(std::move(handler_in)),
        on_closed(std::move(closed_in)) {}

  std::unique_ptr<Socket> socket;
  Peer peer;
  ConnectionShared& shared;
  FrameBuffer frames;
  std::shared_ptr<FrameHandler> handler;
  std::function<void(Connection&)> on_closed;
  std::weak_ptr<Connection> self;

  ResponseQueue queue;
  Outgoing out;
  std::int64_t active_ns = steady_now_ns();
  bool reading = true;         // the read loop may ask for more
  bool closed = false;
  bool ended = false;          // the handler knows that no frame follows
  bool flush_posted = false;
  bool waits_writable = false;
  bool close_when_sent = false;
  std::unique_ptr<asio::steady_timer> room;  // while the read loop waits for answers to leave
  std::int64_t muted_until_ns = 0;
  std::unique_ptr<asio::steady_timer> mute_ends;  // while the read loop waits for that

  void end() {
    if (!std::exchange(ended, true)) handler->on_end();
  }
  bool crowded() const {
    return queue.unanswered() >= shared.requests_in_flight_max ||
           queue.held_bytes() + out.bytes >= shared.answer_bytes_max;
  }
  bool muted() const { return muted_until_ns != 0 && steady_now_ns() < muted_until_ns; }
  void note_room() {
    if (room && (closed || !crowded())) room->cancel();
  }
  void note_end() {
    if (mute_ends) mute_ends->cancel();
  }
};

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

std::shared_ptr<Connection> Connection::make(std::unique_ptr<Socket> socket, Peer peer,
                                             ConnectionShared& shared,
                                             std::shared_ptr<FrameHandler> handler,
                                             std::function<void(Connection&)> closed) {
  auto impl = std::make_unique<Impl>(std::move(socket), std::move(peer), shared,
                                     std::move(handler), std::move(closed));
  std::shared_ptr<Connection> self(new Connection(std::move(impl)));
  self->impl_->self = self;
  return self;
}

void Connection::start() {
  asio::co_spawn(impl_->socket->tcp.get_executor(), read_loop(impl_->self.lock()),
                 asio::detached);
}

Async<void> Connection::read_loop(std::shared_ptr<Connection> self) {
  Impl& impl = *self->impl_;
  bool more_waiting = false;  // the last read filled its space
  while (impl.reading) {
    if (!more_waiting) {
      impl.frames.rest();
      boost::system::error_code error;
      auto token = asio::redirect_error(asio::use_awaitable, error);
      co_await impl.socket->tcp.async_wait(tcp::socket::wait_read, token);
      if (error || !impl.reading) break;
    }
    if (impl.muted()) {
      co_await wait_until_heard(self);
      if (!impl.reading) break;
    }
    const MutableBytes space = impl.frames.space();
    const int descriptor = impl.socket->tcp.native_handle();
    const ssize_t count = ::recv(descriptor, space.data(), space.size(), MSG_DONTWAIT);
    if (count < 0) {
      more_waiting = errno == EINTR;
      if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) continue;
      self->close();
      co_return;
    }
    if (count == 0) break;  // the peer sends no more, but may still read answers
    const auto received = static_cast<std::size_t>(count);
    more_waiting = received == space.size();
    impl.frames.received(received);
    impl.shared.bytes_received->add(received);
    impl.active_ns = steady_now_ns();
    co_await hand_out(self);
  }
  self->finish();
}

// Hands every complete frame to the handler, one after the other.
Async<void> Connection::hand_out(std::shared_ptr<Connection> self) {
  Impl& impl = *self->impl_;
  while (impl.reading) {
    FrameBuffer::Next next = impl.frames.next();
    if (next.kind == FrameCut::Kind::more) co_return;
    if (next.kind == FrameCut::Kind::refuse) {
      log_warn(impl.shared.refused_frames[next.reason],
               impl.shared.protocol + ": closed " + impl.peer.address + ": " +
                   std::string(next.reason));
      self->close();
      co_return;
    }
    if (impl.crowded()) {
      co_await wait_for_room(self);
      if (!impl.reading) co_return;
    }
    if (impl.muted()) {
      co_await wait_until_heard(self);
      if (!impl.reading) co_return;
    }
    // A close in the middle lets go of the connection's reference.
    const std::shared_ptr<FrameHandler> handler = impl.handler;
    Slice frame = std::move(next.frame);
    ResponseSlot slot(self, impl.queue.open());
    co_await handler->on_frame(std::move(frame), std::move(slot));
  }
}

Async<void> Connection::wait_for_room(std::shared_ptr<Connection> self) {
  Impl& impl = *self->impl_;
  impl.room = std::make_unique<asio::steady_timer>(impl.socket->tcp.get_executor());
  while (!impl.closed && impl.crowded()) {
    impl.room->expires_at(asio::steady_timer::time_point::max());
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await impl.room->async_wait(token);
  }
  impl.room = nullptr;
}

// The time may be extended, and the connection may end, meanwhile.
Async<void> Connection::wait_until_heard(std::shared_ptr<Connection> self) {
  Impl& impl = *self->impl_;
  impl.mute_ends = std::make_unique<asio::steady_timer>(impl.socket->tcp.get_executor());
  while (impl.reading && impl.muted()) {
    const std::chrono::nanoseconds until(impl.muted_until_ns);
    impl.mute_ends->expires_at(asio::steady_timer::time_point(until));
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await impl.mute_ends->async_wait(token);
  }
  impl.mute_ends = nullptr;
}

void Connection::mute(std::int64_t ms) {
  const std::int64_t until_ns = steady_now_ns() + std::max<std::int64_t>(ms, 0) * 1'000'000;
  impl_->muted_until_ns = std::max(impl_->muted_until_ns, until_ns);
}

void Connection::answered(std::uint64_t sequence, Answer answer) {
  if (impl_->closed) return;
  impl_->queue.answer(sequence, std::move(answer));
  impl_->note_room();
  if (impl_->queue.anything_ready()) flush_soon();
}

// At the end of the reactor's turn, so that all answers that became ready in it share one write.
void Connection::flush_soon() {
  if (impl_->flush_posted || impl_->waits_writable || impl_->closed) return;
  impl_->flush_posted = true;
  const std::shared_ptr<Connection> self = impl_->self.lock();
  if (!self) return;
  asio::post(impl_->socket->tcp.get_executor(), [self] {
    self->impl_->flush_posted = false;
    if (!self->impl_->waits_writable) self->flush();
  });
}

void Connection::flush() {
  Impl& impl = *impl_;
  if (impl.closed) return;
  ResponseQueue::Ready ready = impl.queue.take_ready();
  for (Chain& chain : ready.chains) impl.out.add(std::move(chain));
  if (ready.close) {
    impl.close_when_sent = true;
    impl.reading = false;
  }
  while (!impl.out.chains.empty()) {
    std::array<iovec, pieces_max> pieces;
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = impl.out.gather(pieces);
    const int descriptor = impl.socket->tcp.native_handle();
    const ssize_t count = ::sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return wait_until_writable();
      return close();
    }
    impl.out.advance(static_cast<std::size_t>(count));
    impl.shared.bytes_sent->add(static_cast<std::uint64_t>(count));
    impl.active_ns = steady_now_ns();
  }
  impl.note_room();
  close_if_done();
}

void Connection::wait_until_writable() {
  impl_->waits_writable = true;
  impl_->note_room();
  const std::shared_ptr<Connection> self = impl_->self.lock();
  if (!self) return;
  impl_->socket->tcp.async_wait(tcp::socket::wait_write,
                                [self](const boost::system::error_code&) {
                                  self->impl_->waits_writable = false;
                                  self->flush();
                                });
}

void Connection::close_if_done() {
  Impl& impl = *impl_;
  if (!impl.out.chains.empty()) return;
  if (impl.close_when_sent || (!impl.reading && impl.queue.empty())) close();
}

void Connection::finish() {
  if (impl_->closed) return;
  impl_->end();
  const bool was_reading = std::exchange(impl_->reading, false);
  // Also wakes a wait for writability, which then just tries again.
  boost::system::error_code ignored;
  if (was_reading) impl_->socket->tcp.cancel(ignored);
  impl_->note_room();
  impl_->note_end();
  close_if_done();
}

void Connection::close() {
  Impl& impl = *impl_;
  if (impl.closed) return;
  const std::shared_ptr<Connection> self = impl.self.lock();
  impl.closed = true;
  impl.reading = false;
  impl.end();
  boost::system::error_code ignored;
  impl.socket->tcp.close(ignored);
  impl.out = {};
  impl.queue = {};
  impl.note_room();
  impl.note_end();
  impl.handler = nullptr;
  const auto on_closed = std::exchange(impl.on_closed, nullptr);
  if (on_closed && self) on_closed(*self);
}

bool Connection::idle_since(std::int64_t before_ns) const {
  const bool working = impl_->queue.unanswered() > 0 && impl_->out.chains.empty();
  return impl_->active_ns < before_ns && !working;
}

}  // namespace polylog::server
