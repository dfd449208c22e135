#include "cli/kafka_tools/java_errors.h"

#include <algorithm>
#include <array>

#include "protocol/kafka/errors.h"

namespace polylog::cli::kafka_tools {
namespace {

using protocol::kafka::ErrorCode;

struct JavaError {
  ErrorCode code;
  const char* exception;
  const char* message;
};

// Those that the tools' requests can meet (Kafka 4.4, Errors).
constexpr std::array java_errors = {
    JavaError{ErrorCode::unknown_server_error, "UnknownServerException",
              "The server experienced an unexpected error when processing the request."},
    JavaError{ErrorCode::offset_out_of_range, "OffsetOutOfRangeException",
              "The requested offset is not within the range of offsets maintained by the server."},
    JavaError{ErrorCode::unknown_topic_or_partition, "UnknownTopicOrPartitionException",
              "This server does not host this topic-partition."},
    JavaError{ErrorCode::not_leader_or_follower, "NotLeaderOrFollowerException",
              "For requests intended only for the leader, this error indicates that the broker is "
              "not the current leader. For requests intended for any replica, this error "
              "indicates that the broker is not a replica of the topic partition."},
    JavaError{ErrorCode::request_timed_out, "TimeoutException", "The request timed out."},
    JavaError{ErrorCode::coordinator_load_in_progress, "CoordinatorLoadInProgressException",
              "The coordinator is loading and hence can't process requests."},
    JavaError{ErrorCode::coordinator_not_available, "CoordinatorNotAvailableException",
              "The coordinator is not available."},
    JavaError{ErrorCode::not_coordinator, "NotCoordinatorException",
              "This is not the correct coordinator."},
    JavaError{ErrorCode::invalid_topic_exception, "InvalidTopicException",
              "The request attempted to perform an operation on an invalid topic."},
    JavaError{ErrorCode::invalid_group_id, "InvalidGroupIdException",
              "The configured groupId is invalid."},
    JavaError{ErrorCode::unknown_member_id, "UnknownMemberIdException",
              "The coordinator is not aware of this member."},
    JavaError{ErrorCode::topic_already_exists, "TopicExistsException",
              "Topic with this name already exists."},
    JavaError{ErrorCode::invalid_partitions, "InvalidPartitionsException",
              "Number of partitions is below 1."},
    JavaError{ErrorCode::invalid_replication_factor, "InvalidReplicationFactorException",
              "Replication factor is below 1 or larger than the number of available brokers."},
    JavaError{ErrorCode::invalid_replica_assignment, "InvalidReplicaAssignmentException",
              "Replica assignment is invalid."},
    JavaError{ErrorCode::invalid_config, "InvalidConfigurationException",
              "Configuration is invalid."},
    JavaError{ErrorCode::invalid_request, "InvalidRequestException",
              "This most likely occurs because of a request being malformed by the client library "
              "or the message was sent to an incompatible broker. See the broker logs for more "
              "details."},
    JavaError{ErrorCode::unsupported_version, "UnsupportedVersionException",
              "The version of API is not supported."},
    JavaError{ErrorCode::policy_violation, "PolicyViolationException",
              "Request parameters do not satisfy the configured policy."},
    JavaError{ErrorCode::non_empty_group, "GroupNotEmptyException", "The group is not empty."},
    JavaError{ErrorCode::group_id_not_found, "GroupIdNotFoundException",
              "The group id does not exist."},
    JavaError{ErrorCode::group_subscribed_to_topic, "GroupSubscribedToTopicException",
              "Deleting offsets of a topic is forbidden while the consumer group is actively "
              "subscribed to it."},
};

const JavaError* find(std::int16_t code) {
  const auto at = std::find_if(java_errors.begin(), java_errors.end(), [&](const JavaError& e) {
    return e.code == static_cast<ErrorCode>(code);
  });
  return at == java_errors.end() ? nullptr : at;
}

}  // namespace

std::string java_message(const WireAnswer& answer) {
  if (answer.error_message && !answer.error_message->empty()) return *answer.error_message;
  const JavaError* const known = find(answer.error_code);
  return known != nullptr ? known->message : wire_error(answer.error_code);
}

std::string java_exception(const WireAnswer& answer) {
  const JavaError* const known = find(answer.error_code);
  if (known == nullptr) return wire_error(answer.error_code, answer.error_message);
  return std::string("org.apache.kafka.common.errors.") + known->exception + ": " +
         java_message(answer);
}

}  // namespace polylog::cli::kafka_tools
