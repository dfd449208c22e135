#include "broker/quotas/quotas.h"

#include <algorithm>
#include <iterator>

#include "broker/quotas/rules.h"

namespace polylog::broker::quotas {
namespace {

// Client ids are the clients' choice. Beyond so many at a time they share one measure.
constexpr std::size_t clients_max = 50'000;
constexpr std::size_t sweep_min = 1024;
constexpr std::int64_t full_sweep_ms = 1000;  // as often as that when there are so many

constexpr const char* keys[kinds] = {producer_byte_rate, consumer_byte_rate, request_percentage,
                                     controller_mutation_rate, connection_creation_rate};
const char* key_of(Kind kind) { return keys[static_cast<std::size_t>(kind)]; }

constexpr std::int64_t request_wait_ms_max = 1000;

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::produce: return "produce";
    case Kind::fetch: return "fetch";
    case Kind::request: return "request";
    case Kind::mutation: return "mutation";
    case Kind::connection: return "connection";
  }
  return "";
}

Quotas::Quotas(const Windows& rates, const Windows& mutations)
    : rates_(rates), mutations_(mutations) {}

std::optional<Kind> Quotas::kind_of(std::string_view key) {
  const auto* const at = std::find(std::begin(keys), std::end(keys), key);
  if (at == std::end(keys)) return std::nullopt;
  return static_cast<Kind>(at - std::begin(keys));
}

void Quotas::count_kinds() {
  kinds_ = 0;
  for (const auto& [entity, values] : limits_) {
    for (const auto& [key, value] : values) {
      if (const auto kind = kind_of(key)) kinds_ |= bit(*kind);
    }
  }
}

void Quotas::replace(const meta::Quotas& all) {
  limits_ = all;
  count_kinds();
}

void Quotas::apply(const meta::QuotaChange& change) {
  auto& values = limits_[change.entity];
  values.erase(change.key);
  if (change.value) values[change.key] = *change.value;
  if (values.empty()) limits_.erase(change.entity);
  count_kinds();
}

std::optional<double> Quotas::limit_of(const meta::QuotaEntity& entity, const char* key) const {
  const auto values = limits_.find(entity);
  if (values == limits_.end()) return std::nullopt;
  const auto limit = values->second.find(key);
  if (limit == values->second.end()) return std::nullopt;
  return limit->second;
}

// In Kafka's order, most specific first.
std::optional<Quotas::Found> Quotas::find(Kind kind, const Who& who) const {
  const char* const key = key_of(kind);
  const meta::QuotaName user{false, std::string(who.user)};
  const meta::QuotaName client{false, std::string(who.client_id)};
  const meta::QuotaName other{true, ""};
  const std::optional<meta::QuotaName> none;
  struct Step {
    const std::optional<meta::QuotaName> user, client;
  };
  const Step steps[] = {{user, client}, {user, other}, {user, none}, {other, client},
                        {other, other}, {other, none}, {none, client}, {none, other}};
  for (const Step& step : steps) {
    const auto limit = limit_of({step.user, step.client, none}, key);
    if (!limit) continue;
    Found found{*limit, {}};
    found.shared_by += static_cast<char>('0' + static_cast<int>(kind));
    if (step.user) found.shared_by += "u" + user.name;
    found.shared_by += '\0';
    if (step.client) found.shared_by += "c" + client.name;
    return found;
  }
  return std::nullopt;
}

void Quotas::forget_idle(std::int64_t now_ms) {
  const std::int64_t idle_ms = std::max(rates_.span_ms(), mutations_.span_ms());
  std::erase_if(clients_,
                [&](const auto& entry) { return now_ms - entry.second.used_ms > idle_ms; });
  sweep_at_ = std::max(sweep_min, clients_.size() * 2);
  swept_ms_ = now_ms;
}

Quotas::Used& Quotas::used(Kind kind, const std::string& shared_by, std::int64_t now_ms) {
  auto at = clients_.find(shared_by);
  if (at == clients_.end()) {
    const bool full = clients_.size() >= clients_max && now_ms - swept_ms_ >= full_sweep_ms;
    if (clients_.size() >= sweep_at_ || full) forget_idle(now_ms);
    const bool crowded = clients_.size() >= clients_max;
    const std::string others(1, static_cast<char>('0' + static_cast<int>(kind)));
    at = clients_.try_emplace(crowded ? others : shared_by).first;
  }
  at->second.used_ms = now_ms;
  return at->second;
}

std::int64_t Quotas::record(Kind kind, const Who& who, double amount, std::int64_t now_ms) {
  const auto found = find(kind, who);
  if (!found) return 0;
  Used& client = used(kind, found->shared_by, now_ms);
  client.rate.record(amount, now_ms, rates_);
  const std::int64_t wait_ms = client.rate.wait_ms(found->limit, now_ms, rates_);
  // A share of a thread comes back by itself; Kafka waits a window at most.
  return kind == Kind::request
             ? std::min(wait_ms, std::max(rates_.window_ms, request_wait_ms_max))
             : wait_ms;
}

void Quotas::take_back(Kind kind, const Who& who, double amount, std::int64_t now_ms) {
  const auto found = find(kind, who);
  if (found) used(kind, found->shared_by, now_ms).rate.record(-amount, now_ms, rates_);
}

std::optional<double> Quotas::burst_max(Kind kind, const Who& who) const {
  const auto found = find(kind, who);
  if (!found) return std::nullopt;
  const std::int64_t full_windows = std::max(rates_.count - 1, 1);
  return found->limit * static_cast<double>(full_windows * rates_.window_ms) / 1000;
}

bool Quotas::unused(Kind kind, const Who& who, std::int64_t now_ms) {
  const auto found = find(kind, who);
  return !found || used(kind, found->shared_by, now_ms).rate.empty(now_ms, rates_);
}

Quotas::Mutation Quotas::mutate(const Who& who, double partitions, bool strict,
                                std::int64_t now_ms) {
  const auto found = find(Kind::mutation, who);
  if (!found) return {};
  TokenBucket& tokens = used(Kind::mutation, found->shared_by, now_ms).tokens;
  Mutation out;
  if (strict) {
    out.wait_ms = tokens.wait_ms(found->limit, now_ms, mutations_);
    out.allowed = out.wait_ms == 0;
    if (out.allowed) tokens.take(partitions, found->limit, now_ms, mutations_);
    return out;
  }
  tokens.take(partitions, found->limit, now_ms, mutations_);
  out.wait_ms = tokens.wait_ms(found->limit, now_ms, mutations_);
  return out;
}

std::int64_t Quotas::admit(const std::string& ip, std::int64_t now_ms) {
  meta::QuotaEntity entity;
  entity.ip = meta::QuotaName{false, ip};
  std::optional<double> limit = limit_of(entity, connection_creation_rate);
  if (!limit) {
    entity.ip = meta::QuotaName{true, ""};
    limit = limit_of(entity, connection_creation_rate);
  }
  if (!limit) return 0;
  const std::string shared_by = std::string(1, '0' + static_cast<int>(Kind::connection)) + ip;
  SampledRate& rate = used(Kind::connection, shared_by, now_ms).rate;
  rate.record(1, now_ms, rates_);
  const std::int64_t wait_ms = rate.wait_ms(*limit, now_ms, rates_);
  if (wait_ms == 0) return 0;
  rate.record(-1, now_ms, rates_);  // it does not come in
  return std::min(wait_ms, rates_.window_ms);
}

}  // namespace polylog::broker::quotas
