#include <algorithm>

#include "cli/dump_files.h"
#include "cli/text.h"
#include "storage/filelog/sidecar_codec.h"

namespace polylog::cli {
namespace {

using storage::FileNote;
using storage::LogNote;
using storage::SidecarRecord;
using storage::SidecarState;

constexpr std::size_t file_bytes_max = std::size_t{4} << 30;

std::string type_name(std::uint8_t type) {
  namespace types = storage::sidecar_type;
  switch (type) {
    case types::begin_log: return "begin_log";
    case types::round: return "round";
    case types::recovery_point: return "recovery_point";
    case types::sealed: return "sealed";
    case types::files_dropped: return "files_dropped";
    case types::end_log: return "end_log";
    case types::config: return "config";
    case types::mark: return "mark";
    case types::cut: return "cut";
    case types::clean_stop: return "clean_stop";
    case types::epoch: return "epoch";
    case types::epoch_start: return "epoch_start";
    case types::queue: return "queue";
    default: return "type_" + std::to_string(type);
  }
}

void show_record(const SidecarRecord& record, DumpReport& report) {
  if (report.json()) {
    JsonWriter json = json_of_type("note_record");
    json.field("position", record.position).field("bytes", record.bytes);
    json.field("note", type_name(record.type));
    return report.object(json);
  }
  report.person("  @" + std::to_string(record.position) + " " + type_name(record.type) +
                " bytes " + std::to_string(record.bytes));
}

void show_file(std::int64_t base, const FileNote& file, DumpReport& report) {
  if (report.json()) {
    JsonWriter json = json_of_type("file_note");
    json.field("base", base).field("inode", file.inode).field("durable_bytes", file.sums.size());
    json.field("blocks", file.sums.blocks().size()).field("sealed", file.sealed.has_value());
    return report.object(json);
  }
  report.person("    file " + std::to_string(base) + " durable bytes " +
                std::to_string(file.sums.size()) + " blocks " +
                std::to_string(file.sums.blocks().size()) + " inode " + std::to_string(file.inode) +
                (file.sealed ? " sealed" : ""));
}

void show_log(const std::string& name, const LogNote& log, DumpReport& report) {
  if (report.json()) {
    JsonWriter json = json_of_type("log_note");
    json.field("log", name).field("topic_id", log.topic.to_string());
    json.field("durable", log.durable.value()).field("files", log.files.size());
    json.key("recovery_point");
    if (log.recovery) {
      json.begin_object().field("base", log.recovery->base);
      json.field("position", log.recovery->position).field("offset", log.recovery->offset);
      json.end_object();
    } else {
      json.null();
    }
    json.key("epochs").begin_array();
    for (const EpochList::Entry& entry : log.epochs) {
      json.begin_object().field("epoch", entry.epoch.value());
      json.field("start", entry.start.value()).end_object();
    }
    json.end_array();
    report.object(json);
  } else {
    std::string line = "  log " + name + " topic " + log.topic.to_string() + " durable to " +
                       std::to_string(log.durable.value());
    if (log.recovery) {
      line += " recovery from file " + std::to_string(log.recovery->base) + " byte " +
              std::to_string(log.recovery->position) + " offset " +
              std::to_string(log.recovery->offset);
    }
    report.person(line);
    for (const EpochList::Entry& entry : log.epochs) {
      report.person("    epoch " + std::to_string(entry.epoch.value()) + " from " +
                    std::to_string(entry.start.value()));
    }
  }
  for (const auto& [base, file] : log.files) show_file(base, file, report);
}

void show_queue(const TopicPartition& id, const storage::QueueNote& queue, DumpReport& report) {
  if (report.json()) {
    JsonWriter json = json_of_type("queue_note");
    json.field("topic", id.topic).field("partition", id.partition);
    json.field("topic_id", queue.topic.to_string()).field("birth", queue.birth);
    json.field("log_start", queue.start).field("removed", queue.removed);
    return report.object(json);
  }
  report.person("  queue " + id.topic + "-" + std::to_string(id.partition) + " topic " +
                queue.topic.to_string() + " born at " + std::to_string(queue.birth) +
                " log start " + std::to_string(queue.start) + (queue.removed ? " removed" : ""));
}

}  // namespace

Result<void> dump_sidecar(const DumpFile& file, const DumpOptions& options, DumpReport& report) {
  report.begin_file(file.path, "sidecar", {{"bytes", static_cast<std::int64_t>(file.size)}});
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(std::min(file.size, file_bytes_max)));
  POLYLOG_ASSIGN(got, file.file->read(0, bytes));
  bytes.resize(got);
  SidecarState state;
  const std::size_t end = storage::decode_sidecar(bytes, state);
  if (!state.found) {
    report.damage(0, "the file does not begin with " + std::string(storage::sidecar_magic));
    report.end_file({});
    return {};
  }
  std::int64_t records = 0;
  storage::SidecarReader reader(bytes);
  for (std::uint64_t at = reader.begin(); const auto record = reader.next(); ++records) {
    if (record->position > at) {
      report.damage(at, "nothing can be read up to byte " + std::to_string(record->position));
    }
    if (options.records) show_record(*record, report);
    at = record->position + record->bytes;
  }
  for (const auto& [name, log] : state.logs) show_log(name, log, report);
  for (const auto& [id, queue] : state.queues) show_queue(id, queue, report);
  for (const std::string& line : state.damage) report.note(0, line);
  // A lost end is expected after a crash and costs a longer scan, no more.
  if (end < bytes.size() && state.damage.empty()) {
    report.note(end, "the file ends inside a record, as after a crash");
  }
  report.end_file({{"records", records},
                   {"logs", static_cast<std::int64_t>(state.logs.size())},
                   {"queues", static_cast<std::int64_t>(state.queues.size())},
                   {"marks", static_cast<std::int64_t>(state.marks.size())},
                   {"clean_stop", state.clean ? 1 : 0}});
  return {};
}

}  // namespace polylog::cli
