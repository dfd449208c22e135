#include "format/kafka/names.h"

#include <gtest/gtest.h>

#include <limits>

namespace polylog::format::kafka {
namespace {

constexpr std::string_view hex32 = "000102030405060708090a0b0c0d0e0f";

Uuid counting_id() {
  Uuid id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<std::uint8_t>(i);
  return id;
}

TEST(SegmentFileNames, are_the_first_offset_in_20_digits) {
  EXPECT_EQ(segment_file_name(Offset(0), SegmentFile::log), "00000000000000000000.log");
  EXPECT_EQ(segment_file_name(Offset(1834), SegmentFile::timeindex),
            "00000000000000001834.timeindex");
  EXPECT_EQ(segment_file_name(Offset(std::numeric_limits<std::int64_t>::max()),
                              SegmentFile::snapshot),
            "09223372036854775807.snapshot");
  EXPECT_EQ(segment_file_name(Offset(7), SegmentFile::index, FileStage::swap),
            "00000000000000000007.index.swap");
}

TEST(SegmentFileNames, parse_what_is_written) {
  for (const auto file : {SegmentFile::log, SegmentFile::index, SegmentFile::timeindex,
                          SegmentFile::txnindex, SegmentFile::snapshot}) {
    for (const auto stage :
         {FileStage::live, FileStage::deleted, FileStage::cleaned, FileStage::swap}) {
      const SegmentFileName name{Offset(12345678901234), file, stage};
      const auto parsed = parse_segment_file_name(segment_file_name(name.offset, file, stage));
      ASSERT_TRUE(parsed);
      EXPECT_EQ(*parsed, name);
    }
  }
}

TEST(SegmentFileNames, foreign_names_are_none_of_ours) {
  for (const char* name :
       {"", "leader-epoch-checkpoint", "partition.metadata", "00000000000000000000",
        "notes.txt", "00000000000000000000.log.tmp", "x.deleted", "x.log.deleted",
        "leader-epoch-checkpoint.tmp", "log", ".log.bak"}) {
    const auto parsed = parse_segment_file_name(name);
    ASSERT_TRUE(parsed) << name;
    EXPECT_FALSE(*parsed) << name;
  }
}

TEST(SegmentFileNames, reserved_suffix_behind_anything_else_is_refused) {
  for (const char* name :
       {".log", "x.log", "1.log", "0000000000000000000.log", "000000000000000000000.log",
        "-0000000000000000001.log", "+0000000000000000001.index", "0000000000000000000a.timeindex",
        "99999999999999999999.log", "09223372036854775808.snapshot", "x.swap", "x.log.cleaned",
        "00000000000000000000.cleaned"}) {
    const auto parsed = parse_segment_file_name(name);
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().code, Errc::invalid);
  }
}

TEST(TopicNames, follow_kafkas_rules) {
  for (const char* name : {"a", "A.b_c-9", "...", "-", "__consumer_offsets"}) {
    EXPECT_TRUE(check_topic_name(name)) << name;
  }
  EXPECT_TRUE(check_topic_name(std::string(249, 'x')));
  EXPECT_FALSE(check_topic_name(std::string(250, 'x')));
  for (const char* name : {"", ".", "..", "a b", "a/b", "\xc3\xa4", "a\n", "a:b"}) {
    EXPECT_FALSE(check_topic_name(name)) << name;
  }
}

TEST(PartitionDirectories, split_at_the_last_dash) {
  const TopicPartition id{"my-topic-1.x", 12};
  EXPECT_EQ(partition_directory_name(id), "my-topic-1.x-12");
  const auto parsed = parse_partition_directory("my-topic-1.x-12");
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->id, id);
  EXPECT_EQ(parsed->stage, DirectoryStage::live);
  EXPECT_TRUE(parsed->unique.empty());
  EXPECT_EQ(parse_partition_directory("topic--1").value().id, (TopicPartition{"topic-", 1}));
}

TEST(PartitionDirectories, stages_parse_what_is_written) {
  const TopicPartition id{"a-b.c", 3};
  for (const auto& [stage, ending] :
       {std::pair{DirectoryStage::deleted, "-delete"}, std::pair{DirectoryStage::stray, "-stray"},
        std::pair{DirectoryStage::future, "-future"}}) {
    const std::string name = partition_directory_name(id, stage, counting_id());
    EXPECT_EQ(name, "a-b.c-3." + std::string(hex32) + ending);
    const auto parsed = parse_partition_directory(name);
    ASSERT_TRUE(parsed) << parsed.error().to_string();
    EXPECT_EQ(parsed->id, id);
    EXPECT_EQ(parsed->stage, stage);
    EXPECT_EQ(parsed->unique, hex32);
  }
}

TEST(PartitionDirectories, long_topics_are_cut_for_deletion_but_not_for_moving) {
  const TopicPartition id{std::string(249, 't'), 1234};
  for (const auto stage : {DirectoryStage::deleted, DirectoryStage::stray}) {
    const std::string name = partition_directory_name(id, stage, counting_id());
    EXPECT_EQ(name.size(), 255U);
    const auto parsed = parse_partition_directory(name);
    ASSERT_TRUE(parsed) << parsed.error().to_string();
    EXPECT_EQ(parsed->id.partition, 1234);
    EXPECT_TRUE(id.topic.starts_with(parsed->id.topic));
  }
  EXPECT_GT(partition_directory_name(id, DirectoryStage::future, counting_id()).size(), 255U);
}

TEST(PartitionDirectories, topic_may_end_like_a_stage) {
  const auto parsed = parse_partition_directory("jobs-delete-0");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, (TopicPartition{"jobs-delete", 0}));
  EXPECT_EQ(parsed->stage, DirectoryStage::live);
}

TEST(PartitionDirectories, other_names_are_refused) {
  for (const char* name :
       {"", "-", "-0", "topic", "topic-", "topic-x", "topic-01", "topic-+1",
        "topic-2147483648", "lost+found", "a b-0", "topic-0.-delete", "topic-0-delete",
        "topic-0.0123-delete", "topic.000102030405060708090a0b0c0d0e0f-stray",
        "topic-0.000102030405060708090a0b0c0d0e0g-future", "..-0", "remote-log-index-cache"}) {
    const auto parsed = parse_partition_directory(name);
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().code, Errc::invalid);
  }
}

TEST(PartitionDirectories, two_names_are_exempt) {
  EXPECT_TRUE(exempt_directory("remote-log-index-cache"));
  EXPECT_TRUE(exempt_directory("__cluster_metadata-0"));
  EXPECT_FALSE(exempt_directory("__cluster_metadata-1"));
}

}  // namespace
}  // namespace polylog::format::kafka
