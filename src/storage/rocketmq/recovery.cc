#include "storage/rocketmq/recovery.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "bytes/endian.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/names.h"
#include "format/rocketmq/property_crc.h"
#include "storage/rocketmq/resync.h"

namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

namespace {

// More than that is not looked through for what one record can have been.
constexpr std::uint64_t damage_bytes_max = std::uint64_t{64} << 20;

}  // namespace

Result<void> LogRecovery::run() {
  adopt_notes();
  POLYLOG_ASSIGN(start, choose_start());
  POLYLOG_TRY(scan_from(start));
  POLYLOG_TRY(ask_queues());
  POLYLOG_TRY(catch_up());
  POLYLOG_TRY(raise_ends());
  return finish();
}

const FileNote* LogRecovery::file_note(const CommitFile& file) const {
  if (evidence_.note == nullptr) return nullptr;
  const auto found = evidence_.note->files.find(file.base);
  if (found == evidence_.note->files.end()) return nullptr;
  // Another inode is another file: ours was replaced.
  return found->second.inode == file.inode ? &found->second : nullptr;
}

std::uint64_t LogRecovery::durable_bytes(const CommitFile& file) const {
  const FileNote* const known = file_note(file);
  return known == nullptr ? 0 : known->sums.size();
}

// Until the scan says otherwise a file before the last one is in use as far as its sums go, or as
// a whole.
void LogRecovery::adopt_notes() {
  const auto& files = log_.commit_log_.files();
  for (std::size_t i = 0; i < files.size(); ++i) {
    CommitFile& file = *files[i];
    if (const FileNote* const known = file_note(file); known != nullptr) {
      file.sums = known->sums;
      file.check = std::make_shared<BlockCheck>(known->sums);
    }
    file.durable_bytes = file.sums.size();
    file.durable_tail = file.sums.tail();
    const bool last = i + 1 == files.size();
    file.full = !last;
    file.end = last || file.sums.size() > 0
                   ? file.sums.size()
                   : static_cast<std::uint64_t>(log_.commit_log_.file_bytes());
  }
}

// ---------------------------------------------------------------------------- where to begin

Result<std::int64_t> LogRecovery::choose_start() {
  const auto& files = log_.commit_log_.files();
  if (evidence_.note != nullptr && evidence_.note->recovery) {
    const RecoveryPoint& point = *evidence_.note->recovery;
    const CommitFilePtr file = log_.commit_log_.find(point.base);
    const bool known = file != nullptr && file->base == point.base && file_note(*file) != nullptr &&
                       file->sums.size() >= point.position;
    if (known || (files.empty() && point.offset == 0)) {
      const auto states = decode_queue_states(point.producers);
      if (states) {
        log_.last_store_time_ = std::max<std::int64_t>(point.max_timestamp.value(), 0);
        for (const QueueState& state : *states) {
          const auto found = log_.queues_.find(state.id);
          if (found == log_.queues_.end()) continue;
          if (found->second->note_.birth >= point.offset) continue;  // of an earlier topic
          point_ends_[found->second.get()] = state.end;
        }
        POLYLOG_TRY(find_queue_ends(point.offset));
        apply(*states);
        // What the index has beyond the point may be of messages that a crash took; the rest of it
        // is dispatched again.
        POLYLOG_TRY(log_.index_.take_back(point.offset));
        log_.last_point_ = point;  // the next start's too, unless this one gets further
        return point.offset;
      }
      note(states.error().context + ": the whole log is read");
    }
  }
  if (!evidence_.clean) POLYLOG_TRY(log_.index_.remove_after(evidence_.index_time));
  const std::int64_t start = log_.commit_log_.start();
  POLYLOG_TRY(find_queue_ends(start));
  return start;
}

// Entries for records that end at or before `limit` are known to be on disk; what stands behind
// them is not believed, and dispatched anew.
Result<std::int64_t> LogRecovery::last_known_end(Queue& queue, std::int64_t limit) {
  POLYLOG_ASSIGN(extent, queue.files_.extent(evidence_.note != nullptr));
  if (extent.capacity > 0 && queue.note_.birth > 0) {
    // Files that a crash brought back from an earlier topic of that name are not this one's.
    POLYLOG_ASSIGN(front, queue.files_.read(extent.first, 1, true));
    const bool older = !front.empty() && front.front().valid() && !front.front().filler() &&
                       front.front().physical_offset < queue.note_.birth;
    if (older) {
      POLYLOG_TRY(queue.files_.remove_all());
      extent = {};
    }
  }
  queue.first_ = extent.first;
  std::int64_t low = extent.first, high = extent.capacity;
  if (const auto noted = point_ends_.find(&queue); noted != point_ends_.end()) {
    // The point says how many there were. Halving is for what is no longer as it was then.
    high = std::clamp(noted->second, low, std::max(low, high));
    if (low == high) return low;
    POLYLOG_ASSIGN(whole, is_known(queue, high - 1, limit));
    if (whole) return high;
  }
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    POLYLOG_ASSIGN(known, is_known(queue, middle, limit));
    if (known) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Result<bool> LogRecovery::is_known(const Queue& queue, std::int64_t offset,
                                   std::int64_t limit) const {
  POLYLOG_ASSIGN(found, queue.files_.read(offset, 1, true));
  return !found.empty() && found.front().valid() &&
         (found.front().filler() || found.front().end() <= limit);
}

Result<void> LogRecovery::find_queue_ends(std::int64_t limit) {
  for (const auto& [id, queue] : log_.queues_) {
    POLYLOG_ASSIGN(end, last_known_end(*queue, limit));
    queue->end_ = queue->staged_end_ = queue->flushed_ = end;
    if (end == queue->first_) continue;
    POLYLOG_ASSIGN(last, queue->files_.read(end - 1, 1, true));
    if (last.empty()) continue;
    if (last.front().filler()) {
      // Filler with nothing behind it: where the queue begins is in its next message.
      queue->end_ = queue->staged_end_ = queue->flushed_ = queue->first_ = end;
    } else {
      queue->last_end_ = last.front().end();
      queue->added_ = 1;
      queue->added_bytes_ = static_cast<std::uint64_t>(last.front().size);
    }
  }
  return {};
}

void LogRecovery::apply(const std::vector<QueueState>& states) {
  for (const QueueState& state : states) {
    const auto found = log_.queues_.find(state.id);
    if (found == log_.queues_.end()) continue;
    Queue& queue = *found->second;
    if (!point_ends_.contains(&queue)) continue;
    queue.producers_ = state.producers;
    if (queue.end_ >= state.end) continue;
    behind_.insert(&queue);
    behind_from_ =
        std::min(behind_from_, queue.end_ > queue.first_ ? queue.last_end_ : queue.note_.birth);
  }
}

// ------------------------------------------------------------------------------------- the scan

Result<void> LogRecovery::scan_from(std::int64_t position) {
  scan_start_ = position;
  const auto& files = log_.commit_log_.files();
  for (std::size_t i = 0; i < files.size() && !ended_; ++i) {
    CommitFile& file = *files[i];
    if (file.base + log_.commit_log_.file_bytes() <= position) {
      POLYLOG_TRY(end_unread(file));
      continue;
    }
    const std::uint64_t from =
        position > file.base ? static_cast<std::uint64_t>(position - file.base) : 0;
    POLYLOG_ASSIGN(goes_on, scan_file(file, from));
    if (!goes_on) ended_ = true;
  }
  return {};
}

// What the sidecar was told last of a file that lies before the scan may be lost: it is in use as a
// whole then, and not as far as the sums go that are left.
Result<void> LogRecovery::end_unread(CommitFile& file) const {
  const auto file_bytes = static_cast<std::uint64_t>(log_.commit_log_.file_bytes());
  const std::uint64_t at = file.end - std::min<std::uint64_t>(file.end, stored::blank_bytes);
  std::array<std::uint8_t, stored::blank_bytes> head{};
  if (file.end < file_bytes) {
    POLYLOG_ASSIGN(got, file.file->read(at, head));
    const bool blank = got == head.size() && stored::next_frame(head, file_bytes - at).state ==
                                                 stored::FrameState::blank;
    if (!blank) file.end = file_bytes;
  }
  return {};
}

// False: the log ends in this file.
Result<bool> LogRecovery::scan_file(CommitFile& file, std::uint64_t from) {
  const auto file_bytes = static_cast<std::uint64_t>(log_.commit_log_.file_bytes());
  std::uint64_t position = from;
  for (;;) {
    const std::uint64_t begun = position;
    POLYLOG_ASSIGN(end, scan(*file.file, position, file_bytes, MessageDecoder(), file_bytes,
                             [&](const ScanFrame& frame) { return visit(file, frame); }));
    report_.bytes_scanned += end.position - begun;
    std::array<std::uint8_t, stored::blank_bytes> head{};
    std::size_t got = 0;
    if (end.position + head.size() <= file_bytes) {
      POLYLOG_ASSIGN(read, file.file->read(end.position, head));
      got = read;
    }
    const auto state = got < head.size()
                           ? stored::FrameState::zeros
                           : stored::next_frame(head, file_bytes - end.position).state;
    if (state == stored::FrameState::blank) {
      if (catching_up_) return true;
      if (file.sums.size() == end.position) file.sums.add_frame(head);
      file.end = end.position + stored::blank_bytes;
      file.full = true;
      return true;
    }
    bool again = false;
    if (catching_up_) {
      POLYLOG_ASSIGN(next, next_record(file, file_bytes, end.position, file.end));
      again = next.has_value();
      position = next.value_or(file.end);
    } else {
      POLYLOG_ASSIGN(goes_on, handle_stop(file, end.position, position));
      again = goes_on;
    }
    if (!again) return file.full;
  }
}

ScanStep LogRecovery::visit(CommitFile& file, const ScanFrame& frame) {
  const auto message = check_record(file, frame.position, frame.bytes);
  if (!message || !*message) return ScanStep::corrupt;
  if (!catching_up_ && frame.position == file.sums.size()) file.sums.add_frame(frame.bytes);
  take(**message, frame.bytes);
  return ScanStep::next;
}

void LogRecovery::take(const stored::Message& message, ByteView record) {
  const std::int64_t position = message.physical_offset;
  if (!catching_up_) {
    log_.last_store_time_ = std::max(log_.last_store_time_, message.store_timestamp);
  }
  // Prepared and rolled-back messages of old transactions are in no queue.
  const std::int32_t transaction = message.sys_flag & stored::sys_flag::transaction_mask;
  if (transaction == stored::sys_flag::transaction_prepared ||
      transaction == stored::sys_flag::transaction_rollback) {
    return;
  }
  // Nor does the body's checksum cover the topic, which names a directory.
  if (!stored::check_stored_topic(message.topic)) {
    note("the message at position " + std::to_string(position) +
         " names a topic that can't be, and is passed over");
    if (!catching_up_) lost_.add_unbelievable(message, record.size(), nullptr);
    return;
  }
  const TopicPartition id{stored::from_stored_topic(message.topic), message.queue_id};
  if (const auto gone = log_.removed_.find(id);
      gone != log_.removed_.end() && position < gone->second.birth) {
    return;  // of a topic that was deleted
  }
  Queue& queue = *log_.queue_for(message.topic, message.queue_id);
  if (position < queue.note_.birth) return;  // of an earlier topic of that name
  if (catching_up_ != behind_.contains(&queue)) {
    if (!catching_up_) log_.index_.add(message, position);
    return;
  }
  if (message.queue_offset < queue.end_) return;  // its entry is there
  if (!offset_possible(queue, message, record)) {
    note(queue.files_.directory() + ": the message at position " + std::to_string(position) +
         " says that its offset is " + std::to_string(message.queue_offset) +
         ", which can't be, and is passed over");
    if (!catching_up_) lost_.add_unbelievable(message, record.size(), &queue);
    return;
  }
  if (message.queue_offset > queue.end_) fill_gap(queue, message, record.size());
  if (position >= scan_start_) note_run(queue, message);
  log_.dispatch(queue, message, record.size(), position);
  queue.staged_end_ = queue.end_;
}

// The body's checksum does not cover the offset; one over the whole record does. All messages of
// the queue that come before this one lie before it in the log, so there is a limit to how many
// they can be, unless the queue was brought here with offsets of its own (append_chunk()).
bool LogRecovery::offset_possible(const Queue& queue, const stored::Message& message,
                                  ByteView record) {
  if (message.queue_offset == queue.end_) return true;
  const bool begins = queue.end_ == queue.first_ && queue.pending_.empty();
  if (stored::check_property_crc(record) == stored::PropertyCrc::good) {
    return begins || message.queue_offset - queue.end_ <= SharedLog::gap_entries_max;
  }
  const std::int64_t end = begins ? 0 : queue.end_;
  const std::int64_t room = message.physical_offset - (begins ? 0 : queue.last_end_);
  return message.queue_offset == end ||
         (room > 0 &&
          message.queue_offset - end <= room / static_cast<std::int64_t>(stored::fixed_bytes_min));
}

// The messages in between can't be read any more, or went with old files, or were never here.
void LogRecovery::fill_gap(Queue& queue, const stored::Message& message, std::size_t bytes) {
  const bool begins = queue.end_ == queue.first_ && queue.pending_.empty();
  if (!begins) {
    note(queue.files_.directory() + ": the messages at offsets " + std::to_string(queue.end_) +
         " to " + std::to_string(message.queue_offset) + " no longer read and are passed over");
  }
  if (!catching_up_) lost_.missing(queue, queue.end_, message.queue_offset);
  log_.pass_over(queue, message, bytes);
}

// Producer state, and which batch is only partly there.
void LogRecovery::note_run(Queue& queue, const stored::Message& message) {
  const auto text = stored::find_property(message.properties, stored::property::kafka_producer);
  if (!text) {
    run_ = {};
    return;
  }
  const Result<stored::ProducerPart> part = stored::parse_producer_part(*text);
  if (!part) {
    run_ = {};
    return;
  }
  const bool follows = run_.queue == &queue && run_.producer == part->id &&
                       run_.count == part->count && run_.met == part->index;
  if (part->index == 0) {
    run_ = {message.physical_offset, 0, part->count, part->id, &queue};
  } else if (!follows) {
    run_ = {};
  }
  if (run_.queue != nullptr) ++run_.met;
  if (part->index + 1 == part->count && run_.met == run_.count) run_ = {};
  SharedLog::note_producer(queue.producers_, message, *part);
}

// ----------------------------------------------------------------------- where it stops reading

// True: go on at `position`.
Result<bool> LogRecovery::handle_stop(CommitFile& file, std::uint64_t stopped,
                                      std::uint64_t& position) {
  POLYLOG_ASSIGN(end, end_of_damage(file, stopped));
  if (end) {
    POLYLOG_TRY(step_over(file, stopped, *end));
    position = *end;
    return true;
  }
  POLYLOG_ASSIGN(goes_on, log_goes_on_behind(file, stopped));
  if (!goes_on) {
    POLYLOG_TRY(cut(file, stopped));
    return false;
  }
  const auto file_bytes = static_cast<std::uint64_t>(log_.commit_log_.file_bytes());
  POLYLOG_ASSIGN(used, last_byte_used(file, stopped, file_bytes));
  if (used > stopped) POLYLOG_TRY(step_over(file, stopped, used));
  file.end = used;
  file.full = true;
  return false;
}

// Where what does not read at `from` ends and the log goes on, or may. Nothing: it is the log's
// end, or the file's.
Result<std::optional<std::uint64_t>> LogRecovery::end_of_damage(const CommitFile& file,
                                                                std::uint64_t from) const {
  const auto file_bytes = static_cast<std::uint64_t>(log_.commit_log_.file_bytes());
  const std::uint64_t durable = durable_bytes(file);
  if (from < durable) {
    POLYLOG_ASSIGN(next, next_record(file, file_bytes, from, durable));
    return std::optional(next.value_or(durable));
  }
  // The original leaves what it cuts off where it is: what reads behind its end is old.
  if (evidence_.note == nullptr) return std::nullopt;
  POLYLOG_ASSIGN(next, next_record(file, file_bytes, from, file_bytes));
  if (next && evidence_.clean) return next;
  POLYLOG_ASSIGN(used, last_byte_used(file, from, file_bytes));
  const std::uint64_t end = next.value_or(used);
  if (end - from < stored::fixed_bytes_min || end - from > damage_bytes_max) return std::nullopt;
  POLYLOG_ASSIGN(bytes, read_some(file, from, end - from));
  const std::int64_t position = file.base + static_cast<std::int64_t>(from);
  if (being_erased(bytes, position)) return std::nullopt;
  const bool one_record =
      begins_record(bytes, position) && load_big<std::uint32_t>(bytes.data()) == bytes.size();
  const bool written =
      ((next || one_record) && arrived(bytes, from)) || mend_one_bit(bytes).has_value();
  return written ? std::optional(end) : std::nullopt;
}

// Whether the next file is a part of the log although nothing here leads to it.
Result<bool> LogRecovery::log_goes_on_behind(const CommitFile& file, std::uint64_t stopped) const {
  const CommitFilePtr next = log_.commit_log_.find(file.base + log_.commit_log_.file_bytes());
  if (next == nullptr) return false;
  if (evidence_.clean || durable_bytes(*next) > 0) return true;
  if (evidence_.note == nullptr) return false;
  const auto file_bytes = static_cast<std::uint64_t>(log_.commit_log_.file_bytes());
  POLYLOG_ASSIGN(used, last_byte_used(file, stopped, file_bytes));
  if (used - stopped > damage_bytes_max) return false;
  POLYLOG_ASSIGN(bytes, read_some(file, stopped, used - stopped));
  if (!arrived(bytes, stopped)) return false;
  return goes_on_at(*next, file_bytes, 0);
}

// What stood there was written, and given out perhaps.
Result<void> LogRecovery::step_over(CommitFile& file, std::uint64_t from, std::uint64_t to) {
  note(file.path + ": bytes " + std::to_string(from) + " to " + std::to_string(to) +
       " were written and no longer read; the messages in them are lost, the rest is served");
  run_ = {};
  POLYLOG_TRY(lost_.add(file, from, to, [this](const stored::Message& message) {
    Queue* const queue = log_.find_queue(message.topic, message.queue_id);
    const auto text = stored::find_property(message.properties, stored::property::kafka_producer);
    if (queue == nullptr || behind_.contains(queue) || !text) return;
    if (const auto part = stored::parse_producer_part(*text)) {
      SharedLog::note_producer(queue->producers_, message, *part);
    }
  }));
  // As they are now: what is behind them is to be known by its sums, too.
  while (file.sums.size() >= from && file.sums.size() < to) {
    const std::uint64_t at = file.sums.size();
    POLYLOG_ASSIGN(bytes, read_some(file, at, std::min<std::uint64_t>(to - at, 1 << 20)));
    if (bytes.empty()) return fail(Errc::io, file.path + " shrank while it was read");
    file.sums.add(bytes);
  }
  return {};
}

// ------------------------------------------------------------------- offsets that were given out

// Before their entries are written anew: what the queues' files say of records that don't read.
Result<void> LogRecovery::ask_queues() {
  if (lost_.empty()) return {};
  for (const auto& [id, queue] : log_.queues_) {
    const auto noted = point_ends_.find(queue.get());
    const std::int64_t from = noted == point_ends_.end() ? 0 : noted->second;
    POLYLOG_TRY(lost_.ask_entries(*queue, std::max(from, queue->end_)));
  }
  return {};
}

Result<void> LogRecovery::raise_ends() {
  std::map<Queue*, std::int64_t> ends = point_ends_;
  POLYLOG_ASSIGN(lost, lost_.ends(report_.notes));
  for (const auto& [queue, end] : lost) {
    std::int64_t& known = ends[queue];
    known = std::max(known, end);
  }
  for (const auto& [queue, end] : ends) {
    if (end <= queue->end_) continue;
    note(queue->files_.directory() + ": the messages at offsets " + std::to_string(queue->end_) +
         " to " + std::to_string(end) + " no longer read; new ones come behind them");
    POLYLOG_TRY(raise_end(*queue, end));
  }
  return {};
}

// Entries without a message name the last one; where there is none the queue begins anew.
Result<void> LogRecovery::raise_end(Queue& queue, std::int64_t end) {
  std::vector<Queue::Entry> last;
  if (!queue.pending_.empty()) {
    last.push_back(queue.pending_.back());
  } else if (queue.end_ > queue.first_) {
    POLYLOG_ASSIGN(found, queue.files_.read(queue.end_ - 1, 1, true));
    last = std::move(found);
  }
  if (last.empty() || !last.front().valid() || last.front().filler()) {
    queue.end_ = queue.staged_end_ = queue.flushed_ = queue.first_ = end;
    queue.positioned_ = true;
    return {};
  }
  while (queue.end_ < end) queue.add(last.front(), no_timestamp.value());
  queue.staged_end_ = queue.end_;
  log_.list_pending(queue);
  return {};
}

// This and all behind it never arrived, or only in part: it was never acknowledged.
Result<void> LogRecovery::cut(CommitFile& file, std::uint64_t position) {
  if (run_.queue != nullptr && run_.met < run_.count && run_.position >= file.base) {
    const auto begins = static_cast<std::uint64_t>(run_.position - file.base);
    // A batch that is only partly there goes as a whole.
    if (begins >= durable_bytes(file)) position = std::min(position, begins);
  }
  const std::int64_t end = file.base + static_cast<std::int64_t>(position);
  for (const auto& [id, queue] : log_.queues_) {
    while (!queue->pending_.empty() && !queue->pending_.back().filler() &&
           queue->pending_.back().physical_offset >= end) {
      queue->cut_entries(queue->end_ - 1);
    }
    queue->last_end_ = std::min(queue->last_end_, end);
  }
  for (const CommitFilePtr& behind : log_.commit_log_.drop_from(file.base + 1)) {
    POLYLOG_TRY(fs::exists(log_.fs_, behind->path) ? log_.fs_.remove(behind->path)
                                                   : Result<void>());
    log_.directory_dirty_ = true;
  }
  POLYLOG_TRY(erase_from(file, position));
  if (file.sums.size() > position) POLYLOG_TRY(sum_up_to(file, position));
  file.end = position;
  file.full = false;
  file.dirty = true;
  run_ = {};
  return {};
}

// Zeros where the log ends and as far as anything stands behind: whole records may, that arrived
// where one before them did not.
Result<void> LogRecovery::erase_from(CommitFile& file, std::uint64_t position) {
  constexpr std::uint64_t chunk_bytes = 1 << 20;
  const auto file_bytes = static_cast<std::uint64_t>(log_.commit_log_.file_bytes());
  std::vector<std::uint8_t> chunk(std::min(chunk_bytes, file_bytes - position));
  for (std::uint64_t at = position; at < file_bytes; at += chunk.size()) {
    chunk.resize(static_cast<std::size_t>(std::min(chunk_bytes, file_bytes - at)));
    POLYLOG_TRY(file.file->read(at, chunk).map([](const auto&) {}));
    const auto last =
        std::find_if(chunk.rbegin(), chunk.rend(), [](auto byte) { return byte != 0; });
    const auto used = static_cast<std::size_t>(chunk.rend() - last);
    if (used == 0) break;
    report_.bytes_truncated += used;
    std::fill(chunk.begin(), chunk.end(), std::uint8_t{0});
    POLYLOG_TRY(file.file->write(at, ByteView(chunk).first(used)));
  }
  return {};
}

// The sums of a shortened file can't be computed from those of the longer one.
Result<void> LogRecovery::sum_up_to(CommitFile& file, std::uint64_t position) {
  const FileNote* const known = file_note(file);
  file.sums.clear();
  if (known != nullptr && known->sums.size() <= position) file.sums = known->sums;
  return scan(*file.file, file.sums.size(), position, MessageDecoder(), position,
              [&](const ScanFrame& frame) {
                file.sums.add_frame(frame.bytes);
                return ScanStep::next;
              })
      .map([](const auto&) {});
}

// Queues that lack messages from before the scan's start are filled from the log itself, so that
// none is ever behind it.
Result<void> LogRecovery::catch_up() {
  if (behind_.empty()) return {};
  catching_up_ = true;
  behind_from_ = std::max(behind_from_, log_.commit_log_.start());
  note("consume queues behind the commit log: " + std::to_string(behind_.size()) +
       ", filled from position " + std::to_string(behind_from_) + " on");
  report_.indexes_rebuilt += behind_.size();
  // Behind the entries that are believed there may be files of any length; they are made anew.
  for (const auto& [id, queue] : log_.queues_) {
    if (behind_.contains(queue.get())) POLYLOG_TRY(queue->files_.cut(queue->flushed_));
  }
  const std::int64_t end = log_.commit_log_.end();
  log_.index_.trust(end);  // keys come in the order of the log, and the scan has seen them all
  for (const CommitFilePtr& file : log_.commit_log_.files()) {
    // From the file's beginning: a position may name what was cut off since.
    if (file->position() <= behind_from_ || file->base >= end) continue;
    POLYLOG_TRY(scan_file(*file, 0).map([](const auto&) {}));
  }
  return {};
}

// Pages that look clean after a failed sync or a kill are not believed: written again, they are
// dirty again, and the sync that follows covers them.
Result<void> LogRecovery::rewrite(CommitFile& file) {
  std::uint64_t at = std::min(file.durable_bytes, file.end);
  std::vector<std::uint8_t> chunk(
      static_cast<std::size_t>(std::min<std::uint64_t>(file.end - at, 1 << 20)));
  while (at < file.end) {
    const auto want =
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), file.end - at));
    POLYLOG_ASSIGN(got, file.file->read(at, MutableBytes(chunk).first(want)));
    if (got == 0) return fail(Errc::io, file.path + " shrank while it was read");
    POLYLOG_TRY(file.file->write(at, ByteView(chunk).first(got)));
    at += got;
    file.dirty = true;
  }
  return {};
}

Result<void> LogRecovery::finish() {
  for (const CommitFilePtr& file : log_.commit_log_.files()) {
    const bool sure = evidence_.clean || file->durable_bytes >= file->end;
    // Without a sidecar only the file the scan ended in was being written.
    const bool scanned = evidence_.note != nullptr || file == log_.commit_log_.files().back();
    if (!sure && scanned) POLYLOG_TRY(rewrite(*file));
    file->durable_bytes = file->end;
    file->durable_tail = file->sums.tail();
  }
  if (!log_.commit_log_.empty() && log_.commit_log_.active().full) {
    POLYLOG_TRY(log_.roll());
  }
  std::int64_t end = log_.commit_log_.end();
  // Positions that were durable are not given again, even when nothing there reads any more.
  if (evidence_.note != nullptr && log_.commit_log_.empty()) {
    end = std::max(end, evidence_.note->durable.value());
  }
  log_.written_end_ = log_.durable_end_ = end;
  // Made behind records that a power cut took: what is written from here on is theirs all the same.
  for (const auto& [id, queue] : log_.queues_) {
    queue->note_.birth = std::min(queue->note_.birth, end);
  }
  for (auto& [id, note] : log_.removed_) note.birth = std::min(note.birth, end);
  if (evidence_.note != nullptr) {
    log_.epochs_ = EpochList(evidence_.note->epochs);
    // One whose records are gone was begun all the same.
    log_.announced_before_ = std::max(log_.announced_before_, log_.epochs_.latest());
    log_.epochs_.truncate_end(LogPosition(end));
    log_.epochs_lost_ = evidence_.note->epochs_lost;
  }
  log_.epoch_ = log_.epochs_.latest();
  log_.unclean_ = !evidence_.clean;
  return log_.raise_first_offsets();
}

}  // namespace polylog::storage::rocketmq
