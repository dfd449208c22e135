#include "server/kafka/errors.h"

#include <gtest/gtest.h>

namespace polylog::server::kafka {
namespace {

// Errc values are consecutive; the last one names the end.
TEST(KafkaErrors, storage_trouble_is_retriable_and_bad_input_is_not) {
  for (const Errc code : {Errc::no_space, Errc::io, Errc::unavailable, Errc::timed_out}) {
    EXPECT_TRUE(protocol::kafka::retriable(error_code(code))) << to_string(code);
  }
  for (const Errc code : {Errc::invalid, Errc::out_of_range, Errc::too_large}) {
    EXPECT_FALSE(protocol::kafka::retriable(error_code(code))) << to_string(code);
  }
}

TEST(KafkaErrors, no_error_becomes_success) {
  for (int i = 0; i <= static_cast<int>(Errc::timed_out); ++i) {
    EXPECT_NE(error_code(static_cast<Errc>(i)), ErrorCode::none) << i;
  }
}

TEST(KafkaErrors, producers_are_told_what_kafka_tells_them) {
  using Verdict = ProducerState::Verdict;
  EXPECT_EQ(to_wire(error_code(Verdict::accept)), 0);
  EXPECT_EQ(to_wire(error_code(Verdict::duplicate)), 0);
  EXPECT_EQ(to_wire(error_code(Verdict::out_of_order_sequence)), 45);
  EXPECT_EQ(to_wire(error_code(Verdict::invalid_producer_epoch)), 47);
  EXPECT_EQ(to_wire(error_code(Verdict::invalid_transaction_state)), 48);
}

}  // namespace
}  // namespace polylog::server::kafka
