#include "broker/quotas/quotas.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "broker/quotas/rules.h"

namespace polylog::broker::quotas {
namespace {

using Name = std::optional<std::string>;

struct Rig {
  ManualClock clock{Timestamp(0)};
  Quotas quotas{Windows{}, Windows{}};

  std::int64_t now() const { return clock.steady_ns() / 1'000'000; }
  void limit(const std::vector<EntityPart>& parts, const char* key, std::optional<double> value) {
    const auto entity = make_entity(parts);
    ASSERT_TRUE(entity) << entity.error().context;
    quotas.apply({*entity, key, value});
  }
  std::int64_t produce(const Who& who, double bytes) {
    return quotas.record(Kind::produce, who, bytes, now());
  }
};

constexpr Who a{"ANONYMOUS", "a"}, b{"ANONYMOUS", "b"};

TEST(Quotas, nothing_is_limited_until_something_is) {
  Rig rig;
  EXPECT_FALSE(rig.quotas.limited());
  EXPECT_EQ(rig.produce(a, 1e12), 0);
  rig.limit({{"client-id", "a"}}, consumer_byte_rate, 10);
  EXPECT_TRUE(rig.quotas.limited());
  EXPECT_FALSE(rig.quotas.limited(Kind::produce));
  EXPECT_TRUE(rig.quotas.limited(Kind::fetch));
  rig.limit({{"client-id", "a"}}, consumer_byte_rate, std::nullopt);
  EXPECT_FALSE(rig.quotas.limited());
}

TEST(Quotas, the_most_specific_limit_counts_in_kafkas_order) {
  Rig rig;
  const std::vector<std::vector<EntityPart>> rising = {
      {{"client-id", Name()}},
      {{"client-id", "a"}},
      {{"user", Name()}},
      {{"user", Name()}, {"client-id", Name()}},
      {{"user", Name()}, {"client-id", "a"}},
      {{"user", "ANONYMOUS"}},
      {{"user", "ANONYMOUS"}, {"client-id", Name()}},
      {{"user", "ANONYMOUS"}, {"client-id", "a"}}};
  double limit = 1;
  for (const auto& parts : rising) {
    rig.limit(parts, producer_byte_rate, limit);
    EXPECT_EQ(rig.quotas.burst_max(Kind::produce, a), limit * 10) << limit;
    limit += 1;
  }
  EXPECT_EQ(rig.quotas.burst_max(Kind::fetch, a), std::nullopt);
}

TEST(Quotas, clients_of_a_user_share_its_limit_and_client_ids_have_one_each) {
  Rig rig;
  rig.limit({{"client-id", Name()}}, producer_byte_rate, 100);
  EXPECT_EQ(rig.produce(a, 1000), 0);
  EXPECT_EQ(rig.produce(b, 1000), 0);
  EXPECT_GT(rig.produce(a, 1000), 0);
  Rig shared;
  shared.limit({{"user", Name()}}, producer_byte_rate, 100);
  EXPECT_EQ(shared.produce(a, 1000), 0);
  EXPECT_EQ(shared.produce(b, 500), 5000);
  shared.clock.advance_ms(11'000);
  EXPECT_EQ(shared.produce(b, 500), 0);
}

TEST(Quotas, a_limit_acts_at_once_on_what_was_used_before) {
  Rig rig;
  rig.limit({{"client-id", "a"}}, producer_byte_rate, 1000);
  EXPECT_EQ(rig.produce(a, 5000), 0);
  rig.limit({{"client-id", "a"}}, producer_byte_rate, 100);
  EXPECT_EQ(rig.produce(a, 0), 40'000);
}

TEST(Quotas, a_share_of_the_thread_is_waited_for_a_second_at_most) {
  Rig rig;
  rig.limit({{"client-id", "a"}}, request_percentage, 1);
  EXPECT_EQ(rig.quotas.record(Kind::request, a, 10, rig.now()), 0);
  EXPECT_EQ(rig.quotas.record(Kind::request, a, 5000, rig.now()), 1000);
}

TEST(Quotas, a_read_that_is_not_sent_does_not_count) {
  Rig rig;
  rig.limit({{"client-id", "a"}}, consumer_byte_rate, 100);
  EXPECT_TRUE(rig.quotas.unused(Kind::fetch, a, rig.now()));
  EXPECT_GT(rig.quotas.record(Kind::fetch, a, 2000, rig.now()), 0);
  rig.quotas.take_back(Kind::fetch, a, 2000, rig.now());
  EXPECT_TRUE(rig.quotas.unused(Kind::fetch, a, rig.now()));
  EXPECT_EQ(rig.quotas.record(Kind::fetch, a, 1000, rig.now()), 0);
  EXPECT_FALSE(rig.quotas.unused(Kind::fetch, a, rig.now()));
}

TEST(Quotas, strict_mutations_stop_at_the_limit_and_lenient_ones_pay_afterwards) {
  Rig rig;
  rig.limit({{"client-id", Name()}}, controller_mutation_rate, 1);
  EXPECT_TRUE(rig.quotas.mutate(a, 50, true, rig.now()).allowed) << "11 were left";
  const auto refused = rig.quotas.mutate(a, 1, true, rig.now());
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.wait_ms, 39'000);
  rig.clock.advance_ms(39'000);
  EXPECT_TRUE(rig.quotas.mutate(a, 1, true, rig.now()).allowed);
  const auto lenient = rig.quotas.mutate(b, 15, false, rig.now());
  EXPECT_TRUE(lenient.allowed);
  EXPECT_EQ(lenient.wait_ms, 4000);
}

TEST(Quotas, connections_are_limited_by_address) {
  Rig rig;
  EXPECT_EQ(rig.quotas.admit("10.0.0.1", rig.now()), 0);
  rig.limit({{"ip", Name()}}, connection_creation_rate, 1);
  rig.limit({{"ip", "10.0.0.9"}}, connection_creation_rate, 100);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rig.quotas.admit("10.0.0.1", rig.now()), 0) << i;
  EXPECT_EQ(rig.quotas.admit("10.0.0.1", rig.now()), 1000);
  EXPECT_EQ(rig.quotas.admit("10.0.0.2", rig.now()), 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rig.quotas.admit("10.0.0.9", rig.now()), 0) << i;
  rig.clock.advance_ms(11'000);
  EXPECT_EQ(rig.quotas.admit("10.0.0.1", rig.now()), 0);
}

TEST(Quotas, clients_that_went_away_are_forgotten) {
  Rig rig;
  rig.limit({{"client-id", Name()}}, producer_byte_rate, 100);
  for (int i = 0; i < 20'000; ++i) {
    const std::string id = "client-" + std::to_string(i);
    rig.produce({"ANONYMOUS", id}, 1);
    rig.clock.advance_ms(5);
  }
  EXPECT_LT(rig.quotas.clients(), 8000U);
  Rig flood;
  flood.limit({{"client-id", Name()}}, producer_byte_rate, 100);
  for (int i = 0; i < 60'000; ++i) {
    const std::string id = "client-" + std::to_string(i);
    flood.produce({"ANONYMOUS", id}, 1);
  }
  EXPECT_LE(flood.quotas.clients(), 50'001U);
}

}  // namespace
}  // namespace polylog::broker::quotas
