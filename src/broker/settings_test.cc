#include "broker/settings.h"

#include <gtest/gtest.h>

namespace polylog::broker {
namespace {

using Values = std::map<std::string, std::string>;

Settings good(const Values& values) {
  auto settings = Settings::from(values);
  EXPECT_TRUE(settings) << settings.error().to_string();
  return settings.value_or(Settings{});
}

Error bad(const Values& values) {
  auto settings = Settings::from(values);
  EXPECT_FALSE(settings);
  return settings ? Error{} : settings.error();
}

Values toml(const std::string& text) {
  auto values = Settings::parse_toml(text, "polylog.toml");
  EXPECT_TRUE(values) << values.error().to_string();
  return values.value_or(Values{});
}

std::string bad_toml(const std::string& text) {
  auto values = Settings::parse_toml(text, "polylog.toml");
  EXPECT_FALSE(values);
  return values ? "" : values.error().context;
}

TEST(Settings, defaults_in_the_table_are_those_of_the_fields) {
  Values written;
  for (const SettingKey& key : setting_keys()) {
    if (!key.default_value.empty()) written[key.name] = key.default_value;
  }
  const Settings none = good({});
  const Settings all = good(written);
  EXPECT_EQ(none.node_id, all.node_id);
  EXPECT_EQ(none.num_partitions, all.num_partitions);
  EXPECT_EQ(none.default_replication_factor, all.default_replication_factor);
  EXPECT_EQ(none.auto_create_topics, all.auto_create_topics);
  EXPECT_EQ(none.socket_request_max_bytes, all.socket_request_max_bytes);
  EXPECT_EQ(none.fetch_max_bytes, all.fetch_max_bytes);
  EXPECT_EQ(none.max_connections, all.max_connections);
  EXPECT_EQ(none.connections_max_idle_ms, all.connections_max_idle_ms);
  EXPECT_EQ(none.fetch_session_slots, all.fetch_session_slots);
  EXPECT_EQ(none.retention_check_interval_ms, all.retention_check_interval_ms);
  EXPECT_EQ(none.checkpoint_interval_ms, all.checkpoint_interval_ms);
  EXPECT_EQ(none.producer_id_expiration_ms, all.producer_id_expiration_ms);
  EXPECT_EQ(none.producer_id_expiration_check_ms, all.producer_id_expiration_check_ms);
  EXPECT_EQ(none.max_decompressed_bytes, all.max_decompressed_bytes);
  EXPECT_EQ(none.default_layout, all.default_layout);
}

TEST(Settings, every_own_field_is_set_by_its_key) {
  const Settings settings = good({{"node.id", "7"},
                                  {"num.partitions", "3"},
                                  {"default.replication.factor", "2"},
                                  {"auto.create.topics.enable", "false"},
                                  {"socket.request.max.bytes", "1000"},
                                  {"fetch.max.bytes", "2000"},
                                  {"max.connections", "5"},
                                  {"connections.max.idle.ms", "-1"},
                                  {"max.incremental.fetch.session.cache.slots", "6"},
                                  {"log.retention.check.interval.ms", "8"},
                                  {"log.flush.offset.checkpoint.interval.ms", "9"},
                                  {"producer.id.expiration.ms", "10"},
                                  {"producer.id.expiration.check.interval.ms", "11"},
                                  {"max.decompressed.message.bytes", "12"},
                                  {"polylog.layout", "segment"}});
  EXPECT_EQ(settings.node_id, 7);
  EXPECT_EQ(settings.num_partitions, 3);
  EXPECT_EQ(settings.default_replication_factor, 2);
  EXPECT_FALSE(settings.auto_create_topics);
  EXPECT_EQ(settings.socket_request_max_bytes, 1000);
  EXPECT_EQ(settings.fetch_max_bytes, 2000);
  EXPECT_EQ(settings.max_connections, 5);
  EXPECT_EQ(settings.connections_max_idle_ms, -1);
  EXPECT_EQ(settings.fetch_session_slots, 6);
  EXPECT_EQ(settings.retention_check_interval_ms, 8);
  EXPECT_EQ(settings.checkpoint_interval_ms, 9);
  EXPECT_EQ(settings.producer_id_expiration_ms, 10);
  EXPECT_EQ(settings.producer_id_expiration_check_ms, 11);
  EXPECT_EQ(settings.max_decompressed_bytes, 12);
  EXPECT_EQ(settings.default_layout, "segment");
  EXPECT_EQ(settings.values().at("num.partitions"), "3");
}

TEST(Settings, broker_id_is_the_older_name_of_node_id) {
  EXPECT_EQ(good({{"broker.id", "4"}}).node_id, 4);
  EXPECT_EQ(good({{"broker.id", "4"}, {"node.id", "4"}}).node_id, 4);
  EXPECT_EQ(bad({{"broker.id", "4"}, {"node.id", "5"}}).code, Errc::invalid);
  EXPECT_EQ(bad({{"broker.id", "-1"}}).code, Errc::invalid);
}

TEST(Settings, a_larger_message_limit_raises_the_default_decompression_limit) {
  EXPECT_EQ(good({}).max_decompressed_bytes, 268435456);
  EXPECT_EQ(good({{"message.max.bytes", "10000000"}}).max_decompressed_bytes, 640000000);
  EXPECT_EQ(good({{"message.max.bytes", "10000000"}, {"max.decompressed.message.bytes", "5"}})
                .max_decompressed_bytes,
            5);
}

TEST(Settings, values_outside_their_ranges_are_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"num.partitions", "0"},
      {"default.replication.factor", "32768"},
      {"auto.create.topics.enable", "yes"},
      {"socket.request.max.bytes", "0"},
      {"fetch.max.bytes", "1023"},
      {"max.connections", "-1"},
      {"log.retention.check.interval.ms", "0"},
      {"max.decompressed.message.bytes", "0"},
      {"num.io.threads", "none"},
      {"log.cleaner.io.buffer.load.factor", "x"},
      {"log.retention.ms", "0"},
      {"log.segment.bytes", "100"},
      {"message.max.bytes", "-1"},
      {"min.insync.replicas", "0"},
      {"log.cleanup.policy", "drop"},
      {"polylog.flush", "often"},
      {"polylog.layout", "memory"},
  };
  for (const auto& [key, value] : cases) {
    const Error error = bad({{key, value}});
    EXPECT_EQ(error.code, Errc::invalid) << key << " = " << value;
    EXPECT_NE(error.context.find(key), std::string::npos) << error.context;
  }
}

TEST(Settings, a_bad_value_is_refused_even_where_another_unit_outranks_it) {
  EXPECT_EQ(bad({{"log.retention.hours", "many"}, {"log.retention.ms", "5"}}).code, Errc::invalid);
}

TEST(Settings, topic_defaults_are_checked_together) {
  EXPECT_EQ(bad({{"log.cleaner.min.compaction.lag.ms", "5"},
                 {"log.cleaner.max.compaction.lag.ms", "4"}})
                .code,
            Errc::invalid);
  EXPECT_EQ(bad({{"polylog.flush", "never"}, {"log.flush.interval.messages", "1"}}).code,
            Errc::invalid);
}

TEST(Settings, an_unknown_key_is_refused_with_the_one_meant) {
  EXPECT_EQ(bad({{"num.partition", "1"}}).context,
            "there is no setting 'num.partition'; did you mean num.partitions?");
  EXPECT_EQ(bad({{"log.retention.housr", "1"}}).context,
            "there is no setting 'log.retention.housr'; did you mean log.retention.hours?");
  EXPECT_EQ(bad({{"cleanup.policy", "delete"}}).context,
            "there is no setting 'cleanup.policy'; did you mean log.cleanup.policy?");
  EXPECT_EQ(bad({{"", "1"}}).code, Errc::invalid);
}

TEST(Settings, what_nothing_here_can_act_on_is_refused_with_the_reason) {
  EXPECT_EQ(bad({{"log.dirs", "/data"}}).context,
            "log.dirs is not supported: the data directory is given with --data");
  for (const char* key :
       {"log.dirs", "listeners", "process.roles", "controller.quorum.voters",
        "ssl.keystore.location", "sasl.enabled.mechanisms", "group.share.session.timeout.ms",
        "group.streams.session.timeout.ms", "transaction.state.log.min.isr", "zookeeper.connect",
        "replica.lag.time.max.ms", "remote.log.storage.system.enable", "log.dir"}) {
    EXPECT_EQ(bad({{key, "x"}}).code, Errc::unsupported) << key;
  }
}

TEST(Settings, a_refused_family_hides_no_accepted_key) {
  for (const SettingKey& key : setting_keys()) {
    if (!key.default_value.empty()) {
      EXPECT_TRUE(Settings::from({{key.name, key.default_value}}));
    }
  }
}

TEST(Settings, one_plaintext_listener_can_be_advertised) {
  const Settings named = good({{"advertised.listeners", "PLAINTEXT://broker.example:19092"}});
  EXPECT_EQ(named.advertised_host, "broker.example");
  EXPECT_EQ(named.advertised_port, 19092);
  EXPECT_EQ(good({{"advertised.listeners", "PLAINTEXT://[2001:db8::1]:9092"}}).advertised_host,
            "2001:db8::1");
  EXPECT_EQ(good({}).advertised_host, "");
  EXPECT_EQ(good({{"advertised.listeners", ""}}).advertised_port, 0);
  for (const char* wrong :
       {"broker:9092", "PLAINTEXT://broker", "PLAINTEXT://:9092", "PLAINTEXT://0.0.0.0:9092",
        "PLAINTEXT://broker:0", "PLAINTEXT://broker:65536", "PLAINTEXT://2001:db8::1:9092",
        "PLAINTEXT://a:1,PLAINTEXT://b:2", "PLAINTEXT://a/b:1"}) {
    EXPECT_EQ(bad({{"advertised.listeners", wrong}}).code, Errc::invalid) << wrong;
  }
  EXPECT_EQ(bad({{"advertised.listeners", "SSL://broker:9093"}}).code, Errc::unsupported);
}

TEST(SettingsToml, tables_dotted_and_quoted_keys_come_to_the_same) {
  const Values expected = {{"log.retention.hours", "1"}};
  EXPECT_EQ(toml("log.retention.hours = 1"), expected);
  EXPECT_EQ(toml("[log]\nretention.hours = 1"), expected);
  EXPECT_EQ(toml("[log.retention]\nhours = 1"), expected);
  EXPECT_EQ(toml("\"log.retention.hours\" = 1"), expected);
  EXPECT_EQ(toml("\"log.retention.hours\" = \"1\""), expected);
}

TEST(SettingsToml, values_become_the_text_a_properties_file_has) {
  const Values values = toml(
      "a = true\nb = 0.5\nc = -3\nd = \"x y\"\ne = [\"compact\", \"delete\"]\nf = []\n"
      "g = 9223372036854775807\nh = 1_000");
  const Values expected = {{"a", "true"}, {"b", "0.5"}, {"c", "-3"}, {"d", "x y"},
                           {"e", "compact,delete"}, {"f", ""}, {"g", "9223372036854775807"},
                           {"h", "1000"}};
  EXPECT_EQ(values, expected);
}

TEST(SettingsToml, errors_name_the_file_and_the_line) {
  EXPECT_EQ(bad_toml("a = 1\nb = = 2").rfind("polylog.toml:2: ", 0), 0U);
  EXPECT_EQ(bad_toml("a = 1\nb = 1979-05-27").rfind("polylog.toml:2: b must be", 0), 0U);
  EXPECT_EQ(bad_toml("a = [[1]]").rfind("polylog.toml:1: a must be", 0), 0U);
  EXPECT_EQ(bad_toml("a = [\"x,y\"]"), "polylog.toml:1: a: an item of a list holds a comma");
  EXPECT_NE(bad_toml("\"a.b\" = 1\n[a]\nb = 2").find("a.b is set twice"), std::string::npos);
  EXPECT_FALSE(bad_toml("a = 1\na = 2").empty());
  EXPECT_FALSE(bad_toml(std::string(10000, '[')).empty());
  EXPECT_FALSE(bad_toml("\xff\xfe").empty());
}

TEST(SettingsToml, keys_of_which_one_begins_the_other_can_both_be_written) {
  const Values values = toml("\"max.connections\" = 5\ncompression.type = \"gzip\"\n"
                             "compression.gzip.level = 4");
  EXPECT_EQ(good(values).max_connections, 5);
  EXPECT_EQ(values.at("compression.gzip.level"), "4");
}

TEST(SettingsToml, an_empty_file_sets_nothing) { EXPECT_TRUE(toml("# nothing\n").empty()); }

}  // namespace
}  // namespace polylog::broker
