#include <algorithm>
#include <array>

#include "cli/dump_files.h"
#include "cli/dump_walk.h"
#include "cli/group_record_text.h"
#include "cli/progress.h"
#include "cli/record_format.h"
#include "cli/text.h"
#include "format/kafka/records.h"
#include "storage/kafka/segment.h"

namespace polylog::cli {
namespace {

using format::kafka::BatchHeader;
using format::kafka::FrameState;
using storage::ScanEnd;
using storage::ScanFrame;
using storage::ScanStep;

// A batch above this is stepped over: nothing that a broker accepts comes near it.
constexpr std::uint64_t batch_bytes_max = std::uint64_t{512} << 20;
constexpr std::size_t batch_output_max = std::size_t{1} << 30;

std::string codec_name(const BatchHeader& header) {
  const auto codec = header.codec();
  return codec ? std::string(to_string(*codec)) : "unknown";
}

std::string hex(std::uint32_t number) {
  char text[12];
  std::snprintf(text, sizeof text, "%08x", number);
  return text;
}

std::string control_name(format::kafka::ControlType type) {
  switch (type) {
    case format::kafka::ControlType::abort: return "abort";
    case format::kafka::ControlType::commit: return "commit";
    case format::kafka::ControlType::leader_change: return "leader_change";
    case format::kafka::ControlType::snapshot_header: return "snapshot_header";
    case format::kafka::ControlType::snapshot_footer: return "snapshot_footer";
    case format::kafka::ControlType::kraft_version: return "kraft_version";
    case format::kafka::ControlType::kraft_voters: return "kraft_voters";
  }
  return "type_" + std::to_string(static_cast<int>(type));
}

std::string person_line(const BatchHeader& header, std::uint64_t position, bool crc_ok) {
  std::string line = "  @" + std::to_string(position);
  line += " offsets " + std::to_string(header.base_offset.value()) + ".." +
          std::to_string(header.last_offset().value());
  line += " records " + std::to_string(header.records_count);
  line += " bytes " + std::to_string(header.size()) + " codec " + codec_name(header);
  line += " epoch " + std::to_string(header.leader_epoch.value());
  line += " time " + format_time(header.base_timestamp);
  if (header.max_timestamp != header.base_timestamp) {
    line += ".." + format_time(header.max_timestamp);
  }
  if (header.timestamp_type() == format::kafka::TimestampType::log_append_time) {
    line += " log-append-time";
  }
  if (header.producer_id.value() >= 0) {
    line += " producer " + std::to_string(header.producer_id.value()) + "/" +
            std::to_string(header.producer_epoch);
    if (header.base_sequence >= 0) {
      line += " sequence " + std::to_string(header.base_sequence) + ".." +
              std::to_string(header.last_sequence());
    }
  }
  if (header.transactional()) line += " transactional";
  if (header.control()) line += " control";
  if (header.has_delete_horizon()) line += " delete-horizon";
  return line + " crc " + hex(header.crc) + (crc_ok ? " ok" : " WRONG");
}

JsonWriter json_object(const BatchHeader& header, std::uint64_t position, bool crc_ok) {
  JsonWriter json = json_of_type("batch");
  json.field("position", position).field("bytes", header.size());
  json.field("first_offset", header.base_offset.value());
  json.field("last_offset", header.last_offset().value());
  json.field("records", header.records_count).field("codec", codec_name(header));
  json.field("leader_epoch", header.leader_epoch.value());
  json.field("base_timestamp", header.base_timestamp.value());
  json.field("max_timestamp", header.max_timestamp.value());
  const bool append_time = header.timestamp_type() == format::kafka::TimestampType::log_append_time;
  json.field("timestamp_type", append_time ? "log_append_time" : "create_time");
  json.field("producer_id", header.producer_id.value());
  json.field("producer_epoch", header.producer_epoch);
  json.field("first_sequence", header.base_sequence);
  json.field("last_sequence", header.last_sequence());
  json.field("transactional", header.transactional()).field("control", header.control());
  json.field("delete_horizon", header.has_delete_horizon());
  json.field("crc", hex(header.crc)).field("crc_ok", crc_ok);
  return json;
}

class LogDump {
 public:
  LogDump(const DumpFile& file, const DumpOptions& options, DumpReport& report)
      : file_(file), options_(options), report_(report), progress_(file.path, file.size) {}

  Result<void> run() {
    POLYLOG_TRY(walk_frames(
        file_, storage::FormatDecoder(storage::kafka::batch_frames), batch_bytes_max,
        [this](const ScanFrame& frame) { return visit(frame); },
        [this](std::uint64_t& position) { return step_over(position); }));
    std::vector<DumpReport::Count> counts = {{"batches", batches_}, {"records", records_}};
    if (batches_ > 0) {
      counts.push_back({"first_offset", first_offset_});
      counts.push_back({"last_offset", last_offset_});
    }
    report_.end_file(counts);
    return {};
  }

 private:
  ScanStep visit(const ScanFrame& frame) {
    progress_.at(frame.position);
    const BatchHeader header = format::kafka::decode_header(frame.bytes);
    const bool crc_ok = format::kafka::crc_matches(frame.bytes);
    if (report_.json()) {
      JsonWriter json = json_object(header, frame.position, crc_ok);
      report_.object(json);
    } else {
      report_.person(person_line(header, frame.position, crc_ok));
    }
    const std::int64_t first = header.base_offset.value();
    if (!crc_ok) report_.damage(frame.position, "the batch's checksum is wrong");
    if (first < file_.base_offset.value()) {
      report_.damage(frame.position, "the batch lies below the segment's base offset");
    } else if (batches_ > 0 && first <= last_offset_) {
      report_.damage(frame.position, "the batch does not lie behind the one before");
    }
    if (options_.records || options_.deep) read_records(header, frame);
    if (batches_ == 0) first_offset_ = first;
    last_offset_ = header.last_offset().value();
    ++batches_;
    records_ += header.records_count;
    return ScanStep::next;
  }

  void read_records(const BatchHeader& header, const ScanFrame& frame) {
    if (header.control()) return read_control(header, frame);
    const auto read =
        format::kafka::for_each_record(frame.bytes, batch_output_max, [this](const Record& record) {
          if (options_.records) show(record);
          return true;
        });
    if (!read) report_.damage(frame.position, "the batch's records: " + read.error().context);
  }

  void read_control(const BatchHeader& header, const ScanFrame& frame) {
    const auto control = format::kafka::parse_control(frame.bytes);
    if (!control) {
      if (header.records_count == 0) return;  // what compaction leaves of a marker
      return report_.damage(frame.position, "the control record: " + control.error().context);
    }
    if (!options_.records) return;
    const std::string name = control_name(control->type);
    if (!report_.json()) {
      std::string line = "    " + std::to_string(header.base_offset.value()) + " " + name;
      if (control->is_end_transaction()) {
        line += " coordinator epoch " + std::to_string(control->coordinator_epoch);
      }
      return report_.person(line);
    }
    JsonWriter json = json_of_type("control");
    json.field("offset", header.base_offset.value()).field("control", name);
    if (control->is_end_transaction()) json.field("coordinator_epoch", control->coordinator_epoch);
    report_.object(json);
  }

  // A log of the groups' offsets, by its directory: its records can be read.
  bool of_groups() const {
    std::string_view path = file_.path;
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return false;
    path = path.substr(0, slash);
    return path.substr(path.rfind('/') + 1).starts_with("__consumer_offsets-");
  }

  void show_group_record(const Record& record, const GroupRecordText& text) {
    if (report_.json()) {
      JsonWriter json = json_of_type("group_record");
      json.field("offset", record.offset.value()).field("timestamp", record.timestamp.value());
      json.json_field("key", text.key).json_field("value", text.value.value_or("null"));
      return report_.object(json);
    }
    report_.person("    " + std::to_string(record.offset.value()) + " " +
                   format_time(record.timestamp) + " key " + text.key + " value " +
                   text.value.value_or("null"));
  }

  void show(const Record& record) {
    if (of_groups()) {
      if (const auto text = group_record_text(record)) return show_group_record(record, *text);
    }
    if (report_.json()) {
      JsonWriter json = json_of_type("record");
      json.field("offset", record.offset.value());
      add_record_fields(json, record);
      return report_.object(json);
    }
    std::string line = "    " + std::to_string(record.offset.value()) + " " +
                       format_time(record.timestamp) + " key " + quoted(record.key) + " value " +
                       quoted(record.value);
    for (const Header& header : record.headers) {
      line += " header " + quoted(as_bytes(header.name)) + "=" + quoted(header.value);
    }
    report_.person(line);
  }

  // What lies where the scan found no batch. True: the scan goes on at the new `position`.
  Result<bool> step_over(std::uint64_t& position) {
    const std::uint64_t left = file_.size - position;
    std::array<std::uint8_t, format::kafka::header_bytes> head{};
    POLYLOG_ASSIGN(got,
                   file_.file->read(position, MutableBytes(head).first(static_cast<std::size_t>(
                                                  std::min<std::uint64_t>(left, head.size())))));
    const format::kafka::FrameHead frame =
        format::kafka::next_frame(ByteView(head).first(got), left);
    switch (frame.state) {
      case FrameState::zeros: return zeros(position);
      case FrameState::legacy:
        report_.note(position, "a message set from before Kafka 0.11, " +
                                   std::to_string(frame.size) + " bytes, not decoded");
        position += frame.size;
        return position < file_.size;
      case FrameState::complete:
        report_.damage(position, "a batch of " + std::to_string(frame.size) +
                                     " bytes, more than any broker accepts");
        position += frame.size;
        return position < file_.size;
      case FrameState::torn:
        report_.damage(position, "the file ends inside a batch: " + std::to_string(left) +
                                     (frame.size > 0 ? " of " + std::to_string(frame.size) : "") +
                                     " bytes are there");
        return false;
      case FrameState::corrupt: break;
    }
    report_.damage(position, "no batch begins here (" + std::string(frame.why) + "); the last " +
                                 std::to_string(left) + " bytes cannot be read");
    return false;
  }

  Result<bool> zeros(std::uint64_t position) {
    POLYLOG_ASSIGN(other, first_other_byte(file_, position));
    if (other) {
      report_.damage(position, std::to_string(*other - position) +
                                   " zero bytes, and something that is no batch behind them");
      return false;
    }
    report_.note(position, "zeros to the end of the file, " +
                               std::to_string(file_.size - position) +
                               " bytes: reserved, or written by no one");
    return false;
  }

  const DumpFile& file_;
  const DumpOptions& options_;
  DumpReport& report_;
  Progress progress_;
  std::int64_t batches_ = 0, records_ = 0;
  std::int64_t first_offset_ = 0, last_offset_ = 0;
};

}  // namespace

Result<void> dump_log(const DumpFile& file, const DumpOptions& options, DumpReport& report) {
  report.begin_file(
      file.path, "log",
      {{"base_offset", file.base_offset.value()}, {"bytes", static_cast<std::int64_t>(file.size)}});
  return LogDump(file, options, report).run();
}

}  // namespace polylog::cli
