#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "convert/group_offsets.h"
#include "convert/overlay_file_system.h"
#include "convert/robustmq_store.h"
#include "format/kafka/cluster_metadata.h"
#include "fs/file_system.h"
#include "meta/catalog.h"
#include "storage/store.h"

namespace polylog::convert {

using Engines = std::map<storage::Layout, storage::OpenStore>;

// A topic as it lies in a data directory.
struct Topic {
  meta::TopicRecord record;  // its id is zero where none is known
  storage::Layout layout = storage::Layout::kafka;
  // One of Kafka's own (__consumer_offsets, ...): always in Kafka's layout, copied as it is.
  bool kafka_internal = false;
  // One of RocketMQ's own (SCHEDULE_TOPIC_XXXX, %RETRY%group, ...): in no catalogue, and only in
  // RocketMQ's layout.
  bool rocketmq_internal = false;
  // Its settings are those it has of its own, all of them: what they leave open was its broker's to
  // say, and is not in the directory.
  bool settings_known = false;
};

// A stopped data directory, opened so that nothing in it changes: its stores recover in an overlay.
// The locks of whoever may run on it are held as long as the object lives. Used by one thread.
class DataDirectory {
 public:
  enum class Kind {
    polylog,   // meta/, sidecar/, and a folder for each layout
    kafka,     // a Kafka log directory
    rocketmq,  // a RocketMQ store directory
    robustmq,  // RobustMQ's segment files
  };

  // What the directory itself does not say.
  struct Hints {
    TopicNames topic_names;      // of RobustMQ's
    std::string kafka_metadata;  // Kafka's metadata.log.dir; empty: the directory itself
  };
  // `scratch` is a path outside the directory, for files that are gone when the object is.
  // invalid: this is no such directory. locked: somebody runs on it. Any other error: it can't be
  // read as a whole.
  static Result<std::unique_ptr<DataDirectory>> open(fs::FileSystem& fs, const Clock& clock,
                                                     const Engines& engines, std::string path,
                                                     const std::string& scratch,
                                                     const Hints& hints);

  Kind kind() const { return kind_; }
  const std::string& path() const { return path_; }
  const Uuid& cluster_id() const { return cluster_id_; }        // zero: none is known
  const std::vector<Topic>& topics() const { return topics_; }  // by name
  // Null: that layout has none. Engines are asked through the interface only.
  storage::Store* store(storage::Layout layout) const;
  // Null: the topic has no data of that partition.
  std::shared_ptr<storage::PartitionLog> find(const Topic& topic, std::int32_t partition) const;
  // What recovery and the listing found out, to be told to the user.
  const std::vector<std::string>& notes() const { return notes_; }
  // What the catalogue says of all brokers, of groups and of quotas; or Kafka's metadata log.
  const meta::ScopedConfigs& scoped_configs() const { return scoped_configs_; }
  const meta::Quotas& quotas() const { return quotas_; }
  // Ids below have been given to producers, as far as the catalogue says.
  std::int64_t producer_ids_end() const { return producer_ids_end_; }
  // What RocketMQ's groups have committed, where no __consumer_offsets says more.
  const std::vector<GroupOffset>& group_offsets() const { return group_offsets_; }
  // A file of the RocketMQ store's config folder; empty when there is none.
  Result<std::string> rocketmq_config(std::string_view name) const;

 private:
  DataDirectory(fs::FileSystem& fs, const Clock& clock, std::string path,
                const std::string& scratch);

  Result<void> find_kind();
  Result<void> check_journal() const;
  Result<void> take_lock(const std::string& path);
  Result<void> read_catalog();
  Result<void> open_stores(const Engines& engines, const TopicNames& names);
  Result<void> open_store(storage::Layout layout, storage::OpenStore engine);
  Result<void> take_store(storage::Layout layout, Result<storage::Opened> opened);
  std::string store_directory(storage::Layout layout) const;
  Result<void> list_topics();
  Result<void> adopt(storage::Layout layout);
  Result<void> add_rocketmq_topics();
  Result<void> read_kraft(const std::string& directory);
  void take_from_kraft(Topic& topic, const format::kafka::ClusterMetadata& metadata);
  void take_from_kraft(const format::kafka::ClusterMetadata& metadata);
  Result<void> check_complete() const;
  Result<void> check_complete(storage::Layout layout) const;
  Result<void> read_group_offsets();
  void note(std::string line) { notes_.push_back(std::move(line)); }

  const std::string path_;
  const Clock& clock_;
  fs::FileSystem& below_;
  const std::string sidecar_;  // of a directory that has none of its own; in the overlay alone
  OverlayFileSystem fs_;
  Kind kind_ = Kind::polylog;
  Uuid cluster_id_;
  std::vector<std::unique_ptr<fs::Lock>> locks_;
  std::vector<meta::TopicRecord> records_;
  meta::ScopedConfigs scoped_configs_;
  meta::Quotas quotas_;
  std::int64_t producer_ids_end_ = 0;
  std::map<storage::Layout, std::unique_ptr<storage::Store>> stores_;
  std::map<storage::Layout, std::vector<std::string>> store_notes_;
  std::vector<Topic> topics_;
  std::vector<GroupOffset> group_offsets_;
  std::vector<std::string> notes_;
};

}  // namespace polylog::convert
