#pragma once

#include <cstdint>
#include <string_view>

#include "protocol/kafka/frame.h"
#include "protocol/kafka/header.h"
#include "server/kafka/context.h"
#include "server/net/handler.h"

namespace polylog::server::kafka {

// The answer to one request, to be given exactly once. Dropped unused it closes the connection.
class Reply {
 public:
  Reply(Context& context, ClientPtr client, ApiCounters& counters,
        const protocol::kafka::RequestHeader& header, ResponseSlot slot);

  // A generated response message. `version` is the request's unless the answer has another form.
  template <typename Response>
  void send(const Response& response, std::int16_t version) {
    ByteWriter out;
    begin(out, version);
    Result<void> encoded = response.encode(out, version);
    if (encoded) encoded = protocol::kafka::end_frame(out);
    end(out, encoded);
  }
  template <typename Response>
  void send(const Response& response) {
    send(response, version_);
  }

  void send_nothing();
  // The body could not be read: Kafka closes, and so do we, with a line in the log.
  void malformed(const Error& error);
  void close(std::string_view why);

 private:
  void begin(ByteWriter& out, std::int16_t version) const;
  void end(ByteWriter& out, const Result<void>& encoded);
  void count_time();

  Context& context_;
  ClientPtr client_;
  ApiCounters* counters_;
  std::int16_t api_key_;
  std::int16_t version_;
  std::int32_t correlation_id_;
  std::int64_t started_ns_;
  ResponseSlot slot_;
};

}  // namespace polylog::server::kafka
