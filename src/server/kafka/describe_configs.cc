#include <algorithm>
#include <boost/asio/awaitable.hpp>

#include "broker/config_layers.h"
#include "protocol/kafka/describe_configs_request.h"
#include "protocol/kafka/describe_configs_response.h"
#include "server/kafka/config_changes.h"
#include "server/kafka/config_codes.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::DescribeConfigsRequest;
using protocol::kafka::DescribeConfigsResponse;

namespace {

using Asked = DescribeConfigsRequest::DescribeConfigsResource;
using Answer = DescribeConfigsResponse::DescribeConfigsResult;
using Entry = DescribeConfigsResponse::DescribeConfigsResourceResult;

// Without any key Kafka's brokers take all to be asked for, as with no list.
bool wanted(const Asked& asked, std::string_view name) {
  if (!asked.configuration_keys || asked.configuration_keys->empty()) return true;
  return std::find(asked.configuration_keys->begin(), asked.configuration_keys->end(), name) !=
         asked.configuration_keys->end();
}

void refuse(Context& context, Answer& answer, ErrorCode code, std::string message) {
  answer.error_code = context.wire(code);
  answer.error_message = std::move(message);
}

void add(const std::vector<broker::DescribedConfig>& configs, const Asked& asked,
         const DescribeConfigsRequest& request, Answer& answer) {
  for (const broker::DescribedConfig& config : configs) {
    if (!wanted(asked, config.name)) continue;
    Entry& out = answer.configs.emplace_back();
    out.name = config.name;
    out.value = config.value;
    out.read_only = config.read_only;
    out.config_source = config_source(config.source);
    out.config_type = config_type(config.type);
    if (request.include_documentation) out.documentation = config.help;
    if (!request.include_synonyms) continue;
    for (const broker::ConfigLayer& layer : config.layers) {
      DescribeConfigsResponse::DescribeConfigsSynonym& synonym = out.synonyms.emplace_back();
      synonym.name = layer.name;
      synonym.value = layer.value;
      synonym.source = config_source(layer.source);
    }
  }
}

void describe_topic(Context& context, const Asked& asked, const DescribeConfigsRequest& request,
                    Answer& answer) {
  const std::shared_ptr<broker::Topic> topic = context.broker.find(asked.resource_name);
  if (!topic) {
    const bool legal = broker::check_topic_name(asked.resource_name).has_value();
    refuse(context, answer,
           legal ? ErrorCode::unknown_topic_or_partition : ErrorCode::invalid_topic_exception,
           "there is no such topic");
    return;
  }
  add(broker::describe_topic(topic->overrides, context.broker.setting_layers(),
                             topic->config.layout),
      asked, request, answer);
}

// polylog logs at one level, which nobody can change.
void describe_logger(Answer& answer) {
  Entry& out = answer.configs.emplace_back();
  out.name = "root";
  out.value = "INFO";
  out.read_only = true;
  out.config_source = logger_source;
}

void describe(Context& context, const Asked& asked, const DescribeConfigsRequest& request,
              Answer& answer) {
  const std::string& name = asked.resource_name;
  const broker::SettingLayers& layers = context.broker.setting_layers();
  switch (asked.resource_type) {
    case topic_resource: return describe_topic(context, asked, request, answer);
    case broker_resource:
      if (name.empty()) return add(broker::describe_cluster(layers), asked, request, answer);
      if (auto wrong = wrong_node_name(context, name)) {
        return refuse(context, answer, ErrorCode::invalid_request, std::move(*wrong));
      }
      return add(broker::describe_broker(layers), asked, request, answer);
    case logger_resource:
      if (auto wrong = wrong_node_name(context, name)) {
        return refuse(context, answer, ErrorCode::invalid_request, std::move(*wrong));
      }
      return describe_logger(answer);
    case client_metrics_resource:
      if (!name.empty()) return;  // a subscription that nobody made is empty
      return refuse(context, answer, ErrorCode::invalid_request,
                    "Client metrics subscription name must not be empty");
    case group_resource:
      if (name.empty()) {
        return refuse(context, answer, ErrorCode::invalid_request,
                      "Group name must not be empty");
      }
      return add(broker::describe_group(context.broker.group_configs(name), layers), asked,
                 request, answer);
    default:
      return refuse(context, answer, ErrorCode::invalid_request,
                    "Unexpected resource type " + std::to_string(asked.resource_type) +
                        " for resource " + name);
  }
}

}  // namespace

Async<void> describe_configs(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<DescribeConfigsRequest> request =
      DescribeConfigsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  DescribeConfigsResponse response;
  for (const Asked& asked : request->resources) {
    Answer& answer = response.results.emplace_back();
    answer.resource_type = asked.resource_type;
    answer.resource_name = asked.resource_name;
    describe(context, asked, *request, answer);
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
