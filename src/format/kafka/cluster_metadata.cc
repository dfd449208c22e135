#include "format/kafka/cluster_metadata.h"

#include <algorithm>
#include <bit>

#include "bytes/reader.h"

namespace polylog::format::kafka {
namespace {

constexpr std::uint32_t frame_version = 1;
constexpr std::int32_t partitions_max = 1'000'000;

// Record types (their api keys in Kafka's schemas).
constexpr std::uint32_t topic_record = 2;
constexpr std::uint32_t partition_record = 3;
constexpr std::uint32_t setting_record = 4;
constexpr std::uint32_t topic_removal_record = 9;
constexpr std::uint32_t quota_record = 14;
constexpr std::uint32_t producer_ids_record = 15;
constexpr std::uint32_t transaction_begin_record = 23;
constexpr std::uint32_t transaction_end_record = 24;
constexpr std::uint32_t transaction_abort_record = 25;

Error cut() { return {Errc::corrupt, "a record of Kafka's metadata does not read"}; }

// Fields of flexible messages.
class Reader {
 public:
  explicit Reader(ByteView bytes) : in_(bytes) {}

  ByteReader& raw() { return in_; }
  std::optional<std::string> nullable_text() {
    const std::int64_t size = std::int64_t{in_.unsigned_varint()} - 1;
    if (size < 0) return std::nullopt;
    return std::string(in_.text(in_.count(size, 1)));
  }
  std::string text() {
    std::optional<std::string> value = nullable_text();
    if (!value) in_.fail();
    return std::move(value).value_or("");
  }
  Uuid uuid() {
    Uuid id;
    const ByteView bytes = in_.bytes(id.bytes.size());
    std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
    return id;
  }
  std::size_t count(std::size_t element_bytes_min) {
    return in_.count(std::int64_t{in_.unsigned_varint()} - 1, element_bytes_min);
  }
  void tags() {
    const std::size_t tags = in_.count(in_.unsigned_varint(), 2);
    for (std::size_t i = 0; i < tags && in_.ok(); ++i) {
      in_.unsigned_varint();
      in_.skip(in_.count(in_.unsigned_varint(), 1));
    }
  }
  // Of a record: its tagged fields, and nothing behind them.
  template <typename R>
  Result<MetadataRecord> complete(R record) {
    tags();
    if (!in_.ok() || in_.remaining() > 0) return fail(cut());
    return MetadataRecord(std::move(record));
  }

 private:
  ByteReader in_;
};

Result<MetadataRecord> take_topic(Reader& in) {
  TopicMade topic;
  topic.name = in.text();
  topic.id = in.uuid();
  return in.complete(std::move(topic));
}

// Its replicas and leader, which no one here asks for, come behind.
Result<MetadataRecord> take_partition(Reader& in) {
  PartitionMade made;
  made.partition = in.raw().i32();
  made.topic = in.uuid();
  if (!in.raw().ok() || made.partition < 0 || made.partition >= partitions_max) return fail(cut());
  return MetadataRecord(made);
}

Result<MetadataRecord> take_setting(Reader& in) {
  SettingChanged setting;
  setting.resource = in.raw().i8();
  setting.of = in.text();
  setting.name = in.text();
  setting.value = in.nullable_text();
  return in.complete(std::move(setting));
}

Result<MetadataRecord> take_quota(Reader& in) {
  QuotaChanged quota;
  const std::size_t parts = in.count(3);
  for (std::size_t i = 0; i < parts && in.raw().ok(); ++i) {
    std::string type = in.text();
    quota.of[std::move(type)] = in.nullable_text();
    in.tags();
  }
  quota.name = in.text();
  quota.value = std::bit_cast<double>(in.raw().u64());
  quota.removed = in.raw().u8() != 0;
  return in.complete(std::move(quota));
}

Result<MetadataRecord> take_producer_ids(Reader& in) {
  in.raw().i32();  // the broker that has them, and its epoch
  in.raw().i64();
  return in.complete(ProducerIdsGiven{in.raw().i64()});
}

}  // namespace

Result<MetadataRecord> decode_metadata_record(ByteView value) {
  Reader in(value);
  const std::uint32_t frame = in.raw().unsigned_varint();
  const std::uint32_t type = in.raw().unsigned_varint();
  const std::uint32_t version = in.raw().unsigned_varint();
  if (!in.raw().ok()) return fail(cut());
  if (frame != frame_version) {
    return fail(Errc::unsupported, "a record of Kafka's metadata has frame version " +
                                       std::to_string(frame));
  }
  // All of these have version 0 alone; what a partition's begins with is the same in all of its.
  constexpr std::uint32_t known[] = {topic_record,         setting_record,
                                     topic_removal_record, quota_record,
                                     producer_ids_record,  transaction_begin_record,
                                     transaction_end_record, transaction_abort_record};
  if (version > 0 && std::find(std::begin(known), std::end(known), type) != std::end(known)) {
    return fail(Errc::unsupported, "a record of Kafka's metadata of type " + std::to_string(type) +
                                       " has version " + std::to_string(version));
  }
  switch (type) {
    case topic_record: return take_topic(in);
    case partition_record: return take_partition(in);
    case setting_record: return take_setting(in);
    case topic_removal_record: return in.complete(TopicRemoved{in.uuid()});
    case quota_record: return take_quota(in);
    case producer_ids_record: return take_producer_ids(in);
    case transaction_begin_record: return in.complete(MetadataTransaction::begin);
    case transaction_end_record: return in.complete(MetadataTransaction::end);
    case transaction_abort_record: return in.complete(MetadataTransaction::abort);
    default: return MetadataRecord();
  }
}

// What lies between a transaction's ends counts as a whole or not at all.
Result<void> ClusterMetadata::apply(const MetadataRecord& record) {
  const auto* const transaction = std::get_if<MetadataTransaction>(&record);
  if (transaction == nullptr) {
    if (!held_) return take(record);
    held_->push_back(record);
    return {};
  }
  if (held_.has_value() == (*transaction == MetadataTransaction::begin)) return fail(cut());
  if (*transaction == MetadataTransaction::begin) {
    held_.emplace();
    return {};
  }
  const std::vector<MetadataRecord> held = std::move(*held_);
  held_.reset();
  if (*transaction == MetadataTransaction::abort) return {};
  for (const MetadataRecord& each : held) POLYLOG_TRY(take(each));
  return {};
}

Result<void> ClusterMetadata::take(const MetadataRecord& record) {
  if (const auto* const made = std::get_if<TopicMade>(&record)) {
    names_[made->id] = made->name;
    topics_[made->name] = Topic{made->id, 0, {}};
    return {};
  }
  if (const auto* const made = std::get_if<PartitionMade>(&record)) {
    const auto name = names_.find(made->topic);
    if (name == names_.end()) {
      return fail(Errc::corrupt, "a partition of a topic that Kafka's metadata does not know");
    }
    std::int32_t& count = topics_[name->second].partitions;
    count = std::max(count, made->partition + 1);
    return {};
  }
  if (const auto* const removed = std::get_if<TopicRemoved>(&record)) {
    const auto name = names_.find(removed->id);
    if (name == names_.end()) {
      return fail(Errc::corrupt, "the end of a topic that Kafka's metadata does not know");
    }
    // Unless another of that name has come since.
    const auto topic = topics_.find(name->second);
    if (topic != topics_.end() && topic->second.id == removed->id) topics_.erase(topic);
    names_.erase(name);
    return {};
  }
  if (const auto* const setting = std::get_if<SettingChanged>(&record)) change(*setting);
  if (const auto* const quota = std::get_if<QuotaChanged>(&record)) change(*quota);
  if (const auto* const ids = std::get_if<ProducerIdsGiven>(&record)) {
    producer_ids_end_ = std::max(producer_ids_end_, ids->next);
  }
  return {};
}

void ClusterMetadata::change(const SettingChanged& setting) {
  const bool of_topic = setting.resource == topic_resource;
  // A topic's come behind its record, in the log and in snapshots.
  if (of_topic && !topics_.contains(setting.of)) return;
  Settings& settings =
      of_topic ? topics_[setting.of].settings : settings_[{setting.resource, setting.of}];
  if (setting.value) {
    settings[setting.name] = *setting.value;
  } else {
    settings.erase(setting.name);
  }
  if (!of_topic && settings.empty()) settings_.erase({setting.resource, setting.of});
}

void ClusterMetadata::change(const QuotaChanged& quota) {
  std::map<std::string, double>& limits = quotas_[quota.of];
  if (quota.removed) {
    limits.erase(quota.name);
  } else {
    limits[quota.name] = quota.value;
  }
  if (limits.empty()) quotas_.erase(quota.of);
}

}  // namespace polylog::format::kafka
