#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "record/batch.h"

namespace polylog {

// A transaction that was aborted, as readers that filter need it.
struct AbortedTransaction {
  ProducerId producer;
  Offset first;        // first data offset in this partition
  Offset last;         // of the abort marker
  Offset last_stable;  // last stable offset once this transaction is out of the way
  bool operator==(const AbortedTransaction&) const = default;
};

// What a partition remembers of its idempotent and transactional producers: Kafka's rules
// (Kafka log format, "idempotent producer state"), kept as a pure value and used the same way by
// every layout. The same update() runs at append and at recovery.
class ProducerState {
 public:
  static constexpr std::size_t batches_kept = 5;  // = the most a client has in flight

  struct BatchStamp {
    std::int32_t first_sequence = -1;
    std::int32_t last_sequence = -1;
    Offset last;
    std::int32_t offset_delta = 0;  // last - first
    Timestamp max_timestamp = no_timestamp;
    LogPosition end{0};  // what an acknowledgement waits for; 0 after a restart: recovery synced it
  };
  struct Entry {
    std::int16_t epoch = -1;
    std::vector<BatchStamp> batches;  // oldest first, at most batches_kept
    std::int32_t coordinator_epoch = -1;
    std::optional<Offset> transaction_first;
    Timestamp last_timestamp = no_timestamp;
  };

  enum class Verdict {
    accept,
    duplicate,  // answer with the original offsets, write nothing
    out_of_order_sequence,
    invalid_producer_epoch,
    invalid_transaction_state,
  };
  struct Check {
    Verdict verdict = Verdict::accept;
    OffsetRange original;  // of a duplicate
    Timestamp original_timestamp = no_timestamp;
    LogPosition original_end{0};
  };

  // The state of one producer before a change, for rolling a failed write back.
  struct Undo {
    ProducerId id = no_producer;
    std::optional<Entry> before;
  };

  // Judges a data batch from a client. Batches without a producer id are always accepted.
  Check check(const BatchInfo& batch) const;

  // Notes an appended (or recovered) data batch. Markers go to end_transaction().
  Undo update(const BatchInfo& batch, LogPosition end);

  // Notes a transaction marker at `marker`. Returns the aborted transaction if it was an abort
  // of a transaction with data here; its last_stable is computed from what stays open.
  std::optional<AbortedTransaction> end_transaction(const BatchInfo& marker, bool commit,
                                                    std::int32_t coordinator_epoch);

  void restore(Undo undo);

  // First offset of the earliest open transaction.
  std::optional<Offset> first_open() const;

  // Forgets producers without an open transaction whose last timestamp is below `before`.
  void expire(Timestamp before);

  // Recovery from a snapshot: at most one batch per producer is known then.
  void load(ProducerId id, Entry entry);
  void clear() { entries_.clear(); }
  const std::unordered_map<ProducerId, Entry>& entries() const { return entries_; }

 private:
  std::unordered_map<ProducerId, Entry> entries_;
};

// last - first + 1 with the wrap from 2147483647 to 0; `first` + `delta` likewise.
std::int32_t sequence_plus(std::int32_t first, std::int32_t delta);

}  // namespace polylog
