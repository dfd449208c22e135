#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "format/rocketmq/message.h"
#include "storage/rocketmq/log.h"

namespace polylog::storage::rocketmq {

// Whose the records were that no longer read. Their offsets were given out, and may not be given
// again. Where a later record of the queue reads, its offset tells how many are lost before it; for
// the end of a queue the rest is asked:
//
// - the queue's own files, whose entries say which bytes were which offset's;
// - the damaged record: with one bit changed it is known exactly, and when it is the body that is
//   damaged the rest of it counts;
// - failing both, it may have been any queue's that has nothing behind it: each of them passes over
//   as many offsets as it can have had there.
class LostRecords {
 public:
  explicit LostRecords(SharedLog& log) : log_(log) {}

  bool empty() const { return pieces_.empty(); }

  // Bytes [from, to) of the file are no records that read. One that one bit was changed in is
  // handed to `on_mended`, for what else it tells. Waits for disk.
  using OnMended = std::function<void(const format::rocketmq::Message&)>;
  Result<void> add(const CommitFile& file, std::uint64_t from, std::uint64_t to,
                   const OnMended& on_mended);
  // A record that reads but can't have the offset or the topic that it says. Null: no queue's.
  void add_unbelievable(const format::rocketmq::Message& message, std::size_t bytes, Queue* queue);
  // The queue lacks records at these offsets, and has later ones.
  void missing(Queue& queue, std::int64_t from, std::int64_t to) {
    missing_.push_back({&queue, from, to});
  }

  // Looks for entries of lost records from offset `from` on. To be asked before entries are
  // written. Waits for disk.
  Result<void> ask_entries(Queue& queue, std::int64_t from);
  // Where queues must go on at the earliest, when all that reads was dispatched. Waits for disk.
  Result<std::map<Queue*, std::int64_t>> ends(std::vector<std::string>& notes);

 private:
  // What one record took, as far as can be told; of several when their beginnings are gone.
  struct Piece {
    std::int64_t position = 0, end = 0;
    bool one_record = true;
    std::int64_t claimed = 0;  // bytes of it that are known whose they were
    std::int64_t bytes() const { return end - position; }
  };
  struct Known {
    std::int64_t end = 0;           // one behind the largest offset that was lost
    std::int64_t position_end = 0;  // behind the last record it is known to have had
  };
  struct Range {
    Queue* queue;
    std::int64_t from, to;
  };
  void classify(ByteView bytes, Piece& piece, const OnMended& on_mended);
  bool in_no_queue(const format::rocketmq::Message& message) const;
  void know(Queue& queue, std::int64_t offset, std::int64_t position_end);
  bool take_entry(Queue& queue, std::int64_t offset, const Queue::Entry& entry);
  std::int64_t suspect(const Piece& piece, std::int64_t records);

  SharedLog& log_;
  std::vector<Piece> pieces_;  // by position
  std::map<Queue*, Known> known_;
  std::vector<Range> missing_;
};

}  // namespace polylog::storage::rocketmq
