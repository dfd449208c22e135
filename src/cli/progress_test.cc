#include "cli/progress.h"

#include <gtest/gtest.h>

namespace polylog::cli {
namespace {

TEST(ProgressLine, shows_share_rate_and_time_left) {
  EXPECT_EQ(progress_line("a.log", 512 << 20, 1 << 30, 2, 100),
            "a.log [====================                    ]  50%  256.0 MiB/s  2 s left");
}

TEST(ProgressLine, never_is_wider_than_the_terminal) {
  for (std::size_t columns = 60; columns < 120; ++columns) {
    const std::string line = progress_line(std::string(70, 'x'), 1 << 20, 1 << 30, 1, columns);
    EXPECT_LE(line.size(), columns);
  }
}

TEST(ProgressLine, stands_at_its_end_when_a_file_grew_meanwhile) {
  EXPECT_NE(progress_line("f", 20, 10, 1, 80).find("100%"), std::string::npos);
  EXPECT_NE(progress_line("f", 0, 0, 0, 80).find("100%"), std::string::npos);
}

}  // namespace
}  // namespace polylog::cli
