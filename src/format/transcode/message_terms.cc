#include "format/transcode/message_terms.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "format/rocketmq/properties.h"
#include "format/transcode/base64.h"

namespace polylog::format {
namespace {

namespace property = rocketmq::property;

// Of a body that a RocketMQ client compressed; larger ones stay as they are stored.
constexpr std::size_t body_bytes_max = std::size_t{32} << 20;

tl::unexpected<Error> bad_property(std::string_view name) {
  return fail(Errc::corrupt, "property " + std::string(name) + " is malformed");
}

}  // namespace

Result<void> MessageTerms::apply(const segment::RocketmqPart& part, Record& record) {
  record.key.reset();
  record.headers.clear();
  read_properties(part.properties);
  POLYLOG_TRY(set_value(part, record));
  POLYLOG_TRY(set_key(record));
  if (known_.kafka_producer) {
    POLYLOG_TRY(rocketmq::parse_producer_part(*known_.kafka_producer));
  }
  if (!known_.kafka_headers) {
    set_headers(part, record);
    return {};
  }
  list_.clear();
  if (!decode_base64(*known_.kafka_headers, list_) || !decode_header_list(list_, record.headers)) {
    return bad_property(property::kafka_headers);
  }
  return {};
}

void MessageTerms::read_properties(std::string_view text) {
  properties_.clear();
  known_ = {};
  rocketmq::for_each_property(text, [this](std::string_view name, std::string_view value) {
    if (!take_known(name, value)) {
      const Kind kind = travels_alone(name, value) ? Kind::alone : Kind::rest;
      properties_.push_back({name, value, kind});
    }
    return true;
  });
  drop_repeated();
}

// False: a property like any other.
bool MessageTerms::take_known(std::string_view name, std::string_view value) {
  switch (name.size()) {
    case property::tags.size():
      static_assert(property::keys.size() == property::tags.size());
      if (name == property::keys) {
        known_.keys = value;
        properties_.push_back({name, value, Kind::keys});
        return true;
      }
      if (name != property::tags) return false;
      properties_.push_back({name, value, Kind::tags});
      return true;
    case property::unique_key.size():
      static_assert(property::crc32.size() == property::unique_key.size());
      if (name == property::crc32) return true;  // a checksum over the record as it lay there
      if (name != property::unique_key) return false;
      known_.unique_key = true;
      properties_.push_back({name, value, Kind::unique_key});
      return true;
    case property::kafka_producer.size():
      if (name != property::kafka_producer) return false;
      known_.kafka_producer = value;
      return true;
    case property::kafka_key.size():
      static_assert(property::null_value.size() == property::kafka_key.size());
      if (name == property::kafka_key) {
        known_.kafka_key = value;
        return true;
      }
      if (name != property::null_value) return false;
      known_.null_value = value;
      return true;
    case property::kafka_headers.size():
      if (name != property::kafka_headers) return false;
      known_.kafka_headers = value;
      return true;
    case property::sharding_key.size():
      if (name == property::sharding_key) known_.sharding_key = value;
      return false;
    default: return false;
  }
}

// The last of a name counts, as in RocketMQ's map. Text can be hostile: many names are sorted.
void MessageTerms::drop_repeated() {
  constexpr std::size_t few = 16;
  const std::size_t count = properties_.size();
  if (count <= few) {
    for (std::size_t i = 1; i < count; ++i) {
      for (std::size_t earlier = 0; earlier < i; ++earlier) {
        if (properties_[earlier].name == properties_[i].name) {
          properties_[earlier].kind = Kind::dropped;
        }
      }
    }
    return;
  }
  order_.resize(count);
  for (std::size_t i = 0; i < count; ++i) order_[i] = static_cast<std::uint32_t>(i);
  std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const int order = properties_[a].name.compare(properties_[b].name);
    return order != 0 ? order < 0 : a < b;
  });
  for (std::size_t i = 1; i < count; ++i) {
    Property& earlier = properties_[order_[i - 1]];
    if (earlier.name == properties_[order_[i]].name) earlier.kind = Kind::dropped;
  }
}

Result<void> MessageTerms::set_value(const segment::RocketmqPart& part, Record& record) {
  using namespace rocketmq::sys_flag;
  const ByteView stored = record.value.value_or(ByteView());
  flags_shown_ = part.sys_flag;
  if (known_.null_value) {
    if (*known_.null_value != "1" || !stored.empty()) return bad_property(property::null_value);
    record.value.reset();
    return {};
  }
  record.value = stored;
  if ((part.sys_flag & compressed) == 0) return {};
  // What doesn't expand is shown as it is, with the flags that say so: one bad message must not
  // stop those behind it.
  const std::size_t before = expander_.produced_bytes();
  if (const auto body = expander_.expand(part.sys_flag, stored, body_bytes_max)) {
    record.value = *body;
    flags_shown_ &= ~(compressed | compression_mask);
  } else {
    wasted_bytes_ += expander_.produced_bytes() - before;
  }
  return {};
}

Result<void> MessageTerms::set_key(Record& record) {
  if (known_.kafka_key) {
    key_.clear();
    if (!decode_key(*known_.kafka_key, key_)) return bad_property(property::kafka_key);
    record.key = ByteView(key_);
  } else if (known_.kafka_headers) {
    // Written by polylog: a key would be there.
  } else if (known_.sharding_key) {
    record.key = as_bytes(*known_.sharding_key);
  } else if (known_.keys && known_.keys->find(' ') == std::string_view::npos) {
    record.key = as_bytes(*known_.keys);
  }
  return {};
}

void MessageTerms::set_headers(const segment::RocketmqPart& part, Record& record) {
  constexpr std::size_t fields_bytes_max = 256;
  made_.clear();
  // Each property takes three bytes at least and is copied once at most, with two more.
  made_.reserve(fields_bytes_max + 2 * part.properties.size());
  add_fields(part, record.headers);
  bool rest = false;
  for (const Property& property : properties_) {
    const ByteView value = as_bytes(property.value);
    switch (property.kind) {
      case Kind::tags: record.headers.push_back({native_header::tags, value}); break;
      case Kind::keys:
        if (record.key && known_.kafka_key && property.value == as_text(*record.key)) break;
        record.headers.push_back({native_header::keys, value});
        break;
      case Kind::unique_key: record.headers.push_back({native_header::unique_key, value}); break;
      case Kind::alone: add_alone(property, record.headers); break;
      case Kind::rest: rest = true; break;
      case Kind::dropped: break;
    }
  }
  if (rest) add_rest(record.headers);
}

// The fields that are no properties.
void MessageTerms::add_fields(const segment::RocketmqPart& part, std::vector<Header>& headers) {
  add_number(native_header::flag, part.flag, headers);
  add_number(native_header::sys_flag, flags_shown_, headers);
  if (known_.unique_key) {
    const rocketmq::Host host = to_host(part.born_address, part.born_port);
    headers.push_back({native_header::born_host, as_bytes(keep(to_text(host)))});
  }
  add_number(native_header::reconsume_times, part.reconsume_times, headers);
  add_number(native_header::prepared_offset, part.prepared_transaction_offset, headers);
}

void MessageTerms::add_digits(std::string_view name, std::int64_t value,
                              std::vector<Header>& headers) {
  std::array<char, 24> digits;
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  headers.push_back(
      {name, as_bytes(keep({digits.data(), static_cast<std::size_t>(end - digits.data())}))});
}

void MessageTerms::add_alone(const Property& property, std::vector<Header>& headers) {
  std::string_view name = property.name;
  std::string_view value = property.value;
  if (needs_escape(name)) {
    const std::size_t at = made_.size();
    made_.append(escape_prefix).append(name);
    name = std::string_view(made_).substr(at);
  } else if (is_binary(name)) {
    list_.clear();
    decode_base64(value, list_);
    value = keep(as_text(list_));
  }
  headers.push_back({name, as_bytes(value)});
}

void MessageTerms::add_rest(std::vector<Header>& headers) {
  const std::size_t at = made_.size();
  for (const Property& property : properties_) {
    if (property.kind != Kind::rest) continue;
    made_.append(property.name) += '\x01';
    made_.append(property.value) += '\x02';
  }
  headers.push_back({native_header::rest, as_bytes(std::string_view(made_).substr(at))});
}

}  // namespace polylog::format
