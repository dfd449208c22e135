#include <optional>

#include "cli/dump_entries.h"
#include "cli/dump_store_log.h"
#include "cli/dump_whole.h"
#include "cli/text.h"
#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/consume_queue_ext.h"
#include "format/rocketmq/names.h"
#include "format/rocketmq/properties.h"

namespace polylog::cli {
namespace {

namespace rocketmq = format::rocketmq;
using rocketmq::QueueEntry;

class QueueDump {
 public:
  QueueDump(const DumpFile& file, StoreLog* log, DumpReport& report)
      : file_(file),
        log_(log),
        report_(report),
        topic_(path_part(file.path, 2)),
        queue_(path_part(file.path, 1)) {}

  Result<void> run() {
    Result<void> followed;
    POLYLOG_ASSIGN(entries, for_each_dump_entry(file_, rocketmq::queue_entry_bytes, true, report_,
                                                [&](std::uint64_t at, ByteView bytes) {
                                                  const auto done = visit(at, bytes);
                                                  if (followed) followed = done;
                                                }));
    POLYLOG_TRY(followed);
    report_.end_file({{"entries", entries}});
    return {};
  }

 private:
  Result<void> visit(std::uint64_t at, ByteView bytes) {
    const QueueEntry entry = rocketmq::decode_entry(bytes.data());
    const std::int64_t offset = (file_.base_offset.value() + static_cast<std::int64_t>(at)) /
                                static_cast<std::int64_t>(rocketmq::queue_entry_bytes);
    show(offset, entry);
    if (entry.filler()) return {};
    if (!entry.valid()) {
      report_.damage(at, "no entry has these numbers: every reader ends the queue here");
      return {};
    }
    if (before_ && entry.physical_offset < before_->end()) {
      report_.damage(at, "the record does not lie behind that of the entry before");
    } else if (log_ != nullptr) {
      POLYLOG_TRY(follow(at, offset, entry));
    }
    before_ = entry;
    return {};
  }

  bool delayed() const { return topic_ == rocketmq::schedule_topic; }

  void show(std::int64_t offset, const QueueEntry& entry) {
    if (report_.json()) {
      JsonWriter json = json_of_type("entry");
      json.field("offset", offset).field("physical_offset", entry.physical_offset);
      json.field("size", entry.size).field("tags_code", entry.tags_code);
      json.field("filler", entry.filler());
      return report_.object(json);
    }
    std::string line = "  offset " + std::to_string(offset);
    if (entry.filler()) return report_.person(line + " filler");
    line += " at " + std::to_string(entry.physical_offset) + " bytes " + std::to_string(entry.size);
    if (rocketmq::is_ext_address(entry.tags_code)) {
      line += " extension at " + std::to_string(rocketmq::from_ext_address(entry.tags_code));
    } else if (delayed()) {
      line += " due " + format_time(Timestamp(entry.tags_code));
    } else {
      line += " tags code " + std::to_string(entry.tags_code);
    }
    report_.person(line);
  }

  Result<void> follow(std::uint64_t at, std::int64_t offset, const QueueEntry& entry) {
    POLYLOG_ASSIGN(found, log_->at(entry.physical_offset));
    using State = StoreLog::Found::State;
    if (found.state == State::deleted) return {};
    const std::string where = "byte " + std::to_string(entry.physical_offset) + " ";
    if (found.state == State::wrong) {
      report_.damage(at, where + found.why);
    } else if (found.size != static_cast<std::uint64_t>(entry.size)) {
      report_.damage(
          at, where + "of the commit log has a record of " + std::to_string(found.size) + " bytes");
    } else if (!addressed(found.message, offset)) {
      report_.damage(at, where + "of the commit log has the record of " +
                             std::string(found.message.topic) + ", queue " +
                             std::to_string(found.message.queue_id) + ", offset " +
                             std::to_string(found.message.queue_offset));
    } else if (!tagged(found.message, entry)) {
      report_.damage(at, "the tags code is not that of the record's tag");
    }
    return {};
  }

  // Several queues may share a record: then its property names them, and its own place is the
  // first's.
  bool addressed(const rocketmq::Message& message, std::int64_t offset) const {
    if (rocketmq::find_property(message.properties, "INNER_MULTI_DISPATCH")) return true;
    return message.topic == topic_ && std::to_string(message.queue_id) == queue_ &&
           message.queue_offset == offset;
  }

  bool tagged(const rocketmq::Message& message, const QueueEntry& entry) const {
    if (rocketmq::is_ext_address(entry.tags_code) || delayed()) return true;
    const auto tag = rocketmq::find_property(message.properties, rocketmq::property::tags);
    return entry.tags_code == rocketmq::tags_code(tag.value_or(std::string_view()));
  }

  const DumpFile& file_;
  StoreLog* const log_;
  DumpReport& report_;
  const std::string topic_, queue_;  // as the file's place says
  std::optional<QueueEntry> before_;
};

void begin(const DumpFile& file, std::string_view kind, DumpReport& report) {
  report.begin_file(
      file.path, kind,
      {{"position", file.base_offset.value()}, {"bytes", static_cast<std::int64_t>(file.size)}});
}

}  // namespace

Result<void> dump_consume_queue(const DumpFile& file, StoreLog* log, DumpReport& report) {
  begin(file, "consume_queue", report);
  return QueueDump(file, log, report).run();
}

Result<void> dump_consume_queue_ext(const DumpFile& file, DumpReport& report) {
  POLYLOG_ASSIGN(bytes, read_whole(file));
  begin(file, "consume_queue_ext", report);
  std::size_t at = 0;
  std::int64_t units = 0;
  for (;;) {
    const auto unit = rocketmq::parse_ext_unit(ByteView(bytes).subspan(at));
    if (!unit) report.damage(at, unit.error().context);
    if (!unit || !*unit) break;
    const std::int64_t address = file.base_offset.value() + static_cast<std::int64_t>(at);
    if (report.json()) {
      JsonWriter json = json_of_type("entry");
      json.field("position", address).field("bytes", (*unit)->size());
      json.field("tags_code", (*unit)->tags_code);
      json.field("store_timestamp", (*unit)->store_timestamp);
      json.field("bit_map_bytes", (*unit)->bit_map.size());
      report.object(json);
    } else {
      report.person("  @" + std::to_string(address) + " bytes " + std::to_string((*unit)->size()) +
                    " tags code " + std::to_string((*unit)->tags_code) + " stored " +
                    format_time(Timestamp((*unit)->store_timestamp)) + " bit map bytes " +
                    std::to_string((*unit)->bit_map.size()));
    }
    at += (*unit)->size();
    ++units;
  }
  report.end_file({{"entries", units}});
  return {};
}

}  // namespace polylog::cli
