#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "protocol/kafka/alter_configs_request.h"
#include "protocol/kafka/alter_configs_response.h"
#include "protocol/kafka/describe_configs_request.h"
#include "protocol/kafka/describe_configs_response.h"
#include "protocol/kafka/incremental_alter_configs_request.h"
#include "protocol/kafka/incremental_alter_configs_response.h"
#include "protocol/kafka/list_config_resources_request.h"
#include "protocol/kafka/list_config_resources_response.h"
#include "server/kafka/broker_rig.h"

// Settings over a socket: described, altered, listed, in every version that is served.
namespace polylog::server::kafka {
namespace {

using namespace protocol::kafka;

constexpr std::int8_t topic = 2, broker = 4, logger = 8, client_metrics = 16, group = 32;
constexpr std::int8_t op_set = 0, op_delete = 1, op_append = 2, op_subtract = 3;

struct Operation {
  std::string key;
  std::int8_t op = op_set;
  std::optional<std::string> value = std::nullopt;
};
struct Resource {
  std::int8_t type;
  std::string name;
};

struct Configs : testing::Test {
  BrokerRig rig;
  WireClient client{rig.port()};

  IncrementalAlterConfigsResponse::AlterConfigsResourceResponse change(
      const Resource& resource, const std::vector<Operation>& operations,
      bool validate_only = false, std::int16_t version = 1) {
    IncrementalAlterConfigsRequest request;
    request.validate_only = validate_only;
    auto& asked = request.resources.emplace_back();
    asked.resource_type = resource.type;
    asked.resource_name = resource.name;
    for (const Operation& operation : operations) {
      auto& config = asked.configs.emplace_back();
      config.name = operation.key;
      config.config_operation = operation.op;
      config.value = operation.value;
    }
    const auto response = client.ask<IncrementalAlterConfigsResponse>(request, version);
    EXPECT_EQ(response.responses.size(), 1U);
    return response.responses.at(0);
  }
  std::int16_t error_of(const Resource& resource, const std::vector<Operation>& operations) {
    return change(resource, operations).error_code;
  }
  std::int16_t replace(const Resource& resource, const std::map<std::string, std::string>& configs,
                       bool validate_only = false, std::int16_t version = 2) {
    AlterConfigsRequest request;
    request.validate_only = validate_only;
    auto& asked = request.resources.emplace_back();
    asked.resource_type = resource.type;
    asked.resource_name = resource.name;
    for (const auto& [key, value] : configs) {
      auto& config = asked.configs.emplace_back();
      config.name = key;
      config.value = value;
    }
    const auto response = client.ask<AlterConfigsResponse>(request, version);
    EXPECT_EQ(response.responses.size(), 1U);
    return response.responses.at(0).error_code;
  }
  DescribeConfigsResponse::DescribeConfigsResult describe(
      const Resource& resource, std::optional<std::vector<std::string>> keys = std::nullopt,
      std::int16_t version = 4) {
    DescribeConfigsRequest request;
    auto& asked = request.resources.emplace_back();
    asked.resource_type = resource.type;
    asked.resource_name = resource.name;
    asked.configuration_keys = std::move(keys);
    request.include_synonyms = true;
    request.include_documentation = version >= 3;
    const auto response = client.ask<DescribeConfigsResponse>(request, version);
    EXPECT_EQ(response.results.size(), 1U);
    return response.results.at(0);
  }
  DescribeConfigsResponse::DescribeConfigsResourceResult value(const Resource& resource,
                                                               const std::string& key,
                                                               std::int16_t version = 4) {
    const auto result = describe(resource, std::vector<std::string>{key}, version);
    EXPECT_EQ(result.error_code, 0);
    EXPECT_EQ(result.configs.size(), 1U) << key;
    return result.configs.empty() ? DescribeConfigsResponse::DescribeConfigsResourceResult()
                                  : result.configs[0];
  }
  std::string layers(const Resource& resource, const std::string& key, std::int16_t version = 4) {
    std::string out;
    for (const auto& synonym : value(resource, key, version).synonyms) {
      out += synonym.name + "=" + synonym.value.value_or("null") + "@" +
             std::to_string(synonym.source) + " ";
    }
    return out;
  }
};

TEST_F(Configs, every_layer_is_shown_most_specific_first_in_every_version) {
  rig.create_topic("t", 1, {{"retention.ms", "1000"}});
  EXPECT_EQ(error_of({broker, ""}, {{"log.retention.ms", op_set, "3000"}}), 0);
  EXPECT_EQ(error_of({broker, "1"}, {{"log.retention.ms", op_set, "2000"}}), 0);
  for (std::int16_t version = 1; version <= 4; ++version) {
    const auto shown = value({topic, "t"}, "retention.ms", version);
    EXPECT_EQ(shown.value, "1000");
    EXPECT_EQ(shown.config_source, 1);
    EXPECT_FALSE(shown.read_only);
    EXPECT_FALSE(shown.is_sensitive);
    if (version >= 3) {
      EXPECT_EQ(shown.config_type, 5);
      EXPECT_NE(shown.documentation.value_or(""), "");
    }
    EXPECT_EQ(layers({topic, "t"}, "retention.ms", version),
              "retention.ms=1000@1 log.retention.ms=2000@2 log.retention.ms=3000@3 "
              "log.retention.hours=168@5 ");
  }
  EXPECT_EQ(layers({broker, "1"}, "log.retention.ms"),
            "log.retention.ms=2000@2 log.retention.ms=3000@3 log.retention.hours=168@5 ");
  EXPECT_EQ(value({broker, ""}, "log.retention.ms").config_source, 3);
  EXPECT_EQ(describe({broker, ""}).configs.size(), 1U) << "only what is set for all brokers";
}

TEST_F(Configs, a_brokers_setting_acts_at_once_on_topics_that_have_none) {
  rig.create_topic("plain");
  rig.create_topic("own", 1, {{"max.message.bytes", "5555"}});
  EXPECT_EQ(error_of({broker, ""}, {{"message.max.bytes", op_set, "7777"}}), 0);
  EXPECT_EQ(value({topic, "plain"}, "max.message.bytes").value, "7777");
  EXPECT_EQ(value({topic, "plain"}, "max.message.bytes").config_source, 3);
  EXPECT_EQ(value({topic, "own"}, "max.message.bytes").value, "5555");
  rig.on_reactor([&] {
    EXPECT_EQ(rig.broker().find("plain", 0)->config().max_message_bytes, 7777);
    EXPECT_EQ(rig.broker().find("own", 0)->config().max_message_bytes, 5555);
  });
  EXPECT_EQ(error_of({broker, ""}, {{"message.max.bytes", op_delete}}), 0);
  EXPECT_EQ(value({topic, "plain"}, "max.message.bytes").config_source, 5);
}

TEST_F(Configs, brokers_settings_that_need_a_start_are_read_only_and_refused) {
  for (const char* key : {"node.id", "num.partitions", "log.retention.hours"}) {
    EXPECT_TRUE(value({broker, "1"}, key).read_only) << key;
    EXPECT_EQ(error_of({broker, "1"}, {{key, op_set, "3"}}), 42) << key;
  }
  EXPECT_FALSE(value({broker, "1"}, "max.connections").read_only);
  EXPECT_EQ(error_of({broker, "1"}, {{"log.retention.ms", op_set, "soon"}}), 42);
  EXPECT_EQ(error_of({broker, "1"}, {{"no.such", op_set, "1"}}), 42);
  EXPECT_EQ(error_of({broker, "7"}, {{"log.retention.ms", op_set, "1"}}), 42);
  EXPECT_EQ(error_of({broker, "x"}, {{"log.retention.ms", op_set, "1"}}), 42);
  EXPECT_EQ(describe({broker, "7"}).error_code, 42);
  EXPECT_EQ(describe({broker, "x"}).error_code, 42);
}

TEST_F(Configs, requests_that_make_no_sense_are_refused_as_by_kafka) {
  rig.create_topic("t");
  const Resource t{topic, "t"};
  EXPECT_EQ(error_of(t, {{"retention.ms", op_set, "1"}, {"retention.ms", op_set, "2"}}), 42);
  EXPECT_EQ(error_of(t, {{"retention.ms", op_set, std::nullopt}}), 42);
  EXPECT_EQ(error_of(t, {{"retention.ms", 9, "1"}}), 42);
  EXPECT_EQ(error_of(t, {{"retention.ms", op_append, "1"}}), 40);
  EXPECT_EQ(error_of(t, {{"no.such", op_append, "1"}}), 40);
  EXPECT_EQ(error_of(t, {{"no.such", op_set, "1"}}), 40);
  EXPECT_EQ(error_of(t, {{"retention.ms", op_set, "soon"}}), 40);
  EXPECT_EQ(error_of({topic, ""}, {{"retention.ms", op_set, "1"}}), 42);
  EXPECT_EQ(error_of({topic, "a b"}, {{"retention.ms", op_set, "1"}}), 17);
  EXPECT_EQ(error_of({topic, "none"}, {{"retention.ms", op_set, "1"}}), 3);
  EXPECT_EQ(error_of({client_metrics, "m"}, {{"interval.ms", op_set, "1"}}), 42);
  EXPECT_EQ(error_of({logger, "1"}, {{"root", op_set, "DEBUG"}}), 42);
  EXPECT_EQ(error_of({99, "t"}, {{"k", op_set, "1"}}), 42);
  EXPECT_EQ(value(t, "retention.ms").config_source, 5) << "nothing has changed";

  IncrementalAlterConfigsRequest twice;
  for (int i = 0; i < 2; ++i) {
    auto& asked = twice.resources.emplace_back();
    asked.resource_type = topic;
    asked.resource_name = "t";
  }
  const auto response = client.ask<IncrementalAlterConfigsResponse>(twice, 1);
  ASSERT_EQ(response.responses.size(), 2U);
  EXPECT_EQ(response.responses[0].error_code, 42);
  EXPECT_EQ(response.responses[1].error_code, 42);
}

TEST_F(Configs, incremental_changes_in_every_version) {
  for (std::int16_t version = 0; version <= 1; ++version) {
    const std::string name = "t" + std::to_string(version);
    rig.create_topic(name);
    const Resource t{topic, name};
    EXPECT_EQ(change(t, {{"retention.ms", op_set, "5"}}, true, version).error_code, 0);
    EXPECT_EQ(value(t, "retention.ms").config_source, 5) << "validate_only";
    EXPECT_EQ(change(t, {{"retention.ms", op_set, "5"}, {"segment.ms", op_set, "6"}}, false,
                     version)
                  .error_code,
              0);
    EXPECT_EQ(change(t, {{"retention.ms", op_delete}}, false, version).error_code, 0);
    EXPECT_EQ(value(t, "retention.ms").config_source, 5);
    EXPECT_EQ(value(t, "segment.ms").value, "6");
    EXPECT_EQ(change(t, {{"cleanup.policy", op_append, "compact"}}, false, version).error_code, 0);
    EXPECT_EQ(value(t, "cleanup.policy").value, "delete,compact");
    EXPECT_EQ(change(t, {{"cleanup.policy", op_subtract, "delete"}}, false, version).error_code, 0);
    EXPECT_EQ(value(t, "cleanup.policy").value, "compact");
  }
}

TEST_F(Configs, alter_configs_replaces_everything_in_every_version) {
  for (std::int16_t version = 0; version <= 2; ++version) {
    const std::string name = "t" + std::to_string(version);
    rig.create_topic(name, 1, {{"retention.ms", "1"}, {"segment.ms", "2"}});
    const Resource t{topic, name};
    EXPECT_EQ(replace(t, {{"segment.ms", "3"}}, true, version), 0);
    EXPECT_EQ(value(t, "segment.ms").value, "2");
    EXPECT_EQ(replace(t, {{"segment.ms", "3"}}, false, version), 0);
    EXPECT_EQ(value(t, "segment.ms").value, "3");
    EXPECT_EQ(value(t, "retention.ms").config_source, 5);
    EXPECT_EQ(replace(t, {{"no.such", "3"}}, false, version), 40);
    EXPECT_EQ(replace({broker, ""}, {{"log.roll.ms", "9"}}, false, version), 0);
    EXPECT_EQ(replace({broker, ""}, {}, false, version), 0);
    EXPECT_EQ(describe({broker, ""}).configs.size(), 0U);
    EXPECT_EQ(replace({logger, "1"}, {}, false, version), 42);
  }
}

TEST_F(Configs, groups_have_settings_of_their_own) {
  const Resource g{group, "g"};
  EXPECT_EQ(value(g, "consumer.session.timeout.ms").value, "45000");
  EXPECT_EQ(value(g, "consumer.session.timeout.ms").config_source, 5);
  EXPECT_EQ(error_of(g, {{"consumer.session.timeout.ms", op_set, "50000"}}), 0);
  EXPECT_EQ(value(g, "consumer.session.timeout.ms").value, "50000");
  EXPECT_EQ(value(g, "consumer.session.timeout.ms").config_source, 8);
  EXPECT_EQ(value(g, "consumer.session.timeout.ms").config_type, 3);
  rig.on_reactor([&] {
    EXPECT_EQ(rig.broker().group_config("g", "consumer.session.timeout.ms"), "50000");
  });
  EXPECT_EQ(error_of(g, {{"consumer.session.timeout.ms", op_set, "1"}}), 40);
  EXPECT_EQ(error_of(g, {{"no.such", op_set, "1"}}), 40);
  EXPECT_EQ(error_of({group, ""}, {{"consumer.session.timeout.ms", op_set, "50000"}}), 42);
  EXPECT_EQ(describe({group, ""}).error_code, 42);
}

TEST_F(Configs, loggers_and_client_metrics_are_described_and_empty_keys_mean_all) {
  const auto logger_result = describe({logger, "1"});
  EXPECT_EQ(logger_result.error_code, 0);
  ASSERT_EQ(logger_result.configs.size(), 1U);
  EXPECT_EQ(logger_result.configs[0].config_source, 6);
  EXPECT_EQ(describe({logger, ""}).error_code, 42);
  EXPECT_EQ(describe({client_metrics, "m"}).error_code, 0);
  EXPECT_EQ(describe({client_metrics, ""}).error_code, 42);
  EXPECT_EQ(describe({99, "x"}).error_code, 42);
  rig.create_topic("t");
  const std::size_t all = describe({topic, "t"}).configs.size();
  EXPECT_GT(all, 20U);
  EXPECT_EQ(describe({topic, "t"}, std::vector<std::string>{}).configs.size(), all);
  EXPECT_EQ(describe({topic, "t"}, std::vector<std::string>{"no.such"}).configs.size(), 0U);
  EXPECT_EQ(describe({topic, "none"}).error_code, 3);
}

TEST_F(Configs, resources_are_listed_by_type) {
  rig.create_topic("t");
  EXPECT_EQ(error_of({group, "g"}, {{"consumer.session.timeout.ms", op_set, "50000"}}), 0);
  EXPECT_TRUE(client.ask<ListConfigResourcesResponse>(ListConfigResourcesRequest{}, 0)
                  .config_resources.empty());
  const auto listed = [&](std::vector<std::int8_t> types) {
    ListConfigResourcesRequest request;
    request.resource_types = std::move(types);
    std::string out;
    const auto response = client.ask<ListConfigResourcesResponse>(request, 1);
    for (const auto& resource : response.config_resources) {
      if (resource.resource_name.starts_with("__")) continue;  // there when somebody had a group
      out += std::to_string(resource.resource_type) + ":" + resource.resource_name + " ";
    }
    return out + (response.error_code == 0 ? "" : "!" + std::to_string(response.error_code));
  };
  EXPECT_EQ(listed({}), "2:t 4:1 8:1 32:g ");
  EXPECT_EQ(listed({topic, topic}), "2:t ");
  EXPECT_EQ(listed({group}), "32:g ");
  EXPECT_EQ(listed({topic, 99}), "!35");
}

// Each connection is a client of its own; all change the same topic and the same broker.
TEST_F(Configs, of_changes_at_the_same_time_none_is_lost) {
  rig.create_topic("t");
  const std::vector<std::string> keys = {"retention.ms",      "retention.bytes",
                                         "segment.ms",        "max.message.bytes",
                                         "segment.bytes",     "segment.index.bytes"};
  std::vector<std::thread> threads;
  for (const std::string& key : keys) {
    threads.emplace_back([&, key] {
      WireClient own(rig.port());
      IncrementalAlterConfigsRequest request;
      auto& asked = request.resources.emplace_back();
      asked.resource_type = topic;
      asked.resource_name = "t";
      auto& config = asked.configs.emplace_back();
      config.name = key;
      for (int i = 0; i < 10; ++i) {
        config.value = std::to_string(5000000 + i);
        EXPECT_EQ(own.ask<IncrementalAlterConfigsResponse>(request, 1).responses[0].error_code, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& key : keys) {
    EXPECT_EQ(value({topic, "t"}, key).value, "5000009") << key;
  }
}

TEST_F(Configs, max_connections_can_be_lowered_while_running) {
  EXPECT_EQ(error_of({broker, "1"}, {{"max.connections", op_set, "1"}}), 0);
  WireClient refused(rig.port());
  EXPECT_TRUE(refused.closed_by_peer());
  EXPECT_EQ(error_of({broker, "1"}, {{"max.connections", op_delete}}), 0);
  WireClient accepted(rig.port());
  EXPECT_EQ(accepted.ask<ListConfigResourcesResponse>(ListConfigResourcesRequest{}, 0).error_code,
            0);
}

}  // namespace
}  // namespace polylog::server::kafka
