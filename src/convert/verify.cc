#include "convert/verify.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "format/kafka/records.h"

namespace polylog::convert {
namespace {

using storage::PartitionLog;
namespace kafka = format::kafka;

constexpr std::size_t read_bytes = std::size_t{4} << 20;
constexpr std::size_t decompressed_bytes_max = std::size_t{1} << 30;
constexpr std::size_t step_bytes = std::size_t{1} << 20;

std::string text_of(Offset offset) { return std::to_string(offset.value()); }

std::string text_of(OffsetRange range) {
  return "[" + text_of(range.start) + ", " + text_of(range.end) + ")";
}

// A partition's batches from its start to its end, a few megabytes at a time.
class BatchStream {
 public:
  BatchStream(const PartitionLog& log, OffsetRange range)
      : log_(log), range_(range), at_(range.start) {}

  // False: all is read.
  Result<bool> next(std::vector<Batch>& batches) {
    if (at_ >= range_.end) return false;
    storage::ReadLimits limits;
    limits.bytes_max = read_bytes;
    limits.end = range_.end;
    limits.first_whole = true;
    POLYLOG_ASSIGN(read, log_.read(at_, limits));
    if (read.empty()) return false;
    at_ = read.back().info.last + 1;
    batches = std::move(read);
    return true;
  }
  // What came before `at` has been taken; the rest of the last read was not.
  void go_back(Offset at) { at_ = at; }

 private:
  const PartitionLog& log_;
  const OffsetRange range_;
  Offset at_;
};

// A partition's records in Kafka's terms, whatever its layout.
class RecordStream {
 public:
  // `producers`: whether largest_producer() is wanted, which costs a look at each frame.
  RecordStream(const PartitionLog& log, OffsetRange range, BatchFormat format,
               const Surroundings& around, bool producers)
      : stream_(log, range),
        start_(range.start),
        format_(format),
        around_(around),
        producers_(producers) {}

  ProducerId largest_producer() const { return largest_producer_; }  // of what was read

  // Null at the end. The record lives until the next call.
  Result<const Record*> next() {
    for (;;) {
      if (reader_) {
        POLYLOG_ASSIGN(more, reader_->next(record_));
        if (more && record_.offset < start_) continue;
        if (more) return &record_;
        reader_.reset();
      }
      POLYLOG_ASSIGN(opened, open_next_batch());
      if (!opened) return nullptr;
    }
  }

 private:
  Result<bool> open_next_batch() {
    while (frame_ >= frames_.size()) {
      std::vector<Batch> read;
      POLYLOG_ASSIGN(more, stream_.next(read));
      if (!more) return false;
      if (producers_) POLYLOG_TRY(note_producers(read));
      POLYLOG_ASSIGN(changed, change(read, BatchFormat::kafka, around_));
      if (!changed.empty()) stream_.go_back(changed.back().info.last + 1);
      batches_ = std::move(changed);
      frames_.clear();
      frame_ = 0;
      for (const Batch& batch : batches_) {
        POLYLOG_TRY(for_each_frame(BatchFormat::kafka, batch.bytes.view(),
                                   [&](const FrameView& frame) {
                                     frames_.push_back(frame.bytes);
                                     return Result<void>();
                                   }));
      }
    }
    const ByteView frame = frames_[frame_++];
    POLYLOG_ASSIGN(reader, kafka::RecordReader::open(frame, decompressed_bytes_max));
    reader_.emplace(std::move(reader));
    return true;
  }

  Result<void> note_producers(const std::vector<Batch>& batches) {
    for (const Batch& batch : batches) {
      POLYLOG_TRY(for_each_frame(format_, batch.bytes.view(), [&](const FrameView& frame) {
        largest_producer_ = std::max(largest_producer_, frame.producer);
        return Result<void>();
      }));
    }
    return {};
  }

  BatchStream stream_;
  const Offset start_;
  const BatchFormat format_;
  const Surroundings& around_;
  const bool producers_;
  ProducerId largest_producer_ = no_producer;
  std::vector<Batch> batches_;
  std::vector<ByteView> frames_;
  std::size_t frame_ = 0;
  std::optional<kafka::RecordReader> reader_;
  Record record_;
};

// A partition's frames as they are stored.
class FrameStream {
 public:
  FrameStream(const PartitionLog& log, OffsetRange range, BatchFormat format)
      : stream_(log, range), format_(format) {}

  Result<const FrameView*> next() {
    while (frame_ >= frames_.size()) {
      POLYLOG_ASSIGN(more, stream_.next(batches_));
      if (!more) return nullptr;
      frames_.clear();
      frame_ = 0;
      for (const Batch& batch : batches_) {
        POLYLOG_TRY(for_each_frame(format_, batch.bytes.view(), [&](const FrameView& frame) {
          frames_.push_back(frame);
          return Result<void>();
        }));
      }
    }
    return &frames_[frame_++];
  }

 private:
  BatchStream stream_;
  const BatchFormat format_;
  std::vector<Batch> batches_;
  std::vector<FrameView> frames_;
  std::size_t frame_ = 0;
};

bool same_bytes(ByteView a, ByteView b) { return std::ranges::equal(a, b); }

bool same_bytes(const std::optional<ByteView>& a, const std::optional<ByteView>& b) {
  return a.has_value() == b.has_value() && (!a || same_bytes(*a, *b));
}

// What differs, or nothing.
std::string_view difference(const Record& a, const Record& b) {
  if (a.offset != b.offset) return "offset";
  if (a.timestamp != b.timestamp) return "timestamp";
  if (!same_bytes(a.key, b.key)) return "key";
  if (!same_bytes(a.value, b.value)) return "value";
  const bool headers = std::ranges::equal(
      a.headers, b.headers, [](const Header& x, const Header& y) {
        return x.name == y.name && same_bytes(x.value, y.value);
      });
  return headers ? std::string_view() : "headers";
}

Result<bool> same_frames(BatchFormat format, ByteView a, ByteView b) {
  if (same_bytes(a, b)) return true;
  POLYLOG_ASSIGN(left, comparable(format, a));
  POLYLOG_ASSIGN(right, comparable(format, b));
  return left == right;
}

Result<Compared> compare_frames(const PartitionLog& source, const PartitionLog& target,
                                OffsetRange range, BatchFormat format, const Step& step) {
  FrameStream a(source, range, format), b(target, range, format);
  Compared compared;
  std::size_t unsaid = 0;  // bytes since the last step
  for (;;) {
    POLYLOG_ASSIGN(left, a.next());
    POLYLOG_ASSIGN(right, b.next());
    if (left == nullptr || right == nullptr) {
      // Empty batches that only keep an end are no records.
      for (const FrameView* rest = left != nullptr ? left : right; rest != nullptr;) {
        if (rest->records > 0) {
          return fail(Errc::invalid, "offset " + text_of(rest->first) + ": only in " +
                                         (left != nullptr ? "the source" : "the result"));
        }
        POLYLOG_ASSIGN(more, left != nullptr ? a.next() : b.next());
        rest = more;
      }
      return compared;
    }
    POLYLOG_ASSIGN(same, same_frames(format, left->bytes, right->bytes));
    if (!same) {
      return fail(Errc::invalid, "offset " + text_of(std::min(left->first, right->first)) +
                                     ": what is stored differs");
    }
    compared.records += static_cast<std::uint64_t>(left->records);
    compared.largest_producer = std::max(compared.largest_producer, left->producer);
    unsaid += left->bytes.size();
    if (unsaid < step_bytes) continue;
    unsaid = 0;
    POLYLOG_TRY(step(left->last + 1));
  }
}

Result<Compared> compare_records(RecordStream& a, RecordStream& b, const Step& step) {
  Compared compared;
  for (;;) {
    POLYLOG_ASSIGN(left, a.next());
    POLYLOG_ASSIGN(right, b.next());
    if (left == nullptr && right == nullptr) {
      compared.largest_producer = a.largest_producer();
      return compared;
    }
    if (left == nullptr || right == nullptr) {
      const Offset at = left != nullptr ? left->offset : right->offset;
      return fail(Errc::invalid, "offset " + text_of(at) + ": only in " +
                                     (left != nullptr ? "the source" : "the result"));
    }
    const std::string_view differs = difference(*left, *right);
    if (!differs.empty()) {
      return fail(Errc::invalid, "offset " + text_of(left->offset) + ": the " +
                                     std::string(differs) + " differs");
    }
    if (++compared.records % 1024 == 0) POLYLOG_TRY(step(left->offset + 1));
  }
}

}  // namespace

Result<Compared> compare(const PartitionLog& source, BatchFormat source_format,
                         const PartitionLog& target, BatchFormat target_format,
                         const Surroundings& surroundings, const Step& step) {
  const OffsetRange range = source.offsets();
  if (target.offsets() != range) {
    return fail(Errc::invalid, "the source has the offsets " + text_of(range) + ", the result " +
                                   text_of(target.offsets()));
  }
  if (source_format == target_format) {
    return compare_frames(source, target, range, source_format, step);
  }
  RecordStream from(source, range, source_format, surroundings, true);
  RecordStream to(target, range, target_format, surroundings, false);
  return compare_records(from, to, step);
}

}  // namespace polylog::convert
