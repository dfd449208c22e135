#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "bytes/endian.h"
#include "cli/dump_files.h"
#include "cli/dump_frame.h"
#include "cli/dump_walk.h"
#include "cli/progress.h"
#include "storage/filelog/scan.h"

namespace polylog::cli {
namespace {

namespace segment = format::segment;
using segment::FrameState;
using storage::FrameSize;
using storage::ScanFrame;
using storage::ScanStep;

// A frame above this is stepped over: nothing that a broker accepts comes near it.
constexpr std::uint64_t frame_bytes_max = std::uint64_t{512} << 20;
// Behind damage, offsets that are further on than this are taken for other bytes.
constexpr std::int64_t offsets_lost_max = std::int64_t{1} << 40;

struct SegmentDecoder {
  FrameSize frame_size(ByteView window) const {
    if (window.size() < segment::frame_head_bytes) {
      return {FrameSize::Kind::more, segment::frame_head_bytes};
    }
    const auto frame = segment::next_frame(window, frame_bytes_max);
    switch (frame.state) {
      case FrameState::complete: return {FrameSize::Kind::complete, frame.size};
      case FrameState::zeros: return {FrameSize::Kind::end, 0};
      case FrameState::torn:
      case FrameState::corrupt: break;
    }
    return {FrameSize::Kind::corrupt, 0};
  }
};

class SegmentDump {
 public:
  SegmentDump(const DumpFile& file, const DumpOptions& options, DumpReport& report)
      : file_(file), options_(options), report_(report), progress_(file.path, file.size) {}

  Result<void> run() {
    POLYLOG_TRY(walk_frames(
        file_, SegmentDecoder{}, frame_bytes_max,
        [this](const ScanFrame& frame) { return visit(frame); },
        [this](std::uint64_t& position) { return step_over(position); }));
    end_batch();
    std::vector<DumpReport::Count> counts = {{"records", records_}};
    if (records_ > 0) {
      counts.push_back({"first_offset", first_offset_});
      counts.push_back({"last_offset", last_offset_});
    }
    if (of_robustmq_ > 0) counts.push_back({"of_robustmq", of_robustmq_});
    report_.end_file(counts);
    return {};
  }

 private:
  ScanStep visit(const ScanFrame& frame) {
    const auto shown = FrameShown::read(frame.bytes);
    if (!shown) {
      why_ = shown.error().context;
      return ScanStep::corrupt;
    }
    progress_.at(frame.position);
    shown->show(frame.position, options_.records, report_);
    if (!shown->damage().empty()) report_.damage(frame.position, shown->damage());
    const std::int64_t offset = shown->offset().value();
    if (records_ > 0 && offset <= last_offset_) {
      report_.damage(frame.position, "the record does not lie behind the one before");
    }
    note_part(*shown, frame.position);
    if (records_ == 0) first_offset_ = offset;
    last_offset_ = offset;
    ++records_;
    if (shown->of_robustmq()) ++of_robustmq_;
    return ScanStep::next;
  }

  void note_part(const FrameShown& shown, std::uint64_t position) {
    const auto part = shown.producer();
    if (!part || part->index == 0) batch_position_ = position;
    open_part_ = part && part->index + 1 < part->count ? part : std::nullopt;
  }

  // A batch that reached the disk in part is dropped when the broker starts.
  void end_batch() {
    if (!open_part_) return;
    report_.note(batch_position_, "the last batch has " + std::to_string(open_part_->index + 1) +
                                      " of its " + std::to_string(open_part_->count) +
                                      " records: as after a crash, a start drops them");
  }

  // What lies where the scan found no frame. True: it goes on at the new `position`.
  Result<bool> step_over(std::uint64_t& position) {
    const std::uint64_t left = file_.size - position;
    std::array<std::uint8_t, segment::frame_head_bytes> head{};
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, head.size()));
    POLYLOG_ASSIGN(got, file_.file->read(position, MutableBytes(head).first(wanted)));
    const auto frame = segment::next_frame(ByteView(head).first(got), left);
    if (frame.state == FrameState::zeros) {
      POLYLOG_ASSIGN(other, first_other_byte(file_, position));
      if (!other) {
        report_.note(position, "zeros to the end of the file, " + std::to_string(left) +
                                   " bytes: written by no one");
        return false;
      }
    }
    POLYLOG_ASSIGN(next, next_record(position));
    if (!next && frame.state == FrameState::torn) {
      report_.damage(position, "the file ends inside a record: " + std::to_string(left) +
                                   (frame.size > 0 ? " of " + std::to_string(frame.size) : "") +
                                   " bytes are there");
      return false;
    }
    if (why_.empty()) why_ = frame.state == FrameState::zeros ? "zeros" : "lengths out of range";
    const std::string why = std::exchange(why_, {});
    position = report_lost(file_, position, why, next, report_);
    open_part_.reset();
    return next.has_value();
  }

  // The first place behind `position` where a record begins whose checksum is right. Frames have
  // no magic, but their offsets rise and their lengths must add up.
  Result<std::optional<std::uint64_t>> next_record(std::uint64_t position) {
    std::vector<std::uint8_t> chunk(1 << 20);
    for (std::uint64_t from = position + 1; from + segment::frame_fixed_bytes <= file_.size;) {
      POLYLOG_ASSIGN(got, file_.file->read(from, chunk));
      if (got < segment::frame_head_bytes) break;
      for (std::size_t i = 0; i + segment::frame_head_bytes <= got; ++i) {
        const auto head =
            segment::next_frame(ByteView(chunk).subspan(i, got - i), file_.size - from - i);
        if (head.state != FrameState::complete || !plausible(head)) continue;
        POLYLOG_ASSIGN(sound, is_sound(from + i, head));
        if (sound) return from + i;
      }
      from += got - segment::frame_head_bytes + 1;
    }
    return std::optional<std::uint64_t>();
  }

  bool plausible(const segment::FrameHead& head) const {
    const std::int64_t offset = head.offset.value();
    return head.size <= frame_bytes_max && head.size > segment::frame_fixed_bytes &&
           (records_ == 0 || (offset > last_offset_ && offset - last_offset_ < offsets_lost_max));
  }

  Result<bool> is_sound(std::uint64_t position, const segment::FrameHead& head) {
    // The length between metadata and protocol data first: it rules almost everything out.
    std::array<std::uint8_t, segment::frame_head_bytes> front{};
    POLYLOG_TRY(file_.file->read(position, front));
    const std::uint64_t metadata =
        load_big<std::uint32_t>(front.data() + segment::frame_at::metadata_length);
    std::array<std::uint8_t, 4> length{};
    POLYLOG_TRY(file_.file->read(position + segment::frame_at::metadata + metadata, length));
    if (metadata + load_big<std::uint32_t>(length.data()) >
        head.size - segment::frame_fixed_bytes) {
      return false;
    }
    record_.resize(static_cast<std::size_t>(head.size));
    POLYLOG_ASSIGN(got, file_.file->read(position, record_));
    return got == record_.size() && is_sound_frame(record_);
  }

  const DumpFile& file_;
  const DumpOptions& options_;
  DumpReport& report_;
  Progress progress_;
  std::string why_;  // the scan stopped
  std::vector<std::uint8_t> record_;
  std::int64_t records_ = 0, of_robustmq_ = 0;
  std::int64_t first_offset_ = 0, last_offset_ = 0;
  std::uint64_t batch_position_ = 0;                // of the batch that the last record is of
  std::optional<segment::ProducerPart> open_part_;  // the last record's, more are to come
};

}  // namespace

Result<void> dump_segment(const DumpFile& file, const DumpOptions& options, DumpReport& report) {
  report.begin_file(
      file.path, "segment",
      {{"number", file.base_offset.value()}, {"bytes", static_cast<std::int64_t>(file.size)}});
  return SegmentDump(file, options, report).run();
}

}  // namespace polylog::cli
