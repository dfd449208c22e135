#include "server/net/frame_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "bytes/endian.h"

namespace polylog::server {
namespace {

std::string framed(const std::string& body) {
  std::string frame(4, '\0');
  store_big(reinterpret_cast<std::uint8_t*>(frame.data()), static_cast<std::int32_t>(body.size()));
  return frame + body;
}

std::string body_of_size(std::size_t size) {
  std::string body(size, '\0');
  for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 31 + size);
  return body;
}

class Frames : public testing::Test {
 protected:
  static constexpr std::size_t frame_bytes_max = 8 * 1024 * 1024;

  // Feeds `bytes` in reads of at most `read_bytes_max`, taking frames out after each.
  void feed(std::string_view bytes, std::size_t read_bytes_max) {
    while (!bytes.empty()) {
      const MutableBytes space = buffer_.space();
      ASSERT_FALSE(space.empty());
      const std::size_t count = std::min({bytes.size(), space.size(), read_bytes_max});
      std::memcpy(space.data(), bytes.data(), count);
      buffer_.received(count);
      bytes.remove_prefix(count);
      for (;;) {
        FrameBuffer::Next next = buffer_.next();
        if (next.kind == FrameCut::Kind::refuse) {
          refusal_ = next.reason;
          return;
        }
        if (next.kind != FrameCut::Kind::frame) break;
        frames_.push_back(std::move(next.frame));
      }
    }
  }

  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  FrameRules rules_{pool_, cut_length_prefixed, frame_bytes_max};
  FrameBuffer buffer_{rules_};
  std::vector<Slice> frames_;
  std::string refusal_;
};

TEST_F(Frames, come_out_whole_and_in_order_whatever_the_reads_are) {
  const std::vector<std::size_t> sizes = {0,      1,         100,         65531, 65532, 65533, 7,
                                          200000, 16 * 1024, 3'000'000,   64,    40000, 40000};
  for (const std::size_t read_bytes_max : {std::size_t{1'000'000'000}, std::size_t{65536},
                                           std::size_t{1000}, std::size_t{7}}) {
    frames_.clear();
    std::string stream;
    for (const std::size_t size : sizes) stream += framed(body_of_size(size));
    feed(stream, read_bytes_max);
    ASSERT_EQ(frames_.size(), sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_TRUE(as_text(frames_[i].view()) == body_of_size(sizes[i])) << "frame " << i;
    }
    EXPECT_TRUE(buffer_.empty());
  }
}

TEST_F(Frames, dribbling_byte_by_byte_is_one_frame) {
  feed(framed("hello"), 1);
  ASSERT_EQ(frames_.size(), 1U);
  EXPECT_EQ(as_text(frames_[0].view()), "hello");
}

TEST_F(Frames, that_are_kept_survive_later_reads) {
  feed(framed("first"), 1000);
  for (int i = 0; i < 100; ++i) feed(framed(body_of_size(5000)), 1000);
  EXPECT_EQ(as_text(frames_[0].view()), "first");
}

TEST_F(Frames, of_one_read_share_a_block_and_it_returns_to_the_pool) {
  feed(framed("a") + framed("b"), 1000);
  ASSERT_EQ(frames_.size(), 2U);
  EXPECT_EQ(frames_[0].owner(), frames_[1].owner());
  buffer_.rest();
  EXPECT_EQ(pool_->idle_blocks(), 0U);
  frames_.clear();
  EXPECT_EQ(pool_->idle_blocks(), 1U);
}

TEST_F(Frames, announcing_much_allocates_only_what_arrived_and_one_step) {
  std::string header(4, '\0');
  store_big(reinterpret_cast<std::uint8_t*>(header.data()),
            static_cast<std::int32_t>(frame_bytes_max));
  feed(header + "x", 1000);
  EXPECT_LT(buffer_.space().size(), BufferPool::block_bytes);
  feed(body_of_size(500'000), 65536);
  EXPECT_LE(buffer_.space().size(), FrameBuffer::growth_bytes);
}

TEST_F(Frames, larger_than_allowed_or_negative_are_refused) {
  std::string header(4, '\0');
  store_big(reinterpret_cast<std::uint8_t*>(header.data()),
            static_cast<std::int32_t>(frame_bytes_max + 1));
  feed(header, 1000);
  EXPECT_EQ(refusal_, "the frame is larger than socket.request.max.bytes");
}

TEST(LengthPrefix, negative_is_refused) {
  const std::string bytes = "\xff\xff\xff\xff";
  EXPECT_EQ(cut_length_prefixed(as_bytes(bytes), 1000).kind, FrameCut::Kind::refuse);
}

// BR-67: what a mistaken client sends is named in the log instead of read as a huge frame.
TEST(LengthPrefix, other_protocols_are_recognised) {
  const auto reason = [](std::string_view bytes) {
    const FrameCut cut = cut_length_prefixed(as_bytes(bytes), 104857600);
    EXPECT_EQ(cut.kind, FrameCut::Kind::refuse);
    return std::string(cut.reason);
  };
  EXPECT_NE(reason(std::string_view("\x16\x03\x01\x02\x00\x01", 6)).find("TLS"), std::string::npos);
  EXPECT_NE(reason("GET / HTTP/1.1\r\n").find("HTTP"), std::string::npos);
  EXPECT_NE(reason("POST /x HTTP/1.1\r\n").find("HTTP"), std::string::npos);
  EXPECT_NE(reason(std::string_view("\x10\x0e\x00\x04MQTT", 8)).find("MQTT"), std::string::npos);
}

TEST(LengthPrefix, needs_four_bytes) {
  EXPECT_EQ(cut_length_prefixed(as_bytes("GET"), 1000).kind, FrameCut::Kind::more);
}

}  // namespace
}  // namespace polylog::server
