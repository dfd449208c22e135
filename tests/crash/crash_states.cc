#include "crash_states.h"

#include <algorithm>
#include <cstdlib>

namespace polylog::crash {
namespace {

constexpr int operations = 36;
constexpr std::size_t choices_per_step = 6;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const asked = std::getenv(variable);
  return asked == nullptr ? otherwise : std::strtoull(asked, nullptr, 10);
}

std::uint64_t states_wanted() { return number_from("POLYLOG_CRASH_STATES", 20'000); }

std::uint64_t first_seed() { return number_from("POLYLOG_CRASH_SEED", 1); }

std::uint64_t steps_of(const WorkloadEngine& engine, std::uint64_t seed) {
  fs::SimFileSystem disk;
  StoreWorkload workload(engine, seed);
  workload.run(disk, operations);
  return disk.steps();
}

// Checks one state, then the state after losing everything that its recovery and the records that
// some get did not sync.
void check_state(StoreWorkload& workload, const fs::SimFileSystem& crashed,
                 const fs::CrashChoice& choice, const std::string& where, bool go_on) {
  const auto disk = crashed.crash_state(choice);
  const std::string first = workload.check(*disk, go_on);
  ASSERT_EQ(first, "") << where << ", state " << choice.to_string() << "\n" << disk->dump_tree();
  const auto again = disk->crash_state({.mode = fs::CrashChoice::Mode::lose_all});
  const std::string second = workload.check(*again, false);
  ASSERT_EQ(second, "") << where << ", state " << choice.to_string() << ", then lose_all";
}

}  // namespace

WorkloadEngine with_journal(WorkloadEngine engine) {
  engine.journal = true;
  return engine;
}

void check_crash_states(const WorkloadEngine& engine, std::uint64_t states_max) {
  const std::uint64_t asked = engine.journal ? states_wanted() / 2 : states_wanted();
  const std::uint64_t wanted = std::min(asked, states_max);
  std::uint64_t states = 0;
  std::uint64_t seed = first_seed();
  for (; states < wanted; ++seed) {
    const std::uint64_t steps = steps_of(engine, seed);
    for (std::uint64_t step = 1; step <= steps + 1; ++step) {
      fs::SimFileSystem disk;
      disk.crash_at(step, step % 2 == 0);
      StoreWorkload workload(engine, seed);
      workload.run(disk, operations);
      const std::string where =
          "seed " + std::to_string(seed) + ", power off at step " + std::to_string(step);
      if (step % 2 == 0) {
        const auto killed = disk.crash_state({.mode = fs::CrashChoice::Mode::kill});
        ASSERT_EQ(workload.check(*killed, false, true), "") << where << ", killed";
        ++states;
      }
      for (const fs::CrashChoice& choice : disk.crash_choices(step, choices_per_step)) {
        check_state(workload, disk, choice, where, states % 6 == 0);
        if (::testing::Test::HasFatalFailure()) return;
        states += 2;
      }
    }
  }
  std::printf("%llu crash states, seeds %llu to %llu\n", static_cast<unsigned long long>(states),
              static_cast<unsigned long long>(first_seed()),
              static_cast<unsigned long long>(seed - 1));
}

void check_single_faults(const WorkloadEngine& engine) {
  std::uint64_t calls = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 6; ++seed) {
    const std::uint64_t steps = steps_of(engine, seed);
    for (const fs::Fault fault : {fs::Fault::eio, fs::Fault::no_space, fs::Fault::short_write}) {
      for (std::uint64_t step = 1; step <= steps; ++step, ++calls) {
        fs::SimFileSystem disk;
        disk.fail_step(step, fault);
        StoreWorkload workload(engine, seed);
        workload.run(disk, operations);
        check_state(workload, disk, {.mode = fs::CrashChoice::Mode::lose_all},
                    "seed " + std::to_string(seed) + ", step " + std::to_string(step) +
                        " failed, fault " + std::to_string(static_cast<int>(fault)),
                    step % 4 == 0);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
  std::printf("%llu failed calls, seeds %llu to %llu\n", static_cast<unsigned long long>(calls),
              static_cast<unsigned long long>(first_seed()),
              static_cast<unsigned long long>(first_seed() + 5));
}

}  // namespace polylog::crash
