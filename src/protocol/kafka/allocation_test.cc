// What decoders allocate for hostile bodies, counted by replacing the global operator new; hence a
// program of its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <new>

#include "protocol/kafka/all_messages.h"
#include "protocol/kafka/golden_frames.h"

namespace {

std::size_t live_bytes = 0;
std::size_t peak_bytes = 0;

// The size of a block goes in front of it.
constexpr std::size_t prefix_bytes = alignof(std::max_align_t);

}  // namespace

void* operator new(std::size_t size) {
  auto* block = static_cast<std::uint8_t*>(std::malloc(size + prefix_bytes));
  if (block == nullptr) throw std::bad_alloc();
  *reinterpret_cast<std::size_t*>(block) = size;
  live_bytes += size;
  peak_bytes = std::max(peak_bytes, live_bytes);
  return block + prefix_bytes;
}

void operator delete(void* at) noexcept {
  if (at == nullptr) return;
  auto* block = static_cast<std::uint8_t*>(at) - prefix_bytes;
  live_bytes -= *reinterpret_cast<std::size_t*>(block);
  std::free(block);
}

void operator delete(void* at, std::size_t) noexcept { operator delete(at); }

namespace polylog::protocol::kafka {
namespace {

constexpr std::size_t bytes_per_byte_max = 64;                 // design: after authentication
constexpr std::size_t bytes_per_byte_unauthenticated_max = 8;  // before
constexpr std::size_t error_text_bytes = 1024;

template <typename Message>
std::size_t peak_of_decoding(ByteView body, std::int16_t version) {
  const Slice slice = Slice::unowned(body);
  const std::size_t before = live_bytes;
  peak_bytes = before;
  static_cast<void>(Message::decode(slice, version));
  return peak_bytes - before;
}

// What replaces the rest of a valid body: many of the smallest elements there are (a small array
// count, empty strings, nulls), after a count that covers as many of them as possible.
std::vector<std::vector<std::uint8_t>> hostile_tails() {
  constexpr std::size_t tail_bytes = 3000;
  constexpr std::array<std::uint8_t, 4> fills = {0, 1, 2, 0x7f};
  std::vector<std::vector<std::uint8_t>> tails;
  for (const std::uint8_t fill : fills) {
    tails.emplace_back(tail_bytes, fill);
    // Classic and compact counts from "too many" down to "just fits".
    for (const std::uint32_t count : {0x7fffffffu, 3000u, 2900u, 1490u, 990u, 700u, 490u, 160u}) {
      for (const bool compact : {false, true}) {
        ByteWriter out;
        compact ? out.unsigned_varint(count) : out.u32(count);
        std::vector<std::uint8_t> tail = out.take_bytes();
        tail.resize(tail_bytes, fill);
        tails.push_back(std::move(tail));
      }
    }
  }
  return tails;
}

struct StaysInBudget {
  std::size_t budget = bytes_per_byte_max;
  double worst = 0;

  template <typename Message>
  void operator()() {
    const auto tails = hostile_tails();
    // The empty message of each version and one with elements, so that a tail stands at the counts
    // of outer and inner arrays.
    std::map<std::int16_t, int> taken;
    for (const GoldenFrame& frame : golden_frames(std::string(Message::message_name) + ".txt")) {
      const ByteView body = ByteView(frame.bytes).subspan(frame.header_bytes);
      expect<Message>(body, frame.version);
      if (body.size() > 250 || taken[frame.version]++ >= 2) continue;
      for (std::size_t cut = 0; cut <= body.size(); ++cut) {
        for (const auto& tail : tails) {
          std::vector<std::uint8_t> hostile = to_vector(body.first(cut));
          hostile.insert(hostile.end(), tail.begin(), tail.end());
          expect<Message>(hostile, frame.version);
        }
      }
    }
  }

  template <typename Message>
  void expect(ByteView body, std::int16_t version) {
    const std::size_t peak = peak_of_decoding<Message>(body, version);
    ASSERT_LE(peak, budget * body.size() + error_text_bytes)
        << Message::message_name << " v" << version << ", body of " << body.size();
    if (body.size() > 1000) {
      worst = std::max(worst, static_cast<double>(peak) / static_cast<double>(body.size()));
    }
  }
};

TEST(KafkaAllocation, requests_and_responses_stay_in_the_budget) {
  StaysInBudget check;
  for_each_request(check);
  for_each_response(check);
  RecordProperty("worst_bytes_per_byte", std::to_string(check.worst));
  // Elements are larger in memory than on the wire: a check that sees less sees nothing.
  EXPECT_GT(check.worst, 16);
}

TEST(KafkaAllocation, what_is_read_before_authentication_stays_in_the_smaller_budget) {
  StaysInBudget check{.budget = bytes_per_byte_unauthenticated_max};
  check.operator()<ApiVersionsRequest>();
}

TEST(KafkaAllocation, a_count_of_two_billion_allocates_nothing) {
  for (const std::string_view hex : {"7fffffff",
                                     "00000001"
                                     "7fff"}) {
    EXPECT_LE(peak_of_decoding<MetadataRequest>(from_hex(hex), 1), error_text_bytes);
  }
  EXPECT_LE(peak_of_decoding<MetadataRequest>(from_hex("ffffffff0f"), 9), error_text_bytes);
}

}  // namespace
}  // namespace polylog::protocol::kafka
