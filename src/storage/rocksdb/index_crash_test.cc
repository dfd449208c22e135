#include <cstdlib>
#include <optional>

#include "fs/sim_file_system.h"
#include "storage/rocksdb/ordered_index_rig.h"

// What a power cut, a kill or one failing call leaves of an index: all that was synced, and a
// prefix of the rest.
namespace polylog::storage {
namespace {

using fs::CrashChoice;
using fs::Fault;
using fs::SimFileSystem;

const std::string directory = "/data/segment-index";

// What a run wrote, and how much of it was promised.
struct History {
  std::vector<OrderedIndex::Changes> changes;  // in order of write(), the failed one last
  std::size_t synced = 0;                      // so many of them are promised

  // How many changes make up what was found: the most that fit, and at least the synced ones.
  std::optional<std::size_t> prefix_of(const Entries& found) const {
    std::optional<std::size_t> fitting;
    Entries entries;
    for (std::size_t count = 0; count <= changes.size(); ++count) {
      if (count > 0) apply(entries, changes[count - 1]);
      if (count >= synced && entries == found) fitting = count;
    }
    return fitting;
  }
};

struct Workload {
  IndexKind kind;
  std::uint64_t seed;
  int operations;
  std::size_t puts_max;
  std::size_t value_bytes = 40;

  // Writes, syncs and opens again at random, until an error or the end.
  History run(SimFileSystem& disk) const {
    std::mt19937_64 random(seed);
    History history;
    auto index = kind.open(disk, directory);
    for (int i = 0; i < operations && index; ++i) {
      if (i % 12 == 11) {
        index = fail(Errc::unavailable, "closed");
        index = kind.open(disk, directory);
        // A close without a sync may cost what was not synced; what is there now stays.
        if (!index || !settle(**index, history)) break;
      } else if (random() % 4 == 0) {
        if (!(*index)->sync()) break;
        history.synced = history.changes.size();
      } else {
        history.changes.push_back(random_changes(random, puts_max, value_bytes));
        if (!(*index)->write(history.changes.back())) break;
      }
    }
    return history;
  }

  static bool settle(const OrderedIndex& index, History& history) {
    const auto found = contents(index);
    if (!found) return false;
    if (const auto count = history.prefix_of(*found)) {
      history.changes.resize(*count);
      return true;
    }
    ADD_FAILURE() << "opened again, the index holds no prefix of what was written";
    return false;
  }
};

enum class Verdict { whole, corrupt, wrong };

// Opens the index on a crashed disk. Corrupt is an answer, if building it again works.
Verdict check(const IndexKind& kind, SimFileSystem& disk, const History& history,
              std::string& what) {
  auto index = kind.open(disk, directory);
  if (!index && index.error().code == Errc::corrupt) {
    what = index.error().to_string();
    if (!fs::remove_tree(disk, directory)) return Verdict::wrong;
    index = kind.open(disk, directory);
    if (!index) return Verdict::wrong;
    for (const auto& changes : history.changes) {
      if (!(*index)->write(changes)) return Verdict::wrong;
    }
    if (!(*index)->sync()) return Verdict::wrong;
    const auto built = contents(**index);
    return built && history.prefix_of(*built) == history.changes.size() ? Verdict::corrupt
                                                                        : Verdict::wrong;
  }
  if (!index) {
    what = index.error().to_string();
    return Verdict::wrong;
  }
  const auto found = contents(**index);
  if (!found) {
    what = found.error().to_string();
    return Verdict::wrong;
  }
  if (history.prefix_of(*found)) return Verdict::whole;
  what = std::to_string(found->size()) + " entries are no prefix of " +
         std::to_string(history.changes.size()) + " changes, " + std::to_string(history.synced) +
         " of them synced";
  return Verdict::wrong;
}

struct Tally {
  std::size_t states = 0;
  std::size_t corrupt = 0;
};

// One state, and that state after losing what opening it did not sync.
void check_state(const IndexKind& kind, const SimFileSystem& crashed, const CrashChoice& choice,
                 const History& history, const std::string& where, Tally& tally) {
  const auto disk = crashed.crash_state(choice);
  const auto tree = disk->dump_tree();
  std::string what;
  const Verdict verdict = check(kind, *disk, history, what);
  ASSERT_NE(verdict, Verdict::wrong)
      << where << ", state " << choice.to_string() << ": " << what << "\n"
      << tree;
  ++tally.states;
  if (verdict == Verdict::corrupt) {
    ++tally.corrupt;
    std::printf("%s, state %s: %s\n", where.c_str(), choice.to_string().c_str(), what.c_str());
    return;
  }
  const auto again = disk->crash_state({.mode = CrashChoice::Mode::lose_all});
  const Verdict later = check(kind, *again, history, what);
  ASSERT_NE(later, Verdict::wrong)
      << where << ", state " << choice.to_string() << ", then lose_all: " << what;
  ++tally.states;
  if (later == Verdict::corrupt) ++tally.corrupt;
}

void check_crash_states(const Workload& workload, std::size_t choices, std::uint64_t stride,
                        Tally& tally) {
  SimFileSystem whole;
  workload.run(whole);
  for (std::uint64_t step = 1; step <= whole.steps() + 1; step += stride) {
    SimFileSystem disk;
    disk.crash_at(step, step % 2 == 0);
    const History history = workload.run(disk);
    const std::string where = workload.kind.name + ", seed " + std::to_string(workload.seed) +
                              ", power off at step " + std::to_string(step);
    for (const CrashChoice& choice : disk.crash_choices(step, choices)) {
      check_state(workload.kind, disk, choice, history, where, tally);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

void check_single_faults(const Workload& workload, std::uint64_t stride, Tally& tally) {
  SimFileSystem whole;
  workload.run(whole);
  for (const Fault fault : {Fault::eio, Fault::no_space, Fault::short_write}) {
    for (std::uint64_t step = 1; step <= whole.steps(); step += stride) {
      SimFileSystem disk;
      disk.fail_step(step, fault);
      const History history = workload.run(disk);
      const std::string where = workload.kind.name + ", step " + std::to_string(step) +
                                " failed, fault " + std::to_string(static_cast<int>(fault));
      disk.clear_faults();
      for (const auto mode : {CrashChoice::Mode::kill, CrashChoice::Mode::lose_all}) {
        check_state(workload.kind, disk, {.mode = mode}, history, where, tally);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

std::uint64_t states_wanted(std::uint64_t otherwise) {
  const char* const asked = std::getenv("POLYLOG_INDEX_CRASH_STATES");
  return asked == nullptr ? otherwise : std::strtoull(asked, nullptr, 10);
}

TEST(IndexCrash, the_fake_keeps_all_that_was_synced_and_a_prefix) {
  Tally tally;
  for (std::uint64_t seed = 1; tally.states < states_wanted(10'000); ++seed) {
    check_crash_states({memory_kind(), seed, 40, 6}, 6, 1, tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(tally.corrupt, 0U);
}

TEST(IndexCrash, the_fake_survives_each_call_failing_once) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    check_single_faults({memory_kind(), seed, 40, 6}, 1, tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(tally.corrupt, 0U);
}

// The second workload fills its write buffer between syncs and compacts.
TEST(IndexCrash, rocksdb_keeps_all_that_was_synced_and_a_prefix) {
  Tally tally;
  for (std::uint64_t seed = 1; tally.states < states_wanted(1'000); ++seed) {
    check_crash_states({rocksdb_kind(1 << 20), seed, 40, 6}, 4, 3, tally);
    if (HasFatalFailure()) return;
    check_crash_states({rocksdb_kind(64 << 10), seed, 60, 60, 1000}, 3, 9, tally);
    if (HasFatalFailure()) return;
  }
  std::printf("rocksdb: %zu crash states, %zu of them corrupt\n", tally.states, tally.corrupt);
  EXPECT_LE(tally.corrupt, tally.states / 50);
}

TEST(IndexCrash, rocksdb_survives_each_call_failing_once) {
  Tally tally;
  check_single_faults({rocksdb_kind(1 << 20), 1, 24, 6}, 1, tally);
  if (HasFatalFailure()) return;
  check_single_faults({rocksdb_kind(64 << 10), 2, 24, 60, 1000}, 3, tally);
  std::printf("rocksdb: %zu states after single faults, %zu of them corrupt\n", tally.states,
              tally.corrupt);
}

}  // namespace
}  // namespace polylog::storage
