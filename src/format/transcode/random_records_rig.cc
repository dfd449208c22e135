#include "format/transcode/random_records_rig.h"

#include <algorithm>

#include "format/kafka/compression.h"

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
    "__KPS",
    "__KHDRS",
    "\xc3\xbc",
    "\xff",
    "a\x01"
    "b",
    "",
    "mqtt.t",
    "mqtt.f",
    "mqtt.cd",
    "h:mqtt.f",
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
    "AQ==",
    "AR==",
    "BAJhAjECYQE=",
    "7:0:5:1:3",
    "7:0:5:3:3",
    "mqtt.f\x01"
    "AQ==\x02",
    "mqtt.f\x01"
    "AR==\x02mqtt.cd\x01_\x02",
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

}  // namespace

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

Batch any_kafka_batch() {
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
  if (*rc::gen::inRange(0, 3) == 0) options.append_time = Timestamp(*any_time());
  std::vector<TestRecord> records(static_cast<std::size_t>(*rc::gen::inRange(1, 8)));
  const bool compacted = *rc::gen::inRange(0, 3) == 0;
  std::int64_t offset = options.base_offset.value();
  for (TestRecord& record : records) {
    record = any_record();
    if (!compacted) continue;
    offset += *rc::gen::inRange(0, 4);
    record.offset = offset++;
  }
  if (compacted) {
    const std::int64_t past = offset + *rc::gen::inRange(0, 4);
    options.last_offset_delta = static_cast<std::int32_t>(past - 1 - options.base_offset.value());
  }
  return kafka_batch(records, options);
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

TestMessage any_odd_message() {
  TestMessage message;
  message.body = *any_text(odd_values);
  const int pieces = *rc::gen::inRange(0, 6);
  for (int i = 0; i < pieces; ++i) {
    message.properties += *any_text(odd_names);
    message.properties += *rc::gen::element("\x01", "\x01", "\x01", "\x02");
    message.properties += *any_text(odd_values);
    message.properties += *rc::gen::element("\x02", "\x02", "\x02", "\x01");
  }
  message.flag = *rc::gen::arbitrary<std::int32_t>();
  message.sys_flag = *rc::gen::arbitrary<std::int32_t>();
  message.born_timestamp = *rc::gen::arbitrary<std::int64_t>();
  message.store_timestamp =
      *rc::gen::oneOf(rc::gen::arbitrary<std::int64_t>(), rc::gen::just<std::int64_t>(-1));
  message.born_host.v6 = *rc::gen::arbitrary<bool>();
  message.born_host.port = *rc::gen::arbitrary<std::int32_t>();
  message.store_host.v6 = *rc::gen::arbitrary<bool>();
  message.store_host.port = *rc::gen::arbitrary<std::int32_t>();
  message.reconsume_times = *rc::gen::arbitrary<std::int32_t>();
  message.prepared_offset = *rc::gen::arbitrary<std::int64_t>();
  return message;
}

std::vector<TestMessage> any_messages(TestMessage (*any)()) {
  std::vector<TestMessage> messages(static_cast<std::size_t>(*rc::gen::inRange(1, 8)));
  std::int64_t offset = *rc::gen::inRange<std::int64_t>(0, 1000);
  for (TestMessage& message : messages) {
    message = any();
    message.queue_offset = offset;
    offset += *rc::gen::inRange(1, 4);
  }
  return messages;
}

}  // namespace polylog::format
