#include "broker/quotas/rules.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

namespace polylog::broker::quotas {
namespace {

constexpr const char* user_type = "user";
constexpr const char* client_id_type = "client-id";
constexpr const char* ip_type = "ip";

std::optional<meta::QuotaName>* part_of(meta::QuotaEntity& entity, std::string_view type) {
  if (type == user_type) return &entity.user;
  if (type == client_id_type) return &entity.client_id;
  if (type == ip_type) return &entity.ip;
  return nullptr;
}

bool any_of(std::string_view key, std::initializer_list<const char*> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

std::string canonical_ip(const std::string& text) {
  in_addr v4{};
  in6_addr v6{};
  char out[INET6_ADDRSTRLEN] = {};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    return inet_ntop(AF_INET, &v4, out, sizeof out) != nullptr ? out : "";
  }
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) {
    return inet_ntop(AF_INET6, &v6, out, sizeof out) != nullptr ? out : "";
  }
  return "";
}

Result<meta::QuotaEntity> make_entity(const std::vector<EntityPart>& parts) {
  if (parts.empty()) return fail(Errc::invalid, "Invalid empty client quota entity");
  meta::QuotaEntity entity;
  for (const EntityPart& part : parts) {
    auto* const place = part_of(entity, part.type);
    if (place == nullptr) {
      return fail(Errc::invalid, "Unhandled client quota entity type: " + part.type);
    }
    if (*place) {
      return fail(Errc::invalid,
                  "Invalid client quota entity, duplicate entity entry " + part.type);
    }
    if (part.name && part.name->empty()) {
      return fail(Errc::invalid, "Empty " + part.type + " not supported");
    }
    *place = meta::QuotaName{!part.name, part.name.value_or("")};
  }
  if (!entity.ip) return entity;
  if (entity.user || entity.client_id) {
    return fail(Errc::invalid, "Invalid quota entity combination, IP entity should not be "
                               "combined with User or ClientId");
  }
  if (entity.ip->is_default) return entity;
  const std::string ip = canonical_ip(entity.ip->name);
  if (ip.empty()) return fail(Errc::invalid, entity.ip->name + " is not a valid IP");
  entity.ip->name = ip;
  return entity;
}

std::vector<EntityPart> parts_of(const meta::QuotaEntity& entity) {
  std::vector<EntityPart> parts;
  const auto add = [&parts](const char* type, const std::optional<meta::QuotaName>& part) {
    if (!part) return;
    EntityPart& out = parts.emplace_back();
    out.type = type;
    if (!part->is_default) out.name = part->name;
  };
  add(user_type, entity.user);
  add(client_id_type, entity.client_id);
  add(ip_type, entity.ip);
  return parts;
}

Result<void> check_key(const meta::QuotaEntity& entity, const std::string& key) {
  const bool known =
      entity.ip ? key == connection_creation_rate
                : any_of(key, {producer_byte_rate, consumer_byte_rate, request_percentage,
                               controller_mutation_rate});
  if (known) return {};
  return fail(Errc::invalid, "Invalid configuration key " + key);
}

Result<void> check_limit(const std::string& key, double value) {
  if (!(value > 0)) return fail(Errc::invalid, "Quota " + key + " must be greater than 0");
  if (any_of(key, {request_percentage, controller_mutation_rate})) {
    if (std::isfinite(value)) return {};
    return fail(Errc::invalid, "Quota " + key + " must be a number");
  }
  const bool is_int = key == connection_creation_rate;
  const double max = is_int ? 2147483647.0 : 9223372036854775807.0;
  if (value > max) {
    return fail(Errc::invalid, "Proposed value for " + key + " is too large for " +
                                   (is_int ? "an INT." : "a LONG."));
  }
  if (std::fabs(std::fmod(value, 1.0)) > 1e-6) {
    return fail(Errc::invalid, key + " cannot be a fractional value.");
  }
  return {};
}

Result<void> check_conditions(const std::vector<Condition>& conditions) {
  std::set<std::string> types;
  meta::QuotaEntity unused;
  for (const Condition& condition : conditions) {
    if (condition.type.empty()) return fail(Errc::invalid, "Invalid empty entity type.");
    if (!types.insert(condition.type).second) {
      return fail(Errc::invalid, "Entity type " + condition.type +
                                     " cannot appear more than once in the filter.");
    }
    if (part_of(unused, condition.type) == nullptr) {
      return fail(Errc::unsupported, "Unsupported entity type " + condition.type);
    }
  }
  if (types.contains(ip_type) && types.size() > 1) {
    return fail(Errc::invalid,
                "Invalid entity filter component combination. IP filter component should not be "
                "used with user or clientId filter component.");
  }
  return {};
}

bool matches(const meta::QuotaEntity& entity, const std::vector<Condition>& conditions,
             bool strict) {
  meta::QuotaEntity seen = entity;
  if (strict && parts_of(entity).size() != conditions.size()) return false;
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
    const auto* const part = part_of(seen, condition.type);
    if (part == nullptr || !*part) return false;
    switch (condition.match) {
      case Condition::Match::any: return true;
      case Condition::Match::is_default: return (*part)->is_default;
      case Condition::Match::exact:
        return !(*part)->is_default && (*part)->name == condition.name;
    }
    return false;
  });
}

}  // namespace polylog::broker::quotas
