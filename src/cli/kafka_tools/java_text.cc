#include "cli/kafka_tools/java_text.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace polylog::cli::kafka_tools {

std::string java_double(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  const double size = std::abs(number);
  const bool plain = size == 0 || (size >= 1e-3 && size < 1e7);
  char text[64];
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, error] = std::to_chars(text, text + sizeof text, number, format);
  std::string out(text, end);
  if (plain) return out.find('.') == std::string::npos ? out + ".0" : out;
  // 1.048576e+07 here, 1.048576E7 there.
  const std::size_t e = out.find('e');
  std::string digits = out.substr(0, e);
  if (digits.find('.') == std::string::npos) digits += ".0";
  std::string_view power = std::string_view(out).substr(e + 1);
  const bool below = power.front() == '-';
  power.remove_prefix(1);
  while (power.size() > 1 && power.front() == '0') power.remove_prefix(1);
  return digits + "E" + (below ? "-" : "") + std::string(power);
}

}  // namespace polylog::cli::kafka_tools
