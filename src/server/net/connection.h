#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "broker/async.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/net/frame_buffer.h"
#include "server/net/handler.h"

namespace polylog::server {

// What all connections of one listener share. Outlives them.
struct ConnectionShared {
  std::string protocol;             // for log lines and metrics: "kafka"
  CutFrame cut = nullptr;
  std::size_t frame_bytes_max = 0;  // body of one frame
  // A connection stops reading while it has this many requests without an answer, or this many
  // bytes of answers that the peer does not take.
  std::size_t requests_in_flight_max = 1024;
  std::size_t answer_bytes_max = 4 * 1024 * 1024;
  std::shared_ptr<BufferPool> buffers;
  std::map<std::string_view, RateLimit> refused_frames;  // by reason
  Counter* bytes_received = nullptr;
  Counter* bytes_sent = nullptr;
};

// One accepted connection: a coroutine that reads and hands frames to the handler one after the
// other, and a queue that lets answers out in request order, everything ready in one gathered
// write. Reactor only. Lives as long as somebody holds a slot, reads or writes.
class Connection : public AnswerTarget {
 public:
  class Socket;  // in the .cc: an accepted, non-blocking TCP socket

  // `closed` is called once, when the socket is.
  static std::shared_ptr<Connection> make(std::unique_ptr<Socket> socket, Peer peer,
                                          ConnectionShared& shared,
                                          std::shared_ptr<FrameHandler> handler,
                                          std::function<void(Connection&)> closed);
  ~Connection() override;

  // Reads until the peer closes, the handler does, or finish() or close() is called.
  void start();
  void answered(std::uint64_t sequence, Answer answer) override;
  // One timer, and only while muted: a muted connection costs no more than an idle one.
  void mute(std::int64_t ms) override;
  // Reads no more; closes once all answers are out.
  void finish();
  void close();
  // True when nothing was received or sent since `before_ns` and nobody here is at work for it.
  bool idle_since(std::int64_t before_ns) const;

 private:
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  static Async<void> read_loop(std::shared_ptr<Connection> self);
  static Async<void> hand_out(std::shared_ptr<Connection> self);
  static Async<void> wait_for_room(std::shared_ptr<Connection> self);
  static Async<void> wait_until_heard(std::shared_ptr<Connection> self);
  void flush_soon();
  void flush();
  void wait_until_writable();
  void close_if_done();

  std::unique_ptr<Impl> impl_;
};

}  // namespace polylog::server
