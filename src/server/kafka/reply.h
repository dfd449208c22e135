#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
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
        const protocol::kafka::RequestHeader& header, std::size_t request_bytes,
        ResponseSlot slot);

  // A generated response message. `version` is the request's unless the answer has another form.
  template <typename Response>
  void send(const Response& response, std::int16_t version) {
    if (limited_) charge_work();
    if constexpr (requires { response.throttle_time_ms; }) {
      if (silence_ms_ > 0) {
        Response told = response;
        told.throttle_time_ms = std::max(told.throttle_time_ms, silence_ms_);
        write(told, version);
        return;
      }
    }
    write(response, version);
  }
  template <typename Response>
  void send(const Response& response) {
    send(response, version_);
  }

  // Client quotas. False: there are none, and nothing else here needs to be asked.
  bool limited() const { return limited_; }
  broker::quotas::Who who() const;
  std::size_t request_bytes() const { return request_bytes_; }
  // The client is to be silent for so long: its connection is muted from now on, and the answer
  // will say so.
  void silence(broker::quotas::Kind kind, std::int64_t ms);
  // Counts this thread's time against the client's share of it, once: `work_ns`, or without it
  // all since the request came, which is what an answer does that was never charged for.
  void charge_work(std::int64_t work_ns = -1);

  void send_nothing();
  // The body could not be read: Kafka closes, and so do we, with a line in the log.
  void malformed(const Error& error);
  void close(std::string_view why);

 private:
  template <typename Response>
  void write(const Response& response, std::int16_t version) {
    ByteWriter out;
    begin(out, version);
    Result<void> encoded = response.encode(out, version);
    if (encoded) encoded = protocol::kafka::end_frame(out);
    end(out, encoded);
  }
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
  std::size_t request_bytes_;
  bool limited_;           // somebody has a quota
  bool charged_ = false;   // for this thread's time
  std::int32_t silence_ms_ = 0;
  std::string client_id_;  // when limited
  ResponseSlot slot_;
};

}  // namespace polylog::server::kafka
