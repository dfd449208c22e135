#include "server/kafka/errors.h"

namespace polylog::server::kafka {

ErrorCode error_code(Errc code) {
  switch (code) {
    case Errc::invalid: return ErrorCode::invalid_request;
    case Errc::out_of_range: return ErrorCode::offset_out_of_range;
    case Errc::not_found: return ErrorCode::unknown_topic_or_partition;
    case Errc::exists: return ErrorCode::topic_already_exists;
    case Errc::too_large: return ErrorCode::record_list_too_large;
    case Errc::corrupt: return ErrorCode::corrupt_message;
    case Errc::unsupported: return ErrorCode::unsupported_version;
    case Errc::fenced: return ErrorCode::fenced_leader_epoch;
    case Errc::no_space: return ErrorCode::kafka_storage_error;
    case Errc::io: return ErrorCode::kafka_storage_error;
    case Errc::unavailable: return ErrorCode::kafka_storage_error;
    case Errc::would_block: return ErrorCode::kafka_storage_error;
    case Errc::locked: return ErrorCode::kafka_storage_error;
    case Errc::timed_out: return ErrorCode::request_timed_out;
  }
  return ErrorCode::unknown_server_error;
}

ErrorCode error_code(broker::Broker::TopicError error) {
  using TopicError = broker::Broker::TopicError;
  switch (error) {
    case TopicError::none: return ErrorCode::none;
    case TopicError::invalid_name: return ErrorCode::invalid_topic_exception;
    case TopicError::exists: return ErrorCode::topic_already_exists;
    case TopicError::invalid_partitions: return ErrorCode::invalid_partitions;
    case TopicError::invalid_replication_factor: return ErrorCode::invalid_replication_factor;
    case TopicError::invalid_config: return ErrorCode::invalid_config;
    case TopicError::unknown: return ErrorCode::unknown_topic_or_partition;
    case TopicError::storage: return ErrorCode::kafka_storage_error;
  }
  return ErrorCode::unknown_server_error;
}

ErrorCode error_code(broker::groups::GroupError error) {
  using broker::groups::GroupError;
  switch (error) {
    case GroupError::none: return ErrorCode::none;
    case GroupError::coordinator_not_available: return ErrorCode::coordinator_not_available;
    case GroupError::not_coordinator: return ErrorCode::not_coordinator;
    case GroupError::load_in_progress: return ErrorCode::coordinator_load_in_progress;
    case GroupError::invalid_group_id: return ErrorCode::invalid_group_id;
    case GroupError::illegal_generation: return ErrorCode::illegal_generation;
    case GroupError::unknown_member_id: return ErrorCode::unknown_member_id;
    case GroupError::rebalance_in_progress: return ErrorCode::rebalance_in_progress;
    case GroupError::inconsistent_group_protocol: return ErrorCode::inconsistent_group_protocol;
    case GroupError::invalid_session_timeout: return ErrorCode::invalid_session_timeout;
    case GroupError::member_id_required: return ErrorCode::member_id_required;
    case GroupError::fenced_instance_id: return ErrorCode::fenced_instance_id;
    case GroupError::group_max_size_reached: return ErrorCode::group_max_size_reached;
    case GroupError::non_empty_group: return ErrorCode::non_empty_group;
    case GroupError::group_id_not_found: return ErrorCode::group_id_not_found;
    case GroupError::group_subscribed_to_topic: return ErrorCode::group_subscribed_to_topic;
    case GroupError::unknown_topic_or_partition: return ErrorCode::unknown_topic_or_partition;
    case GroupError::unknown_topic_id: return ErrorCode::unknown_topic_id;
    case GroupError::offset_metadata_too_large: return ErrorCode::offset_metadata_too_large;
    case GroupError::unstable_offset_commit: return ErrorCode::unstable_offset_commit;
    case GroupError::fenced_member_epoch: return ErrorCode::fenced_member_epoch;
    case GroupError::unreleased_instance_id: return ErrorCode::unreleased_instance_id;
    case GroupError::unsupported_assignor: return ErrorCode::unsupported_assignor;
    case GroupError::stale_member_epoch: return ErrorCode::stale_member_epoch;
    case GroupError::invalid_regular_expression: return ErrorCode::invalid_regular_expression;
    case GroupError::invalid_request: return ErrorCode::invalid_request;
    case GroupError::unsupported_version: return ErrorCode::unsupported_version;
    case GroupError::storage: return ErrorCode::coordinator_not_available;
  }
  return ErrorCode::unknown_server_error;
}

ErrorCode error_code(format::kafka::BatchFault fault) {
  using format::kafka::BatchFault;
  switch (fault) {
    case BatchFault::corrupt_message: return ErrorCode::corrupt_message;
    case BatchFault::message_too_large: return ErrorCode::message_too_large;
    case BatchFault::record_list_too_large: return ErrorCode::record_list_too_large;
    case BatchFault::invalid_timestamp: return ErrorCode::invalid_timestamp;
    case BatchFault::unsupported_for_message_format:
      return ErrorCode::unsupported_for_message_format;
    case BatchFault::unsupported_compression_type: return ErrorCode::unsupported_compression_type;
    case BatchFault::invalid_record: return ErrorCode::invalid_record;
  }
  return ErrorCode::unknown_server_error;
}

ErrorCode error_code(ProducerState::Verdict verdict) {
  using Verdict = ProducerState::Verdict;
  switch (verdict) {
    case Verdict::accept: return ErrorCode::none;
    case Verdict::duplicate: return ErrorCode::none;
    case Verdict::out_of_order_sequence: return ErrorCode::out_of_order_sequence_number;
    case Verdict::invalid_producer_epoch: return ErrorCode::invalid_producer_epoch;
    case Verdict::invalid_transaction_state: return ErrorCode::invalid_txn_state;
  }
  return ErrorCode::unknown_server_error;
}

}  // namespace polylog::server::kafka
