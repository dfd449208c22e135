#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/rolled/log.h"

namespace polylog::storage {

// Brings one partition directory of a rolled log back: finishes what was interrupted, loads the
// segments, reads what lies beyond the last recovery point, and decides about what does not read.
//
// | scan begins at                          | when                                           |
// |-----------------------------------------|------------------------------------------------|
// | the sidecar's recovery point            | the sidecar may be believed and has one        |
// | where the layout says                   | no such point                                  |
//
// What does not read above the durable end is a torn tail: it is cut off, and segments behind it
// go. So is a batch of several frames of which not all are there. Below the durable end either is
// damage: reported, stepped over, never cut. Without a sidecar nothing is known to be durable and
// the original's own rule applies.
class RolledRecovery {
 public:
  RolledRecovery(RolledLog& log, const RolledLog::Evidence& evidence, Recovery& report)
      : evidence_(evidence),
        report_(report),
        log_(log),
        format_(log.format_),
        proof_(log.format_, std::nullopt) {}
  virtual ~RolledRecovery() = default;

  Result<void> run();

 protected:
  struct Start {
    std::size_t segment = 0;
    std::uint64_t position = 0;
    std::int64_t offset = 0;  // nothing below may come there
  };
  using Segments = std::vector<std::shared_ptr<DataSegment>>;

  // --- what a layout decides ---

  virtual Result<void> finish_interrupted() { return {}; }
  // Fills segments(), in the order of their bases; load_data() helps.
  virtual Result<void> load_segments() = 0;
  virtual Result<void> load_epochs() = 0;
  // Whether the recovery point may be used, after bringing the indexes of its segment to what it
  // says; moves `start` back when they lack entries.
  virtual Result<bool> use_point(DataSegment& segment, const RecoveryPoint& point,
                                 Start& start) = 0;
  virtual Result<Start> start_without_point() = 0;
  // Before frames from `position` on are noted again.
  virtual Result<void> prepare_scan(DataSegment& segment, std::uint64_t position) = 0;
  // A segment that need not be scanned, but whose index is missing.
  virtual bool wants_indexes(const DataSegment& segment) const = 0;
  virtual Result<void> drop_indexes(DataSegment& segment) = 0;
  // Of entries in memory; written when there is room for it, until then they serve from there.
  virtual void save_indexes(DataSegment& segment) = 0;
  virtual bool possible(const DataSegment& segment, const BatchInfo& frame) const = 0;
  virtual Result<void> finish_layout([[maybe_unused]] std::int64_t end) { return {}; }
  // What the last segment must know before it is appended to.
  virtual Result<void> load_times(DataSegment& segment) = 0;

  // --- for layouts ---

  Segments& segments() { return log_.segments_; }
  const Segments& segments() const { return log_.segments_; }
  const LogConfig& config() const { return log_.config_; }
  ProducerState& producers() { return log_.producers_; }
  EpochList& epochs() { return log_.epochs_; }
  void epochs_changed() { log_.epochs_changed(); }
  // What the file system and the sidecar say of a segment's data file.
  Result<void> load_data(DataSegment& segment);
  const FileNote* file_note(const DataSegment& segment) const;
  void note(const std::string& text);
  std::int64_t reached() const { return next_; }  // offset behind what the scan has seen

  const RolledLog::Evidence& evidence_;
  Recovery& report_;
  std::int64_t producers_from_ = 0;  // batches below are in the loaded producer state

 private:
  Result<std::optional<Start>> start_at_point();
  std::optional<Start> start_behind(const RecoveryPoint& point);
  bool take_state(const RecoveryPoint& point);  // producers and epochs
  Result<void> scan_from(const Start& start);
  Result<void> scan_segment(std::size_t index, std::uint64_t position);
  struct Held {
    std::uint64_t position = 0;
    BatchInfo info;
    std::vector<std::uint8_t> bytes;
  };
  ScanStep visit(DataSegment& segment, const ScanFrame& frame);
  ScanStep visit_part(DataSegment& segment, const ScanFrame& frame, const BatchInfo& info,
                      FrameFormat::Part part);
  // Whether a frame may be what was written: its checksum is right, and in a damaged block its
  // place too.
  bool proved(const DataSegment& segment, const BatchInfo& info, const ScanFrame& frame) const;
  ScanStep take(DataSegment& segment, const BatchInfo& batch, ByteView frame);
  void keep(DataSegment& segment, const BatchInfo& info, std::uint64_t position, ByteView frame);
  // Of a batch that has no further parts: below the durable end its records are served as any.
  void release_parts(DataSegment& segment, std::uint64_t durable, ScanEnd& end);
  std::int64_t likely_base(std::size_t index, const Start& start) const;
  bool never_reached(std::size_t index) const;
  std::uint64_t durable_bytes(const DataSegment& segment) const;
  // As far as damage may not be cut off.
  std::uint64_t guarded_bytes(const DataSegment& segment) const;
  // Right behind a damaged frame, when its length leads to one that proves itself there.
  std::optional<std::uint64_t> behind_damage(DataSegment& segment, std::uint64_t position);
  // Epochs that began in [next_, to] with batches that no longer read, as the layout's file has
  // them, up to `epoch`.
  void fill_epochs(LeaderEpoch epoch, std::int64_t to);
  LeaderEpoch epoch_there(std::int64_t offset, LeaderEpoch said) const;
  Result<bool> handle_damage(std::size_t index, const ScanEnd& end, std::uint64_t& position);
  Result<void> cut(std::size_t index, std::uint64_t position);
  Result<void> rebuild_indexes(DataSegment& segment);
  void save_sealed(DataSegment& segment);
  Result<void> sum_up(DataSegment& segment);
  Result<void> rewrite(DataSegment& segment, std::uint64_t from);
  bool last_block_damaged(std::int64_t end);
  Result<void> finish();

  RolledLog& log_;
  const FrameFormat& format_;
  RecoveryPoint began_;        // base and position: where the scan began
  std::int64_t next_ = 0;      // offset the next frame has at least
  EpochList epochs_on_file_;   // of the layout, before the recovery point's took their place
  FrameProof proof_;           // of frames in blocks that the sums don't vouch for
  bool damaged_tail_ = false;  // the last segment's end does not read
  PartFolder parts_;
  std::vector<Held> held_;  // frames of a batch whose other parts are yet to come
};

}  // namespace polylog::storage
