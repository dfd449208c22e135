#include "format/kafka/cluster_metadata.h"

#include <bit>

#include <gtest/gtest.h>

#include "format/kafka/cluster_metadata_rig.h"

namespace polylog::format::kafka {
namespace {

using namespace metadata_rig;

ClusterMetadata apply(const std::vector<Bytes>& values) {
  ClusterMetadata metadata;
  for (const Bytes& value : values) {
    const auto record = decode_metadata_record(value);
    EXPECT_TRUE(record) << record.error().to_string();
    if (!record) continue;
    const auto applied = metadata.apply(*record);
    EXPECT_TRUE(applied) << applied.error().to_string();
  }
  metadata.finish();
  return metadata;
}

using Settings = ClusterMetadata::Settings;

TEST(ClusterMetadata, topics_have_an_id_partitions_and_settings) {
  const ClusterMetadata metadata = apply({
      topic("orders", 1), setting(2, "orders", "retention.ms", "5"),
      setting(2, "orders", "segment.bytes", "9"), partition(1, 0), partition(1, 2),
      partition(1, 1, 0), setting(2, "orders", "retention.ms", "6"),
      setting(2, "orders", "segment.bytes", std::nullopt), topic("bare", 2), partition(2, 0, 7),
  });
  ASSERT_EQ(metadata.topics().size(), 2U);
  const ClusterMetadata::Topic& orders = metadata.topics().at("orders");
  EXPECT_EQ(orders.id, id_of(1));
  EXPECT_EQ(orders.partitions, 3);
  EXPECT_EQ(orders.settings, (Settings{{"retention.ms", "6"}}));
  EXPECT_TRUE(metadata.topics().at("bare").settings.empty());
}

TEST(ClusterMetadata, a_topic_made_again_has_nothing_of_the_one_before) {
  const ClusterMetadata metadata =
      apply({topic("t", 1), setting(2, "t", "retention.ms", "5"), partition(1, 4), removal(1),
             topic("t", 2), partition(2, 0), topic("u", 3), removal(3)});
  ASSERT_EQ(metadata.topics().size(), 1U);
  EXPECT_EQ(metadata.topics().at("t").id, id_of(2));
  EXPECT_EQ(metadata.topics().at("t").partitions, 1);
  EXPECT_TRUE(metadata.topics().at("t").settings.empty());
}

TEST(ClusterMetadata, a_transaction_counts_whole_or_not_at_all) {
  const ClusterMetadata metadata =
      apply({transaction(23), topic("done", 1), partition(1, 0), transaction(24), transaction(23),
             topic("aborted", 2), transaction(25), transaction(23), topic("open", 3)});
  EXPECT_EQ(metadata.topics().size(), 1U);
  EXPECT_TRUE(metadata.topics().contains("done"));
}

TEST(ClusterMetadata, settings_of_others_quotas_and_given_ids) {
  const std::uint64_t limit = std::bit_cast<std::uint64_t>(2.5);
  const auto quota = [&](bool removed) {
    Value made(14);
    made.u8(2).text("user").null().u8(0);  // one entity, the default user
    return made.text("request_percentage").u64(limit).u8(removed ? 1 : 0).end();
  };
  const auto ids = [](std::uint64_t next) { return Value(15).i32(1).u64(0).u64(next).end(); };
  const std::vector<Bytes> values = {
      setting(4, "", "log.retention.ms", "7"), setting(4, "1", "x", "y"),
      setting(4, "1", "x", std::nullopt), setting(32, "g", "consumer.session.timeout.ms", "50000"),
      quota(false), ids(3000), ids(2000)};
  const ClusterMetadata metadata = apply(values);
  EXPECT_EQ(metadata.settings().size(), 2U);
  EXPECT_EQ(metadata.settings().at({broker_resource, ""}), (Settings{{"log.retention.ms", "7"}}));
  EXPECT_TRUE(metadata.settings().contains({group_resource, "g"}));
  EXPECT_EQ(metadata.quotas().at({{"user", std::nullopt}}).at("request_percentage"), 2.5);
  EXPECT_EQ(metadata.producer_ids_end(), 3000);
  std::vector<Bytes> lifted = values;
  lifted.push_back(quota(true));
  EXPECT_TRUE(apply(lifted).quotas().empty());
}

TEST(ClusterMetadata, other_records_are_passed_over_and_unknown_versions_are_not) {
  const auto other = decode_metadata_record(Value(20, 3).text("anything").end());
  ASSERT_TRUE(other);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*other));
  for (const Bytes& value : {Value(2, 1).text("t").uuid(id_of(1)).end(),
                             Value(2, 0, 0).text("t").uuid(id_of(1)).end()}) {
    const auto refused = decode_metadata_record(value);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::unsupported);
  }
}

TEST(ClusterMetadata, cut_values_are_damage_and_never_something_else) {
  for (const Bytes& whole : {topic("orders", 1), setting(2, "t", "a", "b"), removal(1)}) {
    for (std::size_t size = 3; size < whole.size(); ++size) {
      EXPECT_FALSE(decode_metadata_record(ByteView(whole).first(size))) << size;
    }
    Bytes longer = whole;
    longer.push_back(0);
    EXPECT_FALSE(decode_metadata_record(longer)) << "something stands behind it";
  }
}

TEST(ClusterMetadata, records_that_fit_to_nothing_before_are_damage) {
  for (const std::vector<Bytes>& values :
       {std::vector<Bytes>{partition(1, 0)}, {removal(1)}, {transaction(24)}, {transaction(25)},
        {transaction(23), transaction(23)}}) {
    ClusterMetadata metadata;
    Result<void> applied;
    for (const Bytes& value : values) {
      const auto record = decode_metadata_record(value);
      ASSERT_TRUE(record);
      if (applied) applied = metadata.apply(*record);
    }
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().code, Errc::corrupt);
  }
}

}  // namespace
}  // namespace polylog::format::kafka
