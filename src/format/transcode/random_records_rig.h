#pragma once

#include <rapidcheck.h>

#include <vector>

#include "format/transcode/transcode_rig.h"

// Random records and messages, with the names and values that the mapping treats specially among
// them. For use inside rc::check.
namespace polylog::format {

// Null, empty, binary and large parts; repeated, null and reserved headers; any time.
TestRecord any_record();

// A batch of any codec, with a producer or without, as compaction leaves it or dense, under either
// kind of timestamp.
Batch any_kafka_batch();

// What RocketMQ's clients and brokers write: names are unique, nothing is bound to the store.
TestMessage any_message();
// What the record format allows at all.
TestMessage any_odd_message();
// At rising offsets.
std::vector<TestMessage> any_messages(TestMessage (*any)());

}  // namespace polylog::format
