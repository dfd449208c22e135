#include "storage/segment/recovery.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "format/segment/frame.h"
#include "format/segment/record.h"

namespace polylog::storage::segment {
namespace {

namespace stored = format::segment;

// Every segment here was made by load_segment() or by the log.
Segment& of_layout(DataSegment& segment) { return static_cast<Segment&>(segment); }

constexpr std::string_view file_suffix = ".msg";

// The number of "7.msg"; numbers are written without zeros in front.
std::optional<std::int64_t> parse_number(std::string_view name) {
  if (!name.ends_with(file_suffix)) return std::nullopt;
  name.remove_suffix(file_suffix.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  if (name.size() > 1 && name.front() == '0') return std::nullopt;
  return number;
}

}  // namespace

Result<void> SegmentLog::recover(const Evidence& evidence, Recovery& report) {
  LogRecovery recovery(*this, evidence, report);
  return recovery.run();
}

Result<void> LogRecovery::load_segments() {
  POLYLOG_ASSIGN(names, log_.context_.fs.list(log_.directory()));
  std::vector<std::int64_t> numbers;
  for (const std::string& name : names) {
    if (const auto number = parse_number(name)) {
      numbers.push_back(*number);
    } else {
      note(name + " is left alone: no segment's name");
    }
  }
  std::sort(numbers.begin(), numbers.end());
  for (const std::int64_t number : numbers) {
    POLYLOG_ASSIGN(segment, load_segment(number));
    segments().push_back(std::move(segment));
  }
  if (numbers.empty()) return {};
  log_.next_number_ = numbers.back() + 1;
  // Before the very first segment there was nothing: offsets below its first record are a gap.
  DataSegment& first = *segments().front();
  if (first.number == 0 && first.base > evidence_.log_start) first.base = evidence_.log_start;
  return {};
}

Result<std::shared_ptr<Segment>> LogRecovery::load_segment(std::int64_t number) {
  auto segment =
      std::make_shared<Segment>(log_.context_.for_segments(), *log_.store_.index, log_.directory(),
                                log_.index_name_, number, unknown_base);
  POLYLOG_TRY(load_data(*segment));
  const auto covered = segment->covered();
  if (segment->size > 0) {
    POLYLOG_ASSIGN(first, first_offset(*segment, covered));
    segment->base = first;
  }
  if (covered && covered->base == segment->base) {
    segment->adopt(*covered);
  } else {
    POLYLOG_TRY(segment->trim_indexes());
  }
  return segment;
}

// Where the segment begins: its first frame says so, or, when that is damaged, the index does.
Result<std::int64_t> LogRecovery::first_offset(
    const Segment& segment, const std::optional<PositionIndex::Covered>& covered) {
  POLYLOG_ASSIGN(file, segment.data());
  std::array<std::uint8_t, stored::frame_head_bytes> head{};
  POLYLOG_ASSIGN(got, file->read(0, head));
  const auto frame = stored::next_frame(ByteView(head).first(got), segment.size);
  const bool reads = got == head.size() && frame.state == stored::FrameState::complete;
  const std::int64_t before = segments().empty() ? unknown_base : segments().back()->base;
  if (reads && (!covered || covered->base == frame.offset.value()) &&
      frame.offset.value() > before) {
    std::vector<std::uint8_t> whole(static_cast<std::size_t>(frame.size));
    POLYLOG_ASSIGN(read, file->read(0, whole));
    const auto parsed = stored::parse_frame(ByteView(whole).first(read));
    if (parsed && !stored::is_ours(*parsed)) {
      return fail(Errc::unsupported, segment.data_path() +
                                         " was written by RobustMQ; `polylog convert` takes its "
                                         "records over");
    }
    return frame.offset.value();
  }
  return covered && covered->base > before ? covered->base : unknown_base;
}

Result<void> LogRecovery::load_epochs() {
  if (evidence_.note != nullptr) epochs() = EpochList(evidence_.note->epochs);
  return {};
}

Result<bool> LogRecovery::use_point(DataSegment& data, const RecoveryPoint& point, Start& start) {
  if (point.position == 0) return true;  // nothing was in it
  Segment& segment = of_layout(data);
  const auto covered = segment.covered();
  if (!covered || covered->base != segment.base) {
    start.position = 0;
    start.offset = segment.base;
    return true;
  }
  if (covered->position < point.position) {
    // The index is behind, it is not synced on its own: entries are made again from where it ends.
    start.position = covered->position;
    start.offset = covered->next;
    segment.adopt(*covered);
  } else {
    segment.adopt({segment.inode, segment.base, point.position, point.offset, point.max_timestamp,
                   point.max_timestamp_offset, point.first_timestamp});
  }
  segment.cut_entries(start.offset);
  return true;
}

Result<LogRecovery::Start> LogRecovery::start_without_point() {
  return Start{0, 0, std::max<std::int64_t>(segments().front()->base, 0)};
}

Result<void> LogRecovery::prepare_scan(DataSegment& segment, std::uint64_t position) {
  if (position > 0) return {};
  return drop_indexes(segment);
}

bool LogRecovery::wants_indexes(const DataSegment& segment) const {
  return segment.has_unsaved_entries();
}

Result<void> LogRecovery::drop_indexes(DataSegment& segment) {
  segment.forget_indexes();
  return segment.trim_indexes();
}

void LogRecovery::save_indexes(DataSegment& data) {
  Segment& segment = of_layout(data);
  const auto behind = std::upper_bound(
      segments().begin(), segments().end(), data.number,
      [](std::int64_t number, const auto& other) { return number < other->number; });
  const bool known = behind != segments().end() && (*behind)->base != unknown_base;
  const Segment::Unsaved unsaved = segment.unsaved(known ? (*behind)->base : reached());
  if (auto saved = segment.save(unsaved); saved) segment.saved(unsaved);
}

Result<void> LogRecovery::load_times(DataSegment& segment) {
  return of_layout(segment).load_first_time();
}

}  // namespace polylog::storage::segment
