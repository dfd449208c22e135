#pragma once

#include <gtest/gtest.h>

#include "store_workload.h"

namespace polylog::crash {

// The same engine, its sync rounds through a journal.
WorkloadEngine with_journal(WorkloadEngine engine);

// The power goes at each I/O step of random workloads in turn, the disk is found in a spread of
// the states it may be in, and every promise is checked; then the power goes again, at once, and
// nothing may have got worse. At every second step the process alone is killed too: all that was
// written is there. POLYLOG_CRASH_STATES says how many states, 20,000 otherwise, half of that on a
// journal, but about `states_max` at most; POLYLOG_CRASH_SEED is the first seed, 1 otherwise.
void check_crash_states(const WorkloadEngine& engine, std::uint64_t states_max = UINT64_MAX);

// Each I/O call of a workload fails once, in each way; what was acknowledged before and after it
// is there when the power goes at the end.
void check_single_faults(const WorkloadEngine& engine);

}  // namespace polylog::crash
