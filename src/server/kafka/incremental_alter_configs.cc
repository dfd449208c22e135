#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <map>
#include <set>
#include <sstream>

#include "protocol/kafka/incremental_alter_configs_request.h"
#include "protocol/kafka/incremental_alter_configs_response.h"
#include "server/kafka/config_codes.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::IncrementalAlterConfigsRequest;
using protocol::kafka::IncrementalAlterConfigsResponse;

namespace {

using Asked = IncrementalAlterConfigsRequest::AlterConfigsResource;
using Answer = IncrementalAlterConfigsResponse::AlterConfigsResourceResponse;
using Configs = std::map<std::string, std::string>;

enum class Operation : std::int8_t { set = 0, erase = 1, append = 2, subtract = 3 };

void refuse(Context& context, Answer& answer, ErrorCode code, std::string message) {
  answer.error_code = context.wire(code);
  answer.error_message = std::move(message);
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

std::string join(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ",") + word;
  return list;
}

// A list with the words of another added or taken out.
std::string combine(const std::string& current, const std::string& change, Operation operation) {
  std::vector<std::string> words = split(current);
  for (const std::string& word : split(change)) {
    const auto found = std::find(words.begin(), words.end(), word);
    if (operation == Operation::append && found == words.end()) words.push_back(word);
    if (operation == Operation::subtract && found != words.end()) words.erase(found);
  }
  return join(words);
}

// Applies one operation; an error is fit to be shown.
Result<void> apply(const IncrementalAlterConfigsRequest::AlterableConfig& change,
                   const Configs& defaults, Configs& configs) {
  const auto operation = static_cast<Operation>(change.config_operation);
  if (operation == Operation::erase) {
    configs.erase(change.name);
    return {};
  }
  if (!change.value) return fail(Errc::invalid, change.name + " has no value");
  if (operation == Operation::set) {
    configs[change.name] = *change.value;
    return {};
  }
  if (operation != Operation::append && operation != Operation::subtract) {
    return fail(Errc::invalid, "unknown operation " + std::to_string(change.config_operation));
  }
  const Result<broker::TopicConfig> so_far = broker::resolve_topic_config(configs, defaults);
  if (!so_far) return fail(so_far.error());
  for (const broker::ConfigEntry& entry : broker::describe_topic_config(configs, defaults)) {
    if (entry.key->name != change.name) continue;
    if (entry.key->type != broker::ConfigKey::Type::list) {
      return fail(Errc::invalid, change.name + " is no list: it can be set, not added to");
    }
    configs[change.name] = combine(entry.value, *change.value, operation);
    return {};
  }
  return fail(Errc::invalid, "unknown topic config " + change.name);
}

Async<void> alter(Context& context, const Asked& asked, bool validate_only, Answer& answer) {
  if (asked.resource_type != topic_resource) {
    refuse(context, answer, ErrorCode::invalid_request, "only topics can be altered");
    co_return;
  }
  const std::shared_ptr<broker::Topic> topic = context.broker.find(asked.resource_name);
  if (!topic) {
    refuse(context, answer, ErrorCode::unknown_topic_or_partition, "there is no such topic");
    co_return;
  }
  const auto& defaults = context.broker.settings().values();
  Configs configs = topic->overrides;
  std::set<std::string> seen;
  for (const auto& change : asked.configs) {
    if (!seen.insert(change.name).second) {
      refuse(context, answer, ErrorCode::invalid_request, change.name + " is named twice");
      co_return;
    }
    const Result<void> applied = apply(change, defaults, configs);
    if (!applied) {
      refuse(context, answer, ErrorCode::invalid_config, applied.error().context);
      co_return;
    }
  }
  const Result<broker::TopicConfig> resolved =
      broker::accept_topic_config(configs, defaults, topic->config.layout);
  if (!resolved) {
    refuse(context, answer, ErrorCode::invalid_config, resolved.error().context);
    co_return;
  }
  if (validate_only) co_return;
  std::string name = topic->name;
  const broker::Broker::TopicOutcome outcome =
      co_await context.broker.alter_topic(std::move(name), std::move(configs));
  if (outcome.error != broker::Broker::TopicError::none) {
    refuse(context, answer, error_code(outcome.error), outcome.message);
  } else {
    log_info("kafka: altered topic " + asked.resource_name);
  }
}

}  // namespace

Async<void> incremental_alter_configs(Context& context, ClientPtr, Call call, Reply reply) {
  const Result<IncrementalAlterConfigsRequest> request =
      IncrementalAlterConfigsRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  std::map<std::pair<std::int8_t, std::string>, int> times_named;
  for (const Asked& asked : request->resources) {
    ++times_named[{asked.resource_type, asked.resource_name}];
  }
  IncrementalAlterConfigsResponse response;
  for (const Asked& asked : request->resources) {
    int& times = times_named[{asked.resource_type, asked.resource_name}];
    if (times == 0) continue;  // answered already
    Answer& answer = response.responses.emplace_back();
    answer.resource_type = asked.resource_type;
    answer.resource_name = asked.resource_name;
    if (times > 1) {
      refuse(context, answer, ErrorCode::invalid_request, "the resource is named more than once");
      times = 0;
    } else {
      co_await alter(context, asked, request->validate_only, answer);
    }
  }
  reply.send(response);
}

}  // namespace polylog::server::kafka
