#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "fs/file_system.h"

namespace polylog::meta {

struct TopicRecord {
  std::string name;
  Uuid id;
  std::int32_t partitions = 1;
  std::string layout = "kafka";
  std::map<std::string, std::string> configs;  // overrides only, under their Kafka names
  bool operator==(const TopicRecord&) const = default;
};

struct ProducerIdBlock {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Settings that are no topic's: those set while the broker runs, and those of consumer groups.
struct ConfigScope {
  enum class Kind { brokers, broker, group };  // brokers: the default of all, without a name
  Kind kind = Kind::brokers;
  std::string name;  // a node id, or a group
  auto operator<=>(const ConfigScope&) const = default;
};
using ScopedConfigs = std::map<ConfigScope, std::map<std::string, std::string>>;

// Whom a quota is for: a user, a client id, both, or an address.
struct QuotaName {
  bool is_default = false;  // whoever has no quota under a name
  std::string name;
  auto operator<=>(const QuotaName&) const = default;
};
struct QuotaEntity {
  std::optional<QuotaName> user, client_id, ip;
  auto operator<=>(const QuotaEntity&) const = default;
};
using Quotas = std::map<QuotaEntity, std::map<std::string, double>>;  // limits by key
struct QuotaChange {
  QuotaEntity entity;
  std::string key;
  std::optional<double> value;  // nothing: the limit is lifted
};

// What the broker knows besides records: topics, settings, client quotas, the cluster id, how
// far producer ids have been given out. Every change is durable when its call returns. Calls
// wait for the disk: never on the reactor; one at a time (the implementation holds a lock).
class Catalog {
 public:
  virtual ~Catalog() = default;
  virtual Uuid cluster_id() const = 0;  // made at first opening, then fixed
  virtual Result<std::vector<TopicRecord>> topics() const = 0;
  virtual Result<void> create_topic(const TopicRecord& topic) = 0;  // exists
  virtual Result<void> delete_topic(const std::string& name) = 0;   // not_found
  virtual Result<void> set_configs(const std::string& name,
                                   const std::map<std::string, std::string>& configs) = 0;
  virtual Result<void> set_partitions(const std::string& name, std::int32_t partitions) = 0;
  virtual Result<ScopedConfigs> scoped_configs() const = 0;
  // Replaces what the scope has.
  virtual Result<void> set_scoped_configs(const ConfigScope& scope,
                                          const std::map<std::string, std::string>& configs) = 0;
  virtual Result<Quotas> quotas() const = 0;
  virtual Result<void> change_quotas(const std::vector<QuotaChange>& changes) = 0;  // all or none
  // Reserves ids that no one was or will be given, across crashes too.
  virtual Result<ProducerIdBlock> reserve_producer_ids(std::int64_t count) = 0;
};

// SQLite (WAL, synchronous=FULL, exclusive locking) in DIRECTORY/meta.db, through a VFS on `fs`.
// The first opening of a directory adopts `cluster_id` when it is not zero.
Result<std::unique_ptr<Catalog>> open_embedded_catalog(fs::FileSystem& fs,
                                                       const std::string& directory,
                                                       const Uuid& cluster_id);

}  // namespace polylog::meta
