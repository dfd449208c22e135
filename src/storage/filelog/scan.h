#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"
#include "fs/file_system.h"

namespace polylog::storage {

// How many bytes the frame at the start of a window takes, as far as the window tells.
struct FrameSize {
  enum class Kind {
    complete,  // `bytes` is the whole frame's size
    more,      // at least `bytes` are needed to tell; at the end of the data: a torn frame
    corrupt,   // no frame can begin with these bytes
    end,       // no more data: zeros that were reserved ahead, say
  } kind = Kind::end;
  std::uint64_t bytes = 0;
};

template <typename D>
concept FrameDecoder = requires(const D& decoder, ByteView window) {
  { decoder.frame_size(window) } -> std::same_as<FrameSize>;
};

// Why and where a scan stopped; the position is that of the first byte not visited.
struct ScanEnd {
  enum class Reason { end, torn, corrupt, stopped } reason = Reason::end;
  std::uint64_t position = 0;
};

struct ScanFrame {
  std::uint64_t position;  // of its first byte in the file
  ByteView bytes;          // whole frame; valid during the visit only
};

// What a visitor wants next.
enum class ScanStep { next, stop, corrupt };

// The one loop over frames: start-up recovery, verify, dump, index rebuild and the shared log's
// dispatch are visitors of it. Reads [from, to) of `file` through a window that grows to the
// largest frame, and stops at the first bytes that are not a whole frame. `frame_bytes_max` bounds
// what a damaged length can make it allocate.
template <FrameDecoder D, typename F>
Result<ScanEnd> scan(const fs::File& file, std::uint64_t from, std::uint64_t to, const D& decoder,
                     std::uint64_t frame_bytes_max, F&& visit) {
  constexpr std::uint64_t window_bytes = 1 << 20;
  std::vector<std::uint8_t> window(std::min(window_bytes, to > from ? to - from : 0));
  std::uint64_t start = from;  // file position of window[0]
  std::size_t filled = 0, at = 0;
  using Reason = ScanEnd::Reason;
  for (;;) {
    const ByteView rest(window.data() + at, filled - at);
    const FrameSize frame = decoder.frame_size(rest);
    if (frame.kind == FrameSize::Kind::corrupt) return ScanEnd{Reason::corrupt, start + at};
    if (frame.kind == FrameSize::Kind::complete && frame.bytes <= rest.size()) {
      const ScanFrame whole{start + at, rest.first(static_cast<std::size_t>(frame.bytes))};
      const ScanStep step = visit(whole);
      if (step == ScanStep::corrupt) return ScanEnd{Reason::corrupt, start + at};
      at += static_cast<std::size_t>(frame.bytes);
      if (step == ScanStep::stop) return ScanEnd{Reason::stopped, start + at};
      continue;
    }
    const std::uint64_t left = to - (start + filled);  // not yet read
    if (left == 0) {
      if (rest.empty()) return ScanEnd{Reason::end, start + at};
      const bool ended = frame.kind == FrameSize::Kind::end;
      return ScanEnd{ended ? Reason::end : Reason::torn, start + at};
    }
    if (frame.kind == FrameSize::Kind::end && !rest.empty()) {
      return ScanEnd{Reason::end, start + at};
    }
    const std::uint64_t wanted = std::max<std::uint64_t>(frame.bytes, rest.size() + 1);
    if (wanted > frame_bytes_max) return ScanEnd{Reason::corrupt, start + at};
    if (wanted - rest.size() > left) return ScanEnd{Reason::torn, start + at};
    std::copy(rest.begin(), rest.end(), window.begin());
    filled -= at;
    start += at;
    at = 0;
    if (window.size() < wanted) window.resize(static_cast<std::size_t>(wanted));
    const std::uint64_t fill = std::min<std::uint64_t>(window.size() - filled, left);
    const auto into = MutableBytes(window).subspan(filled, static_cast<std::size_t>(fill));
    POLYLOG_ASSIGN(got, file.read(start + filled, into));
    filled += got;
    if (got < into.size()) to = start + filled;  // the file is shorter than it was said to be
  }
}

}  // namespace polylog::storage
