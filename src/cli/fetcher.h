#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/ids.h"
#include "cli/kafka_client.h"
#include "cli/topic_view.h"
#include "format/kafka/record_batch.h"
#include "protocol/kafka/fetch_response.h"
#include "record/record.h"

namespace polylog::cli {

// Reads partitions of any topics from one broker. Used by one thread.
class Fetcher {
 public:
  struct Position {
    std::int64_t next = 0;
    std::int32_t leader_epoch = -1;  // of the last batch read; -1: none
  };
  using Positions = std::map<TopicPartition, Position>;

  struct Fetched {
    const TopicPartition& where;
    const Record& record;
    bool append_time = false;  // the timestamp is the broker's
  };
  // False ends the reading behind this record.
  using Visit = std::function<bool(const Fetched&)>;

  // `reset_to` is where reading goes on when a position has no records any more: earliest_offset or
  // latest_offset.
  Fetcher(IsolationLevel isolation, std::int64_t reset_to)
      : isolation_(isolation), reset_to_(reset_to) {}

  // From here on; what was assigned before is forgotten.
  void assign(Positions positions) {
    positions_ = std::move(positions);
    turn_ = 0;
  }
  const Positions& positions() const { return positions_; }

  // Waits for records at most `wait_ms`. How many were visited. Errors: KafkaClient's; corrupt: a
  // batch that does not decode; io: a partition's error that waiting does not help against.
  Result<std::int64_t> poll(KafkaClient& client, std::int32_t wait_ms, const Visit& visit);

 private:
  using Data = protocol::kafka::FetchResponse::PartitionData;
  Result<void> take(KafkaClient& client, const TopicPartition& where, const Data& data,
                    const Visit& visit);
  Result<void> take_batch(const TopicPartition& where, const format::kafka::BatchHeader& header,
                          ByteView batch, Position& position, const Visit& visit);

  const IsolationLevel isolation_;
  const std::int64_t reset_to_;
  Positions positions_;
  std::size_t turn_ = 0;  // which partition comes first in the next request
  std::int64_t visited_ = 0;
  bool stopped_ = false;
  bool later_ = false;
};

}  // namespace polylog::cli
