#include "cli/dump_whole.h"
#include "cli/text.h"
#include "format/rocketmq/checkpoint.h"
#include "format/rocketmq/config_json.h"

namespace polylog::cli {
namespace {

namespace rocketmq = format::rocketmq;

void show_version(const rocketmq::DataVersion& version, DumpReport& report) {
  if (report.json()) {
    JsonWriter json = json_of_type("data_version");
    json.field("counter", version.counter).field("state_version", version.state_version);
    json.field("timestamp", version.timestamp);
    return report.object(json);
  }
  report.person("  data version counter " + std::to_string(version.counter) + " state version " +
                std::to_string(version.state_version) + " time " +
                format_time(Timestamp(version.timestamp)));
}

void add_attributes(std::string& line, const rocketmq::Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    line += " attribute " + quoted(as_bytes(name)) + "=" + quoted(as_bytes(value));
  }
}

void add_attributes(JsonWriter& json, const rocketmq::Attributes& attributes) {
  json.key("attributes").begin_object();
  for (const auto& [name, value] : attributes) json.field(name, value);
  json.end_object();
}

void show_topic(const std::string& name, const rocketmq::TopicConfig& topic, DumpReport& report) {
  if (report.json()) {
    JsonWriter json = json_of_type("entry");
    json.field("topic", name).field("read_queues", topic.read_queue_nums);
    json.field("write_queues", topic.write_queue_nums).field("perm", topic.perm);
    json.field("order", topic.order).field("sys_flag", topic.topic_sys_flag);
    json.field("filter_type", topic.topic_filter_type);
    add_attributes(json, topic.attributes);
    return report.object(json);
  }
  std::string line = "  topic " + name + " queues read " + std::to_string(topic.read_queue_nums) +
                     " write " + std::to_string(topic.write_queue_nums) + " perm " +
                     std::to_string(topic.perm) + (topic.order ? " ordered" : "");
  if (topic.topic_sys_flag != 0) line += " sys flag " + std::to_string(topic.topic_sys_flag);
  add_attributes(line, topic.attributes);
  report.person(line);
}

void show_group(const std::string& name, const rocketmq::GroupConfig& group, DumpReport& report) {
  if (report.json()) {
    JsonWriter json = json_of_type("entry");
    json.field("group", name).field("consume", group.consume_enable);
    json.field("broadcast", group.consume_broadcast_enable);
    json.field("orderly", group.consume_message_orderly);
    json.field("retry_queues", group.retry_queue_nums).field("retry_max", group.retry_max_times);
    json.field("consume_timeout_minutes", group.consume_timeout_minute);
    add_attributes(json, group.attributes);
    return report.object(json);
  }
  std::string line = "  group " + name + " consume " + (group.consume_enable ? "yes" : "no") +
                     (group.consume_broadcast_enable ? " broadcast" : "") +
                     (group.consume_message_orderly ? " orderly" : "") + " retry queues " +
                     std::to_string(group.retry_queue_nums) + " max " +
                     std::to_string(group.retry_max_times) + " timeout " +
                     std::to_string(group.consume_timeout_minute) + " min";
  add_attributes(line, group.attributes);
  report.person(line);
}

}  // namespace

Result<void> dump_store_checkpoint(const DumpFile& file, DumpReport& report) {
  return dump_whole(file, "store_checkpoint", report, rocketmq::decode_checkpoint,
                    [&](const rocketmq::Checkpoint& checkpoint) {
                      const auto time = [&](std::int64_t ms) {
                        return report.json() ? DumpValue(ms)
                                             : DumpValue(format_time(Timestamp(ms)));
                      };
                      show_pairs({{"physical_timestamp", time(checkpoint.physical_timestamp)},
                                  {"queue_timestamp", time(checkpoint.queue_timestamp)},
                                  {"index_timestamp", time(checkpoint.index_timestamp)},
                                  {"master_flushed_offset", checkpoint.master_flushed_offset},
                                  {"confirm_physical_offset", checkpoint.confirm_physical_offset}},
                                 report);
                      return std::size_t{1};
                    });
}

Result<void> dump_abort_mark(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) -> Result<std::string> {
    return std::string(as_text(bytes));
  };
  return dump_whole(file, "abort_mark", report, decode, [&](const std::string& text) {
    show_pairs({{"text", report.json() ? text : quoted(as_bytes(text))}}, report);
    report.note(0, "the store is in use, or was not stopped cleanly");
    return std::size_t{1};
  });
}

Result<void> dump_topics(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) { return rocketmq::parse_topics(as_text(bytes)); };
  return dump_whole(file, "topics", report, decode, [&](const rocketmq::TopicTable& table) {
    show_version(table.version, report);
    for (const auto& [name, topic] : table.topics) show_topic(name, topic, report);
    return table.topics.size();
  });
}

Result<void> dump_subscription_groups(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) {
    return rocketmq::parse_subscription_groups(as_text(bytes));
  };
  return dump_whole(file, "subscription_groups", report, decode,
                    [&](const rocketmq::GroupTable& table) {
                      show_version(table.version, report);
                      for (const auto& [name, group] : table.groups) {
                        show_group(name, group, report);
                      }
                      return table.groups.size();
                    });
}

Result<void> dump_consumer_offsets(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) {
    return rocketmq::parse_consumer_offsets(as_text(bytes));
  };
  return dump_whole(
      file, "consumer_offsets", report, decode, [&](const rocketmq::ConsumerOffsetTable& table) {
        show_version(table.version, report);
        std::size_t entries = 0;
        for (const auto& [name, offsets] : table.offsets) {
          const std::size_t split = name.find('@');
          const std::string group = split == std::string::npos ? "" : name.substr(split + 1);
          for (const auto& [queue, offset] : offsets) {
            show_pairs({{"topic", name.substr(0, split)},
                        {"group", group},
                        {"queue", std::int64_t{queue}},
                        {"offset", offset}},
                       report);
            ++entries;
          }
        }
        return entries;
      });
}

Result<void> dump_delay_offsets(const DumpFile& file, DumpReport& report) {
  const auto decode = [](ByteView bytes) { return rocketmq::parse_delay_offsets(as_text(bytes)); };
  return dump_whole(file, "delay_offsets", report, decode,
                    [&](const rocketmq::DelayOffsetTable& table) {
                      show_version(table.version, report);
                      for (const auto& [level, offset] : table.offsets) {
                        show_pairs({{"level", std::int64_t{level}}, {"offset", offset}}, report);
                      }
                      return table.offsets.size();
                    });
}

}  // namespace polylog::cli
