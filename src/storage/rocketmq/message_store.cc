#include "storage/rocketmq/message_store.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "format/rocketmq/delay_levels.h"
#include "format/rocketmq/names.h"
#include "format/rocketmq/property_crc.h"

namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

namespace {

constexpr std::string_view retry_prefix = "%RETRY%";
constexpr std::string_view dead_letter_prefix = "%DLQ%";
constexpr std::string_view operation_tag = "d";
constexpr std::size_t entries_per_read = 800;  // what RocketMQ scans per request
constexpr std::size_t bytes_max_all = std::size_t{128} << 20;
constexpr int first_retry_level = 3;

std::optional<std::int32_t> number(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool legal_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '%' || c == '|';
  });
}

// The text with some properties replaced or added; an empty value takes one out.
std::string with_properties(std::string_view text,
                            const std::vector<std::pair<std::string_view, std::string>>& changes) {
  std::string changed;
  stored::for_each_property(text, [&](std::string_view name, std::string_view value) {
    const bool replaced = std::any_of(changes.begin(), changes.end(),
                                      [&](const auto& change) { return change.first == name; });
    if (!replaced) changed.append(name).append(1, '\x01').append(value).append(1, '\x02');
    return true;
  });
  for (const auto& [name, value] : changes) {
    if (!value.empty()) changed.append(name).append(1, '\x01').append(value).append(1, '\x02');
  }
  return changed;
}

PutResult refused(PutStatus status, std::string why) {
  PutResult result;
  result.status = status;
  result.why = std::move(why);
  return result;
}

PutStatus status_of(const Error& error) {
  switch (error.code) {
    case Errc::too_large: return PutStatus::message_size_exceeded;
    case Errc::no_space: return PutStatus::create_mapped_file_failed;
    case Errc::unavailable: return PutStatus::service_not_available;
    case Errc::invalid:
    case Errc::not_found: return PutStatus::message_illegal;
    case Errc::would_block: return PutStatus::os_page_cache_busy;
    case Errc::out_of_range:
    case Errc::exists:
    case Errc::corrupt:
    case Errc::unsupported:
    case Errc::fenced:
    case Errc::io:
    case Errc::locked:
    case Errc::timed_out: return PutStatus::unknown_error;
  }
  return PutStatus::unknown_error;
}

Result<Staged> append_and_write(Queue& queue, Batch batch) {
  POLYLOG_ASSIGN(staged, queue.append(std::move(batch)));
  POLYLOG_TRY(queue.log()->write_staged());
  return staged;
}

}  // namespace

std::string_view to_string(PutStatus status) {
  switch (status) {
    case PutStatus::put_ok: return "PUT_OK";
    case PutStatus::create_mapped_file_failed: return "CREATE_MAPPED_FILE_FAILED";
    case PutStatus::message_illegal: return "MESSAGE_ILLEGAL";
    case PutStatus::message_size_exceeded: return "MESSAGE_SIZE_EXCEEDED";
    case PutStatus::properties_size_exceeded: return "PROPERTIES_SIZE_EXCEEDED";
    case PutStatus::service_not_available: return "SERVICE_NOT_AVAILABLE";
    case PutStatus::os_page_cache_busy: return "OS_PAGE_CACHE_BUSY";
    case PutStatus::unknown_error: return "UNKNOWN_ERROR";
  }
  return "UNKNOWN_ERROR";
}

// ----------------------------------------------------------------------------------------- tags

TagFilter::TagFilter(std::string_view expression) {
  while (!expression.empty()) {
    const std::size_t bar = expression.find("||");
    std::string_view tag = expression.substr(0, bar);
    expression = bar == expression.npos ? std::string_view() : expression.substr(bar + 2);
    const std::size_t from = tag.find_first_not_of(' ');
    if (from == tag.npos) continue;
    tag = tag.substr(from, tag.find_last_not_of(' ') - from + 1);
    if (tag == "*") {
      tags_.clear();
      return;
    }
    tags_.emplace_back(tag);
  }
}

bool TagFilter::wants(std::int64_t tags_code) const {
  return tags_.empty() || std::any_of(tags_.begin(), tags_.end(), [&](const std::string& tag) {
           return stored::tags_code(tag) == tags_code;
         });
}

bool TagFilter::wants(const stored::Message& message) const {
  if (tags_.empty()) return true;
  const auto tag = stored::find_property(message.properties, stored::property::tags);
  return tag && std::find(tags_.begin(), tags_.end(), *tag) != tags_.end();
}

// ------------------------------------------------------------------------------------------ put

MessageStore::MessageStore(RocketmqStore& store, const Clock& clock, const SharedLogConfig& config,
                           Append append)
    : store_(store),
      clock_(clock),
      config_(config),
      append_(append ? std::move(append) : Append(append_and_write)),
      levels_(stored::DelayLevels::parse(config.delay_levels)
                  .value_or(stored::DelayLevels::standard())),
      store_host_(stored::parse_host(config.store_host).value_or(stored::Host())) {}

bool MessageStore::known_topic(std::string_view topic) const {
  return stored::is_internal_topic(topic) || store_.shared_log()->has_topic(topic);
}

Result<std::shared_ptr<Queue>> MessageStore::queue_of(std::string_view topic,
                                                      std::int32_t queue_id) {
  if (auto found = store_.find_queue(topic, queue_id)) return found;
  if (!known_topic(topic)) {
    return fail(Errc::not_found, "topic " + std::string(topic) + " does not exist");
  }
  QueueNote note;
  note.config.retention_ms = -1;  // as long as the log has it
  return store_.shared_log()->create({stored::from_stored_topic(topic), queue_id}, note);
}

std::optional<PutResult> MessageStore::refuse(const stored::Message& message) const {
  const bool long_names = message.topic.starts_with(retry_prefix);
  const std::size_t topic_max = long_names ? stored::topic_bytes_max : stored::topic_bytes_max_v1;
  if (!legal_name(message.topic) || message.topic.size() > topic_max) {
    return refused(PutStatus::message_illegal,
                   "the topic's name is empty, over " + std::to_string(topic_max) +
                       " bytes or has characters other than % | a-z A-Z 0-9 _ -");
  }
  if (message.queue_id < 0) return refused(PutStatus::message_illegal, "a queue id below 0");
  if (message.properties.size() > stored::properties_bytes_max) {
    return refused(
        PutStatus::properties_size_exceeded,
        "properties of " + std::to_string(message.properties.size()) + " bytes; at most 32767 fit");
  }
  if (message.body.size() > static_cast<std::size_t>(config_.body_bytes_max)) {
    return refused(PutStatus::message_size_exceeded,
                   "a body of " + std::to_string(message.body.size()) +
                       " bytes is over maxMessageSize " + std::to_string(config_.body_bytes_max));
  }
  return std::nullopt;
}

PutResult MessageStore::put_as(const stored::Message& message) {
  if (auto no = refuse(message)) return *no;
  if (store_.shared_log()->stuck()) {
    return refused(PutStatus::os_page_cache_busy, "the write before this one takes too long");
  }
  auto queue = queue_of(message.topic, message.queue_id);
  if (!queue) return refused(status_of(queue.error()), queue.error().context);
  stored::Message placed = message;
  placed.store_host = store_host_;
  std::string text = with_properties(message.properties, {{stored::property::crc32, ""}});
  stored::append_property_crc_room(text);
  placed.properties = text;
  std::vector<std::uint8_t> bytes;
  if (auto encoded = stored::encode(placed, bytes); !encoded) {
    const bool properties = placed.properties.size() > stored::properties_bytes_max;
    return refused(properties ? PutStatus::properties_size_exceeded : status_of(encoded.error()),
                   encoded.error().context);
  }
  const auto size = static_cast<std::int64_t>(bytes.size());
  Batch batch;
  batch.format = BatchFormat::rocketmq;
  batch.info.records = 1;
  batch.info.max_timestamp = Timestamp(message.born_timestamp);
  batch.bytes = Slice::of(std::move(bytes));
  const auto staged = append_(**queue, std::move(batch));
  if (!staged) return refused(status_of(staged.error()), staged.error().context);
  PutResult result;
  result.status = PutStatus::put_ok;
  result.queue_offset = staged->offsets.start.value();
  result.end = staged->end;
  result.physical_offset = staged->end.value() - size;
  result.offset_message_id = stored::offset_message_id(store_host_, result.physical_offset);
  return result;
}

PutResult MessageStore::put(const stored::Message& message) {
  if (auto no = refuse(message)) return *no;
  const std::int32_t transaction = message.sys_flag & stored::sys_flag::transaction_mask;
  const int level = levels_.clamp(stored::delay_level(message.properties));
  const bool prepared = transaction == stored::sys_flag::transaction_prepared;
  const bool delayed = level > 0 && !prepared &&
                       transaction != stored::sys_flag::transaction_rollback &&
                       message.topic != stored::schedule_topic;
  if (!prepared && !delayed) return put_as(message);
  if (!known_topic(message.topic)) {
    return refused(PutStatus::message_illegal,
                   "topic " + std::string(message.topic) + " does not exist");
  }
  std::vector<std::pair<std::string_view, std::string>> changes{
      {stored::property::real_topic, std::string(message.topic)},
      {stored::property::real_queue_id, std::to_string(message.queue_id)}};
  stored::Message parked = message;
  if (prepared) {
    // It becomes an ordinary message of the half topic: nobody reads it before it is committed.
    parked.topic = stored::half_topic;
    parked.queue_id = 0;
    parked.sys_flag &= ~stored::sys_flag::transaction_mask;
    if (const auto id = stored::find_property(message.properties, stored::property::unique_key)) {
      changes.emplace_back(stored::property::transaction_id, std::string(*id));
    }
  } else {
    parked.topic = stored::schedule_topic;
    parked.queue_id = stored::delay_queue_of(level);
    changes.emplace_back(stored::property::delay, std::to_string(level));
  }
  const std::string properties = with_properties(message.properties, changes);
  parked.properties = properties;
  return put_as(parked);
}

// ------------------------------------------------------------------------------------------ get

Result<GetResult> MessageStore::get(std::string_view topic, std::int32_t queue_id,
                                    std::int64_t offset, std::size_t messages_max,
                                    std::size_t bytes_max, const TagFilter& filter) const {
  GetResult result;
  const auto queue = store_.find_queue(topic, queue_id);
  if (queue == nullptr) {
    result.status = GetStatus::no_matched_logic_queue;
    return result;
  }
  const OffsetRange range = queue->offsets();
  result.min_offset = range.start.value();
  result.max_offset = range.end.value();
  result.next_offset = offset;
  if (range.end == Offset(0)) {
    result.next_offset = 0;
    return result;
  }
  if (offset < result.min_offset) {
    result.status = GetStatus::offset_too_small;
    result.next_offset = result.min_offset;
    return result;
  }
  if (offset >= result.max_offset) {
    result.status = offset == result.max_offset ? GetStatus::offset_overflow_one
                                                : GetStatus::offset_overflow_badly;
    result.next_offset = result.max_offset;
    return result;
  }
  POLYLOG_ASSIGN(entries, queue->entries(offset, entries_per_read, true));
  std::size_t bytes = 0;
  bool removed = false;
  for (const stored::QueueEntry& entry : entries) {
    const auto size = static_cast<std::size_t>(std::max(entry.size, 0));
    const bool first = result.messages.empty();
    if (result.messages.size() >= messages_max ||
        (!first && bytes + size > std::min(bytes_max, bytes_max_all))) {
      break;
    }
    ++result.next_offset;
    if (entry.filler() || !filter.wants(entry.tags_code)) continue;
    POLYLOG_ASSIGN(record, queue->record_of(result.next_offset - 1, entry));
    if (!record) {
      removed = true;
      continue;
    }
    POLYLOG_ASSIGN(message, stored::parse(record->view()));
    // The hash let it through; the text decides.
    if (!filter.wants(message)) continue;
    bytes += record->size();
    result.messages.push_back(std::move(*record));
  }
  result.status = !result.messages.empty() ? GetStatus::found
                  : removed                ? GetStatus::message_was_removing
                                           : GetStatus::no_matched_message;
  return result;
}

Result<std::optional<Slice>> MessageStore::find_by_id(std::string_view id) const {
  POLYLOG_ASSIGN(parsed, stored::parse_offset_message_id(id));
  return store_.shared_log()->record_at(parsed.physical_offset);
}

// ---------------------------------------------------------------------------------------- delays

// True: delivered, or scheduled once more. False: the log takes nothing now.
Result<bool> MessageStore::deliver(const stored::Message& message, int level) {
  const auto topic = stored::find_property(message.properties, stored::property::real_topic);
  const auto queue = stored::find_property(message.properties, stored::property::real_queue_id);
  const auto queue_id = queue ? number(*queue) : std::nullopt;
  // Nobody can say where it was to go: RocketMQ's own broker never stores such a message.
  if (!topic || !queue_id || *topic == stored::half_topic) return true;
  stored::Message copy = message;
  copy.topic = *topic;
  copy.queue_id = *queue_id;
  PutResult put = put_as(copy);
  if (put.status == PutStatus::message_illegal) {
    copy.topic = stored::schedule_topic;
    copy.queue_id = stored::delay_queue_of(level);
    put = put_as(copy);
  }
  return put.status == PutStatus::put_ok;
}

Result<std::size_t> MessageStore::deliver_level(int level, Timestamp now) {
  const auto queue = store_.find_queue(stored::schedule_topic, stored::delay_queue_of(level));
  if (queue == nullptr) return std::size_t{0};
  const OffsetRange range = queue->offsets();
  std::int64_t& offset = delay_offsets_.offsets[level];
  offset = std::clamp(offset, range.start.value(), range.end.value());
  std::size_t delivered = 0;
  while (offset < range.end.value()) {
    POLYLOG_ASSIGN(entries, queue->entries(offset, entries_per_read, true));
    if (entries.empty()) break;
    for (const stored::QueueEntry& entry : entries) {
      const std::int64_t due = levels_.corrected_time(level, entry.tags_code, now.value());
      if (!entry.filler() && due > now.value()) return delivered;
      POLYLOG_ASSIGN(record, queue->record_of(offset, entry));
      if (record) {
        POLYLOG_ASSIGN(message, stored::parse(record->view()));
        POLYLOG_ASSIGN(done, deliver(message, level));
        if (!done) return delivered;
        ++delivered;
      }
      ++offset;
    }
  }
  return delivered;
}

Result<std::size_t> MessageStore::deliver_due(Timestamp now) {
  std::size_t delivered = 0;
  for (int level = 1; level <= levels_.level_max(); ++level) {
    POLYLOG_ASSIGN(here, deliver_level(level, now));
    delivered += here;
  }
  return delivered;
}

Result<void> MessageStore::load_delay_offsets() {
  POLYLOG_ASSIGN(text, store_.read_config(stored::delay_offsets_file));
  if (text.empty()) return {};
  auto parsed = stored::parse_delay_offsets(text);
  if (!parsed) return fail(std::move(parsed).error());
  delay_offsets_ = std::move(*parsed);
  return {};
}

Result<void> MessageStore::save_delay_offsets() {
  delay_offsets_.version.next(clock_.now().value());
  return store_.write_config(stored::delay_offsets_file,
                             stored::format_delay_offsets(delay_offsets_));
}

// ---------------------------------------------------------------------------------- transactions

PutResult MessageStore::put_operation(const stored::Message& half) {
  const std::string body = std::to_string(half.queue_offset) + ",";
  std::string properties(stored::property::tags);
  properties.append(1, '\x01').append(operation_tag).append(1, '\x02');
  stored::Message operation;
  operation.topic = stored::half_operations_topic;
  operation.queue_id = half.queue_id;
  operation.born_timestamp = clock_.now().value();
  operation.born_host = store_host_;
  operation.body = as_bytes(body);
  operation.properties = properties;
  return put_as(operation);
}

PutResult MessageStore::commit(const stored::Message& half) {
  const auto topic = stored::find_property(half.properties, stored::property::real_topic);
  const auto queue = stored::find_property(half.properties, stored::property::real_queue_id);
  const auto queue_id = queue ? number(*queue) : std::nullopt;
  if (half.topic != stored::half_topic || !topic || !queue_id) {
    return refused(PutStatus::message_illegal, "not a half message");
  }
  stored::Message message = half;
  message.topic = *topic;
  message.queue_id = *queue_id;
  message.sys_flag =
      (half.sys_flag & ~stored::sys_flag::transaction_mask) | stored::sys_flag::transaction_commit;
  message.prepared_transaction_offset = half.physical_offset;
  PutResult put = put_as(message);
  if (put.status != PutStatus::put_ok) return put;
  // The operation last: a crash in between repeats the commit, it never forgets it.
  const PutResult noted = put_operation(half);
  if (noted.status != PutStatus::put_ok) return noted;
  put.end = noted.end;
  return put;
}

PutResult MessageStore::roll_back(const stored::Message& half) {
  if (half.topic != stored::half_topic) {
    return refused(PutStatus::message_illegal, "not a half message");
  }
  return put_operation(half);
}

Result<std::vector<Slice>> MessageStore::open_transactions(std::size_t messages_max) const {
  std::set<std::int64_t> ended;
  for (std::int64_t at = 0;;) {
    POLYLOG_ASSIGN(operations, get(stored::half_operations_topic, 0, at, 32, 1 << 20, TagFilter()));
    if (operations.status == GetStatus::offset_too_small) {
      at = operations.next_offset;
      continue;
    }
    for (const Slice& record : operations.messages) {
      POLYLOG_ASSIGN(operation, stored::parse(record.view()));
      std::string_view rest = as_text(operation.body);
      while (!rest.empty()) {  // one number without a comma, in old stores
        const std::size_t comma = rest.find(',');
        std::int64_t offset = -1;
        const std::string_view digits = rest.substr(0, comma);
        std::from_chars(digits.data(), digits.data() + digits.size(), offset);
        ended.insert(offset);
        rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
      }
    }
    if (operations.messages.empty() || operations.next_offset <= at) break;
    at = operations.next_offset;
  }
  std::vector<Slice> open;
  for (std::int64_t at = 0; open.size() < messages_max;) {
    POLYLOG_ASSIGN(halves, get(stored::half_topic, 0, at, 32, 1 << 20, TagFilter()));
    if (halves.status == GetStatus::offset_too_small) {
      at = halves.next_offset;
      continue;
    }
    for (const Slice& record : halves.messages) {
      POLYLOG_ASSIGN(half, stored::parse(record.view()));
      if (!ended.contains(half.queue_offset) && open.size() < messages_max) open.push_back(record);
    }
    if (halves.messages.empty() || halves.next_offset <= at) break;
    at = halves.next_offset;
  }
  return open;
}

// --------------------------------------------------------------------------------------- retries

PutResult MessageStore::send_back(const stored::Message& message, std::string_view group,
                                  int delay_level, std::int32_t attempts_max) {
  const bool dead = delay_level < 0 || message.reconsume_times >= attempts_max;
  const std::string topic =
      std::string(dead ? dead_letter_prefix : retry_prefix) + std::string(group);
  const int level = delay_level > 0 ? delay_level : first_retry_level + message.reconsume_times;
  const bool first = !stored::find_property(message.properties, stored::property::retry_topic);
  const bool known_origin =
      stored::find_property(message.properties, stored::property::origin_message_id).has_value();
  std::vector<std::pair<std::string_view, std::string>> changes{
      {stored::property::delay, std::to_string(dead ? 0 : levels_.clamp(level))},
      {stored::property::real_topic, ""},
      {stored::property::real_queue_id, ""}};
  if (first) changes.emplace_back(stored::property::retry_topic, std::string(message.topic));
  if (!known_origin) {
    changes.emplace_back(stored::property::origin_message_id,
                         stored::offset_message_id(message.store_host, message.physical_offset));
  }
  const std::string properties = with_properties(message.properties, changes);
  stored::Message again = message;
  again.topic = topic;
  again.queue_id = 0;
  again.properties = properties;
  again.sys_flag &= ~stored::sys_flag::transaction_mask;
  again.prepared_transaction_offset = 0;
  if (!dead) ++again.reconsume_times;
  return put(again);
}

}  // namespace polylog::storage::rocketmq
