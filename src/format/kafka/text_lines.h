#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace polylog::format::kafka {

// A whole decimal number and nothing else: no '+', no blanks, no leading zeros.
template <std::integral T>
std::optional<T> parse_decimal(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || (digits.front() == '0' && (digits.size() > 1 || digits != text))) {
    return std::nullopt;
  }
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The pieces between separators; one more than there are separators.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

// Walks lines that end in '\n'. `complete` is false for a last line without one.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  struct Line {
    std::string_view text;
    int number = 0;  // from 1
    bool complete = true;
  };
  std::optional<Line> next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t at = rest_.find('\n');
    const Line line{rest_.substr(0, at), ++number_, at != std::string_view::npos};
    rest_.remove_prefix(line.complete ? at + 1 : rest_.size());
    return line;
  }

 private:
  std::string_view rest_;
  int number_ = 0;
};

}  // namespace polylog::format::kafka
