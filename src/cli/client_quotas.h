#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/kafka_client.h"

// Quotas of users, client ids and IP addresses as the broker keeps them (Kafka wire protocol,
// DescribeClientQuotas and AlterClientQuotas). Errors, besides KafkaClient's: invalid, with Kafka's
// code and words.
namespace polylog::cli {

// By entity type, "user", "client-id" or "ip". A name that is missing means the default.
using QuotaEntity = std::map<std::string, std::optional<std::string>>;

struct QuotaView {
  QuotaEntity entity;
  std::map<std::string, double> limits;
};

struct QuotaFilter {
  enum class Match : std::int8_t { exact = 0, standard = 1, any = 2 };  // standard: the default
  std::string entity_type;
  Match match = Match::any;
  std::string name;  // of exact
};

// By entity. `strict`: only entities of just these types. Without filters and not strict: all.
Result<std::vector<QuotaView>> list_quotas(KafkaClient& client,
                                           const std::vector<QuotaFilter>& filters, bool strict);

struct QuotaChange {
  std::string key;              // producer_byte_rate, ...
  std::optional<double> limit;  // nothing: none any more
};
Result<WireAnswer> alter_quotas(KafkaClient& client, const QuotaEntity& entity,
                                const std::vector<QuotaChange>& changes, bool dry_run);

}  // namespace polylog::cli
