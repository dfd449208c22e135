#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "broker/config_layers.h"
#include "broker/durability.h"
#include "broker/partition.h"
#include "broker/quotas/quotas.h"
#include "broker/reactor.h"
#include "broker/segment_grants.h"
#include "broker/settings.h"
#include "broker/shown_cache.h"
#include "broker/topic_config.h"
#include "meta/catalog.h"
#include "storage/store.h"

namespace polylog::broker {

struct Topic {
  std::string name;
  Uuid id;
  TopicConfig config;
  std::map<std::string, std::string> overrides;
  std::vector<std::shared_ptr<Partition>> partitions;
  bool deleting = false;
};

struct NewTopic {
  std::string name;
  std::int32_t partitions = -1;          // -1: num.partitions
  std::int16_t replication_factor = -1;  // -1: default.replication.factor; only 1 can be met
  std::map<std::string, std::string> configs;
  bool validate_only = false;
};

// The broker's state above the stores: topics and their partitions, who waits for what, and the
// background work (retention, checkpoints, interval flushes). Reactor only unless said otherwise.
class Broker {
 public:
  // One store per layout. Null: not opened, and topics in it are not served.
  struct Stores {
    std::unique_ptr<storage::Store> kafka;  // always there: internal topics live in it
    std::unique_ptr<storage::Store> rocketmq;
    std::unique_ptr<storage::Store> segment;
    // What the segment store was opened with. Null: it asks nobody.
    std::shared_ptr<LocalGrants> grants;
    // The file system they are on, opened before they were, so that no write error is missed.
    // Null: syncs go file by file.
    std::unique_ptr<fs::Volume> volume;
    // Outlives the broker; the stores, the volume and `fs` are on its file system. Null: none.
    journal::Journal* journal = nullptr;

    storage::Store* of(storage::Layout layout) const;
    std::vector<std::pair<storage::Layout, storage::Store*>> opened() const;
  };
  using MakeDurability = std::function<std::unique_ptr<Durability>(Durability::Completion)>;
  using Report = std::function<void(const std::string& line)>;

  // `fs` and `clock` outlive the broker; the stores are open (recovered) already.
  // Tests bring their own durability; otherwise it is the threaded one. Destroyed before pool
  // and reactor, when run() has returned.
  Broker(Reactor& reactor, Pool& pool, fs::FileSystem& fs, const Clock& clock,
         const Settings& settings, std::unique_ptr<meta::Catalog> catalog, Stores stores,
         MakeDurability make_durability = nullptr);
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  // Where failures of background work go, one line each; standard error unless set.
  void set_report(Report report);

  // Matches catalogue and stores, makes what the catalogue has and the disk has not, reports
  // directories nobody knows, begins new epochs after an unclean stop. Before run().
  Result<std::vector<std::string>> load();
  // Starts retention, checkpoint and interval-flush timers.
  void start_background();
  // Clean stop: refuses new work, writes what is staged, drains durability, closes the stores.
  // Waits; on the reactor's thread after run() has returned, never on a handler.
  Result<void> close();
  bool closing() const;

  // What is in force now: what was given at the start, and what was changed since.
  const Settings& settings() const { return settings_; }
  const Clock& clock() const { return clock_; }
  Reactor& reactor() { return reactor_; }
  Pool& pool() { return pool_; }
  ShownCache& shown() { return shown_; }
  const Uuid& cluster_id() const { return cluster_id_; }
  const Origin& store_host() const { return store_host_; }  // ours, as records name it

  // Called after a topic was made, got more partitions, or was deleted; not for what load() finds.
  enum class TopicEvent { created, grown, deleted };
  using TopicObserver = std::function<void(const Topic& topic, TopicEvent event)>;
  void observe_topics(TopicObserver observer);  // for as long as the broker lives

  // nullptr when missing or being deleted.
  std::shared_ptr<Topic> find(const std::string& name) const;
  std::shared_ptr<Topic> find(const Uuid& id) const;
  std::shared_ptr<Partition> find(const std::string& topic, std::int32_t partition) const;
  std::vector<std::shared_ptr<Topic>> topics() const;  // by name

  // invalid (bad name, partitions, replication or config; `code` says which), exists.
  enum class TopicError {
    none, invalid_name, exists, invalid_partitions, invalid_replication_factor, invalid_config,
    unknown, storage,
  };
  struct TopicOutcome {
    TopicError error = TopicError::none;
    std::string message;
    std::shared_ptr<Topic> topic;  // null for validate_only
  };
  static constexpr std::size_t shown_bytes_max = std::size_t{32} << 20;
  static constexpr std::int32_t partitions_per_topic_max = 10'000;
  Async<TopicOutcome> create_topic(NewTopic request);
  // Decided when the catalogue has noted it: the topic never comes back, whatever happens to its
  // files afterwards.
  Async<TopicOutcome> delete_topic(std::string name);
  // More partitions, `partitions` in all. Decided when the catalogue has noted it, as a creation.
  // invalid_partitions: it has as many or more; storage: the catalogue did not note it, or it did
  // and some of them could not be made: these refuse writes until there is room, and the message
  // says so.
  Async<TopicOutcome> grow_topic(std::string name, std::int32_t partitions, bool validate_only);
  // `configs` are all overrides the topic has from now on.
  Async<TopicOutcome> alter_topic(std::string name, std::map<std::string, std::string> configs);

  // From all overrides the topic has to those it is to have; called under the topic's lock, so that
  // of two changes at a time none is lost. `validate_only`: nothing changes.
  using ConfigChange = std::function<Result<std::map<std::string, std::string>>(
      const std::map<std::string, std::string>& current)>;
  Async<TopicOutcome> change_topic(std::string name, ConfigChange change, bool validate_only);

  // Settings of this broker (Kind::broker), of all (Kind::brokers) or of a group, changed while it
  // runs: durable and in force when the call returns. invalid: what was asked for can't be;
  // otherwise the catalogue's error.
  Async<Result<void>> change_settings(meta::ConfigScope scope, ConfigChange change,
                                      bool validate_only);
  const SettingLayers& setting_layers() const;
  void observe_settings(std::function<void()> observer);  // for as long as the broker lives
  // What a group overrides, and the groups that override anything.
  std::optional<std::string> group_config(const std::string& group, const std::string& key) const;
  std::map<std::string, std::string> group_configs(const std::string& group) const;
  std::vector<std::string> configured_groups() const;

  // Client quotas: the limits there are, and what clients have used.
  quotas::Quotas& quotas() { return quotas_; }
  std::int64_t steady_ms() const { return clock_.steady_ns() / 1'000'000; }
  // Checked changes; durable and in force when the call returns.
  Async<Result<void>> change_quotas(std::vector<meta::QuotaChange> changes);

  // DeleteRecords: returns the new log start. Durable when it returns. out_of_range: beyond the
  // high watermark.
  Async<Result<Offset>> delete_records(std::shared_ptr<Partition> partition, Offset before);

  // What partitions take up on the disk, by store; those without any of them too.
  struct StoreUsage {
    std::string directory;
    std::vector<std::pair<TopicPartition, std::uint64_t>> partitions;  // bytes
    std::uint64_t volume_bytes = 0, free_bytes = 0;  // of the volume it is on
    Result<void> volume;  // whether that could be found out
  };
  Async<std::vector<StoreUsage>> usage(std::vector<std::shared_ptr<Partition>> partitions);

  // An id nobody else was or will be given.
  Async<Result<ProducerId>> next_producer_id();

  // Called by Partition::append: this turn's staged logs are written together at its end.
  void staged(LogState& state);
  // The same at once, after an append to the log failed with `cause`.
  void write_now(LogState& state, const Error& cause);
  // A sync round is to cover the log, whatever its flush policy.
  void submit(LogState& state);
  // REQUIRES: a topic of that layout is served.
  storage::Store& store(storage::Layout layout);

 private:
  struct Impl;
  friend struct Impl;
  Reactor& reactor_;
  Pool& pool_;
  const Clock& clock_;
  const Settings& fixed_settings_;  // as given at the start
  Settings settings_;
  quotas::Quotas quotas_;
  Uuid cluster_id_;
  Origin store_host_;
  ShownCache shown_{shown_bytes_max};
  std::shared_ptr<Impl> impl_;
};

// Kafka's rule: 1..249 of [a-zA-Z0-9._-], not "." or "..". invalid with a sentence otherwise.
Result<void> check_topic_name(const std::string& name);

}  // namespace polylog::broker
