#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "format/rocketmq/message.h"
#include "record/batch.h"

// The only place where a record changes its stored form. What goes where: docs/formats/
// record-mapping.md. Lossless on everything the target can hold; what it can't is refused whole.
// Pure: any thread.
namespace polylog::format {

// Where the records of a Kafka batch go.
struct RocketmqTarget {
  std::string topic;  // as stored: see rocketmq::to_stored_topic
  std::int32_t queue_id = 0;
  rocketmq::Host born_host;   // the client's address
  rocketmq::Host store_host;  // ours
  std::size_t body_bytes_max = rocketmq::body_bytes_max_default;
  std::size_t output_max = std::size_t{256} << 20;  // of a compressed batch
};

// One message per record, back to back, offsets counted from batch.info.first, physical offsets and
// store timestamps zero (the engine's). The result's info describes the same records. The batch
// has been validated.
// unsupported: control records or a transactional batch. too_large: a body over the limit or
// properties over 32,767 bytes; the context names record and limit. corrupt, invalid: as
// RecordReader.
Result<Batch> kafka_to_rocketmq(const Batch& batch, const RocketmqTarget& target);

struct KafkaTarget {
  bool log_append_time = false;                    // timestamps are the store's, and marked so
  std::size_t output_max = std::size_t{64} << 20;  // compressed bodies can expand a lot
};

// Kafka batches, uncompressed, with the records' own offsets (gaps stay): `batches` are in offset
// order; adjacent ones of one leader epoch become one batch, cut at a record boundary at about
// 1 MiB, and where the store's time changes if that is the records' timestamp. Once more than
// `output_max` bytes have come out the rest is left for the next read. Control records do not
// arise.
// corrupt: a message that does not parse, or whose properties of ours do not, or offsets that do
// not rise.
Result<std::vector<Batch>> rocketmq_to_kafka(const std::vector<Batch>& batches,
                                             const KafkaTarget& target);

}  // namespace polylog::format
