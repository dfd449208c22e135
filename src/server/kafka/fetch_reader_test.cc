#include "server/kafka/fetch_reader.h"

#include <gtest/gtest.h>

#include "format/kafka/records.h"
#include "protocol/kafka/produce_request.h"
#include "protocol/kafka/produce_response.h"
#include "server/kafka/broker_rig.h"

namespace polylog::server::kafka {
namespace {

using namespace protocol::kafka;

constexpr std::int64_t some_time_ms = 1'700'000'000'000;

// So many bytes that they are changed into Kafka's form beside the reactor.
Slice large_batch() {
  std::vector<RecordText> records(400, {std::string(1000, 'x'), some_time_ms});
  return batch_of(records);
}

TEST(FetchReader, a_read_under_way_when_the_topics_times_change_is_no_answer_afterwards) {
  BrokerRig rig;
  rig.create_topic("r", 1, {{"polylog.layout", "rocketmq"}});
  WireClient client(rig.port());
  ProduceRequest request;
  request.acks = -1;
  request.timeout_ms = 10'000;
  auto& topic = request.topic_data.emplace_back();
  topic.name = "r";
  topic.partition_data.emplace_back().records = large_batch();
  const auto produced = client.ask<ProduceResponse>(request, 9);
  ASSERT_EQ(produced.responses.at(0).partition_responses.at(0).error_code, 0);

  rig.on_reactor([&rig] {
    Metrics metrics;
    Context context(rig.broker(), rig.groups(), metrics);
    FetchRules rules;
    rules.version = 11;
    rules.bytes_max = 16 << 20;
    auto asked = std::make_shared<FetchedPartition>();
    asked->topic = "r";
    asked->asked.partition_max_bytes = 16 << 20;
    const auto set_times = [&rig](broker::TimestampType type) {
      const auto partition = rig.broker().find("r", 0);
      auto config = std::make_shared<broker::TopicConfig>(partition->config());
      config->timestamp_type = type;
      partition->configure(std::move(config));
    };
    FetchReader before(context, rules, {asked});
    auto cold = before.advance();
    ASSERT_TRUE(cold) << "not large enough";
    set_times(broker::TimestampType::log_append_time);
    cold->run();
    before.finish(std::move(*cold));
    FetchReader after(context, rules, {asked});
    EXPECT_TRUE(after.advance()) << "it got what shows the other times";
    set_times(broker::TimestampType::create_time);
    FetchReader again(context, rules, {asked});
    EXPECT_FALSE(again.advance()) << "this was read already";
    EXPECT_GT(again.records(), 0U);
  });
}

}  // namespace
}  // namespace polylog::server::kafka
