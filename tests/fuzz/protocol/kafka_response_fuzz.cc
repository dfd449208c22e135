#include <cstddef>
#include <cstdint>

#include "bytes/reader.h"
#include "kafka_body_fuzz.h"
#include "protocol/kafka/all_messages.h"
#include "protocol/kafka/header.h"

// API key and version of the request, which our client knows, then the frame that a server sent.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polylog;
  ByteReader in(ByteView(data, size));
  const std::int16_t api_key = in.i16();
  const std::int16_t version = in.i16();
  const Slice frame = Slice::unowned(in.bytes(in.remaining()));
  const auto header = protocol::kafka::ResponseHeader::decode(frame, api_key, version);
  if (!header) return 0;
  protocol::kafka::for_each_response(
      protocol::kafka::FuzzBody{api_key, version, header->body(frame)});
  return 0;
}
