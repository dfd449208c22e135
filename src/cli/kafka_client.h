#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cli/connection.h"
#include "protocol/kafka/api.h"
#include "protocol/kafka/errors.h"
#include "protocol/kafka/message.h"

namespace polylog::cli {

struct ClientOptions {
  std::string broker = "localhost:9092";
  std::int64_t connect_ms = 5000;
  std::int64_t request_ms = 30000;
};

// A small blocking client of Kafka's protocol: one broker, one connection, one thread. Requests
// may be pipelined; answers come in the order of the requests. Errors as Connection's, and
// unsupported: the broker does not serve a request, or no version of it that is known here.
class KafkaClient {
 public:
  // Connects and asks which versions the broker serves.
  static Result<std::unique_ptr<KafkaClient>> connect(const ClientOptions& options);

  // A round trip: the broker has taken everything that was sent before.
  // REQUIRES: nothing is unanswered.
  Result<void> ping() { return ask_versions(); }

  // The latest version that both sides know, but none above `highest`.
  Result<std::int16_t> version(
      protocol::kafka::ApiKey key,
      std::int16_t highest = std::numeric_limits<std::int16_t>::max()) const;

  // One request and its answer. REQUIRES: nothing is unanswered.
  template <typename Response, typename Request>
  Result<Response> call(const Request& request,
                        std::int16_t highest = std::numeric_limits<std::int16_t>::max()) {
    POLYLOG_ASSIGN(chosen,
                   version(static_cast<protocol::kafka::ApiKey>(Request::api_key), highest));
    POLYLOG_TRY(send(request, chosen));
    return receive<Response>();
  }

  // `answered` false: a request that gets no answer (Produce with acks=0).
  template <typename Request>
  Result<void> send(const Request& request, std::int16_t chosen, bool answered = true) {
    ByteWriter out;
    POLYLOG_TRY(begin(out, Request::api_key, chosen));
    POLYLOG_TRY(request.encode(out, chosen));
    return end(out, Request::api_key, chosen, answered);
  }
  // The answer to the oldest unanswered request.
  template <typename Response>
  Result<Response> receive() {
    const Sent oldest = unanswered_.front();
    POLYLOG_ASSIGN(body, receive_body());
    return Response::decode(body, oldest.version);
  }

  std::size_t unanswered() const { return unanswered_.size(); }
  const std::string& address() const { return connection_->address(); }
  int descriptor() const { return connection_->descriptor(); }

 private:
  struct Sent {
    std::int32_t correlation_id;
    std::int16_t api_key;
    std::int16_t version;
  };

  explicit KafkaClient(const ClientOptions& options) : options_(options) {}
  Result<void> ask_versions();
  Result<void> begin(ByteWriter& out, std::int16_t api_key, std::int16_t chosen);
  Result<void> end(ByteWriter& out, std::int16_t api_key, std::int16_t chosen, bool answered);
  Result<Slice> receive_body();

  const ClientOptions options_;
  std::unique_ptr<Connection> connection_;
  std::map<std::int16_t, std::pair<std::int16_t, std::int16_t>> served_;
  std::deque<Sent> unanswered_;
  std::int32_t next_correlation_id_ = 1;
};

// What a broker said to one of the things that were asked of it.
struct WireAnswer {
  std::int16_t error_code = 0;
  std::optional<std::string> error_message;
};

// "TOPIC_ALREADY_EXISTS", with the broker's own words behind it if it gave any.
std::string wire_error(std::int16_t code, const std::optional<std::string>& message = {});

}  // namespace polylog::cli
