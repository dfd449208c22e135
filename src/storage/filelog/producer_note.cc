#include "storage/filelog/producer_note.h"

#include "bytes/reader.h"
#include "bytes/writer.h"

namespace polylog::storage {
namespace {

constexpr std::size_t entry_bytes_min = 8 + 2 + 4 + 8 + 8 + 1;

}  // namespace

std::vector<std::uint8_t> encode_producers(const ProducerState& producers) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(producers.entries().size()));
  for (const auto& [id, entry] : producers.entries()) {
    writer.i64(id.value());
    writer.i16(entry.epoch);
    writer.i32(entry.coordinator_epoch);
    writer.i64(entry.transaction_first ? entry.transaction_first->value() : -1);
    writer.i64(entry.last_timestamp.value());
    writer.u8(static_cast<std::uint8_t>(entry.batches.size()));
    for (const ProducerState::BatchStamp& batch : entry.batches) {
      writer.i32(batch.first_sequence);
      writer.i32(batch.last_sequence);
      writer.i64(batch.last.value());
      writer.i32(batch.offset_delta);
      writer.i64(batch.max_timestamp.value());
    }
  }
  return writer.take_bytes();
}

Result<ProducerState> decode_producers(ByteView bytes) {
  ByteReader reader(bytes);
  ProducerState producers;
  const std::size_t count = reader.count(reader.u32(), entry_bytes_min);
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    const ProducerId id(reader.i64());
    ProducerState::Entry entry;
    entry.epoch = reader.i16();
    entry.coordinator_epoch = reader.i32();
    const std::int64_t first = reader.i64();
    if (first >= 0) entry.transaction_first = Offset(first);
    entry.last_timestamp = Timestamp(reader.i64());
    const std::uint8_t batches = reader.u8();
    if (batches > ProducerState::batches_kept) reader.fail();
    for (std::uint8_t b = 0; b < batches && reader.ok(); ++b) {
      ProducerState::BatchStamp batch;
      batch.first_sequence = reader.i32();
      batch.last_sequence = reader.i32();
      batch.last = Offset(reader.i64());
      batch.offset_delta = reader.i32();
      batch.max_timestamp = Timestamp(reader.i64());
      entry.batches.push_back(batch);
    }
    producers.load(id, std::move(entry));
  }
  if (!reader.ok() || reader.remaining() != 0) {
    return fail(Errc::corrupt, "producer state of a recovery point does not read");
  }
  return producers;
}

}  // namespace polylog::storage
