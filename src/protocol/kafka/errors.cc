#include "protocol/kafka/errors.h"

#include <array>
#include <optional>

namespace polylog::protocol::kafka {
namespace {

struct Entry {
  std::string_view name;
  bool retriable = false;
};

constexpr std::int16_t first_code = -1;

// By code, from first_code on.
constexpr std::array entries = {
    Entry{"UNKNOWN_SERVER_ERROR"},
    Entry{"NONE"},
    Entry{"OFFSET_OUT_OF_RANGE"},
    Entry{"CORRUPT_MESSAGE", true},
    Entry{"UNKNOWN_TOPIC_OR_PARTITION", true},
    Entry{"INVALID_FETCH_SIZE"},
    Entry{"LEADER_NOT_AVAILABLE", true},
    Entry{"NOT_LEADER_OR_FOLLOWER", true},
    Entry{"REQUEST_TIMED_OUT", true},
    Entry{"BROKER_NOT_AVAILABLE"},
    Entry{"REPLICA_NOT_AVAILABLE", true},
    Entry{"MESSAGE_TOO_LARGE"},
    Entry{"STALE_CONTROLLER_EPOCH"},
    Entry{"OFFSET_METADATA_TOO_LARGE"},
    Entry{"NETWORK_EXCEPTION", true},
    Entry{"COORDINATOR_LOAD_IN_PROGRESS", true},
    Entry{"COORDINATOR_NOT_AVAILABLE", true},
    Entry{"NOT_COORDINATOR", true},
    Entry{"INVALID_TOPIC_EXCEPTION"},
    Entry{"RECORD_LIST_TOO_LARGE"},
    Entry{"NOT_ENOUGH_REPLICAS", true},
    Entry{"NOT_ENOUGH_REPLICAS_AFTER_APPEND", true},
    Entry{"INVALID_REQUIRED_ACKS"},
    Entry{"ILLEGAL_GENERATION"},
    Entry{"INCONSISTENT_GROUP_PROTOCOL"},
    Entry{"INVALID_GROUP_ID"},
    Entry{"UNKNOWN_MEMBER_ID"},
    Entry{"INVALID_SESSION_TIMEOUT"},
    Entry{"REBALANCE_IN_PROGRESS"},
    Entry{"INVALID_COMMIT_OFFSET_SIZE"},
    Entry{"TOPIC_AUTHORIZATION_FAILED"},
    Entry{"GROUP_AUTHORIZATION_FAILED"},
    Entry{"CLUSTER_AUTHORIZATION_FAILED"},
    Entry{"INVALID_TIMESTAMP"},
    Entry{"UNSUPPORTED_SASL_MECHANISM"},
    Entry{"ILLEGAL_SASL_STATE"},
    Entry{"UNSUPPORTED_VERSION"},
    Entry{"TOPIC_ALREADY_EXISTS"},
    Entry{"INVALID_PARTITIONS"},
    Entry{"INVALID_REPLICATION_FACTOR"},
    Entry{"INVALID_REPLICA_ASSIGNMENT"},
    Entry{"INVALID_CONFIG"},
    Entry{"NOT_CONTROLLER", true},
    Entry{"INVALID_REQUEST"},
    Entry{"UNSUPPORTED_FOR_MESSAGE_FORMAT"},
    Entry{"POLICY_VIOLATION"},
    Entry{"OUT_OF_ORDER_SEQUENCE_NUMBER"},
    Entry{"DUPLICATE_SEQUENCE_NUMBER"},
    Entry{"INVALID_PRODUCER_EPOCH"},
    Entry{"INVALID_TXN_STATE"},
    Entry{"INVALID_PRODUCER_ID_MAPPING"},
    Entry{"INVALID_TRANSACTION_TIMEOUT"},
    Entry{"CONCURRENT_TRANSACTIONS", true},
    Entry{"TRANSACTION_COORDINATOR_FENCED"},
    Entry{"TRANSACTIONAL_ID_AUTHORIZATION_FAILED"},
    Entry{"SECURITY_DISABLED"},
    Entry{"OPERATION_NOT_ATTEMPTED"},
    Entry{"KAFKA_STORAGE_ERROR", true},
    Entry{"LOG_DIR_NOT_FOUND"},
    Entry{"SASL_AUTHENTICATION_FAILED"},
    Entry{"UNKNOWN_PRODUCER_ID"},
    Entry{"REASSIGNMENT_IN_PROGRESS"},
    Entry{"DELEGATION_TOKEN_AUTH_DISABLED"},
    Entry{"DELEGATION_TOKEN_NOT_FOUND"},
    Entry{"DELEGATION_TOKEN_OWNER_MISMATCH"},
    Entry{"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"},
    Entry{"DELEGATION_TOKEN_AUTHORIZATION_FAILED"},
    Entry{"DELEGATION_TOKEN_EXPIRED"},
    Entry{"INVALID_PRINCIPAL_TYPE"},
    Entry{"NON_EMPTY_GROUP"},
    Entry{"GROUP_ID_NOT_FOUND"},
    Entry{"FETCH_SESSION_ID_NOT_FOUND", true},
    Entry{"INVALID_FETCH_SESSION_EPOCH", true},
    Entry{"LISTENER_NOT_FOUND", true},
    Entry{"TOPIC_DELETION_DISABLED"},
    Entry{"FENCED_LEADER_EPOCH", true},
    Entry{"UNKNOWN_LEADER_EPOCH", true},
    Entry{"UNSUPPORTED_COMPRESSION_TYPE"},
    Entry{"STALE_BROKER_EPOCH"},
    Entry{"OFFSET_NOT_AVAILABLE", true},
    Entry{"MEMBER_ID_REQUIRED"},
    Entry{"PREFERRED_LEADER_NOT_AVAILABLE", true},
    Entry{"GROUP_MAX_SIZE_REACHED"},
    Entry{"FENCED_INSTANCE_ID"},
    Entry{"ELIGIBLE_LEADERS_NOT_AVAILABLE", true},
    Entry{"ELECTION_NOT_NEEDED", true},
    Entry{"NO_REASSIGNMENT_IN_PROGRESS"},
    Entry{"GROUP_SUBSCRIBED_TO_TOPIC"},
    Entry{"INVALID_RECORD"},
    Entry{"UNSTABLE_OFFSET_COMMIT", true},
    Entry{"THROTTLING_QUOTA_EXCEEDED", true},
    Entry{"PRODUCER_FENCED"},
    Entry{"RESOURCE_NOT_FOUND"},
    Entry{"DUPLICATE_RESOURCE"},
    Entry{"UNACCEPTABLE_CREDENTIAL"},
    Entry{"INCONSISTENT_VOTER_SET"},
    Entry{"INVALID_UPDATE_VERSION"},
    Entry{"FEATURE_UPDATE_FAILED"},
    Entry{"PRINCIPAL_DESERIALIZATION_FAILURE"},
    Entry{"SNAPSHOT_NOT_FOUND"},
    Entry{"POSITION_OUT_OF_RANGE"},
    Entry{"UNKNOWN_TOPIC_ID", true},
    Entry{"DUPLICATE_BROKER_REGISTRATION"},
    Entry{"BROKER_ID_NOT_REGISTERED"},
    Entry{"INCONSISTENT_TOPIC_ID", true},
    Entry{"INCONSISTENT_CLUSTER_ID"},
    Entry{"TRANSACTIONAL_ID_NOT_FOUND"},
    Entry{"FETCH_SESSION_TOPIC_ID_ERROR", true},
    Entry{"INELIGIBLE_REPLICA"},
    Entry{"NEW_LEADER_ELECTED"},
    Entry{"OFFSET_MOVED_TO_TIERED_STORAGE"},
    Entry{"FENCED_MEMBER_EPOCH"},
    Entry{"UNRELEASED_INSTANCE_ID"},
    Entry{"UNSUPPORTED_ASSIGNOR"},
    Entry{"STALE_MEMBER_EPOCH"},
    Entry{"MISMATCHED_ENDPOINT_TYPE"},
    Entry{"UNSUPPORTED_ENDPOINT_TYPE"},
    Entry{"UNKNOWN_CONTROLLER_ID"},
    Entry{"UNKNOWN_SUBSCRIPTION_ID"},
    Entry{"TELEMETRY_TOO_LARGE"},
    Entry{"INVALID_REGISTRATION"},
    Entry{"TRANSACTION_ABORTABLE"},
    Entry{"INVALID_RECORD_STATE"},
    Entry{"SHARE_SESSION_NOT_FOUND", true},
    Entry{"INVALID_SHARE_SESSION_EPOCH", true},
    Entry{"FENCED_STATE_EPOCH"},
    Entry{"INVALID_VOTER_KEY"},
    Entry{"DUPLICATE_VOTER"},
    Entry{"VOTER_NOT_FOUND"},
    Entry{"INVALID_REGULAR_EXPRESSION"},
    Entry{"REBOOTSTRAP_REQUIRED"},
    Entry{"STREAMS_INVALID_TOPOLOGY"},
    Entry{"STREAMS_INVALID_TOPOLOGY_EPOCH"},
    Entry{"STREAMS_TOPOLOGY_FENCED"},
    Entry{"SHARE_SESSION_LIMIT_REACHED", true},
};

std::optional<Entry> entry(ErrorCode code) {
  const auto index = static_cast<std::size_t>(to_wire(code) - first_code);
  if (index >= entries.size()) return std::nullopt;
  return entries[index];
}

}  // namespace

std::string_view name(ErrorCode code) {
  const std::optional<Entry> found = entry(code);
  return found ? found->name : "UNKNOWN_ERROR_CODE";
}

bool retriable(ErrorCode code) {
  const std::optional<Entry> found = entry(code);
  return found && found->retriable;
}

}  // namespace polylog::protocol::kafka
