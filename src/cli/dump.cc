#include "cli/dump.h"

#include <algorithm>
#include <optional>

#include "cli/command.h"
#include "cli/dump_files.h"
#include "fs/posix_file_system.h"

namespace polylog::cli {
namespace {

using format::kafka::FileStage;
using format::kafka::SegmentFile;

enum class Kind {
  log,
  offset_index,
  time_index,
  transaction_index,
  snapshot,
  epoch_checkpoint,
  offset_checkpoint,
  partition_metadata,
  meta_properties,
  clean_shutdown,
  sidecar,
};

struct Named {
  Kind kind = Kind::log;
  Offset base_offset{0};
};

// What is at a path, as far as its name tells.
struct Target {
  std::string path;
  Named named;
};

Kind kind_of(SegmentFile file) {
  switch (file) {
    case SegmentFile::log: return Kind::log;
    case SegmentFile::index: return Kind::offset_index;
    case SegmentFile::timeindex: return Kind::time_index;
    case SegmentFile::txnindex: return Kind::transaction_index;
    case SegmentFile::snapshot: return Kind::snapshot;
  }
  return Kind::log;
}

// Nothing: no name of a Kafka log directory. invalid: nearly one.
Result<std::optional<Named>> classify(std::string_view name) {
  namespace names = format::kafka;
  if (name == names::epoch_checkpoint_file) return Named{Kind::epoch_checkpoint};
  if (name == names::partition_metadata_file) return Named{Kind::partition_metadata};
  if (name == names::meta_properties_file) return Named{Kind::meta_properties};
  if (name == names::clean_shutdown_file) return Named{Kind::clean_shutdown};
  if (name == "kafka.sidecar") return Named{Kind::sidecar};
  for (const std::string_view known :
       {names::recovery_point_checkpoint_file, names::high_watermark_checkpoint_file,
        names::log_start_checkpoint_file, names::cleaner_checkpoint_file}) {
    if (name == known) return Named{Kind::offset_checkpoint};
  }
  POLYLOG_ASSIGN(segment, names::parse_segment_file_name(name));
  if (!segment) return std::optional<Named>();
  return Named{kind_of(segment->file), segment->offset};
}

std::string name_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// The known files of a directory, in the order of their names.
Result<std::vector<Target>> targets_in(fs::FileSystem& fs, const std::string& directory) {
  POLYLOG_ASSIGN(names, fs.list(directory));
  std::vector<Target> targets;
  for (const std::string& name : names) {
    const auto named = classify(name);
    if (!named || !*named) continue;
    targets.push_back({fs::join(directory, name), **named});
  }
  if (targets.empty()) {
    return fail(Errc::invalid, directory +
                                   " holds no file of a Kafka log directory; name a "
                                   "partition's directory, like data/kafka/topic-0");
  }
  return targets;
}

Result<std::vector<Target>> find_targets(fs::FileSystem& fs,
                                         const std::vector<std::string>& paths) {
  std::vector<Target> targets;
  for (std::string path : paths) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    POLYLOG_ASSIGN(info, fs.info(path));
    if (info.directory) {
      POLYLOG_ASSIGN(found, targets_in(fs, path));
      targets.insert(targets.end(), found.begin(), found.end());
      continue;
    }
    const auto named = classify(name_of(path));
    if (!named) return fail(Errc::invalid, path + ": " + named.error().context);
    if (!*named) {
      return fail(Errc::invalid, path +
                                     " has no name of a Kafka log directory's file; "
                                     "`polylog dump --help` lists them");
    }
    targets.push_back({path, **named});
  }
  return targets;
}

Result<DumpFile> open(fs::FileSystem& fs, const std::string& path, Offset base_offset) {
  DumpFile file;
  POLYLOG_ASSIGN(opened, fs.open(path, fs::OpenMode::read));
  POLYLOG_ASSIGN(info, opened->info());
  file.path = path;
  file.file = opened;
  file.size = info.size;
  file.base_offset = base_offset;
  return file;
}

// The data file beside an index, if it is there.
std::optional<DumpFile> log_beside(fs::FileSystem& fs, const Target& target) {
  std::string path = target.path;
  const std::string_view suffix = format::kafka::suffix(
      target.named.kind == Kind::offset_index ? SegmentFile::index : SegmentFile::timeindex);
  const std::size_t at = path.rfind(suffix);
  path.replace(at, suffix.size(), format::kafka::suffix(SegmentFile::log));
  auto file = open(fs, path, target.named.base_offset);
  return file ? std::optional<DumpFile>(std::move(*file)) : std::nullopt;
}

Result<void> dump_one(fs::FileSystem& fs, const Target& target, const DumpOptions& options,
                      DumpReport& report) {
  POLYLOG_ASSIGN(file, open(fs, target.path, target.named.base_offset));
  const bool index =
      target.named.kind == Kind::offset_index || target.named.kind == Kind::time_index;
  std::optional<DumpFile> log;
  if (index && options.deep) log = log_beside(fs, target);
  switch (target.named.kind) {
    case Kind::log: return dump_log(file, options, report);
    case Kind::offset_index: return dump_offset_index(file, log ? &*log : nullptr, report);
    case Kind::time_index: return dump_time_index(file, log ? &*log : nullptr, report);
    case Kind::transaction_index: return dump_transaction_index(file, report);
    case Kind::snapshot: return dump_snapshot(file, report);
    case Kind::epoch_checkpoint: return dump_epoch_checkpoint(file, report);
    case Kind::offset_checkpoint: return dump_offset_checkpoint(file, report);
    case Kind::partition_metadata: return dump_partition_metadata(file, report);
    case Kind::meta_properties: return dump_meta_properties(file, report);
    case Kind::clean_shutdown: return dump_clean_shutdown(file, report);
    case Kind::sidecar: return dump_sidecar(file, options, report);
  }
  return {};
}

}  // namespace

Result<void> dump_paths(fs::FileSystem& fs, const DumpOptions& options, DumpReport& report) {
  POLYLOG_ASSIGN(targets, find_targets(fs, options.paths));
  for (const Target& target : targets) POLYLOG_TRY(dump_one(fs, target, options, report));
  return {};
}

int dump(const DumpOptions& options) {
  fs::PosixFileSystem fs;
  DumpReport report(stdout, options.json);
  const auto dumped = dump_paths(fs, options, report);
  // What was found first, then what stopped it.
  const int code = finished(stdout, report.damaged() > 0 ? exit_failed : exit_done);
  if (dumped) return code;
  return complain(dumped.error().context,
                  dumped.error().code == Errc::invalid ? exit_usage : exit_failed);
}

}  // namespace polylog::cli
