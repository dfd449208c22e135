#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "bytes/slice.h"

namespace polylog {

// Headers are an ordered list; names may repeat; a null value is not an empty one.
struct Header {
  std::string_view name;
  std::optional<ByteView> value;
};

// The decoded view of one record. Views point into the bytes it was decoded from and live as
// long as those do. Null and empty differ for key, value and header values.
struct Record {
  Offset offset;
  Timestamp timestamp = no_timestamp;
  std::optional<ByteView> key;
  std::optional<ByteView> value;
  std::vector<Header> headers;
};

}  // namespace polylog
