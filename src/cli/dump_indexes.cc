#include <algorithm>
#include <array>
#include <optional>

#include "cli/dump_entries.h"
#include "cli/text.h"
#include "format/kafka/index.h"
#include "format/kafka/record_batch.h"
#include "storage/kafka/segment.h"

namespace polylog::cli {
namespace {

using format::kafka::OffsetIndexEntry;
using format::kafka::TimeIndexEntry;

constexpr std::uint64_t batch_bytes_max = std::uint64_t{512} << 20;

std::int64_t absolute(const DumpFile& file, std::int32_t relative) {
  return file.base_offset.value() + relative;
}

void begin(const DumpFile& file, std::string_view kind, DumpReport& report) {
  report.begin_file(
      file.path, kind,
      {{"base_offset", file.base_offset.value()}, {"bytes", static_cast<std::int64_t>(file.size)}});
}

// Whether a batch with this offset begins at the entry's position of the log.
Result<void> follow(const DumpFile& log, std::uint64_t at, const OffsetIndexEntry& entry,
                    std::int64_t offset, DumpReport& report) {
  const auto position = static_cast<std::uint64_t>(std::max(entry.position, 0));
  const std::string where = "position " + std::to_string(position) + " of the log";
  if (position >= log.size) {
    report.damage(at, where + " lies behind its end");
    return {};
  }
  std::array<std::uint8_t, format::kafka::header_bytes> head{};
  POLYLOG_ASSIGN(got, log.file->read(position, head));
  const auto frame = format::kafka::next_frame(ByteView(head).first(got), log.size - position);
  if (frame.state == format::kafka::FrameState::legacy) return {};
  if (frame.state != format::kafka::FrameState::complete) {
    report.damage(at, "no batch begins at " + where);
  } else if (frame.first().value() > offset) {
    report.damage(at, "the batch at " + where + " begins with offset " +
                          std::to_string(frame.first().value()));
  }
  return {};
}

}  // namespace

Result<void> dump_offset_index(const DumpFile& file, const DumpFile* log, DumpReport& report) {
  begin(file, "offset_index", report);
  std::optional<OffsetIndexEntry> before;
  Result<void> followed;
  POLYLOG_ASSIGN(
      entries,
      for_each_dump_entry(
          file, OffsetIndexEntry::bytes, true, report, [&](std::uint64_t at, ByteView bytes) {
            const OffsetIndexEntry entry = format::kafka::decode_offset_index_entry(bytes);
            const std::int64_t offset = absolute(file, entry.relative_offset);
            if (report.json()) {
              JsonWriter json = json_of_type("entry");
              json.field("offset", offset).field("position", entry.position);
              report.object(json);
            } else {
              report.person("  offset " + std::to_string(offset) + " position " +
                            std::to_string(entry.position));
            }
            if (entry.relative_offset < 0 || entry.position < 0) {
              report.damage(at, "a negative number");
            } else if (before && (entry.relative_offset <= before->relative_offset ||
                                  entry.position <= before->position)) {
              report.damage(at, "the entry does not lie behind the one before");
            } else if (log != nullptr && followed) {
              followed = follow(*log, at, entry, offset, report);
            }
            before = entry;
          }));
  POLYLOG_TRY(followed);
  report.end_file({{"entries", entries}});
  return {};
}

namespace {

struct TimedPlace {
  std::uint64_t at;  // in the index
  TimeIndexEntry entry;
};

// Each entry's offset must lie in a batch with that largest timestamp.
Result<void> follow_times(const DumpFile& file, const DumpFile& log,
                          const std::vector<TimedPlace>& places, DumpReport& report) {
  std::size_t next = 0;
  const auto visit = [&](const storage::ScanFrame& frame) {
    const auto header = format::kafka::decode_header(frame.bytes);
    for (; next < places.size(); ++next) {
      const std::int64_t offset = absolute(file, places[next].entry.relative_offset);
      if (offset > header.last_offset().value()) break;
      if (offset < header.base_offset.value() ||
          header.max_timestamp.value() != places[next].entry.timestamp) {
        report.damage(places[next].at, "no batch of the log has that time at that offset");
      }
    }
    return next < places.size() ? storage::ScanStep::next : storage::ScanStep::stop;
  };
  if (places.empty()) return {};
  POLYLOG_ASSIGN(end, storage::scan(*log.file, 0, log.size,
                                    storage::FormatDecoder(storage::kafka::batch_frames),
                                    batch_bytes_max, visit));
  if (end.reason != storage::ScanEnd::Reason::end) return {};  // the log's own dump says more
  for (; next < places.size(); ++next) {
    report.damage(places[next].at, "the offset lies behind the end of the log");
  }
  return {};
}

}  // namespace

Result<void> dump_time_index(const DumpFile& file, const DumpFile* log, DumpReport& report) {
  begin(file, "time_index", report);
  std::optional<TimeIndexEntry> before;
  std::vector<TimedPlace> places;
  POLYLOG_ASSIGN(
      entries,
      for_each_dump_entry(
          file, TimeIndexEntry::bytes, true, report, [&](std::uint64_t at, ByteView bytes) {
            const TimeIndexEntry entry = format::kafka::decode_time_index_entry(bytes);
            const std::int64_t offset = absolute(file, entry.relative_offset);
            if (report.json()) {
              JsonWriter json = json_of_type("entry");
              json.field("timestamp", entry.timestamp).field("offset", offset);
              report.object(json);
            } else {
              report.person("  time " + format_time(Timestamp(entry.timestamp)) + " offset " +
                            std::to_string(offset));
            }
            if (entry.timestamp < -1 || entry.relative_offset < 0) {
              report.damage(at, "a negative number");
            } else if (before && (entry.timestamp <= before->timestamp ||
                                  entry.relative_offset < before->relative_offset)) {
              report.damage(at, "the entry does not lie behind the one before");
            } else if (log != nullptr && entry.timestamp >= 0) {
              places.push_back({at, entry});
            }
            before = entry;
          }));
  if (log != nullptr) POLYLOG_TRY(follow_times(file, *log, places, report));
  report.end_file({{"entries", entries}});
  return {};
}

Result<void> dump_transaction_index(const DumpFile& file, DumpReport& report) {
  begin(file, "transaction_index", report);
  POLYLOG_ASSIGN(entries,
                 for_each_dump_entry(
                     file, format::kafka::transaction_index_entry_bytes, false, report,
                     [&](std::uint64_t at, ByteView bytes) {
                       const auto entry = format::kafka::decode_transaction_index_entry(bytes);
                       if (!entry) return report.damage(at, entry.error().context);
                       if (report.json()) {
                         JsonWriter json = json_of_type("entry");
                         json.field("producer_id", entry->producer.value());
                         json.field("first_offset", entry->first.value());
                         json.field("last_offset", entry->last.value());
                         json.field("last_stable_offset", entry->last_stable.value());
                         return report.object(json);
                       }
                       report.person("  producer " + std::to_string(entry->producer.value()) +
                                     " aborted offsets " + std::to_string(entry->first.value()) +
                                     ".." + std::to_string(entry->last.value()) +
                                     " last stable offset " +
                                     std::to_string(entry->last_stable.value()));
                     }));
  report.end_file({{"entries", entries}});
  return {};
}

}  // namespace polylog::cli
