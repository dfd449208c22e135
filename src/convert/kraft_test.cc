#include <algorithm>
#include <bit>

#include <gtest/gtest.h>

#include "convert/convert_rig.h"
#include "convert/kraft_metadata.h"
#include "format/kafka/cluster_metadata_rig.h"

// Settings of topics in a Kafka directory's metadata log.
namespace polylog::convert {
namespace {

using namespace format::kafka::metadata_rig;
using format::kafka::BatchBuilder;
using format::kafka::BatchOptions;
using format::kafka::ClusterMetadata;

Bytes batch_at(std::int64_t base, const std::vector<Bytes>& values, bool control = false) {
  BatchOptions options;
  options.base_offset = Offset(base);
  options.epoch = LeaderEpoch(1);
  options.control = control;
  BatchBuilder builder(options);
  const Bytes footer_key{0, 0, 0, 4};  // a control record's version and type
  for (const Bytes& value : values) {
    Record record;
    record.timestamp = Timestamp(1);
    if (control) record.key = ByteView(footer_key);
    record.value = ByteView(value);
    EXPECT_TRUE(builder.add(record));
  }
  return *builder.finish();
}

Bytes footer_at(std::int64_t base) { return batch_at(base, {{0, 0, 0, 0}}, true); }

Bytes joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class Kraft : public ConvertRig {
 protected:
  const std::string kafka = std::string(source) + "/kafka";
  const std::string log = kafka + "/__cluster_metadata-0";

  // A Kafka directory with some topics, each with records, as a conversion finds it.
  void fill(const std::map<std::string, std::uint8_t>& topics) {
    Directory directory = open_directory(source);
    for (const auto& [name, id] : topics) {
      storage::LogConfig config;
      ASSERT_TRUE(directory.stores.at(Layout::kafka)->create({name, 0}, id_of(id), config));
      OwnedRecord record;
      record.value = name;
      record.timestamp = 1'600'000'000'000;
      append(directory, name, 0, batch_of({record}));
    }
    close(directory);
    ASSERT_TRUE(disk->create_directory(log));
  }
  void put_file(const std::string& name, const Bytes& bytes) {
    const auto file = disk->open(log + "/" + name, fs::OpenMode::create);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->truncate(0));
    ASSERT_TRUE((*file)->write(0, ByteView(bytes)));
  }
  Result<std::optional<ClusterMetadata>> read_log() {
    said.clear();
    return read_kraft_metadata(*disk, kafka, said);
  }
  std::map<std::string, meta::TopicRecord> converted_topics(Options wanted) {
    const auto summary = run(std::move(wanted));
    EXPECT_TRUE(summary) << summary.error().to_string();
    std::map<std::string, meta::TopicRecord> topics;
    for (auto& record : topics_of(target)) topics[record.name] = record;
    return topics;
  }
  bool noted(const std::string& words) {
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& line) {
      return line.find(words) != std::string::npos;
    });
  }

  std::vector<std::string> said;
};

constexpr const char* first_segment = "00000000000000000000.log";
constexpr const char* suspended = "polylog.retention.suspended";

TEST_F(Kraft, topics_keep_their_settings_and_the_cluster_its_defaults) {
  fill({{"kept", 1}, {"timed", 2}, {"compacted", 3}, {"stray", 4}, {"other", 5}});
  const std::uint64_t limit = std::bit_cast<std::uint64_t>(1000.0);
  put_file(
      first_segment,
      joined({footer_at(0),  // of the quorum: a control batch like any
              batch_at(1, {topic("kept", 1), setting(2, "kept", "max.message.bytes", "2000000"),
                           setting(2, "kept", "remote.storage.enable", "true"),
                           setting(2, "kept", "from.the.future", "x"), partition(1, 0)}),
              batch_at(6, {topic("timed", 2), setting(2, "timed", "retention.ms", "9000000"),
                           partition(2, 0), partition(2, 2)}),
              batch_at(10, {topic("compacted", 3), partition(3, 0),
                            setting(2, "compacted", "cleanup.policy", "compact")}),
              batch_at(13, {topic("other", 9), partition(9, 0), topic("elsewhere", 8)}),
              batch_at(16, {setting(4, "", "log.segment.bytes", "5000000"),
                            setting(4, "", "ssl.keystore.password", "secret"),
                            setting(32, "g", "consumer.session.timeout.ms", "50000"),
                            Value(15).i32(1).u64(0).u64(7000).end(),
                            Value(14).u8(2).text("client-id").text("c").u8(0)
                                .text("producer_byte_rate").u64(limit).u8(0).end()})}));
  auto topics = converted_topics(options(kafka, target, Layout::kafka));
  using Values = std::map<std::string, std::string>;
  const std::string kafka_layout = "kafka";
  EXPECT_EQ(topics["timed"].configs,
            (Values{{"retention.ms", "9000000"}, {"polylog.layout", kafka_layout}}));
  EXPECT_EQ(topics["timed"].partitions, 3);
  EXPECT_TRUE(noted("topic timed: 2 partition(s) are not in this directory"));
  EXPECT_EQ(topics["kept"].configs,
            (Values{{"max.message.bytes", "2000000"},
                    {suspended, "true"},
                    {"polylog.layout", kafka_layout}}))
      << "how long it keeps its records stood in Kafka's server.properties";
  EXPECT_TRUE(noted("unless --set log.retention.hours=N says it now: kept"));
  EXPECT_TRUE(noted("topic kept: the setting from.the.future = x ("));
  EXPECT_TRUE(noted("topic kept: the setting remote.storage.enable = true ("));
  EXPECT_EQ(topics["compacted"].configs,
            (Values{{"cleanup.policy", "compact"}, {"polylog.layout", kafka_layout}}));
  EXPECT_EQ(topics["stray"].configs.at(suspended), "true");
  EXPECT_TRUE(noted("topic stray: Kafka's metadata log has no such topic"));
  EXPECT_EQ(topics["other"].configs.at(suspended), "true");
  EXPECT_EQ(topics["other"].id, id_of(5));
  EXPECT_TRUE(noted("topic other: Kafka's metadata log has another topic of that name"));
  EXPECT_TRUE(noted("1 topic(s) of the cluster have no partition in this directory: elsewhere"));
  EXPECT_TRUE(noted("ssl.keystore.password"));
  EXPECT_FALSE(noted("secret"));

  const auto catalog = meta::open_embedded_catalog(*disk, std::string(target) + "/meta", {});
  ASSERT_TRUE(catalog);
  const meta::ScopedConfigs scoped = *(*catalog)->scoped_configs();
  using Kind = meta::ConfigScope::Kind;
  EXPECT_EQ(scoped, (meta::ScopedConfigs{
                        {{Kind::brokers, ""}, {{"log.segment.bytes", "5000000"}}},
                        {{Kind::group, "g"}, {{"consumer.session.timeout.ms", "50000"}}}}));
  const meta::Quotas quotas = *(*catalog)->quotas();
  ASSERT_EQ(quotas.size(), 1U);
  EXPECT_EQ(quotas.begin()->first.client_id, (meta::QuotaName{false, "c"}));
  EXPECT_GE((*catalog)->reserve_producer_ids(1)->first, 7000);
}

TEST_F(Kraft, a_retention_that_the_brokers_settings_say_is_one) {
  fill({{"t", 1}});
  put_file(first_segment, batch_at(0, {topic("t", 1), partition(1, 0)}));
  Options wanted = options(kafka, target, Layout::kafka);
  auto values = settings.values();
  values["log.retention.hours"] = "24";
  wanted.settings = broker::Settings::from(values).value();
  EXPECT_FALSE(converted_topics(wanted)["t"].configs.contains(suspended));
  EXPECT_FALSE(noted("server.properties"));
}

TEST_F(Kraft, what_all_brokers_were_told_counts_too) {
  fill({{"t", 1}});
  put_file(first_segment, batch_at(0, {topic("t", 1), partition(1, 0),
                                       setting(4, "", "log.retention.ms", "90000000")}));
  EXPECT_FALSE(
      converted_topics(options(kafka, target, Layout::kafka))["t"].configs.contains(suspended));
}

TEST_F(Kraft, copies_that_one_node_can_not_keep_are_not_asked_for) {
  fill({{"t", 1}});
  put_file(first_segment, batch_at(0, {topic("t", 1), partition(1, 0),
                                       setting(2, "t", "min.insync.replicas", "2"),
                                       setting(4, "", "min.insync.replicas", "2")}));
  EXPECT_FALSE(converted_topics(options(kafka, target, Layout::kafka))["t"].configs.contains(
      "min.insync.replicas"));
  EXPECT_TRUE(noted("topic t: the setting min.insync.replicas = 2 (there is one node)"));
  EXPECT_TRUE(noted("1 setting(s) of brokers, groups or clients are left out"));
}

TEST_F(Kraft, without_a_metadata_log_all_is_kept) {
  fill({{"t", 1}});
  ASSERT_TRUE(disk->remove_directory(log));
  EXPECT_EQ(converted_topics(options(kafka, target, Layout::kafka))["t"].configs.at(suspended),
            "true");
  EXPECT_TRUE(noted("there is no __cluster_metadata-0 in " + kafka));
}

TEST_F(Kraft, a_metadata_log_in_a_directory_of_its_own_is_named) {
  fill({{"t", 1}});
  put_file(first_segment, batch_at(0, {topic("t", 1), partition(1, 0),
                                       setting(2, "t", "retention.ms", "5000000")}));
  const std::string elsewhere = "/polylog-test/metadata";
  ASSERT_TRUE(disk->create_directory(elsewhere));
  ASSERT_TRUE(disk->rename(log, elsewhere + "/__cluster_metadata-0"));
  Options wanted = options(kafka, target, Layout::kafka);
  wanted.kafka_metadata = kafka;
  refused(wanted, {"there is no __cluster_metadata-0 in " + kafka});
  wanted.kafka_metadata = elsewhere;
  EXPECT_EQ(converted_topics(wanted)["t"].configs.at("retention.ms"), "5000000");
  Options again = options(target, "/polylog-test/again", Layout::kafka);
  again.kafka_metadata = elsewhere;
  refused(again, {"--kafka-metadata"});
}

TEST_F(Kraft, the_latest_snapshot_counts_and_the_log_behind_it) {
  ASSERT_TRUE(fs::create_directories(*disk, log));
  put_file("00000000000000000003-0000000001.checkpoint",
           joined({footer_at(0), batch_at(1, {topic("old", 7)}), footer_at(2)}));
  put_file("00000000000000000005-0000000001.checkpoint",
           joined({footer_at(0),
                   batch_at(1, {topic("t", 1), partition(1, 0), setting(2, "t", "a", "1")}),
                   footer_at(4)}));
  put_file("00000000000000000009-0000000002.checkpoint.part", {1, 2, 3});
  put_file("00000000000000000006-0000000001.checkpoint.deleted", {1, 2, 3});
  // The segment below the snapshot is not looked at, the next one from the snapshot's end on.
  put_file(first_segment, {9, 9, 9});
  put_file("00000000000000000004.log",
           joined({batch_at(4, {topic("before", 2), setting(2, "t", "a", "2")}),
                   batch_at(6, {setting(2, "t", "b", "3")})}));
  const auto read = read_log();
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_TRUE(*read);
  EXPECT_EQ((*read)->topics().size(), 1U);
  EXPECT_EQ((*read)->topics().at("t").settings,
            (ClusterMetadata::Settings{{"a", "2"}, {"b", "3"}}));
  EXPECT_TRUE(said.empty());
}

TEST_F(Kraft, a_torn_end_is_left_out_and_damage_before_it_ends_it) {
  ASSERT_TRUE(fs::create_directories(*disk, log));
  const Bytes first = batch_at(0, {topic("t", 1)});
  const Bytes second = batch_at(1, {topic("u", 2)});
  const Bytes third = batch_at(2, {topic("v", 3)});
  for (std::size_t cut = 1; cut < third.size(); ++cut) {
    Bytes torn = joined({first, second, third});
    torn.resize(torn.size() - cut);
    put_file(first_segment, torn);
    const auto read = read_log();
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ((*read)->topics().size(), 2U);
    const bool zeros = third.size() - cut < 8;  // of its offset: as in space that was reserved
    EXPECT_EQ(said.size(), zeros ? 0U : 1U) << cut;
  }
  put_file(first_segment, joined({first, Bytes(5000, 0)}));
  ASSERT_TRUE(read_log());
  EXPECT_TRUE(said.empty()) << "space that was reserved";
  for (std::size_t bit = 0; bit < second.size() * 8; ++bit) {
    Bytes damaged = joined({first, second, third});
    damaged[first.size() + bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    put_file(first_segment, damaged);
    const auto read = read_log();
    if (!read) continue;
    // A length that leads beyond the end looks like a torn write, and the epoch says nothing here.
    const std::size_t topics = (*read)->topics().size();
    EXPECT_TRUE(topics == 1 ? said.size() == 1 : topics == 3) << bit;
  }
}

TEST_F(Kraft, lost_records_and_snapshots_without_an_end_are_damage) {
  ASSERT_TRUE(fs::create_directories(*disk, log));
  put_file("00000000000000000004.log", batch_at(4, {topic("t", 1)}));
  const auto missing = read_log();
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().context.find("from offset 0 on are lost"), std::string::npos);
  put_file("00000000000000000004-0000000001.checkpoint", batch_at(0, {topic("u", 2)}));
  const auto cut = read_log();
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().context.find("the snapshot has no end"), std::string::npos);
  put_file("00000000000000000004-0000000001.checkpoint",
           joined({batch_at(0, {topic("u", 2)}), footer_at(1)}));
  put_file("00000000000000000004.log", batch_at(5, {topic("t", 1)}));
  const auto gap = read_log();
  ASSERT_FALSE(gap);
  EXPECT_NE(gap.error().context.find("offset 5 where 4 should be"), std::string::npos);
}

TEST_F(Kraft, a_record_of_a_version_that_is_not_known_is_no_guess) {
  ASSERT_TRUE(fs::create_directories(*disk, log));
  put_file(first_segment,
           batch_at(0, {topic("t", 1), Value(4, 1).u8(2).text("t").text("a").text("b").end()}));
  const auto refused = read_log();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unsupported);
  EXPECT_NE(refused.error().context.find(first_segment), std::string::npos);
}

}  // namespace
}  // namespace polylog::convert
