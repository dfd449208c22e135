#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "format/rocketmq/message.h"

// For tests: the check values of the RocketMQ store format, computed from its text.
namespace polylog::format::rocketmq::check {

using Bytes = std::vector<std::uint8_t>;

inline Bytes from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  }
  return bytes;
}

inline constexpr std::string_view unique_key = "7F00000100002A139C16073E5C610000";
inline constexpr std::string_view properties =
    "TAGS\x01"
    "TagA\x02"
    "KEYS\x01"
    "K1\x02"
    "UNIQ_KEY\x01"
    "7F00000100002A139C16073E5C610000\x02";

inline Message message() {
  static constexpr std::uint8_t hello[] = {'h', 'e', 'l', 'l', 'o'};
  Message message;
  message.queue_id = 3;
  message.born_timestamp = 1'700'000'000'000;
  message.born_host = {{10, 0, 0, 1}, false, 50000};
  message.store_timestamp = 1'700'000'000'123;
  message.store_host = {{192, 168, 1, 2}, false, 10911};
  message.body = hello;
  message.topic = "TopicTest";
  message.properties = properties;
  return message;
}

// message() as it is stored.
inline constexpr std::string_view record =
    "000000a5daa320a73610a6860000000300000000000000000000000000000000"
    "00000000000000000000018bcfe568000a0000010000c3500000018bcfe5687b"
    "c0a8010200002a9f0000000000000000000000000000000568656c6c6f09546f"
    "70696354657374003c544147530154616741024b455953014b3102554e49515f"
    "4b45590137463030303030313030303032413133394331363037334535433631"
    "3030303002";

}  // namespace polylog::format::rocketmq::check
