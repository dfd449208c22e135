#include "storage/filelog/sidecar.h"

#include "base/crc.h"
#include "storage/filelog/producer_note.h"
#include "storage/filelog/sidecar_codec.h"

// The sidecar as it is found, record payloads behind the checksum's back, and producer notes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polylog;
  const ByteView bytes(data, size);
  storage::SidecarState state;
  POLYLOG_ASSERT(storage::decode_sidecar(bytes, state) <= size);
  storage::SidecarState direct;
  storage::SidecarDecoder decoder(direct);
  decoder.apply(storage::sidecar_type::begin_log, storage::encode_begin_log(1, Uuid{}, "topic-0"));
  for (std::uint8_t type = 1; size > 4 && type <= storage::sidecar_type::clean_stop; ++type) {
    decoder.apply(type, bytes);
  }
  const auto producers = storage::decode_producers(bytes);
  if (producers) {
    const auto again = storage::decode_producers(storage::encode_producers(*producers));
    POLYLOG_ASSERT(again && again->entries().size() == producers->entries().size());
  }
  return 0;
}
