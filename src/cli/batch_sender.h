#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cli/kafka_client.h"
#include "cli/topic_view.h"

namespace polylog::cli {

struct ProducerIdentity {
  std::int64_t id = -1;
  std::int16_t epoch = -1;
};

// Sends batches of one topic over one connection, several on their way at a time. With an
// idempotent producer, whatever is unanswered when a connection breaks or the broker asks for
// patience is sent again over a new one, in order, for as long as `patience_ms`; the broker drops
// what it has already. Without one, that is an error. Used by one thread.
class BatchSender {
 public:
  static constexpr std::size_t in_flight_max = 5;  // as many as a broker recognises again
  static constexpr std::int64_t patience_ms = 60000;

  struct Progress {
    std::uint64_t records = 0;
    std::int64_t first_offset = -1, last_offset = -1;  // -1: not told (acks=0)
  };

  // `acks`: -1 all, 1, 0. REQUIRES: with `idempotent`, acks are -1.
  BatchSender(const ClientOptions& options, std::unique_ptr<KafkaClient> client, TopicView topic,
              std::int16_t acks, bool idempotent)
      : options_(options),
        client_(std::move(client)),
        topic_(std::move(topic)),
        acks_(acks),
        idempotent_(idempotent) {}

  // Asks for a producer id.
  Result<ProducerIdentity> identify();

  // Waits while too many batches are on their way. Errors concern any batch sent so far; nothing
  // may be sent after one.
  Result<void> send(std::int32_t partition, std::vector<std::uint8_t> batch, std::int32_t records);
  // Waits until everything is answered.
  Result<void> drain();

  // Acknowledged so far, by partition; with acks=0: sent.
  const std::map<std::int32_t, Progress>& progress() const { return progress_; }

 private:
  struct InFlight {
    std::int32_t partition;
    std::int32_t records;
    Slice batch;
  };

  Result<void> send_now(const InFlight& batch);
  Result<void> receive_one();
  Result<void> start_over(const Error& cause);
  Result<void> acknowledged(std::int64_t first_offset);

  const ClientOptions options_;
  std::unique_ptr<KafkaClient> client_;
  const TopicView topic_;
  const std::int16_t acks_;
  const bool idempotent_;
  std::deque<InFlight> in_flight_;
  std::map<std::int32_t, Progress> progress_;
};

}  // namespace polylog::cli
