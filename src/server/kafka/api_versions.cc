#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <string_view>

#include "protocol/kafka/api_versions_request.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::ApiVersionsRequest;
using protocol::kafka::ApiVersionsResponse;

namespace {

ApiVersionsResponse::ApiVersion entry_of(const Api& api) {
  ApiVersionsResponse::ApiVersion entry;
  entry.api_key = static_cast<std::int16_t>(api.key);
  entry.min_version = api.first_advertised;
  entry.max_version = api.last;
  return entry;
}

}  // namespace

// Of the feature levels only that of KIP-848 groups is reported: without transaction.version
// clients stay on the transaction protocol of version 1.
ApiVersionsResponse advertised_versions(bool consumer_groups) {
  ApiVersionsResponse response;
  for (const Api& api : apis()) {
    const bool of_consumer_groups = api.key == protocol::kafka::ApiKey::consumer_group_heartbeat ||
                                    api.key == protocol::kafka::ApiKey::consumer_group_describe;
    if (consumer_groups || !of_consumer_groups) response.api_keys.push_back(entry_of(api));
  }
  constexpr const char* group_version = "group.version";
  response.supported_features.push_back({group_version, 0, 1});
  response.finalized_features_epoch = 0;
  if (consumer_groups) response.finalized_features.push_back({group_version, 1, 1});
  return response;
}

ApiVersionsResponse unsupported_api_versions() {
  ApiVersionsResponse response;
  response.error_code = protocol::kafka::to_wire(ErrorCode::unsupported_version);
  response.api_keys.push_back(entry_of(*find_api(ApiVersionsRequest::api_key)));
  return response;
}

bool valid_software_name(std::string_view name) {
  const auto alphanumeric = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const auto inner = [&](char c) { return alphanumeric(c) || c == '-' || c == '.'; };
  return !name.empty() && alphanumeric(name.front()) && alphanumeric(name.back()) &&
         std::all_of(name.begin(), name.end(), inner);
}

Async<void> api_versions(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<ApiVersionsRequest> request = ApiVersionsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  ApiVersionsResponse response =
      advertised_versions(context.broker.settings().groups.consumer_protocol);
  // Clients of before version 4 take a feature that begins at 0 for a broken answer (KAFKA-17492).
  constexpr std::int16_t features_from_zero_from = 4;
  if (call.version < features_from_zero_from) response.supported_features.clear();
  constexpr std::int16_t names_itself_from = 3;
  const bool well_named = valid_software_name(request->client_software_name) &&
                          valid_software_name(request->client_software_version);
  if (call.version >= names_itself_from && !well_named) {
    response = {};
    response.error_code = context.wire(ErrorCode::invalid_request);
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
