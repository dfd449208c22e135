#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/kafka/records.h"
#include "format/rocketmq/properties.h"
#include "format/rocketmq/property_crc.h"
#include "format/transcode/base64.h"
#include "format/transcode/mapping.h"
#include "format/transcode/text_rules.h"
#include "format/transcode/transcode.h"

namespace polylog::format {
namespace {

namespace property = rocketmq::property;

constexpr char name_end = '\x01';
constexpr char property_end = '\x02';

// In canonical form only, and never the 0 that is not written.
template <typename T>
bool parse_number(std::string_view text, T& value) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) return false;
  std::array<char, 24> again;
  const char* const stop = std::to_chars(again.data(), again.data() + again.size(), number).ptr;
  if (std::string_view(again.data(), static_cast<std::size_t>(stop - again.data())) != text) {
    return false;
  }
  value = number;
  return true;
}

bool parse_sys_flag(std::string_view text, std::int32_t& value) {
  std::int32_t flags = 0;
  if (!parse_number(text, flags) || (flags & ~sys_flag_settable) != 0) return false;
  value = flags;
  return true;
}

std::string_view text_of(const Header& header) {
  return header.value ? as_text(*header.value) : std::string_view();
}

// What headers said about RocketMQ's own fields.
struct Natives {
  std::int32_t flag = 0;
  std::int32_t sys_flag = 0;
  std::int32_t reconsume_times = 0;
  std::int64_t prepared_offset = 0;
  std::optional<rocketmq::Host> born_host;
  std::string_view tags;  // empty = none, as the rest
  std::string_view keys;
  std::string_view unique_key;
  std::string_view sharding_key;
};

// Where a field's header may stand when the list is to come back from the fields alone.
enum class Place : std::uint8_t {
  none,
  flag,
  sys_flag,
  born_host,
  reconsume_times,
  prepared_offset,
  property,
  rest,
};

// One field from its header; nothing when the header is none of RocketMQ's fields or not in the
// one form that a field is written in.
std::optional<Place> take_native(std::string_view name, std::string_view value, Natives& natives) {
  const auto text = [&](std::string_view& field) -> std::optional<Place> {
    if (!is_plain_text(value)) return std::nullopt;
    field = value;
    return Place::property;
  };
  const auto when = [](bool taken, Place place) {
    return taken ? std::optional<Place>(place) : std::nullopt;
  };
  if (name == native_header::tags) return text(natives.tags);
  if (name == native_header::keys) return text(natives.keys);
  if (name == native_header::unique_key) return text(natives.unique_key);
  if (name == native_header::flag) return when(parse_number(value, natives.flag), Place::flag);
  if (name == native_header::sys_flag) {
    return when(parse_sys_flag(value, natives.sys_flag), Place::sys_flag);
  }
  if (name == native_header::born_host) {
    const std::optional<rocketmq::Host> host = parse_host(value);
    if (host) natives.born_host = host;
    return when(host.has_value(), Place::born_host);
  }
  if (name == native_header::reconsume_times) {
    return when(parse_number(value, natives.reconsume_times), Place::reconsume_times);
  }
  if (name == native_header::prepared_offset) {
    return when(parse_number(value, natives.prepared_offset), Place::prepared_offset);
  }
  return std::nullopt;
}

// Makes the messages of one batch. Its buffers serve all records.
class Writer {
 public:
  explicit Writer(const RocketmqTarget& target) : target_(target) {
    message_.queue_id = target.queue_id;
    message_.store_host = target.store_host;
    message_.topic = target.topic;
  }

  Result<void> write_frame(kafka::RecordReader& reader, std::int64_t first_offset);
  void reserve(std::size_t bytes) { out_.reserve(bytes); }
  std::vector<std::uint8_t> take() { return std::move(out_); }

 private:
  Result<void> write_record(const Record& record);
  bool write_plain(const Record& record);
  bool write_plain_header(const Header& header, Place& last);
  bool write_rest(std::string_view pieces);
  bool names_unique();
  bool plain_key(const Record& record);
  void write_whole(const Record& record);
  void write_own(const Record& record);

  void add(std::string_view name, std::string_view value) {
    const std::size_t at = text_.size();
    text_.resize(at + name.size() + value.size() + 2);
    char* out = std::copy(name.begin(), name.end(), text_.data() + at);
    *out++ = name_end;
    out = std::copy(value.begin(), value.end(), out);
    *out = property_end;
  }
  void add_named(std::string_view name, std::string_view value) {
    names_.push_back(name);
    add(name, value);
  }
  void add_key(ByteView key) {
    text_.append(property::kafka_key) += name_end;
    append_key(text_, key);
    text_ += property_end;
    key_added_ = true;
  }
  void start_over() {
    natives_ = {};
    text_.clear();
    key_added_ = false;
  }

  const RocketmqTarget& target_;
  rocketmq::Message message_;
  Natives natives_;
  std::string text_;
  bool key_added_ = false;
  std::vector<std::string_view> names_;  // of the properties that stand for headers
  std::vector<std::uint8_t> list_;
  std::string producer_;  // a __KPS property up to the record's index; empty without a producer
  std::string producer_end_;
  std::int32_t index_ = 0;          // in its Kafka batch
  std::int64_t record_number_ = 0;  // among all
  std::vector<std::uint8_t> out_;
};

Result<void> Writer::write_frame(kafka::RecordReader& reader, std::int64_t first_offset) {
  const kafka::BatchHeader& header = reader.header();
  if (header.control() || header.transactional()) {
    return fail(Errc::unsupported, header.control()
                                       ? "control records have no form in RocketMQ's layout"
                                       : "transactions have no form in RocketMQ's layout");
  }
  producer_.clear();
  if (header.producer_id.value() >= 0) {
    const rocketmq::ProducerPart part{header.producer_id, header.producer_epoch,
                                      header.base_sequence, 0, header.records_count};
    const std::string value = rocketmq::to_text(part);
    const std::size_t count_at = value.rfind(':');
    producer_.append(property::kafka_producer) += name_end;
    producer_.append(value, 0, value.rfind(':', count_at - 1) + 1);
    producer_end_.assign(value, count_at) += property_end;
  }
  index_ = 0;
  Record record;
  for (;;) {
    POLYLOG_ASSIGN(more, reader.next(record));
    if (!more) return {};
    message_.queue_offset = first_offset + (record.offset - header.base_offset);
    POLYLOG_TRY(write_record(record));
    ++index_;
    ++record_number_;
  }
}

Result<void> Writer::write_record(const Record& record) {
  const ByteView body = record.value.value_or(ByteView());
  if (body.size() > target_.body_bytes_max) {
    return fail(Errc::too_large, "record " + std::to_string(record_number_) + ": a value of " +
                                     std::to_string(body.size()) + " bytes; the limit is " +
                                     std::to_string(target_.body_bytes_max));
  }
  start_over();
  if (!write_plain(record)) {
    start_over();
    write_whole(record);
  }
  if (text_.size() > rocketmq::properties_bytes_max) {
    return fail(Errc::too_large, "record " + std::to_string(record_number_) +
                                     ": key and headers take " + std::to_string(text_.size()) +
                                     " bytes of properties; the limit is " +
                                     std::to_string(rocketmq::properties_bytes_max));
  }
  // For look-ups by key. A key so long that this does not fit is stored all the same.
  constexpr std::size_t around = property::keys.size() + 2;
  if (key_added_ && natives_.keys.empty() &&
      text_.size() + around + record.key->size() <= rocketmq::properties_bytes_max &&
      is_token(as_text(*record.key))) {
    add(property::keys, as_text(*record.key));
  }
  message_.flag = natives_.flag;
  message_.sys_flag = natives_.sys_flag;
  message_.reconsume_times = natives_.reconsume_times;
  message_.prepared_transaction_offset = natives_.prepared_offset;
  message_.born_host = natives_.born_host.value_or(target_.born_host);
  message_.born_timestamp = record.timestamp.value();
  message_.body = body;
  // The layout's own checksum covers bodies only: with this one a torn record shows.
  rocketmq::append_property_crc_room(text_);
  message_.properties = text_;
  return rocketmq::encode(message_, out_);
}

// What is not a header, behind what is.
void Writer::write_own(const Record& record) {
  if (!record.value) add(property::null_value, "1");
  if (producer_.empty()) return;
  text_ += producer_;
  std::array<char, 12> index;
  const char* const end = std::to_chars(index.data(), index.data() + index.size(), index_).ptr;
  text_.append(index.data(), static_cast<std::size_t>(end - index.data()));
  text_ += producer_end_;
}

// Each header as a field or property of its own. False when that would not give exactly this key
// and this list back: the caller starts over with the list as a whole.
bool Writer::write_plain(const Record& record) {
  if (!record.headers.empty()) {
    names_.clear();
    Place last = Place::none;
    for (const Header& header : record.headers) {
      if (!write_plain_header(header, last)) return false;
    }
    // The born host shows only on messages with a unique key: only RocketMQ writes those.
    if (natives_.born_host.has_value() == natives_.unique_key.empty()) return false;
    if (!names_unique()) return false;
  }
  if (!plain_key(record)) return false;
  write_own(record);
  return true;
}

bool Writer::write_plain_header(const Header& header, Place& last) {
  const std::string_view value = text_of(header);
  if (value.empty()) return false;
  Place place = Place::property;
  if (!header.name.starts_with(native_header::prefix)) {
    std::string_view name = header.name;
    if (name.starts_with(escape_prefix)) {
      name.remove_prefix(escape_prefix.size());
      if (!needs_escape(name)) return false;
    }
    if (!travels_alone(name, value)) return false;
    add_named(name, value);
  } else if (header.name == native_header::rest) {
    if (!write_rest(value)) return false;
    place = Place::rest;
  } else {
    const std::optional<Place> native = take_native(header.name, value, natives_);
    if (!native) return false;
    place = *native;
    if (header.name == native_header::tags) add_named(property::tags, value);
    if (header.name == native_header::keys) add_named(property::keys, value);
    if (header.name == native_header::unique_key) add_named(property::unique_key, value);
  }
  if (place < last || (place == last && place != Place::property)) return false;
  last = place;
  return true;
}

// The properties that are no headers of their own, as one text.
bool Writer::write_rest(std::string_view pieces) {
  if (!pieces.ends_with(property_end)) return false;
  while (!pieces.empty()) {
    const std::size_t end = pieces.find(property_end);
    const std::string_view piece = pieces.substr(0, end);
    pieces = pieces.substr(end + 1);
    const std::size_t split = piece.find(name_end);
    if (split == std::string_view::npos || split == 0 || split + 1 == piece.size()) return false;
    const std::string_view name = piece.substr(0, split);
    const std::string_view value = piece.substr(split + 1);
    if (travels_alone(name, value) || is_bound_to_store(name)) return false;
    for (const std::string_view elsewhere :
         {property::tags, property::keys, property::unique_key, property::kafka_key,
          property::kafka_headers, property::kafka_producer, property::null_value}) {
      if (name == elsewhere) return false;
    }
    if (name == property::sharding_key) natives_.sharding_key = value;
    add_named(name, value);
  }
  return true;
}

bool Writer::names_unique() {
  constexpr std::size_t few = 16;
  if (names_.size() > few) {
    std::sort(names_.begin(), names_.end());
    return std::adjacent_find(names_.begin(), names_.end()) == names_.end();
  }
  for (auto name = names_.begin(); name != names_.end(); ++name) {
    if (std::find(names_.begin(), name, *name) != name) return false;
  }
  return true;
}

// Without __KKEY a reader takes the sharding key, else KEYS when it is one entry.
bool Writer::plain_key(const Record& record) {
  std::string_view shown = natives_.sharding_key;
  if (shown.empty() && natives_.keys.find(' ') == std::string_view::npos) shown = natives_.keys;
  if (!record.key) return shown.empty();
  const std::string_view key = as_text(*record.key);
  if (!shown.empty() && key == shown) return true;
  // KEYS equal to __KKEY counts as its copy, not as a header.
  if (!natives_.keys.empty() && natives_.keys == key) return false;
  add_key(*record.key);
  return true;
}

// The header list as a whole. RocketMQ's own fields are set all the same, for its readers.
void Writer::write_whole(const Record& record) {
  for (const Header& header : record.headers) {
    if (header.name.starts_with(native_header::prefix)) {
      take_native(header.name, text_of(header), natives_);
    }
  }
  if (!natives_.tags.empty()) add(property::tags, natives_.tags);
  if (!natives_.keys.empty()) add(property::keys, natives_.keys);
  if (!natives_.unique_key.empty()) add(property::unique_key, natives_.unique_key);
  if (record.key) add_key(*record.key);
  write_own(record);
  list_.clear();
  append_header_list(list_, record.headers);
  text_.append(property::kafka_headers) += name_end;
  append_base64(text_, list_);
  text_ += property_end;
}

// What the messages will take, when nothing is compressed; a start otherwise.
std::size_t output_estimate(const Batch& batch, const RocketmqTarget& target) {
  constexpr std::size_t record_bytes_min = 7;
  constexpr std::size_t properties_bytes_usual = 16;
  const std::size_t size = batch.bytes.size();
  const auto records = static_cast<std::size_t>(std::max(batch.info.records, 0));
  return size + std::min(records, size / record_bytes_min) *
                    (rocketmq::fixed_bytes_min + target.topic.size() + properties_bytes_usual);
}

}  // namespace

Result<Batch> kafka_to_rocketmq(const Batch& batch, const RocketmqTarget& target) {
  Writer writer(target);
  writer.reserve(output_estimate(batch, target));
  ByteView rest = batch.bytes.view();
  std::optional<Offset> first;
  while (!rest.empty()) {
    POLYLOG_ASSIGN(reader, kafka::RecordReader::open(rest, target.output_max));
    const kafka::BatchHeader& header = reader.header();
    if (!first) first = header.base_offset;
    POLYLOG_TRY(
        writer.write_frame(reader, batch.info.first.value() + (header.base_offset - *first)));
    rest = rest.subspan(header.size());
  }
  return Batch{BatchFormat::rocketmq, batch.info, Slice::of(writer.take())};
}

}  // namespace polylog::format
