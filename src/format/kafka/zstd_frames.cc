#include "format/kafka/zstd_frames.h"

#include <algorithm>
#include <array>
#include <limits>

#include "bytes/reader.h"

namespace polylog::format::kafka {
namespace {

constexpr std::uint32_t frame_magic = 0xFD2FB528;
constexpr std::uint32_t skippable_magic = 0x184D2A50;  // and the 15 after it
constexpr std::uint32_t skippable_mask = 0xFFFFFFF0;
constexpr std::uint64_t block_bytes_max = 128 * 1024;

enum BlockType : std::uint32_t { raw = 0, repeated = 1, compressed = 2, reserved = 3 };

struct FrameHeader {
  std::uint64_t window = 0;
  bool checksum = false;
};

std::uint64_t read_content_size(ByteReader& in, unsigned flag, bool single_segment) {
  switch (flag) {
    case 0: return single_segment ? in.u8() : 0;
    case 1: return std::uint64_t{in.little<std::uint16_t>()} + 256;
    case 2: return in.little<std::uint32_t>();
    default: return in.little<std::uint64_t>();
  }
}

FrameHeader read_frame_header(ByteReader& in) {
  const std::uint8_t descriptor = in.u8();
  const bool single_segment = (descriptor & 0x20) != 0;
  if ((descriptor & 0x08) != 0) in.fail();  // reserved bit
  FrameHeader header;
  header.checksum = (descriptor & 0x04) != 0;
  if (!single_segment) {
    const std::uint8_t window = in.u8();
    const std::uint64_t base = std::uint64_t{1} << (10 + (window >> 3));
    header.window = base + (base / 8) * (window & 7);
  }
  static constexpr std::array<std::size_t, 4> dictionary_id_bytes{0, 1, 2, 4};
  in.skip(dictionary_id_bytes[descriptor & 3]);
  const std::uint64_t content = read_content_size(in, descriptor >> 6, single_segment);
  if (single_segment) header.window = content;
  return header;
}

// Adds up the blocks of one frame.
std::uint64_t read_blocks(ByteReader& in, std::uint64_t window) {
  const std::uint64_t block_max = std::min(window, block_bytes_max);
  std::uint64_t output = 0;
  for (bool last = false; in.ok() && !last;) {
    const std::uint32_t low = in.little<std::uint16_t>();
    const std::uint32_t head = low | (std::uint32_t{in.u8()} << 16);
    const std::uint32_t size = head >> 3;
    last = (head & 1) != 0;
    switch ((head >> 1) & 3) {
      case raw:
        in.skip(size);
        output += size;
        break;
      case repeated:
        in.skip(1);
        output += size;
        break;
      case compressed:
        in.skip(size);
        output += block_max;
        break;
      default: in.fail();
    }
  }
  return output;
}

}  // namespace

std::optional<ZstdDemand> zstd_demand(ByteView bytes) {
  ByteReader in(bytes);
  ZstdDemand demand;
  while (in.ok() && in.remaining() > 0) {
    const auto magic = in.little<std::uint32_t>();
    if ((magic & skippable_mask) == skippable_magic) {
      in.skip(in.little<std::uint32_t>());
      continue;
    }
    if (magic != frame_magic) return std::nullopt;
    const FrameHeader header = read_frame_header(in);
    demand.window_max = std::max(demand.window_max, header.window);
    demand.output_max += read_blocks(in, header.window);
    if (header.checksum) in.skip(4);
  }
  if (!in.ok()) return std::nullopt;
  return demand;
}

}  // namespace polylog::format::kafka
