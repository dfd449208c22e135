#include "storage/segment/store.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "storage/rolled/points.h"

namespace polylog::storage::segment {
namespace {

constexpr Traits segment_traits{BatchFormat::segment, false, false, false};
constexpr std::int64_t ages_pause_ms = 10'000;  // tend() looks at thousands of logs no oftener

}  // namespace

std::string shard_name(const TopicPartition& id) {
  return id.topic + "-" + std::to_string(id.partition);
}

std::optional<TopicPartition> parse_shard_name(std::string_view name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  const std::string_view digits = name.substr(dash + 1);
  std::int32_t partition = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), partition);
  if (error != std::errc() || end != digits.data() + digits.size() || partition < 0) {
    return std::nullopt;
  }
  TopicPartition id{std::string(name.substr(0, dash)), partition};
  return shard_name(id) == name ? std::optional(std::move(id)) : std::nullopt;
}

SegmentStore::SegmentStore(fs::FileSystem& fs, const Clock& clock, const StoreConfig& config)
    : context_(fs, clock, config, "segment.ballast"), config_(config) {
  context_.grants = config.segment_grants;
  context_.sidecar_directory = config.sidecar_directory;
  context_.save_log_start = [this](const RolledLog& log, std::int64_t start) {
    return note_start(log.id(), start);
  };
  context_.heal_sidecar = [this] { return rewrite_sidecar(false); };
}

SegmentStore::~SegmentStore() = default;

const Traits& SegmentStore::traits() const { return segment_traits; }

std::string SegmentStore::directory_of(const TopicPartition& id) const {
  return fs::join(config_.directory, shard_name(id));
}

std::vector<std::shared_ptr<SegmentLog>> SegmentStore::logs() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<SegmentLog>> all;
  all.reserve(logs_.size());
  for (const auto& [id, log] : logs_) all.push_back(log);
  return all;
}

Result<std::shared_ptr<PartitionLog>> SegmentStore::create(const TopicPartition& id,
                                                           const Uuid& topic,
                                                           const LogConfig& config) {
  fs::FileSystem& fs = context_.fs;
  const std::string directory = directory_of(id);
  QueueNote fact;
  fact.topic = topic;
  fact.config = config;
  std::optional<QueueNote> before;
  bool outdated = false;
  {
    const std::lock_guard lock(mutex_);
    outdated = outdated_.contains(id);
    if (logs_.contains(id)) return fail(Errc::exists, directory + " exists");
    if (const auto found = facts_.find(id); found != facts_.end()) before = found->second;
  }
  if (fs::exists(fs, directory)) {
    // Left by a creation that failed half-way: there is nothing in it that anybody was told of.
    // Anything else that stands here and is not open does not read.
    if (!before) return fail(Errc::exists, directory + " holds data that is not served");
    POLYLOG_TRY(condemn(directory).map([](const auto&) {}));
  }
  std::vector<std::string> notes;
  auto opened = context_.index->open(notes);
  report(notes);
  POLYLOG_TRY(std::move(opened));
  context_.index->remove_shard(shard_name(id));
  // No rewrite of the sidecar may come between what is noted here and the log being listed.
  const std::lock_guard progress(progress_mutex_);
  if (outdated) POLYLOG_TRY(context_.sidecar->queue_synced(id, fact));
  {
    const std::lock_guard lock(mutex_);
    facts_[id] = fact;
  }
  POLYLOG_TRY(fs.create_directory(directory));
  auto log = std::make_shared<SegmentLog>(context_, id, topic, directory, shard_name(id), config);
  POLYLOG_TRY(log->start_empty(""));
  POLYLOG_TRY(context_.sidecar->queue(id, fact));
  log->fact_noted();
  log->begin_note(shard_name(id));
  const std::lock_guard lock(mutex_);
  outdated_.erase(id);
  logs_[id] = log;
  return std::shared_ptr<PartitionLog>(log);
}

std::shared_ptr<SegmentLog> SegmentStore::log_of(const TopicPartition& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = logs_.find(id);
  return found == logs_.end() ? nullptr : found->second;
}

std::shared_ptr<PartitionLog> SegmentStore::find(const TopicPartition& id) const {
  return log_of(id);
}

std::vector<TopicPartition> SegmentStore::partitions() const {
  const std::lock_guard lock(mutex_);
  std::vector<TopicPartition> all;
  all.reserve(logs_.size());
  for (const auto& [id, log] : logs_) all.push_back(id);
  std::sort(all.begin(), all.end());
  return all;
}

std::optional<Uuid> SegmentStore::topic_id(const TopicPartition& id) const {
  const std::shared_ptr<SegmentLog> log = log_of(id);
  if (log == nullptr || log->topic() == Uuid()) return std::nullopt;
  return log->topic();
}

Result<void> SegmentStore::remove(const TopicPartition& id) {
  const std::shared_ptr<SegmentLog> log = log_of(id);
  if (log == nullptr) return fail(Errc::not_found, directory_of(id) + " is not open");
  // Known until it is gone for good: a removal that failed can be tried again.
  POLYLOG_ASSIGN(doomed, condemn(log->directory()));
  QueueNote fact;
  {
    const std::lock_guard lock(mutex_);
    fact = facts_[id];
    logs_.erase(id);
    facts_.erase(id);
    outdated_.insert(id);
  }
  // Or else a directory of that name would be taken for this topic's. On a full disk it is the next
  // creation that says so.
  fact.removed = true;
  if (context_.sidecar->queue_synced(id, fact)) {
    const std::lock_guard lock(mutex_);
    outdated_.erase(id);
  }
  log->end_note();
  context_.index->remove_shard(log->shard());
  if (doomed.empty()) return {};
  POLYLOG_TRY(fs::remove_tree(context_.fs, doomed));
  // Journalling file systems hand blocks out again only when the removal is committed: on a full
  // disk that is what everybody waits for.
  return root_synced(context_.fs.sync_directory(config_.directory));
}

Result<std::string> SegmentStore::condemn(const std::string& directory) {
  std::string doomed = directory + std::string(removed_suffix);
  if (fs::exists(context_.fs, doomed)) POLYLOG_TRY(fs::remove_tree(context_.fs, doomed));
  if (auto renamed = context_.fs.rename(directory, doomed); !renamed) {
    if (renamed.error().code != Errc::not_found) return fail(renamed.error());
    doomed.clear();  // renamed by an attempt whose sync failed
  }
  POLYLOG_TRY(root_synced(context_.fs.sync_directory(config_.directory)));
  return doomed;
}

void SegmentStore::report(const std::vector<std::string>& notes) const {
  if (!config_.report) return;
  for (const std::string& line : notes) config_.report(line);
}

Result<void> SegmentStore::root_synced(Result<void> outcome) {
  if (!outcome) {
    for (const auto& log : logs()) log->root_sync_failed();
  }
  return outcome;
}

Result<void> SegmentStore::note_start(const TopicPartition& id, std::int64_t start) {
  const std::lock_guard progress(progress_mutex_);
  QueueNote fact;
  {
    const std::lock_guard lock(mutex_);
    const auto found = facts_.find(id);
    if (found == facts_.end()) return fail(Errc::not_found, directory_of(id) + " is not open");
    fact = found->second;
  }
  if (start <= fact.start) return {};
  fact.start = start;
  const auto note = [&]() -> Result<void> {
    if (context_.sidecar->silent()) POLYLOG_TRY(write_sidecar(false));
    return context_.sidecar->queue_synced(id, fact);
  };
  POLYLOG_TRY(context_.with_room(note));
  const std::lock_guard lock(mutex_);
  const auto found = facts_.find(id);
  if (found != facts_.end() && found->second.topic == fact.topic) found->second = fact;
  return {};
}

Result<Retained> SegmentStore::retain(const TopicPartition& id, Offset visible, Timestamp now) {
  const std::shared_ptr<SegmentLog> log = log_of(id);
  if (log == nullptr) return fail(Errc::not_found, directory_of(id) + " is not open");
  return log->retain(visible, now);
}

SidecarState SegmentStore::sidecar_state() const {
  SidecarState state;
  for (const auto& log : logs()) state.logs[log->shard()] = log->note();
  const std::lock_guard lock(mutex_);
  for (const auto& [id, log] : logs_) {
    const auto fact = facts_.find(id);
    if (fact != facts_.end()) state.queues[id] = fact->second;
  }
  return state;
}

Result<void> SegmentStore::rewrite_sidecar(bool clean) {
  const std::lock_guard progress(progress_mutex_);
  return write_sidecar(clean);
}

Result<void> SegmentStore::write_sidecar(bool clean) {
  context_.sidecar->begin_rewrite();
  SidecarState state = sidecar_state();
  state.clean = clean;
  POLYLOG_TRY(context_.sidecar->rewrite(state));
  for (const auto& log : logs()) {
    const auto note = state.logs.find(log->shard());
    if (note != state.logs.end()) log->noted_anew(note->second);
  }
  return {};
}

Result<void> SegmentStore::checkpoint() {
  Result<void> outcome;
  for (const auto& log : logs()) {
    if (auto done = log->checkpoint(); !done) outcome = done;
  }
  // Each for itself: one that fails must not keep the others from being mended.
  auto indexed = context_.index->sync();
  if (outcome) outcome = indexed;
  if (context_.sidecar->wants_rewrite()) {
    auto rewritten = rewrite_sidecar(false);
    if (outcome) outcome = rewritten;
  }
  context_.lay_ballast();
  return outcome;
}

// A sidecar that fell silent on a full disk keeps new epochs, and with them writes after a restart,
// from going on; an index that failed keeps sealed segments from being done with.
Result<void> SegmentStore::tend(Timestamp now) {
  std::vector<std::string> notes;
  Result<void> outcome = context_.index->mend(notes);
  report(notes);
  // Each for itself, as in checkpoint().
  if (context_.sidecar->silent()) {
    auto healed = rewrite_sidecar(false);
    if (outcome) outcome = healed;
  }
  auto rolled = roll_by_age(now);
  return outcome ? rolled : outcome;
}

// Retention and readers of the files know a sealed file as finished; one that nobody writes to any
// more would never be.
Result<void> SegmentStore::roll_by_age(Timestamp now) {
  const bool clock_went_back = now < ages_seen_;
  if (!clock_went_back && now - ages_seen_ < ages_pause_ms) return {};
  ages_seen_ = now;
  Result<void> outcome;
  for (const auto& log : logs()) {
    if (auto rolled = log->roll_by_age(now); !rolled && outcome) outcome = rolled;
  }
  return outcome;
}

bool SegmentStore::points_due() const { return storage::points_due(context_); }

// A point counts on what the index has on the disk, and that of the rounds since the last look.
std::vector<std::shared_ptr<Log>> SegmentStore::advance_points() {
  const auto all = logs();
  auto unsynced = storage::advance_points(context_, {all.begin(), all.end()});
  // One that failed is mended by tend(); until then a start scans from where it ends.
  static_cast<void>(context_.index->sync());
  return unsynced;
}

Result<void> SegmentStore::close() {
  for (const auto& log : logs()) POLYLOG_TRY(log->close_files());
  POLYLOG_TRY(context_.index->sync());
  POLYLOG_ASSIGN(volume, context_.fs.open_volume(config_.directory));
  POLYLOG_TRY(volume->sync());
  for (const auto& log : logs()) log->all_synced();
  POLYLOG_TRY(rewrite_sidecar(true));
  const std::string marker = fs::join(config_.sidecar_directory, clean_stop_file);
  POLYLOG_TRY(fs::replace_file(context_.fs, marker, {}));
  lock_.reset();
  return {};
}

}  // namespace polylog::storage::segment
