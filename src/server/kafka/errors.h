#pragma once

#include "base/result.h"
#include "broker/broker.h"
#include "broker/groups/error.h"
#include "format/kafka/validate.h"
#include "protocol/kafka/errors.h"
#include "record/producers.h"

// What goes wrong below, in the codes of Kafka's protocol. Each is one switch without a default,
// so that a new kind of error does not compile until it is mapped.
namespace polylog::server::kafka {

using protocol::kafka::ErrorCode;

// Storage failures map to KAFKA_STORAGE_ERROR, which clients retry.
ErrorCode error_code(Errc code);
ErrorCode error_code(broker::Broker::TopicError error);
ErrorCode error_code(broker::groups::GroupError error);
ErrorCode error_code(format::kafka::BatchFault fault);
ErrorCode error_code(ProducerState::Verdict verdict);  // accept and duplicate are none

}  // namespace polylog::server::kafka
