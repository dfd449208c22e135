#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "format/kafka/records.h"
#include "format/segment/record.h"
#include "format/transcode/kafka_terms.h"
#include "record/batch.h"

namespace polylog::format {

// Collects records of any origin into Kafka batches, as transcode.h describes them.
class KafkaWriter {
 public:
  // `input_bytes`: of what is going to be written, in its own form.
  KafkaWriter(std::size_t output_max, std::size_t input_bytes)
      : output_max_(output_max), input_bytes_(input_bytes) {}

  // There is enough: the records behind are left for the next read.
  bool full() const;
  // Changes the record into Kafka's terms on the way. corrupt: as KafkaTerms; an offset that does
  // not rise.
  Result<void> write(segment::StoredRecord& record, LeaderEpoch epoch);
  Result<std::vector<Batch>> finish();

 private:
  Result<void> end_batch();
  Result<void> begin_batch(const segment::StoredRecord& record, LeaderEpoch epoch);
  bool fits(const segment::StoredRecord& record, LeaderEpoch epoch) const;

  const std::size_t output_max_;
  const std::size_t input_bytes_;
  KafkaTerms terms_;
  std::optional<kafka::BatchBuilder> builder_;
  kafka::BatchOptions options_;
  std::int64_t last_offset_ = -1;
  std::size_t finished_bytes_ = 0;
  std::vector<Batch> batches_;
};

}  // namespace polylog::format
