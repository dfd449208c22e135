#include "storage/rocketmq/queue_states.h"

#include <string>
#include <utility>

#include "bytes/reader.h"
#include "storage/filelog/producer_note.h"

namespace polylog::storage::rocketmq {

void encode_queue_state(ByteWriter& writer, const TopicPartition& id, std::int64_t end,
                        const ProducerState& producers) {
  const std::vector<std::uint8_t> bytes = encode_producers(producers);
  writer.u16(static_cast<std::uint16_t>(id.topic.size()));
  writer.text(id.topic);
  writer.i32(id.partition);
  writer.i64(end);
  writer.u32(static_cast<std::uint32_t>(bytes.size()));
  writer.bytes(bytes);
}

Result<std::vector<QueueState>> decode_queue_states(ByteView bytes) {
  std::vector<QueueState> states;
  ByteReader reader(bytes);
  while (reader.ok() && reader.remaining() > 0) {
    QueueState state;
    state.id.topic = std::string(reader.text(reader.u16()));
    state.id.partition = reader.i32();
    state.end = reader.i64();
    POLYLOG_ASSIGN(producers, decode_producers(reader.bytes(reader.u32())));
    state.producers = std::move(producers);
    states.push_back(std::move(state));
  }
  if (!reader.ok()) return fail(Errc::corrupt, "queue states of a recovery point do not read");
  return states;
}

}  // namespace polylog::storage::rocketmq
