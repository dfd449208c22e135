#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "format/kafka/compression.h"
#include "format/transcode/transcode_rig.h"

// Random records and messages through both directions, with the names and values that the mapping
// treats specially among them.

namespace polylog::format {
namespace {

using kafka::Codec;

const std::vector<std::string> odd_names{
    "a",
    "b",
    "trace-id",
    "rmq.tags",
    "rmq.keys",
    "rmq.flag",
    "rmq.sys",
    "rmq.born",
    "rmq.uniq",
    "rmq.re",
    "rmq.prep",
    "rmq.p",
    "rmq.x",
    "h:a",
    "h:rmq.p",
    "h:h:x",
    "TAGS",
    "KEYS",
    "UNIQ_KEY",
    "DELAY",
    "__KKEY",
    "__NULL",
    "\xc3\xbc",
    "\xff",
    "a\x01"
    "b",
    "",
    "mqtt.t",
    "__RMQ.TRANSIENT.a",
};

const std::vector<std::string> odd_values{
    "",
    "x",
    "tok",
    "a b",
    "1",
    "-5",
    "0",
    "007",
    "8",
    "2147483648",
    "192.0.2.1:5",
    "[2001:db8::1]:80",
    "[::1]:080",
    "\x01",
    "a\x02",
    "\x04",
    "\xff\xfe",
    "\xed\xa0\x80",
    "\xe6\x94\xaf\xe4\xbb\x98",
    "=",
    "=dG9r",
    "WAIT\x01true\x02",
    "__SHARDINGKEY\x01tok\x02",
    "__SHARDINGKEY\x01other\x02WAIT\x01"
    "1\x02",
    "WAIT\x01"
    "1\x02WAIT\x01"
    "2\x02",
    "INNER_NUM\x01"
    "3\x02",
    "a\x01plain\x02",
    "a\x01\xff\x02",
    "KEYS\x01tok\x02",
};

rc::Gen<std::string> any_text(const std::vector<std::string>& odd) {
  return rc::gen::weightedOneOf<std::string>(
      {{6, rc::gen::elementOf(odd)},
       {2, rc::gen::container<std::string>(rc::gen::arbitrary<char>())},
       {2, rc::gen::container<std::string>(rc::gen::inRange<char>('a', 'e'))}});
}

rc::Gen<Bytes> any_bytes() {
  return rc::gen::weightedOneOf<Bytes>(
      {{1, rc::gen::just(Bytes())}, {5, rc::gen::map(any_text(odd_values), [](std::string text) {
                                       return Bytes(std::move(text));
                                     })}});
}

rc::Gen<std::int64_t> any_time() {
  return rc::gen::oneOf(rc::gen::just<std::int64_t>(-1), rc::gen::just<std::int64_t>(0),
                        rc::gen::inRange<std::int64_t>(0, 1LL << 42));
}

TestRecord any_record() {
  TestRecord record;
  record.key = *any_bytes();
  record.value = *any_bytes();
  if (record.value && *rc::gen::inRange(0, 30) == 0) {
    record.value = std::string(static_cast<std::size_t>(*rc::gen::inRange(0, 300'000)), 'v');
  }
  const int headers = *rc::gen::inRange(0, 6);
  for (int i = 0; i < headers; ++i) {
    std::string name = *any_text(odd_names);
    record.headers.emplace_back(std::move(name), *any_bytes());
  }
  record.timestamp = *any_time();
  return record;
}

TEST(TranscodeProperty, kafka_records_come_back_equal) {
  const bool held = rc::check([] {
    kafka::BatchOptions options;
    options.base_offset = Offset(*rc::gen::inRange<std::int64_t>(0, 1LL << 40));
    options.codec =
        *rc::gen::element(Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd);
    options.epoch = LeaderEpoch(*rc::gen::inRange(0, 5));
    if (*rc::gen::arbitrary<bool>()) {
      options.producer_id = ProducerId(*rc::gen::inRange<std::int64_t>(0, 1LL << 50));
      options.producer_epoch = 3;
      options.base_sequence = *rc::gen::inRange(0, 1'000'000);
    }
    std::vector<TestRecord> records(static_cast<std::size_t>(*rc::gen::inRange(1, 8)));
    for (TestRecord& record : records) record = any_record();
    const Batch batch = kafka_batch(records, options);

    const Result<Batch> stored = kafka_to_rocketmq(batch, test_target());
    RC_ASSERT(stored.has_value());
    RC_ASSERT(stored->format == BatchFormat::rocketmq);
    RC_ASSERT(stored->info.first == batch.info.first && stored->info.last == batch.info.last);
    const Result<std::vector<Batch>> back = rocketmq_to_kafka({*stored}, {});
    RC_ASSERT(back.has_value());
    RC_ASSERT(records_of(*back) == records_of(batch));
    RC_ASSERT(back->front().info.epoch == options.epoch);
  });
  EXPECT_TRUE(held);
}

// What RocketMQ's clients and brokers write: names are unique, nothing is bound to the store.
TestMessage any_message() {
  const std::vector<std::string> names{
      "TAGS", "KEYS",     "__SHARDINGKEY", "WAIT",  "CLUSTER",          "color", "rmq.tags", "h:x",
      "rmq.", "\xc3\xbc", "\xff",          "DELAY", "__transactionId__"};
  TestMessage message;
  message.body = *any_text(odd_values);
  message.properties = property_text("UNIQ_KEY=7F00000100002A139C16073E5C610000");
  for (const std::string& name : names) {
    if (*rc::gen::arbitrary<bool>()) continue;
    const auto value = *rc::gen::elementOf(
        std::vector<std::string>{"tok", "a b", "=", "\xff", "x\x01y", "\xe6\x94\xaf", " "});
    if ((name == "TAGS" || name == "KEYS") && (value == "\xff" || value == "x\x01y")) continue;
    const std::string one = name + '\x01' + value + '\x02';
    message.properties =
        *rc::gen::arbitrary<bool>() ? one + message.properties : message.properties + one;
  }
  message.flag = *rc::gen::oneOf(rc::gen::just(0), rc::gen::arbitrary<std::int32_t>());
  message.sys_flag = *rc::gen::element(0, 2, 8, 10);
  message.born_timestamp = *any_time();
  if (*rc::gen::arbitrary<bool>()) {
    message.born_host = {{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, true, 4711};
  }
  message.reconsume_times = *rc::gen::inRange(0, 3);
  message.prepared_offset = *rc::gen::element<std::int64_t>(0, 1LL << 40);
  return message;
}

TEST(TranscodeProperty, rocketmq_messages_republished_through_kafka_come_back_equal) {
  const bool held = rc::check([] {
    std::vector<TestMessage> messages(static_cast<std::size_t>(*rc::gen::inRange(1, 8)));
    std::int64_t offset = *rc::gen::inRange<std::int64_t>(0, 1000);
    for (TestMessage& message : messages) {
      message = any_message();
      message.queue_offset = offset++;
    }
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
