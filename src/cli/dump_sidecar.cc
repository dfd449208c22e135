#include "base/crc.h"
#include "bytes/endian.h"
#include "cli/dump_files.h"
#include "cli/text.h"
#include "storage/filelog/scan.h"
#include "storage/filelog/sidecar_codec.h"

namespace polylog::cli {
namespace {

using storage::FileNote;
using storage::FrameSize;
using storage::LogNote;
using storage::ScanEnd;
using storage::ScanFrame;
using storage::ScanStep;
using storage::SidecarState;

constexpr std::size_t frame_head_bytes = 8;  // size and checksum of the body
constexpr std::uint64_t frame_bytes_max = std::uint64_t{512} << 20;

// Frames of docs/formats/sidecar.md: a 32-bit size, a checksum, and as many bytes.
struct FrameDecoder {
  FrameSize frame_size(ByteView window) const {
    if (window.size() < frame_head_bytes) return {FrameSize::Kind::more, frame_head_bytes};
    const auto size = load_big<std::uint32_t>(window.data());
    if (size == 0) return {FrameSize::Kind::corrupt, 0};
    return {FrameSize::Kind::complete, frame_head_bytes + std::uint64_t{size}};
  }
};

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

void show_record(const ScanFrame& frame, std::uint8_t type, DumpReport& report) {
  if (report.json()) {
    JsonWriter json = json_of_type("note_record");
    json.field("position", frame.position).field("bytes", frame.bytes.size());
    json.field("note", type_name(type));
    return report.object(json);
  }
  report.person("  @" + std::to_string(frame.position) + " " + type_name(type) + " bytes " +
                std::to_string(frame.bytes.size()));
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
  std::array<std::uint8_t, storage::sidecar_magic.size()> magic{};
  POLYLOG_ASSIGN(got, file.file->read(0, magic));
  if (as_text(ByteView(magic).first(got)) != storage::sidecar_magic) {
    report.damage(0, "the file does not begin with " + std::string(storage::sidecar_magic));
    report.end_file({});
    return {};
  }
  SidecarState state;
  storage::SidecarDecoder decoder(state);
  std::int64_t records = 0;
  const auto visit = [&](const ScanFrame& frame) {
    const ByteView body = frame.bytes.subspan(frame_head_bytes);
    if (crc32c(body) != load_big<std::uint32_t>(frame.bytes.data() + 4)) return ScanStep::corrupt;
    if (!decoder.apply(body[0], body.subspan(1))) return ScanStep::corrupt;
    if (options.records) show_record(frame, body[0], report);
    ++records;
    return ScanStep::next;
  };
  POLYLOG_ASSIGN(end, storage::scan(*file.file, magic.size(), file.size, FrameDecoder{},
                                    frame_bytes_max, visit));
  for (const auto& [name, log] : state.logs) show_log(name, log, report);
  for (const auto& [id, queue] : state.queues) show_queue(id, queue, report);
  // A lost end is expected after a crash and costs a longer scan, no more.
  if (end.reason == ScanEnd::Reason::torn) {
    report.note(end.position, "the file ends inside a record, as after a crash");
  } else if (end.reason == ScanEnd::Reason::corrupt) {
    report.damage(end.position, "no record of the sidecar can be read from here on");
  }
  report.end_file({{"records", records},
                   {"logs", static_cast<std::int64_t>(state.logs.size())},
                   {"queues", static_cast<std::int64_t>(state.queues.size())},
                   {"marks", static_cast<std::int64_t>(state.marks.size())},
                   {"clean_stop", state.clean ? 1 : 0}});
  return {};
}

}  // namespace polylog::cli
