#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "broker/quotas/rate.h"
#include "meta/catalog.h"

namespace polylog::broker::quotas {

enum class Kind { produce, fetch, request, mutation, connection };
inline constexpr std::size_t kinds = 5;
std::string_view name_of(Kind kind);  // "produce", ...

// Nobody proves who he is yet.
inline constexpr std::string_view anonymous = "ANONYMOUS";

struct Who {
  std::string_view user = anonymous;
  std::string_view client_id;
};

// The limits there are, and how much of them clients have used (Kafka wire protocol, "Quotas").
// Times are steady milliseconds. Reactor only.
class Quotas {
 public:
  Quotas(const Windows& rates, const Windows& mutations);

  const meta::Quotas& limits() const { return limits_; }
  void apply(const meta::QuotaChange& change);
  void replace(const meta::Quotas& all);

  // False: nobody has a limit of that kind, and there is nothing to record. All that a request
  // costs then is to ask this.
  bool limited(Kind kind) const { return (kinds_ & bit(kind)) != 0; }
  bool limited() const { return kinds_ != 0; }

  // Notes what a client used (bytes; for Kind::request percent of one thread's second) and
  // returns how many ms it should be silent for the rate to come down to its limit.
  std::int64_t record(Kind kind, const Who& who, double amount, std::int64_t now_ms);
  // As if it had not been used.
  void take_back(Kind kind, const Who& who, double amount, std::int64_t now_ms);
  // The most that can be used at once without going over the limit; nothing: no limit.
  std::optional<double> burst_max(Kind kind, const Who& who) const;
  // Nothing was used lately: a single use over the limit must then be let through, or it never is.
  bool unused(Kind kind, const Who& who, std::int64_t now_ms);

  // Changes of topics and partitions. `strict`: nothing is taken once the limit is used up.
  // Otherwise everything is, and paid for afterwards.
  struct Mutation {
    bool allowed = true;
    std::int64_t wait_ms = 0;
  };
  Mutation mutate(const Who& who, double partitions, bool strict, std::int64_t now_ms);

  // A connection from an address in its canonical form: 0 when it may come in, else how many ms
  // it is to be held before it is closed.
  std::int64_t admit(const std::string& ip, std::int64_t now_ms);

  std::size_t clients() const { return clients_.size(); }

 private:
  struct Used {
    SampledRate rate;
    TokenBucket tokens;
    std::int64_t used_ms = 0;
  };
  // A limit, and who shares it: all clients of a user, or one client id.
  struct Found {
    double limit;
    std::string shared_by;
  };
  static constexpr std::uint32_t bit(Kind kind) { return 1U << static_cast<unsigned>(kind); }
  static std::optional<Kind> kind_of(std::string_view key);
  std::optional<double> limit_of(const meta::QuotaEntity& entity, const char* key) const;
  std::optional<Found> find(Kind kind, const Who& who) const;
  Used& used(Kind kind, const std::string& shared_by, std::int64_t now_ms);
  void forget_idle(std::int64_t now_ms);
  void count_kinds();

  Windows rates_, mutations_;
  meta::Quotas limits_;
  std::uint32_t kinds_ = 0;
  std::unordered_map<std::string, Used> clients_;
  std::size_t sweep_at_ = 1024;
  std::int64_t swept_ms_ = 0;
};

}  // namespace polylog::broker::quotas
