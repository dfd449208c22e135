#include "storage/segment/log.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "format/segment/record.h"

namespace polylog::storage::segment {
namespace {

// Every segment in a SegmentLog was made by it or by its recovery.
Segment& of_layout(DataSegment& segment) { return static_cast<Segment&>(segment); }

}  // namespace

SegmentLog::SegmentLog(SegmentStoreContext& context, TopicPartition id, const Uuid& topic,
                       std::string directory, std::string shard, const LogConfig& config)
    : RolledLog(context, record_frames, std::move(id), topic, std::move(directory), config),
      store_(context),
      shard_(std::move(shard)),
      index_name_(shard_ + '\0' + std::string(as_text(ByteView(topic.bytes)))) {}

RolledLog::PlacedBytes SegmentLog::place(const Batch& batch, const BatchInfo& info) {
  std::vector<std::uint8_t> frames = to_vector(batch.bytes.view());
  Offset offset = info.first;
  for (MutableBytes rest(frames); !rest.empty();) {
    const auto head = format_.head(rest.first(format_.head_bytes()), rest.size());
    POLYLOG_ASSERT(head.state == FrameFormat::Head::State::complete);
    format::segment::place(rest.first(static_cast<std::size_t>(head.size)), offset);
    rest = rest.subspan(static_cast<std::size_t>(head.size));
    offset = offset + 1;
  }
  POLYLOG_ASSERT(offset == info.last + 1);
  PlacedBytes placed;
  placed.rest = Slice::of(std::move(frames));
  return placed;
}

bool SegmentLog::nearly_full(std::uint64_t size) const {
  return size > static_cast<std::uint64_t>(config_.segment_bytes) / 10 * 9;
}

bool SegmentLog::must_roll_for(const BatchInfo& batch, std::uint64_t size, std::uint64_t) const {
  const std::int64_t before = (batch.first.value() + scroll_step - 1) / scroll_step;
  const std::int64_t through = batch.last.value() / scroll_step;
  return through >= before && size > 0 && nearly_full(size);
}

Result<void> SegmentLog::ask_for(std::int64_t number, std::int64_t start) {
  if (store_.grants == nullptr) return {};
  Result<void> granted;
  for (int i = 0; i < grant_tries; ++i) {
    granted = store_.grants->grant(id_, number, Offset(start));
    if (granted || granted.error().code != Errc::would_block) break;
  }
  if (granted) return {};
  return fail(Errc::unavailable, directory_ + ": segment " + std::to_string(number) +
                                     " is not granted: " + granted.error().to_string());
}

Result<std::shared_ptr<DataSegment>> SegmentLog::make_segment(std::int64_t base) {
  POLYLOG_TRY(ask_for(next_number_, base));
  auto segment = std::make_shared<Segment>(context_.for_segments(), *store_.index, directory_,
                                           index_name_, next_number_, base);
  POLYLOG_TRY(begin_file(*segment));
  ++next_number_;
  return std::shared_ptr<DataSegment>(std::move(segment));
}

Result<void> SegmentLog::note_state(const BatchInfo& batch, ByteView, DataSegment*) {
  if (batch.producer.id != no_producer) producers_.update(batch, LogPosition(0));
  return {};
}

void SegmentLog::fact_noted() {
  const std::lock_guard lock(mutex_);
  facts_dirty_ = true;
}

Result<void> SegmentLog::epoch_starts(const EpochList::Entry& entry) {
  POLYLOG_TRY(context_.sidecar->epoch_start(sidecar_id_, entry));
  facts_dirty_ = true;
  return {};
}

Result<void> SegmentLog::save_indexes(const std::shared_ptr<DataSegment>& segment,
                                      std::vector<fs::FilePtr>&) {
  Segment& indexed = of_layout(*segment);
  Segment::Unsaved unsaved;
  {
    const std::lock_guard lock(mutex_);
    const auto behind = std::upper_bound(
        segments_.begin(), segments_.end(), segment->number,
        [](std::int64_t number, const auto& other) { return number < other->number; });
    unsaved = indexed.unsaved(behind == segments_.end() ? written_end_ : (*behind)->base);
  }
  POLYLOG_TRY(indexed.save(unsaved));
  const std::lock_guard lock(mutex_);
  indexed.saved(unsaved);
  return {};
}

// A fact is on the disk with, or before, the records that rely on it.
Result<void> SegmentLog::prepare_round(DirtyLog& out) {
  {
    const std::lock_guard lock(mutex_);
    if (!facts_dirty_) return {};
  }
  if (context_.sidecar->silent()) {
    if (auto healed = store_.heal_sidecar(); !healed) {
      return fail(Errc::no_space, healed.error().to_string());
    }
  }
  const std::lock_guard lock(mutex_);
  facts_dirty_ = false;
  facts_ = context_.sidecar->extent();
  out.files.push_back(facts_.file);
  out.directories.push_back(store_.sidecar_directory);
  return {};
}

}  // namespace polylog::storage::segment
