#include "server/net/frame_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/assert.h"

namespace polylog::server {
namespace {

constexpr std::size_t idle_blocks_max = 32;
// A read into less room than this costs more in system calls than a fresh block does.
constexpr std::size_t room_bytes_min = 8 * 1024;
// Memory that an unfinished large frame may hold for each byte of it that has arrived.
constexpr std::size_t growth_per_byte = 32;

}  // namespace

std::shared_ptr<BufferPool::Block> BufferPool::take() {
  std::unique_ptr<Block> block;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      block = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  // Not make_unique: that would clear 64 KiB which the socket is about to overwrite.
  if (!block) block.reset(new Block);
  return std::shared_ptr<Block>(block.release(), [pool = shared_from_this()](Block* returned) {
    pool->give_back(std::unique_ptr<Block>(returned));
  });
}

void BufferPool::give_back(std::unique_ptr<Block> block) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < idle_blocks_max) idle_.push_back(std::move(block));
}

std::size_t BufferPool::idle_blocks() const {
  const std::lock_guard lock(mutex_);
  return idle_.size();
}

// One frame beyond block size. Grows by realloc, which moves pages instead of bytes at these
// sizes.
class FrameBuffer::Large {
 public:
  Large(std::size_t header_bytes, std::size_t frame_bytes)
      : header_bytes_(header_bytes), frame_bytes_(frame_bytes) {}
  Large(const Large&) = delete;
  Large& operator=(const Large&) = delete;
  ~Large() { std::free(bytes_); }

  void append(ByteView bytes) {
    while (!bytes.empty()) {
      const MutableBytes room = space(bytes.size());
      const std::size_t count = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), count);
      received_ += count;
      bytes = bytes.subspan(count);
    }
  }

  // `coming`: what is here already and about to be received. Whoever only announces much gets
  // little; whoever sends much gets large steps.
  MutableBytes space(std::size_t coming = 0) {
    if (received_ == capacity_) {
      const std::size_t ahead = std::clamp((received_ + coming) * growth_per_byte,
                                           BufferPool::block_bytes / 2, growth_bytes);
      capacity_ = std::min(frame_bytes_, received_ + ahead);
      void* grown = std::realloc(bytes_, capacity_);
      if (grown == nullptr) throw std::bad_alloc();
      bytes_ = static_cast<std::uint8_t*>(grown);
    }
    return {bytes_ + received_, capacity_ - received_};
  }

  void received(std::size_t count) { received_ += count; }
  bool complete() const { return received_ == frame_bytes_; }
  ByteView body() const {
    return ByteView(bytes_, frame_bytes_).subspan(header_bytes_);
  }

 private:
  std::size_t header_bytes_;
  std::size_t frame_bytes_;
  std::uint8_t* bytes_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t received_ = 0;
};

FrameBuffer::FrameBuffer(const FrameRules& rules) : rules_(rules) {}
FrameBuffer::~FrameBuffer() = default;

MutableBytes FrameBuffer::space() {
  if (large_) return large_->space();
  const std::size_t room = block_ ? BufferPool::block_bytes - to_ : 0;
  const bool fits = block_ && from_ + wanted_ <= BufferPool::block_bytes;
  if (!fits || room < room_bytes_min) renew_block();
  return {block_->bytes + to_, BufferPool::block_bytes - to_};
}

// Slices may point into the old block, so what is left over moves to a fresh one.
void FrameBuffer::renew_block() {
  // A partial frame that already starts its block cannot gain room by moving.
  if (block_ && from_ == 0 && to_ > 0) return;
  std::shared_ptr<BufferPool::Block> fresh = rules_.buffers->take();
  const std::size_t left = to_ - from_;
  if (left > 0) std::memcpy(fresh->bytes, block_->bytes + from_, left);
  block_ = std::move(fresh);
  from_ = 0;
  to_ = left;
}

void FrameBuffer::received(std::size_t count) {
  if (large_) {
    large_->received(count);
  } else {
    to_ += count;
  }
}

FrameBuffer::Next FrameBuffer::next() {
  Next next;
  if (large_) {
    if (!large_->complete()) return next;
    const ByteView body = large_->body();
    next.kind = FrameCut::Kind::frame;
    next.frame = Slice(std::exchange(large_, nullptr), body);
    return next;
  }
  wanted_ = 0;
  if (from_ == to_) return next;
  const ByteView arrived(block_->bytes + from_, to_ - from_);
  const FrameCut cut = rules_.cut(arrived, rules_.frame_bytes_max);
  if (cut.kind == FrameCut::Kind::more) return next;
  next.kind = cut.kind;
  next.reason = cut.reason;
  if (cut.kind == FrameCut::Kind::refuse) return next;

  wanted_ = cut.header_bytes + cut.body_bytes;
  if (arrived.size() >= wanted_) {
    next.frame = Slice(block_, arrived.subspan(cut.header_bytes, cut.body_bytes));
    from_ += wanted_;
    wanted_ = 0;
    return next;
  }
  if (wanted_ > BufferPool::block_bytes) begin_large(cut);
  next.kind = FrameCut::Kind::more;
  return next;
}

void FrameBuffer::begin_large(const FrameCut& cut) {
  large_ = std::make_shared<Large>(cut.header_bytes, wanted_);
  large_->append(ByteView(block_->bytes + from_, to_ - from_));
  wanted_ = 0;
  block_ = nullptr;
  from_ = to_ = 0;
}

void FrameBuffer::rest() {
  if (!empty()) return;
  block_ = nullptr;
  from_ = to_ = 0;
}

}  // namespace polylog::server
