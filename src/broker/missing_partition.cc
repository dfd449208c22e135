#include "broker/missing_partition.h"

#include <utility>

namespace polylog::broker {

namespace {

using storage::DirtyLog;
using storage::LogChunk;
using storage::ReadLimits;
using storage::Staged;
using storage::TimedOffset;

class MissingLog final : public storage::Log {
 public:
  explicit MissingLog(Error why) : why_(std::move(why)) {}

  LogPosition end() const override { return LogPosition(0); }
  LogPosition durable_end() const override { return LogPosition(0); }
  LeaderEpoch epoch() const override { return no_epoch; }
  bool unclean() const override { return false; }
  Result<void> begin_epoch(LeaderEpoch) override { return fail(why_); }
  Result<void> write_staged() override { return {}; }
  Result<std::optional<DirtyLog>> dirty() override { return std::nullopt; }
  void settled(const DirtyLog&, bool) override {}
  Result<void> truncate(LogPosition) override { return {}; }
  Result<LogChunk> read_chunk(LogPosition, std::size_t) const override { return fail(why_); }
  Result<LogPosition> append_chunk(const LogChunk&) override { return fail(why_); }

 private:
  const Error why_;
};

class MissingPartition final : public storage::PartitionLog {
 public:
  explicit MissingPartition(Error why)
      : why_(std::move(why)), log_(std::make_shared<MissingLog>(why_)) {}

  OffsetRange offsets() const override { return {}; }
  Result<Staged> append(Batch) override { return fail(why_); }
  Result<std::vector<Batch>> read(Offset from, ReadLimits) const override {
    if (from != Offset(0)) return fail(Errc::out_of_range, "the partition is empty");
    return std::vector<Batch>();
  }
  Result<std::optional<TimedOffset>> offset_for_time(Timestamp) const override {
    return std::nullopt;
  }
  Result<std::optional<TimedOffset>> offset_of_max_timestamp() const override {
    return std::nullopt;
  }
  Result<void> advance_start(Offset start) override {
    if (start > Offset(0)) return fail(Errc::out_of_range, "the partition is empty");
    return {};
  }
  Offset offset_at(LogPosition) const override { return Offset(0); }
  Offset first_unstable() const override { return Offset(0); }
  EpochEnd end_of_epoch(LeaderEpoch) const override { return {}; }
  LeaderEpoch first_epoch() const override { return no_epoch; }
  ProducerState::Check check_producer(const BatchInfo&) const override { return {}; }
  void expire_producers(Timestamp) override {}
  std::uint64_t size_bytes() const override { return 0; }
  void configure(const storage::LogConfig&) override {}
  std::shared_ptr<storage::Log> log() const override { return log_; }

 private:
  const Error why_;
  const std::shared_ptr<storage::Log> log_;
};

}  // namespace

std::shared_ptr<storage::PartitionLog> make_missing_partition(Error why) {
  return std::make_shared<MissingPartition>(std::move(why));
}

}  // namespace polylog::broker
