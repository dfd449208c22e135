#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"
#include "record/producers.h"

// Producer state as the sidecar's recovery points keep it (docs/formats/sidecar.md). Kafka's own
// snapshot has one batch per producer; a client with five in flight resends up to five after a
// crash, so all that are remembered are written.
namespace polylog::storage {

std::vector<std::uint8_t> encode_producers(const ProducerState& producers);
Result<ProducerState> decode_producers(ByteView bytes);  // corrupt: does not fit

}  // namespace polylog::storage
