#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "bytes/writer.h"

namespace polylog::cli {

// Frames over one TCP connection, blocking with a deadline for each call. Used by one thread.
//
// Errors, in words fit for a terminal: unavailable (cannot connect, or the other side closed),
// timed_out, io, too_large (a frame above `frame_bytes_max`). After one the connection is of no
// more use. unavailable with interrupted() set: the user asked to stop.
class Connection {
 public:
  static constexpr std::size_t frame_bytes_max = std::size_t{512} << 20;

  // `address` is HOST:PORT; HOST alone means Kafka's port, 9092. All addresses of the name are
  // tried within `timeout_ms`.
  static Result<std::unique_ptr<Connection>> open(const std::string& address,
                                                  std::int64_t timeout_ms);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // `frame` begins with its size. While the other side takes nothing because it wants to be read
  // first, what it sends stays in the socket.
  Result<void> send(const Chain& frame, std::int64_t timeout_ms);
  // The bytes behind the size.
  Result<Slice> receive(std::int64_t timeout_ms);

  const std::string& address() const { return address_; }
  int descriptor() const { return socket_; }  // for poll()

 private:
  Connection(int socket, std::string address) : socket_(socket), address_(std::move(address)) {}
  Result<void> wait(short events, std::int64_t deadline_ms);
  Result<void> write_all(ByteView bytes, std::int64_t deadline_ms);
  Result<void> read_all(MutableBytes into, std::int64_t deadline_ms);

  const int socket_;
  const std::string address_;
};

}  // namespace polylog::cli
