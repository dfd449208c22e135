#include "convert/data_directory.h"

#include <algorithm>
#include <set>

#include "broker/broker_impl.h"
#include "broker/topic_config.h"
#include "format/kafka/checkpoint.h"
#include "format/kafka/names.h"
#include "format/rocketmq/config_json.h"
#include "format/rocketmq/names.h"
#include "journal/journal.h"
#include "storage/rocketmq/store.h"
#include "storage/segment/store.h"

namespace polylog::convert {
namespace {

using storage::Layout;
namespace kafka = format::kafka;
namespace rocketmq = format::rocketmq;

constexpr std::size_t small_file_bytes_max = std::size_t{64} << 20;
constexpr std::size_t recovery_threads = 4;
constexpr std::size_t open_files_max = 512;
constexpr Layout all_layouts[] = {Layout::kafka, Layout::rocketmq, Layout::segment};

bool is_directory(const fs::FileSystem& fs, const std::string& path) {
  const auto info = fs.info(path);
  return info && info->directory;
}

bool is_kafka_internal(const std::string& topic) {
  return topic == offsets_topic || topic == "__transaction_state" || topic == "__share_group_state";
}

// The cluster that a Kafka directory belongs to; zero when it does not say.
Result<Uuid> cluster_of(fs::FileSystem& fs, const std::string& directory) {
  const std::string path = fs::join(directory, kafka::meta_properties_file);
  if (!fs::exists(fs, path)) return Uuid{};
  POLYLOG_ASSIGN(bytes, fs::read_file(fs, path, small_file_bytes_max));
  auto identity = kafka::parse_meta_properties(as_text(bytes));
  if (!identity) return fail(identity.error().code, path + ": " + identity.error().context);
  auto id = Uuid::parse(identity->cluster_id);
  if (!id) return fail(Errc::unsupported, path + ": cluster id " + identity->cluster_id);
  return id;
}

bool has_partition(const fs::FileSystem& fs, const std::string& directory) {
  const auto names = fs.list(directory);
  return names && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
           const std::string inside = fs::join(directory, name);
           return kafka::parse_partition_directory(name).has_value() &&
                  fs::exists(fs, fs::join(inside, kafka::partition_metadata_file));
         });
}

// The partition that a directory of a log per partition holds, unless it is being removed.
std::optional<TopicPartition> partition_of_directory(Layout layout, const std::string& name) {
  if (layout == Layout::segment) return storage::segment::parse_shard_name(name);
  const auto parsed = kafka::parse_partition_directory(name);
  if (!parsed || parsed->stage != kafka::DirectoryStage::live) return std::nullopt;
  return parsed->id;
}

// The length that the files of a RocketMQ directory have: a setting of whoever made them.
void learn_length(const fs::FileSystem& fs, const std::string& directory, std::int64_t& bytes) {
  const auto names = fs.list(directory);
  if (!names) return;
  std::int64_t largest = 0;
  for (const std::string& name : *names) {
    const auto info = fs.info(fs::join(directory, name));
    if (!rocketmq::parse_file_name(name) || !info || info->directory) continue;
    largest = std::max(largest, static_cast<std::int64_t>(info->size));
  }
  if (largest > 0) bytes = largest;
}

storage::SharedLogConfig learn_lengths(const fs::FileSystem& fs, const std::string& store) {
  storage::SharedLogConfig config;
  config.index_enabled = false;  // nobody looks anything up by key here
  learn_length(fs, fs::join(store, rocketmq::commit_log_directory), config.commit_log_file_bytes);
  const std::string queues = fs::join(store, rocketmq::consume_queue_directory);
  const auto topics = fs.list(queues);
  if (!topics) return config;
  for (const std::string& topic : *topics) {
    const auto ids = fs.list(fs::join(queues, topic));
    if (!ids) continue;
    for (const std::string& id : *ids) {
      std::int64_t bytes = 0;
      learn_length(fs, fs::join(fs::join(queues, topic), id), bytes);
      if (bytes == 0) continue;
      config.queue_file_bytes = bytes;
      return config;
    }
  }
  return config;
}

}  // namespace

DataDirectory::DataDirectory(fs::FileSystem& fs, const Clock& clock, std::string path,
                             const std::string& scratch)
    : path_(std::move(path)),
      clock_(clock),
      below_(fs),
      sidecar_(path_ + ".conversion-sidecar"),
      fs_(fs, scratch) {}

Result<std::unique_ptr<DataDirectory>> DataDirectory::open(fs::FileSystem& fs, const Clock& clock,
                                                           const Engines& engines, std::string path,
                                                           const std::string& scratch,
                                                           const Hints& hints) {
  std::unique_ptr<DataDirectory> made(new DataDirectory(fs, clock, std::move(path), scratch));
  POLYLOG_TRY(made->find_kind());
  if (!hints.kafka_metadata.empty() && made->kind_ != Kind::kafka) {
    return fail(Errc::invalid, "--kafka-metadata is for a log directory of Kafka's; " +
                                   made->path_ + " is none");
  }
  if (!hints.topic_names.empty() && made->kind_ != Kind::robustmq) {
    return fail(Errc::invalid, "--topic names topics of RobustMQ's; " + made->path_ +
                                   " holds topics that have names");
  }
  if (made->kind_ == Kind::polylog) {
    POLYLOG_TRY(made->take_lock(fs::join(made->path_, ".lock")));
    POLYLOG_TRY(made->check_journal());
  }
  POLYLOG_ASSIGN(cluster, cluster_of(made->fs_, made->store_directory(Layout::kafka)));
  made->cluster_id_ = cluster;
  // Locks before anything is read: the stores take theirs as they open.
  POLYLOG_TRY(made->open_stores(engines, hints.topic_names));
  POLYLOG_TRY(made->read_catalog());
  POLYLOG_TRY(made->check_complete());
  POLYLOG_TRY(made->list_topics());
  POLYLOG_TRY(made->read_kraft(hints.kafka_metadata));
  POLYLOG_TRY(made->read_group_offsets());
  return made;
}

Result<void> DataDirectory::find_kind() {
  POLYLOG_ASSIGN(info, below_.info(path_));
  if (!info.directory) return fail(Errc::invalid, path_ + " is no directory");
  const auto inside = [&](std::string_view name) { return fs::join(path_, name); };
  const bool has_store = std::any_of(std::begin(all_layouts), std::end(all_layouts), [&](Layout l) {
    return is_directory(below_, inside(broker::layout_name(l)));
  });
  if (fs::exists(below_, inside("meta/meta.db"))) {
    kind_ = Kind::polylog;
  } else if (is_directory(below_, inside(rocketmq::commit_log_directory))) {
    kind_ = Kind::rocketmq;
  } else if (fs::exists(below_, inside(kafka::meta_properties_file)) ||
             fs::exists(below_, inside(kafka::recovery_point_checkpoint_file))) {
    kind_ = Kind::kafka;
  } else if (has_store) {
    kind_ = Kind::polylog;
  } else if (has_partition(below_, path_)) {
    kind_ = Kind::kafka;
  } else if (is_robustmq_directory(below_, path_)) {
    kind_ = Kind::robustmq;
  } else {
    return fail(Errc::invalid, path_ + " is neither a data directory of polylog nor a Kafka log " +
                                   "directory nor a RocketMQ store nor a folder of RobustMQ's " +
                                   "segment files");
  }
  return {};
}

Result<void> DataDirectory::take_lock(const std::string& path) {
  auto lock = fs_.lock(path);
  if (!lock) return fail(lock.error().code, path_ + " is in use: " + lock.error().context);
  locks_.push_back(std::move(*lock));
  return {};
}

// What lies in a journal is not in the files yet, and a conversion must not change its source.
Result<void> DataDirectory::check_journal() const {
  POLYLOG_ASSIGN(holds, journal::holds_writes(below_, fs::join(path_, "journal")));
  if (!holds) return {};
  return fail(Errc::unsupported, path_ + " was not stopped cleanly, and its journal holds records: "
                                         "start polylog on it once and stop it");
}

std::string DataDirectory::store_directory(Layout layout) const {
  if (kind_ != Kind::polylog) return path_;
  return fs::join(path_, broker::layout_name(layout));
}

Result<void> DataDirectory::open_stores(const Engines& engines, const TopicNames& names) {
  if (kind_ == Kind::robustmq) {
    return take_store(Layout::segment, RobustmqStore::open(fs_, path_, names));
  }
  for (const Layout layout : all_layouts) {
    const bool own = kind_ == Kind::polylog ||
                     layout == (kind_ == Kind::kafka ? Layout::kafka : Layout::rocketmq);
    if (!own || !is_directory(fs_, store_directory(layout))) continue;
    const auto engine = engines.find(layout);
    if (engine == engines.end()) {
      return fail(Errc::unsupported,
                  store_directory(layout) + ": that layout is not available " + "in this build");
    }
    POLYLOG_TRY(open_store(layout, engine->second));
  }
  return {};
}

Result<void> DataDirectory::open_store(Layout layout, storage::OpenStore engine) {
  storage::StoreConfig config;
  config.directory = store_directory(layout);
  config.sidecar_directory = kind_ == Kind::polylog ? fs::join(path_, "sidecar") : sidecar_;
  config.cluster_id = cluster_id_.is_zero() ? Uuid::random() : cluster_id_;
  config.open_files_max = open_files_max;
  config.recovery_threads = recovery_threads;
  if (layout == Layout::rocketmq) config.shared = learn_lengths(fs_, config.directory);
  return take_store(layout, engine(fs_, clock_, config));
}

Result<void> DataDirectory::take_store(Layout layout, Result<storage::Opened> opened) {
  if (!opened) {
    if (opened.error().code != Errc::locked) return fail(std::move(opened).error());
    return fail(Errc::locked, path_ + " is in use: " + opened.error().context);
  }
  stores_[layout] = std::move(opened->store);
  for (const std::string& line : opened->recovery.notes) note(line);
  store_notes_[layout] = std::move(opened->recovery.notes);
  return {};
}

Result<void> DataDirectory::read_catalog() {
  if (kind_ != Kind::polylog) return {};
  const std::string directory = fs::join(path_, "meta");
  POLYLOG_TRY(fs::create_directories(fs_, directory));
  POLYLOG_ASSIGN(catalog, meta::open_embedded_catalog(fs_, directory, cluster_id_));
  cluster_id_ = catalog->cluster_id();
  POLYLOG_ASSIGN(records, catalog->topics());
  records_ = std::move(records);
  POLYLOG_ASSIGN(scoped, catalog->scoped_configs());
  scoped_configs_ = std::move(scoped);
  POLYLOG_ASSIGN(quotas, catalog->quotas());
  quotas_ = std::move(quotas);
  POLYLOG_ASSIGN(next, catalog->reserve_producer_ids(1));  // in the overlay, as all is
  producer_ids_end_ = next.first;
  return {};
}

// A partition that its engine could not open must not be missing from the result unnoticed.
Result<void> DataDirectory::check_complete() const {
  POLYLOG_TRY(check_complete(Layout::kafka));
  return kind_ == Kind::polylog ? check_complete(Layout::segment) : Result<void>();
}

Result<void> DataDirectory::check_complete(Layout layout) const {
  const storage::Store* const its = store(layout);
  if (its == nullptr) return {};
  const std::string directory = store_directory(layout);
  POLYLOG_ASSIGN(names, fs_.list(directory));
  for (const std::string& name : names) {
    const auto id = partition_of_directory(layout, name);
    if (!id || id->topic == kafka::cluster_metadata_topic || its->find(*id) != nullptr) continue;
    std::string why = fs::join(directory, name) + " can't be opened";
    for (const std::string& line : store_notes_.at(layout)) {
      if (line.starts_with(fs::join(directory, name) + " ")) why = line;
    }
    return fail(Errc::corrupt, why);
  }
  return {};
}

storage::Store* DataDirectory::store(Layout layout) const {
  const auto found = stores_.find(layout);
  return found == stores_.end() ? nullptr : found->second.get();
}

std::shared_ptr<storage::PartitionLog> DataDirectory::find(const Topic& topic,
                                                           std::int32_t partition) const {
  const storage::Store* const its = store(topic.layout);
  return its == nullptr ? nullptr : its->find({topic.record.name, partition});
}

Result<void> DataDirectory::list_topics() {
  for (const meta::TopicRecord& record : records_) {
    if (record.configs.contains(broker::deleting_mark)) {
      note("topic " + record.name + " was being deleted: left out");
      continue;
    }
    const auto layout = broker::parse_layout(record.layout);
    if (!layout) {
      return fail(Errc::unsupported, "topic " + record.name + ": layout " + record.layout);
    }
    const bool internal = *layout == Layout::kafka && is_kafka_internal(record.name);
    topics_.push_back({record, *layout, internal});
  }
  for (const auto& [layout, its] : stores_) POLYLOG_TRY(adopt(layout));
  if (store(Layout::rocketmq) != nullptr) POLYLOG_TRY(add_rocketmq_topics());
  std::sort(topics_.begin(), topics_.end(),
            [](const Topic& a, const Topic& b) { return a.record.name < b.record.name; });
  return {};
}

// Topics that lie there without being in a catalogue: their settings are not known, so that
// nothing of them may expire until somebody has set them.
Result<void> DataDirectory::adopt(Layout layout) {
  std::map<std::string, std::int32_t> found;
  for (const TopicPartition& id : stores_.at(layout)->partitions()) {
    std::int32_t& count = found[id.topic];
    count = std::max(count, id.partition + 1);
  }
  for (const auto& [name, count] : found) {
    if (name == kafka::cluster_metadata_topic) continue;
    const auto known = std::find_if(topics_.begin(), topics_.end(),
                                    [&](const Topic& topic) { return topic.record.name == name; });
    if (known != topics_.end()) {
      if (known->layout == layout) {
        known->record.partitions = std::max(known->record.partitions, count);
      } else {
        note("topic " + name + ": there is another of that name in the " +
             std::string(broker::layout_name(layout)) + " store, which is left out");
      }
      continue;
    }
    const bool deleted = std::any_of(records_.begin(), records_.end(),
                                     [&](const auto& record) { return record.name == name; });
    if (deleted) continue;
    Topic topic;
    topic.record.name = name;
    topic.record.layout = broker::layout_name(layout);
    topic.record.partitions = count;
    topic.record.configs[broker::suspended_mark] = "true";
    topic.layout = layout;
    topic.kafka_internal = layout == Layout::kafka && is_kafka_internal(name);
    topic.record.id = stores_.at(layout)->topic_id({name, count - 1}).value_or(Uuid());
    topics_.push_back(std::move(topic));
  }
  return {};
}

// Queues that topics.json knows and no message has come to yet; and RocketMQ's own topics, where
// they hold messages.
Result<void> DataDirectory::add_rocketmq_topics() {
  if (kind_ == Kind::rocketmq) {
    POLYLOG_ASSIGN(text, rocketmq_config(rocketmq::topics_file));
    rocketmq::TopicTable table;
    if (!text.empty()) {
      POLYLOG_ASSIGN(parsed, rocketmq::parse_topics(text));
      table = std::move(parsed);
    }
    for (const auto& [stored, config] : table.topics) {
      if (rocketmq::is_internal_topic(stored) || !rocketmq::check_stored_topic(stored)) continue;
      const std::string name = rocketmq::from_stored_topic(stored);
      const std::int32_t queues = std::max({config.read_queue_nums, config.write_queue_nums, 1});
      const auto known = std::find_if(topics_.begin(), topics_.end(), [&](const Topic& topic) {
        return topic.record.name == name;
      });
      if (known != topics_.end()) {
        known->record.partitions = std::max(known->record.partitions, queues);
        continue;
      }
      Topic topic;
      topic.record.name = name;
      topic.record.layout = broker::layout_name(Layout::rocketmq);
      topic.record.partitions = queues;
      topic.record.configs[broker::suspended_mark] = "true";
      topic.layout = Layout::rocketmq;
      topics_.push_back(std::move(topic));
    }
  }
  const auto* const its =
      dynamic_cast<const storage::rocketmq::RocketmqStore*>(store(Layout::rocketmq));
  if (its == nullptr) return {};
  std::map<std::string, std::int32_t> internal;
  for (const auto& queue : its->shared_log()->queues()) {
    if (!rocketmq::is_internal_topic(queue->stored_topic())) continue;
    if (queue->offsets().end.value() == 0) continue;
    std::int32_t& count = internal[queue->id().topic];
    count = std::max(count, queue->id().partition + 1);
  }
  for (const auto& [name, count] : internal) {
    Topic topic;
    topic.record.name = name;
    topic.record.layout = broker::layout_name(Layout::rocketmq);
    topic.record.partitions = count;
    topic.layout = Layout::rocketmq;
    topic.rocketmq_internal = true;
    topics_.push_back(std::move(topic));
  }
  return {};
}

Result<std::string> DataDirectory::rocketmq_config(std::string_view name) const {
  const auto* const its =
      dynamic_cast<const storage::rocketmq::RocketmqStore*>(store(Layout::rocketmq));
  if (its == nullptr) return std::string();
  return its->read_config(name);
}

Result<void> DataDirectory::read_group_offsets() {
  POLYLOG_ASSIGN(text, rocketmq_config(rocketmq::consumer_offsets_file));
  POLYLOG_ASSIGN(offsets, parse_rocketmq_offsets(text));
  if (offsets.empty()) return {};
  std::set<std::string> names;
  for (const Topic& topic : topics_) {
    if (!topic.rocketmq_internal) names.insert(topic.record.name);
  }
  if (names.contains(offsets_topic)) {
    note("config/" + std::string(rocketmq::consumer_offsets_file) +
         " is passed over: committed offsets are in " + offsets_topic);
    return {};
  }
  std::erase_if(offsets,
                [&](const GroupOffset& offset) { return !names.contains(offset.partition.topic); });
  group_offsets_ = std::move(offsets);
  return {};
}

}  // namespace polylog::convert
