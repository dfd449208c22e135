#include <gtest/gtest.h>

#include "format/kafka/records.h"
#include "format/rocketmq/message.h"
#include "protocol/kafka/create_topics_request.h"
#include "protocol/kafka/create_topics_response.h"
#include "protocol/kafka/describe_configs_request.h"
#include "protocol/kafka/describe_configs_response.h"
#include "protocol/kafka/fetch_request.h"
#include "protocol/kafka/fetch_response.h"
#include "protocol/kafka/produce_request.h"
#include "protocol/kafka/produce_response.h"
#include "server/kafka/broker_rig.h"

// What a topic in RocketMQ's layout is to a Kafka client, where it is not the same as ever.
namespace polylog::server::kafka {
namespace {

using namespace protocol::kafka;
using format::kafka::Codec;

const std::map<std::string, std::string> in_rocketmq{{"polylog.layout", "rocketmq"}};
constexpr std::int64_t some_time_ms = 1'700'000'000'000;

struct OwnedRecord {
  std::optional<std::string> key, value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::int64_t timestamp_ms = some_time_ms;
  std::int64_t offset = 0;
  bool operator==(const OwnedRecord&) const = default;
};

Slice encode(const std::vector<OwnedRecord>& records, Codec codec) {
  format::kafka::BatchOptions options;
  options.codec = codec;
  format::kafka::BatchBuilder builder(options);
  for (const OwnedRecord& owned : records) {
    Record record;
    record.timestamp = Timestamp(owned.timestamp_ms);
    if (owned.key) record.key = as_bytes(*owned.key);
    if (owned.value) record.value = as_bytes(*owned.value);
    for (const auto& [name, value] : owned.headers) {
      Header header;
      header.name = name;
      if (value) header.value = as_bytes(*value);
      record.headers.push_back(header);
    }
    EXPECT_TRUE(builder.add(record));
  }
  return Slice::of(builder.finish().value());
}

std::vector<OwnedRecord> decode(const Slice& batches) {
  std::vector<OwnedRecord> records;
  const auto read = [&records](const format::kafka::BatchHeader&, ByteView batch) {
    return format::kafka::for_each_record(batch, 64 << 20, [&records](const Record& record) {
      OwnedRecord& owned = records.emplace_back();
      if (record.key) owned.key = std::string(as_text(*record.key));
      if (record.value) owned.value = std::string(as_text(*record.value));
      for (const Header& header : record.headers) {
        std::optional<std::string> value;
        if (header.value) value = std::string(as_text(*header.value));
        owned.headers.emplace_back(std::string(header.name), value);
      }
      owned.timestamp_ms = record.timestamp.value();
      owned.offset = record.offset.value();
      return true;
    });
  };
  EXPECT_TRUE(format::kafka::for_each_batch(batches.view(), read));
  return records;
}

struct Layouts : testing::Test {
  ProduceResponse::PartitionProduceResponse produce(const std::string& name, Slice records) {
    ProduceRequest request;
    request.acks = -1;
    request.timeout_ms = 10'000;
    auto& topic = request.topic_data.emplace_back();
    topic.name = name;
    topic.partition_data.emplace_back().records = std::move(records);
    const auto response = client.ask<ProduceResponse>(request, 9);
    return response.responses.at(0).partition_responses.at(0);
  }
  FetchResponse::PartitionData fetch(const std::string& name, std::int64_t offset,
                                     std::int32_t bytes_max = 16 << 20) {
    FetchRequest request;
    request.min_bytes = 1;
    auto& topic = request.topics.emplace_back();
    topic.topic = name;
    auto& data = topic.partitions.emplace_back();
    data.fetch_offset = offset;
    data.partition_max_bytes = bytes_max;
    const auto response = client.ask<FetchResponse>(request, 11);
    return response.responses.at(0).partitions.at(0);
  }
  std::string why_not_made(const std::string& name,
                           const std::map<std::string, std::string>& configs) {
    CreateTopicsRequest request;
    auto& topic = request.topics.emplace_back();
    topic.name = name;
    topic.num_partitions = 1;
    topic.replication_factor = 1;
    for (const auto& [key, value] : configs) {
      auto& config = topic.configs.emplace_back();
      config.name = key;
      config.value = value;
    }
    const auto response = client.ask<CreateTopicsResponse>(request, 7);
    EXPECT_NE(response.topics.at(0).error_code, 0) << name;
    return response.topics.at(0).error_message.value_or("");
  }
  std::string described(const std::string& name, const std::string& key) {
    DescribeConfigsRequest request;
    auto& topic = request.resources.emplace_back();
    topic.resource_type = 2;
    topic.resource_name = name;
    topic.configuration_keys = std::vector<std::string>{key};
    const auto response = client.ask<DescribeConfigsResponse>(request, 4);
    return response.results.at(0).configs.at(0).value.value_or("null");
  }

  BrokerRig rig{{{"maxMessageSize", "3000000"}, {"message.max.bytes", "8388608"}}};
  WireClient client{rig.port()};
};

TEST_F(Layouts, records_come_back_as_they_went_in_with_every_codec) {
  rig.create_topic("r", 1, in_rocketmq);
  rig.create_topic("k");
  std::vector<OwnedRecord> records(6);
  records[0] = {"key", "value", {{"h", "1"}}, some_time_ms};
  records[1] = {std::nullopt, std::nullopt, {}, some_time_ms + 1};
  records[2] = {"", "", {}, some_time_ms + 2};
  records[3] = {std::string("\0\xff\x01\x02", 4), "x", {{"a", "1"}, {"a", "2"}}, some_time_ms};
  records[4] = {"k", std::string("\0\xff", 2), {{"n", std::nullopt}, {"b", std::string("\0", 1)}}};
  records[5] = {std::nullopt, "last", {{"", ""}}, some_time_ms + 5};
  std::int64_t offset = 0;
  for (const Codec codec :
       {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    const Slice batch = encode(records, codec);
    for (const char* const topic : {"r", "k"}) {
      const auto answer = produce(topic, batch);
      ASSERT_EQ(answer.error_code, 0) << answer.error_message.value_or("");
      EXPECT_EQ(answer.base_offset, offset);
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
      records[i].offset = offset + static_cast<std::int64_t>(i);
    }
    EXPECT_EQ(decode(*fetch("r", offset).records), records);
    EXPECT_EQ(decode(*fetch("k", offset).records), records);
    offset += static_cast<std::int64_t>(records.size());
  }
}

TEST_F(Layouts, large_batches_are_changed_beside_the_reactor_and_keep_their_order) {
  rig.create_topic("r", 1, in_rocketmq);
  std::vector<OwnedRecord> large;
  for (int i = 0; i < 700; ++i) {
    large.push_back({std::to_string(i), std::string(2000, static_cast<char>('a' + i % 26)), {}});
  }
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    ASSERT_EQ(produce("r", encode(large, codec)).error_code, 0);
    ASSERT_EQ(produce("r", encode({{"after", "x", {}}}, Codec::none)).error_code, 0);
  }
  std::vector<OwnedRecord> found;
  while (found.size() < 1402) {
    const auto data = fetch("r", static_cast<std::int64_t>(found.size()));
    ASSERT_EQ(data.error_code, 0);
    const auto more = decode(*data.records);
    ASSERT_FALSE(more.empty());
    found.insert(found.end(), more.begin(), more.end());
  }
  ASSERT_EQ(found.size(), 1402U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].offset, static_cast<std::int64_t>(i));
  }
  EXPECT_EQ(found[699].value, large[699].value);
  EXPECT_EQ(found[700].key, "after");
  EXPECT_EQ(found[1400].key, "699");
}

TEST_F(Layouts, what_the_layout_can_not_hold_is_refused_and_named) {
  rig.create_topic("r", 1, in_rocketmq);
  EXPECT_EQ(produce("r", encode({{"k", std::string(3'000'000, 'x'), {}}}, Codec::none)).error_code,
            0)
      << "the limit itself";
  const auto body = produce("r", encode({{"k", std::string(3'000'001, 'x'), {}}}, Codec::none));
  EXPECT_EQ(body.error_code, 10);
  EXPECT_NE(body.error_message.value_or("").find("3000000"), std::string::npos)
      << body.error_message.value_or("");
  const auto packed = produce("r", encode({{"k", std::string(3'000'001, 'x'), {}}}, Codec::lz4));
  EXPECT_EQ(packed.error_code, 10) << "the limit is on the value, not on the batch";
  const auto properties = produce(
      "r", encode({{"a", "fits", {}}, {std::string(40'000, 'k'), "x", {}}}, Codec::none));
  EXPECT_EQ(properties.error_code, 10);
  EXPECT_NE(properties.error_message.value_or("").find("32767"), std::string::npos)
      << properties.error_message.value_or("");
  EXPECT_EQ(produce("r", batch_of(std::vector<std::string>{"t"}, Stamp{5, 0, 0, true})).error_code,
            48);
  EXPECT_EQ(fetch("r", 0).high_watermark, 1) << "all or nothing";
}

TEST_F(Layouts, a_message_carries_its_clients_address_and_ours) {
  rig.create_topic("r.dots", 1, in_rocketmq);
  ASSERT_EQ(produce("r.dots", encode({{"k", "v", {}}}, Codec::none)).error_code, 0);
  rig.on_reactor([&] {
    const auto partition = rig.broker().find("r.dots", 0);
    storage::ReadLimits limits;
    limits.bytes_max = 1 << 20;
    const auto read = partition->read(Offset(0), limits, broker::Isolation::read_uncommitted);
    ASSERT_TRUE(read);
    ASSERT_EQ(read->size(), 1U);
    const auto message = format::rocketmq::parse(read->front().bytes.view());
    ASSERT_TRUE(message);
    EXPECT_EQ(message->topic, "r%2Edots");
    EXPECT_EQ(message->queue_id, 0);
    EXPECT_EQ(message->born_host.address[0], 127);
    EXPECT_GT(message->born_host.port, 0);
    EXPECT_EQ(message->store_host, broker::parse_origin("127.0.0.1:9092"));
    EXPECT_EQ(message->born_timestamp, some_time_ms);
  });
}

TEST_F(Layouts, log_append_time_is_the_stores) {
  std::map<std::string, std::string> configs = in_rocketmq;
  configs["message.timestamp.type"] = "LogAppendTime";
  rig.create_topic("stamped", 1, configs);
  const std::int64_t before_ms = SystemClock().now().value();
  ASSERT_EQ(produce("stamped", encode({{"k", "v", {}}}, Codec::none)).error_code, 0);
  const auto found = decode(*fetch("stamped", 0).records);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_GE(found[0].timestamp_ms, before_ms);
  EXPECT_LE(found[0].timestamp_ms, SystemClock().now().value());
}

TEST_F(Layouts, a_fetch_over_both_layouts_answers_both) {
  rig.create_topic("r", 1, in_rocketmq);
  rig.create_topic("k");
  ASSERT_EQ(produce("r", encode({{"k", "from r", {}}}, Codec::none)).error_code, 0);
  ASSERT_EQ(produce("k", encode({{"k", "from k", {}}}, Codec::gzip)).error_code, 0);
  FetchRequest request;
  request.min_bytes = 1;
  for (const char* const name : {"r", "k"}) {
    auto& topic = request.topics.emplace_back();
    topic.topic = name;
    topic.partitions.emplace_back().partition_max_bytes = 1 << 20;
  }
  const auto response = client.ask<FetchResponse>(request, 11);
  ASSERT_EQ(response.responses.size(), 2U);
  EXPECT_EQ(decode(*response.responses[0].partitions.at(0).records).at(0).value, "from r");
  EXPECT_EQ(decode(*response.responses[1].partitions.at(0).records).at(0).value, "from k");
}

TEST_F(Layouts, what_a_topic_can_not_be_in_this_layout_is_said) {
  const auto with = [](const std::string& key, const std::string& value) {
    std::map<std::string, std::string> configs = in_rocketmq;
    configs[key] = value;
    return configs;
  };
  EXPECT_NE(why_not_made("r", with("cleanup.policy", "compact")).find("can't be compacted"),
            std::string::npos);
  EXPECT_NE(why_not_made("r", with("retention.ms", "-1")).find("fileReservedTime"),
            std::string::npos);
  EXPECT_NE(why_not_made(std::string(128, 'a'), in_rocketmq).find("127"), std::string::npos);
  EXPECT_NE(why_not_made("SCHEDULE_TOPIC_XXXX", in_rocketmq).find("RocketMQ's own"),
            std::string::npos);
  rig.create_topic("r", 1, in_rocketmq);
  EXPECT_EQ(described("r", "polylog.layout"), "rocketmq");
  EXPECT_EQ(described("r", "polylog.flush"), "ack");
  EXPECT_EQ(described("r", "retention.ms"), "259200000");
  rig.create_topic("k");
  EXPECT_EQ(described("k", "polylog.layout"), "kafka");
}

}  // namespace
}  // namespace polylog::server::kafka
