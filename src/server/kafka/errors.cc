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
