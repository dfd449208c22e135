#include "bytes/writer.h"

namespace polylog {
namespace {

// Below this a memcpy is cheaper than another iovec entry and a reference count.
constexpr std::size_t splice_bytes_min = 512;

}  // namespace

std::size_t Chain::size() const {
  std::size_t total = bytes.size();
  for (const Splice& splice : splices) total += splice.slice.size();
  return total;
}

std::vector<std::uint8_t> Chain::flatten() const {
  std::vector<std::uint8_t> flat;
  flat.reserve(size());
  for_each([&flat](ByteView piece) { flat.insert(flat.end(), piece.begin(), piece.end()); });
  return flat;
}

void ByteWriter::groups(std::uint64_t value) {
  while (value >= 0x80) {
    u8(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  u8(static_cast<std::uint8_t>(value));
}

void ByteWriter::varint(std::int32_t v) {
  groups((static_cast<std::uint32_t>(v) << 1) ^ static_cast<std::uint32_t>(v >> 31));
}

void ByteWriter::varlong(std::int64_t v) {
  groups((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
}

void ByteWriter::unsigned_varint(std::uint32_t v) { groups(v); }

void ByteWriter::slice(const Slice& slice) {
  if (slice.size() < splice_bytes_min) {
    bytes(slice.view());
    return;
  }
  out_.splices.push_back({out_.bytes.size(), slice});
  spliced_ += slice.size();
}

void ByteWriter::patch_i32(std::size_t at, std::int32_t value) {
  POLYLOG_ASSERT(at + sizeof(value) <= out_.bytes.size());
  store_big(out_.bytes.data() + at, value);
}

std::vector<std::uint8_t> ByteWriter::take_bytes() {
  POLYLOG_ASSERT(out_.splices.empty());
  return std::exchange(out_, {}).bytes;
}

std::size_t unsigned_varint_size(std::uint32_t v) {
  std::size_t size = 1;
  while (v >= 0x80) {
    v >>= 7;
    ++size;
  }
  return size;
}

}  // namespace polylog
