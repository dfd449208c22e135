#include "cli/group_record_text.h"

#include <gtest/gtest.h>

#include "bytes/writer.h"
#include "cli/group_view.h"
#include "format/kafka/consumer_group_records.h"
#include "format/kafka/group_records.h"

namespace polylog::cli {
namespace {

namespace records = format::kafka;

Record record_of(const std::vector<std::uint8_t>& key, const std::vector<std::uint8_t>& value) {
  Record record;
  record.key = ByteView(key);
  record.value = ByteView(value);
  return record;
}

TEST(GroupRecordText, a_commit_has_the_schemas_names) {
  const auto key = records::encode_offset_commit_key({"g", {"orders", 3}});
  records::OffsetCommit commit;
  commit.offset = 42;
  commit.leader_epoch = LeaderEpoch(5);
  commit.metadata = "m";
  commit.committed = Timestamp(1700000000000);
  const auto value = records::encode_offset_commit(commit);
  ASSERT_TRUE(key);
  ASSERT_TRUE(value);
  const auto text = group_record_text(record_of(*key, *value));
  ASSERT_TRUE(text);
  EXPECT_EQ(text->key, R"({"type":"1","data":{"group":"g","topic":"orders","partition":3}})");
  EXPECT_EQ(text->value, R"({"version":"3","data":{"offset":42,"leaderEpoch":5,"metadata":"m",)"
                         R"("commitTimestamp":1700000000000}})");
}

TEST(GroupRecordText, a_group_shows_what_its_members_subscribed_to) {
  const auto key = records::encode_group_metadata_key("g");
  records::GroupMetadata group;
  group.protocol_type = "consumer";
  group.generation = 2;
  group.protocol = "range";
  group.leader = "m1";
  group.state_since = Timestamp(7);
  records::GroupMember member;
  member.id = "m1";
  member.client_id = "c";
  member.host = "/127.0.0.1";
  member.rebalance_timeout_ms = 300000;
  member.session_timeout_ms = 45000;
  member.subscription = encode_subscription({"orders"});
  member.assignment = encode_assignment({{"orders", 0}, {"orders", 1}});
  group.members.push_back(member);
  const auto value = records::encode_group_metadata(group);
  ASSERT_TRUE(key);
  ASSERT_TRUE(value);
  const auto text = group_record_text(record_of(*key, *value));
  ASSERT_TRUE(text);
  EXPECT_EQ(text->key, R"({"type":"2","data":{"group":"g"}})");
  EXPECT_EQ(text->value,
            R"({"version":"3","data":{"protocolType":"consumer","generation":2,)"
            R"("protocol":"range","leader":"m1","currentStateTimestamp":7,"members":[)"
            R"({"memberId":"m1","groupInstanceId":null,"clientId":"c","clientHost":"/127.0.0.1",)"
            R"("rebalanceTimeout":300000,"sessionTimeout":45000,"subscription":{"topics":)"
            R"(["orders"],"userData":null},)"
            R"("assignment":{"assignedPartitions":[{"topic":"orders","partitions":[0,1]}],)"
            R"("userData":null}}]}})");
}

// ConsumerProtocolSubscription version 3, as Kafka's Java client writes it.
TEST(GroupRecordText, subscriptions_show_what_their_version_has) {
  const auto key = records::encode_group_metadata_key("g");
  records::GroupMetadata group;
  group.protocol_type = "consumer";
  records::GroupMember member;
  ByteWriter out;
  out.i16(3);
  out.i32(1);
  out.i16(1);
  out.text("t");
  out.i32(2);
  out.text("uv");
  out.i32(1);
  out.i16(1);
  out.text("t");
  out.i32(1);
  out.i32(4);
  out.i32(9);
  out.i16(1);
  out.text("r");
  member.subscription = out.take_bytes();
  group.members.push_back(member);
  const auto value = records::encode_group_metadata(group);
  ASSERT_TRUE(key);
  ASSERT_TRUE(value);
  const auto text = group_record_text(record_of(*key, *value));
  ASSERT_TRUE(text);
  EXPECT_NE(text->value->find(R"("subscription":{"topics":["t"],"userData":"dXY=",)"
                              R"("ownedPartitions":[{"topic":"t","partitions":[4]}],)"
                              R"("generationId":9,"rackId":"r"},"assignment":"")"),
            std::string::npos)
      << *text->value;
}

TEST(GroupRecordText, tombstones_have_a_key_alone) {
  const std::vector<std::uint8_t> key =
      records::encode_key({records::ConsumerGroupRecord::member_metadata, "g", "m"});
  Record record;
  record.key = ByteView(key);
  const auto text = group_record_text(record);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->key, R"({"type":"5","data":{"groupId":"g","memberId":"m"}})");
  EXPECT_FALSE(text->value);
}

TEST(GroupRecordText, other_bytes_are_refused) {
  const std::vector<std::uint8_t> unknown = {0x7f, 0x7f, 0, 0};
  Record record;
  EXPECT_FALSE(group_record_text(record));
  record.key = ByteView(unknown);
  EXPECT_FALSE(group_record_text(record));
}

}  // namespace
}  // namespace polylog::cli
