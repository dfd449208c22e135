#include "format/kafka/index.h"

#include <string>

#include "base/assert.h"
#include "bytes/endian.h"

namespace polylog::format::kafka {

OffsetIndexBytes encode(const OffsetIndexEntry& entry) {
  OffsetIndexBytes bytes;
  store_big(bytes.data(), entry.relative_offset);
  store_big(bytes.data() + offset_index_fields[1].at, entry.position);
  return bytes;
}

TimeIndexBytes encode(const TimeIndexEntry& entry) {
  TimeIndexBytes bytes;
  store_big(bytes.data(), entry.timestamp);
  store_big(bytes.data() + time_index_fields[1].at, entry.relative_offset);
  return bytes;
}

TransactionIndexBytes encode(const AbortedTransaction& entry) {
  TransactionIndexBytes bytes;
  store_big(bytes.data(), transaction_index_version);
  store_big(bytes.data() + transaction_index_fields[1].at, entry.producer.value());
  store_big(bytes.data() + transaction_index_fields[2].at, entry.first.value());
  store_big(bytes.data() + transaction_index_fields[3].at, entry.last.value());
  store_big(bytes.data() + transaction_index_fields[4].at, entry.last_stable.value());
  return bytes;
}

OffsetIndexEntry decode_offset_index_entry(ByteView bytes) {
  POLYLOG_ASSERT(bytes.size() >= OffsetIndexEntry::bytes);
  return {load_big<std::int32_t>(bytes.data()),
          load_big<std::int32_t>(bytes.data() + offset_index_fields[1].at)};
}

TimeIndexEntry decode_time_index_entry(ByteView bytes) {
  POLYLOG_ASSERT(bytes.size() >= TimeIndexEntry::bytes);
  return {load_big<std::int64_t>(bytes.data()),
          load_big<std::int32_t>(bytes.data() + time_index_fields[1].at)};
}

Result<AbortedTransaction> decode_transaction_index_entry(ByteView bytes) {
  POLYLOG_ASSERT(bytes.size() >= transaction_index_entry_bytes);
  const auto version = load_big<std::int16_t>(bytes.data());
  if (version != transaction_index_version) {
    return fail(Errc::unsupported,
                "transaction index entry of version " + std::to_string(version));
  }
  const auto number = [&bytes](std::size_t field) {
    return load_big<std::int64_t>(bytes.data() + transaction_index_fields[field].at);
  };
  const AbortedTransaction entry{ProducerId(number(1)), Offset(number(2)), Offset(number(3)),
                                 Offset(number(4))};
  if (entry.producer < ProducerId(0) || entry.first < Offset(0) || entry.last < entry.first ||
      entry.last_stable < Offset(0)) {
    return fail(Errc::corrupt, "transaction index entry with impossible offsets");
  }
  return entry;
}

}  // namespace polylog::format::kafka
