#include "cli/connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>

#include "bytes/endian.h"
#include "cli/interrupt.h"
#include "server/net/listener.h"

namespace polylog::cli {
namespace {

// What is taken at once for a frame whose bytes have not arrived yet.
constexpr std::size_t receive_step_bytes = 1 << 20;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string reason(int code) { return std::strerror(code); }

// True when `events` came; false when the time is over.
Result<bool> poll_until(int socket, short events, std::int64_t deadline_ms) {
  for (;;) {
    pollfd waiting{socket, events, 0};
    const std::int64_t left = std::clamp<std::int64_t>(deadline_ms - now_ms(), 0, INT_MAX);
    const int ready = ::poll(&waiting, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return fail(Errc::io, "poll: " + reason(errno));
    if (interrupted()) return fail(Errc::unavailable, "interrupted");
  }
}

// A connected socket, or the reason why there is none.
Result<int> connect_to(const addrinfo& target, std::int64_t deadline_ms) {
  const int socket = ::socket(target.ai_family, target.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                              target.ai_protocol);
  if (socket < 0) return fail(Errc::unavailable, reason(errno));
  int error = ::connect(socket, target.ai_addr, target.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    const Result<bool> ready = poll_until(socket, POLLOUT, deadline_ms);
    if (!ready || !*ready) {
      ::close(socket);
      return ready ? fail(Errc::timed_out, "no answer in time") : fail(ready.error());
    }
    socklen_t size = sizeof error;
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) {
    ::close(socket);
    return fail(Errc::unavailable, reason(error));
  }
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const std::string& address,
                                                     std::int64_t timeout_ms) {
  const bool no_port = address.find(':') == std::string::npos && !address.empty();
  const std::string full = no_port ? address + ":9092" : address;
  POLYLOG_ASSIGN(target, server::parse_host_port(full));
  if (target.host.empty()) target.host = "localhost";
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int unresolved =
      ::getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, &found);
  if (unresolved != 0) {
    return fail(Errc::unavailable, "cannot find " + target.host + ": " +
                                       ::gai_strerror(unresolved) +
                                       "; -b HOST:PORT names a broker");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  const std::int64_t deadline_ms = now_ms() + timeout_ms;
  Error last{Errc::unavailable, "no address"};
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Result<int> socket = connect_to(*each, deadline_ms);
    if (socket) return std::unique_ptr<Connection>(new Connection(*socket, full));
    last = socket.error();
  }
  return fail(last.code, "cannot connect to " + full + ": " + last.context +
                             "; is a broker running there? `polylog serve` starts one, "
                             "-b HOST:PORT names another");
}

Connection::~Connection() { ::close(socket_); }

Result<void> Connection::wait(short events, std::int64_t deadline_ms) {
  POLYLOG_ASSIGN(ready, poll_until(socket_, events, deadline_ms));
  if (!ready) return fail(Errc::timed_out, address_ + " did not answer in time");
  return {};
}

Result<void> Connection::write_all(ByteView bytes, std::int64_t deadline_ms) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      POLYLOG_TRY(wait(POLLOUT, deadline_ms));
    } else if (errno != EINTR) {
      return fail(Errc::unavailable, "the connection to " + address_ + " broke: " + reason(errno));
    }
  }
  return {};
}

Result<void> Connection::read_all(MutableBytes into, std::int64_t deadline_ms) {
  while (!into.empty()) {
    const ssize_t got = ::recv(socket_, into.data(), into.size(), 0);
    if (got > 0) {
      into = into.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return fail(Errc::unavailable, address_ + " closed the connection");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      POLYLOG_TRY(wait(POLLIN, deadline_ms));
    } else if (errno != EINTR) {
      return fail(Errc::unavailable, "the connection to " + address_ + " broke: " + reason(errno));
    }
  }
  return {};
}

Result<void> Connection::send(const Chain& frame, std::int64_t timeout_ms) {
  const std::int64_t deadline_ms = now_ms() + timeout_ms;
  Result<void> sent;
  frame.for_each([&](ByteView piece) {
    if (sent) sent = write_all(piece, deadline_ms);
  });
  return sent;
}

Result<Slice> Connection::receive(std::int64_t timeout_ms) {
  const std::int64_t deadline_ms = now_ms() + timeout_ms;
  std::array<std::uint8_t, 4> prefix{};
  POLYLOG_TRY(read_all(prefix, deadline_ms));
  const auto announced = load_big<std::uint32_t>(prefix.data());
  if (announced > frame_bytes_max) {
    return fail(Errc::too_large, address_ + " announces an answer of " + std::to_string(announced) +
                                     " bytes; does it speak Kafka's protocol?");
  }
  std::vector<std::uint8_t> frame;
  while (frame.size() < announced) {
    const std::size_t at = frame.size();
    const std::size_t step =
        std::min<std::size_t>(std::max(receive_step_bytes, at), announced - at);
    frame.resize(at + step);
    POLYLOG_TRY(read_all(MutableBytes(frame).subspan(at), deadline_ms));
  }
  return Slice::of(std::move(frame));
}

}  // namespace polylog::cli
