#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.h"
#include "storage/store.h"

namespace polylog::convert {

// The segment number of "7.msg"; nothing for any other name.
std::optional<std::uint32_t> parse_robustmq_file(std::string_view name);

// One shard of RobustMQ's: what RobustmqStore finds. The log of its own that it stands for has no
// epochs.
class RobustmqShard final : public storage::PartitionLog,
                            public storage::Log,
                            public std::enable_shared_from_this<RobustmqShard> {
 public:
  // Reads all of its files. Notes what an unfinished write left, and what polylog has no place for.
  static Result<std::shared_ptr<RobustmqShard>> open(fs::FileSystem& fs, std::string directory,
                                                     std::vector<std::string>& notes);

  OffsetRange offsets() const override { return {Offset(start_), Offset(end_)}; }
  Result<std::vector<Batch>> read(Offset from, storage::ReadLimits limits) const override;
  Offset offset_at(LogPosition position) const override { return Offset(position.value()); }
  Offset first_unstable() const override { return Offset(end_); }
  EpochEnd end_of_epoch(LeaderEpoch) const override { return {}; }
  LeaderEpoch first_epoch() const override { return no_epoch; }
  ProducerState::Check check_producer(const BatchInfo&) const override { return {}; }
  void expire_producers(Timestamp) override {}
  std::uint64_t size_bytes() const override;
  void configure(const storage::LogConfig&) override {}
  std::shared_ptr<storage::Log> log() const override;

  LogPosition end() const override { return LogPosition(end_); }
  LogPosition durable_end() const override { return LogPosition(end_); }
  LeaderEpoch epoch() const override { return no_epoch; }
  bool unclean() const override { return false; }
  Result<std::optional<storage::DirtyLog>> dirty() override {
    return std::optional<storage::DirtyLog>();
  }
  void settled(const storage::DirtyLog&, bool) override {}

  // unsupported, all of them.
  Result<storage::Staged> append(Batch batch) override;
  Result<std::optional<storage::TimedOffset>> offset_for_time(Timestamp at) const override;
  Result<std::optional<storage::TimedOffset>> offset_of_max_timestamp() const override;
  Result<void> advance_start(Offset start) override;
  Result<void> begin_epoch(LeaderEpoch epoch) override;
  Result<void> write_staged() override;
  Result<void> truncate(LogPosition end) override;
  Result<storage::LogChunk> read_chunk(LogPosition from, std::size_t bytes_max) const override;
  Result<LogPosition> append_chunk(const storage::LogChunk& chunk) override;

 private:
  struct SegmentFile {
    std::string path;
    std::uint64_t size = 0;  // of what is read of it
  };
  // A frame that a reader can begin at.
  struct Place {
    std::int64_t offset = 0;
    std::size_t file = 0;
    std::uint64_t position = 0;
  };
  class Reading;

  RobustmqShard(fs::FileSystem& fs, std::string directory)
      : fs_(fs), directory_(std::move(directory)) {}

  Result<void> list_files(std::vector<std::string>& notes);
  Result<void> scan(std::size_t index, std::vector<std::string>& notes);

  fs::FileSystem& fs_;
  const std::string directory_;
  std::vector<SegmentFile> files_;
  std::vector<Place> places_;
  std::int64_t start_ = 0, end_ = 0;
  bool begun_ = false;
  std::map<std::string, std::uint64_t> parts_without_place_;  // records by the part's name
};

}  // namespace polylog::convert
