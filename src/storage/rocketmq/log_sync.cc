#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "bytes/writer.h"
#include "format/rocketmq/checkpoint.h"
#include "format/rocketmq/names.h"
#include "storage/rocketmq/log.h"
#include "storage/rocketmq/queue_states.h"

// What of the shared log runs beside the appends, on threads that may wait: sync rounds, flushing
// index entries, truncation, expiry, checkpoints, the clean stop.
namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

namespace {

constexpr std::size_t delete_batch_max = 10;  // deleteFileBatchMax
constexpr std::int64_t checkpoint_bytes = std::int64_t{256} << 20;
constexpr std::int64_t checkpoint_bytes_max = std::int64_t{2} << 30;
constexpr std::int64_t checkpoint_bytes_per_queue = std::int64_t{128} << 10;

}  // namespace

// --------------------------------------------------------------------------------- sync rounds

void SharedLog::capture_files(DirtyLog& out, Round& round) {
  for (const CommitFilePtr& file : commit_log_.files()) {
    if (!file->dirty) continue;
    RoundFile entry;
    entry.base = file->base;
    entry.inode = file->inode;
    entry.durable_bytes = file->end;
    entry.first_block = file->reported_blocks;
    if (file->sums.size() == file->end) {
      const auto& blocks = file->sums.blocks();
      entry.blocks.assign(blocks.begin() + file->reported_blocks, blocks.end());
      entry.tail = file->sums.tail();
    }
    out.files.push_back(file->file);
    round.files.emplace_back(file, std::move(entry));
  }
}

void SharedLog::begin_round(DirtyLog& out, Round round) {
  out.end = LogPosition(written_end_);
  out.log = shared_from_this();
  out.ticket = next_ticket_++;
  rounds_.emplace(out.ticket, std::move(round));
}

bool SharedLog::capture_round(DirtyLog& out) {
  Round round;
  capture_files(out, round);
  if (std::exchange(facts_dirty_, false)) {
    round.facts = sidecar_->extent();
    out.files.push_back(round.facts.file);
    out.directories.push_back(setup_.sidecar_directory);
  }
  if (std::exchange(directory_dirty_, false)) {
    out.directories.push_back(commit_log_.directory());
  }
  if (out.files.empty() && out.directories.empty()) return false;
  begin_round(out, std::move(round));
  return true;
}

Result<std::optional<DirtyLog>> SharedLog::dirty() {
  const std::lock_guard sync_lock(sync_mutex_);
  // Written where the original looks for it; nothing that is acknowledged depends on it.
  if (auto written = write_topics(); !written && written.error().code != Errc::no_space) {
    return fail(std::move(written).error());
  }
  POLYLOG_TRY(secure_facts());
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  DirtyLog out;
  if (!capture_round(out)) return std::optional<DirtyLog>();
  return std::optional(std::move(out));
}

// Facts in a sidecar whose sync failed are not on the disk, whatever a later sync says: they go
// into a new one.
Result<void> SharedLog::secure_facts() {
  {
    const std::lock_guard lock(mutex_);
    if (!facts_dirty_ || !sidecar_->silent()) return {};
    facts_dirty_ = false;  // those that come from here on are for a round to cover
  }
  auto rewritten = rewrite_sidecar(false);
  if (rewritten) return {};
  const std::lock_guard lock(mutex_);
  facts_dirty_ = true;
  return fail(Errc::no_space, rewritten.error().to_string());
}

void SharedLog::settled(const DirtyLog& done, bool synced) {
  const std::lock_guard settle_lock(settle_mutex_);
  std::vector<RoundFile> files;
  LogPosition durable;
  Round round;
  {
    const std::lock_guard lock(mutex_);
    const auto found = rounds_.find(done.ticket);
    POLYLOG_ASSERT(found != rounds_.end());
    round = std::move(found->second);
    rounds_.erase(found);
    if (!synced) {
      failed_ = true;
      return;
    }
    durable_end_ = std::max(durable_end_, done.end.value());
    durable = LogPosition(durable_end_);
    for (auto& [file, entry] : round.files) {
      // Another round, begun later, was quicker, and said more.
      if (entry.durable_bytes < file->durable_bytes) continue;
      file->durable_bytes = entry.durable_bytes;
      file->reported_blocks =
          std::max(file->reported_blocks,
                   entry.first_block + static_cast<std::uint32_t>(entry.blocks.size()));
      file->durable_tail = entry.tail;
      file->fresh = false;
      if (file->end == entry.durable_bytes) file->dirty = false;
      files.push_back(std::move(entry));
    }
  }
  if (round.facts.file != nullptr) sidecar_->covered(round.facts);
  sidecar_->round(sidecar_id_, durable, files);
}

// -------------------------------------------------------------------------------- index entries

void SharedLog::flushed(const std::vector<std::shared_ptr<Queue>>& queues,
                        const std::vector<std::size_t>& counts) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < queues.size(); ++i) {
    Queue& queue = *queues[i];
    if (queue.removed_) continue;
    const auto count = static_cast<std::ptrdiff_t>(counts[i]);
    queue.pending_.erase(queue.pending_.begin(), queue.pending_.begin() + count);
    queue.flushed_ += count;
    if (count > 0 && std::exchange(queue.touched_, checkpoints_) != checkpoints_) {
      ++touched_queues_;
    }
    if (queue.pending_.empty()) {
      if (queue.pending_.capacity() > 64) queue.pending_.shrink_to_fit();
    } else {
      list_pending(queue);
    }
  }
}

Result<void> SharedLog::flush_entries() {
  const std::lock_guard flush_lock(flush_mutex_);
  return flush_entries_locked();
}

Result<void> SharedLog::flush_entries_locked() {
  std::vector<std::shared_ptr<Queue>> queues;
  KeyIndexFiles::Keys keys;
  {
    const std::lock_guard lock(mutex_);
    queues.swap(with_pending_);
    for (const auto& queue : queues) queue->listed_ = false;
    keys = index_.take();
  }
  std::vector<std::size_t> counts(queues.size(), 0);
  Result<void> outcome;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    std::vector<Queue::Entry> entries;
    std::int64_t from = 0;
    {
      const std::lock_guard lock(mutex_);
      if (queues[i]->removed_) continue;
      entries = queues[i]->pending_;
      from = queues[i]->flushed_;
    }
    if (entries.empty()) continue;
    if (auto wrote = queues[i]->files_.append(from, entries); wrote) {
      counts[i] = entries.size();
    } else if (outcome) {
      outcome = std::move(wrote);  // they stay in memory, and are tried again
    }
  }
  flushed(queues, counts);
  if (auto wrote = index_.write(keys); !wrote && outcome) outcome = std::move(wrote);
  if (index_.sync_failed()) fail_log();
  return outcome;
}

Result<void> SharedLog::prepare_next() {
  const std::lock_guard flush_lock(flush_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (failed_ || closed_ || setup_.config.files_ahead <= 0 || commit_log_.next_ready()) return {};
    // Only once the active file is being filled in earnest: a small store stays one file.
    const std::uint64_t used = commit_log_.active().end;
    if (used * 2 < static_cast<std::uint64_t>(commit_log_.file_bytes())) return {};
  }
  // Not in commitlog/, where the original takes every file for a part of the log.
  const std::string temporary = fs::join(setup_.sidecar_directory, "rocketmq.next");
  POLYLOG_ASSIGN(next, commit_log_.prepare(temporary));
  Result<bool> adopted;
  {
    const std::lock_guard lock(mutex_);
    adopted = commit_log_.adopt_next(std::move(next));
    directory_dirty_ = true;
  }
  POLYLOG_TRY(adopted);
  return *adopted ? Result<void>() : fs_.remove(temporary);
}

// config/topics.json: how many queues a topic has, for the original's clients. Topics that only it
// knows stay as it wrote them.
Result<void> SharedLog::write_topics() {
  stored::TopicTable topics;
  {
    const std::lock_guard lock(mutex_);
    if (!topics_dirty_) return {};
    topics = topics_;
    std::map<std::string, std::int32_t> counts;
    for (const auto& [id, queue] : queues_) {
      std::int32_t& count = counts[queue->stored_topic_];
      count = std::max(count, id.partition + 1);
    }
    for (const auto& [id, removed] : removed_) {
      const auto name = stored_name(id.topic);
      if (name && !counts.contains(*name)) topics.topics.erase(*name);
    }
    for (const auto& [name, count] : counts) {
      if (stored::is_internal_topic(name)) continue;
      const bool known = topics.topics.contains(name);
      stored::TopicConfig& topic = topics.topics[name];
      topic.read_queue_nums = known ? std::max(topic.read_queue_nums, count) : count;
      topic.write_queue_nums = known ? std::max(topic.write_queue_nums, count) : count;
    }
    topics_dirty_ = false;
  }
  topics.version.next(clock_.now().value());
  const std::string directory = fs::join(setup_.directory, stored::config_directory);
  const auto write = [&]() -> Result<void> {
    POLYLOG_TRY(fs::create_directories(fs_, directory));
    return fs::replace_file(fs_, fs::join(directory, stored::topics_file),
                            as_bytes(stored::format_topics(topics)));
  };
  auto written = write();
  const std::lock_guard lock(mutex_);
  if (written) {
    topics_ = std::move(topics);
  } else {
    topics_dirty_ = true;
  }
  return written;
}

// ---------------------------------------------------------------------------------- truncation

// Those of a prefix can't be told from those of the whole.
Result<BlockSums> sums_of(const CommitFile& file, std::uint64_t bytes) {
  BlockSums sums;
  POLYLOG_TRY(scan(*file.file, 0, bytes, MessageDecoder(), bytes, [&](const ScanFrame& frame) {
                sums.add_frame(frame.bytes);
                return ScanStep::next;
              }).map([](const auto&) {}));
  return sums;
}

// Producer state as it was at `end`, of queues that lose messages: what the last recovery point
// says if it lies below, and the log from there on.
Result<SharedLog::Producers> SharedLog::producers_at(LogPosition end, const Cuts& cuts) const {
  Producers producers;
  std::int64_t from = 0;
  std::vector<CommitFilePtr> files;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [queue, count] : cuts) {
      if (count < queue->end_) producers[queue->id_] = ProducerState();
    }
    files = commit_log_.files();
    if (last_point_ && last_point_->offset <= end.value()) {
      POLYLOG_ASSIGN(states, decode_queue_states(last_point_->producers));
      from = last_point_->offset;
      for (QueueState& state : states) {
        const auto queue = queues_.find(state.id);
        if (queue == queues_.end() || queue->second->note_.birth >= from) continue;
        if (const auto known = producers.find(state.id); known != producers.end()) {
          known->second = std::move(state.producers);
        }
      }
    }
  }
  const auto note = [&](const ScanFrame& frame) {
    const auto message = stored::parse(frame.bytes);
    if (!message) return ScanStep::corrupt;
    const auto known =
        producers.find({stored::from_stored_topic(message->topic), message->queue_id});
    const auto text = stored::find_property(message->properties, stored::property::kafka_producer);
    if (known == producers.end() || !text) return ScanStep::next;
    const std::lock_guard lock(mutex_);
    const auto queue = queues_.find(known->first);
    const auto part = stored::parse_producer_part(*text);
    if (part && queue != queues_.end() && message->physical_offset >= queue->second->note_.birth) {
      note_producer(known->second, *message, *part);
    }
    return ScanStep::next;
  };
  for (const CommitFilePtr& file : files) {
    if (file->position() <= from || file->base >= end.value()) continue;
    const auto begin = static_cast<std::uint64_t>(std::max<std::int64_t>(from - file->base, 0));
    const auto stop = std::min(file->end, static_cast<std::uint64_t>(end.value() - file->base));
    POLYLOG_TRY(
        scan(*file->file, begin, stop, MessageDecoder(), stop, note).map([](const auto&) {}));
  }
  return producers;
}

Result<void> SharedLog::truncate(LogPosition end) {
  const std::lock_guard flush_lock(flush_mutex_);
  const std::lock_guard sync_lock(sync_mutex_);
  POLYLOG_TRY(flush_entries_locked());
  Cuts cuts;
  for (const auto& queue : queues()) {
    POLYLOG_ASSIGN(count, queue->count_below(end));
    cuts.emplace_back(queue, count);
  }
  // Noted before it happens: what the sums say of the cut file no longer holds.
  CommitFilePtr file;
  {
    const std::lock_guard lock(mutex_);
    POLYLOG_TRY(check_usable());
    if (end.value() >= written_end_) return {};
    file = commit_log_.find(end.value());
    if (file == nullptr) {
      return fail(Errc::out_of_range, "position " + std::to_string(end.value()) + " is gone");
    }
  }
  const auto keep = static_cast<std::uint64_t>(end.value() - file->base);
  POLYLOG_ASSIGN(sums, sums_of(*file, keep));
  POLYLOG_ASSIGN(producers, producers_at(end, cuts));
  if (file->check != nullptr) POLYLOG_TRY(file->check->cut(*file->file, keep));
  POLYLOG_TRY(sidecar_->cut(sidecar_id_, file->base, keep, end));
  std::vector<CommitFilePtr> gone;
  std::uint64_t old_end = 0;
  {
    const std::lock_guard lock(mutex_);
    POLYLOG_TRY(check_usable());
    drop_staged();
    gone = commit_log_.drop_from(end.value() + 1);
    CommitFile& active = commit_log_.active();
    old_end = active.end;
    active.end = keep;
    active.full = false;
    active.dirty = true;
    active.sums = std::move(sums);
    active.reported_blocks = 0;
    active.durable_bytes = std::min(active.durable_bytes, keep);
    written_end_ = commit_log_.end();
    durable_end_ = std::min(durable_end_, written_end_);
    epochs_.truncate_end(LogPosition(written_end_));
    if (last_point_ && last_point_->offset > written_end_) last_point_.reset();
    for (const auto& [queue, count] : cuts) {
      queue->cut_entries(count);
      queue->last_end_ = std::min(queue->last_end_, written_end_);
      const auto cut = producers.find(queue->id_);
      if (cut != producers.end()) queue->producers_ = std::move(cut->second);
    }
    directory_dirty_ = true;
  }
  auto done = erase_cut(*file, old_end, gone);
  if (done) done = index_.remove_beyond(end.value());
  for (const auto& [queue, count] : cuts) {
    if (done) done = queue->files_.cut(count);
  }
  // Half cut, it must not go on: what is gone here could come back.
  if (!done) fail_log();
  return done;
}

// Zeros from the end on, on disk before anything else stands there: a record that was cut off must
// not read as the one behind a new one, nor as one of a topic that is made later.
Result<void> SharedLog::erase_cut(CommitFile& file, std::uint64_t old_end,
                                  const std::vector<CommitFilePtr>& gone) {
  for (const CommitFilePtr& dropped : gone) POLYLOG_TRY(fs_.remove(dropped->path));
  const std::vector<std::uint8_t> zeros(std::min<std::uint64_t>(old_end - file.end, 1 << 20));
  for (std::uint64_t at = file.end; at < old_end; at += zeros.size()) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(zeros.size(), old_end - at));
    POLYLOG_TRY(file.file->write(at, ByteView(zeros).first(count)));
  }
  POLYLOG_TRY(file.file->sync());
  return fs_.sync_directory(commit_log_.directory());
}

// -------------------------------------------------------------------------------------- expiry

std::size_t SharedLog::expired_files(Timestamp now, bool forced) const {
  const auto& files = commit_log_.files();
  std::size_t count = 0;
  for (; count + 1 < files.size() && count < delete_batch_max; ++count) {
    if (forced) continue;
    const auto info = files[count]->file->info();
    if (!info || now - info->modified <= setup_.config.reserved_ms) break;
  }
  // Never what nobody could have read yet.
  while (count > 0 && files[count]->base > durable_end_) --count;
  return count;
}

Result<Retained> SharedLog::expire_files(Timestamp now, bool forced) {
  const std::lock_guard flush_lock(flush_mutex_);
  Retained retained;
  std::vector<CommitFilePtr> gone;
  {
    const std::lock_guard lock(mutex_);
    if (failed_ || closed_ || commit_log_.empty()) return retained;
    const bool suspended = std::any_of(queues_.begin(), queues_.end(), [](const auto& queue) {
      return queue.second->note_.config.retention_suspended;
    });
    if (suspended) return retained;
    const std::size_t count = expired_files(now, forced);
    if (count == 0) return retained;
    gone = commit_log_.drop_oldest(count);
  }
  for (const CommitFilePtr& file : gone) {
    POLYLOG_TRY(fs_.remove(file->path));
    ++retained.segments_removed;
    retained.bytes_removed += file->end;
  }
  sidecar_->files_dropped(sidecar_id_, gone.back()->base + 1);
  if (auto synced = fs_.sync_directory(commit_log_.directory()); !synced) {
    fail_log();
    return fail(std::move(synced).error());
  }
  POLYLOG_TRY(raise_first_offsets());
  return retained;
}

// The queues follow the log: entries for records that are gone are not served, and files that hold
// nothing else are deleted.
Result<void> SharedLog::raise_first_offsets() {
  std::int64_t log_start = 0;
  {
    const std::lock_guard lock(mutex_);
    log_start = commit_log_.start();
  }
  for (const auto& queue : queues()) {
    std::int64_t low = 0, high = 0;
    {
      const std::lock_guard lock(mutex_);
      low = queue->first_;
      high = queue->end_;
      if (queue->last_end_ <= log_start) low = high;
    }
    POLYLOG_ASSIGN(first, queue->first_from(low, high, log_start));
    {
      const std::lock_guard lock(mutex_);
      queue->first_ = std::max(queue->first_, first);
    }
    POLYLOG_TRY(queue->files_.remove_below(first));
  }
  return index_.remove_below(log_start);
}

// ---------------------------------------------------------------------------------- checkpoints

std::vector<std::uint8_t> SharedLog::encode_queues() const {
  // What is staged is not in the log yet: a start would meet it a second time in its scan.
  std::map<const Queue*, ProducerState> written;
  for (auto staged = staged_.rbegin(); staged != staged_.rend(); ++staged) {
    auto [state, added] = written.try_emplace(staged->queue.get());
    if (added) state->second = staged->queue->producers_;
    state->second.restore(staged->undo);
  }
  ByteWriter writer;
  for (const auto& [id, queue] : queues_) {
    const auto changed = written.find(queue.get());
    const ProducerState& state = changed == written.end() ? queue->producers_ : changed->second;
    if (queue->end_ == 0) continue;
    encode_queue_state(writer, id, queue->end_, state);
  }
  return writer.take_bytes();
}

RecoveryPoint SharedLog::capture_point() const {
  RecoveryPoint point;
  if (!commit_log_.empty()) {
    point.base = commit_log_.active().base;
    point.position = commit_log_.active().end;
  }
  point.offset = written_end_;
  point.max_timestamp = Timestamp(last_store_time_);
  point.epochs = epochs_.entries();
  point.producers = encode_queues();
  return point;
}

Result<void> SharedLog::sync_volume() {
  POLYLOG_ASSIGN(volume, fs_.open_volume(setup_.directory));
  auto synced = volume->sync();
  if (!synced) fail_log();
  return synced;
}

// The file that the original's recovery goes by, and what the sidecar is bound to: its identity is
// noted before it takes its place.
Result<void> SharedLog::write_checkpoint(const RecoveryPoint& point) {
  stored::Checkpoint checkpoint;
  checkpoint.physical_timestamp = std::max<std::int64_t>(point.max_timestamp.value(), 0);
  checkpoint.queue_timestamp = checkpoint.physical_timestamp;
  checkpoint.index_timestamp = index_.full_until();
  checkpoint.confirm_physical_offset = point.offset;
  const std::string path = fs::join(setup_.directory, stored::checkpoint_file);
  const std::string temporary = path + ".tmp";
  POLYLOG_ASSIGN(file, fs_.open(temporary, fs::OpenMode::create));
  POLYLOG_TRY(file->truncate(0));
  POLYLOG_TRY(file->write(0, stored::encode_checkpoint(checkpoint)));
  POLYLOG_TRY(file->sync());
  POLYLOG_ASSIGN(info, file->info());
  const FileIdentity identity = FileIdentity::of(info);
  POLYLOG_TRY(sidecar_->mark(identity));
  {
    const std::lock_guard lock(mutex_);
    marks_.push_back(identity);
    if (marks_.size() > 2) marks_.erase(marks_.begin());
  }
  POLYLOG_TRY(fs_.rename(temporary, path));
  auto synced = fs_.sync_directory(setup_.directory);
  if (!synced) fail_log();
  return synced;
}

// A round of its own with the entries on board: what it captures is durable in the log, the queues
// and the index alike once the volume is synced, so a start may begin there. Rounds that
// acknowledgements wait for go on beside it, so it leaves to them what they rely on: facts and
// names.
Result<void> SharedLog::save_progress() {
  RecoveryPoint point;
  DirtyLog round;
  {
    const std::lock_guard lock(mutex_);
    POLYLOG_TRY(check_usable());
    Round captured;
    capture_files(round, captured);
    begin_round(round, std::move(captured));
    point = capture_point();
  }
  // Entries of everything below the point, and some beyond it: a start dispatches those again.
  Result<void> flushed = flush_entries_locked();
  {
    const std::lock_guard lock(mutex_);
    ++checkpoints_;
    touched_queues_ = 0;
  }
  if (flushed) flushed = index_.checkpoint();
  if (index_.sync_failed()) fail_log();
  Result<void> synced = sync_volume();
  settled(round, synced.has_value());
  sidecar_->write_noted();  // a checkpoint that is given up below has noted a round all the same
  POLYLOG_TRY(synced);
  POLYLOG_TRY(flushed);
  const std::lock_guard sync_lock(sync_mutex_);
  if (sidecar_->wants_rewrite()) POLYLOG_TRY(rewrite_sidecar(false));
  POLYLOG_TRY(write_checkpoint(point));
  sidecar_->recovery_point(sidecar_id_, point);
  const std::lock_guard lock(mutex_);
  last_point_ = std::move(point);
  return {};
}

// With many queues less often: each has a file, and each file is a write of its own.
bool SharedLog::wants_checkpoint() const {
  if (sidecar_->wants_rewrite()) return true;
  const std::lock_guard lock(mutex_);
  const std::int64_t begins = last_point_ ? last_point_->offset : 0;
  const std::int64_t enough = std::clamp(touched_queues_ * checkpoint_bytes_per_queue,
                                         checkpoint_bytes, checkpoint_bytes_max);
  return !failed_ && written_end_ - begins > enough;
}

Result<void> SharedLog::note_progress() {
  RecoveryPoint point;
  {
    const std::lock_guard lock(mutex_);
    point = capture_point();
  }
  POLYLOG_TRY(write_checkpoint(point));
  sidecar_->recovery_point(sidecar_id_, point);
  const std::lock_guard lock(mutex_);
  last_point_ = std::move(point);
  return {};
}

Result<void> SharedLog::checkpoint() {
  const std::lock_guard flush_lock(flush_mutex_);
  {
    const std::lock_guard sync_lock(sync_mutex_);
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || failed_) return {};
    }
    POLYLOG_TRY(write_topics());
  }
  return save_progress();
}

// Under the lock.
SidecarState SharedLog::sidecar_state() const {
  SidecarState state;
  state.marks = marks_;
  LogNote note;
  note.id = sidecar_id_;
  note.durable = LogPosition(durable_end_);
  // Whoever opens the log begins the next epoch; it must not be begun a second time for other
  // records, even if a power cut takes every record of it.
  note.announced = std::max({epoch_, epochs_.latest() + 1, announced_before_ + 1});
  note.epochs = epochs_.entries();
  note.epochs_lost = epochs_lost_;
  for (const CommitFilePtr& file : commit_log_.files()) {
    FileNote& entry = note.files[file->base];
    entry.inode = file->inode;
    if (file->sums.size() < file->durable_bytes) continue;
    if (file->sums.size() == file->durable_bytes) {
      entry.sums = file->sums;
    } else {
      const auto whole = static_cast<std::size_t>(file->durable_bytes / BlockSums::block_bytes);
      const auto& blocks = file->sums.blocks();
      entry.sums.restore(0, std::span(blocks).first(std::min(whole, blocks.size())),
                         file->durable_tail, file->durable_bytes);
    }
  }
  state.logs[std::string(stored::commit_log_directory)] = std::move(note);
  for (const auto& [id, queue] : queues_) state.queues[id] = queue->note_;
  for (const auto& [id, removed] : removed_) state.queues[id] = removed;
  return state;
}

Result<void> SharedLog::rewrite_sidecar(bool clean) {
  // What is noted from here on goes into the new file, whether the state has it or not.
  sidecar_->begin_rewrite();
  SidecarState state;
  {
    const std::lock_guard lock(mutex_);
    state = sidecar_state();
    state.logs.begin()->second.recovery = clean ? capture_point() : last_point_;
  }
  state.clean = clean;
  POLYLOG_TRY(sidecar_->rewrite(state));
  sidecar_id_ = state.logs.begin()->second.id;
  return {};
}

Result<void> SharedLog::close() {
  const std::lock_guard flush_lock(flush_mutex_);
  CommitFilePtr unused;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return fail(Errc::unavailable, setup_.directory + ": can't be closed cleanly");
    POLYLOG_ASSERT(staged_.empty());
    unused = commit_log_.take_prepared();
  }
  if (unused != nullptr) POLYLOG_TRY(fs_.remove(unused->path));
  {
    const std::lock_guard sync_lock(sync_mutex_);
    POLYLOG_TRY(write_topics());
  }
  POLYLOG_TRY(save_progress());
  {
    const std::lock_guard lock(mutex_);
    POLYLOG_ASSERT(with_pending_.empty() && rounds_.empty());
    closed_ = true;
  }
  {
    const std::lock_guard sync_lock(sync_mutex_);
    POLYLOG_TRY(rewrite_sidecar(true));
  }
  // The mark of an orderly stop, the original's too, is that this file is gone.
  const std::string abort = fs::join(setup_.directory, stored::abort_file);
  if (fs::exists(fs_, abort)) POLYLOG_TRY(fs_.remove(abort));
  return fs_.sync_directory(setup_.directory);
}

void SharedLog::release() {
  Queues queues;
  std::vector<std::shared_ptr<Queue>> pending;
  {
    const std::lock_guard lock(mutex_);
    queues.swap(queues_);
    pending.swap(with_pending_);
    by_stored_name_.clear();
    drop_staged();
  }
}

}  // namespace polylog::storage::rocketmq
