#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "fs/sim_file_system.h"
#include "storage/store.h"

// Test only: a store of rolled logs on a simulated disk, with the sync rounds done by hand.
namespace polylog::storage {

class RolledRig {
 public:
  RolledRig() : clock(Timestamp(1'000'000)), disk(std::make_unique<fs::SimFileSystem>(&clock)) {
    config.sidecar_directory = "/data/sidecar";
  }
  virtual ~RolledRig() = default;

  virtual Result<Opened> open_store() = 0;
  Result<void> open() {
    store.reset();
    POLYLOG_ASSIGN(opened, open_store());
    store = std::move(opened.store);
    recovery = std::move(opened.recovery);
    return {};
  }
  // The process dies; the disk is as `choice` says.
  Result<void> crash(const fs::CrashChoice& choice) {
    auto next = disk->crash_state(choice);
    store.reset();
    disk = std::move(next);
    return open();
  }
  Result<void> kill() { return crash({.mode = fs::CrashChoice::Mode::kill}); }
  // Nothing fits on the disk any more.
  void fill() {
    const std::uint64_t free = *disk->free_bytes("/data");
    disk->set_capacity(*disk->total_bytes("/data") - free);
  }

  std::shared_ptr<PartitionLog> log(const std::string& topic = "t", std::int32_t partition = 0) {
    const TopicPartition id{topic, partition};
    if (auto found = store->find(id)) return found;
    auto made = store->create(id, *Uuid::parse("AAAAAAAAAAAAAAAAAAAABA"), log_config);
    EXPECT_TRUE(made) << made.error().to_string();
    return *made;
  }

  static Result<Staged> append(PartitionLog& to, Batch batch) {
    POLYLOG_ASSIGN(staged, to.append(std::move(batch)));
    POLYLOG_TRY(to.log()->write_staged());
    return staged;
  }

  // One sync round of one log.
  Result<void> sync(PartitionLog& of) { return sync(*of.log()); }
  Result<void> sync(Log& log) {
    POLYLOG_ASSIGN(dirty, log.dirty());
    if (!dirty) return {};
    Result<void> synced;
    for (const fs::FilePtr& file : dirty->files) {
      if (synced) synced = file->sync();
    }
    for (const std::string& directory : dirty->directories) {
      if (synced) synced = disk->sync_directory(directory);
    }
    log.settled(*dirty, synced.has_value());
    log.write_noted();
    return synced;
  }

  ManualClock clock;
  std::unique_ptr<fs::SimFileSystem> disk;
  StoreConfig config;
  LogConfig log_config;
  std::unique_ptr<Store> store;
  Recovery recovery;
};

}  // namespace polylog::storage
