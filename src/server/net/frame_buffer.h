#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "bytes/slice.h"
#include "server/net/handler.h"

namespace polylog::server {

// Blocks of one size for socket reads, handed out and taken back. Blocks come back from
// whichever thread drops the last slice into them.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static constexpr std::size_t block_bytes = 64 * 1024;

  struct Block {
    std::uint8_t bytes[block_bytes];
  };

  std::shared_ptr<Block> take();
  std::size_t idle_blocks() const;

 private:
  void give_back(std::unique_ptr<Block> block);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> idle_;
};

// How the connections of one listener cut what arrives.
struct FrameRules {
  std::shared_ptr<BufferPool> buffers;
  CutFrame cut = nullptr;
  std::size_t frame_bytes_max = 0;  // body of one frame
};

// Turns what arrives on a connection into frames without copying them: one read may bring many
// frames, which then share a pooled block. A frame larger than a block gets memory of its own
// that grows with what was really received, so an announced length costs nothing. An idle
// connection holds no block. Reactor only.
class FrameBuffer {
 public:
  // Memory beyond what has arrived that an incomplete large frame may hold.
  static constexpr std::size_t growth_bytes = 1024 * 1024;

  // `rules` outlives the buffer.
  explicit FrameBuffer(const FrameRules& rules);
  ~FrameBuffer();

  // Where the next read goes; never empty. Only after next() said `more`.
  MutableBytes space();
  void received(std::size_t count);

  struct Next {
    FrameCut::Kind kind = FrameCut::Kind::more;
    Slice frame;              // the body, without the length
    std::string_view reason;  // of a refusal
  };
  Next next();

  // Nothing of an unfinished frame is here.
  bool empty() const { return large_ == nullptr && from_ == to_; }
  // Gives the block back when empty.
  void rest();

 private:
  class Large;
  void begin_large(const FrameCut& cut);
  void renew_block();

  const FrameRules& rules_;
  std::shared_ptr<BufferPool::Block> block_;
  std::size_t from_ = 0;  // [from_, to_) of the block has arrived and is not cut yet
  std::size_t to_ = 0;
  std::size_t wanted_ = 0;  // bytes of the frame at from_, header included; 0 unknown
  std::shared_ptr<Large> large_;
};

}  // namespace polylog::server
