#include "format/transcode/rocketmq_writer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "format/rocketmq/property_crc.h"
#include "format/transcode/base64.h"
#include "format/transcode/mapping.h"
#include "format/transcode/text_rules.h"

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

rocketmq::ProducerPart to_rocketmq(const segment::ProducerPart& part) {
  return {part.id, part.epoch, part.base_sequence, part.index, part.count};
}

}  // namespace

// Where a field's header may stand when the list is to come back from the fields alone.
enum class RocketmqWriter::Place : std::uint8_t {
  none,
  flag,
  sys_flag,
  born_host,
  reconsume_times,
  prepared_offset,
  property,
  rest,
};

void RocketmqWriter::add(std::string_view name, std::string_view value) {
  const std::size_t at = text_.size();
  text_.resize(at + name.size() + value.size() + 2);
  char* out = std::copy(name.begin(), name.end(), text_.data() + at);
  *out++ = name_end;
  out = std::copy(value.begin(), value.end(), out);
  *out = property_end;
}

void RocketmqWriter::add_key(ByteView key) {
  text_.append(property::kafka_key) += name_end;
  append_key(text_, key);
  text_ += property_end;
  key_added_ = true;
}

Result<void> RocketmqWriter::write(segment::StoredRecord& stored) {
  const auto named = [this](std::string what) {
    return "record " + std::to_string(record_number_) + ": " + std::move(what);
  };
  Record& record = stored.record;
  const std::size_t body_bytes = record.value ? record.value->size() : 0;
  if (body_bytes > target_.body_bytes_max) {
    return fail(Errc::too_large,
                named("a value of " + std::to_string(body_bytes) + " bytes; the limit is " +
                      std::to_string(target_.body_bytes_max)));
  }
  message_.queue_offset = record.offset.value();
  message_.born_timestamp = record.timestamp.value();
  message_.body = record.value.value_or(ByteView());
  if (stored.rocketmq) {
    set_native(stored);
  } else {
    if (Result<void> applied = terms_.apply(stored); !applied) {
      return fail(applied.error().code, named(applied.error().context));
    }
    set_record(stored);
  }
  if (message_.properties.size() > rocketmq::properties_bytes_max) {
    return fail(Errc::too_large,
                named("key and headers take " + std::to_string(message_.properties.size()) +
                      " bytes of properties; the limit is " +
                      std::to_string(rocketmq::properties_bytes_max)));
  }
  ++record_number_;
  return rocketmq::encode(message_, out_);
}

void RocketmqWriter::set_native(const segment::StoredRecord& stored) {
  const segment::RocketmqPart& part = *stored.rocketmq;
  message_.store_timestamp = stored.append_time.value();
  message_.flag = part.flag;
  message_.sys_flag = part.sys_flag;
  message_.born_host = to_host(part.born_address, part.born_port);
  message_.store_host = to_host(part.store_address, part.store_port);
  message_.reconsume_times = part.reconsume_times;
  message_.prepared_transaction_offset = part.prepared_transaction_offset;
  message_.properties = part.properties;
}

// Key, headers and producer as properties, in text_.
void RocketmqWriter::set_record(const segment::StoredRecord& stored) {
  const Record& record = stored.record;
  start_over();
  if (!write_plain(stored)) {
    start_over();
    write_whole(stored);
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
  message_.store_timestamp = stored.append_time == no_timestamp ? 0 : stored.append_time.value();
  message_.store_host = target_.store_host;
  // The layout's own checksum covers bodies only: with this one a torn record shows.
  rocketmq::append_property_crc_room(text_);
  message_.properties = text_;
}

// What is not a header, behind what is.
void RocketmqWriter::write_own(const segment::StoredRecord& stored) {
  if (!stored.record.value) add(property::null_value, "1");
  if (stored.producer) write_producer(*stored.producer);
}

void RocketmqWriter::write_producer(const segment::ProducerPart& part) {
  rocketmq::ProducerPart first = to_rocketmq(part);
  first.index = 0;
  if (producer_front_.empty() || producer_ != first) {
    producer_ = first;
    const std::string value = rocketmq::to_text(first);
    const std::size_t count_at = value.rfind(':');
    producer_front_.assign(property::kafka_producer) += name_end;
    producer_front_.append(value, 0, value.rfind(':', count_at - 1) + 1);
    producer_end_.assign(value, count_at) += property_end;
  }
  text_ += producer_front_;
  std::array<char, 12> index;
  const char* const end = std::to_chars(index.data(), index.data() + index.size(), part.index).ptr;
  text_.append(index.data(), static_cast<std::size_t>(end - index.data()));
  text_ += producer_end_;
}

// One field from its header; nothing when the header is none of RocketMQ's fields or not in the
// one form that a field is written in.
std::optional<RocketmqWriter::Place> RocketmqWriter::take_native(std::string_view name,
                                                                 std::string_view value) {
  const auto text = [&](std::string_view& field) -> std::optional<Place> {
    if (!is_plain_text(value)) return std::nullopt;
    field = value;
    return Place::property;
  };
  const auto when = [](bool taken, Place place) {
    return taken ? std::optional<Place>(place) : std::nullopt;
  };
  if (name == native_header::tags) return text(natives_.tags);
  if (name == native_header::keys) return text(natives_.keys);
  if (name == native_header::unique_key) return text(natives_.unique_key);
  if (name == native_header::flag) return when(parse_number(value, natives_.flag), Place::flag);
  if (name == native_header::sys_flag) {
    return when(parse_sys_flag(value, natives_.sys_flag), Place::sys_flag);
  }
  if (name == native_header::born_host) {
    const std::optional<rocketmq::Host> host = parse_host(value);
    if (host) natives_.born_host = host;
    return when(host.has_value(), Place::born_host);
  }
  if (name == native_header::reconsume_times) {
    return when(parse_number(value, natives_.reconsume_times), Place::reconsume_times);
  }
  if (name == native_header::prepared_offset) {
    return when(parse_number(value, natives_.prepared_offset), Place::prepared_offset);
  }
  return std::nullopt;
}

// Each header as a field or property of its own. False when that would not give exactly this key
// and this list back: the caller starts over with the list as a whole.
bool RocketmqWriter::write_plain(const segment::StoredRecord& stored) {
  const Record& record = stored.record;
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
  write_own(stored);
  return true;
}

bool RocketmqWriter::write_plain_header(const Header& header, Place& last) {
  const std::string_view value = text_of(header);
  if (value.empty()) return false;
  Place place = Place::property;
  if (is_binary(header.name)) {
    binary_.clear();
    append_base64(binary_, as_bytes(value));
    add_named(header.name, binary_);
  } else if (!header.name.starts_with(native_header::prefix)) {
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
    const std::optional<Place> native = take_native(header.name, value);
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
bool RocketmqWriter::write_rest(std::string_view pieces) {
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

bool RocketmqWriter::names_unique() {
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
bool RocketmqWriter::plain_key(const Record& record) {
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
void RocketmqWriter::write_whole(const segment::StoredRecord& stored) {
  const Record& record = stored.record;
  for (const Header& header : record.headers) {
    if (header.name.starts_with(native_header::prefix)) {
      take_native(header.name, text_of(header));
    }
  }
  if (!natives_.tags.empty()) add(property::tags, natives_.tags);
  if (!natives_.keys.empty()) add(property::keys, natives_.keys);
  if (!natives_.unique_key.empty()) add(property::unique_key, natives_.unique_key);
  if (record.key) add_key(*record.key);
  write_own(stored);
  list_.clear();
  append_header_list(list_, record.headers);
  text_.append(property::kafka_headers) += name_end;
  append_base64(text_, list_);
  text_ += property_end;
}

}  // namespace polylog::format
