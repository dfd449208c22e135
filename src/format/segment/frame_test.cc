#include "format/segment/frame.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <limits>

#include "bytes/endian.h"
#include "format/segment/record.h"

namespace polylog::format::segment {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Three parts of one, two and three bytes at offset 7.
const Bytes small = {0, 0, 0, 0, 0, 0, 0,   7,     // offset
                     0, 0, 0, 6, 0, 0, 0,   1,     // total length, metadata length
                     'm',                          // metadata
                     0, 0, 0, 2, 'p', 'p',         // protocol data
                     0, 0, 0, 3, 'd', 'd', 'd'};  // data

FrameHead head_of(const Bytes& bytes, std::uint64_t remaining) {
  return next_frame(ByteView(bytes).first(std::min<std::size_t>(bytes.size(), frame_head_bytes)),
                    remaining);
}

TEST(SegmentFrame, has_the_published_form) {
  Bytes out{9};
  ASSERT_TRUE(encode(Frame{Offset(7), as_bytes("m"), as_bytes("pp"), as_bytes("ddd")}, out));
  EXPECT_EQ(Bytes(out.begin() + 1, out.end()), small);
  const auto frame = parse_frame(small);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->offset, Offset(7));
  EXPECT_EQ(as_text(frame->metadata), "m");
  EXPECT_EQ(as_text(frame->protocol_data), "pp");
  EXPECT_EQ(as_text(frame->data), "ddd");
  EXPECT_EQ(frame->size(), small.size());
}

TEST(SegmentFrame, every_prefix_is_torn) {
  for (std::size_t size = 0; size < small.size(); ++size) {
    const Bytes cut(small.begin(), small.begin() + static_cast<std::ptrdiff_t>(size));
    const FrameHead head = head_of(cut, size);
    if (size == 0 || size >= 8) {
      EXPECT_EQ(head.state, FrameState::torn) << size;
    } else {
      // So far as it goes it can't be told from room that was reserved.
      EXPECT_EQ(head.state, FrameState::zeros) << size;
    }
    EXPECT_EQ(head.size, size < frame_head_bytes ? 0 : small.size()) << size;
    EXPECT_FALSE(parse_frame(cut)) << size;
  }
  const FrameHead head = head_of(small, small.size());
  EXPECT_EQ(head.state, FrameState::complete);
  EXPECT_EQ(head.size, small.size());
  EXPECT_EQ(head.offset, Offset(7));
  Bytes longer = small;
  longer.push_back(0);
  EXPECT_FALSE(parse_frame(longer));
}

TEST(SegmentFrame, zeros_are_not_a_frame_of_nothing) {
  EXPECT_EQ(head_of(Bytes(16), 4096).state, FrameState::zeros);
  EXPECT_EQ(head_of(Bytes(3), 3).state, FrameState::zeros);
  Bytes offset_alone(24);
  offset_alone[7] = 1;
  EXPECT_EQ(head_of(offset_alone, 24).state, FrameState::complete);
}

TEST(SegmentFrame, impossible_heads_are_corrupt) {
  Bytes bytes = small;
  bytes[0] = 0x80;
  EXPECT_EQ(head_of(bytes, bytes.size()).state, FrameState::corrupt);
  EXPECT_FALSE(parse_frame(bytes));
  bytes = small;
  bytes[15] = 7;
  EXPECT_EQ(head_of(bytes, bytes.size()).state, FrameState::corrupt);
  EXPECT_FALSE(parse_frame(bytes));
  bytes[11] = 7;  // a larger total makes it possible again, and torn
  EXPECT_EQ(head_of(bytes, bytes.size()).state, FrameState::torn);
}

TEST(SegmentFrame, lengths_that_do_not_agree_are_corrupt) {
  for (const std::size_t at : {8U, 9U, 11U, 12U, 13U, 15U, 17U, 18U, 20U, 23U, 24U, 26U}) {
    for (const int change : {1, 0xff}) {
      Bytes bytes = small;
      bytes[at] = static_cast<std::uint8_t>(bytes[at] + change);
      const auto frame = parse_frame(bytes);
      ASSERT_FALSE(frame) << at;
      EXPECT_EQ(frame.error().code, Errc::corrupt);
    }
  }
}

TEST(SegmentFrame, walks_over_frames_and_stops_at_what_is_none) {
  Bytes bytes;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(encode(Frame{Offset(i), as_bytes("m"), {}, {}}, bytes));
  std::vector<std::int64_t> offsets;
  const auto note = [&](ByteView frame) -> Result<void> {
    offsets.push_back(parse_frame(frame)->offset.value());
    return {};
  };
  EXPECT_TRUE(for_each_frame(bytes, note));
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{0, 1, 2}));
  bytes.pop_back();
  const auto cut = for_each_frame(bytes, note);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Errc::corrupt);
  EXPECT_EQ(offsets.size(), 5u);
}

TEST(SegmentFrame, more_than_an_int_of_bytes_is_too_large) {
  // Address space alone: nothing of it is ever read.
  const std::size_t size = std::size_t{1} << 31;
  void* const room = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  const auto* const bytes = static_cast<const std::uint8_t*>(room);
  Bytes out;
  const auto whole = encode(Frame{Offset(0), {}, {}, {bytes, size}}, out);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, Errc::too_large);
  const auto together = encode(Frame{Offset(0), {bytes, size / 2}, {}, {bytes, size / 2}}, out);
  ASSERT_FALSE(together);
  EXPECT_EQ(together.error().code, Errc::too_large);
  EXPECT_TRUE(out.empty());
  ::munmap(room, size);
  EXPECT_EQ(encode(Frame{Offset(-1), {}, {}, {}}, out).error().code, Errc::invalid);
}

}  // namespace
}  // namespace polylog::format::segment
