#include "server/net/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>

#include "base/fifo.h"
#include "server/net/response_queue.h"
#include "server/net/socket.h"

namespace polylog::server {
namespace {

namespace asio = boost::asio;

constexpr std::size_t pieces_max = 256;  // of one gathered write; the system's limit is 1024

std::int64_t steady_now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

// What is on its way to the peer: chains in order, the first `sent` bytes gone already.
struct Outgoing {
  Fifo<Chain> chains;
  std::size_t sent = 0;   // of chains.front()
  std::size_t bytes = 0;  // not sent, of all

  void add(Chain chain) {
    bytes += chain.size();
    if (chain.size() > 0) chains.push_back(std::move(chain));
  }

  std::size_t gather(std::array<iovec, pieces_max>& pieces) const {
    std::size_t count = 0;
    std::size_t skip = sent;
    for (std::size_t i = 0; i < chains.size() && count < pieces.size(); ++i) {
      chains[i].for_each([&](ByteView piece) {
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

// Room for the one wait for readability that a connection has at a time. Asio lets go of an
// operation's memory before it calls the handler, which keeps the connection alive meanwhile.
struct WaitRoom {
  static constexpr std::size_t room_bytes = 128;
  alignas(std::max_align_t) std::byte room[room_bytes];
  bool taken = false;
};

template <typename T>
class WaitAllocator {
 public:
  using value_type = T;
  explicit WaitAllocator(WaitRoom& room) : room_(&room) {}
  template <typename U>
  explicit WaitAllocator(const WaitAllocator<U>& other) : room_(other.room()) {}

  T* allocate(std::size_t count) {
    if (room_->taken || count * sizeof(T) > WaitRoom::room_bytes) {
      return std::allocator<T>().allocate(count);
    }
    room_->taken = true;
    return static_cast<T*>(static_cast<void*>(room_->room));
  }
  void deallocate(T* memory, std::size_t count) {
    if (static_cast<void*>(memory) != room_->room) {
      return std::allocator<T>().deallocate(memory, count);
    }
    room_->taken = false;
  }
  WaitRoom* room() const { return room_; }
  friend bool operator==(const WaitAllocator& a, const WaitAllocator& b) {
    return a.room_ == b.room_;
  }

 private:
  WaitRoom* room_;
};

class TcpConnection final : public Connection,
                            public std::enable_shared_from_this<TcpConnection> {
 public:
  TcpConnection(TcpSocket socket, std::shared_ptr<const Peer> peer, ConnectionShared& shared,
                std::shared_ptr<FrameHandler> handler)
      : socket_(std::move(socket)),
        peer_(std::move(peer)),
        shared_(shared),
        frames_(shared.frames),
        handler_(std::move(handler)) {}

  void start() override { wait_until_readable(); }
  void answered(std::uint64_t sequence, Answer answer) override;
  // One timer, and only while muted: a muted connection costs no more than an idle one.
  void mute(std::int64_t ms) override;
  void finish() override;
  void close() override;
  bool idle_since(std::int64_t before_ns) const override;

 private:
  using Self = std::shared_ptr<TcpConnection>;

  void wait_until_readable();
  void readable();
  std::optional<Slice> next_frame();
  bool receive();
  void refuse(std::string_view reason);
  static Async<void> serve(Self self, std::optional<Slice> frame);
  static Async<void> wait_for_room(Self self);
  static Async<void> wait_until_heard(Self self);
  void flush_soon();
  void flush();
  void wait_until_writable();
  void close_if_done();

  void end() {
    if (!std::exchange(ended_, true)) handler_->on_end();
  }
  bool crowded() const {
    return queue_.unanswered() >= shared_.requests_in_flight_max ||
           queue_.held_bytes() + out_.bytes >= shared_.answer_bytes_max;
  }
  bool muted() const { return muted_until_ns_ != 0 && steady_now_ns() < muted_until_ns_; }
  void note_room() {
    if (room_ != nullptr && (closed_ || !crowded())) room_->cancel();
  }
  void note_end() {
    if (mute_ends_ != nullptr) mute_ends_->cancel();
  }

  TcpSocket socket_;
  const std::shared_ptr<const Peer> peer_;
  ConnectionShared& shared_;
  FrameBuffer frames_;
  std::shared_ptr<FrameHandler> handler_;

  ResponseQueue queue_;
  Outgoing out_;
  WaitRoom wait_room_;
  std::int64_t active_ns_ = steady_now_ns();
  std::int64_t muted_until_ns_ = 0;
  asio::steady_timer* room_ = nullptr;       // while frames wait for answers to leave
  asio::steady_timer* mute_ends_ = nullptr;  // while frames wait for that
  bool reading_ = true;                      // more may be asked for
  bool more_waiting_ = false;                // the last read filled its space
  bool closed_ = false;
  bool ended_ = false;  // the handler knows that no frame follows
  bool flush_posted_ = false;
  bool waits_writable_ = false;
  bool close_when_sent_ = false;
};

void TcpConnection::wait_until_readable() {
  frames_.rest();
  auto wake = [self = shared_from_this()](const boost::system::error_code& error) {
    if (error || !self->reading_) {
      self->finish();
    } else {
      self->readable();
    }
  };
  socket_.async_wait(TcpSocket::wait_read,
                     asio::bind_allocator(WaitAllocator<std::byte>(wait_room_), std::move(wake)));
}

void TcpConnection::readable() {
  more_waiting_ = true;
  std::optional<Slice> frame;
  if (!muted()) {
    frame = next_frame();
    if (!frame) return;
  }
  const asio::any_io_executor executor = socket_.get_executor();
  asio::co_spawn(executor, serve(shared_from_this(), std::move(frame)), asio::detached);
}

// Nothing: the connection waits for more, or has ended.
std::optional<Slice> TcpConnection::next_frame() {
  while (reading_) {
    FrameBuffer::Next next = frames_.next();
    if (next.kind == FrameCut::Kind::frame) return std::move(next.frame);
    if (next.kind == FrameCut::Kind::refuse) {
      refuse(next.reason);
      return std::nullopt;
    }
    if (!more_waiting_) {
      wait_until_readable();
      return std::nullopt;
    }
    if (!receive()) return std::nullopt;
  }
  finish();
  return std::nullopt;
}

// False: the connection has ended.
bool TcpConnection::receive() {
  const MutableBytes space = frames_.space();
  const ssize_t count = ::recv(socket_.native_handle(), space.data(), space.size(), MSG_DONTWAIT);
  if (count < 0) {
    more_waiting_ = errno == EINTR;
    if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) return true;
    close();
    return false;
  }
  if (count == 0) {  // the peer sends no more, but may still read answers
    finish();
    return false;
  }
  const auto received = static_cast<std::size_t>(count);
  more_waiting_ = received == space.size();
  frames_.received(received);
  shared_.bytes_received->add(received);
  active_ns_ = steady_now_ns();
  return true;
}

void TcpConnection::refuse(std::string_view reason) {
  log_warn(
      shared_.refused_frames[reason],
      shared_.protocol + ": closed " + peer_->address() + ": " + std::string(reason));
  close();
}

// Hands `frame` and every one that follows to the handler, one after the other. Without `frame`
// there is something to read for a connection that is muted.
Async<void> TcpConnection::serve(Self self, std::optional<Slice> frame) {
  bool something = true;  // is there to be read, or held
  while (self->reading_) {
    if (self->muted()) {
      if (!something && !frame && self->frames_.empty() && !self->more_waiting_) {
        self->wait_until_readable();
        co_return;
      }
      co_await wait_until_heard(self);
      continue;
    }
    if (!frame) {
      frame = self->next_frame();
      if (!frame) co_return;
    }
    if (self->crowded()) {
      co_await wait_for_room(self);
      continue;
    }
    // A close in the middle lets go of the connection's reference.
    const std::shared_ptr<FrameHandler> handler = self->handler_;
    Slice whole = std::move(*frame);
    frame.reset();
    ResponseSlot slot(self, self->queue_.open());
    co_await handler->on_frame(std::move(whole), std::move(slot));
    something = false;
  }
  self->finish();
}

Async<void> TcpConnection::wait_for_room(Self self) {
  asio::steady_timer room(self->socket_.get_executor());
  self->room_ = &room;
  while (!self->closed_ && self->crowded()) {
    room.expires_at(asio::steady_timer::time_point::max());
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await room.async_wait(token);
  }
  self->room_ = nullptr;
}

// The time may be extended, and the connection may end, meanwhile.
Async<void> TcpConnection::wait_until_heard(Self self) {
  asio::steady_timer mute_ends(self->socket_.get_executor());
  self->mute_ends_ = &mute_ends;
  while (self->reading_ && self->muted()) {
    const std::chrono::nanoseconds until(self->muted_until_ns_);
    mute_ends.expires_at(asio::steady_timer::time_point(until));
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await mute_ends.async_wait(token);
  }
  self->mute_ends_ = nullptr;
}

void TcpConnection::mute(std::int64_t ms) {
  const std::int64_t until_ns = steady_now_ns() + std::max<std::int64_t>(ms, 0) * 1'000'000;
  muted_until_ns_ = std::max(muted_until_ns_, until_ns);
}

void TcpConnection::answered(std::uint64_t sequence, Answer answer) {
  if (closed_) return;
  queue_.answer(sequence, std::move(answer));
  note_room();
  if (queue_.anything_ready()) flush_soon();
}

// At the end of the reactor's turn, so that all answers that became ready in it share one write.
void TcpConnection::flush_soon() {
  if (flush_posted_ || waits_writable_ || closed_) return;
  flush_posted_ = true;
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->flush_posted_ = false;
    if (!self->waits_writable_) self->flush();
  });
}

void TcpConnection::flush() {
  if (closed_) return;
  ResponseQueue::Ready ready = queue_.take_ready();
  for (Chain& chain : ready.chains) out_.add(std::move(chain));
  if (ready.close) {
    close_when_sent_ = true;
    reading_ = false;
  }
  while (!out_.chains.empty()) {
    std::array<iovec, pieces_max> pieces;
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = out_.gather(pieces);
    const ssize_t count =
        ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return wait_until_writable();
      return close();
    }
    out_.advance(static_cast<std::size_t>(count));
    shared_.bytes_sent->add(static_cast<std::uint64_t>(count));
    active_ns_ = steady_now_ns();
  }
  note_room();
  close_if_done();
}

void TcpConnection::wait_until_writable() {
  waits_writable_ = true;
  note_room();
  socket_.async_wait(TcpSocket::wait_write,
                     [self = shared_from_this()](const boost::system::error_code&) {
                       self->waits_writable_ = false;
                       self->flush();
                     });
}

void TcpConnection::close_if_done() {
  if (!out_.chains.empty()) return;
  if (close_when_sent_ || (!reading_ && queue_.empty())) close();
}

void TcpConnection::finish() {
  if (closed_) return;
  end();
  const bool was_reading = std::exchange(reading_, false);
  // Also wakes a wait for writability, which then just tries again.
  boost::system::error_code ignored;
  if (was_reading) socket_.cancel(ignored);
  note_room();
  note_end();
  close_if_done();
}

void TcpConnection::close() {
  if (closed_) return;
  const Self self = shared_from_this();
  closed_ = true;
  reading_ = false;
  end();
  boost::system::error_code ignored;
  socket_.close(ignored);
  out_ = {};
  queue_ = {};
  note_room();
  note_end();
  handler_ = nullptr;
  shared_.closed(*this);
}

bool TcpConnection::idle_since(std::int64_t before_ns) const {
  const bool working = queue_.unanswered() > 0 && out_.chains.empty();
  return active_ns_ < before_ns && !working;
}

}  // namespace

std::shared_ptr<Connection> make_connection(TcpSocket socket, std::shared_ptr<const Peer> peer,
                                            ConnectionShared& shared,
                                            std::shared_ptr<FrameHandler> handler) {
  return std::make_shared<TcpConnection>(std::move(socket), std::move(peer), shared,
                                         std::move(handler));
}

}  // namespace polylog::server
