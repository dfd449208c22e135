#include <cstddef>
#include <cstdint>

#include "kafka_body_fuzz.h"
#include "protocol/kafka/all_messages.h"
#include "protocol/kafka/header.h"

// A frame behind its size: header and body of any request in any version.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polylog;
  const Slice frame = Slice::unowned({data, size});
  const auto header = protocol::kafka::RequestHeader::decode(frame);
  if (!header) return 0;
  protocol::kafka::for_each_request(
      protocol::kafka::FuzzBody{header->api_key, header->api_version, header->body(frame)});
  return 0;
}
