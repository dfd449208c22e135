#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/rocketmq/log.h"
#include "storage/rocketmq/lost_records.h"
#include "storage/rocketmq/queue_states.h"

namespace polylog::storage::rocketmq {

// Brings the commit log, the queues and the key index back into step: reads the log from the last
// place where all three were known to agree, checks what it reads, and notes every message in its
// queue and in the index by the same function as the append does.
//
// With a sidecar that may be believed the scan begins at its recovery point, and a queue that has
// fewer entries than it had there is filled from the log. Without one, another program has written
// here: the whole log is read, and all entries for what it still holds are made anew.
//
// What does not read below the durable end is damage: reported, stepped over, and its offsets stay
// taken (see LostRecords). Above it, or without a sidecar, it is a torn tail and is cut off, unless
// it is plain that all of it was written: the log stopped in an orderly way and goes on behind it,
// or it lacks no sector and either the log goes on behind it or one record ends with it.
class LogRecovery {
 public:
  struct Evidence {
    const LogNote* note = nullptr;  // the sidecar's, when it may be believed
    bool clean = false;             // the last stop was orderly, ours or RocketMQ's
    std::int64_t index_time = 0;    // RocketMQ's checkpoint: index files up to then are whole
  };
  LogRecovery(SharedLog& log, const Evidence& evidence, Recovery& report)
      : log_(log), evidence_(evidence), report_(report), lost_(log) {}

  Result<void> run();

 private:
  // A batch of several messages of which not all have been met yet.
  struct OpenRun {
    std::int64_t position = 0;  // of its first message
    std::int32_t met = 0, count = 0;
    ProducerId producer = no_producer;
    Queue* queue = nullptr;
  };

  void adopt_notes();
  Result<std::int64_t> choose_start();
  Result<void> find_queue_ends(std::int64_t limit);
  Result<std::int64_t> last_known_end(Queue& queue, std::int64_t limit);
  Result<bool> is_known(const Queue& queue, std::int64_t offset, std::int64_t limit) const;
  void apply(const std::vector<QueueState>& states);
  Result<void> scan_from(std::int64_t position);
  Result<void> end_unread(CommitFile& file) const;
  Result<bool> scan_file(CommitFile& file, std::uint64_t from);
  ScanStep visit(CommitFile& file, const ScanFrame& frame);
  void take(const format::rocketmq::Message& message, ByteView record);
  static bool offset_possible(const Queue& queue, const format::rocketmq::Message& message,
                              ByteView record);
  void note_run(Queue& queue, const format::rocketmq::Message& message);
  void fill_gap(Queue& queue, const format::rocketmq::Message& message, std::size_t bytes);
  Result<bool> handle_stop(CommitFile& file, std::uint64_t stopped, std::uint64_t& position);
  Result<void> step_over(CommitFile& file, std::uint64_t from, std::uint64_t to);
  Result<std::optional<std::uint64_t>> end_of_damage(const CommitFile& file,
                                                     std::uint64_t from) const;
  Result<bool> log_goes_on_behind(const CommitFile& file, std::uint64_t stopped) const;
  Result<void> ask_queues();
  Result<void> raise_ends();
  Result<void> raise_end(Queue& queue, std::int64_t end);
  Result<void> cut(CommitFile& file, std::uint64_t position);
  Result<void> erase_from(CommitFile& file, std::uint64_t position);
  Result<void> sum_up_to(CommitFile& file, std::uint64_t position);
  Result<void> catch_up();
  Result<void> rewrite(CommitFile& file);
  Result<void> finish();
  std::uint64_t durable_bytes(const CommitFile& file) const;
  const FileNote* file_note(const CommitFile& file) const;
  void note(const std::string& text) { report_.notes.push_back(text); }

  SharedLog& log_;
  const Evidence& evidence_;
  Recovery& report_;
  OpenRun run_;
  bool ended_ = false;  // the log's end was found
  LostRecords lost_;
  std::map<Queue*, std::int64_t> point_ends_;  // what the recovery point says
  std::set<const Queue*> behind_;              // lack entries from before the scan's start
  std::int64_t behind_from_ = INT64_MAX;
  bool catching_up_ = false;
  std::int64_t scan_start_ = 0;
};

}  // namespace polylog::storage::rocketmq
