#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "format/transcode/random_records_rig.h"

// Random records and messages through both directions of Kafka's and RocketMQ's pair.

namespace polylog::format {
namespace {

TEST(TranscodeProperty, kafka_records_come_back_equal) {
  const bool held = rc::check([] {
    const Batch batch = any_kafka_batch();
    const Result<Batch> stored = kafka_to_rocketmq(batch, test_target());
    RC_ASSERT(stored.has_value());
    RC_ASSERT(stored->format == BatchFormat::rocketmq);
    RC_ASSERT(stored->info.first == batch.info.first && stored->info.last == batch.info.last);
    const Result<std::vector<Batch>> back = rocketmq_to_kafka({*stored}, {});
    RC_ASSERT(back.has_value());
    RC_ASSERT(records_of(*back) == records_of(batch));
    RC_ASSERT(back->front().info.epoch == batch.info.epoch);
  });
  EXPECT_TRUE(held);
}

TEST(TranscodeProperty, rocketmq_messages_republished_through_kafka_come_back_equal) {
  const bool held = rc::check([] {
    const std::vector<TestMessage> messages = any_messages(any_message);
    const Result<std::vector<Batch>> seen = rocketmq_to_kafka({rocketmq_batch(messages)}, {});
    RC_ASSERT(seen.has_value() && seen->size() == 1);
    const Result<Batch> again = kafka_to_rocketmq(seen->front(), test_target());
    RC_ASSERT(again.has_value());
    const std::vector<TestMessage> result = messages_of(*again);
    RC_ASSERT(result.size() == messages.size());
    constexpr std::int32_t host_bits =
        rocketmq::sys_flag::born_host_v6 | rocketmq::sys_flag::store_host_v6;
    for (std::size_t i = 0; i < result.size(); ++i) {
      RC_ASSERT(result[i].body == messages[i].body);
      RC_ASSERT(property_map(result[i].properties) == property_map(messages[i].properties));
      RC_ASSERT(result[i].flag == messages[i].flag);
      RC_ASSERT((result[i].sys_flag & ~host_bits) == messages[i].sys_flag);
      RC_ASSERT(result[i].born_timestamp == messages[i].born_timestamp);
      RC_ASSERT(result[i].born_host == messages[i].born_host);
      RC_ASSERT(result[i].reconsume_times == messages[i].reconsume_times);
      RC_ASSERT(result[i].prepared_offset == messages[i].prepared_offset);
      RC_ASSERT(result[i].queue_offset == messages[i].queue_offset);
    }
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace polylog::format
