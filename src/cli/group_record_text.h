#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "bytes/slice.h"
#include "record/record.h"

// Records of __consumer_offsets as JSON: {"type":"1","data":{...}} for the key and
// {"version":"3","data":{...}} for the value, with the names of Kafka's schemas, as its
// DumpLogSegments --offsets-decoder prints them.
namespace polylog::cli {

struct GroupRecordText {
  std::string key;
  std::optional<std::string> value;  // nothing: the record deletes what the key names
};

// unsupported: a kind or version of record that is not known. corrupt: it does not decode.
Result<GroupRecordText> group_record_text(const Record& record);

}  // namespace polylog::cli
