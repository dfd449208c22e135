#include "format/kafka/snapshot.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/assert.h"
#include "base/crc.h"
#include "bytes/endian.h"
#include "bytes/reader.h"
#include "bytes/writer.h"

namespace polylog::format::kafka {
namespace {

constexpr std::int64_t none = -1;

// last - delta with the wrap from 0 to 2147483647.
std::int32_t first_sequence(std::int32_t last, std::int32_t delta) {
  if (last >= delta) return last - delta;
  return std::numeric_limits<std::int32_t>::max() - (delta - last) + 1;
}

void write_entry(ByteWriter& out, ProducerId id, const ProducerState::Entry& entry) {
  const ProducerState::BatchStamp last =
      entry.batches.empty() ? ProducerState::BatchStamp{.last = Offset(none)}
                            : entry.batches.back();
  out.i64(id.value());
  out.i16(entry.epoch);
  out.i32(last.last_sequence);
  out.i64(last.last.value());
  out.i32(last.offset_delta);
  out.i64(entry.last_timestamp.value());
  out.i32(entry.coordinator_epoch);
  out.i64(entry.transaction_first ? entry.transaction_first->value() : none);
}

Result<void> read_entry(ByteReader& in, ProducerState& producers) {
  const ProducerId id(in.i64());
  ProducerState::Entry entry;
  ProducerState::BatchStamp batch;
  entry.epoch = in.i16();
  batch.last_sequence = in.i32();
  batch.last = Offset(in.i64());
  batch.offset_delta = in.i32();
  entry.last_timestamp = Timestamp(in.i64());
  entry.coordinator_epoch = in.i32();
  const std::int64_t transaction_first = in.i64();
  POLYLOG_ASSERT(in.ok());  // the count was checked against the size

  const std::string who = "producer " + std::to_string(id.value());
  if (id < ProducerId(0)) return fail(Errc::corrupt, who + ": negative id");
  if (producers.entries().contains(id)) return fail(Errc::corrupt, who + ": listed twice");
  if (batch.last_sequence < none || batch.last < Offset(none) || batch.offset_delta < 0 ||
      transaction_first < none ||
      (batch.last >= Offset(0) && batch.last < Offset(batch.offset_delta))) {
    return fail(Errc::corrupt, who + ": impossible numbers");
  }
  if (batch.last_sequence >= 0 && batch.last >= Offset(0)) {
    batch.first_sequence = first_sequence(batch.last_sequence, batch.offset_delta);
    batch.max_timestamp = entry.last_timestamp;
    entry.batches.push_back(batch);
  }
  if (transaction_first != none) entry.transaction_first = Offset(transaction_first);
  producers.load(id, std::move(entry));
  return {};
}

}  // namespace

std::vector<std::uint8_t> encode_snapshot(const ProducerState& producers) {
  std::vector<ProducerId> ids;
  ids.reserve(producers.entries().size());
  for (const auto& [id, entry] : producers.entries()) ids.push_back(id);
  std::sort(ids.begin(), ids.end());

  ByteWriter out;
  out.i16(snapshot_version);
  out.u32(0);  // the checksum, once the rest is there
  out.i32(static_cast<std::int32_t>(ids.size()));
  for (const ProducerId id : ids) write_entry(out, id, producers.entries().at(id));
  std::vector<std::uint8_t> bytes = out.take_bytes();
  store_big(bytes.data() + snapshot_header_fields[1].at,
            crc32c(ByteView(bytes).subspan(snapshot_crc_covers_from)));
  return bytes;
}

Result<ProducerState> decode_snapshot(ByteView bytes) {
  ByteReader in(bytes);
  const std::int16_t version = in.i16();
  const std::uint32_t crc = in.u32();
  const std::int32_t claimed = in.i32();
  if (!in.ok()) return fail(Errc::corrupt, "a producer snapshot is shorter than its header");
  if (version != snapshot_version) {
    return fail(Errc::unsupported, "producer snapshot of version " + std::to_string(version));
  }
  if (crc32c(bytes.subspan(snapshot_crc_covers_from)) != crc) {
    return fail(Errc::corrupt, "the checksum of a producer snapshot is wrong");
  }
  const std::size_t count = in.count(claimed, snapshot_entry_bytes);
  if (!in.ok() || count * snapshot_entry_bytes != in.remaining()) {
    return fail(Errc::corrupt, "a producer snapshot of " + std::to_string(bytes.size()) +
                                   " bytes claims " + std::to_string(claimed) + " entries");
  }
  ProducerState producers;
  for (std::size_t i = 0; i < count; ++i) POLYLOG_TRY(read_entry(in, producers));
  return producers;
}

}  // namespace polylog::format::kafka
