#include "storage/rocketmq/store.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "format/rocketmq/names.h"

namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

namespace {

constexpr std::size_t config_bytes_max = std::size_t{64} << 20;
constexpr Traits rocketmq_traits{BatchFormat::rocketmq, true, false, false};

SharedLog::Setup setup_of(const StoreConfig& config) {
  SharedLog::Setup setup;
  setup.directory = config.directory;
  setup.sidecar_directory = config.sidecar_directory;
  setup.config = config.shared;
  setup.open_files_max = config.open_files_max;
  return setup;
}

int local_hour(Timestamp now) {
  const std::time_t seconds = now.value() / 1000;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return local.tm_hour;
}

}  // namespace

RocketmqStore::RocketmqStore(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config)
    : fs_(fs), config_(config), log_(std::make_shared<SharedLog>(fs, clock, setup_of(config))) {}

RocketmqStore::~RocketmqStore() { log_->release(); }

const Traits& RocketmqStore::traits() const { return rocketmq_traits; }

Result<std::shared_ptr<PartitionLog>> RocketmqStore::create(const TopicPartition& id,
                                                            const Uuid& topic,
                                                            const LogConfig& config) {
  QueueNote note;
  note.topic = topic;
  note.config = config;
  POLYLOG_ASSIGN(queue, log_->create(id, note));
  return std::shared_ptr<PartitionLog>(std::move(queue));
}

std::shared_ptr<PartitionLog> RocketmqStore::find(const TopicPartition& id) const {
  return log_->find(id);
}

std::shared_ptr<Queue> RocketmqStore::find_queue(std::string_view stored_topic,
                                                 std::int32_t queue_id) const {
  return log_->find({stored::from_stored_topic(stored_topic), queue_id});
}

std::vector<TopicPartition> RocketmqStore::partitions() const {
  std::vector<TopicPartition> all;
  for (const auto& queue : log_->queues()) {
    if (!stored::is_internal_topic(queue->stored_topic())) all.push_back(queue->id());
  }
  return all;
}

std::optional<Uuid> RocketmqStore::topic_id(const TopicPartition& id) const {
  const auto queue = log_->find(id);
  if (queue == nullptr || queue->topic().is_zero()) return std::nullopt;
  return queue->topic();
}

Result<void> RocketmqStore::remove(const TopicPartition& id) { return log_->remove(id); }

// Whole files go by the store's own rule; a topic's shorter time only moves its start.
Result<Retained> RocketmqStore::retain(const TopicPartition& id, Offset visible, Timestamp now) {
  const auto queue = log_->find(id);
  if (queue == nullptr) {
    return fail(Errc::not_found, id.topic + "-" + std::to_string(id.partition) + " is not open");
  }
  POLYLOG_TRY(queue->expire(visible, now));
  return Retained();
}

// RocketMQ's rule: old files go at the hour that deleteWhen names, or earlier when the disk is
// fuller than it should be; young ones only when the operator has allowed it.
Result<bool> RocketmqStore::expiry_due(Timestamp now, bool& forced) {
  const SharedLogConfig& shared = config_.shared;
  POLYLOG_ASSIGN(free, fs_.free_bytes(config_.directory));
  POLYLOG_ASSIGN(total, fs_.total_bytes(config_.directory));
  const std::uint64_t used = total > free ? total - free : 0;
  const int percent = total == 0 ? 0 : static_cast<int>(used * 100 / total);
  forced = shared.forced_deletion && percent > shared.disk_ratio_forced;
  const auto& hours = shared.delete_hours;
  return forced || percent > shared.disk_ratio_max ||
         std::find(hours.begin(), hours.end(), local_hour(now)) != hours.end();
}

Result<void> RocketmqStore::tend(Timestamp now) {
  POLYLOG_TRY(log_->flush_entries());
  POLYLOG_TRY(log_->prepare_next());
  if (log_->wants_checkpoint()) POLYLOG_TRY(log_->checkpoint());
  bool forced = false;
  POLYLOG_ASSIGN(due, expiry_due(now, forced));
  if (!due) return {};
  return log_->expire_files(now, forced).map([](const auto&) {});
}

Result<std::string> RocketmqStore::read_config(std::string_view name) const {
  const std::string file = fs::join(fs::join(config_.directory, stored::config_directory), name);
  for (const std::string& candidate : {file, file + std::string(stored::backup_suffix)}) {
    const auto bytes = fs::read_file(fs_, candidate, config_bytes_max);
    if (bytes && !bytes->empty()) return std::string(as_text(*bytes));
    if (!bytes && bytes.error().code != Errc::not_found) return fail(bytes.error());
  }
  return std::string();
}

Result<void> RocketmqStore::write_config(std::string_view name, std::string_view text) {
  const std::string directory = fs::join(config_.directory, stored::config_directory);
  POLYLOG_TRY(fs::create_directories(fs_, directory));
  const std::string file = fs::join(directory, name);
  if (const auto before = fs::read_file(fs_, file, config_bytes_max); before && !before->empty()) {
    POLYLOG_TRY(fs::replace_file(fs_, file + std::string(stored::backup_suffix), *before));
  }
  return fs::replace_file(fs_, file, as_bytes(text));
}

Result<void> RocketmqStore::checkpoint() { return log_->checkpoint(); }

Result<void> RocketmqStore::close() {
  POLYLOG_TRY(log_->close());
  lock_.reset();
  return {};
}

const KeyIndex* RocketmqStore::key_index() const {
  return config_.shared.index_enabled ? this : nullptr;
}

// Candidates share a hash of topic and key; only the record itself says whose it is.
Result<std::vector<KeyIndex::Found>> RocketmqStore::find_by_key(const KeyQuery& query) const {
  std::vector<Found> found;
  if (query.records_max == 0) return found;
  POLYLOG_TRY(log_->flush_entries());
  POLYLOG_ASSIGN(topic, stored_name(query.topic));
  POLYLOG_TRY(log_->look_up(topic, query.key, query.from, query.to,
                            [&](Slice record, const stored::Message& message) {
                              Found& match = found.emplace_back();
                              match.partition = {query.topic, message.queue_id};
                              match.record = log_->as_batch(std::move(record), message);
                              return found.size() < query.records_max;
                            }));
  return found;
}

}  // namespace polylog::storage::rocketmq
