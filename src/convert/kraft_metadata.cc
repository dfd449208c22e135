#include "convert/kraft_metadata.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "format/kafka/names.h"
#include "format/kafka/record_batch.h"
#include "format/kafka/records.h"
#include "storage/filelog/scan.h"

namespace polylog::convert {
namespace {

namespace kafka = format::kafka;
using kafka::ClusterMetadata;
using storage::FrameSize;
using storage::ScanEnd;
using storage::ScanFrame;
using storage::ScanStep;

constexpr std::string_view snapshot_suffix = ".checkpoint";
constexpr std::size_t offset_digits = 20;
constexpr std::size_t epoch_digits = 10;
constexpr std::size_t decompressed_bytes_max = std::size_t{1} << 30;

std::optional<std::int64_t> parse_digits(std::string_view digits) {
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value);
  const bool good = error == std::errc() && at == end && value >= 0;
  return good ? std::optional(value) : std::nullopt;
}

struct Snapshot {
  std::int64_t end = 0;  // offset behind what it holds
  std::int64_t epoch = 0;
  std::string name;
};

std::optional<Snapshot> parse_snapshot(const std::string& name) {
  const std::string_view text(name);
  if (text.size() != offset_digits + 1 + epoch_digits + snapshot_suffix.size() ||
      !text.ends_with(snapshot_suffix) || text[offset_digits] != '-') {
    return std::nullopt;
  }
  const auto end = parse_digits(text.substr(0, offset_digits));
  const auto epoch = parse_digits(text.substr(offset_digits + 1, epoch_digits));
  if (!end || !epoch) return std::nullopt;
  return Snapshot{*end, *epoch, name};
}

struct Segment {
  std::int64_t base = 0;
  std::string name;
};

class BatchDecoder {
 public:
  FrameSize frame_size(ByteView window) const {
    if (window.size() < kafka::header_bytes) return {FrameSize::Kind::more, kafka::header_bytes};
    const kafka::FrameHead head =
        kafka::next_frame(window, std::numeric_limits<std::uint64_t>::max());
    if (head.state == kafka::FrameState::complete) return {FrameSize::Kind::complete, head.size};
    const bool zeros = head.state == kafka::FrameState::zeros;
    return {zeros ? FrameSize::Kind::end : FrameSize::Kind::corrupt, 0};
  }
};

class MetadataReader {
 public:
  MetadataReader(fs::FileSystem& fs, std::string folder, std::vector<std::string>& notes)
      : fs_(fs), folder_(std::move(folder)), notes_(notes) {}

  Result<ClusterMetadata> read() {
    POLYLOG_TRY(list());
    if (latest_) {
      POLYLOG_TRY(read_snapshot());
      next_ = latest_->end;
    }
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const bool is_last = i + 1 == segments_.size();
      if (!is_last && segments_[i + 1].base <= next_) continue;  // the snapshot has all of it
      POLYLOG_TRY(read_segment(segments_[i], is_last));
    }
    metadata_.finish();
    return std::move(metadata_);
  }

 private:
  Result<void> list() {
    POLYLOG_ASSIGN(names, fs_.list(folder_));
    for (const std::string& name : names) {
      if (auto snapshot = parse_snapshot(name)) {
        const bool later =
            !latest_ || std::pair(snapshot->end, snapshot->epoch) >
                            std::pair(latest_->end, latest_->epoch);
        if (later) latest_ = std::move(snapshot);
        continue;
      }
      const auto file = kafka::parse_segment_file_name(name);
      if (!file || !*file || (*file)->file != kafka::SegmentFile::log ||
          (*file)->stage != kafka::FileStage::live) {
        continue;
      }
      segments_.push_back({(*file)->offset.value(), name});
    }
    std::sort(segments_.begin(), segments_.end(),
              [](const Segment& a, const Segment& b) { return a.base < b.base; });
    return {};
  }

  Error at(const std::string& name, std::uint64_t position, const Error& error) const {
    return {error.code, fs::join(folder_, name) + ", position " + std::to_string(position) + ": " +
                            error.context};
  }

  Result<void> take(ByteView batch, std::int64_t from) {
    Result<void> applied;
    const auto each = [&](const Record& record) {
      if (record.offset.value() < from) return true;
      if (!record.value) {
        applied = fail(Errc::corrupt, "a record without a value");
        return false;
      }
      auto decoded = kafka::decode_metadata_record(*record.value);
      applied = decoded ? metadata_.apply(*decoded) : fail(decoded.error());
      return applied.has_value();
    };
    POLYLOG_TRY(kafka::for_each_record(batch, decompressed_bytes_max, each));
    return applied;
  }

  Result<void> read_snapshot() {
    bool ended = false;
    const auto take_batch = [&](const kafka::BatchHeader& header, ByteView batch) -> Result<void> {
      if (!header.control()) return take(batch, 0);
      POLYLOG_ASSIGN(control, kafka::parse_control(batch));
      ended = ended || control.type == kafka::ControlType::snapshot_footer;
      return {};
    };
    POLYLOG_ASSIGN(position, scan_file(latest_->name, take_batch));
    if (ended) return {};
    return fail(at(latest_->name, position, {Errc::corrupt, "the snapshot has no end"}));
  }

  Result<void> read_segment(const Segment& segment, bool is_last) {
    if (segment.base > next_) {
      return fail(at(segment.name, 0, {Errc::corrupt, "the records from offset " +
                                                          std::to_string(next_) + " on are lost"}));
    }
    std::int64_t expected = segment.base;
    const auto take_batch = [&](const kafka::BatchHeader& header, ByteView batch) -> Result<void> {
      if (header.base_offset.value() != expected) {
        return fail(Errc::corrupt, "offset " + std::to_string(header.base_offset.value()) +
                                       " where " + std::to_string(expected) + " should be");
      }
      expected = header.last_offset().value() + 1;
      if (!header.control() && expected > next_) POLYLOG_TRY(take(batch, next_));
      next_ = std::max(next_, expected);
      return {};
    };
    POLYLOG_ASSIGN(info, fs_.info(fs::join(folder_, segment.name)));
    POLYLOG_ASSIGN(position, scan_file(segment.name, take_batch));
    if (position == info.size) return {};
    if (!is_last) return fail(at(segment.name, position, {Errc::corrupt, "it does not read"}));
    POLYLOG_ASSIGN(zeros, only_zeros(segment.name, position, info.size));
    if (zeros) return {};
    notes_.push_back(fs::join(folder_, segment.name) + ", position " + std::to_string(position) +
                     ": what comes from here on does not read and is left out, as after a crash");
    return {};
  }

  // Where the batches end that read. What `take_batch` answers ends it, too.
  template <typename F>
  Result<std::uint64_t> scan_file(const std::string& name, F&& take_batch) {
    const std::string path = fs::join(folder_, name);
    POLYLOG_ASSIGN(info, fs_.info(path));
    POLYLOG_ASSIGN(file, fs_.open(path, fs::OpenMode::read));
    Result<void> taken;
    std::uint64_t position = 0;
    const auto visit = [&](const ScanFrame& frame) {
      position = frame.position;
      if (!kafka::crc_matches(frame.bytes)) {
        // A torn write is the last thing in a file.
        if (frame.position + frame.bytes.size() < info.size) {
          taken = fail(Errc::corrupt, "a batch does not match its checksum");
        }
        return ScanStep::corrupt;
      }
      taken = take_batch(kafka::decode_header(frame.bytes), frame.bytes);
      return taken ? ScanStep::next : ScanStep::stop;
    };
    POLYLOG_ASSIGN(end, storage::scan(*file, 0, info.size, BatchDecoder(), info.size, visit));
    if (!taken) return fail(at(name, position, taken.error()));
    return end.position;
  }

  Result<bool> only_zeros(const std::string& name, std::uint64_t from, std::uint64_t to) {
    POLYLOG_ASSIGN(file, fs_.open(fs::join(folder_, name), fs::OpenMode::read));
    std::vector<std::uint8_t> chunk(64 * 1024);
    for (std::uint64_t position = from; position < to;) {
      POLYLOG_ASSIGN(got, file->read(position, chunk));
      if (got == 0) break;
      const auto end = chunk.begin() + static_cast<std::ptrdiff_t>(got);
      if (std::any_of(chunk.begin(), end, [](std::uint8_t byte) { return byte != 0; })) {
        return false;
      }
      position += got;
    }
    return true;
  }

  fs::FileSystem& fs_;
  const std::string folder_;
  std::vector<std::string>& notes_;
  std::optional<Snapshot> latest_;
  std::vector<Segment> segments_;
  std::int64_t next_ = 0;  // offset behind what was taken
  ClusterMetadata metadata_;
};

}  // namespace

Result<std::optional<ClusterMetadata>> read_kraft_metadata(fs::FileSystem& fs,
                                                           const std::string& directory,
                                                           std::vector<std::string>& notes) {
  const std::string folder =
      fs::join(directory, std::string(kafka::cluster_metadata_topic) + "-0");
  const auto info = fs.info(folder);
  if (!info && info.error().code != Errc::not_found) return fail(info.error());
  if (!info || !info->directory) return std::optional<ClusterMetadata>();
  MetadataReader reader(fs, folder, notes);
  POLYLOG_ASSIGN(metadata, reader.read());
  return std::optional(std::move(metadata));
}

}  // namespace polylog::convert
