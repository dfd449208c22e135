#include "cli/kafka_client.h"

#include <algorithm>

#include "protocol/kafka/api_versions_request.h"
#include "protocol/kafka/api_versions_response.h"
#include "protocol/kafka/frame.h"
#include "protocol/kafka/header.h"

namespace polylog::cli {

using protocol::kafka::ApiKey;
using protocol::kafka::ApiVersionsRequest;
using protocol::kafka::ApiVersionsResponse;
using protocol::kafka::ErrorCode;

Result<std::unique_ptr<KafkaClient>> KafkaClient::connect(const ClientOptions& options) {
  std::unique_ptr<KafkaClient> client(new KafkaClient(options));
  POLYLOG_ASSIGN(connection, Connection::open(options.broker, options.connect_ms));
  client->connection_ = std::move(connection);
  if (auto asked = client->ask_versions(); !asked) {
    return fail(asked.error().code,
                asked.error().context + "; is this the port for Kafka clients?");
  }
  return client;
}

// A broker that does not know our version of ApiVersions answers in version 0, with an error.
Result<void> KafkaClient::ask_versions() {
  ApiVersionsRequest request;
  request.client_software_name = "polylog-cli";
  request.client_software_version = POLYLOG_VERSION;
  std::int16_t version = 3;
  for (;;) {
    POLYLOG_TRY(send(request, version));
    POLYLOG_ASSIGN(body, receive_body());
    const bool refused =
        body.size() >= 2 && load_big<std::int16_t>(body.data()) ==
                                protocol::kafka::to_wire(ErrorCode::unsupported_version);
    if (refused && version > 0) {
      version = 0;
      continue;
    }
    POLYLOG_ASSIGN(answer, ApiVersionsResponse::decode(body, version));
    if (answer.error_code != 0) {
      return fail(Errc::unsupported,
                  address() + " refused ApiVersions: " + wire_error(answer.error_code));
    }
    for (const auto& api : answer.api_keys) {
      served_[api.api_key] = {api.min_version, api.max_version};
    }
    return {};
  }
}

Result<std::int16_t> KafkaClient::version(ApiKey key, std::int16_t highest) const {
  const auto known = protocol::kafka::codec_versions(key);
  const auto served = served_.find(static_cast<std::int16_t>(key));
  const std::string name(protocol::kafka::name(key));
  if (!known || served == served_.end()) {
    return fail(Errc::unsupported, address() + " does not serve " + name);
  }
  const std::int16_t chosen = std::min({known->last_stable, served->second.second, highest});
  if (chosen < std::max(known->first, served->second.first)) {
    return fail(Errc::unsupported, address() + " serves " + name + " only in versions " +
                                       std::to_string(served->second.first) + " to " +
                                       std::to_string(served->second.second));
  }
  return chosen;
}

Result<void> KafkaClient::begin(ByteWriter& out, std::int16_t api_key, std::int16_t chosen) {
  protocol::kafka::begin_frame(out);
  protocol::kafka::RequestHeader header;
  header.api_key = api_key;
  header.api_version = chosen;
  header.correlation_id = next_correlation_id_++;
  header.client_id = "polylog-cli";
  return header.encode(out);
}

Result<void> KafkaClient::end(ByteWriter& out, std::int16_t api_key, std::int16_t chosen,
                              bool answered) {
  POLYLOG_TRY(protocol::kafka::end_frame(out));
  POLYLOG_TRY(connection_->send(out.take(), options_.request_ms));
  if (answered) unanswered_.push_back({next_correlation_id_ - 1, api_key, chosen});
  return {};
}

Result<Slice> KafkaClient::receive_body() {
  const Sent oldest = unanswered_.front();
  Result<Slice> frame = connection_->receive(options_.request_ms);
  if (!frame) {
    const std::string_view name = protocol::kafka::name(static_cast<ApiKey>(oldest.api_key));
    return fail(frame.error().code, frame.error().context + " (" + std::string(name) + ")");
  }
  unanswered_.pop_front();
  POLYLOG_ASSIGN(header,
                 protocol::kafka::ResponseHeader::decode(*frame, oldest.api_key, oldest.version));
  if (header.correlation_id != oldest.correlation_id) {
    return fail(Errc::corrupt, address() + " answered another request than the oldest one");
  }
  return header.body(*frame);
}

std::string wire_error(std::int16_t code, const std::optional<std::string>& message) {
  const auto known = static_cast<ErrorCode>(code);
  std::string text(protocol::kafka::name(known));
  if (text == "UNKNOWN_ERROR_CODE") text = "error " + std::to_string(code);
  if (message && !message->empty()) text += ": " + *message;
  return text;
}

}  // namespace polylog::cli
