#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "cli/kafka_client.h"

// What the command line asks a broker about groups. Errors, besides KafkaClient's: GroupError's
// code and words as invalid or not_found.
namespace polylog::cli {

struct GroupListing {
  std::string id;
  std::string protocol_type;  // consumer, connect, ...
  std::string state;          // Stable, Empty, ...; empty: the broker does not say
  std::string type;           // Classic, Consumer, ...; the same
};

struct GroupMember {
  std::string id;
  std::optional<std::string> instance_id;
  std::string client_id;
  std::string host;
  std::vector<TopicPartition> assigned;  // by topic and number
  std::vector<TopicPartition> target;    // of the consumer protocol only
  std::optional<std::int32_t> epoch;     // the same
};

struct GroupDescription {
  std::string id;
  std::string state;
  std::string type;       // Classic or Consumer
  std::string assignor;   // empty: none
  std::optional<std::int32_t> group_epoch, target_epoch;  // of the consumer protocol only
  std::vector<GroupMember> members;
  std::int32_t coordinator_id = -1;
  std::string coordinator;  // HOST:PORT
};

struct Committed {
  std::int64_t offset = -1;
  std::int32_t leader_epoch = -1;
  std::string metadata;
  bool operator==(const Committed&) const = default;
};
using CommittedOffsets = std::map<TopicPartition, Committed>;

// Kafka's error code for each partition that failed.
using PartitionErrors = std::map<TopicPartition, std::int16_t>;

// The groups of one cluster. Requests about a group go to its coordinator, over connections of
// their own when that is another broker. Used by one thread.
class Groups {
 public:
  // `client` outlives this.
  Groups(const ClientOptions& options, KafkaClient& client) : options_(options), client_(client) {}

  // By name. Filters as the broker takes them; none: all.
  Result<std::vector<GroupListing>> list(const std::vector<std::string>& states = {},
                                         const std::vector<std::string>& types = {});

  // not_found: there is no such group.
  Result<GroupDescription> describe(const std::string& group);

  // Only partitions that have an offset. Of a group that does not exist: none.
  Result<CommittedOffsets> committed(const std::string& group);

  // As an administrator: the group has no members.
  Result<PartitionErrors> commit(const std::string& group, const CommittedOffsets& offsets);

  // 0, or why not.
  Result<std::int16_t> remove(const std::string& group);

  struct Removed {
    std::int16_t error_code = 0;  // of the whole request
    PartitionErrors partitions;   // with those that worked, as 0
  };
  Result<Removed> remove_offsets(const std::string& group,
                                 const std::vector<TopicPartition>& partitions);

  // The connection to the group's coordinator; waits while a coordinator is being made.
  Result<KafkaClient*> coordinator(const std::string& group);
  Result<std::string> coordinator_address(const std::string& group);
  // After an answer that it is another one by now.
  void forget(const std::string& group) { coordinators_.erase(group); }

 private:
  struct Coordinator {
    std::int32_t id = -1;
    std::string address;
    KafkaClient* client = nullptr;
  };

  Result<Coordinator> find(const std::string& group);
  Result<GroupDescription> describe_consumer(const std::string& group, const Coordinator& at);
  Result<GroupDescription> describe_classic(const std::string& group, const Coordinator& at);

  const ClientOptions options_;
  KafkaClient& client_;
  std::map<std::string, Coordinator> coordinators_;
  std::map<std::string, std::unique_ptr<KafkaClient>> others_;  // by address
};

// The partitions of a classic member's assignment. corrupt: it is none of the consumer protocol.
Result<std::vector<TopicPartition>> decode_assignment(ByteView bytes);
std::vector<std::uint8_t> encode_assignment(const std::vector<TopicPartition>& partitions);
// The topics of a classic member's subscription.
Result<std::vector<std::string>> decode_subscription(ByteView bytes);
std::vector<std::uint8_t> encode_subscription(const std::vector<std::string>& topics);

}  // namespace polylog::cli
