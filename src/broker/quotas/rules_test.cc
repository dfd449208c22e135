#include "broker/quotas/rules.h"

#include <gtest/gtest.h>

#include <cmath>

namespace polylog::broker::quotas {
namespace {

std::string refusal(const std::vector<EntityPart>& parts) {
  const auto entity = make_entity(parts);
  return entity ? "" : entity.error().context;
}

meta::QuotaEntity entity(const std::vector<EntityPart>& parts) {
  return make_entity(parts).value_or(meta::QuotaEntity{});
}

TEST(QuotaRules, entities_come_back_as_they_were_given) {
  for (const std::vector<EntityPart>& parts :
       {std::vector<EntityPart>{{"user", "a"}}, {{"user", std::nullopt}},
        {{"user", "a"}, {"client-id", std::nullopt}}, {{"ip", "127.0.0.1"}},
        {{"ip", std::nullopt}}}) {
    const auto made = make_entity(parts);
    ASSERT_TRUE(made);
    const auto back = parts_of(*made);
    ASSERT_EQ(back.size(), parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(back[i].type, parts[i].type);
      EXPECT_EQ(back[i].name, parts[i].name);
    }
  }
  EXPECT_EQ(parts_of(entity({{"ip", "2001:DB8:0::1"}})).at(0).name, "2001:db8::1");
}

TEST(QuotaRules, what_is_nobody_is_refused) {
  EXPECT_EQ(refusal({}), "Invalid empty client quota entity");
  EXPECT_EQ(refusal({{"group", "g"}}), "Unhandled client quota entity type: group");
  EXPECT_EQ(refusal({{"user", ""}}), "Empty user not supported");
  EXPECT_NE(refusal({{"user", "a"}, {"user", "b"}}).find("duplicate"), std::string::npos);
  EXPECT_NE(refusal({{"ip", "127.0.0.1"}, {"user", "b"}}).find("combination"), std::string::npos);
  for (const char* ip : {"127.0.0", "256.1.1.1", "host.example", "::g", "1.2.3.4/8"}) {
    EXPECT_NE(refusal({{"ip", ip}}).find("not a valid IP"), std::string::npos) << ip;
  }
}

TEST(QuotaRules, each_entity_has_its_keys) {
  const auto ip = entity({{"ip", std::nullopt}}), user = entity({{"user", "u"}});
  EXPECT_TRUE(check_key(ip, connection_creation_rate));
  EXPECT_FALSE(check_key(ip, producer_byte_rate));
  EXPECT_FALSE(check_key(user, connection_creation_rate));
  for (const char* key : {producer_byte_rate, consumer_byte_rate, request_percentage,
                          controller_mutation_rate}) {
    EXPECT_TRUE(check_key(user, key)) << key;
  }
  EXPECT_FALSE(check_key(user, "producer_rate"));
}

TEST(QuotaRules, limits_are_above_nothing_and_whole_where_bytes_are_counted) {
  EXPECT_TRUE(check_limit(producer_byte_rate, 1));
  EXPECT_TRUE(check_limit(request_percentage, 0.01));
  EXPECT_TRUE(check_limit(controller_mutation_rate, 2.5));
  for (const char* key : {producer_byte_rate, request_percentage, connection_creation_rate}) {
    for (const double bad : {0.0, -1.0, std::nan("")}) EXPECT_FALSE(check_limit(key, bad)) << key;
  }
  EXPECT_FALSE(check_limit(consumer_byte_rate, 1.5));
  EXPECT_FALSE(check_limit(consumer_byte_rate, 1e30));
  EXPECT_FALSE(check_limit(connection_creation_rate, 3e9));
  EXPECT_FALSE(check_limit(request_percentage, INFINITY));
}

TEST(QuotaRules, questions_with_a_type_twice_or_unknown_are_refused) {
  using Match = Condition::Match;
  EXPECT_TRUE(check_conditions({}));
  EXPECT_TRUE(check_conditions({{"user", Match::any, ""}, {"client-id", Match::exact, "c"}}));
  EXPECT_EQ(check_conditions({{"", Match::any, ""}}).error().code, Errc::invalid);
  EXPECT_EQ(check_conditions({{"user", Match::any, ""}, {"user", Match::any, ""}}).error().code,
            Errc::invalid);
  EXPECT_EQ(check_conditions({{"group", Match::any, ""}}).error().code, Errc::unsupported);
  EXPECT_EQ(check_conditions({{"ip", Match::any, ""}, {"user", Match::any, ""}}).error().code,
            Errc::invalid);
}

TEST(QuotaRules, a_question_finds_what_it_says_and_no_more_when_strict) {
  using Match = Condition::Match;
  const auto both = entity({{"user", "a"}, {"client-id", std::nullopt}});
  const auto user = entity({{"user", "a"}});
  const std::vector<Condition> exact{{"user", Match::exact, "a"}};
  EXPECT_TRUE(matches(user, exact, true));
  EXPECT_TRUE(matches(both, exact, false));
  EXPECT_FALSE(matches(both, exact, true));
  EXPECT_FALSE(matches(user, {{"user", Match::exact, "b"}}, false));
  EXPECT_FALSE(matches(user, {{"user", Match::is_default, ""}}, false));
  EXPECT_TRUE(matches(both, {{"client-id", Match::is_default, ""}}, false));
  EXPECT_FALSE(matches(both, {{"client-id", Match::exact, ""}}, false));
  EXPECT_TRUE(matches(both, {{"client-id", Match::any, ""}, {"user", Match::any, ""}}, true));
  EXPECT_FALSE(matches(user, {{"client-id", Match::any, ""}}, false));
  EXPECT_TRUE(matches(user, {}, false));
  EXPECT_FALSE(matches(user, {}, true));
}

}  // namespace
}  // namespace polylog::broker::quotas
