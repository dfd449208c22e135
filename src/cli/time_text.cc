#include "cli/time_text.h"

#include <charconv>
#include <chrono>
#include <optional>
#include <string>

namespace polylog::cli {
namespace {

constexpr std::int64_t second_ms = 1000;
constexpr std::int64_t minute_ms = 60 * second_ms;
constexpr std::int64_t hour_ms = 60 * minute_ms;
constexpr std::int64_t day_ms = 24 * hour_ms;
// Keeps all sums below within 64 bits: some 3,000 years.
constexpr std::int64_t amount_max = 1'000'000;
constexpr std::int64_t seconds_max = 100'000'000'000;

// Reads from the front of a text; nothing is taken when it does not fit.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool empty() const { return rest_.empty(); }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<std::int64_t> digits(std::size_t least, std::size_t most) {
    std::size_t size = 0;
    while (size < most && size < rest_.size() && rest_[size] >= '0' && rest_[size] <= '9') ++size;
    if (size < least) return std::nullopt;
    std::int64_t number = 0;
    std::from_chars(rest_.data(), rest_.data() + size, number);
    rest_.remove_prefix(size);
    return number;
  }
  // The digits behind a point, as thousandths.
  std::optional<std::int64_t> thousandths() {
    const std::size_t before = rest_.size();
    const auto number = digits(1, 9);
    if (!number) return std::nullopt;
    std::int64_t scaled = *number;
    const std::size_t size = before - rest_.size();
    for (std::size_t i = size; i < 3; ++i) scaled *= 10;
    for (std::size_t i = 3; i < size; ++i) scaled /= 10;
    return scaled;
  }

 private:
  std::string_view rest_;
};

std::optional<std::int64_t> date_ms(Scanner& in) {
  const auto year = in.digits(4, 4);
  if (!year || !in.take('-')) return std::nullopt;
  const auto month = in.digits(1, 2);
  if (!month || !in.take('-')) return std::nullopt;
  const auto day = in.digits(1, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count() * day_ms;
}

std::optional<std::int64_t> clock_ms(Scanner& in) {
  const auto hour = in.digits(1, 2);
  if (!hour || *hour > 23 || !in.take(':')) return std::nullopt;
  const auto minute = in.digits(1, 2);
  if (!minute || *minute > 59) return std::nullopt;
  std::int64_t ms = *hour * hour_ms + *minute * minute_ms;
  if (!in.take(':')) return ms;
  const auto second = in.digits(1, 2);
  if (!second || *second > 59) return std::nullopt;
  ms += *second * second_ms;
  if (!in.take('.')) return ms;
  const auto fraction = in.thousandths();
  if (!fraction) return std::nullopt;
  return ms + *fraction;
}

// How far local time is ahead of UTC.
std::optional<std::int64_t> zone_ms(Scanner& in) {
  if (in.empty() || in.take('Z')) return 0;
  const bool ahead = in.take('+');
  if (!ahead && !in.take('-')) return std::nullopt;
  const auto hour = in.digits(2, 2);
  if (!hour || *hour > 18) return std::nullopt;
  std::int64_t ms = *hour * hour_ms;
  if (!in.empty()) {
    in.take(':');
    const auto minute = in.digits(2, 2);
    if (!minute || *minute > 59) return std::nullopt;
    ms += *minute * minute_ms;
  }
  return ahead ? ms : -ms;
}

std::int64_t unit_ms(char unit, bool time) {
  if (!time) return unit == 'D' ? day_ms : 0;
  if (unit == 'H') return hour_ms;
  if (unit == 'M') return minute_ms;
  return unit == 'S' ? second_ms : 0;
}

}  // namespace

Result<std::int64_t> parse_datetime(std::string_view text) {
  Scanner in(text);
  const auto wrong = [&] {
    return fail(Errc::invalid, "'" + std::string(text) +
                                   "' is no time like 2026-01-31T12:00:00.000 or "
                                   "2026-01-31T12:00:00+02:00");
  };
  const auto date = date_ms(in);
  if (!date || !in.take('T')) return wrong();
  const auto clock = clock_ms(in);
  if (!clock) return wrong();
  const auto zone = zone_ms(in);
  if (!zone || !in.empty()) return wrong();
  return *date + *clock - *zone;
}

Result<std::int64_t> parse_duration(std::string_view text) {
  const auto wrong = [&] {
    return fail(Errc::invalid,
                "'" + std::string(text) + "' is no duration like P1D, PT5M or P1DT2H30M");
  };
  Scanner in(text);
  const bool negative = in.take('-');
  if (!negative) in.take('+');
  if (!in.take('P')) return wrong();
  std::int64_t total = 0;
  bool time = false, any = false;
  // Each unit once, the larger first.
  for (std::int64_t last = INT64_MAX; !in.empty();) {
    if (!time && in.take('T')) {
      time = true;
      any = false;
      continue;
    }
    const bool minus = in.take('-');
    if (!minus) in.take('+');
    const auto whole = in.digits(1, 12);
    if (!whole) return wrong();
    std::int64_t thousandths = 0;
    const bool fraction = in.take('.');
    if (fraction) {
      const auto digits = in.thousandths();
      if (!digits) return wrong();
      thousandths = *digits;
    }
    std::int64_t unit = 0;
    for (const char letter : std::string_view("DHMS")) {
      if (in.take(letter)) unit = unit_ms(letter, time);
      if (unit != 0) break;
    }
    if (unit == 0 || unit >= last || (fraction && unit != second_ms)) return wrong();
    if (*whole > (unit == second_ms ? seconds_max : amount_max)) return wrong();
    last = unit;
    any = true;
    const std::int64_t ms = *whole * unit + thousandths;
    total += minus ? -ms : ms;
  }
  if (!any) return wrong();
  return negative ? -total : total;
}

}  // namespace polylog::cli
