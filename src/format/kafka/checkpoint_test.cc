#include "format/kafka/checkpoint.h"

#include <gtest/gtest.h>

namespace polylog::format::kafka {
namespace {

using Entry = EpochList::Entry;

std::string error_of(const auto& result) {
  EXPECT_FALSE(result.has_value());
  return result ? "" : result.error().to_string();
}

TEST(EpochCheckpoint, is_version_count_and_a_line_for_each) {
  const std::string text = "0\n2\n0 0\n5 1834\n";
  const std::vector<Entry> entries{{LeaderEpoch(0), LogPosition(0)},
                                   {LeaderEpoch(5), LogPosition(1834)}};
  EXPECT_EQ(parse_epoch_checkpoint(text).value(), entries);
  EXPECT_EQ(format_epoch_checkpoint(entries), text);
}

TEST(EpochCheckpoint, no_bytes_and_no_entries_are_both_valid) {
  EXPECT_TRUE(parse_epoch_checkpoint("").value().empty());
  EXPECT_TRUE(parse_epoch_checkpoint("0\n0\n").value().empty());
  EXPECT_EQ(format_epoch_checkpoint({}), "0\n0\n");
}

TEST(EpochCheckpoint, epochs_and_offsets_must_rise) {
  EXPECT_NE(error_of(parse_epoch_checkpoint("0\n2\n1 10\n1 20\n")).find("line 4"),
            std::string::npos);
  EXPECT_FALSE(parse_epoch_checkpoint("0\n2\n1 10\n2 10\n"));
  EXPECT_FALSE(parse_epoch_checkpoint("0\n2\n2 10\n1 20\n"));
}

TEST(EpochCheckpoint, malformed_files_are_refused_with_the_line) {
  for (const char* text :
       {"0", "0\n", "\n", "0\n1\n", "0\n1\n0 0", "0\n1\n0\n", "0\n1\n0 0 0\n", "0\n1\n0  0\n",
        "0\n1\n 0 0\n", "0\n1\n0 0 \n", "0\n1\n0 x\n", "0\n1\n-1 0\n", "0\n1\n0 -5\n",
        "0\n2\n0 0\n", "0\n1\n0 0\n1 1\n", "0\n1\n0 0\n\n", "0\n-1\n", "x\n0\n", "00\n0\n",
        "0\n+1\n0 0\n", "0\n1\n0 9223372036854775808\n", "0\n1\n2147483648 0\n",
        "0\n99999999999\n", "0\n1\n0 0x\n", "0\r\n0\r\n"}) {
    const auto parsed = parse_epoch_checkpoint(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::corrupt) << text;
  }
  EXPECT_EQ(parse_epoch_checkpoint("1\n0\n").error().code, Errc::unsupported);
}

TEST(EpochCheckpoint, every_cut_file_is_refused_except_the_empty_one) {
  const std::string text = "0\n2\n0 0\n5 1834\n";
  for (std::size_t size = 1; size < text.size(); ++size) {
    EXPECT_FALSE(parse_epoch_checkpoint(text.substr(0, size))) << size;
  }
}

TEST(OffsetCheckpoint, is_topic_partition_and_offset) {
  const std::string text = "0\n3\norders 0 17\nmy-topic.x 12 9223372036854775807\n_a 0 0\n";
  const std::vector<PartitionOffset> entries{
      {{"orders", 0}, Offset(17)},
      {{"my-topic.x", 12}, Offset(9223372036854775807)},
      {{"_a", 0}, Offset(0)}};
  EXPECT_EQ(parse_offset_checkpoint(text).value(), entries);
  EXPECT_EQ(format_offset_checkpoint(entries), text);
  EXPECT_TRUE(parse_offset_checkpoint("").value().empty());
}

TEST(OffsetCheckpoint, malformed_files_are_refused) {
  for (const char* text :
       {"0\n1\na 0\n", "0\n1\na b 0 0\n", "0\n1\n 0 0\n", "0\n1\na -1 0\n", "0\n1\na 0 zero\n",
        "0\n1\na 0 1", "0\n2\na 0 1\n", "0\n0\na 0 1\n"}) {
    EXPECT_EQ(parse_offset_checkpoint(text).error().code, Errc::corrupt) << text;
  }
}

TEST(OffsetCheckpoint, huge_count_without_lines_allocates_nothing) {
  EXPECT_FALSE(parse_offset_checkpoint("0\n2147483647\na 0 1\n"));
}

TEST(OffsetCheckpoint, hostile_lines_are_shown_cut_and_printable) {
  const std::string text = "0\n1\n" + std::string(100000, '\x01') + "\n";
  EXPECT_LT(error_of(parse_offset_checkpoint(text)).size(), 300U);
}

TEST(PartitionMetadata, has_no_line_end_behind_the_id) {
  const std::string text = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ";
  const auto id = parse_partition_metadata(text);
  ASSERT_TRUE(id) << id.error().to_string();
  EXPECT_EQ(id->bytes[15], 1);
  EXPECT_EQ(format_partition_metadata(*id), text);
  EXPECT_EQ(parse_partition_metadata(text + "\n").value(), *id);
}

TEST(PartitionMetadata, malformed_files_are_refused) {
  for (const char* text :
       {"", "version: 0", "version: 0\n", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        "version: 0\ntopic_id: short", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\nmore: 1",
        "version 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        "topic_id: AAAAAAAAAAAAAAAAAAAAAQ\nversion: 0"}) {
    EXPECT_EQ(parse_partition_metadata(text).error().code, Errc::corrupt) << text;
  }
  EXPECT_EQ(parse_partition_metadata("version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ").error().code,
            Errc::unsupported);
}

TEST(MetaProperties, kafkas_own_file_is_read) {
  const auto parsed = parse_meta_properties(
      "#\n#Wed Jun 17 10:00:00 UTC 2026\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"
      "directory.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=1\nversion=1\n");
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->version, 1);
  EXPECT_EQ(parsed->cluster_id, "MkU3OEVBNTcwNTJENDM2Qg");
  EXPECT_EQ(parsed->node_id, 1);
  ASSERT_TRUE(parsed->directory_id);
  EXPECT_EQ(parsed->directory_id->bytes[15], 1);
}

TEST(MetaProperties, what_is_written_is_read_back) {
  MetaProperties properties;
  properties.cluster_id = " odd = cluster:id # \\ \t\n!";
  properties.node_id = 2147483647;
  properties.directory_id = Uuid::random();
  EXPECT_EQ(parse_meta_properties(format_meta_properties(properties)).value(), properties);
}

TEST(MetaProperties, java_escapes_separators_and_continued_lines_are_understood) {
  const auto parsed = parse_meta_properties(
      "! comment\r\n  version : 1\r\nnode.id\t=  7\ncluster\\u002eid = a\\\n   b\\u0041\\:c\n");
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->node_id, 7);
  EXPECT_EQ(parsed->cluster_id, "abA:c");
  EXPECT_FALSE(parsed->directory_id);
}

TEST(MetaProperties, version_0_names_the_node_differently) {
  const auto parsed = parse_meta_properties("version=0\nbroker.id=3\ncluster.id=x\n");
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->version, 0);
  EXPECT_EQ(parsed->node_id, 3);
}

TEST(MetaProperties, missing_and_malformed_values_are_named) {
  EXPECT_NE(error_of(parse_meta_properties("")).find("version"), std::string::npos);
  EXPECT_NE(error_of(parse_meta_properties("version=1\ncluster.id=x\n")).find("node.id"),
            std::string::npos);
  EXPECT_NE(error_of(parse_meta_properties("version=1\nnode.id=1\n")).find("cluster.id"),
            std::string::npos);
  EXPECT_FALSE(parse_meta_properties("version=1\nnode.id=-1\ncluster.id=x\n"));
  EXPECT_FALSE(parse_meta_properties("version=1\nnode.id=one\ncluster.id=x\n"));
  EXPECT_FALSE(parse_meta_properties("version=1\nnode.id=1\ncluster.id=\\u12\n"));
  EXPECT_FALSE(parse_meta_properties("version=1\nnode.id=1\ncluster.id=x\ndirectory.id=y\n"));
  EXPECT_EQ(parse_meta_properties("version=2\nnode.id=1\ncluster.id=x\n").error().code,
            Errc::unsupported);
}

TEST(CleanShutdown, carries_the_brokers_epoch) {
  EXPECT_EQ(format_clean_shutdown(42), "{\"version\":0,\"brokerEpoch\":42}");
  EXPECT_EQ(parse_clean_shutdown("{\"version\":0,\"brokerEpoch\":42}").value(), 42);
  EXPECT_EQ(parse_clean_shutdown(" { \"brokerEpoch\" : -1 , \"version\" : 0 }\n").value(), -1);
  EXPECT_EQ(parse_clean_shutdown("{\"version\":0,\"brokerEpoch\":1,\"later\":2}").value(), 1);
  EXPECT_EQ(parse_clean_shutdown("").value(), -1);
}

TEST(CleanShutdown, malformed_marks_are_refused) {
  for (const char* text : {"{", "{}", "[]", "{\"version\":0", "{\"version\":0}x", "{\"version\"}",
                           "{\"version\":}", "{\"version\":0,}", "{\"version\":\"0\"}", "0",
                           "{\"brokerEpoch\":1}"}) {
    EXPECT_EQ(parse_clean_shutdown(text).error().code, Errc::corrupt) << text;
  }
  EXPECT_EQ(parse_clean_shutdown("{\"version\":1}").error().code, Errc::unsupported);
}

}  // namespace
}  // namespace polylog::format::kafka
