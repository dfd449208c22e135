#include "convert/robustmq_shard.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "bytes/endian.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/robustmq.h"

namespace polylog::convert {
namespace {

namespace segment = format::segment;
using segment::FrameHead;
using segment::FrameState;

constexpr std::string_view file_suffix = ".msg";
constexpr std::uint64_t window_bytes = 1 << 20;
constexpr std::uint64_t place_step_bytes = 1 << 20;

std::string place_text(const std::string& path, std::uint64_t position) {
  return path + ", position " + std::to_string(position);
}

// A file's bytes, a window at a time.
class Window {
 public:
  Window(const fs::File& file, std::uint64_t size) : file_(file), size_(size) {}

  std::uint64_t size() const { return size_; }

  // As many of the bytes as the file has. The view lives until the next call.
  Result<ByteView> at(std::uint64_t position, std::uint64_t bytes) {
    bytes = std::min(bytes, size_ - position);
    if (position < begin_ || position + bytes > begin_ + buffer_.size()) {
      const std::uint64_t wanted = std::min(std::max(bytes, window_bytes), size_ - position);
      buffer_.resize(static_cast<std::size_t>(wanted));
      begin_ = position;
      auto got = file_.read(position, buffer_);
      if (!got || *got < bytes) {
        buffer_.clear();
        if (!got) return fail(got.error());
        return fail(Errc::io, "the file is shorter than it was");
      }
      buffer_.resize(*got);
    }
    return ByteView(buffer_).subspan(static_cast<std::size_t>(position - begin_),
                                     static_cast<std::size_t>(bytes));
  }

 private:
  const fs::File& file_;
  const std::uint64_t size_;
  std::uint64_t begin_ = 0;
  std::vector<std::uint8_t> buffer_;
};

Result<FrameHead> head_at(Window& window, std::uint64_t position) {
  POLYLOG_ASSIGN(front, window.at(position, segment::frame_head_bytes));
  return segment::next_frame(front, window.size() - position);
}

// A whole record, or corrupt and what is wrong; `frame` is where its views point.
struct Found {
  ByteView frame;
  segment::RobustmqRecord record;
};
Result<Found> record_at(Window& window, std::uint64_t position) {
  POLYLOG_ASSIGN(head, head_at(window, position));
  if (head.state == FrameState::torn) return fail(Errc::corrupt, "the file ends inside a record");
  if (head.state == FrameState::zeros) return fail(Errc::corrupt, "zeros, and no record");
  if (head.state != FrameState::complete) return fail(Errc::corrupt, "no record begins so");
  Found found;
  POLYLOG_ASSIGN(frame, window.at(position, head.size));
  found.frame = frame;
  POLYLOG_ASSIGN(parts, segment::parse_frame(frame));
  if (segment::is_ours(parts)) {
    return fail(Errc::invalid,
                "the record was written by polylog: give the data directory that "
                "the file is in");
  }
  POLYLOG_ASSIGN(record, segment::decode_robustmq(frame));
  found.record = std::move(record);
  return found;
}

// RobustMQ takes any number from a client; MQTT has 0 and 1.
bool has_bad_payload_format(const segment::RobustmqRecord& record) {
  return record.mqtt && record.mqtt->payload_format.value_or(0) > 1;
}

// Whether the three lengths of a frame add up, looked at without its parts.
Result<bool> adds_up(Window& window, std::uint64_t position) {
  const auto length_at = [&](std::uint64_t at) -> Result<std::uint64_t> {
    POLYLOG_ASSIGN(bytes, window.at(at, 4));
    if (bytes.size() < 4) return std::uint64_t{UINT32_MAX};
    return std::uint64_t{load_big<std::uint32_t>(bytes.data())};
  };
  POLYLOG_ASSIGN(total, length_at(position + segment::frame_at::total_length));
  POLYLOG_ASSIGN(metadata, length_at(position + segment::frame_at::metadata_length));
  if (metadata < segment::robustmq_root_bytes) return false;
  const std::uint64_t protocol_at = position + segment::frame_at::metadata + metadata;
  POLYLOG_ASSIGN(protocol, length_at(protocol_at));
  if (metadata + protocol > total) return false;
  POLYLOG_ASSIGN(data, length_at(protocol_at + 4 + protocol));
  return metadata + protocol + data == total;
}

// Whether a record begins anywhere behind a place that does not read: then that is no unfinished
// write. Offsets tell most places apart without a further look.
Result<bool> record_behind(Window& window, std::uint64_t position, std::int64_t next) {
  constexpr std::int64_t offsets_ahead_max = std::int64_t{1} << 32;
  for (std::uint64_t at = position + 1; at + segment::frame_fixed_bytes <= window.size(); ++at) {
    POLYLOG_ASSIGN(front, window.at(at, segment::frame_head_bytes));
    const FrameHead head = segment::next_frame(front, window.size() - at);
    if (head.state != FrameState::complete || head.offset.value() < next ||
        head.offset.value() - next > offsets_ahead_max) {
      continue;
    }
    POLYLOG_ASSIGN(likely, adds_up(window, at));
    if (!likely) continue;
    const auto found = record_at(window, at);
    if (found) return true;
    if (found.error().code == Errc::io) return fail(found.error());
  }
  return false;
}

tl::unexpected<Error> read_only() {
  return fail(Errc::unsupported, "RobustMQ's files are only read here");
}

}  // namespace

std::optional<std::uint32_t> parse_robustmq_file(std::string_view name) {
  if (!name.ends_with(file_suffix)) return std::nullopt;
  name.remove_suffix(file_suffix.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  if (!whole || std::to_string(number) != name) return std::nullopt;
  return number;
}

Result<std::shared_ptr<RobustmqShard>> RobustmqShard::open(fs::FileSystem& fs,
                                                           std::string directory,
                                                           std::vector<std::string>& notes) {
  std::shared_ptr<RobustmqShard> made(new RobustmqShard(fs, std::move(directory)));
  POLYLOG_TRY(made->list_files(notes));
  for (std::size_t i = 0; i < made->files_.size(); ++i) POLYLOG_TRY(made->scan(i, notes));
  for (const auto& [part, records] : made->parts_without_place_) {
    notes.push_back(made->directory_ + ": " + std::to_string(records) +
                    (records == 1 ? " record has" : " records have") + " a part \"" + part +
                    "\" that no layout here has a place for; it is left out");
  }
  return made;
}

Result<void> RobustmqShard::list_files(std::vector<std::string>& notes) {
  POLYLOG_ASSIGN(names, fs_.list(directory_));
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : names) {
    if (const auto number = parse_robustmq_file(name)) {
      numbers.push_back(*number);
    } else {
      notes.push_back(fs::join(directory_, name) + " is left out: no segment's name");
    }
  }
  std::sort(numbers.begin(), numbers.end());
  for (const std::uint32_t number : numbers) {
    SegmentFile made;
    made.path = fs::join(directory_, std::to_string(number) + std::string(file_suffix));
    POLYLOG_ASSIGN(info, fs_.info(made.path));
    made.size = info.size;
    files_.push_back(std::move(made));
  }
  return {};
}

// Decodes everything in a file: what can't be taken over shows before anything is written.
Result<void> RobustmqShard::scan(std::size_t index, std::vector<std::string>& notes) {
  SegmentFile& file = files_[index];
  POLYLOG_ASSIGN(opened, fs_.open(file.path, fs::OpenMode::read));
  Window window(*opened, file.size);
  std::uint64_t indexed = 0;
  for (std::uint64_t position = 0; position < file.size;) {
    const auto found = record_at(window, position);
    if (!found) {
      const std::string at = place_text(file.path, position);
      const Error& why = found.error();
      bool torn = why.code == Errc::corrupt && index + 1 == files_.size();
      if (torn) {
        POLYLOG_ASSIGN(behind, record_behind(window, position, end_));
        torn = !behind;
      }
      if (!torn) return fail(why.code, at + ": " + why.context);
      notes.push_back(at + ": " + why.context + "; " + std::to_string(file.size - position) +
                      " bytes to the end are left out");
      file.size = position;
      return {};
    }
    const std::int64_t offset = found->record.record.offset.value();
    if (begun_ && offset < end_) {
      return fail(Errc::corrupt, place_text(file.path, position) + ": offset " +
                                     std::to_string(offset) + " behind offset " +
                                     std::to_string(end_ - 1) +
                                     ", as RobustMQ leaves it where it wrote on after a crash");
    }
    const bool wants_place = position == 0 || position - indexed >= place_step_bytes;
    if (wants_place) {
      places_.push_back({offset, index, position});
      indexed = position;
    }
    if (!begun_) start_ = offset;
    begun_ = true;
    end_ = offset + 1;
    for (const std::string& part : found->record.other_parts) ++parts_without_place_[part];
    if (has_bad_payload_format(found->record)) ++parts_without_place_["format_indicator"];
    position += found->frame.size();
  }
  return {};
}

// Collects records into one batch, up to the limits.
class RobustmqShard::Reading {
 public:
  Reading(fs::FileSystem& fs, Offset from, const storage::ReadLimits& limits)
      : fs_(fs), from_(from), limits_(limits) {}

  // False: the batch is full.
  Result<bool> read(const SegmentFile& file, std::uint64_t position) {
    POLYLOG_ASSIGN(opened, fs_.open(file.path, fs::OpenMode::read));
    Window window(*opened, file.size);
    while (position < file.size) {
      auto more = take(window, position);
      if (!more) {
        return fail(more.error().code,
                    place_text(file.path, position) + ": " + more.error().context);
      }
      if (!*more) return false;
    }
    return true;
  }

  std::vector<Batch> finish() {
    std::vector<Batch> batches;
    if (info_.records == 0) return batches;
    Batch batch;
    batch.format = BatchFormat::segment;
    batch.info = info_;
    batch.bytes = Slice::of(std::move(bytes_));
    batches.push_back(std::move(batch));
    return batches;
  }

 private:
  Result<bool> take(Window& window, std::uint64_t& position) {
    POLYLOG_ASSIGN(head, head_at(window, position));
    if (head.state == FrameState::complete && head.offset < from_) {
      position += head.size;
      return true;
    }
    if (head.state == FrameState::complete && head.offset >= limits_.end) return false;
    POLYLOG_ASSIGN(found, record_at(window, position));
    if (has_bad_payload_format(found.record)) found.record.mqtt->payload_format.reset();
    const std::size_t before = bytes_.size();
    POLYLOG_TRY(segment::encode(segment::to_stored(found.record), bytes_));
    const bool first_anyway = info_.records == 0 && limits_.first_whole;
    if (!first_anyway && (bytes_.size() > limits_.bytes_max ||
                          static_cast<std::size_t>(info_.records) >= limits_.records_max)) {
      bytes_.resize(before);
      return false;
    }
    const Offset offset = found.record.record.offset;
    segment::place(MutableBytes(bytes_).subspan(before), offset);
    if (info_.records++ == 0) info_.first = offset;
    info_.last = offset;
    info_.max_timestamp = std::max(info_.max_timestamp, found.record.record.timestamp);
    position += found.frame.size();
    return true;
  }

  fs::FileSystem& fs_;
  const Offset from_;
  const storage::ReadLimits& limits_;
  BatchInfo info_;
  std::vector<std::uint8_t> bytes_;
};

Result<std::vector<Batch>> RobustmqShard::read(Offset from, storage::ReadLimits limits) const {
  limits.end = std::min(limits.end, Offset(end_));
  if (from < Offset(start_) || from > limits.end) {
    return fail(Errc::out_of_range, "offset " + std::to_string(from.value()) + " is outside [" +
                                        std::to_string(start_) + ", " +
                                        std::to_string(limits.end.value()) + "]");
  }
  if (from == limits.end) return std::vector<Batch>();
  const auto beyond =
      std::upper_bound(places_.begin(), places_.end(), from.value(),
                       [](std::int64_t at, const Place& place) { return at < place.offset; });
  const Place place = beyond == places_.begin() ? Place() : *std::prev(beyond);
  Reading reading(fs_, from, limits);
  for (std::size_t i = place.file; i < files_.size(); ++i) {
    POLYLOG_ASSIGN(more, reading.read(files_[i], i == place.file ? place.position : 0));
    if (!more) break;
  }
  return reading.finish();
}

std::uint64_t RobustmqShard::size_bytes() const {
  std::uint64_t bytes = 0;
  for (const SegmentFile& file : files_) bytes += file.size;
  return bytes;
}

std::shared_ptr<storage::Log> RobustmqShard::log() const {
  return std::const_pointer_cast<RobustmqShard>(shared_from_this());
}

Result<storage::Staged> RobustmqShard::append(Batch) { return read_only(); }
Result<std::optional<storage::TimedOffset>> RobustmqShard::offset_for_time(Timestamp) const {
  return read_only();
}
Result<std::optional<storage::TimedOffset>> RobustmqShard::offset_of_max_timestamp() const {
  return read_only();
}
Result<void> RobustmqShard::advance_start(Offset) { return read_only(); }
Result<void> RobustmqShard::begin_epoch(LeaderEpoch) { return read_only(); }
Result<void> RobustmqShard::write_staged() { return read_only(); }
Result<void> RobustmqShard::truncate(LogPosition) { return read_only(); }
Result<storage::LogChunk> RobustmqShard::read_chunk(LogPosition, std::size_t) const {
  return read_only();
}
Result<LogPosition> RobustmqShard::append_chunk(const storage::LogChunk&) { return read_only(); }

}  // namespace polylog::convert
