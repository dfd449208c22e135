#include "format/transcode/transcode.h"

#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "bytes/reader.h"
#include "format/kafka/records.h"
#include "format/rocketmq/message.h"
#include "format/transcode/base64.h"
#include "format/transcode/mapping.h"

// The input is read twice: as a piece of a commit log, and as the parts of one message (flags,
// length of the property text, the text, the body). Whatever a Kafka reader is shown must come back
// equal when it is stored as RocketMQ's messages again.

using namespace polylog;
using namespace polylog::format;

namespace {

bool same(const std::optional<ByteView>& a, const std::optional<ByteView>& b) {
  if (a.has_value() != b.has_value()) return false;
  return !a || as_text(*a) == as_text(*b);
}

bool same(const Record& a, const Record& b) {
  if (a.offset != b.offset || a.timestamp != b.timestamp || !same(a.key, b.key) ||
      !same(a.value, b.value) || a.headers.size() != b.headers.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.headers.size(); ++i) {
    if (a.headers[i].name != b.headers[i].name || !same(a.headers[i].value, b.headers[i].value)) {
      return false;
    }
  }
  return true;
}

void compare(const Batch& batch, const std::vector<Batch>& again) {
  constexpr std::size_t output_max = 64 << 20;
  std::size_t piece = 0;
  auto expected = kafka::RecordReader::open(batch.bytes.view(), output_max);
  POLYLOG_ASSERT(expected.has_value());
  POLYLOG_ASSERT(!again.empty());
  auto got = kafka::RecordReader::open(again[0].bytes.view(), output_max);
  Record left;
  Record right;
  for (;;) {
    const Result<bool> more = expected->next(left);
    POLYLOG_ASSERT(more.has_value() && got.has_value());
    Result<bool> more_again = got->next(right);
    POLYLOG_ASSERT(more_again.has_value());
    if (!*more_again && ++piece < again.size()) {
      got = kafka::RecordReader::open(again[piece].bytes.view(), output_max);
      POLYLOG_ASSERT(got.has_value());
      more_again = got->next(right);
    }
    POLYLOG_ASSERT(more_again.has_value() && *more == *more_again);
    if (!*more) return;
    POLYLOG_ASSERT(same(left, right));
  }
}

void round_trip(const Batch& messages) {
  for (const bool log_append_time : {false, true}) {
    KafkaTarget target;
    target.log_append_time = log_append_time;
    target.output_max = 1 << 20;
    const Result<std::vector<Batch>> shown = rocketmq_to_kafka({messages}, target);
    if (!shown) continue;
    for (const Batch& batch : *shown) {
      POLYLOG_ASSERT(kafka::crc_matches(batch.bytes.view()));
      RocketmqTarget back;
      back.topic = "t";
      back.body_bytes_max = 64 << 20;
      const Result<Batch> stored = kafka_to_rocketmq(batch, back);
      // Base64 can make properties too long that came in as short text.
      if (!stored) {
        POLYLOG_ASSERT(stored.error().code == Errc::too_large);
        continue;
      }
      const Result<std::vector<Batch>> again = rocketmq_to_kafka({*stored}, {});
      POLYLOG_ASSERT(again.has_value());
      compare(batch, *again);
    }
  }
}

std::vector<std::uint8_t> message_of(ByteView parts) {
  ByteReader reader(parts);
  rocketmq::Message message;
  message.flag = reader.i8();
  message.sys_flag = reader.i16();
  message.reconsume_times = reader.i8();
  message.born_timestamp = reader.i8();
  message.properties = reader.text(reader.u8());
  if (!reader.ok()) return {};
  message.body = reader.bytes(reader.remaining());
  message.topic = "t";
  std::vector<std::uint8_t> bytes;
  POLYLOG_ASSERT(rocketmq::encode(message, bytes).has_value());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input(data, size);
  round_trip({BatchFormat::rocketmq, {}, Slice::unowned(input)});
  if (std::vector<std::uint8_t> message = message_of(input); !message.empty()) {
    round_trip({BatchFormat::rocketmq, {}, Slice::of(std::move(message))});
  }
  std::vector<Header> headers;
  decode_header_list(input, headers);
  parse_host(as_text(input));
  std::vector<std::uint8_t> plain;
  if (decode_base64(as_text(input), plain)) {
    std::string text;
    append_base64(text, plain);
    POLYLOG_ASSERT(text == as_text(input));
  }
  return 0;
}
