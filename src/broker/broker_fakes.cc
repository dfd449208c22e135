#include "broker/broker_fakes.h"

#include <algorithm>

namespace polylog::broker {

Result<void> FakeFile::sync() {
  ++syncs;
  if (on_sync) on_sync();
  if (sync_error) return fail(*sync_error, "fdatasync");
  return {};
}

Result<void> FakeFileSystem::sync_directory(const std::string& path) {
  ++directory_syncs[path];
  const auto error = directory_errors.find(path);
  if (error != directory_errors.end()) return fail(error->second, path);
  return {};
}

// ---------------------------------------------------------------------------------- FakeLog

LogPosition FakeLog::end() const {
  const std::lock_guard lock(mutex);
  return written;
}

LogPosition FakeLog::durable_end() const {
  const std::lock_guard lock(mutex);
  return durable;
}

Result<void> FakeLog::begin_epoch(LeaderEpoch epoch) {
  latest_epoch = epoch;
  epochs_begun.emplace_back(epoch, written);
  return {};
}

void FakeLog::drop_staged() {
  for (auto it = undos.rbegin(); it != undos.rend(); ++it) producers.restore(*it);
  undos.clear();
  staged.clear();
}

Result<void> FakeLog::write_staged() {
  const std::lock_guard lock(mutex);
  ++writes;
  const std::optional<Errc> error =
      failed ? Errc::unavailable : std::exchange(write_error, std::nullopt);
  if (error) {
    drop_staged();
    return fail(*error, "write");
  }
  for (Batch& batch : staged) {
    written = LogPosition(batch.info.last.value() + 1);
    batches.push_back(std::move(batch));
  }
  staged.clear();
  undos.clear();
  return {};
}

Result<std::optional<storage::DirtyLog>> FakeLog::dirty() {
  const std::lock_guard lock(mutex);
  if (dirty_error) return fail(*dirty_error, "dirty");
  if (durable == written && !start_dirty && directories.empty()) return std::nullopt;
  storage::DirtyLog dirty;
  dirty.log = shared_from_this();
  dirty.end = written;
  dirty.files = {file};
  dirty.directories = directories;
  return dirty;
}

void FakeLog::settled(const storage::DirtyLog& done, bool synced) {
  const std::lock_guard lock(mutex);
  if (!synced) {
    failed = true;
    return;
  }
  durable = done.end;
  start_dirty = false;
}

// ---------------------------------------------------------------------------- FakePartition

OffsetRange FakePartition::offsets() const {
  const std::lock_guard lock(fake->mutex);
  return {Offset(fake->start.value()), Offset(fake->written.value())};
}

Result<storage::Staged> FakePartition::append(Batch batch) {
  const std::lock_guard lock(fake->mutex);
  if (fake->failed) return fail(Errc::unavailable, "failed before");
  if (fake->append_error) return fail(*fake->append_error, "append");
  if (const auto error = std::exchange(fake->append_drops, std::nullopt)) {
    fake->drop_staged();
    return fail(*error, "roll");
  }
  Offset base(fake->written.value());
  if (!fake->staged.empty()) base = fake->staged.back().info.last + 1;
  batch.info.first = base;
  batch.info.last = base + (batch.info.records - 1);
  batch.info.epoch = fake->latest_epoch;
  const LogPosition end(batch.info.last.value() + 1);
  if (batch.info.producer.id != no_producer) {
    fake->undos.push_back(fake->producers.update(batch.info, end));
  }
  fake->staged.push_back(std::move(batch));
  return storage::Staged{{base, Offset(end.value())}, end};
}

Result<std::vector<Batch>> FakePartition::read(Offset from, storage::ReadLimits limits) const {
  const std::lock_guard lock(fake->mutex);
  if (from.value() < fake->start.value() || from > limits.end) {
    return fail(Errc::out_of_range, "read");
  }
  std::vector<Batch> found;
  for (const Batch& batch : fake->batches) {
    if (batch.info.last >= from && batch.info.last < limits.end) found.push_back(batch);
  }
  return found;
}

Result<void> FakePartition::advance_start(Offset to) {
  const std::lock_guard lock(fake->mutex);
  fake->start = std::max(fake->start, LogPosition(to.value()));
  fake->start_dirty = true;
  return {};
}

// -------------------------------------------------------------------------------- FakeStore

FakePartition& FakeDisk::add(const TopicPartition& id, const Uuid& topic) {
  auto& directory = directories[id];
  directory.topic = topic;
  directory.partition = std::make_shared<FakePartition>();
  return *directory.partition;
}

const storage::Traits& FakeStore::traits() const {
  static const storage::Traits traits{BatchFormat::kafka, false, true, false};
  return traits;
}

Result<std::shared_ptr<storage::PartitionLog>> FakeStore::create(const TopicPartition& id,
                                                                 const Uuid& topic,
                                                                 const storage::LogConfig& c) {
  if (disk_.on_create) disk_.on_create();
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(disk_.power.change());
  if (disk_.create_error && id.partition >= disk_.create_error_from) {
    return fail(*disk_.create_error, "create");
  }
  if (disk_.directories.contains(id)) return fail(Errc::exists, id.topic);
  disk_.add(id, topic).configure(c);
  return disk_.directories[id].partition;
}

std::shared_ptr<storage::PartitionLog> FakeStore::find(const TopicPartition& id) const {
  const std::lock_guard lock(mutex_);
  const auto it = disk_.directories.find(id);
  return it == disk_.directories.end() ? nullptr : it->second.partition;
}

std::vector<TopicPartition> FakeStore::partitions() const {
  std::vector<TopicPartition> all;
  for (const auto& [id, directory] : disk_.directories) all.push_back(id);
  return all;
}

std::optional<Uuid> FakeStore::topic_id(const TopicPartition& id) const {
  const auto it = disk_.directories.find(id);
  if (it == disk_.directories.end() || it->second.topic.is_zero()) return std::nullopt;
  return it->second.topic;
}

Result<void> FakeStore::remove(const TopicPartition& id) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(disk_.power.change());
  if (disk_.remove_error) {
    if (disk_.remove_forgets) disk_.directories.erase(id);
    return fail(*disk_.remove_error, "remove");
  }
  if (disk_.directories.erase(id) == 0) return fail(Errc::not_found, id.topic);
  return {};
}

Result<storage::Retained> FakeStore::retain(const TopicPartition& id, Offset visible, Timestamp) {
  const std::lock_guard lock(mutex_);
  disk_.retained.add({id, visible});
  return storage::Retained{1, 1};
}

Result<void> FakeStore::checkpoint() {
  const std::lock_guard lock(mutex_);
  ++disk_.checkpoints;
  return {};
}

std::vector<std::shared_ptr<storage::Log>> FakeStore::advance_points() {
  ++disk_.advanced;
  return disk_.behind;
}

Result<void> FakeStore::close() {
  ++disk_.closed;
  return {};
}

// ------------------------------------------------------------------------------ FakeCatalog

Uuid FakeCatalog::cluster_id() const {
  Uuid id;
  id.bytes[0] = 7;
  return id;
}

Result<void> FakeCatalog::change() {
  POLYLOG_TRY(disk_.power.change());
  if (disk_.catalog_error) return fail(*disk_.catalog_error, "catalogue");
  return {};
}

Result<std::vector<meta::TopicRecord>> FakeCatalog::topics() const {
  std::vector<meta::TopicRecord> all;
  for (const auto& [name, row] : disk_.rows) all.push_back(row);
  return all;
}

Result<void> FakeCatalog::create_topic(const meta::TopicRecord& topic) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(change());
  if (!disk_.rows.emplace(topic.name, topic).second) return fail(Errc::exists, topic.name);
  return {};
}

Result<void> FakeCatalog::delete_topic(const std::string& name) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(disk_.power.change());
  if (disk_.rows.erase(name) == 0) return fail(Errc::not_found, name);
  return {};
}

Result<void> FakeCatalog::set_configs(const std::string& name,
                                      const std::map<std::string, std::string>& configs) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(change());
  const auto it = disk_.rows.find(name);
  if (it == disk_.rows.end()) return fail(Errc::not_found, name);
  it->second.configs = configs;
  return {};
}

Result<void> FakeCatalog::set_partitions(const std::string& name, std::int32_t partitions) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(change());
  disk_.rows.at(name).partitions = partitions;
  return {};
}

Result<void> FakeCatalog::set_scoped_configs(const meta::ConfigScope& scope,
                                             const std::map<std::string, std::string>& configs) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(change());
  disk_.scoped.erase(scope);
  if (!configs.empty()) disk_.scoped[scope] = configs;
  return {};
}

Result<void> FakeCatalog::change_quotas(const std::vector<meta::QuotaChange>& changes) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(change());
  for (const meta::QuotaChange& one : changes) {
    auto& values = disk_.quotas[one.entity];
    values.erase(one.key);
    if (one.value) values[one.key] = *one.value;
    if (values.empty()) disk_.quotas.erase(one.entity);
  }
  return {};
}

Result<meta::ProducerIdBlock> FakeCatalog::reserve_producer_ids(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  ++disk_.reservations;
  POLYLOG_TRY(change());
  const std::int64_t first = disk_.next_producer_id;
  disk_.next_producer_id += count;
  return meta::ProducerIdBlock{first, count};
}

// ------------------------------------------------------------------------------------ World

World::World(FakeDisk& disk_in, Settings settings_in)
    : disk(disk_in), settings(std::move(settings_in)) {
  Broker::Stores stores;
  stores.kafka = std::make_unique<FakeStore>(disk);
  if (disk.shared) stores.rocketmq = std::make_unique<SharedFakeStore>(*disk.shared);
  auto make = [this](Durability::Completion completion) {
    auto made = std::make_unique<SimulatedDurability>(fs, fs.volume(), std::move(completion));
    durability_ = made.get();
    return made;
  };
  broker_ = std::make_unique<Broker>(reactor, pool, fs, clock, settings,
                                     std::make_unique<FakeCatalog>(disk), std::move(stores), make);
  broker_->set_report([this](const std::string& line) { reports.push_back(line); });
  auto loaded = broker_->load();
  EXPECT_TRUE(loaded);
  if (loaded) notes = std::move(*loaded);
}

World::~World() = default;

std::shared_ptr<Partition> World::make(const std::string& topic,
                                       std::map<std::string, std::string> configs,
                                       std::int32_t partitions) {
  NewTopic request;
  request.name = topic;
  request.partitions = partitions;
  request.configs = std::move(configs);
  const Broker::TopicOutcome outcome = wait(broker_->create_topic(std::move(request)));
  EXPECT_EQ(outcome.error, Broker::TopicError::none) << outcome.message;
  sync_round();
  return broker_->find(topic, 0);
}

Batch batch_of(std::int32_t records, std::int64_t producer, std::int32_t sequence) {
  Batch batch;
  batch.info.records = records;
  batch.info.last = Offset(records - 1);
  batch.info.max_timestamp = Timestamp(1'700'000'000'000);
  if (producer >= 0) {
    batch.info.producer.id = ProducerId(producer);
    batch.info.producer.epoch = 0;
    batch.info.producer.first_sequence = sequence;
    batch.info.producer.last_sequence = sequence + records - 1;
  }
  return batch;
}

}  // namespace polylog::broker
