#include "format/transcode/transcode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include "format/rocketmq/property_crc.h"
#include "format/transcode/mapping.h"
#include "format/transcode/transcode_rig.h"

namespace polylog::format {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TestMessage stored(const TestRecord& record, const kafka::BatchOptions& options = {}) {
  const Result<Batch> batch = kafka_to_rocketmq(kafka_batch({record}, options), test_target());
  EXPECT_TRUE(batch.has_value()) << batch.error().context;
  return messages_of(*batch).front();
}

// The property text without the room for the record's checksum, which all of them have.
std::string text_of(const TestMessage& message) {
  constexpr std::size_t room = rocketmq::property_crc_bytes;
  EXPECT_GE(message.properties.size(), room);
  return message.properties.substr(0, message.properties.size() - room);
}

auto stored_properties(const TestRecord& record) { return property_map(stored(record).properties); }

TestRecord seen(const TestMessage& message) {
  const Result<std::vector<Batch>> batches = rocketmq_to_kafka({rocketmq_batch({message})}, {});
  EXPECT_TRUE(batches.has_value()) << batches.error().context;
  return records_of(*batches).front();
}

Error refusal(const TestMessage& message) {
  const Result<std::vector<Batch>> batches = rocketmq_to_kafka({rocketmq_batch({message})}, {});
  EXPECT_FALSE(batches.has_value());
  return batches ? Error{} : batches.error();
}

TestMessage with_properties(std::string_view readable) {
  TestMessage message;
  message.body = "body";
  message.properties = property_text(readable);
  return message;
}

// --- Kafka to RocketMQ -----------------------------------------------------------------------

TEST(KafkaToRocketmq, a_value_alone_needs_no_property) {
  const TestMessage message = stored({{}, "v", {}});
  EXPECT_EQ(message.body, "v");
  EXPECT_EQ(text_of(message), "");
  EXPECT_EQ(message.flag, 0);
  EXPECT_EQ(message.sys_flag, 0);
  EXPECT_EQ(message.born_host, test_target().born_host);
}

TEST(KafkaToRocketmq, null_empty_and_any_other_value_are_three_stored_things) {
  EXPECT_THAT(stored_properties({{}, std::nullopt, {}}), ElementsAre(Pair("__NULL", "1")));
  EXPECT_THAT(stored_properties({{}, "", {}}), IsEmpty());
  EXPECT_THAT(stored({{}, "", {}}).body, "");
}

TEST(KafkaToRocketmq, a_key_is_text_where_it_can_be_and_base64_where_not) {
  EXPECT_THAT(stored_properties({"k1", "", {}}),
              ElementsAre(Pair("KEYS", "k1"), Pair("__KKEY", "k1")));
  EXPECT_THAT(stored_properties({"a b", "", {}}), ElementsAre(Pair("__KKEY", "a b")));
  EXPECT_THAT(stored_properties({"", "", {}}), ElementsAre(Pair("__KKEY", "=")));
  EXPECT_THAT(stored_properties({"\xff", "", {}}), ElementsAre(Pair("__KKEY", "=/w==")));
  EXPECT_THAT(stored_properties({"\n", "", {}}), ElementsAre(Pair("__KKEY", "=Cg==")));
  EXPECT_THAT(stored_properties({"=x", "", {}}),
              ElementsAre(Pair("KEYS", "=x"), Pair("__KKEY", "=PXg=")));
}

TEST(KafkaToRocketmq, clean_headers_are_properties_in_their_order) {
  const TestMessage message = stored({{}, "v", {{"z", "1"}, {"a", "2"}, {"m", "\xc3\xbc"}}});
  EXPECT_EQ(text_of(message), property_text("z=1;a=2;m=\xc3\xbc"));
}

TEST(KafkaToRocketmq, one_header_that_does_not_fit_takes_the_whole_list_along) {
  const std::vector<std::vector<std::pair<std::string, Bytes>>> lists{
      {{"a", "1"}, {"a", "2"}}, {{"a", std::nullopt}}, {{"a", ""}},      {{"a", "\xff"}},
      {{"a", "x\x01"}},         {{"KEYS", "k"}},       {{"DELAY", "3"}}, {{"rmq.other", "x"}},
      {{"h:x", "x"}},           {{"", "x"}},           {{"\xff", "x"}}};
  for (const auto& list : lists) {
    const TestRecord record{{}, "v", list};
    EXPECT_THAT(stored_properties(record), ElementsAre(Pair("__KHDRS", testing::_)))
        << list.front().first;
  }
  EXPECT_THAT(stored_properties({{}, "v", {{"a", "1"}, {"a", std::nullopt}}}),
              ElementsAre(Pair("__KHDRS", "BAJhAjECYQE=")));
}

TEST(KafkaToRocketmq, headers_named_after_rocketmqs_fields_set_them) {
  const TestMessage message = stored({"order-7",
                                      "v",
                                      {{"rmq.flag", "-5"},
                                       {"rmq.sys", "8"},
                                       {"rmq.born", "[2001:db8::9]:4711"},
                                       {"rmq.re", "2"},
                                       {"rmq.tags", "TagA"},
                                       {"rmq.uniq", "7F00"},
                                       {"rmq.keys", "a b"},
                                       {"color", "red"}}});
  EXPECT_EQ(message.flag, -5);
  EXPECT_EQ(message.sys_flag, 8 | rocketmq::sys_flag::born_host_v6);
  EXPECT_EQ(to_text(message.born_host), "[2001:db8::9]:4711");
  EXPECT_EQ(message.reconsume_times, 2);
  EXPECT_THAT(property_map(message.properties),
              ElementsAre(Pair("KEYS", "a b"), Pair("TAGS", "TagA"), Pair("UNIQ_KEY", "7F00"),
                          Pair("__KKEY", "order-7"), Pair("color", "red")));
}

TEST(KafkaToRocketmq, tags_are_set_though_another_header_forces_the_list) {
  EXPECT_THAT(stored_properties({{}, "v", {{"rmq.tags", "TagA"}, {"x", std::nullopt}}}),
              ElementsAre(Pair("TAGS", "TagA"), Pair("__KHDRS", testing::_)));
}

TEST(KafkaToRocketmq, a_header_sets_no_flag_that_a_store_acts_on) {
  for (const char* flags : {"1", "4", "12", "16", "64", "128", "2048", "-1", "08"}) {
    const TestMessage message = stored({{}, "v", {{"rmq.sys", flags}}});
    EXPECT_EQ(message.sys_flag, 0) << flags;
    EXPECT_THAT(property_map(message.properties), ElementsAre(Pair("__KHDRS", testing::_)));
  }
}

TEST(KafkaToRocketmq, each_record_says_which_part_of_its_producers_batch_it_is) {
  kafka::BatchOptions options;
  options.producer_id = ProducerId(9'000'000'000);
  options.producer_epoch = 4;
  options.base_sequence = 17;
  const Result<Batch> batch = kafka_to_rocketmq(
      kafka_batch({{{}, "a", {}}, {{}, "b", {}}, {"k", {}, {}}}, options), test_target());
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->info.producer.first_sequence, 17);
  EXPECT_EQ(batch->info.producer.last_sequence, 19);
  std::int32_t index = 0;
  for (const TestMessage& message : messages_of(*batch)) {
    const auto text = rocketmq::find_property(message.properties, "__KPS");
    ASSERT_TRUE(text.has_value());
    const rocketmq::ProducerPart part{options.producer_id, 4, 17, index++, 3};
    EXPECT_EQ(*text, rocketmq::to_text(part));
  }
}

TEST(KafkaToRocketmq, offsets_count_from_where_the_batch_is_to_go) {
  Batch batch = kafka_batch({{{}, "a", {}}, {{}, "b", {}}});
  batch.info.first = Offset(1000);
  batch.info.last = Offset(1001);
  const Result<Batch> result = kafka_to_rocketmq(batch, test_target());
  ASSERT_TRUE(result.has_value());
  const std::vector<TestMessage> messages = messages_of(*result);
  EXPECT_EQ(messages[0].queue_offset, 1000);
  EXPECT_EQ(messages[1].queue_offset, 1001);
  EXPECT_EQ(result->info.last, Offset(1001));
}

TEST(KafkaToRocketmq, properties_of_32767_bytes_pass_and_one_more_is_refused) {
  const auto with_header = [](std::size_t size) {
    return TestRecord{{}, "v", {{"name", std::string(size - 6, 'x')}}};
  };
  EXPECT_EQ(stored(with_header(32'767)).properties.size(), 32'767U);
  const Result<Batch> refused =
      kafka_to_rocketmq(kafka_batch({{{}, "", {}}, with_header(32'768)}), test_target());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::too_large);
  EXPECT_THAT(refused.error().context,
              testing::AllOf(HasSubstr("record 1"), HasSubstr("32768"), HasSubstr("32767")));

  // A key for look-ups is left out where it does not fit; the record is not refused for it.
  const TestRecord long_key{std::string(32'767 - 8, 'k'), "v", {}};
  EXPECT_THAT(stored_properties(long_key), ElementsAre(Pair("__KKEY", *long_key.key)));
  EXPECT_FALSE(
      kafka_to_rocketmq(kafka_batch({{std::string(32'767 - 7, 'k'), "v", {}}}), test_target()));
  // Binary: 3 bytes become 4.
  const TestRecord binary{std::string(24'567, '\xff'), "v", {}};
  EXPECT_EQ(stored(binary).properties.size(), 8U + 1 + 32'756);
  EXPECT_FALSE(
      kafka_to_rocketmq(kafka_batch({{std::string(24'568, '\xff'), "v", {}}}), test_target()));
  const TestRecord list{{}, "v", {{"n", std::string(24'560, '\xff')}}};
  EXPECT_LE(stored(list).properties.size(), 32'767U);
  const TestRecord list_over{{}, "v", {{"n", std::string(24'570, '\xff')}}};
  EXPECT_FALSE(kafka_to_rocketmq(kafka_batch({list_over}), test_target()));
}

TEST(KafkaToRocketmq, a_value_at_the_body_limit_passes_and_one_byte_more_is_refused) {
  RocketmqTarget target = test_target();
  target.body_bytes_max = 1000;
  EXPECT_TRUE(kafka_to_rocketmq(kafka_batch({{{}, std::string(1000, 'v'), {}}}), target));
  const Result<Batch> refused =
      kafka_to_rocketmq(kafka_batch({{{}, "", {}}, {{}, std::string(1001, 'v'), {}}}), target);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::too_large);
  EXPECT_THAT(refused.error().context,
              testing::AllOf(HasSubstr("record 1"), HasSubstr("1001"), HasSubstr("1000")));
}

TEST(KafkaToRocketmq, control_records_and_transactions_are_refused) {
  kafka::BatchOptions options;
  options.producer_id = ProducerId(1);
  options.producer_epoch = 0;
  options.base_sequence = 0;
  options.transactional = true;
  const Result<Batch> transactional =
      kafka_to_rocketmq(kafka_batch({{{}, "v", {}}}, options), test_target());
  ASSERT_FALSE(transactional.has_value());
  EXPECT_EQ(transactional.error().code, Errc::unsupported);
  options.control = true;
  const Result<Batch> control =
      kafka_to_rocketmq(kafka_batch({{{}, "v", {}}}, options), test_target());
  ASSERT_FALSE(control.has_value());
  EXPECT_EQ(control.error().code, Errc::unsupported);
}

// --- RocketMQ to Kafka -----------------------------------------------------------------------

TEST(RocketmqToKafka, a_message_of_a_rocketmq_client_shows_its_fields_as_headers) {
  TestMessage message = with_properties(
      "UNIQ_KEY=7F00;TAGS=TagA;KEYS=K1;WAIT=true;color=red;CLUSTER=c;rmq.tags=mine");
  message.flag = 3;
  message.sys_flag = 8;
  message.reconsume_times = 1;
  message.prepared_offset = 4096;
  const TestRecord record = seen(message);
  EXPECT_EQ(record.key, "K1");
  EXPECT_EQ(record.value, "body");
  EXPECT_EQ(record.timestamp, message.born_timestamp);
  EXPECT_THAT(
      record.headers,
      ElementsAre(Pair("rmq.flag", "3"), Pair("rmq.sys", "8"), Pair("rmq.born", "10.0.0.1:50000"),
                  Pair("rmq.re", "1"), Pair("rmq.prep", "4096"), Pair("rmq.uniq", "7F00"),
                  Pair("rmq.tags", "TagA"), Pair("rmq.keys", "K1"), Pair("color", "red"),
                  Pair("h:rmq.tags", "mine"), Pair("rmq.p", property_text("WAIT=true;CLUSTER=c"))));
}

TEST(RocketmqToKafka, the_key_is_the_sharding_key_else_a_single_entry_of_keys) {
  EXPECT_EQ(seen(with_properties("KEYS=a;__SHARDINGKEY=s")).key, "s");
  EXPECT_EQ(seen(with_properties("KEYS=a")).key, "a");
  EXPECT_EQ(seen(with_properties("KEYS=a b")).key, std::nullopt);
  EXPECT_EQ(seen(with_properties("TAGS=a")).key, std::nullopt);
}

TEST(RocketmqToKafka, the_last_of_a_repeated_name_counts) {
  EXPECT_THAT(seen(with_properties("a=1;TAGS=t1;b=2;a=3;TAGS=t2")).headers,
              ElementsAre(Pair("b", "2"), Pair("a", "3"), Pair("rmq.tags", "t2")));
  std::string many;
  for (int i = 0; i < 40; ++i) many += "n" + std::to_string(i % 20) + "=" + std::to_string(i) + ";";
  const TestRecord record = seen(with_properties(many));
  ASSERT_EQ(record.headers.size(), 20U);
  EXPECT_THAT(record.headers.front(), Pair("n0", "20"));
  EXPECT_THAT(record.headers.back(), Pair("n19", "39"));
}

std::string zlib_of(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
           text.size());
  out.resize(size);
  return out;
}

std::string lz4_of(const std::string& text) {
  std::string out(LZ4F_compressFrameBound(text.size(), nullptr), '\0');
  out.resize(LZ4F_compressFrame(out.data(), out.size(), text.data(), text.size(), nullptr));
  return out;
}

std::string zstd_of(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

TEST(RocketmqToKafka, bodies_that_clients_compressed_are_expanded) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100'000}}) {
    const std::string text(size, 'x');
    const std::pair<std::int32_t, std::string> bodies[] = {{0x001, zlib_of(text)},
                                                           {0x101, lz4_of(text)},
                                                           {0x201, zstd_of(text)},
                                                           {0x301, zlib_of(text)}};
    for (const auto& [flags, body] : bodies) {
      TestMessage message;
      message.sys_flag = flags;
      message.body = body;
      const TestRecord record = seen(message);
      EXPECT_EQ(record.value, text) << flags;
      EXPECT_THAT(record.headers, IsEmpty());
    }
  }
}

TEST(RocketmqToKafka, a_body_that_does_not_expand_is_shown_as_stored_with_its_flags) {
  const std::string bomb = zlib_of(std::string((std::size_t{32} << 20) + 1, '\0'));
  for (const std::string& body : {std::string("garbage"), std::string(), bomb,
                                  zlib_of("whole").substr(0, 8), zlib_of("a") + "b"}) {
    TestMessage message;
    message.sys_flag = 0x301;
    message.body = body;
    const TestRecord record = seen(message);
    EXPECT_EQ(record.value, body);
    EXPECT_THAT(record.headers, ElementsAre(Pair("rmq.sys", "769")));
  }
  TestMessage largest;
  largest.sys_flag = 1;
  largest.body = zlib_of(std::string(std::size_t{32} << 20, '\0'));
  EXPECT_EQ(seen(largest).value->size(), std::size_t{32} << 20);
}

TEST(RocketmqToKafka, malformed_properties_of_ours_are_corrupt) {
  for (const char* text :
       {"__KKEY==x", "__KKEY==Zh==", "__KHDRS=????", "__KHDRS=BA==", "__KHDRS=AAA=", "__KHDRS=AQEB",
        "__NULL=2", "__NULL=1", "__KPS=x", "__KPS=1:0:0:3:3"}) {
    const Error error = refusal(with_properties(std::string_view(text)));
    EXPECT_EQ(error.code, Errc::corrupt) << text;
    EXPECT_THAT(error.context, HasSubstr("queue offset 0")) << text;
  }
}

TEST(RocketmqToKafka, bytes_that_are_no_messages_are_corrupt) {
  Batch batch = rocketmq_batch({with_properties("a=1")});
  batch.bytes = batch.bytes.sub(0, batch.bytes.size() - 1);
  const Result<std::vector<Batch>> cut = rocketmq_to_kafka({batch}, {});
  ASSERT_FALSE(cut.has_value());
  EXPECT_EQ(cut.error().code, Errc::corrupt);
  TestMessage second;
  const Result<std::vector<Batch>> twice =
      rocketmq_to_kafka({rocketmq_batch({second}), rocketmq_batch({second})}, {});
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().code, Errc::corrupt);
}

std::vector<TestMessage> numbered(std::int64_t first, std::size_t count, std::size_t body_bytes) {
  std::vector<TestMessage> messages(count);
  for (TestMessage& message : messages) {
    message.queue_offset = first++;
    message.body = std::string(body_bytes, 'b');
  }
  return messages;
}

TEST(RocketmqToKafka, adjacent_batches_of_one_epoch_become_one_and_gaps_stay) {
  const LeaderEpoch one{1};
  const LeaderEpoch two{2};
  const Result<std::vector<Batch>> batches = rocketmq_to_kafka(
      {rocketmq_batch(numbered(10, 2, 5), one), rocketmq_batch(numbered(20, 1, 5), one),
       rocketmq_batch(numbered(21, 3, 5), two)},
      {});
  ASSERT_TRUE(batches.has_value());
  ASSERT_EQ(batches->size(), 2U);
  EXPECT_EQ(batches->at(0).info.first, Offset(10));
  EXPECT_EQ(batches->at(0).info.last, Offset(20));
  EXPECT_EQ(batches->at(0).info.records, 3);
  EXPECT_EQ(batches->at(0).info.epoch, one);
  EXPECT_EQ(batches->at(1).info.first, Offset(21));
  EXPECT_EQ(batches->at(1).info.epoch, two);
  std::vector<std::int64_t> offsets;
  for (const TestRecord& record : records_of(*batches)) offsets.push_back(record.offset);
  EXPECT_THAT(offsets, ElementsAre(10, 11, 20, 21, 22, 23));
  EXPECT_TRUE(rocketmq_to_kafka({}, {}).value().empty());
}

TEST(RocketmqToKafka, batches_are_cut_at_a_mebibyte_and_what_is_larger_stands_alone) {
  std::vector<TestMessage> messages = numbered(0, 30, 100'000);
  messages[17].body = std::string(3'000'000, 'L');
  const Result<std::vector<Batch>> batches = rocketmq_to_kafka({rocketmq_batch(messages)}, {});
  ASSERT_TRUE(batches.has_value());
  EXPECT_EQ(batches->size(), 5U);
  std::size_t alone = 0;
  for (const Batch& batch : *batches) {
    if (batch.bytes.size() <= std::size_t{1} << 20) continue;
    EXPECT_EQ(batch.info.records, 1);
    ++alone;
  }
  EXPECT_EQ(alone, 1U);
  EXPECT_EQ(records_of(*batches).size(), 30U);
  // More than 2^31 offsets do not fit into one batch either.
  TestMessage far;
  far.queue_offset = std::int64_t{1} << 40;
  const auto apart =
      rocketmq_to_kafka({rocketmq_batch(numbered(0, 1, 1)), rocketmq_batch({far})}, {});
  ASSERT_TRUE(apart.has_value());
  EXPECT_EQ(apart->size(), 2U);
}

TEST(RocketmqToKafka, output_beyond_the_limit_is_left_for_the_next_read) {
  KafkaTarget target;
  target.output_max = 250'000;
  const auto batches = rocketmq_to_kafka({rocketmq_batch(numbered(0, 10, 100'000))}, target);
  ASSERT_TRUE(batches.has_value());
  EXPECT_EQ(records_of(*batches).size(), 3U);
  target.output_max = 0;
  const auto least = rocketmq_to_kafka({rocketmq_batch(numbered(0, 10, 10))}, target);
  ASSERT_TRUE(least.has_value());
  EXPECT_EQ(records_of(*least).size(), 1U);
}

TEST(RocketmqToKafka, bodies_that_expand_in_vain_use_up_the_limit_too) {
  const std::string bomb = zlib_of(std::string((std::size_t{32} << 20) + 1, '\0'));
  std::vector<TestMessage> bombs = numbered(0, 10, 0);
  for (TestMessage& message : bombs) {
    message.sys_flag = 1;
    message.body = bomb;
  }
  const auto batches = rocketmq_to_kafka({rocketmq_batch(bombs)}, {});
  ASSERT_TRUE(batches.has_value());
  EXPECT_EQ(records_of(*batches).size(), 2U);
}

TEST(RocketmqToKafka, append_times_are_the_stores_for_each_record) {
  std::vector<TestMessage> messages = numbered(0, 4, 3);
  messages[0].store_timestamp = messages[1].store_timestamp = 500;
  messages[2].store_timestamp = messages[3].store_timestamp = 600;
  const auto batches = rocketmq_to_kafka({rocketmq_batch(messages)}, {.log_append_time = true});
  ASSERT_TRUE(batches.has_value());
  ASSERT_EQ(batches->size(), 2U);
  const kafka::BatchHeader header = kafka::decode_header(batches->front().bytes.view());
  EXPECT_EQ(header.timestamp_type(), kafka::TimestampType::log_append_time);
  std::vector<std::int64_t> times;
  for (const TestRecord& record : records_of(*batches)) times.push_back(record.timestamp);
  EXPECT_THAT(times, ElementsAre(500, 500, 600, 600));
}

TEST(RocketmqToKafka, a_negative_born_time_is_none) {
  TestMessage message;
  message.born_timestamp = -7;
  EXPECT_EQ(seen(message).timestamp, -1);
}

// --- both ways -------------------------------------------------------------------------------

TEST(Transcode, fixed_rows_of_the_mapping_come_back_equal) {
  const std::vector<TestRecord> records{
      {{}, std::nullopt, {}},                               // tombstone, null key
      {"", "", {}},                                         // empty both
      {"k", "v", {{"up", "1"}, {"up", "2"}, {"up", "1"}}},  // repeated three times
      {"k", "v", {{"TAGS", "x"}, {"__KKEY", "y"}}},         // reserved names
      {"k", "v", {{"a", std::string(20'000, '\xff')}}},     // binary
      {"k", "v", {}, std::int64_t{1} << 60},                // the far future
      {"k", "v", {}, -1},                                   // no time
      {"k", "v", {}, 5},                                    // earlier than before
      {"tok", "v", {{"rmq.keys", "tok"}}},                  // as RocketMQ shows it
      {{}, "v", {{"rmq.keys", "tok"}}},                     // as it never does
      {"tok", "v", {{"a", "1"}, {"rmq.keys", "tok"}, {"rmq.tags", "t"}}},
      {"k", "v", {{"rmq.keys", "k"}, {"rmq.p", property_text("__SHARDINGKEY=s")}}},
      {"s", "v", {{"rmq.p", property_text("__SHARDINGKEY=s")}}},
      {"k", "v", {{"rmq.tags", "t"}, {"rmq.flag", "3"}}},  // not in our order
      {"k", "v", {{"rmq.born", "192.0.2.1:5"}}},           // not without rmq.uniq
      {"k", "v", {{"rmq.uniq", "u"}}},
  };
  const Batch batch = kafka_batch(records);
  const Result<Batch> stored_batch = kafka_to_rocketmq(batch, test_target());
  ASSERT_TRUE(stored_batch.has_value());
  const Result<std::vector<Batch>> back = rocketmq_to_kafka({*stored_batch}, {});
  ASSERT_TRUE(back.has_value());
  const std::vector<TestRecord> expected = records_of(batch);
  const std::vector<TestRecord> result = records_of(*back);
  ASSERT_EQ(result.size(), expected.size());
  for (std::size_t i = 0; i < result.size(); ++i) EXPECT_TRUE(result[i] == expected[i]) << i;
}

TEST(Transcode, hosts_have_one_text_each) {
  for (const char* text : {"0.0.0.0:0", "192.0.2.1:65535", "[::]:1", "[2001:db8::9]:4711",
                           "[::ffff:1.2.3.4]:9", "1.2.3.4:-1"}) {
    const auto host = parse_host(text);
    ASSERT_TRUE(host.has_value()) << text;
    EXPECT_EQ(to_text(*host), text);
  }
  for (const char* text : {"", ":", "1.2.3.4", "1.2.3.4:", "1.2.3:4", "1.2.3.4:05", "01.2.3.4:5",
                           "::1:5", "[::1]", "[0::1]:5", "[1.2.3.4]:5", "[]:5", "[:5", "a:5",
                           "[2001:DB8::9]:1", "1.2.3.4:99999999999"}) {
    EXPECT_FALSE(parse_host(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace polylog::format
