#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "broker/groups/consumer_group.h"
#include "broker/groups/offsets.h"
#include "format/kafka/group_records.h"
#include "storage/store.h"

namespace polylog::broker::groups {

// Some of a partition of __consumer_offsets, taken out of its batches.
struct LogPortion {
  enum class Kind { record, commit, abort };
  struct Entry {
    Kind kind = Kind::record;
    ProducerId transaction = no_producer;  // whose open transaction it belongs to, or ends
    Bytes key;
    std::optional<Bytes> value;
    std::int64_t timestamp_ms = -1;
  };
  std::vector<Entry> entries;
  Offset next{0};
  std::uint64_t bytes = 0;
  std::vector<std::string> notes;  // what did not read, and is skipped
  Result<void> read;               // an error that is none of the log's contents
};

// Reads from `from` on, about a megabyte, below `end`. Damage is noted and skipped. Waits for the
// disk: on a thread that may.
LogPortion read_portion(const storage::PartitionLog& log, Offset from, Offset end,
                        std::size_t decompressed_bytes_max);

// What the records of a partition come to, taken in their order. Kafka's rules: the last record of
// a key counts, one without a value deletes; records of a transaction count when it commits; key
// types that are not known are passed over (KIP-915).
class Replay {
 public:
  struct Loaded {
    std::optional<format::kafka::GroupMetadata> classic;
    std::unique_ptr<ConsumerGroup> consumer;
    GroupOffsets offsets;
    bool empty() const { return !classic && !consumer && offsets.empty(); }
  };
  using Groups = std::map<std::string, Loaded, std::less<>>;

  Replay(const ConsumerLimits& limits, std::uint64_t* rebalances)
      : limits_(limits), rebalances_(rebalances) {}

  // Gives a line for each record that does not read.
  std::vector<std::string> take(LogPortion portion);
  // Without groups of which nothing is left.
  Groups finish();
  std::size_t open_transactions() const { return transactions_.size(); }

 private:
  using Entry = LogPortion::Entry;

  Result<void> apply(const Entry& entry);
  Result<void> apply_offset(const Entry& entry);
  Result<void> apply_classic(const Entry& entry);
  Result<void> apply_consumer(const Entry& entry);
  Loaded& at(const std::string& group);

  const ConsumerLimits& limits_;
  std::uint64_t* rebalances_;
  Groups groups_;
  std::map<ProducerId, std::vector<Entry>> transactions_;
};

}  // namespace polylog::broker::groups
