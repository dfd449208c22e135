#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "server/log.h"
#include "server/metrics.h"
#include "server/net/frame_buffer.h"
#include "server/net/handler.h"

namespace polylog::server {

class Connection;

// What all connections of one listener share. Outlives them.
struct ConnectionShared {
  std::string protocol;             // for log lines and metrics: "kafka"
  FrameRules frames;
  // A connection stops reading while it has this many requests without an answer, or this many
  // bytes of answers that the peer does not take.
  std::size_t requests_in_flight_max = 1024;
  std::size_t answer_bytes_max = 4 * 1024 * 1024;
  std::map<std::string_view, RateLimit> refused_frames;  // by reason
  Counter* bytes_received = nullptr;
  Counter* bytes_sent = nullptr;
  // Called once for each connection, when its socket is closed.
  std::function<void(Connection&)> closed;
};

// One accepted connection: reads and hands frames to the handler one after the other, and lets
// answers out in request order, everything ready in one gathered write. Reactor only. Lives as
// long as somebody holds a slot, reads or writes.
//
// An idle one is a single object with one wait in it, about 1 KiB with its handler: a coroutine
// begins when a frame is complete and ends when none is left.
class Connection : public AnswerTarget {
 public:
  // Reads until the peer closes, the handler does, or finish() or close() is called.
  virtual void start() = 0;
  // Reads no more; closes once all answers are out.
  virtual void finish() = 0;
  virtual void close() = 0;
  // True when nothing was received or sent since `before_ns` and nobody here is at work for it.
  virtual bool idle_since(std::int64_t before_ns) const = 0;
};

}  // namespace polylog::server
