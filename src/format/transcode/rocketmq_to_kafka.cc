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
#include "format/transcode/base64.h"
#include "format/transcode/mapping.h"
#include "format/transcode/transcode.h"

namespace polylog::format {
namespace {

namespace property = rocketmq::property;

// Where one batch ends and the next begins.
constexpr std::size_t batch_bytes_usual = std::size_t{1} << 20;
// Of a body that a RocketMQ client compressed; larger ones stay as they are stored.
constexpr std::size_t body_bytes_max = std::size_t{32} << 20;

tl::unexpected<Error> bad_property(std::string_view name) {
  return fail(Errc::corrupt, "property " + std::string(name) + " is malformed");
}

// Takes messages apart into records. Its buffers serve all messages; a record's views live until
// the next one.
class RecordMaker {
 public:
  Result<void> make(const rocketmq::Message& message, Record& record);
  // By bodies that did not expand and are shown as they are.
  std::size_t wasted_bytes() const { return wasted_bytes_; }

 private:
  enum class Kind : std::uint8_t { tags, keys, unique_key, rest, alone, dropped };
  struct Property {
    std::string_view name;
    std::string_view value;
    Kind kind;
  };
  // The properties with a meaning of their own; the last of a name counts.
  struct Known {
    std::optional<std::string_view> kafka_key;
    std::optional<std::string_view> kafka_headers;
    std::optional<std::string_view> kafka_producer;
    std::optional<std::string_view> null_value;
    std::optional<std::string_view> keys;
    std::optional<std::string_view> sharding_key;
    bool unique_key = false;
  };

  void read_properties(std::string_view text);
  bool take_known(std::string_view name, std::string_view value);
  void drop_repeated();
  Result<void> set_value(const rocketmq::Message& message, Record& record);
  Result<void> set_key(Record& record);
  void set_headers(const rocketmq::Message& message, Record& record);
  void add_fields(const rocketmq::Message& message, std::vector<Header>& headers);
  void add_rest(std::vector<Header>& headers);

  template <typename T>
  void add_number(std::string_view name, T value, std::vector<Header>& headers) {
    if (value == 0) return;
    std::array<char, 24> digits;
    const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    headers.push_back(
        {name, as_bytes(keep({digits.data(), static_cast<std::size_t>(end - digits.data())}))});
  }
  std::string_view keep(std::string_view text) {
    const std::size_t at = made_.size();
    made_ += text;
    return std::string_view(made_).substr(at);
  }

  std::vector<Property> properties_;
  std::vector<std::uint32_t> order_;
  Known known_;
  std::int32_t flags_shown_ = 0;
  std::string made_;  // names and values that are nowhere in the message; never reallocated
  std::vector<std::uint8_t> key_;
  std::vector<std::uint8_t> list_;
  BodyExpander expander_;
  std::size_t wasted_bytes_ = 0;
};

Result<void> RecordMaker::make(const rocketmq::Message& message, Record& record) {
  record.key.reset();
  record.headers.clear();
  record.offset = Offset(message.queue_offset);
  record.timestamp = Timestamp(std::max<std::int64_t>(message.born_timestamp, -1));
  read_properties(message.properties);
  POLYLOG_TRY(set_value(message, record));
  POLYLOG_TRY(set_key(record));
  if (known_.kafka_producer) {
    POLYLOG_TRY(rocketmq::parse_producer_part(*known_.kafka_producer));
  }
  if (!known_.kafka_headers) {
    set_headers(message, record);
    return {};
  }
  list_.clear();
  if (!decode_base64(*known_.kafka_headers, list_) || !decode_header_list(list_, record.headers)) {
    return bad_property(property::kafka_headers);
  }
  return {};
}

void RecordMaker::read_properties(std::string_view text) {
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
bool RecordMaker::take_known(std::string_view name, std::string_view value) {
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
void RecordMaker::drop_repeated() {
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

Result<void> RecordMaker::set_value(const rocketmq::Message& message, Record& record) {
  using namespace rocketmq::sys_flag;
  flags_shown_ = message.sys_flag & ~(born_host_v6 | store_host_v6);
  if (known_.null_value) {
    if (*known_.null_value != "1" || !message.body.empty()) {
      return bad_property(property::null_value);
    }
    record.value.reset();
    return {};
  }
  record.value = message.body;
  if ((message.sys_flag & compressed) == 0) return {};
  // What doesn't expand is shown as it is, with the flags that say so: one bad message must not
  // stop those behind it.
  const std::size_t before = expander_.produced_bytes();
  if (const auto body = expander_.expand(message.sys_flag, message.body, body_bytes_max)) {
    record.value = *body;
    flags_shown_ &= ~(compressed | compression_mask);
  } else {
    wasted_bytes_ += expander_.produced_bytes() - before;
  }
  return {};
}

Result<void> RecordMaker::set_key(Record& record) {
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

void RecordMaker::set_headers(const rocketmq::Message& message, Record& record) {
  constexpr std::size_t fields_bytes_max = 256;
  made_.clear();
  // Each property takes three bytes at least and is copied once at most, with two more.
  made_.reserve(fields_bytes_max + 2 * message.properties.size());
  add_fields(message, record.headers);
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
      case Kind::alone: {
        std::string_view name = property.name;
        if (needs_escape(name)) {
          const std::size_t at = made_.size();
          made_.append(escape_prefix).append(name);
          name = std::string_view(made_).substr(at);
        }
        record.headers.push_back({name, value});
        break;
      }
      case Kind::rest: rest = true; break;
      case Kind::dropped: break;
    }
  }
  if (rest) add_rest(record.headers);
}

// The fields that are no properties.
void RecordMaker::add_fields(const rocketmq::Message& message, std::vector<Header>& headers) {
  add_number(native_header::flag, message.flag, headers);
  add_number(native_header::sys_flag, flags_shown_, headers);
  if (known_.unique_key) {
    headers.push_back({native_header::born_host, as_bytes(keep(to_text(message.born_host)))});
  }
  add_number(native_header::reconsume_times, message.reconsume_times, headers);
  add_number(native_header::prepared_offset, message.prepared_transaction_offset, headers);
}

void RecordMaker::add_rest(std::vector<Header>& headers) {
  const std::size_t at = made_.size();
  for (const Property& property : properties_) {
    if (property.kind != Kind::rest) continue;
    made_.append(property.name) += '\x01';
    made_.append(property.value) += '\x02';
  }
  headers.push_back({native_header::rest, as_bytes(std::string_view(made_).substr(at))});
}

// Collects records into batches.
class BatchMaker {
 public:
  explicit BatchMaker(const KafkaTarget& target) : target_(target) {}

  // False: there is enough.
  Result<bool> add(const rocketmq::Message& message, LeaderEpoch epoch);
  Result<std::vector<Batch>> finish() {
    POLYLOG_TRY(end_batch());
    return std::move(batches_);
  }

 private:
  Result<void> end_batch();
  bool fits(const Record& record, LeaderEpoch epoch, std::size_t bytes) const;

  const KafkaTarget target_;
  RecordMaker maker_;
  Record record_;
  std::optional<kafka::BatchBuilder> builder_;
  kafka::BatchOptions options_;
  std::int64_t last_offset_ = -1;
  std::size_t finished_bytes_ = 0;
  std::vector<Batch> batches_;
};

// No less than the record takes.
std::size_t record_bytes_max(const Record& record) {
  constexpr std::size_t lengths_bytes_max = 40;
  constexpr std::size_t header_lengths_bytes_max = 10;
  std::size_t size = lengths_bytes_max;
  if (record.key) size += record.key->size();
  if (record.value) size += record.value->size();
  for (const Header& header : record.headers) {
    size += header_lengths_bytes_max + header.name.size();
    if (header.value) size += header.value->size();
  }
  return size;
}

bool BatchMaker::fits(const Record& record, LeaderEpoch epoch, std::size_t bytes) const {
  return builder_ && options_.epoch == epoch &&
         builder_->uncompressed_bytes() + bytes <= batch_bytes_usual &&
         record.offset - options_.base_offset <= std::numeric_limits<std::int32_t>::max() &&
         (!target_.log_append_time || options_.append_time == record.timestamp);
}

Result<bool> BatchMaker::add(const rocketmq::Message& message, LeaderEpoch epoch) {
  const std::size_t begun_bytes = builder_ ? builder_->uncompressed_bytes() : 0;
  if (finished_bytes_ + begun_bytes + maker_.wasted_bytes() > target_.output_max) return false;
  if (message.queue_offset <= last_offset_) {
    return fail(Errc::corrupt, "the message at queue offset " +
                                   std::to_string(message.queue_offset) + " follows that at " +
                                   std::to_string(last_offset_));
  }
  if (Result<void> made = maker_.make(message, record_); !made) {
    made.error().context +=
        ", in the message at queue offset " + std::to_string(message.queue_offset);
    return fail(std::move(made).error());
  }
  if (target_.log_append_time) {
    record_.timestamp = Timestamp(std::max<std::int64_t>(message.store_timestamp, -1));
  }
  if (!fits(record_, epoch, record_bytes_max(record_))) {
    POLYLOG_TRY(end_batch());
    options_.base_offset = record_.offset;
    options_.epoch = epoch;
    if (target_.log_append_time) options_.append_time = record_.timestamp;
    builder_.emplace(options_);
  }
  POLYLOG_TRY(builder_->add_at_offset(record_));
  last_offset_ = message.queue_offset;
  return true;
}

Result<void> BatchMaker::end_batch() {
  if (!builder_) return {};
  POLYLOG_ASSIGN(bytes, builder_->finish());
  builder_.reset();
  finished_bytes_ += bytes.size();
  POLYLOG_ASSIGN(header, kafka::parse_header(bytes));
  batches_.push_back({BatchFormat::kafka, kafka::to_info(header), Slice::of(std::move(bytes))});
  return {};
}

}  // namespace

Result<std::vector<Batch>> rocketmq_to_kafka(const std::vector<Batch>& batches,
                                             const KafkaTarget& target) {
  BatchMaker maker(target);
  for (const Batch& batch : batches) {
    ByteView rest = batch.bytes.view();
    while (!rest.empty()) {
      const rocketmq::FrameHead head = rocketmq::next_frame(rest, rest.size());
      if (head.state != rocketmq::FrameState::complete) {
        return fail(Errc::corrupt, "not a sequence of whole messages");
      }
      const ByteView record = rest.first(static_cast<std::size_t>(head.size));
      POLYLOG_ASSIGN(message, rocketmq::parse(record));
      POLYLOG_ASSIGN(wanted, maker.add(message, batch.info.epoch));
      if (!wanted) return maker.finish();
      rest = rest.subspan(record.size());
    }
  }
  return maker.finish();
}

}  // namespace polylog::format
