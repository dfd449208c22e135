#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "protocol/kafka/alter_client_quotas_request.h"
#include "protocol/kafka/alter_client_quotas_response.h"
#include "protocol/kafka/create_partitions_request.h"
#include "protocol/kafka/create_partitions_response.h"
#include "protocol/kafka/create_topics_request.h"
#include "protocol/kafka/create_topics_response.h"
#include "protocol/kafka/delete_topics_request.h"
#include "protocol/kafka/delete_topics_response.h"
#include "protocol/kafka/describe_client_quotas_request.h"
#include "protocol/kafka/describe_client_quotas_response.h"
#include "protocol/kafka/fetch_request.h"
#include "protocol/kafka/fetch_response.h"
#include "protocol/kafka/metadata_request.h"
#include "protocol/kafka/metadata_response.h"
#include "protocol/kafka/produce_request.h"
#include "protocol/kafka/produce_response.h"
#include "server/kafka/broker_rig.h"

// Client quotas over a socket: altered, described, and what they do to clients.
namespace polylog::server::kafka {
namespace {

using namespace protocol::kafka;
using Clock = std::chrono::steady_clock;
using Entity = std::vector<std::pair<std::string, std::optional<std::string>>>;

std::int64_t ms_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}

// Two windows of a second: a second's worth may pass at once, and the rest has to wait.
const std::map<std::string, std::string> short_windows = {{"quota.window.num", "2"}};

struct Quotas : testing::Test {
  BrokerRig rig{short_windows};
  WireClient client{rig.port()};

  AlterClientQuotasResponse::EntryData alter(const Entity& entity, const std::string& key,
                                             std::optional<double> value,
                                             bool validate_only = false, std::int16_t version = 1) {
    AlterClientQuotasRequest request;
    request.validate_only = validate_only;
    auto& entry = request.entries.emplace_back();
    for (const auto& [type, name] : entity) {
      auto& part = entry.entity.emplace_back();
      part.entity_type = type;
      part.entity_name = name;
    }
    auto& operation = entry.ops.emplace_back();
    operation.key = key;
    operation.value = value.value_or(0);
    operation.remove = !value;
    WireClient admin(rig.port());
    const auto response = admin.ask<AlterClientQuotasResponse>(request, version);
    EXPECT_EQ(response.entries.size(), 1U);
    return response.entries.at(0);
  }
  // "user=a,client-id=<default>:key=value " for each entry.
  std::string described(const std::vector<std::tuple<std::string, int, std::optional<std::string>>>&
                            components,
                        bool strict = false, std::int16_t version = 1) {
    DescribeClientQuotasRequest request;
    request.strict = strict;
    for (const auto& [type, match, name] : components) {
      auto& component = request.components.emplace_back();
      component.entity_type = type;
      component.match_type = static_cast<std::int8_t>(match);
      component.match = name;
    }
    const auto response = client.ask<DescribeClientQuotasResponse>(request, version);
    if (response.error_code != 0) {
      EXPECT_FALSE(response.entries);
      return "!" + std::to_string(response.error_code);
    }
    std::string out;
    for (const auto& entry : *response.entries) {
      for (const auto& part : entry.entity) {
        out += part.entity_type + "=" + part.entity_name.value_or("<default>") + ",";
      }
      for (const auto& value : entry.values) {
        out += value.key + "=" + std::to_string(static_cast<int>(value.value)) + " ";
      }
    }
    return out;
  }
  ProduceResponse produce(WireClient& producer, const std::string& topic, std::size_t bytes) {
    ProduceRequest request;
    request.acks = -1;
    request.timeout_ms = 10'000;
    auto& data = request.topic_data.emplace_back();
    data.name = topic;
    auto& partition = data.partition_data.emplace_back();
    partition.records = batch_of(std::vector<std::string>{std::string(bytes, 'x')});
    const auto response = producer.ask<ProduceResponse>(request, 9);
    EXPECT_EQ(response.responses.at(0).partition_responses.at(0).error_code, 0);
    return response;
  }
};

TEST_F(Quotas, are_altered_and_described_in_every_version) {
  for (std::int16_t version = 0; version <= 1; ++version) {
    EXPECT_EQ(described({}, false, version), "");
    const Entity both = {{"user", "a"}, {"client-id", std::nullopt}};
    EXPECT_EQ(alter(both, "producer_byte_rate", 100, true, version).error_code, 0);
    EXPECT_EQ(described({}, false, version), "") << "validate_only";
    EXPECT_EQ(alter(both, "producer_byte_rate", 100, false, version).error_code, 0);
    EXPECT_EQ(alter(both, "consumer_byte_rate", 200, false, version).error_code, 0);
    EXPECT_EQ(alter({{"user", std::nullopt}}, "request_percentage", 50, false, version).error_code,
              0);
    const std::string pair =
        "user=a,client-id=<default>,consumer_byte_rate=200 producer_byte_rate=100 ";
    const std::string user = "user=<default>,request_percentage=50 ";
    EXPECT_EQ(described({{"user", 0, "a"}}, false, version), pair);
    EXPECT_EQ(described({{"user", 0, "a"}}, true, version), "");
    EXPECT_EQ(described({{"user", 1, std::nullopt}}, true, version), user);
    EXPECT_EQ(described({{"user", 2, std::nullopt}, {"client-id", 1, std::nullopt}}, true, version),
              pair);
    EXPECT_NE(described({{"user", 2, std::nullopt}}, false, version).find(user), std::string::npos);
    EXPECT_EQ(described({{"ip", 2, std::nullopt}}, false, version), "");
    EXPECT_EQ(alter(both, "producer_byte_rate", std::nullopt, false, version).error_code, 0);
    EXPECT_EQ(alter(both, "consumer_byte_rate", std::nullopt, false, version).error_code, 0);
    EXPECT_EQ(alter({{"user", std::nullopt}}, "request_percentage", std::nullopt, false, version)
                  .error_code,
              0);
  }
}

TEST_F(Quotas, what_makes_no_sense_is_refused) {
  EXPECT_EQ(alter({}, "producer_byte_rate", 1).error_code, 42);
  EXPECT_EQ(alter({{"group", "g"}}, "producer_byte_rate", 1).error_code, 42);
  EXPECT_EQ(alter({{"user", ""}}, "producer_byte_rate", 1).error_code, 42);
  EXPECT_EQ(alter({{"user", "u"}, {"user", "v"}}, "producer_byte_rate", 1).error_code, 42);
  EXPECT_EQ(alter({{"ip", "1.2.3.4"}, {"user", "v"}}, "connection_creation_rate", 1).error_code,
            42);
  EXPECT_EQ(alter({{"ip", "1.2.3"}}, "connection_creation_rate", 1).error_code, 42);
  EXPECT_EQ(alter({{"ip", "1.2.3.4"}}, "producer_byte_rate", 1).error_code, 42);
  EXPECT_EQ(alter({{"user", "u"}}, "no_such_rate", 1).error_code, 42);
  EXPECT_EQ(alter({{"user", "u"}}, "producer_byte_rate", 0).error_code, 42);
  EXPECT_EQ(alter({{"user", "u"}}, "producer_byte_rate", 1.5).error_code, 42);
  EXPECT_EQ(described({}), "");
  EXPECT_EQ(described({{"user", 0, std::nullopt}}), "!42");
  EXPECT_EQ(described({{"user", 1, "a"}}), "!42");
  EXPECT_EQ(described({{"user", 7, std::nullopt}}), "!42");
  EXPECT_EQ(described({{"user", 2, std::nullopt}, {"user", 2, std::nullopt}}), "!42");
  EXPECT_EQ(described({{"ip", 2, std::nullopt}, {"user", 2, std::nullopt}}), "!42");
  EXPECT_EQ(described({{"group", 2, std::nullopt}}), "!35");
}

TEST_F(Quotas, a_producer_is_told_to_wait_and_not_heard_meanwhile) {
  rig.create_topic("t");
  ASSERT_EQ(alter({{"client-id", "slow"}}, "producer_byte_rate", 100'000).error_code, 0);
  WireClient slow(rig.port());
  slow.client_id = "slow";
  EXPECT_EQ(produce(slow, "t", 50'000).throttle_time_ms, 0);
  const auto start = Clock::now();
  const std::int32_t told_ms = produce(slow, "t", 100'000).throttle_time_ms;
  EXPECT_GT(told_ms, 300);
  EXPECT_LT(told_ms, 1500);
  EXPECT_LT(ms_since(start), told_ms) << "the answer itself comes at once";
  slow.ask<MetadataResponse>(MetadataRequest{}, 9);
  EXPECT_GE(ms_since(start), told_ms - 20);
  EXPECT_EQ(produce(client, "t", 500'000).throttle_time_ms, 0) << "others are not meant";
  rig.on_reactor([&] {
    EXPECT_NE(rig.metrics().text().find("polylog_quota_throttled_total{quota=\"produce\"} 1"),
              std::string::npos);
  });
}

TEST_F(Quotas, a_producer_gets_through_what_its_rate_allows) {
  rig.create_topic("t");
  ASSERT_EQ(alter({{"user", "ANONYMOUS"}}, "producer_byte_rate", 200'000).error_code, 0);
  const auto start = Clock::now();
  for (int i = 0; i < 13; ++i) produce(client, "t", 50'000);
  // 650 KB at 200 KB/s, of which a second's worth was free
  const std::int64_t took_ms = ms_since(start);
  EXPECT_GT(took_ms, 1700);
  EXPECT_LT(took_ms, 4500);
}

TEST_F(Quotas, a_client_that_sends_on_without_waiting_is_held_up_too) {
  rig.create_topic("t");
  ASSERT_EQ(alter({{"client-id", std::nullopt}}, "producer_byte_rate", 100'000).error_code, 0);
  WireClient eager(rig.port());
  ProduceRequest request;
  request.acks = 1;
  auto& data = request.topic_data.emplace_back();
  data.name = "t";
  auto& partition = data.partition_data.emplace_back();
  partition.records = batch_of(std::vector<std::string>{std::string(50'000, 'x')});
  const auto start = Clock::now();
  for (int i = 0; i < 6; ++i) eager.send(request, 9);
  for (int i = 0; i < 6; ++i) eager.receive<ProduceResponse>(9);
  EXPECT_GT(ms_since(start), 1000);
}

TEST_F(Quotas, a_muted_connection_that_closes_is_let_go) {
  rig.create_topic("t");
  ASSERT_EQ(alter({{"client-id", "slow"}}, "producer_byte_rate", 10).error_code, 0);
  auto slow = std::make_unique<WireClient>(rig.port());
  slow->client_id = "slow";
  EXPECT_GT(produce(*slow, "t", 500'000).throttle_time_ms, 10'000'000);
  slow = nullptr;
  EXPECT_EQ(produce(client, "t", 1000).throttle_time_ms, 0);
}  // the rig stops at once, whoever is muted

TEST_F(Quotas, a_reader_over_its_rate_gets_nothing_at_once_and_everything_in_the_end) {
  rig.create_topic("t");
  for (int i = 0; i < 8; ++i) produce(client, "t", 50'000);
  ASSERT_EQ(alter({{"client-id", "reader"}}, "consumer_byte_rate", 100'000).error_code, 0);
  WireClient reader(rig.port());
  reader.client_id = "reader";
  std::int64_t offset = 0;
  int throttled = 0;
  const auto start = Clock::now();
  while (offset < 8 && ms_since(start) < 15'000) {
    FetchRequest request;
    request.max_wait_ms = 100;
    request.min_bytes = 1;
    request.max_bytes = 50 << 20;
    request.session_epoch = -1;
    auto& asked = request.topics.emplace_back();
    asked.topic = "t";
    auto& partition = asked.partitions.emplace_back();
    partition.partition = 0;
    partition.fetch_offset = offset;
    partition.partition_max_bytes = 1 << 20;
    const auto response = reader.ask<FetchResponse>(request, 11);
    EXPECT_EQ(response.error_code, 0);
    if (response.throttle_time_ms > 0) ++throttled;
    if (response.responses.empty()) continue;
    const Slice records = response.responses[0].partitions.at(0).records.value_or(Slice());
    EXPECT_LE(records.size(), 110'000U) << "no more is read than could pass";
    offset += static_cast<std::int64_t>(values_in(records).size());
  }
  EXPECT_EQ(offset, 8);
  EXPECT_GT(throttled, 0);
  EXPECT_GT(ms_since(start), 2000);
}

TEST_F(Quotas, a_record_larger_than_a_quota_ever_allows_is_read_nevertheless) {
  rig.create_topic("t");
  produce(client, "t", 300'000);
  ASSERT_EQ(alter({{"client-id", "reader"}}, "consumer_byte_rate", 100'000).error_code, 0);
  WireClient reader(rig.port());
  reader.client_id = "reader";
  FetchRequest request;
  request.max_bytes = 50 << 20;
  request.session_epoch = -1;
  auto& asked = request.topics.emplace_back();
  asked.topic = "t";
  auto& partition = asked.partitions.emplace_back();
  partition.partition_max_bytes = 1 << 20;
  const auto response = reader.ask<FetchResponse>(request, 11);
  EXPECT_GT(response.throttle_time_ms, 1000);
  ASSERT_EQ(response.responses.size(), 1U);
  EXPECT_EQ(values_in(*response.responses[0].partitions.at(0).records).size(), 1U);
}

TEST_F(Quotas, requests_count_by_the_time_they_take) {
  ASSERT_EQ(alter({{"client-id", "busy"}}, "request_percentage", 0.0001).error_code, 0);
  WireClient busy(rig.port());
  busy.client_id = "busy";
  std::int32_t told_ms = 0;
  for (int i = 0; i < 20 && told_ms == 0; ++i) {
    told_ms = busy.ask<MetadataResponse>(MetadataRequest{}, 9).throttle_time_ms;
  }
  EXPECT_GT(told_ms, 0);
  EXPECT_LE(told_ms, 1000);
  EXPECT_EQ(client.ask<MetadataResponse>(MetadataRequest{}, 9).throttle_time_ms, 0);
}

TEST(MutationQuotas, changes_of_topics_are_refused_or_paid_for_by_version) {
  const std::map<std::string, std::string> one_window = {{"controller.quota.window.num", "1"}};
  BrokerRig rig(one_window);
  WireClient admin(rig.port());
  AlterClientQuotasRequest limit;
  auto& entry = limit.entries.emplace_back();
  entry.entity.emplace_back().entity_type = "user";
  entry.entity[0].entity_name = std::nullopt;
  entry.ops.emplace_back().key = "controller_mutation_rate";
  entry.ops[0].value = 10;
  ASSERT_EQ(admin.ask<AlterClientQuotasResponse>(limit, 1).entries.at(0).error_code, 0);
  const auto create = [&](const std::string& name, std::int32_t partitions, std::int16_t version) {
    CreateTopicsRequest request;
    auto& topic = request.topics.emplace_back();
    topic.name = name;
    topic.num_partitions = partitions;
    topic.replication_factor = 1;
    WireClient client(rig.port());
    const auto response = client.ask<CreateTopicsResponse>(request, version);
    return std::pair(response.topics.at(0).error_code, response.throttle_time_ms);
  };
  EXPECT_EQ(create("big", 30, 7), std::pair(std::int16_t{0}, 0)) << "strict: once below nothing";
  const auto refused = create("more", 1, 7);
  EXPECT_EQ(refused.first, 89);
  EXPECT_GT(refused.second, 500);
  CreatePartitionsRequest growth;
  growth.topics.emplace_back().name = "big";
  growth.topics[0].count = 31;
  growth.topics[0].assignments = std::nullopt;
  WireClient grower(rig.port());
  EXPECT_EQ(grower.ask<CreatePartitionsResponse>(growth, 3).results.at(0).error_code, 89);
  DeleteTopicsRequest deletion;
  deletion.topics.emplace_back().name = "big";
  WireClient deleter(rig.port());
  EXPECT_EQ(deleter.ask<DeleteTopicsResponse>(deletion, 6).responses.at(0).error_code, 89);
  const auto lenient = create("older", 5, 5);
  EXPECT_EQ(lenient.first, 0);
  EXPECT_GT(lenient.second, 1000);
  std::this_thread::sleep_for(std::chrono::milliseconds(lenient.second + 50));
  EXPECT_EQ(create("later", 1, 7).first, 0);
}

TEST_F(Quotas, connections_over_an_address_rate_are_held_and_closed) {
  ASSERT_EQ(alter({{"ip", "127.0.0.1"}}, "connection_creation_rate", 3).error_code, 0);
  std::vector<std::unique_ptr<WireClient>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(std::make_unique<WireClient>(rig.port()));
  for (auto& one : clients) {
    EXPECT_EQ(one->ask<MetadataResponse>(MetadataRequest{}, 9).brokers.size(), 1U);
  }
  const auto start = Clock::now();
  WireClient refused(rig.port());
  EXPECT_TRUE(refused.closed_by_peer());
  EXPECT_GT(ms_since(start), 100);
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  WireClient later(rig.port());
  EXPECT_EQ(later.ask<MetadataResponse>(MetadataRequest{}, 9).brokers.size(), 1U);
}

}  // namespace
}  // namespace polylog::server::kafka
