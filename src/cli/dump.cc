#include "cli/dump.h"

#include <optional>

#include "cli/command.h"
#include "cli/dump_files.h"
#include "cli/dump_store_log.h"
#include "cli/dump_target.h"
#include "fs/posix_file_system.h"

namespace polylog::cli {
namespace {

using format::kafka::SegmentFile;

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
std::optional<DumpFile> log_beside(fs::FileSystem& fs, const DumpTarget& target) {
  std::string path = target.path;
  const std::string_view suffix = format::kafka::suffix(
      target.kind == DumpKind::offset_index ? SegmentFile::index : SegmentFile::timeindex);
  const std::size_t at = path.rfind(suffix);
  path.replace(at, suffix.size(), format::kafka::suffix(SegmentFile::log));
  auto file = open(fs, path, target.base_offset);
  return file ? std::optional<DumpFile>(std::move(*file)) : std::nullopt;
}

Result<void> dump_kafka_index(fs::FileSystem& fs, const DumpTarget& target, const DumpFile& file,
                              const DumpOptions& options, DumpReport& report) {
  std::optional<DumpFile> log;
  if (options.deep) log = log_beside(fs, target);
  DumpFile* const beside = log ? &*log : nullptr;
  return target.kind == DumpKind::offset_index ? dump_offset_index(file, beside, report)
                                               : dump_time_index(file, beside, report);
}

// What points into a store's commit log: a queue lies three directories below the store, an index
// file one.
Result<void> dump_store_index(fs::FileSystem& fs, const DumpTarget& target, const DumpFile& file,
                              const DumpOptions& options, DumpReport& report) {
  const bool queue = target.kind == DumpKind::consume_queue;
  std::optional<StoreLog> log;
  if (options.deep) {
    POLYLOG_ASSIGN(beside, StoreLog::beside(fs, target.path, queue ? 4 : 2));
    log = std::move(beside);
  }
  StoreLog* const followed = log ? &*log : nullptr;
  return queue ? dump_consume_queue(file, followed, report)
               : dump_key_index(file, followed, options, report);
}

Result<void> dump_one(fs::FileSystem& fs, const DumpTarget& target, const DumpOptions& options,
                      DumpReport& report) {
  POLYLOG_ASSIGN(file, open(fs, target.path, target.base_offset));
  switch (target.kind) {
    case DumpKind::log: return dump_log(file, options, report);
    case DumpKind::offset_index:
    case DumpKind::time_index: return dump_kafka_index(fs, target, file, options, report);
    case DumpKind::transaction_index: return dump_transaction_index(file, report);
    case DumpKind::snapshot: return dump_snapshot(file, report);
    case DumpKind::epoch_checkpoint: return dump_epoch_checkpoint(file, report);
    case DumpKind::offset_checkpoint: return dump_offset_checkpoint(file, report);
    case DumpKind::partition_metadata: return dump_partition_metadata(file, report);
    case DumpKind::meta_properties: return dump_meta_properties(file, report);
    case DumpKind::clean_shutdown: return dump_clean_shutdown(file, report);
    case DumpKind::commit_log: return dump_commit_log(file, options, report);
    case DumpKind::consume_queue:
    case DumpKind::key_index: return dump_store_index(fs, target, file, options, report);
    case DumpKind::consume_queue_ext: return dump_consume_queue_ext(file, report);
    case DumpKind::store_checkpoint: return dump_store_checkpoint(file, report);
    case DumpKind::abort_mark: return dump_abort_mark(file, report);
    case DumpKind::topics: return dump_topics(file, report);
    case DumpKind::subscription_groups: return dump_subscription_groups(file, report);
    case DumpKind::consumer_offsets: return dump_consumer_offsets(file, report);
    case DumpKind::delay_offsets: return dump_delay_offsets(file, report);
    case DumpKind::segment: return dump_segment(file, options, report);
    case DumpKind::sidecar: return dump_sidecar(file, options, report);
    case DumpKind::journal: return dump_journal(file, options, report);
  }
  return {};
}

}  // namespace

Result<void> dump_paths(fs::FileSystem& fs, const DumpOptions& options, DumpReport& report) {
  POLYLOG_ASSIGN(targets, find_targets(fs, options.paths));
  for (const DumpTarget& target : targets) POLYLOG_TRY(dump_one(fs, target, options, report));
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
