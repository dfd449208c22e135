#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "broker/partition.h"
#include "protocol/kafka/fetch_response.h"
#include "server/kafka/context.h"
#include "server/kafka/fetch_sessions.h"

namespace polylog::server::kafka {

struct FetchRules {
  std::int16_t version = 0;
  bool by_id = false;
  broker::Isolation isolation = broker::Isolation::read_uncommitted;
  std::size_t bytes_min = 0;
  std::size_t bytes_max = 0;
};

// Reads what one fetch asks for, partition by partition in the order of their priority, within
// one budget of bytes. Reactor only, except ColdRead::run().
class FetchReader {
 public:
  using PartitionData = protocol::kafka::FetchResponse::PartitionData;

  FetchReader(Context& context, FetchRules rules,
              std::vector<std::shared_ptr<FetchedPartition>> asked);
  ~FetchReader();

  // Forgets what was read, for another pass.
  void begin_pass();
  // A read that has to wait for the disk, or whose records are many and in another form than
  // Kafka's: run() it where that is allowed, then give it back.
  struct ColdRead {
    std::size_t index = 0;
    std::shared_ptr<storage::PartitionLog> log;  // null: `found` has been read already
    Offset from;
    storage::ReadLimits limits;
    std::optional<broker::Transcoder> transcoder;
    broker::ShownCache::Place place;  // as the topic showed it when the transcoder was made
    Result<std::vector<Batch>> found;
    void run();
  };
  // Goes on with the pass until it ends or meets a cold read.
  std::optional<ColdRead> advance();
  void finish(ColdRead read);

  // Whether the answer should leave now rather than wait for more.
  bool satisfied() const;
  // Raises `signal` when any of the partitions has news; false when one has some already since
  // it was read. Ends with unsubscribe() or the reader.
  bool subscribe(broker::Signal* signal);
  void unsubscribe();

  std::vector<PartitionData>& answers() { return answers_; }
  std::vector<FetchAnswer> summary() const;
  std::uint64_t records() const { return records_; }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Target {
    std::shared_ptr<broker::Partition> partition;  // null: unknown
    bool topic_known = false;
    Offset seen_end{-1};  // visible end when it was read
    Offset seen_start{-1};
  };
  void refuse(PartitionData& answer, ErrorCode code);
  ErrorCode unknown(const Target& target) const;
  bool check(std::size_t index, PartitionData& answer);
  void take(std::size_t index, Result<std::vector<Batch>> found);
  broker::ShownCache::Place place(std::size_t index) const;
  void add_aborted(const Target& target, OffsetRange range, PartitionData& answer);

  Context& context_;
  FetchRules rules_;
  std::vector<std::shared_ptr<FetchedPartition>> asked_;
  std::vector<Target> targets_;
  std::vector<PartitionData> answers_;
  broker::Signal* signal_ = nullptr;
  std::size_t next_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t records_ = 0;
  bool urgent_ = false;  // an error or a diverging epoch: nothing to wait for
};

// The batches as one piece, and how many of them were taken: adjacent ones are one already, and
// what follows a large one can be fetched next.
Slice join_batches(const std::vector<Batch>& batches, std::size_t& taken);

}  // namespace polylog::server::kafka
