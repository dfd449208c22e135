#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"

// What members of classic groups of the protocol type "consumer" tell each other through the
// broker (Kafka message schemas ConsumerProtocolSubscription and ConsumerProtocolAssignment,
// versions 0 to 3). The broker reads and writes them where it speaks for such members in a KIP-848
// group.
namespace polylog::format::kafka {

struct TopicPartitions {
  std::string topic;
  std::vector<std::int32_t> partitions;
  bool operator==(const TopicPartitions&) const = default;
};

struct ConsumerSubscription {
  std::int16_t version = 0;
  std::vector<std::string> topics;
  std::vector<std::uint8_t> user_data;
  std::vector<TopicPartitions> owned;  // version 1 and later
  std::int32_t generation = -1;        // version 2 and later
  std::optional<std::string> rack_id;  // version 3 and later
};

struct ConsumerAssignment {
  std::int16_t version = 0;
  std::vector<TopicPartitions> partitions;
  std::vector<std::uint8_t> user_data;
};

// corrupt: a negative version, bytes missing, impossible counts. Later versions are read as the
// last one known; what follows it is not looked at.
Result<ConsumerSubscription> decode_subscription(ByteView bytes);
Result<ConsumerAssignment> decode_assignment(ByteView bytes);
std::vector<std::uint8_t> encode(const ConsumerAssignment& assignment);
std::vector<std::uint8_t> encode(const ConsumerSubscription& subscription);

}  // namespace polylog::format::kafka
