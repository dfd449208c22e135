#include "convert/marker.h"

#include <gtest/gtest.h>

#include "fs/sim_file_system.h"

namespace polylog::convert {
namespace {

TEST(Marker, comes_back_as_it_was_and_goes) {
  fs::SimFileSystem fs;
  ASSERT_TRUE(fs.create_directory("/d"));
  EXPECT_FALSE(*read_marker(fs, "/d"));
  EXPECT_TRUE(check_finished(fs, "/d"));
  const Marker marker{"/with a\nline's end/", "rocketmq"};
  ASSERT_TRUE(write_marker(fs, "/d", marker));
  const auto found = read_marker(fs, "/d");
  ASSERT_TRUE(found);
  EXPECT_EQ(**found, marker);
  const auto finished = check_finished(fs, "/d");
  ASSERT_FALSE(finished);
  EXPECT_NE(finished.error().context.find("unfinished conversion"), std::string::npos);
  ASSERT_TRUE(remove_marker(fs, "/d"));
  EXPECT_TRUE(check_finished(fs, "/d"));
}

TEST(Marker, that_does_not_read_is_not_taken_for_none) {
  fs::SimFileSystem fs;
  ASSERT_TRUE(fs.create_directory("/d"));
  for (const char* text : {"", "polylog conversion 2\nlayout kafka\nsource /x\n",
                           "polylog conversion 1\nlayout kafka\nsource /cut"}) {
    ASSERT_TRUE(fs::replace_file(fs, "/d/conversion.unfinished", as_bytes(text)));
    EXPECT_EQ(read_marker(fs, "/d").error().code, Errc::corrupt) << text;
    EXPECT_FALSE(check_finished(fs, "/d"));
  }
}

}  // namespace
}  // namespace polylog::convert
