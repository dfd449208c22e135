#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "protocol/kafka/delete_records_request.h"
#include "protocol/kafka/delete_records_response.h"
#include "protocol/kafka/fetch_request.h"
#include "protocol/kafka/fetch_response.h"
#include "protocol/kafka/find_coordinator_request.h"
#include "protocol/kafka/find_coordinator_response.h"
#include "protocol/kafka/init_producer_id_request.h"
#include "protocol/kafka/init_producer_id_response.h"
#include "protocol/kafka/list_offsets_request.h"
#include "protocol/kafka/list_offsets_response.h"
#include "protocol/kafka/offset_for_leader_epoch_request.h"
#include "protocol/kafka/offset_for_leader_epoch_response.h"
#include "protocol/kafka/produce_request.h"
#include "protocol/kafka/produce_response.h"
#include "server/kafka/broker_rig.h"

// Produce, fetch and what concerns offsets, over a socket, on the real engines: the same in every
// layout.
namespace polylog::server::kafka {
namespace {

using namespace protocol::kafka;
using format::kafka::Codec;
using Values = std::vector<std::string>;
using Records = std::vector<RecordText>;

struct Data : testing::TestWithParam<const char*> {
  ProduceRequest produce_of(std::optional<Slice> records, std::int16_t acks = -1,
                            std::int32_t partition = 0, const std::string& name = "t") {
    ProduceRequest request;
    request.acks = acks;
    request.timeout_ms = 10'000;
    auto& topic = request.topic_data.emplace_back();
    topic.name = name;
    topic.topic_id = rig.topic_id(name);
    auto& data = topic.partition_data.emplace_back();
    data.index = partition;
    data.records = std::move(records);
    return request;
  }
  ProduceResponse::PartitionProduceResponse produce(std::optional<Slice> records,
                                                    std::int16_t acks = -1,
                                                    std::int16_t version = 9,
                                                    const std::string& name = "t") {
    const auto response =
        client.ask<ProduceResponse>(produce_of(std::move(records), acks, 0, name), version);
    return response.responses.at(0).partition_responses.at(0);
  }
  FetchRequest fetch_of(std::int64_t offset, std::int32_t wait_ms = 0,
                        const std::string& name = "t", std::int32_t partition = 0) {
    FetchRequest request;
    request.max_wait_ms = wait_ms;
    request.min_bytes = 1;
    auto& topic = request.topics.emplace_back();
    topic.topic = name;
    topic.topic_id = rig.topic_id(name);
    auto& data = topic.partitions.emplace_back();
    data.partition = partition;
    data.fetch_offset = offset;
    data.partition_max_bytes = 1 << 20;
    return request;
  }
  FetchResponse::PartitionData fetch(std::int64_t offset, std::int16_t version = 11) {
    const auto response = client.ask<FetchResponse>(fetch_of(offset), version);
    return response.responses.at(0).partitions.at(0);
  }
  ListOffsetsResponse::ListOffsetsPartitionResponse list(std::int64_t timestamp,
                                                         std::int16_t version = 7) {
    ListOffsetsRequest request;
    auto& topic = request.topics.emplace_back();
    topic.name = "t";
    topic.partitions.emplace_back().timestamp = timestamp;
    return client.ask<ListOffsetsResponse>(request, version).topics.at(0).partitions.at(0);
  }
  void SetUp() override { rig.create_topic("t", 2); }

  BrokerRig rig{{{"polylog.layout", GetParam()}}};
  WireClient client{rig.port()};
};

INSTANTIATE_TEST_SUITE_P(Layout, Data, testing::Values("kafka", "rocketmq", "segment"),
                         [](const auto& layout) { return std::string(layout.param); });

TEST_P(Data, what_is_produced_is_fetched_in_every_version) {
  std::int64_t offset = 0;
  for (std::int16_t version = 3; version <= 13; ++version) {
    for (const std::int16_t acks : {std::int16_t{1}, std::int16_t{-1}}) {
      const auto answer = produce(batch_of(Values{"v" + std::to_string(version)}), acks, version);
      EXPECT_EQ(answer.error_code, 0) << answer.error_message.value_or("");
      EXPECT_EQ(answer.base_offset, offset++);
      EXPECT_EQ(answer.log_append_time_ms, -1);
      EXPECT_EQ(answer.log_start_offset, version >= 5 ? 0 : -1);
    }
  }
  for (std::int16_t version = 4; version <= 18; ++version) {
    const auto data = fetch(0, version);
    EXPECT_EQ(data.error_code, 0);
    EXPECT_EQ(data.high_watermark, offset);
    EXPECT_EQ(data.last_stable_offset, offset);
    EXPECT_FALSE(data.aborted_transactions) << "read_uncommitted";
    const Values values = values_in(*data.records);
    ASSERT_EQ(values.size(), static_cast<std::size_t>(offset)) << version;
    EXPECT_EQ(values.front(), "v3");
    EXPECT_EQ(values.back(), "v13");
  }
}

// BR-19.
TEST_P(Data, records_are_never_null) {
  for (std::int16_t version = 4; version <= 18; ++version) {
    struct Case {
      std::string topic;
      std::int32_t partition;
      std::int64_t offset;
      std::int16_t error;
    };
    const std::int16_t unknown = version >= 13 ? 100 : 3;
    for (const Case& one : {Case{"t", 0, 0, 0}, Case{"t", 7, 0, 3}, Case{"none", 0, 0, unknown},
                            Case{"t", 0, 99, 1}, Case{"t", 0, -5, 1}}) {
      const auto response =
          client.ask<FetchResponse>(fetch_of(one.offset, 0, one.topic, one.partition), version);
      const auto& data = response.responses.at(0).partitions.at(0);
      EXPECT_EQ(data.error_code, one.error) << one.topic << " v" << version;
      ASSERT_TRUE(data.records) << one.topic << " v" << version;
      EXPECT_TRUE(data.records->empty());
    }
  }
}

TEST_P(Data, produce_errors_concern_their_partition_only) {
  ProduceRequest request = produce_of(batch_of(Values{"good"}));
  auto& topic = request.topic_data[0];
  std::vector<std::uint8_t> corrupt = to_vector(batch_of(Values{"bad"}).view());
  corrupt.back() ^= 1;
  topic.partition_data.push_back({1, Slice::of(corrupt)});
  topic.partition_data.push_back({2, batch_of(Values{"x"})});
  auto& unknown = request.topic_data.emplace_back();
  unknown.name = "nosuch";
  unknown.partition_data.push_back({0, batch_of(Values{"x"})});
  const auto response = client.ask<ProduceResponse>(request, 8);
  const auto& answers = response.responses.at(0).partition_responses;
  EXPECT_EQ(answers.at(0).error_code, 0);
  EXPECT_EQ(answers.at(1).error_code, 2);
  EXPECT_EQ(answers.at(1).base_offset, -1);
  EXPECT_EQ(answers.at(2).error_code, 3);
  EXPECT_EQ(response.responses.at(1).partition_responses.at(0).error_code, 3);
  EXPECT_EQ(values_in(*fetch(0).records), Values{"good"});
}

TEST_P(Data, malformed_record_sets_are_refused) {
  EXPECT_EQ(produce(std::nullopt).error_code, 87);
  EXPECT_EQ(produce(Slice()).error_code, 87);
  std::vector<std::uint8_t> two = to_vector(batch_of(Values{"a"}).view());
  const std::vector<std::uint8_t> second = two;
  two.insert(two.end(), second.begin(), second.end());
  EXPECT_EQ(produce(Slice::of(two)).error_code, 87);
  const Slice zstd = batch_of(Records{{"z", 1'700'000'000'000}}, {}, Codec::zstd);
  EXPECT_EQ(produce(zstd, -1, 6).error_code, 76);
  EXPECT_EQ(produce(zstd, -1, 7).error_code, 0);
  EXPECT_EQ(produce(batch_of(Values{"a"}), 2).error_code, 21);
  EXPECT_EQ(produce(batch_of(Values{"a"}), -2).error_code, 21);
}

TEST_P(Data, too_large_and_too_early_are_named) {
  rig.create_topic("small", 1, {{"max.message.bytes", "100"}});
  EXPECT_EQ(produce(batch_of(Values{std::string(200, 'x')}), -1, 9, "small").error_code, 10);
  const std::int64_t far_ahead_ms = SystemClock().now().value() + 10 * 86'400'000LL;
  const auto answer =
      produce(batch_of(Records{{"now", 1'700'000'000'000}, {"future", far_ahead_ms}}));
  EXPECT_EQ(answer.error_code, 32);
  ASSERT_EQ(answer.record_errors.size(), 1U);
  EXPECT_EQ(answer.record_errors[0].batch_index, 1);
}

TEST_P(Data, min_insync_replicas_above_one_refuses_acks_all) {
  rig.create_topic("two", 1, {{"min.insync.replicas", "2"}});
  EXPECT_EQ(produce(batch_of(Values{"a"}), -1, 9, "two").error_code, 19);
  EXPECT_EQ(produce(batch_of(Values{"a"}), 1, 9, "two").error_code, 0);
}

TEST_P(Data, log_append_time_is_answered) {
  rig.create_topic("stamped", 1, {{"message.timestamp.type", "LogAppendTime"}});
  const std::int64_t before_ms = SystemClock().now().value();
  const auto answer = produce(batch_of(Records{{"a", 5}}), -1, 9, "stamped");
  EXPECT_EQ(answer.error_code, 0);
  EXPECT_GE(answer.log_append_time_ms, before_ms);
}

TEST_P(Data, internal_topics_are_not_written_by_clients) {
  FindCoordinatorRequest request;  // makes the topic
  request.coordinator_keys = {"g"};
  client.ask<FindCoordinatorResponse>(request, 6);
  EXPECT_EQ(produce(batch_of(Values{"a"}), -1, 9, "__consumer_offsets").error_code, 17);
}

TEST_P(Data, idempotent_producers_are_deduplicated) {
  InitProducerIdRequest init;
  init.transactional_id = std::nullopt;
  const std::int64_t id = client.ask<InitProducerIdResponse>(init, 4).producer_id;
  const Slice first = batch_of(Values{"a", "b"}, Stamp{id, 0, 0});
  EXPECT_EQ(produce(first).base_offset, 0);
  EXPECT_EQ(produce(batch_of(Values{"c"}, Stamp{id, 0, 2})).base_offset, 2);
  const auto again = produce(first);
  EXPECT_EQ(again.error_code, 0);
  EXPECT_EQ(again.base_offset, 0);
  EXPECT_GT(again.log_append_time_ms, 0) << "the stored timestamp";
  EXPECT_EQ(produce(batch_of(Values{"gap"}, Stamp{id, 0, 9})).error_code, 45);
  EXPECT_EQ(produce(batch_of(Values{"n"}, Stamp{id, 1, 0})).error_code, 0);
  EXPECT_EQ(produce(batch_of(Values{"old"}, Stamp{id, 0, 3})).error_code, 47);
  EXPECT_EQ(values_in(*fetch(0).records), (Values{"a", "b", "c", "n"}));
}

// BR-17.
TEST_P(Data, sequences_wrap) {
  const Slice last = batch_of(Values{"a", "b"}, Stamp{77, 0, 2147483646});
  const Slice first = batch_of(Values{"c", "d"}, Stamp{77, 0, 0});
  EXPECT_EQ(produce(last).base_offset, 0);
  EXPECT_EQ(produce(first).base_offset, 2);
  EXPECT_EQ(produce(last).base_offset, 0);
  EXPECT_EQ(produce(first).base_offset, 2);
  const Slice across = batch_of(Values{"e", "f", "g"}, Stamp{78, 0, 2147483646});
  EXPECT_EQ(produce(across).base_offset, 4);
  EXPECT_EQ(produce(batch_of(Values{"h"}, Stamp{78, 0, 1})).base_offset, 7);
  EXPECT_EQ(produce(across).base_offset, 4);
}

TEST_P(Data, transactional_batches_are_refused_while_transactions_are_not_served) {
  EXPECT_EQ(produce(batch_of(Values{"a"}, Stamp{5, 0, 0, true})).error_code, 48);
  EXPECT_TRUE(fetch(0).records->empty());
}

TEST_P(Data, acks_0_has_no_answer_and_a_failure_closes) {
  client.send(produce_of(batch_of(Values{"quiet"}), 0), 7);
  EXPECT_TRUE(client.silent_for(100));
  WireClient failing(rig.port());
  failing.send(produce_of(batch_of(Values{"x"}), 0, 99), 7);
  EXPECT_TRUE(failing.closed_by_peer());
}

TEST_P(Data, pipelined_requests_overlap_and_answer_in_order) {
  constexpr int requests = 200;
  for (int i = 0; i < requests; ++i) {
    client.send(produce_of(batch_of(Values{std::to_string(i)})), 7);
  }
  for (int i = 0; i < requests; ++i) {
    const auto response = client.receive<ProduceResponse>(7);
    ASSERT_EQ(response.responses.at(0).partition_responses.at(0).base_offset, i);
  }
  std::size_t next = 0;
  while (next < requests) {
    const Values values = values_in(*fetch(static_cast<std::int64_t>(next)).records);
    ASSERT_FALSE(values.empty());
    for (const std::string& value : values) ASSERT_EQ(value, std::to_string(next++));
  }
}

TEST_P(Data, large_compressed_batches_keep_their_place) {
  std::vector<RecordText> records(20'000, {std::string(100, 'x'), 1'700'000'000'000});
  client.send(produce_of(batch_of(records, {}, Codec::gzip)), 7);
  client.send(produce_of(batch_of(Values{"after"})), 7);
  for (const std::int64_t base_offset : {0, 20'000}) {
    const auto response = client.receive<ProduceResponse>(7);
    EXPECT_EQ(response.responses.at(0).partition_responses.at(0).base_offset, base_offset);
  }
}

TEST_P(Data, a_fetch_waits_for_records) {
  client.send(fetch_of(0, 30'000), 11);
  EXPECT_TRUE(client.silent_for(150));
  WireClient producer(rig.port());
  producer.ask<ProduceResponse>(produce_of(batch_of(Values{"new"})), 7);
  const auto response = client.receive<FetchResponse>(11);
  EXPECT_EQ(values_in(*response.responses.at(0).partitions.at(0).records), Values{"new"});
}

TEST_P(Data, a_fetch_waits_for_min_bytes) {
  FetchRequest request = fetch_of(0, 30'000);
  request.min_bytes = 3000;
  client.send(request, 11);
  WireClient producer(rig.port());
  producer.ask<ProduceResponse>(produce_of(batch_of(Values{std::string(1000, 'a')})), 7);
  EXPECT_TRUE(client.silent_for(100));
  producer.ask<ProduceResponse>(produce_of(batch_of(Values{std::string(3000, 'b')})), 7);
  const auto response = client.receive<FetchResponse>(11);
  EXPECT_EQ(values_in(*response.responses.at(0).partitions.at(0).records).size(), 2U);
}

TEST_P(Data, a_fetch_answers_empty_at_its_deadline) {
  const auto started = std::chrono::steady_clock::now();
  const auto response = client.ask<FetchResponse>(fetch_of(0, 200), 11);
  const auto waited = std::chrono::steady_clock::now() - started;
  EXPECT_GE(waited, std::chrono::milliseconds(190));
  EXPECT_TRUE(response.responses.at(0).partitions.at(0).records->empty());
}

TEST_P(Data, a_half_closed_client_is_answered_at_once) {
  client.send(fetch_of(0, 600'000), 11);
  EXPECT_TRUE(client.silent_for(100));
  client.half_close();
  EXPECT_EQ(client.receive<FetchResponse>(11).responses.size(), 1U);
  EXPECT_TRUE(client.closed_by_peer());
}

TEST_P(Data, a_deleted_topic_ends_the_wait) {
  client.send(fetch_of(0, 600'000), 11);
  EXPECT_TRUE(client.silent_for(100));
  rig.on_reactor([&] { rig.broker().find("t", 0)->remove(); });
  EXPECT_EQ(client.receive<FetchResponse>(11).responses.at(0).partitions.at(0).error_code, 3);
}

TEST_P(Data, waiting_fetches_do_not_survive_the_service) {
  client.send(fetch_of(0, 600'000), 11);
  client.send(fetch_of(0, 600'000), 11);
  EXPECT_TRUE(client.silent_for(100));
}

TEST_P(Data, byte_limits_hold_but_for_the_first_batch) {
  for (int i = 0; i < 10; ++i) produce(batch_of(Values{std::string(1000, 'x')}));
  FetchRequest request = fetch_of(0);
  auto& second = request.topics[0].partitions.emplace_back(request.topics[0].partitions[0]);
  second.partition = 1;
  ProduceRequest other = produce_of(batch_of(Values{std::string(1000, 'y')}), -1, 1);
  client.ask<ProduceResponse>(other, 7);
  request.topics[0].partitions[0].partition_max_bytes = 10;
  auto response = client.ask<FetchResponse>(request, 11);
  EXPECT_EQ(values_in(*response.responses.at(0).partitions.at(0).records).size(), 1U);
  EXPECT_EQ(values_in(*response.responses.at(0).partitions.at(1).records).size(), 1U);
  request.max_bytes = 1500;
  response = client.ask<FetchResponse>(request, 11);
  EXPECT_EQ(values_in(*response.responses.at(0).partitions.at(0).records).size(), 1U);
  EXPECT_TRUE(response.responses.at(0).partitions.at(1).records->empty());
}

TEST_P(Data, old_clients_are_sent_zstd_as_it_is_stored) {
  produce(batch_of(Values{"plain"}));
  produce(batch_of(Records{{"z", 1'700'000'000'000}}, {}, Codec::zstd));
  for (const int version : {4, 9, 10}) {
    const auto answer = fetch(0, static_cast<std::int16_t>(version));
    EXPECT_EQ(values_in(*answer.records), (Values{"plain", "z"})) << version;
  }
}

TEST_P(Data, read_committed_gets_a_list_and_read_uncommitted_null) {
  produce(batch_of(Values{"a"}));
  FetchRequest request = fetch_of(0);
  request.isolation_level = 1;
  const auto response = client.ask<FetchResponse>(request, 11);
  const auto& data = response.responses.at(0).partitions.at(0);
  ASSERT_TRUE(data.aborted_transactions);
  EXPECT_TRUE(data.aborted_transactions->empty());
  EXPECT_EQ(values_in(*data.records), Values{"a"});
}

TEST_P(Data, leader_epochs_are_checked) {
  produce(batch_of(Values{"a"}));
  FetchRequest request = fetch_of(0);
  auto& asked = request.topics[0].partitions[0];
  const auto error_of = [&] {
    const auto response = client.ask<FetchResponse>(request, 12);
    return response.responses.at(0).partitions.at(0).error_code;
  };
  std::int32_t current = -1;
  rig.on_reactor([&] { current = rig.broker().find("t", 0)->epoch().value(); });
  asked.current_leader_epoch = current;
  EXPECT_EQ(error_of(), 0);
  asked.current_leader_epoch = current + 1;
  EXPECT_EQ(error_of(), 75);
  asked.current_leader_epoch = -1;
  asked.last_fetched_epoch = current;
  EXPECT_EQ(error_of(), 0);
  asked.fetch_offset = 5;
  const auto response = client.ask<FetchResponse>(request, 12);
  const auto& data = response.responses.at(0).partitions.at(0);
  EXPECT_EQ(data.diverging_epoch.epoch, current);
  EXPECT_EQ(data.diverging_epoch.end_offset, 1);

  for (std::int16_t version = 2; version <= 4; ++version) {
    OffsetForLeaderEpochRequest ends;
    auto& topic = ends.topics.emplace_back();
    topic.topic = "t";
    topic.partitions.emplace_back().leader_epoch = current;
    auto& unknown = topic.partitions.emplace_back();
    unknown.partition = 9;
    const auto answer = client.ask<OffsetForLeaderEpochResponse>(ends, version);
    EXPECT_EQ(answer.topics.at(0).partitions.at(0).end_offset, 1);
    EXPECT_EQ(answer.topics.at(0).partitions.at(0).leader_epoch, current);
    EXPECT_EQ(answer.topics.at(0).partitions.at(1).error_code, 3);
  }
}

TEST_P(Data, fetch_sessions_send_only_what_changed) {
  FetchRequest request = fetch_of(0);
  auto& second = request.topics[0].partitions.emplace_back(request.topics[0].partitions[0]);
  second.partition = 1;
  request.session_epoch = 0;
  auto response = client.ask<FetchResponse>(request, 11);
  const std::int32_t session = response.session_id;
  ASSERT_NE(session, 0);
  EXPECT_EQ(response.responses.at(0).partitions.size(), 2U);

  FetchRequest next;
  next.max_wait_ms = 0;
  next.min_bytes = 1;
  next.session_id = session;
  next.session_epoch = 1;
  EXPECT_TRUE(client.ask<FetchResponse>(next, 11).responses.empty());
  client.ask<ProduceResponse>(produce_of(batch_of(Values{"x"}), -1, 1), 7);
  next.session_epoch = 2;
  response = client.ask<FetchResponse>(next, 11);
  ASSERT_EQ(response.responses.size(), 1U);
  ASSERT_EQ(response.responses[0].partitions.size(), 1U);
  EXPECT_EQ(response.responses[0].partitions[0].partition_index, 1);
  next.session_epoch = 2;
  EXPECT_EQ(client.ask<FetchResponse>(next, 11).error_code, 71);
  next.session_id = session == 1 ? 2 : 1;
  EXPECT_EQ(client.ask<FetchResponse>(next, 11).error_code, 70);
}

// BR-09.
TEST_P(Data, times_are_looked_up) {
  produce(batch_of(Records{{"a", 2}, {"b", 4}, {"c", 6}, {"d", 8}}));
  for (std::int64_t at = 1; at <= 8; ++at) {
    const auto found = list(at);
    EXPECT_EQ(found.error_code, 0);
    EXPECT_EQ(found.offset, (at - 1) / 2) << at;
    EXPECT_EQ(found.timestamp, at + at % 2);
  }
  EXPECT_EQ(list(9).offset, -1);
  EXPECT_EQ(list(9).timestamp, -1);
  EXPECT_EQ(list(9).error_code, 0);
}

TEST_P(Data, special_timestamps_in_the_versions_that_know_them) {
  produce(batch_of(Records{{"a", 10}, {"b", 30}, {"c", 20}}));
  for (std::int16_t version = 1; version <= 11; ++version) {
    EXPECT_EQ(list(-1, version).offset, 3);
    EXPECT_EQ(list(-2, version).offset, 0);
    const auto newest = list(-3, version);
    EXPECT_EQ(newest.error_code, version >= 7 ? 0 : 35);
    EXPECT_EQ(newest.offset, version >= 7 ? 1 : -1);
    EXPECT_EQ(newest.timestamp, version >= 7 ? 30 : -1);
    EXPECT_EQ(list(-4, version).error_code, version >= 8 ? 0 : 35);
    EXPECT_EQ(list(-5, version).error_code, version >= 9 ? 0 : 35);
    EXPECT_EQ(list(-6, version).error_code, version >= 11 ? 0 : 35);
    EXPECT_EQ(list(-7, version).error_code, 35);
  }
  ListOffsetsRequest twice;
  auto& topic = twice.topics.emplace_back();
  topic.name = "t";
  topic.partitions.resize(2);
  const auto response = client.ask<ListOffsetsResponse>(twice, 7);
  EXPECT_EQ(response.topics.at(0).partitions.at(0).error_code, 42);
  EXPECT_EQ(response.topics.at(0).partitions.at(1).error_code, 42);
}

TEST_P(Data, records_are_deleted) {
  for (int i = 0; i < 5; ++i) produce(batch_of(Values{std::to_string(i)}));
  const auto remove = [&](std::int64_t offset, std::int16_t version) {
    DeleteRecordsRequest request;
    auto& topic = request.topics.emplace_back();
    topic.name = "t";
    topic.partitions.emplace_back().offset = offset;
    return client.ask<DeleteRecordsResponse>(request, version).topics.at(0).partitions.at(0);
  };
  EXPECT_EQ(remove(2, 0).low_watermark, 2);
  EXPECT_EQ(remove(6, 1).error_code, 1);
  EXPECT_EQ(remove(-2, 1).error_code, 1);
  EXPECT_EQ(fetch(0).error_code, 1);
  EXPECT_EQ(list(-2).offset, 2);
  EXPECT_EQ(remove(-1, 2).low_watermark, 5);
  EXPECT_EQ(fetch(5).error_code, 0);
}

}  // namespace
}  // namespace polylog::server::kafka
