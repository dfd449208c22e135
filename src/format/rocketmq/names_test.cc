#include "format/rocketmq/names.h"

#include <gtest/gtest.h>

#include <limits>

namespace polylog::format::rocketmq {
namespace {

TEST(StoreFileNames, are_positions_in_20_digits) {
  EXPECT_EQ(file_name(0), "00000000000000000000");
  EXPECT_EQ(file_name(1'073'741'824), "00000000001073741824");
  EXPECT_EQ(file_name(std::numeric_limits<std::int64_t>::max()), "09223372036854775807");
  for (const std::int64_t position :
       {std::int64_t{0}, std::int64_t{6'000'000}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(parse_file_name(file_name(position)), position);
  }
}

TEST(StoreFileNames, others_are_none) {
  for (const char* name :
       {"", "0", "0000000000000000000", "000000000000000000000", "0000000000000000000a",
        "-0000000000000000001", "+0000000000000000001", " 0000000000000000000",
        "09223372036854775808", "99999999999999999999", "00000000000000000000.tmp"}) {
    EXPECT_EQ(parse_file_name(name), std::nullopt) << name;
  }
}

TEST(StoredTopics, encode_only_dot_and_percent) {
  EXPECT_EQ(to_stored_topic("packages").value(), "packages");
  EXPECT_EQ(to_stored_topic("A-b_9.x%y").value(), "A-b_9%2Ex%25y");
  EXPECT_EQ(to_stored_topic("...").value(), "%2E%2E%2E");
  EXPECT_EQ(to_stored_topic("%2E").value(), "%252E");
  for (const char* name : {"packages", "A-b_9.x%y", ".", "..", "%", "%2E", "%RETRY%g"}) {
    EXPECT_EQ(from_stored_topic(to_stored_topic(name).value()), name);
  }
}

TEST(StoredTopics, take_127_bytes_at_most_when_encoded) {
  EXPECT_TRUE(to_stored_topic(std::string(127, 'x')));
  EXPECT_EQ(to_stored_topic(std::string(128, 'x')).error().code, Errc::too_large);
  EXPECT_TRUE(to_stored_topic(std::string(124, 'x') + "."));
  EXPECT_EQ(to_stored_topic(std::string(125, 'x') + ".").error().code, Errc::too_large);
}

TEST(StoredTopics, without_a_form_are_invalid) {
  for (const char* name : {"", "a b", "a/b", "a|b", "\xc3\xa4", "a:b"}) {
    const auto stored = to_stored_topic(name);
    ASSERT_FALSE(stored) << name;
    EXPECT_EQ(stored.error().code, Errc::invalid);
  }
}

TEST(StoredTopics, of_rocketmqs_own_making_are_taken_as_they_are) {
  for (const char* name : {"%RETRY%group", "%DLQ%a%2Eb", "%LMQ%x", "rmq_sys_%2E", "a|b", "50%",
                           "a%2", "a%2e", "a%41", "%2E|", "SCHEDULE_TOPIC_XXXX"}) {
    EXPECT_EQ(from_stored_topic(name), name);
  }
}

TEST(StoredTopics, internal_ones_are_known) {
  for (const char* name :
       {"%RETRY%g", "%DLQ%g", "%LMQ%q", "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC",
        "TBW102", "BenchmarkTest", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "RMQ_SYS_TRACE_TOPIC",
        "CHECKPOINT_TOPIC"}) {
    EXPECT_TRUE(is_internal_topic(name)) << name;
  }
  for (const char* name : {"", "a", "RETRY", "x%RETRY%g", "TBW1022", "rmq_sys", "%retry%g"}) {
    EXPECT_FALSE(is_internal_topic(name)) << name;
  }
}

TEST(StoredTopics, that_could_leave_their_directory_are_refused) {
  for (const char* name : {"", ".", "..", "../x", "a/b", "a.b", "a b", "\xe6\x94\xaf"}) {
    EXPECT_EQ(check_stored_topic(name).error().code, Errc::invalid) << name;
  }
  EXPECT_EQ(check_stored_topic(std::string_view("a\0b", 3)).error().code, Errc::invalid);
  EXPECT_TRUE(check_stored_topic("%RETRY%a|b-c_9"));
  EXPECT_TRUE(check_stored_topic(std::string(255, 'x')));
  EXPECT_EQ(check_stored_topic(std::string(256, 'x')).error().code, Errc::too_large);
}

}  // namespace
}  // namespace polylog::format::rocketmq
