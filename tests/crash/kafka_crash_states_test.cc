#include "crash_states.h"

// Every legal crash state of random workloads over the Kafka engine.
namespace polylog::crash {
namespace {

TEST(KafkaCrashStates, no_acknowledged_record_is_lost_and_no_shown_offset_changes) {
  check_crash_states(kafka_engine());
}

TEST(KafkaCrashStates, every_call_site_fails_once_without_loss) {
  check_single_faults(kafka_engine());
}

}  // namespace
}  // namespace polylog::crash
