#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "meta/catalog.h"

// What client quotas are allowed, and which of them a question means (Kafka wire protocol,
// "Quotas"). Pure.
namespace polylog::broker::quotas {

inline constexpr const char* producer_byte_rate = "producer_byte_rate";
inline constexpr const char* consumer_byte_rate = "consumer_byte_rate";
inline constexpr const char* request_percentage = "request_percentage";
inline constexpr const char* controller_mutation_rate = "controller_mutation_rate";
inline constexpr const char* connection_creation_rate = "connection_creation_rate";

// A part of an entity as it comes over the wire; no name is the default.
struct EntityPart {
  std::string type;
  std::optional<std::string> name;
};
// invalid, with a sentence: nothing, a type nobody knows or twice, an empty name, an address with
// a user or a client id, or one that is none.
Result<meta::QuotaEntity> make_entity(const std::vector<EntityPart>& parts);
std::vector<EntityPart> parts_of(const meta::QuotaEntity& entity);

// invalid: a key the entity can't have, or a value that is no limit.
Result<void> check_key(const meta::QuotaEntity& entity, const std::string& key);
Result<void> check_limit(const std::string& key, double value);

// One condition of a question: the part of that type has this name, is the default, or is there.
struct Condition {
  enum class Match { exact = 0, is_default = 1, any = 2 };
  std::string type;
  Match match = Match::any;
  std::string name;
};
// invalid: a type twice or empty, an address with the others; unsupported: an unknown type.
Result<void> check_conditions(const std::vector<Condition>& conditions);
// `strict`: the entity has no part that no condition speaks of.
bool matches(const meta::QuotaEntity& entity, const std::vector<Condition>& conditions,
             bool strict);

// The one way to write an address, or "" when it is none.
std::string canonical_ip(const std::string& text);

}  // namespace polylog::broker::quotas
