#include <algorithm>
#include <boost/asio/awaitable.hpp>

#include "protocol/kafka/describe_configs_request.h"
#include "protocol/kafka/describe_configs_response.h"
#include "server/kafka/config_codes.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::DescribeConfigsRequest;
using protocol::kafka::DescribeConfigsResponse;

namespace {

using Asked = DescribeConfigsRequest::DescribeConfigsResource;
using Answer = DescribeConfigsResponse::DescribeConfigsResult;
using Entry = DescribeConfigsResponse::DescribeConfigsResourceResult;

bool wanted(const Asked& asked, std::string_view name) {
  if (!asked.configuration_keys) return true;
  return std::find(asked.configuration_keys->begin(), asked.configuration_keys->end(), name) !=
         asked.configuration_keys->end();
}

void refuse(Context& context, Answer& answer, ErrorCode code, std::string message) {
  answer.error_code = context.wire(code);
  answer.error_message = std::move(message);
}

// The values behind the one in force, most specific first.
void add_synonyms(const broker::ConfigEntry& entry, Entry& out) {
  DescribeConfigsResponse::DescribeConfigsSynonym synonym;
  const bool from_broker = entry.source == broker::ConfigEntry::Source::broker;
  synonym.name =
      from_broker && !entry.key->broker_name.empty() ? entry.key->broker_name : entry.key->name;
  synonym.value = entry.value;
  synonym.source = config_source(entry.source);
  out.synonyms.push_back(std::move(synonym));
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
  const auto& defaults = context.broker.settings().values();
  for (const broker::ConfigEntry& entry :
       broker::describe_topic_config(topic->overrides, defaults, topic->config.layout)) {
    if (!wanted(asked, entry.key->name)) continue;
    Entry& out = answer.configs.emplace_back();
    out.name = entry.key->name;
    out.value = entry.value;
    out.config_source = config_source(entry.source);
    out.config_type = config_type(entry.key->type);
    if (request.include_synonyms) add_synonyms(entry, out);
    if (request.include_documentation) out.documentation = entry.key->help;
  }
}

void describe_broker(Context& context, const Asked& asked, const DescribeConfigsRequest& request,
                     Answer& answer) {
  const broker::Settings& settings = context.broker.settings();
  if (asked.resource_name.empty()) return;  // cluster-wide dynamic settings: there are none
  if (asked.resource_name != std::to_string(settings.node_id)) {
    refuse(context, answer, ErrorCode::invalid_request,
           "this is broker " + std::to_string(settings.node_id));
    return;
  }
  for (const broker::SettingKey& key : broker::setting_keys()) {
    if (!wanted(asked, key.name)) continue;
    const auto set = settings.values().find(key.name);
    const bool is_set = set != settings.values().end();
    Entry& out = answer.configs.emplace_back();
    out.name = key.name;
    out.value = is_set ? set->second : key.default_value;
    out.read_only = true;
    out.config_source = config_source(is_set ? broker::ConfigEntry::Source::broker
                                             : broker::ConfigEntry::Source::default_value);
    out.config_type = config_type(key.type);
    if (request.include_documentation) out.documentation = key.help;
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
    if (asked.resource_type == topic_resource) {
      describe_topic(context, asked, *request, answer);
    } else if (asked.resource_type == broker_resource) {
      describe_broker(context, asked, *request, answer);
    } else {
      refuse(context, answer, ErrorCode::invalid_request,
             "only topics and brokers have settings here");
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
