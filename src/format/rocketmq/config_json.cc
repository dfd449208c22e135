#include "format/rocketmq/config_json.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace polylog::format::rocketmq {
namespace {

namespace json = boost::json;

// A number in front of a ':' outside of a string is a key without its quotes.
std::string with_quoted_keys(std::string_view text) {
  constexpr std::string_view number_characters = "-0123456789";
  constexpr std::string_view white = " \t\r\n";
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (in_string && c == '\\' && i + 1 < text.size()) {
      out.append(text, i, 2);
      i += 2;
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (in_string || number_characters.find(c) == std::string_view::npos) {
      out += c;
      ++i;
      continue;
    }
    const std::size_t end = std::min(text.find_first_not_of(number_characters, i), text.size());
    const std::size_t next = text.find_first_not_of(white, end);
    const bool key = next != std::string_view::npos && text[next] == ':';
    if (key) out += '"';
    out.append(text, i, end - i);
    if (key) out += '"';
    i = end;
  }
  return out;
}

tl::unexpected<Error> bad_member(const std::string& path, const char* expected) {
  return fail(Errc::corrupt, path + " is not " + expected);
}

Result<json::object> parse_root(std::string_view text, std::string_view file) {
  json::error_code error;
  json::value value = json::parse(with_quoted_keys(text), error);
  if (error) {
    return fail(Errc::corrupt, std::string(file) + " is not JSON: " + error.message());
  }
  if (!value.is_object()) return bad_member(std::string(file), "a JSON object");
  return std::move(value.get_object());
}

// Members sorted by name. Indented by tabs, as RocketMQ does, from `depth` on; without one, on one
// line.
void print(const json::value& value, std::optional<std::size_t> depth, std::string& out) {
  const auto inner = depth ? std::optional(*depth + 1) : std::nullopt;
  const auto line = [&](std::optional<std::size_t> indent) {
    if (indent) out.append("\n").append(*indent, '\t');
  };
  bool first = true;
  if (const json::object* object = value.if_object(); object != nullptr && !object->empty()) {
    out += '{';
    std::vector<std::pair<std::string_view, const json::value*>> sorted;
    for (const auto& [key, member] : *object) sorted.emplace_back(key, &member);
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, member] : sorted) {
      if (!std::exchange(first, false)) out += ',';
      line(inner);
      out += json::serialize(json::string_view(key.data(), key.size()));
      out += ':';
      print(*member, inner, out);
    }
    line(depth);
    out += '}';
  } else if (const json::array* array = value.if_array(); array != nullptr && !array->empty()) {
    out += '[';
    for (const json::value& element : *array) {
      if (!std::exchange(first, false)) out += ',';
      line(inner);
      print(element, inner, out);
    }
    line(depth);
    out += ']';
  } else {
    out += json::serialize(value);
  }
}

// Takes the known members out of an object; what is left then is unknown. A missing or null one
// leaves the default. The first fault is kept.
class Members {
 public:
  Members(json::object object, std::string path)
      : object_(std::move(object)), path_(std::move(path)) {}

  void take(const char* name, bool& out) {
    const json::value* value = find(name);
    if (value == nullptr) return;
    if (value->is_bool()) {
      out = value->get_bool();
    } else {
      fault(name, "true or false");
    }
    object_.erase(name);
  }
  template <std::integral T>
  void take(const char* name, T& out) {
    const json::value* value = find(name);
    if (value == nullptr) return;
    const std::int64_t* number = value->if_int64();
    if (number != nullptr && *number >= std::numeric_limits<T>::min() &&
        *number <= std::numeric_limits<T>::max()) {
      out = static_cast<T>(*number);
    } else {
      fault(name, "a whole number in its range");
    }
    object_.erase(name);
  }
  void take(const char* name, std::string& out) {
    const json::value* value = find(name);
    if (value == nullptr) return;
    if (const json::string* text = value->if_string()) {
      out = std::string(text->data(), text->size());
    } else {
      fault(name, "a text");
    }
    object_.erase(name);
  }
  json::object take_object(const char* name) {
    json::value* value = find(name);
    json::object taken;
    if (value == nullptr) return taken;
    if (value->is_object()) {
      taken = std::move(value->get_object());
    } else {
      fault(name, "an object");
    }
    object_.erase(name);
    return taken;
  }
  void take(const char* name, Attributes& out) {
    for (const auto& [key, value] : take_object(name)) {
      if (const json::string* text = value.if_string()) {
        out[std::string(key)] = std::string(text->data(), text->size());
      } else if (!value.is_null()) {
        fault(name, "an object of texts");
      }
    }
  }
  void take(const char* name, QueueOffsets& out) {
    for (const auto& [key, value] : take_object(name)) take_offset(name, key, value, out);
  }
  void take(const char* name, DataVersion& out) {
    Members version(take_object(name), path_ + "." + name);
    version.take("counter", out.counter);
    version.take("stateVersion", out.state_version);
    version.take("timestamp", out.timestamp);
    if (fault_.empty()) fault_ = version.fault_;
  }
  void drop(const char* name) { object_.erase(name); }
  // Every member is a table of offsets.
  Result<void> take_each(std::map<std::string, QueueOffsets>& out) {
    for (const auto& [key, value] : object_) {
      const std::string name(key);
      const json::object* table = value.if_object();
      if (table == nullptr) return bad_member(path_ + "." + name, "an object");
      QueueOffsets& offsets = out[name];
      for (const auto& [queue, offset] : *table) take_offset(name.c_str(), queue, offset, offsets);
    }
    if (!fault_.empty()) return fail(Errc::corrupt, fault_);
    return {};
  }

  // REQUIRES: everything known has been taken.
  Result<OtherMembers> finish() {
    if (!fault_.empty()) return fail(Errc::corrupt, fault_);
    OtherMembers others;
    for (const auto& [key, value] : object_) print(value, std::nullopt, others[std::string(key)]);
    return others;
  }

 private:
  json::value* find(const char* name) {
    json::value* value = object_.if_contains(name);
    if (value == nullptr || !value->is_null()) return value;
    object_.erase(name);
    return nullptr;
  }
  void fault(const char* name, const char* expected) {
    if (fault_.empty()) fault_ = path_ + "." + name + " is not " + expected;
  }
  void take_offset(const char* name, std::string_view key, const json::value& value,
                   QueueOffsets& out) {
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
    const std::int64_t* offset = value.if_int64();
    if (error != std::errc() || end != key.data() + key.size() || number < 0) {
      fault(name, "an object with numbers as keys");
    } else if (offset == nullptr) {
      fault(name, "an object of whole numbers");
    } else {
      out[number] = *offset;
    }
  }

  json::object object_;
  std::string path_;
  std::string fault_;
};

std::string print(json::object root) {
  std::string out;
  print(json::value(std::move(root)), 0, out);
  out += '\n';
  return out;
}

json::object to_json(const DataVersion& version) {
  return {{"counter", version.counter},
          {"stateVersion", version.state_version},
          {"timestamp", version.timestamp}};
}

json::object to_json(const Attributes& attributes) {
  json::object object;
  for (const auto& [key, value] : attributes) object[key] = value;
  return object;
}

// Known members win over others of the same name.
json::object starting_with(const OtherMembers& others) {
  json::object object;
  for (const auto& [key, text] : others) {
    json::error_code error;
    json::value value = json::parse(text, error);
    POLYLOG_ASSERT(!error);  // they were made by print()
    object[key] = std::move(value);
  }
  return object;
}

json::object to_json(const QueueOffsets& offsets) {
  json::object object;
  for (const auto& [queue, offset] : offsets) object[std::to_string(queue)] = offset;
  return object;
}

Result<TopicConfig> parse_topic(json::object object, std::string path) {
  TopicConfig topic;
  Members members(std::move(object), std::move(path));
  members.take("readQueueNums", topic.read_queue_nums);
  members.take("writeQueueNums", topic.write_queue_nums);
  members.take("perm", topic.perm);
  members.take("topicSysFlag", topic.topic_sys_flag);
  members.take("order", topic.order);
  members.take("topicFilterType", topic.topic_filter_type);
  members.take("attributes", topic.attributes);
  members.drop("topicName");  // the key says it
  POLYLOG_ASSIGN(others, members.finish());
  topic.others = std::move(others);
  return topic;
}

Result<GroupConfig> parse_group(json::object object, std::string path) {
  GroupConfig group;
  Members members(std::move(object), std::move(path));
  members.take("consumeEnable", group.consume_enable);
  members.take("consumeFromMinEnable", group.consume_from_min_enable);
  members.take("consumeBroadcastEnable", group.consume_broadcast_enable);
  members.take("consumeMessageOrderly", group.consume_message_orderly);
  members.take("notifyConsumerIdsChangedEnable", group.notify_consumer_ids_changed_enable);
  members.take("retryQueueNums", group.retry_queue_nums);
  members.take("retryMaxTimes", group.retry_max_times);
  members.take("brokerId", group.broker_id);
  members.take("whichBrokerWhenConsumeSlowly", group.which_broker_when_consume_slowly);
  members.take("groupSysFlag", group.group_sys_flag);
  members.take("consumeTimeoutMinute", group.consume_timeout_minute);
  members.take("attributes", group.attributes);
  members.drop("groupName");
  POLYLOG_ASSIGN(others, members.finish());
  group.others = std::move(others);
  return group;
}

}  // namespace

Result<TopicTable> parse_topics(std::string_view text) {
  POLYLOG_ASSIGN(root, parse_root(text, topics_file));
  TopicTable table;
  Members members(std::move(root), std::string(topics_file));
  members.take("dataVersion", table.version);
  json::object topics = members.take_object("topicConfigTable");
  POLYLOG_ASSIGN(others, members.finish());
  table.others = std::move(others);
  for (auto& [key, value] : topics) {
    const std::string name(key);
    const std::string path = std::string(topics_file) + ".topicConfigTable." + name;
    if (!value.is_object()) return bad_member(path, "an object");
    POLYLOG_ASSIGN(topic, parse_topic(std::move(value.get_object()), path));
    table.topics.emplace(name, std::move(topic));
  }
  return table;
}

std::string format_topics(const TopicTable& table) {
  json::object topics;
  for (const auto& [name, topic] : table.topics) {
    json::object object = starting_with(topic.others);
    object["attributes"] = to_json(topic.attributes);
    object["order"] = topic.order;
    object["perm"] = topic.perm;
    object["readQueueNums"] = topic.read_queue_nums;
    object["topicFilterType"] = topic.topic_filter_type;
    object["topicName"] = name;
    object["topicSysFlag"] = topic.topic_sys_flag;
    object["writeQueueNums"] = topic.write_queue_nums;
    topics[name] = std::move(object);
  }
  json::object root = starting_with(table.others);
  root["dataVersion"] = to_json(table.version);
  root["topicConfigTable"] = std::move(topics);
  return print(std::move(root));
}

Result<GroupTable> parse_subscription_groups(std::string_view text) {
  POLYLOG_ASSIGN(root, parse_root(text, subscription_groups_file));
  GroupTable table;
  Members members(std::move(root), std::string(subscription_groups_file));
  members.take("dataVersion", table.version);
  json::object groups = members.take_object("subscriptionGroupTable");
  POLYLOG_ASSIGN(others, members.finish());
  table.others = std::move(others);
  for (auto& [key, value] : groups) {
    const std::string name(key);
    const std::string path =
        std::string(subscription_groups_file) + ".subscriptionGroupTable." + name;
    if (!value.is_object()) return bad_member(path, "an object");
    POLYLOG_ASSIGN(group, parse_group(std::move(value.get_object()), path));
    table.groups.emplace(name, std::move(group));
  }
  return table;
}

std::string format_subscription_groups(const GroupTable& table) {
  json::object groups;
  for (const auto& [name, group] : table.groups) {
    json::object object = starting_with(group.others);
    object["attributes"] = to_json(group.attributes);
    object["brokerId"] = group.broker_id;
    object["consumeBroadcastEnable"] = group.consume_broadcast_enable;
    object["consumeEnable"] = group.consume_enable;
    object["consumeFromMinEnable"] = group.consume_from_min_enable;
    object["consumeMessageOrderly"] = group.consume_message_orderly;
    object["consumeTimeoutMinute"] = group.consume_timeout_minute;
    object["groupName"] = name;
    object["groupSysFlag"] = group.group_sys_flag;
    object["notifyConsumerIdsChangedEnable"] = group.notify_consumer_ids_changed_enable;
    object["retryMaxTimes"] = group.retry_max_times;
    object["retryQueueNums"] = group.retry_queue_nums;
    object["whichBrokerWhenConsumeSlowly"] = group.which_broker_when_consume_slowly;
    groups[name] = std::move(object);
  }
  json::object root = starting_with(table.others);
  root["dataVersion"] = to_json(table.version);
  root["subscriptionGroupTable"] = std::move(groups);
  return print(std::move(root));
}

Result<ConsumerOffsetTable> parse_consumer_offsets(std::string_view text) {
  POLYLOG_ASSIGN(root, parse_root(text, consumer_offsets_file));
  ConsumerOffsetTable table;
  Members members(std::move(root), std::string(consumer_offsets_file));
  members.take("dataVersion", table.version);
  members.drop("groupTopicMap");
  Members queues(members.take_object("offsetTable"),
                 std::string(consumer_offsets_file) + ".offsetTable");
  POLYLOG_ASSIGN(others, members.finish());
  table.others = std::move(others);
  POLYLOG_TRY(queues.take_each(table.offsets));
  return table;
}

std::string format_consumer_offsets(const ConsumerOffsetTable& table) {
  json::object offsets;
  for (const auto& [key, queues] : table.offsets) offsets[key] = to_json(queues);
  json::object root = starting_with(table.others);
  root["dataVersion"] = to_json(table.version);
  root["offsetTable"] = std::move(offsets);
  return print(std::move(root));
}

Result<DelayOffsetTable> parse_delay_offsets(std::string_view text) {
  POLYLOG_ASSIGN(root, parse_root(text, delay_offsets_file));
  DelayOffsetTable table;
  Members members(std::move(root), std::string(delay_offsets_file));
  members.take("dataVersion", table.version);
  members.take("offsetTable", table.offsets);
  POLYLOG_ASSIGN(others, members.finish());
  table.others = std::move(others);
  return table;
}

std::string format_delay_offsets(const DelayOffsetTable& table) {
  json::object root = starting_with(table.others);
  root["dataVersion"] = to_json(table.version);
  root["offsetTable"] = to_json(table.offsets);
  return print(std::move(root));
}

}  // namespace polylog::format::rocketmq
