#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fs/file_system.h"
#include "storage/store.h"

namespace polylog::journal {
class Journal;
}

namespace polylog::broker {

// The only owner of syncs. Asynchronous: submit logs, be told when the round that covered them
// has ended. Rounds run one at a time; what is submitted meanwhile goes into the next round, so
// one sync serves everything that has piled up (group commit without a timer).
class Durability {
 public:
  struct Outcome {
    std::shared_ptr<storage::Log> log;
    LogPosition end;      // durable up to here when ok
    Result<void> result;  // an error is final for the log until restart, unless retriable
    // The log found no room for what it must write before a sync. No sync was tried, so nothing
    // is in doubt: submit the log again.
    bool retriable = false;
    std::uint64_t round = 0;  // the one that ended; rounds are numbered from 1 in order
  };
  // Called with all outcomes of one round, on the thread the implementation names. A round has
  // one outcome for each log submitted to it.
  using Completion = std::function<void(std::vector<Outcome>)>;

  virtual ~Durability() = default;
  // Any thread. Submitting a log twice before its round begins is one submission. Returns the
  // number of the round that will cover it: that round begins after this call.
  virtual std::uint64_t submit(std::shared_ptr<storage::Log> log) = 0;
  // Many for one round.
  virtual std::uint64_t submit(std::vector<std::shared_ptr<storage::Log>> logs) = 0;
  // Runs rounds until nothing submitted is left, then returns (clean stop).
  virtual void drain() = 0;
};

// Runs one round here and now: collects what is dirty, syncs it (a few files one by one, many
// through the volume), settles each log. A failed sync fails every log that was dirty in the
// round. Without a volume everything is synced one by one. With a journal, whose file system `fs`
// is and which `volume` was opened through, the files of logs without new names go into it. Shared
// by every form of Durability and by recovery.
std::vector<Durability::Outcome> run_sync_round(fs::FileSystem& fs, fs::Volume* volume,
                                                std::vector<std::shared_ptr<storage::Log>> logs,
                                                journal::Journal* journal = nullptr);
inline std::vector<Durability::Outcome> run_sync_round(
    fs::FileSystem& fs, fs::Volume& volume, std::vector<std::shared_ptr<storage::Log>> logs) {
  return run_sync_round(fs, &volume, std::move(logs));
}

// Rounds on a thread of its own; completions are called on that thread. `volume` may be null:
// then every file is synced by itself. `journal`: see run_sync_round(); outlives this. Destroying
// it drops what has not begun.
std::unique_ptr<Durability> make_threaded_durability(fs::FileSystem& fs,
                                                     std::unique_ptr<fs::Volume> volume,
                                                     Durability::Completion completion,
                                                     journal::Journal* journal = nullptr);

// Rounds only when the test says so: a submission waits until run_round().
class SimulatedDurability final : public Durability {
 public:
  SimulatedDurability(fs::FileSystem& fs, std::unique_ptr<fs::Volume> volume,
                      Completion completion);
  ~SimulatedDurability() override;
  std::uint64_t submit(std::shared_ptr<storage::Log> log) override;
  std::uint64_t submit(std::vector<std::shared_ptr<storage::Log>> logs) override;
  void drain() override;
  bool run_round();  // false when nothing was submitted

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace polylog::broker
