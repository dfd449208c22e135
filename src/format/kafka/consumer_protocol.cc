#include "format/kafka/consumer_protocol.h"

#include <algorithm>

#include "bytes/reader.h"
#include "bytes/writer.h"

namespace polylog::format::kafka {
namespace {

constexpr std::int16_t version_last = 3;
constexpr std::int16_t owned_from = 1;
constexpr std::int16_t generation_from = 2;
constexpr std::int16_t rack_from = 3;
constexpr std::size_t topic_bytes_min = 2 + 4;

std::string read_text(ByteReader& in) { return std::string(in.text(in.count(in.i16(), 1))); }

std::vector<std::uint8_t> read_nullable_bytes(ByteReader& in) {
  const std::int32_t size = in.i32();
  if (size == -1) return {};
  return to_vector(in.bytes(in.count(size, 1)));
}

std::vector<TopicPartitions> read_topics(ByteReader& in) {
  std::vector<TopicPartitions> topics(in.count(in.i32(), topic_bytes_min));
  for (TopicPartitions& topic : topics) {
    topic.topic = read_text(in);
    topic.partitions.resize(in.count(in.i32(), sizeof(std::int32_t)));
    for (std::int32_t& partition : topic.partitions) partition = in.i32();
  }
  return topics;
}

void write_text(ByteWriter& out, const std::string& text) {
  out.i16(static_cast<std::int16_t>(text.size()));
  out.text(text);
}

void write_bytes(ByteWriter& out, const std::vector<std::uint8_t>& bytes) {
  out.i32(bytes.empty() ? -1 : static_cast<std::int32_t>(bytes.size()));
  out.bytes(bytes);
}

void write_topics(ByteWriter& out, const std::vector<TopicPartitions>& topics) {
  out.i32(static_cast<std::int32_t>(topics.size()));
  for (const TopicPartitions& topic : topics) {
    write_text(out, topic.topic);
    out.i32(static_cast<std::int32_t>(topic.partitions.size()));
    for (const std::int32_t partition : topic.partitions) out.i32(partition);
  }
}

}  // namespace

Result<ConsumerSubscription> decode_subscription(ByteView bytes) {
  ByteReader in(bytes);
  ConsumerSubscription read;
  read.version = in.i16();
  if (read.version < 0) in.fail();
  read.topics.resize(in.count(in.i32(), 2));
  for (std::string& topic : read.topics) topic = read_text(in);
  read.user_data = read_nullable_bytes(in);
  if (read.version >= owned_from) read.owned = read_topics(in);
  if (read.version >= generation_from) read.generation = in.i32();
  if (read.version >= rack_from) {
    const std::int16_t size = in.i16();
    if (size >= 0) read.rack_id = std::string(in.text(in.count(size, 1)));
  }
  if (!in.ok()) return fail(Errc::corrupt, "a consumer's subscription does not read");
  return read;
}

Result<ConsumerAssignment> decode_assignment(ByteView bytes) {
  ByteReader in(bytes);
  ConsumerAssignment read;
  read.version = in.i16();
  if (read.version < 0) in.fail();
  read.partitions = read_topics(in);
  read.user_data = read_nullable_bytes(in);
  if (!in.ok()) return fail(Errc::corrupt, "a consumer's assignment does not read");
  return read;
}

std::vector<std::uint8_t> encode(const ConsumerAssignment& assignment) {
  ByteWriter out;
  out.i16(std::min(assignment.version, version_last));
  write_topics(out, assignment.partitions);
  write_bytes(out, assignment.user_data);
  return out.take_bytes();
}

std::vector<std::uint8_t> encode(const ConsumerSubscription& subscription) {
  ByteWriter out;
  const std::int16_t version = std::min(subscription.version, version_last);
  out.i16(version);
  out.i32(static_cast<std::int32_t>(subscription.topics.size()));
  for (const std::string& topic : subscription.topics) write_text(out, topic);
  write_bytes(out, subscription.user_data);
  if (version >= owned_from) write_topics(out, subscription.owned);
  if (version >= generation_from) out.i32(subscription.generation);
  if (version >= rack_from) {
    if (subscription.rack_id) {
      write_text(out, *subscription.rack_id);
    } else {
      out.i16(-1);
    }
  }
  return out.take_bytes();
}

}  // namespace polylog::format::kafka
