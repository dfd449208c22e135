#include "storage/rocketmq/log.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "bytes/endian.h"
#include "format/rocketmq/names.h"
#include "format/rocketmq/property_crc.h"

// What runs where requests run: staging, the one write of a turn, dispatch, plain questions.
namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

namespace {

constexpr std::uint64_t writeback_bytes = std::uint64_t{8} << 20;
constexpr std::int64_t busy_after_ns = 1'000'000'000;  // osPageCacheBusyTimeOutMills

KeyIndexFiles::Setup index_setup(const SharedLog::Setup& setup) {
  return {fs::join(setup.directory, stored::index_directory), setup.config.index_enabled,
          setup.config.index_slots, setup.config.index_entries};
}

}  // namespace

Result<std::string> stored_name(const std::string& topic) {
  const bool own = stored::is_internal_topic(topic) || topic.find_first_of("%|") != topic.npos;
  return own ? Result<std::string>(topic) : stored::to_stored_topic(topic);
}

bool proves_itself(ByteView record, const stored::Message& message, bool block_good) {
  const stored::PropertyCrc whole = stored::check_property_crc(record);
  if (whole != stored::PropertyCrc::absent) return whole == stored::PropertyCrc::good;
  // Text ends with a separator or a letter; zeros are where a write did not arrive.
  const bool torn = !message.properties.empty() && message.properties.back() == '\0';
  return block_good && !torn && stored::crc_matches(message);
}

SharedLog::SharedLog(fs::FileSystem& fs, const Clock& clock, const Setup& setup)
    : fs_(fs),
      clock_(clock),
      setup_(setup),
      files_(fs, setup.open_files_max),
      queue_files_{fs, files_, setup.config.queue_file_bytes},
      commit_log_(fs, fs::join(setup.directory, stored::commit_log_directory),
                  setup.config.commit_log_file_bytes),
      index_(fs, clock, index_setup(setup)) {}

LogPosition SharedLog::end() const {
  const std::lock_guard lock(mutex_);
  return LogPosition(written_end_);
}

LogPosition SharedLog::durable_end() const {
  const std::lock_guard lock(mutex_);
  return LogPosition(durable_end_);
}

LeaderEpoch SharedLog::epoch() const {
  const std::lock_guard lock(mutex_);
  return std::max({epoch_, epochs_.latest(), announced_before_});
}

bool SharedLog::unclean() const {
  const std::lock_guard lock(mutex_);
  return unclean_;
}

Result<void> SharedLog::check_usable() const {
  if (failed_) {
    return fail(Errc::unavailable, setup_.directory +
                                       ": a sync failed; writes are refused until "
                                       "the broker restarts");
  }
  if (closed_) return fail(Errc::unavailable, setup_.directory + ": closed");
  return {};
}

void SharedLog::fail_log() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
}

// The layout's bytes don't carry epochs: where this one begins is noted before its first record.
Result<void> SharedLog::begin_epoch(LeaderEpoch epoch) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  if (epoch < std::max(epoch_, epochs_.latest())) {
    return fail(Errc::fenced, "epoch " + std::to_string(epoch.value()) + " is behind " +
                                  std::to_string(std::max(epoch_, epochs_.latest()).value()));
  }
  if (epoch == epoch_ && epoch == epochs_.latest()) return {};
  POLYLOG_ASSERT(staged_.empty());
  const EpochList::Entry entry{epoch, LogPosition(written_end_)};
  EpochList epochs = epochs_;
  if (epochs.assign(entry.epoch, entry.start)) {
    POLYLOG_TRY(sidecar_->epoch_start(sidecar_id_, entry));
    facts_dirty_ = true;
    epochs_ = std::move(epochs);
  }
  epoch_ = epoch;
  return {};
}

// -------------------------------------------------------------------------------------- append

Result<Staged> SharedLog::stage(Queue& queue, const Batch& batch) {
  POLYLOG_ASSERT(batch.format == BatchFormat::rocketmq && !batch.bytes.empty());
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  if (queue.removed_) return fail(Errc::not_found, queue.id_.topic + " was removed");
  const auto file_bytes = static_cast<std::uint64_t>(commit_log_.file_bytes());
  if (batch.bytes.size() + stored::blank_bytes > file_bytes) {
    return fail(Errc::too_large, "a batch of " + std::to_string(batch.bytes.size()) +
                                     " bytes does not fit into a commit log file");
  }
  if (commit_log_.empty()) POLYLOG_TRY(add_file(written_end_));
  // One batch stays in one file; eight bytes are always left for the blank record.
  const std::uint64_t used = commit_log_.active().end + stage_.size();
  if (commit_log_.active().full || used + batch.bytes.size() + stored::blank_bytes > file_bytes) {
    POLYLOG_TRY(write_staged_locked());
    POLYLOG_TRY(roll());
  }
  staged_store_time_ = std::max({clock_.now().value(), last_store_time_, staged_store_time_});
  StagedBatch staged;
  staged.queue = queue.shared_from_this();
  staged.from = stage_.size();
  const ByteView bytes = batch.bytes.view();
  stage_.insert(stage_.end(), bytes.begin(), bytes.end());
  stored::Placement placement;
  placement.queue_offset = queue.staged_end_;
  placement.physical_offset = written_end_ + static_cast<std::int64_t>(staged.from);
  placement.store_timestamp = staged_store_time_;
  MutableBytes rest = MutableBytes(stage_).subspan(staged.from);
  while (!rest.empty()) {
    const stored::FrameHead head = stored::next_frame(rest, rest.size());
    POLYLOG_ASSERT(head.state == stored::FrameState::complete);
    const auto size = static_cast<std::size_t>(head.size);
    stored::patch_placement(rest.first(size), placement);
    if (stored::has_property_crc_room(rest.first(size))) {
      stored::patch_property_crc(rest.first(size));
    }
    ++placement.queue_offset;
    placement.physical_offset += static_cast<std::int64_t>(size);
    rest = rest.subspan(size);
  }
  staged.to = stage_.size();
  staged.records = placement.queue_offset - queue.staged_end_;
  BatchInfo info = batch.info;
  info.first = Offset(queue.staged_end_);
  info.last = Offset(placement.queue_offset - 1);
  const LogPosition end(placement.physical_offset);
  staged.undo = queue.producers_.update(info, end);
  staged_.push_back(std::move(staged));
  queue.staged_end_ = placement.queue_offset;
  return Staged{{info.first, info.last + 1}, end};
}

Result<void> SharedLog::add_file(std::int64_t base) {
  POLYLOG_TRY(commit_log_.add_file(base));
  directory_dirty_ = true;
  return {};
}

Result<void> SharedLog::roll() {
  CommitFile& file = commit_log_.active();
  const auto file_bytes = static_cast<std::uint64_t>(commit_log_.file_bytes());
  if (!file.full) {
    POLYLOG_ASSERT(file_bytes - file.end >= stored::blank_bytes);
    const auto blank = stored::blank_record(static_cast<std::int32_t>(file_bytes - file.end));
    POLYLOG_TRY(file.file->write(file.end, ByteView(blank)));
    if (file.sums.size() == file.end) file.sums.add_frame(blank);
    file.end += blank.size();
    file.full = true;
    file.dirty = true;
  }
  POLYLOG_TRY(add_file(file.base + commit_log_.file_bytes()));
  written_end_ = commit_log_.end();
  return {};
}

Result<void> SharedLog::write_staged() {
  const std::lock_guard lock(mutex_);
  return write_staged_locked();
}

void SharedLog::drop_staged() {
  for (auto staged = staged_.rbegin(); staged != staged_.rend(); ++staged) {
    staged->queue->producers_.restore(std::move(staged->undo));
    staged->queue->staged_end_ -= staged->records;
  }
  staged_.clear();
  stage_.clear();
  staged_store_time_ = 0;
}

// Files keep their length, so what a failed write left is made unreadable instead of cut off.
Result<void> SharedLog::undo_write(CommitFile& file, std::size_t bytes) {
  const std::vector<std::uint8_t> zeros(bytes, 0);
  if (file.file->write(file.end, zeros)) return {};
  // No room even for zeros: good enough when nothing had reached the place where a reader looks.
  std::array<std::uint8_t, stored::blank_bytes> head{};
  POLYLOG_TRY(file.file->read(file.end, head).map([](const auto&) {}));
  const bool untouched = std::all_of(head.begin(), head.end(), [](auto byte) { return byte == 0; });
  return untouched ? Result<void>()
                   : fail(Errc::io, file.path + ": a failed write can't be undone");
}

Result<void> SharedLog::write_staged_locked() {
  if (lost_) {
    drop_staged();
    return fail(*std::exchange(lost_, std::nullopt));
  }
  if (staged_.empty()) return {};
  if (auto usable = check_usable(); !usable) {
    drop_staged();
    return usable;
  }
  CommitFile& file = commit_log_.active();
  // Zeros behind the last record: what a truncation left there must not read as the next one.
  constexpr std::array<std::uint8_t, stored::blank_bytes> no_record{};
  const std::array<ByteView, 2> parts{ByteView(stage_), ByteView(no_record)};
  write_began_ns_ = clock_.steady_ns();
  auto wrote = file.file->write(file.end, parts);
  write_began_ns_ = 0;
  if (!wrote) {
    if (auto undone = undo_write(file, stage_.size() + no_record.size()); !undone) failed_ = true;
    drop_staged();
    return wrote;
  }
  file.dirty = true;
  for (const StagedBatch& staged : staged_) {
    const ByteView frames = ByteView(stage_).subspan(staged.from, staged.to - staged.from);
    note_written(*staged.queue, file, frames);
  }
  written_end_ = commit_log_.end();
  last_store_time_ = std::max(last_store_time_, staged_store_time_);
  staged_.clear();
  stage_.clear();
  if (file.end - file.writeback_from >= writeback_bytes) {
    file.file->start_writeback(file.writeback_from, file.end - file.writeback_from);
    file.writeback_from = file.end;
  }
  return {};
}

void SharedLog::note_written(Queue& queue, CommitFile& file, ByteView frames) {
  const auto walked = stored::for_each_message(
      frames, [&](ByteView record, const stored::Message& message) -> Result<void> {
        if (file.sums.size() == file.end) file.sums.add_frame(record);
        file.end += record.size();
        dispatch(queue, message, record.size(), message.physical_offset);
        return {};
      });
  POLYLOG_ASSERT(walked.has_value());
}

// ------------------------------------------------------------------------------------ dispatch

void SharedLog::list_pending(Queue& queue) {
  if (std::exchange(queue.listed_, true)) return;
  with_pending_.push_back(queue.shared_from_this());
}

void SharedLog::dispatch(Queue& queue, const stored::Message& message, std::size_t bytes,
                         std::int64_t position) {
  queue.add(
      {position, static_cast<std::int32_t>(bytes), stored::entry_tags_code(message, delay_levels_)},
      message.born_timestamp);
  list_pending(queue);
  index_.add(message, position);
}

void SharedLog::pass_over(Queue& queue, const stored::Message& message, std::size_t bytes) {
  if (!queue.begun()) {
    // append() puts filler before its first entry.
    queue.end_ = queue.staged_end_ = queue.flushed_ = queue.first_ = message.queue_offset;
    return;
  }
  const Queue::Entry next{message.physical_offset, static_cast<std::int32_t>(bytes),
                          stored::entry_tags_code(message, delay_levels_)};
  while (queue.end_ < message.queue_offset) queue.add(next, no_timestamp.value());
  list_pending(queue);
}

void SharedLog::note_producer(ProducerState& producers, const stored::Message& message,
                              const stored::ProducerPart& part) {
  if (part.index + 1 != part.count) return;
  BatchInfo info;
  info.first = Offset(message.queue_offset - part.index);
  info.last = Offset(message.queue_offset);
  info.records = part.count;
  info.max_timestamp = Timestamp(message.born_timestamp);
  info.producer.id = part.id;
  info.producer.epoch = part.epoch;
  info.producer.first_sequence = part.base_sequence;
  info.producer.last_sequence = sequence_plus(part.base_sequence, part.count - 1);
  producers.update(info, LogPosition(0));
}

// -------------------------------------------------------------------------------------- queues

std::string SharedLog::queue_directory(std::string_view stored_topic, std::int32_t queue_id) const {
  const std::string topics = fs::join(setup_.directory, stored::consume_queue_directory);
  return fs::join(fs::join(topics, stored_topic), std::to_string(queue_id));
}

std::shared_ptr<Queue> SharedLog::make_queue(const TopicPartition& id, std::string stored_topic,
                                             const QueueNote& note) {
  std::string directory = queue_directory(stored_topic, id.partition);
  auto queue = std::make_shared<Queue>(shared_from_this(), id, std::move(stored_topic),
                                       queue_files_, std::move(directory), note);
  queues_[id] = queue;
  by_stored_name_[queue->stored_topic_][id.partition] = queue.get();
  return queue;
}

Queue* SharedLog::find_queue(std::string_view stored_topic, std::int32_t queue_id) const {
  const auto topic = by_stored_name_.find(std::string(stored_topic));
  if (topic == by_stored_name_.end()) return nullptr;
  const auto queue = topic->second.find(queue_id);
  return queue == topic->second.end() ? nullptr : queue->second;
}

// The queue a message belongs to; made when the message is the first of it that we see.
std::shared_ptr<Queue> SharedLog::queue_for(std::string_view stored_topic, std::int32_t queue_id) {
  if (Queue* const known = find_queue(stored_topic, queue_id)) return known->shared_from_this();
  const TopicPartition id{stored::from_stored_topic(stored_topic), queue_id};
  QueueNote note;
  note.config.retention_suspended = true;  // nobody has told us how long to keep it
  if (const auto removed = removed_.find(id); removed != removed_.end()) {
    note.birth = removed->second.birth;
    removed_.erase(removed);
  }
  // Without room for the note the next start finds the queue as this one did.
  if (sidecar_->queue(id, note)) facts_dirty_ = true;
  topics_dirty_ = true;
  return make_queue(id, std::string(stored_topic), note);
}

std::shared_ptr<Queue> SharedLog::find(const TopicPartition& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(id);
  return found == queues_.end() ? nullptr : found->second;
}

bool SharedLog::has_topic(std::string_view stored_topic) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_stored_name_.find(std::string(stored_topic));
  return (found != by_stored_name_.end() && !found->second.empty()) ||
         topics_.topics.contains(std::string(stored_topic));
}

bool SharedLog::stuck() const {
  const std::int64_t began = write_began_ns_;
  return began != 0 && clock_.steady_ns() - began > busy_after_ns;
}

std::vector<std::shared_ptr<Queue>> SharedLog::queues() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Queue>> all;
  all.reserve(queues_.size());
  for (const auto& [id, queue] : queues_) all.push_back(queue);
  return all;
}

Result<std::shared_ptr<Queue>> SharedLog::create(const TopicPartition& id,
                                                 const QueueNote& wanted) {
  POLYLOG_ASSIGN(name, stored_name(id.topic));
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  if (queues_.contains(id)) {
    return fail(Errc::exists, queue_directory(name, id.partition) + " exists");
  }
  QueueNote note = wanted;
  // Whatever the log holds under that name up to here was another topic's. What is staged is not.
  note.birth = written_end_;
  POLYLOG_TRY(sidecar_->queue(id, note));
  facts_dirty_ = true;
  topics_dirty_ = true;
  removed_.erase(id);
  return make_queue(id, std::move(name), note);
}

Result<void> SharedLog::remove(const TopicPartition& id) {
  const std::lock_guard flush_lock(flush_mutex_);
  const std::lock_guard sync_lock(sync_mutex_);
  std::shared_ptr<Queue> queue;
  QueueNote note;
  {
    const std::lock_guard lock(mutex_);
    const auto found = queues_.find(id);
    if (found == queues_.end()) {
      return fail(Errc::not_found, id.topic + "-" + std::to_string(id.partition) + " is not open");
    }
    POLYLOG_TRY(check_usable());  // nothing that follows a failed sync is sure to be on disk
    queue = found->second;
    // What is staged for it must lie below the mark. Should that fail, the others whose batches go
    // with it hear of it at their own write.
    const bool others = !staged_.empty();
    if (auto wrote = write_staged_locked(); !wrote) {
      if (others) lost_ = wrote.error();
      return wrote;
    }
    note = queue->note_;
    note.removed = true;
    note.birth = written_end_;
  }
  // The note first: from here on no start finds the topic's records again.
  if (auto noted = sidecar_->queue_synced(id, note); !noted) {
    if (noted.error().code != Errc::no_space) fail_log();
    return noted;
  }
  {
    const std::lock_guard lock(mutex_);
    queue->removed_ = true;
    queue->pending_.clear();
    queue->flushed_ = queue->end_;
    by_stored_name_[queue->stored_topic_].erase(id.partition);
    queues_.erase(id);
    removed_[id] = note;
    topics_dirty_ = true;
  }
  POLYLOG_TRY(queue->files_.remove_all());
  const std::string topic = fs::parent_of(queue->files_.directory());
  const auto others = fs_.list(topic);
  if (others && others->empty()) return fs_.remove_directory(topic);
  return {};
}

// ------------------------------------------------------------------------------------- reading

Result<Slice> SharedLog::read_bytes(std::int64_t position, std::size_t bytes, bool wait,
                                    bool& blocks_good) const {
  CommitFilePtr file;
  {
    const std::lock_guard lock(mutex_);
    file = commit_log_.find(position);
    if (file == nullptr || position + static_cast<std::int64_t>(bytes) > file->position()) {
      return fail(Errc::corrupt, "commit log: nothing at " + std::to_string(position));
    }
  }
  const auto at = static_cast<std::uint64_t>(position - file->base);
  if (file->check != nullptr) {
    POLYLOG_ASSIGN(good, file->check->match(*file->file, at, at + bytes, wait));
    blocks_good = good;
  }
  const std::shared_ptr<std::uint8_t[]> memory(new std::uint8_t[bytes]);
  std::size_t filled = 0;
  while (filled < bytes) {
    const MutableBytes into(memory.get() + filled, bytes - filled);
    POLYLOG_ASSIGN(got, file->file->read(at + filled, into, wait));
    if (got == 0) return fail(Errc::corrupt, file->path + " is shorter than it was");
    filled += got;
  }
  return Slice(memory, ByteView(memory.get(), bytes));
}

Result<void> SharedLog::read_into(std::int64_t position, MutableBytes into) const {
  CommitFilePtr file;
  {
    const std::lock_guard lock(mutex_);
    file = commit_log_.find(position);
  }
  if (file == nullptr) {
    return fail(Errc::corrupt, "commit log: nothing at " + std::to_string(position));
  }
  POLYLOG_ASSIGN(got, file->file->read(static_cast<std::uint64_t>(position - file->base), into));
  if (got < into.size()) return fail(Errc::corrupt, file->path + " is shorter than it was");
  return {};
}

Result<std::optional<Slice>> SharedLog::record_at(std::int64_t position) const {
  std::int64_t end = 0;
  {
    const std::lock_guard lock(mutex_);
    const CommitFilePtr file = commit_log_.find(position);
    if (file == nullptr || position + 8 > file->position()) return std::optional<Slice>();
    end = file->position();
  }
  std::array<std::uint8_t, stored::blank_bytes> head{};
  POLYLOG_TRY(read_into(position, head));
  const auto left = static_cast<std::uint64_t>(end - position);
  const stored::FrameHead frame = stored::next_frame(head, left);
  if (frame.state != stored::FrameState::complete) return std::optional<Slice>();
  bool good = true;
  POLYLOG_ASSIGN(record, read_bytes(position, static_cast<std::size_t>(frame.size), true, good));
  const auto message = stored::parse(record.view());
  if (!message || message->physical_offset != position ||
      !proves_itself(record.view(), *message, good)) {
    return std::optional<Slice>();
  }
  return std::optional(std::move(record));
}

// Whether its queue still has the message: the index outlives deletions and deleted topics.
bool SharedLog::serves(const stored::Message& message) const {
  const std::lock_guard lock(mutex_);
  const auto topic = by_stored_name_.find(std::string(message.topic));
  if (topic == by_stored_name_.end()) return false;
  const auto found = topic->second.find(message.queue_id);
  if (found == topic->second.end()) return false;
  const Queue& queue = *found->second;
  return message.physical_offset >= queue.note_.birth &&
         message.queue_offset >= queue.start_locked();
}

Result<void> SharedLog::look_up(const std::string& topic, const std::string& key, Timestamp from,
                                Timestamp to, const OnMatch& f) const {
  // A message may have the key twice, and what stood at its place before a crash or a truncation
  // may have had it, too: each place counts once, on the way down.
  std::int64_t last = INT64_MAX;
  return index_.lookup(
      topic, key, from.value(), to.value(), [&](std::int64_t position) -> Result<bool> {
        if (position >= last) return true;
        POLYLOG_ASSIGN(record, record_at(position));
        if (!record) return true;  // gone with its file, or cut off
        POLYLOG_ASSIGN(message, stored::parse(record->view()));
        bool named = false;
        stored::for_each_key(message.properties,
                             [&](std::string_view own) { named = named || own == key; });
        const Timestamp stored_at(message.store_timestamp);
        if (!serves(message)) return true;
        if (!named || message.topic != topic || stored_at < from || stored_at > to) return true;
        last = position;
        return f(std::move(*record), message);
      });
}

Batch SharedLog::as_batch(Slice record, const stored::Message& message) const {
  const std::lock_guard lock(mutex_);
  Batch batch;
  batch.format = BatchFormat::rocketmq;
  batch.info.first = batch.info.last = Offset(message.queue_offset);
  batch.info.records = 1;
  batch.info.max_timestamp = Timestamp(message.born_timestamp);
  batch.info.epoch = epochs_.at(LogPosition(message.physical_offset));
  batch.bytes = std::move(record);
  return batch;
}

Result<LogChunk> SharedLog::read_chunk(LogPosition from, std::size_t bytes_max) const {
  LogChunk chunk{from, from, {}};
  CommitFilePtr file;
  std::uint64_t end = 0;
  {
    const std::lock_guard lock(mutex_);
    if (from.value() >= written_end_) return chunk;
    file = commit_log_.find(from.value());
    if (file == nullptr) {
      return fail(Errc::out_of_range, "position " + std::to_string(from.value()) + " is gone");
    }
    end = file->end;
  }
  const auto at = static_cast<std::uint64_t>(from.value() - file->base);
  std::uint64_t take = 0;
  bool rolls = false;
  // Whole records only; the blank one at a file's end goes along and leads to the next file.
  while (at + take < end) {
    std::array<std::uint8_t, stored::blank_bytes> head{};
    POLYLOG_TRY(file->file->read(at + take, head).map([](const auto&) {}));
    const stored::FrameHead frame = stored::next_frame(head, end - at - take);
    rolls = frame.state == stored::FrameState::blank;
    if (!rolls && frame.state != stored::FrameState::complete) {
      return fail(Errc::corrupt, file->path + " is damaged at " + std::to_string(at + take));
    }
    const std::uint64_t size = rolls ? stored::blank_bytes : frame.size;
    if (take > 0 && take + size > bytes_max) {
      rolls = false;
      break;
    }
    take += size;
    if (rolls) break;
  }
  bool good = true;
  POLYLOG_ASSIGN(bytes, read_bytes(from.value(), static_cast<std::size_t>(take), true, good));
  chunk.bytes = bytes;
  chunk.end = rolls ? LogPosition(file->base + commit_log_.file_bytes())
                    : LogPosition(from.value() + static_cast<std::int64_t>(take));
  return chunk;
}

// How many bytes of a chunk are records; a blank record may follow.
Result<std::size_t> SharedLog::check_chunk(ByteView bytes) const {
  std::map<std::pair<std::string_view, std::int32_t>, std::int64_t> ends;
  std::size_t records = 0;
  while (records < bytes.size()) {
    const ByteView rest = bytes.subspan(records);
    const stored::FrameHead head = stored::next_frame(rest, rest.size());
    if (head.state == stored::FrameState::blank && rest.size() == stored::blank_bytes) break;
    if (head.state != stored::FrameState::complete) {
      return fail(Errc::corrupt, "chunk: not whole records");
    }
    const ByteView record = rest.first(static_cast<std::size_t>(head.size));
    POLYLOG_ASSIGN(message, stored::parse(record));
    if (!stored::crc_matches(message) ||
        message.physical_offset != written_end_ + static_cast<std::int64_t>(records)) {
      return fail(Errc::corrupt, "chunk: a record is not where it says");
    }
    const auto [end, first] = ends.try_emplace({message.topic, message.queue_id}, 0);
    const Queue* const queue = find_queue(message.topic, message.queue_id);
    const bool fresh = first && (queue == nullptr || !queue->begun());
    if (first && queue != nullptr) end->second = queue->end_;
    const std::int64_t gap = message.queue_offset - end->second;
    if (gap < 0) return fail(Errc::invalid, "chunk: a record is below the end of its queue");
    if (gap > gap_entries_max && !fresh) {
      return fail(Errc::too_large, "chunk: " + std::to_string(gap) + " offsets are missing, over " +
                                       std::to_string(gap_entries_max));
    }
    end->second = message.queue_offset + 1;
    records += record.size();
  }
  const auto file_bytes = static_cast<std::uint64_t>(commit_log_.file_bytes());
  if (commit_log_.active().end + records + stored::blank_bytes > file_bytes) {
    return fail(Errc::invalid, "chunk: does not fit into the commit log file");
  }
  return records;
}

Result<LogPosition> SharedLog::append_chunk(const LogChunk& chunk) {
  const std::lock_guard lock(mutex_);
  POLYLOG_TRY(check_usable());
  POLYLOG_ASSERT(staged_.empty());
  if (chunk.start.value() != written_end_) {
    return fail(Errc::invalid, "chunk begins at " + std::to_string(chunk.start.value()) +
                                   ", the log ends at " + std::to_string(written_end_));
  }
  if (commit_log_.empty()) POLYLOG_TRY(add_file(written_end_));
  POLYLOG_ASSIGN(records, check_chunk(chunk.bytes.view()));
  CommitFile& file = commit_log_.active();
  const ByteView whole = chunk.bytes.view().first(records);
  if (auto wrote = file.file->write(file.end, whole); !wrote) {
    if (auto undone = undo_write(file, records); !undone) failed_ = true;
    return fail(std::move(wrote).error());
  }
  POLYLOG_TRY(stored::for_each_message(
      whole, [&](ByteView record, const stored::Message& message) -> Result<void> {
        const std::shared_ptr<Queue> queue = queue_for(message.topic, message.queue_id);
        if (message.queue_offset > queue->end_) pass_over(*queue, message, record.size());
        const auto text =
            stored::find_property(message.properties, stored::property::kafka_producer);
        const auto part = text ? stored::parse_producer_part(*text) : fail(Errc::not_found, "");
        if (part) note_producer(queue->producers_, message, *part);
        note_written(*queue, file, record);
        queue->staged_end_ = queue->end_;
        last_store_time_ = std::max(last_store_time_, message.store_timestamp);
        return {};
      }));
  file.dirty = true;
  written_end_ = commit_log_.end();
  if (records < chunk.bytes.size()) POLYLOG_TRY(roll());
  return LogPosition(written_end_);
}

}  // namespace polylog::storage::rocketmq
