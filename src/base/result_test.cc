#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "base/assert.h"

namespace polylog {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return fail(Errc::invalid, "odd");
  return n / 2;
}

Result<int> quarter(int n) {
  POLYLOG_ASSIGN(once, half(n));
  POLYLOG_ASSIGN(twice, half(once));
  return twice;
}

Result<void> must_be_even(int n, bool& passed) {
  POLYLOG_TRY(half(n));
  passed = true;
  return {};
}

Result<std::unique_ptr<int>> boxed(int n) {
  POLYLOG_ASSIGN(value, half(n));
  auto box = std::make_unique<int>(value);
  return box;
}

Result<int> unboxed(int n) {
  POLYLOG_ASSIGN(box, boxed(n));
  return *box;
}

TEST(Result, assign_takes_the_value_or_returns_the_error) {
  EXPECT_EQ(quarter(12), 3);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().code, Errc::invalid);
  EXPECT_EQ(quarter(6).error().context, "odd");
}

TEST(Result, assign_moves_values_that_cannot_be_copied) {
  EXPECT_EQ(unboxed(8), 4);
  EXPECT_FALSE(unboxed(7));
}

TEST(Result, try_returns_before_the_next_statement) {
  bool passed = false;
  EXPECT_FALSE(must_be_even(3, passed));
  EXPECT_FALSE(passed);
  EXPECT_TRUE(must_be_even(4, passed));
  EXPECT_TRUE(passed);
}

TEST(Error, reads_as_a_code_and_a_sentence) {
  EXPECT_EQ((Error{Errc::no_space, "topic t"}.to_string()), "no space: topic t");
  EXPECT_EQ((Error{Errc::io, ""}.to_string()), "I/O error");
}

TEST(Errc, every_code_has_its_own_name) {
  std::set<std::string_view> names;
  int codes = 0;
  for (int i = 0; i <= static_cast<int>(Errc::timed_out); ++i, ++codes) {
    const auto name = to_string(static_cast<Errc>(i));
    EXPECT_NE(name, "unknown");
    names.insert(name);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(codes));
}

TEST(AssertDeathTest, a_broken_promise_stops_the_process_in_every_build) {
  EXPECT_DEATH(POLYLOG_ASSERT(1 + 1 == 3), "assertion failed: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace polylog
