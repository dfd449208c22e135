#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/dump.h"
#include "cli/dump_report.h"
#include "cli/dump_store_log.h"
#include "format/kafka/names.h"
#include "fs/file_system.h"

// One function for each kind of file. Errors: the file cannot be read; what is wrong inside goes
// to the report.
namespace polylog::cli {

struct DumpFile {
  std::string path;
  fs::FilePtr file;
  std::uint64_t size = 0;
  Offset base_offset{0};  // what the name says: a store's file's position, a .msg file's number
};

Result<void> dump_log(const DumpFile& file, const DumpOptions& options, DumpReport& report);

// `log` is the segment's data file for --deep, or null.
Result<void> dump_offset_index(const DumpFile& file, const DumpFile* log, DumpReport& report);
Result<void> dump_time_index(const DumpFile& file, const DumpFile* log, DumpReport& report);
Result<void> dump_transaction_index(const DumpFile& file, DumpReport& report);

Result<void> dump_snapshot(const DumpFile& file, DumpReport& report);
Result<void> dump_epoch_checkpoint(const DumpFile& file, DumpReport& report);
Result<void> dump_offset_checkpoint(const DumpFile& file, DumpReport& report);
Result<void> dump_partition_metadata(const DumpFile& file, DumpReport& report);
Result<void> dump_meta_properties(const DumpFile& file, DumpReport& report);
Result<void> dump_clean_shutdown(const DumpFile& file, DumpReport& report);

Result<void> dump_commit_log(const DumpFile& file, const DumpOptions& options, DumpReport& report);
// `log` is the store's commit log for --deep, or null.
Result<void> dump_consume_queue(const DumpFile& file, StoreLog* log, DumpReport& report);
Result<void> dump_consume_queue_ext(const DumpFile& file, DumpReport& report);
Result<void> dump_key_index(const DumpFile& file, StoreLog* log, const DumpOptions& options,
                            DumpReport& report);

Result<void> dump_store_checkpoint(const DumpFile& file, DumpReport& report);
Result<void> dump_abort_mark(const DumpFile& file, DumpReport& report);
Result<void> dump_topics(const DumpFile& file, DumpReport& report);
Result<void> dump_subscription_groups(const DumpFile& file, DumpReport& report);
Result<void> dump_consumer_offsets(const DumpFile& file, DumpReport& report);
Result<void> dump_delay_offsets(const DumpFile& file, DumpReport& report);

Result<void> dump_segment(const DumpFile& file, const DumpOptions& options, DumpReport& report);

Result<void> dump_journal(const DumpFile& file, const DumpOptions& options, DumpReport& report);
Result<void> dump_sidecar(const DumpFile& file, const DumpOptions& options, DumpReport& report);

}  // namespace polylog::cli
