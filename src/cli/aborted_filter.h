#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "format/kafka/record_batch.h"

namespace polylog::cli {

// Tells the data of aborted transactions from the rest, as a reader of committed data must
// (Kafka wire protocol, "Fetch", aborted transactions). One for each partition of one answer.
class AbortedFilter {
 public:
  struct Aborted {
    std::int64_t producer_id = 0;
    std::int64_t first_offset = 0;
  };

  explicit AbortedFilter(std::vector<Aborted> aborted);

  // To be asked for every batch, in order, markers included: they end what it remembers.
  bool hides(const format::kafka::BatchHeader& header, ByteView batch);

 private:
  std::vector<Aborted> aborted_;  // by first offset, the earliest last
  std::set<std::int64_t> aborting_;
};

}  // namespace polylog::cli
