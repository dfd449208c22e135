#pragma once

// For tests: the frames of tests/golden/kafka_wire, which Kafka's own classes wrote.

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bytes/slice.h"

namespace polylog::protocol::kafka {

struct GoldenFrame {
  std::string message;  // in examples.txt only
  std::int16_t version = 0;
  std::size_t header_bytes = 0;
  std::vector<std::uint8_t> bytes;  // header and body, without the size
};

inline std::ifstream open_golden(std::string_view file) {
  const char* root = std::getenv("POLYLOG_SOURCE_DIR");
  return std::ifstream(std::string(root != nullptr ? root : ".") + "/tests/golden/kafka_wire/" +
                       std::string(file));
}

// Spaces may stand between bytes.
inline std::vector<std::uint8_t> from_hex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t at = 0; at + 1 < text.size();) {
    if (text[at] == ' ') {
      ++at;
      continue;
    }
    const std::string pair(text.substr(at, 2));
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(pair, nullptr, 16)));
    at += 2;
  }
  return bytes;
}

// Empty if the file is not there.
inline std::vector<GoldenFrame> golden_frames(std::string_view file, bool names_messages = false) {
  std::ifstream in = open_golden(file);
  std::vector<GoldenFrame> frames;
  for (std::string line; std::getline(in, line);) {
    std::istringstream columns(line);
    GoldenFrame frame;
    std::string hex;
    if (names_messages) columns >> frame.message;
    columns >> frame.version >> frame.header_bytes >> hex;
    frame.bytes = from_hex(hex);
    frames.push_back(std::move(frame));
  }
  return frames;
}

}  // namespace polylog::protocol::kafka
