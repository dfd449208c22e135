#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "broker/broker.h"
#include "broker/turn_writes.h"

// What the broker's own source files share. Nobody else includes this.
namespace polylog::broker {

// One change at a time to topics whose names mean the same to Kafka's metrics ("a.b", "a_b").
// Reactor only.
class NameLocks : public std::enable_shared_from_this<NameLocks> {
 public:
  explicit NameLocks(boost::asio::io_context& context) : context_(context) {}

  class Hold {
   public:
    Hold(std::shared_ptr<NameLocks> locks, std::string key)
        : locks_(std::move(locks)), key_(std::move(key)) {}
    Hold(Hold&&) = default;
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (locks_) locks_->release(key_);
    }

   private:
    std::shared_ptr<NameLocks> locks_;
    std::string key_;
  };

  Async<Hold> acquire(std::string name);

 private:
  void release(const std::string& key);

  boost::asio::io_context& context_;
  std::unordered_map<std::string, std::shared_ptr<Watermark>> held_;
};

// The name with every '.' as '_': Kafka refuses two topics that have the same.
std::string collision_key(std::string_view name);

// What a request about a topic is answered with when it is refused.
Broker::TopicOutcome refuse(Broker::TopicError error, std::string message);
Broker::TopicOutcome refuse(const Error& error);

// Marks the broker keeps among a topic's settings in the catalogue. They are no settings: no
// user can set them and none sees them.
inline constexpr const char* deleting_mark = "polylog.topic.deleting";
inline constexpr const char* suspended_mark = "polylog.retention.suspended";

struct Broker::Impl : std::enable_shared_from_this<Broker::Impl> {
  // What sync rounds report, on its way from their thread to the reactor.
  struct Inbox {
    std::mutex mutex;
    std::vector<Durability::Outcome> outcomes;
  };
  // A topic on disk: its catalogue row and what load() found of it.
  struct Found {
    std::vector<std::int32_t> partitions;  // rising
    std::optional<Uuid> id;                // when all that have one agree
    bool ids_differ = false;
  };
  // A partition that could not be made for want of room; tried again in the background.
  struct Missing {
    std::shared_ptr<Topic> topic;
    std::int32_t partition;
  };
  // A topic marked as deleted, and how far removing its partitions has come.
  struct Deletion {
    meta::TopicRecord record;
    std::int32_t next = 0;
    bool stuck = false;  // removing partition `next` failed
    bool finished = false;
  };
  // A topic on its way from `before` partitions to `after`.
  struct Growth {
    std::string name;
    Uuid id;
    storage::Store* store = nullptr;
    storage::LogConfig config;
    std::int32_t before = 0, after = 0;
    // Those from `before` on; null where one could not be made.
    std::vector<std::shared_ptr<storage::PartitionLog>> logs;
    bool noted = false;  // the catalogue says `after`
  };
  // Producer ids reserved in the catalogue and not given out yet.
  struct ProducerIds {
    explicit ProducerIds(boost::asio::io_context& context) : reservations(context, 0) {}
    std::int64_t next = 0;
    std::int64_t end = 0;
    bool reserving = false;
    Watermark reservations;  // how many have ended
    Result<void> last;
  };
  using FoundTopics = std::map<std::string, std::map<storage::Layout, Found>>;
  using IntervalQueue = std::deque<std::pair<std::int64_t, std::weak_ptr<LogState>>>;

  Impl(Broker& broker_in, fs::FileSystem& fs_in, std::unique_ptr<meta::Catalog> catalog_in,
       Stores stores_in);

  // ---- broker.cc: writes and syncs
  void start_durability(MakeDurability make);
  void staged(LogState& state);
  void end_of_turn();
  void write(LogState& state, const Error& cause);
  void write_shared(const std::vector<std::shared_ptr<LogState>>& states_written,
                    const Error& cause);
  bool wrote(LogState& state, const Result<void>& written, const Error& cause);
  void write_failed(LogState& state, const Error& error);
  void submit(LogState& state);
  void flush_within(LogState& state, std::int64_t interval_ms);
  void fire_interval(std::int64_t interval_ms);
  void take_outcomes();
  void settle(LogState& state, const Durability::Outcome& outcome);
  void retry_submissions();
  std::shared_ptr<LogState> state_of(const std::shared_ptr<storage::Log>& log, bool shared);
  void report(const std::string& line) const;

  // ---- topics.cc, growth.cc: create, grow, delete, alter
  TopicOutcome check_new(const NewTopic& request, meta::TopicRecord& record,
                         TopicConfig& config) const;
  using PartitionLogs = std::vector<std::shared_ptr<storage::PartitionLog>>;
  // The next five wait for the disk.
  Result<PartitionLogs> make_topic(storage::Store& store, const meta::TopicRecord& record,
                                   const storage::LogConfig& config,
                                   std::optional<Deletion>& left);
  Result<void> mark_deleting(const meta::TopicRecord& record);
  Result<void> remove_marked(Deletion& deletion);
  Result<void> remove_topic(Deletion& deletion);
  Result<void> make_growth(Growth& growth);
  void add_topic(std::shared_ptr<Topic> topic);
  void drop_topic(const std::shared_ptr<Topic>& topic);
  void tell(const Topic& topic, TopicEvent event);
  // Gives it one partition more for each log; null stands for one that can't be made yet.
  void extend(const std::shared_ptr<Topic>& topic, const PartitionLogs& logs,
              const Error& why_missing);
  std::shared_ptr<Partition> make_partition(const Topic& topic, std::int32_t index,
                                            std::shared_ptr<storage::PartitionLog> log,
                                            std::shared_ptr<const TopicConfig> config);

  // ---- changed_settings.cc: settings and quotas that change while the broker runs
  struct Reconfigured;
  Result<void> load_changed_settings();
  std::shared_ptr<Reconfigured> reconfigured(const SettingLayers& next, Settings settings);
  void put_in_force(Reconfigured& change);
  Result<TopicConfig> config_now(const Topic& topic) const;
  void configure(Topic& topic, TopicConfig config);

  // ---- load.cc: before run()
  Result<std::vector<std::string>> load();
  FoundTopics found_topics() const;
  bool load_record(const meta::TopicRecord& record, std::map<storage::Layout, Found>& found);
  bool finish_deletion(const meta::TopicRecord& record, const Found* found);
  void load_topic(meta::TopicRecord record, const Found* found);
  void leave_alone(const std::string& name, const std::map<storage::Layout, Found>& found);
  void reconcile(meta::TopicRecord& record, const Found& found);
  void reconcile_id(meta::TopicRecord& record, const Found& found);
  void adopt(const std::string& name, storage::Layout layout, const Found& found);
  TopicConfig config_of(const meta::TopicRecord& record, storage::Layout layout);
  std::shared_ptr<storage::PartitionLog> open_partition(const std::shared_ptr<Topic>& topic,
                                                        std::int32_t index);
  void note(std::string line) { notes.push_back(std::move(line)); }

  // ---- background.cc
  struct Sweep;
  void start_background();
  void retain_all();
  void retain_next(std::shared_ptr<Sweep> sweep);
  void expire_producers();
  void checkpoint();
  void advance_points();
  void tend();
  void finish_deletions();
  static Async<void> make_missing(std::shared_ptr<Impl> self);
  void put_in_place(Topic& topic, std::int32_t index, std::shared_ptr<storage::PartitionLog> log);
  std::vector<std::shared_ptr<Partition>> all_partitions() const;

  Broker& broker;
  fs::FileSystem& fs;
  std::unique_ptr<meta::Catalog> catalog;
  Stores stores;
  std::unique_ptr<Durability> durability;
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();
  Report report_to;
  std::vector<TopicObserver> topic_observers;
  SettingLayers layers;
  std::uint64_t settings_changes = 0;  // tells whether a topic was made under those of now
  std::map<std::string, std::map<std::string, std::string>> group_overrides;
  std::vector<std::function<void()>> setting_observers;

  std::unordered_map<std::string, std::shared_ptr<Topic>> by_name;
  std::unordered_map<Uuid, std::shared_ptr<Topic>> by_id;
  std::unordered_multimap<std::string, std::string> by_collision_key;  // -> name
  std::shared_ptr<NameLocks> names;
  std::unordered_map<const storage::Log*, std::shared_ptr<LogState>> states;

  std::vector<std::shared_ptr<LogState>> staged_logs;
  bool turn_posted = false;
  TurnHelp help;
  std::map<std::int64_t, IntervalQueue> interval_queues;  // by interval_ms
  std::unordered_set<std::shared_ptr<LogState>> retries;
  bool retry_armed = false;
  std::int64_t next_write_report_ns = INT64_MIN;
  Watermark rounds_done;  // number of the last sync round that has ended

  ProducerIds producer_ids;
  std::map<std::string, Deletion> deletions;  // marked, but not all removed yet
  std::vector<Missing> missing;
  std::vector<std::string> notes;  // of load()
  bool retaining = false, checkpointing = false, expiring = false;
  bool deleting = false, making = false, tending = false;
  bool advancing = false;          // recovery points
  std::uint64_t points_round = 0;  // the sync round that brings them; 0: not known yet
  std::int64_t next_tend_report_ns = INT64_MIN;
  bool closing = false;
};

}  // namespace polylog::broker
