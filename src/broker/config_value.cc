#include "broker/config_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace polylog::broker {
namespace {

constexpr std::size_t shown_bytes_max = 64;
constexpr std::size_t name_bytes_max = 128;  // no known name is longer; bounds the distance table

std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, shown_bytes_max)) {
    out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return out + (text.size() > shown_bytes_max ? "...'" : "'");
}

tl::unexpected<Error> wrong(std::string_view key, std::string_view text, const std::string& rule) {
  return fail(Errc::invalid, std::string(key) + " = " + shown(text) + ": " + rule);
}

std::string number(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

bool equal_ignoring_case(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
  });
}

// Optimal string alignment distance, in three rolling rows.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const std::size_t from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(blanks) - from + 1);
}

Result<std::int64_t> parse_integer(std::string_view key, std::string_view text, std::int64_t min,
                                   std::int64_t max) {
  std::string_view digits = trimmed(text);
  if (digits.size() > 1 && digits.front() == '+' && digits[1] != '-') digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code == std::errc::result_out_of_range) return wrong(key, text, "too large a number");
  if (code != std::errc() || end != digits.data() + digits.size()) {
    return wrong(key, text, "not a whole number");
  }
  if (value < min) return wrong(key, text, "must be at least " + std::to_string(min));
  if (value > max) return wrong(key, text, "must be at most " + std::to_string(max));
  return value;
}

Result<double> parse_real(std::string_view key, std::string_view text, double min, double max) {
  const std::string_view digits = trimmed(text);
  double value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) {
    return wrong(key, text, "not a number");
  }
  if (value < min || value > max) {
    return wrong(key, text, "must be from " + number(min) + " to " + number(max));
  }
  return value;
}

Result<bool> parse_boolean(std::string_view key, std::string_view text) {
  const std::string_view word = trimmed(text);
  if (equal_ignoring_case(word, "true")) return true;
  if (equal_ignoring_case(word, "false")) return false;
  return wrong(key, text, "must be true or false");
}

Result<std::vector<std::string>> parse_list(std::string_view key, std::string_view text) {
  std::vector<std::string> items;
  std::string_view rest = trimmed(text);
  if (rest.empty()) return items;
  for (;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = trimmed(rest.substr(0, comma));
    if (item.empty()) return wrong(key, text, "an item of the list is empty");
    items.emplace_back(item);
    if (comma == std::string_view::npos) return items;
    rest.remove_prefix(comma + 1);
  }
}

Result<std::string> parse_word(std::string_view key, std::string_view text,
                               std::string_view words) {
  const std::string_view word = trimmed(text);
  std::string choice;
  for (std::string_view rest = words;;) {
    const std::size_t bar = rest.find('|');
    const std::string_view known = rest.substr(0, bar);
    if (word == known) return std::string(word);
    if (!choice.empty()) choice += bar == std::string_view::npos ? " or " : ", ";
    choice += known;
    if (bar == std::string_view::npos) return wrong(key, text, "must be " + choice);
    rest.remove_prefix(bar + 1);
  }
}

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  if (name.size() > name_bytes_max) return {};
  const std::string with_log = "log." + std::string(name);
  const std::string_view without_log = name.starts_with("log.") ? name.substr(4) : name;
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 4) + 1;
  for (const std::string_view candidate : known) {
    if (candidate == with_log || candidate == without_log) return candidate;
    const std::size_t d = distance(name, candidate);
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace polylog::broker
