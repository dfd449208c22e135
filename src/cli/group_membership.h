#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "cli/group_view.h"
#include "cli/kafka_client.h"

namespace polylog::cli {

// One member of a classic group, with the range assignor (Kafka wire protocol, "Classic groups").
// Used by one thread, which calls keep() again and again. Errors, besides KafkaClient's: invalid,
// with Kafka's code, when the group refuses the member.
class GroupMembership {
 public:
  // The topics to read, asked for at each join.
  using Topics = std::function<Result<std::vector<std::string>>()>;

  static constexpr std::int32_t session_ms = 45000;
  static constexpr std::int32_t rebalance_ms = 300000;
  static constexpr std::chrono::milliseconds heartbeat_pause{3000};

  // `client` outlives this, or the next use(), and knows the cluster; the member has a connection
  // of its own.
  GroupMembership(const ClientOptions& options, KafkaClient& client, std::string group,
                  Topics topics)
      : options_(options), client_(&client), group_(std::move(group)), topics_(std::move(topics)) {}

  // After the connection to the cluster broke: the member stays the same.
  void use(KafkaClient& client) {
    client_ = &client;
    coordinator_.reset();
  }

  // Joins, or joins again, and waits until all members have. This member's partitions.
  Result<std::vector<TopicPartition>> join();

  // A heartbeat, when one is due. True: the group wants its members to join again.
  Result<bool> keep();

  // io: none of it counts, because the group has gone on without this member.
  Result<void> commit(const CommittedOffsets& offsets);
  // Of these partitions, those that have an offset.
  Result<CommittedOffsets> committed(const std::vector<TopicPartition>& partitions);

  // Over a new connection, so that it works when the old one was left in the middle of an answer.
  void leave();

 private:
  using Clock = std::chrono::steady_clock;

  Result<void> connect();
  // One attempt; false: another one may work.
  Result<bool> try_join(std::vector<TopicPartition>& assigned);

  const ClientOptions options_;
  KafkaClient* client_;
  const std::string group_;
  const Topics topics_;
  std::unique_ptr<KafkaClient> coordinator_;
  std::string member_id_;
  std::int32_t generation_ = -1;
  Clock::time_point beat_;
};

struct Subscriber {
  std::string member_id;
  std::optional<std::string> instance_id;
  std::vector<std::string> topics;
};
// Kafka's range assignor without racks: of each topic, every subscriber gets a range of partitions,
// the first ones one more; static members come first.
std::map<std::string, std::vector<TopicPartition>> assign_ranges(
    std::vector<Subscriber> subscribers, const std::map<std::string, std::int32_t>& partitions);

}  // namespace polylog::cli
