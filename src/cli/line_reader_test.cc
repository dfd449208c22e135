#include "cli/line_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace polylog::cli {
namespace {

using State = LineReader::State;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~Pipe() {
    ::close(ends_[0]);
    end();
  }
  int reading() const { return ends_[0]; }
  void write(std::string_view text) {
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(LineReader, hands_out_lines_and_a_last_one_without_its_end) {
  Pipe pipe;
  pipe.write("one\n\nthree\r\nlast");
  pipe.end();
  LineReader reader(pipe.reading(), 100);
  std::string_view line;
  for (const char* expected : {"one", "", "three\r", "last"}) {
    ASSERT_EQ(reader.next(-1, line), State::line);
    EXPECT_EQ(line, expected);
  }
  EXPECT_EQ(reader.next(-1, line), State::end);
  EXPECT_EQ(reader.lines(), 4u);
}

TEST(LineReader, says_none_when_no_line_comes_in_time) {
  Pipe pipe;
  LineReader reader(pipe.reading(), 100);
  std::string_view line;
  pipe.write("half");
  EXPECT_EQ(reader.next(1, line), State::none);
  pipe.write(" whole\n");
  ASSERT_EQ(reader.next(1, line), State::line);
  EXPECT_EQ(line, "half whole");
}

TEST(LineReader, survives_lines_that_are_larger_than_what_one_read_brings) {
  Pipe pipe;
  const std::string large(3'000'000, 'x');
  std::thread writer([&] {
    for (std::size_t at = 0; at < large.size(); at += 10'000) {
      pipe.write(std::string_view(large).substr(at, 10'000));
    }
    pipe.write("\nnext\n");
    pipe.end();
  });
  LineReader reader(pipe.reading(), 4'000'000);
  std::string_view line;
  ASSERT_EQ(reader.next(-1, line), State::line);
  EXPECT_EQ(line, large);
  ASSERT_EQ(reader.next(-1, line), State::line);
  EXPECT_EQ(line, "next");
  writer.join();
}

TEST(LineReader, refuses_a_line_without_an_end_instead_of_keeping_it) {
  Pipe pipe;
  pipe.write("good\n" + std::string(200, 'x'));
  LineReader reader(pipe.reading(), 100);
  std::string_view line;
  ASSERT_EQ(reader.next(1, line), State::line);
  const auto state = reader.next(1, line);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, Errc::too_large);
  EXPECT_NE(state.error().context.find("line 2"), std::string::npos);
}

}  // namespace
}  // namespace polylog::cli
