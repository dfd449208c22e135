#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "broker/async.h"
#include "bytes/slice.h"
#include "bytes/writer.h"

namespace polylog::server {

struct Peer {
  std::string ip;          // of the client
  std::uint16_t port = 0;  // of the client
  std::uint16_t local_port = 0;
  std::string local_host;  // the address the client reached us at, without brackets

  // Of the client, for log lines: 192.0.2.7:1234, [2001:db8::1]:1234.
  std::string address() const;
};

// How one request ends. Answers leave in the order of their requests; `last` (with bytes) and
// `close` (without) end the connection once everything before has left.
struct Answer {
  enum class Kind { bytes, none, last, close };
  Kind kind = Kind::none;
  Chain bytes;
};

// Takes answers in any order. Reactor only.
class AnswerTarget {
 public:
  virtual ~AnswerTarget() = default;
  virtual void answered(std::uint64_t sequence, Answer answer) = 0;
  // Nothing more is read from the peer, and no frame handed in, for so long from now; a longer
  // time that was asked for before stays.
  virtual void mute(std::int64_t ms) { static_cast<void>(ms); }
};

// The place of one answer in its connection's order. Used at most once; a slot that is destroyed
// unused closes the connection, so a client never waits for an answer that was lost. Using it
// after the connection has gone does nothing. Reactor only.
class ResponseSlot {
 public:
  ResponseSlot(std::shared_ptr<AnswerTarget> target, std::uint64_t sequence)
      : target_(std::move(target)), sequence_(sequence) {}
  ResponseSlot(ResponseSlot&&) noexcept = default;
  ResponseSlot& operator=(ResponseSlot&&) = delete;
  ~ResponseSlot() {
    if (target_) finish(Answer::Kind::close, {});
  }

  void send(Chain bytes) { finish(Answer::Kind::bytes, std::move(bytes)); }
  void send_last(Chain bytes) { finish(Answer::Kind::last, std::move(bytes)); }
  void send_nothing() { finish(Answer::Kind::none, {}); }
  // Of the connection, whatever becomes of this answer. Before it is given.
  void mute(std::int64_t ms) {
    if (target_) target_->mute(ms);
  }
  void close() { finish(Answer::Kind::close, {}); }

 private:
  void finish(Answer::Kind kind, Chain bytes) {
    const std::shared_ptr<AnswerTarget> target = std::exchange(target_, nullptr);
    if (target) target->answered(sequence_, Answer{kind, std::move(bytes)});
  }

  std::shared_ptr<AnswerTarget> target_;
  std::uint64_t sequence_;
};

// One connection's protocol. Reactor only.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  // The ordered part of one request: the next frame is not handed in before this returns. What
  // has to wait (acknowledgements, long polls) goes on in a coroutine of its own that holds the
  // slot. `frame` shares its memory with other frames; keep it only as long as it is needed.
  virtual Async<void> on_frame(Slice frame, ResponseSlot slot) = 0;
  // Called once, when no frame will follow: the peer sent its last, or the connection closes.
  // What waits for something to happen should answer now.
  virtual void on_end() {}
};
using MakeHandler = std::function<std::shared_ptr<FrameHandler>(std::shared_ptr<const Peer>)>;

// What a protocol says about the bytes at the front of the stream.
struct FrameCut {
  enum class Kind {
    more,    // the header is not complete
    frame,   // header_bytes, then body_bytes
    refuse,  // never a frame; `reason` (a literal) completes "closed: ..."
  };
  Kind kind = Kind::more;
  std::size_t header_bytes = 0;
  std::size_t body_bytes = 0;
  std::string_view reason;
};
using CutFrame = FrameCut (*)(ByteView head, std::size_t body_bytes_max);

// Frames of four big-endian length bytes and a body (Kafka wire protocol, "Framing"). A length
// nobody can mean is looked at once more, so that the log can name the likely mistake: TLS, HTTP
// or MQTT spoken to this port.
FrameCut cut_length_prefixed(ByteView head, std::size_t body_bytes_max);

}  // namespace polylog::server
