#include <algorithm>
#include <climits>
#include <map>
#include <optional>
#include <sstream>

#include "cli/dump_files.h"
#include "cli/dump_whole.h"
#include "cli/group_record_text.h"
#include "cli/kafka_tools/table.h"
#include "cli/text.h"
#include "format/kafka/index.h"
#include "format/kafka/records.h"
#include "format/kafka/snapshot.h"
#include "fs/posix_file_system.h"
#include "storage/kafka/segment.h"

// kafka-dump-log: what DumpLogSegments prints (Kafka 4.4, tools).
namespace polylog::cli::kafka_tools {
namespace {

using format::kafka::BatchHeader;
using storage::ScanFrame;
using storage::ScanStep;

constexpr std::uint64_t batch_bytes_max = std::uint64_t{512} << 20;
constexpr std::size_t batch_output_max = std::size_t{1} << 30;

struct Settings {
  bool records = false;  // --print-data-log, or a decoder
  bool deep = false;
  bool groups = false;  // --offsets-decoder
  bool skip_metadata = false;
  bool sanity_only = false;
  bool verify_only = false;
  std::uint64_t bytes_max = INT_MAX;
};

// Pairs of numbers that do not belong together, by file; printed behind everything else.
struct Findings {
  using Pairs = std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>>;
  Pairs index, not_consecutive, timestamps, out_of_order, not_found;
};

const char* yes_no(bool flag) { return flag ? "true" : "false"; }

std::string time_label(const BatchHeader& header) {
  return header.timestamp_type() == format::kafka::TimestampType::log_append_time
             ? "LogAppendTime: "
             : "CreateTime: ";
}

std::string batch_line(const BatchHeader& header, std::uint64_t position, bool valid) {
  const auto codec = header.codec();
  std::ostringstream line;
  line << "baseOffset: " << header.base_offset.value()
       << " lastOffset: " << header.last_offset().value() << " count: " << header.records_count
       << " baseSequence: " << header.base_sequence << " lastSequence: " << header.last_sequence()
       << " producerId: " << header.producer_id.value()
       << " producerEpoch: " << header.producer_epoch
       << " partitionLeaderEpoch: " << header.leader_epoch.value()
       << " isTransactional: " << yes_no(header.transactional())
       << " isControl: " << yes_no(header.control()) << " deleteHorizonMs: OptionalLong";
  if (header.has_delete_horizon()) {
    line << "[" << header.base_timestamp.value() << "]";
  } else {
    line << ".empty";
  }
  line << " position: " << position << " " << time_label(header) << header.max_timestamp.value()
       << " size: " << header.size() << " magic: " << int{header.magic}
       << " compresscodec: " << (codec ? std::string(to_string(*codec)) : "unknown")
       << " crc: " << header.crc << " isvalid: " << yes_no(valid) << "\n";
  return line.str();
}

std::string size_of(const std::optional<ByteView>& bytes) {
  return bytes ? std::to_string(bytes->size()) : "-1";
}

class LogPrinter {
 public:
  LogPrinter(const DumpFile& file, const Settings& settings, Findings& findings)
      : file_(file), settings_(settings), findings_(findings) {}

  Result<void> run() {
    print("Log starting offset: " + std::to_string(file_.base_offset.value()) + "\n");
    const std::uint64_t end = std::min(file_.size, settings_.bytes_max);
    POLYLOG_ASSIGN(
        stopped,
        storage::scan(*file_.file, 0, end, storage::FormatDecoder(storage::kafka::batch_frames),
                      batch_bytes_max, [this](const ScanFrame& frame) { return visit(frame); }));
    if (stopped.position < file_.size && settings_.bytes_max == INT_MAX) {
      const std::size_t slash = file_.path.rfind('/');
      print("Found " + std::to_string(file_.size - stopped.position) +
            " invalid bytes at the end of " +
            file_.path.substr(slash == std::string::npos ? 0 : slash + 1) + "\n");
    }
    return failed_;
  }

 private:
  ScanStep visit(const ScanFrame& frame) {
    const BatchHeader header = format::kafka::decode_header(frame.bytes);
    const bool valid = format::kafka::crc_matches(frame.bytes);
    print(batch_line(header, frame.position, valid));
    if (!settings_.deep) return ScanStep::next;
    const auto read =
        format::kafka::for_each_record(frame.bytes, batch_output_max, [&](const Record& record) {
          show(header, frame.bytes, record);
          return true;
        });
    if (read) return ScanStep::next;
    failed_ = fail(read.error().code, "the batch at position " + std::to_string(frame.position) +
                                          ": " + read.error().context);
    return ScanStep::stop;
  }

  void show(const BatchHeader& header, ByteView batch, const Record& record) {
    const std::int64_t offset = record.offset.value();
    if (last_ && offset != *last_ + 1) {
      findings_.not_consecutive[file_.path].emplace_back(*last_, offset);
    }
    last_ = offset;
    std::string line = "|";
    if (!settings_.skip_metadata) line += metadata(header, batch, record);
    if (settings_.records && !header.control()) line += content(record);
    print(line + "\n");
  }

  static std::string metadata(const BatchHeader& header, ByteView batch, const Record& record) {
    const auto delta = static_cast<std::int32_t>(record.offset - header.base_offset);
    const std::int32_t sequence =
        header.base_sequence < 0 ? -1 : sequence_plus(header.base_sequence, delta);
    std::string line = " offset: " + std::to_string(record.offset.value()) + " " +
                       time_label(header) + std::to_string(record.timestamp.value()) +
                       " keySize: " + size_of(record.key) + " valueSize: " + size_of(record.value) +
                       " sequence: " + std::to_string(sequence) + " headerKeys: [";
    for (std::size_t i = 0; i < record.headers.size(); ++i) {
      line += (i == 0 ? "" : ",") + std::string(record.headers[i].name);
    }
    line += "]";
    if (!header.control()) return line;
    const auto control = format::kafka::parse_control(batch);
    if (!control) return line + " controlType: UNKNOWN";
    if (control->is_end_transaction()) {
      const bool abort = control->type == format::kafka::ControlType::abort;
      return line + " endTxnMarker: " + (abort ? "ABORT" : "COMMIT") +
             " coordinatorEpoch: " + std::to_string(control->coordinator_epoch);
    }
    const auto type = static_cast<int>(control->type);
    const bool leader = control->type == format::kafka::ControlType::leader_change;
    return line + " controlType: " + (leader ? "LEADER_CHANGE" : "UNKNOWN") + "(" +
           std::to_string(type) + ")";
  }

  std::string content(const Record& record) const {
    if (!settings_.groups) {
      std::string line;
      if (record.key) line += " key: " + std::string(as_text(*record.key));
      if (record.value) line += " payload: " + std::string(as_text(*record.value));
      return line;
    }
    const auto decoded = group_record_text(record);
    if (!decoded) {
      return " key: " + (record.key ? to_base64(*record.key) : "null") + " payload: <" +
             decoded.error().context + ">";
    }
    return " key: " + decoded->key + " payload: " + decoded->value.value_or("<DELETE>");
  }

  const DumpFile& file_;
  const Settings& settings_;
  Findings& findings_;
  std::optional<std::int64_t> last_;
  Result<void> failed_;
};

// What an index points to: a batch's last offset and place, and the latest time of its records.
struct BatchPlace {
  std::int64_t last_offset = 0;
  std::uint64_t position = 0;
  std::int64_t latest = -1;
};

Result<std::vector<BatchPlace>> read_places(const DumpFile& log, bool times) {
  std::vector<BatchPlace> places;
  POLYLOG_ASSIGN(
      end,
      storage::scan(*log.file, 0, log.size, storage::FormatDecoder(storage::kafka::batch_frames),
                    batch_bytes_max, [&](const ScanFrame& frame) {
                      const BatchHeader header = format::kafka::decode_header(frame.bytes);
                      BatchPlace place{header.last_offset().value(), frame.position, -1};
                      if (times) {
                        (void)format::kafka::for_each_record(
                            frame.bytes, batch_output_max, [&](const Record& record) {
                              place.latest = std::max(place.latest, record.timestamp.value());
                              return true;
                            });
                      }
                      places.push_back(place);
                      return ScanStep::next;
                    }));
  (void)end;
  return places;
}

Result<void> print_index(const DumpFile& file, const DumpFile& log, const Settings& settings,
                         Findings& findings) {
  using Entry = format::kafka::OffsetIndexEntry;
  POLYLOG_ASSIGN(bytes, read_whole(file));
  if (bytes.size() < Entry::bytes) {
    print(file.path + " is empty.\n");
    return {};
  }
  if (settings.sanity_only) {
    if (bytes.size() % Entry::bytes != 0) {
      return fail(Errc::corrupt, "Index file " + file.path + " is corrupt, found " +
                                     std::to_string(bytes.size()) +
                                     " bytes which is neither positive nor a multiple of 8.");
    }
    print(file.path + " passed sanity check.\n");
    return {};
  }
  POLYLOG_ASSIGN(places, read_places(log, false));
  for (std::size_t at = 0; at + Entry::bytes <= bytes.size(); at += Entry::bytes) {
    const Entry entry = format::kafka::decode_offset_index_entry(ByteView(bytes).subspan(at));
    if (entry.relative_offset == 0 && at > 0) break;  // zeros behind the last one
    const std::int64_t offset = file.base_offset.value() + entry.relative_offset;
    const auto place = std::find_if(places.begin(), places.end(), [&](const BatchPlace& batch) {
      return batch.position == static_cast<std::uint64_t>(std::max(entry.position, 0));
    });
    const std::int64_t found = place == places.end() ? -1 : place->last_offset;
    if (found != offset) findings.index[file.path].emplace_back(offset, found);
    if (!settings.verify_only) {
      print("offset: " + std::to_string(offset) + " position: " + std::to_string(entry.position) +
            "\n");
    }
  }
  return {};
}

Result<void> print_time_index(const DumpFile& file, const DumpFile& log, const Settings& settings,
                              Findings& findings) {
  using Entry = format::kafka::TimeIndexEntry;
  POLYLOG_ASSIGN(bytes, read_whole(file));
  if (settings.sanity_only) {
    if (bytes.size() % Entry::bytes != 0) {
      return fail(Errc::corrupt, "Time index file " + file.path + " is corrupt, found " +
                                     std::to_string(bytes.size()) +
                                     " bytes which is neither positive nor a multiple of 12.");
    }
    const std::size_t last = bytes.size() < Entry::bytes ? 0 : bytes.size() - Entry::bytes;
    if (last > 0) {
      const auto first_time = format::kafka::decode_time_index_entry(bytes).timestamp;
      const auto last_time =
          format::kafka::decode_time_index_entry(ByteView(bytes).subspan(last)).timestamp;
      if (last_time < first_time) {
        return fail(Errc::corrupt,
                    "org.apache.kafka.storage.internals.log.CorruptIndexException: Corrupt time "
                    "index found, time index file (" +
                        file.path + ") has non-zero size but the last timestamp is " +
                        std::to_string(last_time) + " which is less than the first timestamp " +
                        std::to_string(first_time));
      }
    }
    print(file.path + " passed sanity check.\n");
    return {};
  }
  POLYLOG_ASSIGN(places, read_places(log, true));
  std::int64_t before = -1;
  for (std::size_t at = 0; at + Entry::bytes <= bytes.size(); at += Entry::bytes) {
    const Entry entry = format::kafka::decode_time_index_entry(ByteView(bytes).subspan(at));
    if (entry.relative_offset == 0 && at > 0) break;
    const std::int64_t offset = file.base_offset.value() + entry.relative_offset;
    const auto place = std::find_if(places.begin(), places.end(), [&](const BatchPlace& batch) {
      return batch.last_offset >= offset;
    });
    if (place == places.end() || place->last_offset != offset) {
      findings.not_found[file.path].emplace_back(offset,
                                                 place == places.end() ? -1 : place->last_offset);
    } else {
      if (place->latest != entry.timestamp) {
        findings.timestamps[file.path].emplace_back(entry.timestamp, place->latest);
      }
      if (before >= entry.timestamp) {
        findings.out_of_order[file.path].emplace_back(entry.timestamp, before);
      }
    }
    if (!settings.verify_only) {
      print("timestamp: " + std::to_string(entry.timestamp) + " offset: " + std::to_string(offset) +
            "\n");
    }
    before = entry.timestamp;
  }
  return {};
}

Result<void> print_transactions(const DumpFile& file) {
  POLYLOG_ASSIGN(bytes, read_whole(file));
  constexpr std::size_t size = format::kafka::transaction_index_entry_bytes;
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    POLYLOG_ASSIGN(
        entry, format::kafka::decode_transaction_index_entry(ByteView(bytes).subspan(at, size)));
    print("version: " + std::to_string(format::kafka::transaction_index_version) +
          " producerId: " + std::to_string(entry.producer.value()) +
          " firstOffset: " + std::to_string(entry.first.value()) +
          " lastOffset: " + std::to_string(entry.last.value()) +
          " lastStableOffset: " + std::to_string(entry.last_stable.value()) + "\n");
  }
  return {};
}

Result<void> print_producers(const DumpFile& file) {
  POLYLOG_ASSIGN(bytes, read_whole(file));
  const auto state = format::kafka::decode_snapshot(bytes);
  if (!state) {
    failed(state.error().context);
    return {};
  }
  std::map<ProducerId, ProducerState::Entry> producers;
  for (const auto& [id, entry] : state->entries()) producers.emplace(id, entry);
  for (const auto& [id, entry] : producers) {
    std::ostringstream line;
    line << "producerId: " << id.value() << " producerEpoch: " << entry.epoch
         << " coordinatorEpoch: " << entry.coordinator_epoch << " currentTxnFirstOffset: ";
    if (entry.transaction_first) {
      line << "OptionalLong[" << entry.transaction_first->value() << "]";
    } else {
      line << "OptionalLong.empty";
    }
    line << " lastTimestamp: " << entry.last_timestamp.value() << " ";
    if (!entry.batches.empty()) {
      const ProducerState::BatchStamp& last = entry.batches.back();
      line << "firstSequence: " << last.first_sequence << " lastSequence: " << last.last_sequence
           << " lastOffset: " << last.last.value() << " offsetDelta: " << last.offset_delta
           << " timestamp: " << last.max_timestamp.value();
    }
    print(line.str() + "\n");
  }
  return {};
}

Result<DumpFile> open(fs::FileSystem& fs, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  const std::string number = name.substr(0, name.find('.'));
  const auto base = parse_integer(number);
  if (!base || *base < 0) {
    return fail(Errc::invalid,
                "java.lang.NumberFormatException: For input string: \"" + number + "\"");
  }
  DumpFile file;
  POLYLOG_ASSIGN(opened, fs.open(path, fs::OpenMode::read));
  POLYLOG_ASSIGN(info, opened->info());
  file.path = path;
  file.file = opened;
  file.size = info.size;
  file.base_offset = Offset(*base);
  return file;
}

Result<void> print_file(fs::FileSystem& fs, const std::string& path, const Settings& settings,
                        Findings& findings) {
  print("Dumping " + path + "\n");
  const std::size_t dot = path.rfind('.');
  const std::string suffix = dot == std::string::npos ? "" : path.substr(dot);
  const bool known = suffix == ".log" || suffix == ".index" || suffix == ".timeindex" ||
                     suffix == ".txnindex" || suffix == ".snapshot";
  if (!known) {
    failed("Ignoring unknown file " + path);
    return {};
  }
  POLYLOG_ASSIGN(file, open(fs, path));
  if (suffix == ".log") return LogPrinter(file, settings, findings).run();
  if (suffix == ".txnindex") return print_transactions(file);
  if (suffix == ".snapshot") return print_producers(file);
  POLYLOG_ASSIGN(log, open(fs, path.substr(0, dot) + ".log"));
  return suffix == ".index" ? print_index(file, log, settings, findings)
                            : print_time_index(file, log, settings, findings);
}

void print_findings(const Findings& findings) {
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  for (const auto& [path, pairs] : findings.index) {
    failed("Mismatches in :" + path);
    for (const auto& [a, b] : pairs) {
      failed("  Index offset: " + number(a) + ", log offset: " + number(b));
    }
  }
  for (const auto& [path, pairs] : findings.timestamps) {
    failed("Found timestamp mismatch in :" + path);
    for (const auto& [a, b] : pairs) {
      failed("  Index timestamp: " + number(a) + ", log timestamp: " + number(b));
    }
  }
  for (const auto& [path, pairs] : findings.out_of_order) {
    failed("Found out of order timestamp in :" + path);
    for (const auto& [a, b] : pairs) {
      failed("  Index timestamp: " + number(a) + ", Previously indexed timestamp: " + number(b));
    }
  }
  for (const auto& [path, pairs] : findings.not_found) {
    failed("The following indexed offsets are not found in :" + path);
    for (const auto& [a, b] : pairs) {
      failed("Indexed offset: " + number(a) + ", found log offset: " + number(b));
    }
  }
  for (const auto& [path, pairs] : findings.not_consecutive) {
    failed("Non-consecutive offsets in " + path);
    for (const auto& [a, b] : pairs) failed("  " + number(a) + " is followed by " + number(b));
  }
}

}  // namespace

std::vector<Flag> dump_log_flags() {
  using enum Flag::Value;
  return {
      {"files", required, "Files of a log directory, separated by commas"},
      {"print-data-log", none, "Print records with keys and values"},
      {"deep-iteration", none, "Read each record of each batch"},
      {"offsets-decoder", none, "Print records of __consumer_offsets in words"},
      {"skip-record-metadata", none, "Print keys and values alone"},
      {"index-sanity-check", none, "Only check that an index is sound"},
      {"verify-index-only", none, "Only compare an index with its log"},
      {"max-message-size", required, "Taken, and of no effect here"},
      {"max-bytes", required, "Read only so much of each log"},
      {"key-decoder-class", optional, "A Java class: not supported"},
      {"value-decoder-class", optional, "A Java class: not supported"},
      {"transaction-log-decoder", none, "Not supported"},
      {"cluster-metadata-decoder", none, "Not supported"},
      {"remote-log-metadata-decoder", none, "Not supported"},
      {"share-group-state-decoder", none, "Not supported"},
  };
}

int run_dump_log(const Tool& tool, const Arguments& arguments) {
  if (!arguments.has("files")) return wrong_usage(tool, "Missing required argument \"[files]\"");
  for (const char* flag :
       {"key-decoder-class", "value-decoder-class", "transaction-log-decoder",
        "cluster-metadata-decoder", "remote-log-metadata-decoder", "share-group-state-decoder"}) {
    if (arguments.has(flag)) return failed(std::string("--") + flag + " is not supported");
  }
  Settings settings;
  settings.groups = arguments.has("offsets-decoder");
  settings.records = settings.groups || arguments.has("print-data-log");
  settings.deep = settings.records || arguments.has("deep-iteration");
  settings.skip_metadata = arguments.has("skip-record-metadata");
  settings.sanity_only = arguments.has("index-sanity-check");
  settings.verify_only = arguments.has("verify-index-only");
  const auto most = arguments.number("max-bytes", 0, INT_MAX);
  if (!most) return failed(most.error().context);
  settings.bytes_max = static_cast<std::uint64_t>(most->value_or(INT_MAX));
  fs::PosixFileSystem fs;
  Findings findings;
  for (const std::string& list : arguments.values("files")) {
    std::istringstream paths(list);
    for (std::string path; std::getline(paths, path, ',');) {
      if (auto shown = print_file(fs, path, settings, findings); !shown) {
        return failed(shown.error().context);
      }
    }
  }
  print_findings(findings);
  return 0;
}

}  // namespace polylog::cli::kafka_tools
