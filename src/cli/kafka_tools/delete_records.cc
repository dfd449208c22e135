#include <boost/json.hpp>
#include <climits>
#include <fstream>
#include <map>
#include <sstream>

#include "cli/kafka_tools/java_errors.h"
#include "cli/kafka_tools/table.h"
#include "protocol/kafka/delete_records_request.h"
#include "protocol/kafka/delete_records_response.h"

// kafka-delete-records: what DeleteRecordsCommand prints (Kafka 4.4, tools).
namespace polylog::cli::kafka_tools {
namespace {

namespace json = boost::json;
using protocol::kafka::DeleteRecordsRequest;
using protocol::kafka::DeleteRecordsResponse;
using Offsets = std::map<TopicPartition, std::int64_t>;

std::string name(const TopicPartition& where) {
  return where.topic + "-" + std::to_string(where.partition);
}

// {"partitions":[{"topic":"foo","partition":1,"offset":1}],"version":1}
Result<Offsets> parse_offsets(const std::string& text) {
  boost::system::error_code error;
  const json::value document = json::parse(text, error);
  if (error || !document.is_object()) {
    return fail(Errc::invalid, "The input string is not a valid JSON");
  }
  const json::object& root = document.get_object();
  if (const json::value* const version = root.if_contains("version");
      version != nullptr && *version != json::value(1)) {
    return fail(Errc::invalid, "Not supported version field value " + json::serialize(*version));
  }
  const json::value* const partitions = root.if_contains("partitions");
  if (partitions == nullptr || !partitions->is_array()) {
    return fail(Errc::invalid, "Missing partitions field");
  }
  Offsets offsets;
  std::string twice;
  for (const json::value& entry : partitions->get_array()) {
    if (!entry.is_object()) {
      return fail(Errc::invalid, "Expected JSON object, received " + json::serialize(entry));
    }
    const json::object& fields = entry.get_object();
    const json::value* const topic = fields.if_contains("topic");
    const json::value* const partition = fields.if_contains("partition");
    const json::value* const offset = fields.if_contains("offset");
    const bool fine = topic != nullptr && topic->is_string() && partition != nullptr &&
                      partition->is_int64() && offset != nullptr && offset->is_int64() &&
                      partition->get_int64() >= 0 && partition->get_int64() <= INT_MAX;
    if (!fine) {
      return fail(Errc::invalid,
                  "Expected topic, partition and offset, received " + json::serialize(entry));
    }
    const TopicPartition where{std::string(topic->get_string()),
                               static_cast<std::int32_t>(partition->get_int64())};
    if (!offsets.emplace(where, offset->get_int64()).second) {
      twice += (twice.empty() ? "" : ",") + name(where);
    }
  }
  if (!twice.empty()) {
    return fail(Errc::invalid, "Offset json file contains duplicate topic partitions: " + twice);
  }
  return offsets;
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return fail(Errc::io, "Unable to read file " + path);
  return text.str();
}

Result<void> delete_records(const Arguments& arguments) {
  POLYLOG_ASSIGN(path, arguments.value("offset-json-file"));
  POLYLOG_ASSIGN(text, read_text(path.value_or("")));
  POLYLOG_ASSIGN(offsets, parse_offsets(text));
  ClientOptions options;
  POLYLOG_ASSIGN(client, connect(arguments, options));
  DeleteRecordsRequest request;
  request.timeout_ms = static_cast<std::int32_t>(options.request_ms);
  for (const auto& [where, offset] : offsets) {
    if (request.topics.empty() || request.topics.back().name != where.topic) {
      request.topics.emplace_back().name = where.topic;
    }
    auto& asked = request.topics.back().partitions.emplace_back();
    asked.partition_index = where.partition;
    asked.offset = offset;
  }
  print("Executing records delete operation\n");
  DeleteRecordsResponse answer;
  if (!offsets.empty()) {
    POLYLOG_ASSIGN(answered, client->call<DeleteRecordsResponse>(request));
    answer = std::move(answered);
  }
  print("Records delete operation completed:\n");
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      const std::string where = name({topic.name, partition.partition_index});
      const WireAnswer said{partition.error_code, {}};
      print("partition: " + where +
            (partition.error_code == 0
                 ? "\tlow_watermark: " + std::to_string(partition.low_watermark)
                 : "\terror: " + java_exception(said)) +
            "\n");
    }
  }
  return {};
}

}  // namespace

std::vector<Flag> delete_records_flags() {
  using enum Flag::Value;
  return {
      bootstrap_flag(),
      command_config_flag(),
      {"offset-json-file", required,
       "A file {\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"offset\":5}]}; -1: to the end"},
  };
}

int run_delete_records(const Tool& tool, const Arguments& arguments) {
  for (const char* flag : {"bootstrap-server", "offset-json-file"}) {
    if (!arguments.has(flag)) {
      return wrong_usage(tool, std::string("Missing required argument \"[") + flag + "]\"");
    }
  }
  const Result<void> done = delete_records(arguments);
  return done ? 0 : failed(done.error().context);
}

}  // namespace polylog::cli::kafka_tools
