#include "convert/convert.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "broker/broker_impl.h"
#include "convert/copy.h"
#include "convert/marker.h"
#include "convert/plan.h"
#include "convert/target.h"
#include "convert/verify.h"
#include "format/rocketmq/config_json.h"
#include "format/rocketmq/names.h"

namespace polylog::convert {
namespace {

using storage::Layout;
namespace rocketmq = format::rocketmq;

// Each opened directory has its own.
constexpr const char* source_scratch = "conversion.scratch";
constexpr const char* result_scratch = "conversion.result-scratch";
constexpr std::size_t comparisons_max = 4;  // at once; each holds some 30 MiB

std::string normal_path(const std::string& path) {
  std::error_code error;
  const auto canonical = std::filesystem::weakly_canonical(path, error);
  std::string text = error ? path : canonical.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool lies_in(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

Error at_partition(const Topic& topic, std::int32_t partition, const Error& error) {
  return {error.code, "topic " + topic.record.name + ", partition " + std::to_string(partition) +
                          ", " + error.context};
}

// The catalogue's row of the topic that RocketMQ's committed offsets go to, with Kafka's settings.
meta::TopicRecord offsets_record() {
  meta::TopicRecord record;
  record.name = offsets_topic;
  record.partitions = offsets_partitions;
  record.layout = broker::layout_name(Layout::kafka);
  record.configs = {{"cleanup.policy", "compact"},
                    {"compression.type", "producer"},
                    {"segment.bytes", "104857600"}};
  return record;
}

class Conversion {
 public:
  Conversion(fs::FileSystem& fs, const Clock& clock, const Engines& engines, const Options& options)
      : fs_(fs),
        clock_(clock),
        engines_(engines),
        options_(options),
        source_path_(normal_path(options.source)),
        target_path_(normal_path(options.target)) {}

  Result<Summary> run() {
    if (lies_in(source_path_, target_path_) || lies_in(target_path_, source_path_)) {
      return fail(Errc::invalid, "source and target must lie beside each other, not in each other");
    }
    if (!options_.verify_only) POLYLOG_TRY(check_target());
    auto finished = check_finished(fs_, source_path_);
    if (!finished) return fail(finished.error());
    POLYLOG_ASSIGN(source, open_directory(source_path_, source_scratch,
                                          {options_.topic_names, options_.kafka_metadata}));
    source_ = std::move(source);
    for (const std::string& line : source_->notes()) options_.note(line);
    POLYLOG_TRY(check_excluded());
    POLYLOG_ASSIGN(plan, plan_topics(*source_, options_));
    plan_ = std::move(plan);
    count_up();
    if (!options_.verify_only) POLYLOG_TRY(copy());
    POLYLOG_TRY(verify());
    if (!options_.verify_only) POLYLOG_TRY(finish());
    return summary_;
  }

 private:
  Result<std::unique_ptr<DataDirectory>> open_directory(const std::string& path,
                                                        std::string_view scratch_name,
                                                        const DataDirectory::Hints& hints) {
    std::string scratch = fs::join(target_path_, scratch_name);
    if (options_.verify_only) {
      scratch = std::filesystem::temp_directory_path() / ("polylog-" + Uuid::random().to_string());
    }
    return DataDirectory::open(fs_, clock_, engines_, path, scratch, hints);
  }

  Marker marker() const {
    Marker made{source_path_, std::string(broker::layout_name(options_.layout))};
    for (const auto& [id, name] : options_.topic_names) {
      made.source += " --topic " + id + "=" + name;
    }
    if (!options_.kafka_metadata.empty()) {
      made.source += " --kafka-metadata " + options_.kafka_metadata;
    }
    return made;
  }

  // Nothing is there, or what an earlier run of the same conversion left.
  Result<void> check_target() {
    const auto info = fs_.info(target_path_);
    if (!info) {
      return info.error().code == Errc::not_found ? Result<void>() : fail(info.error());
    }
    if (!info->directory) return fail(Errc::invalid, target_path_ + " is no directory");
    POLYLOG_ASSIGN(found, read_marker(fs_, target_path_));
    if (found) {
      summary_.resumed = true;
      if (*found == marker()) return {};
      return fail(Errc::invalid, target_path_ + " is an unfinished conversion of " + found->source +
                                     " to " + found->layout + ", not of this: remove it first");
    }
    POLYLOG_ASSIGN(names, fs_.list(target_path_));
    for (const std::string& name : names) {
      // What a run leaves that was killed before it had noted what it does.
      if (name == ".lock" || name == source_scratch || name == std::string(marker_file) + ".tmp") {
        continue;
      }
      return fail(Errc::exists, target_path_ + " is not empty: a conversion makes a new directory");
    }
    return {};
  }

  Result<void> check_excluded() const {
    for (const std::string& name : options_.exclude) {
      const auto& topics = source_->topics();
      const bool known = std::any_of(topics.begin(), topics.end(),
                                     [&](const Topic& topic) { return topic.record.name == name; });
      if (!known) return fail(Errc::invalid, "--exclude " + name + ": there is no such topic");
    }
    return {};
  }

  void count_up() {
    for (const PlannedTopic& topic : plan_) {
      for (std::int32_t i = 0; i < topic.to.record.partitions; ++i) {
        const auto log = source_->find(topic.from, i);
        if (log != nullptr) total_ += offsets_in(log->offsets());
        ++progress_.partitions_total;
      }
    }
    progress_.offsets_total = total_;
    summary_.topics = plan_.size();
    summary_.partitions = progress_.partitions_total;
  }

  static std::uint64_t offsets_in(OffsetRange range) {
    return static_cast<std::uint64_t>(range.end - range.start);
  }

  Result<void> step(std::uint64_t offsets_done, std::uint64_t bytes) {
    progress_.offsets_done = offsets_done;
    progress_.bytes_done += bytes;
    options_.progress(progress_);
    if (!options_.stop()) return {};
    return fail(Errc::timed_out, "stopped; the same command goes on with it");
  }

  // Calls f(topic, partition, source log or null, offsets before this partition) for all.
  template <typename F>
  Result<void> for_each_partition(Progress::Phase phase, F&& f) {
    progress_.phase = phase;
    progress_.partitions_done = progress_.offsets_done = progress_.bytes_done = 0;
    std::uint64_t before = 0;
    for (PlannedTopic& topic : plan_) {
      for (std::int32_t i = 0; i < topic.to.record.partitions; ++i) {
        const auto log = source_->find(topic.from, i);
        const OffsetRange range = log == nullptr ? OffsetRange() : log->offsets();
        Result<void> done = f(topic, i, range, before);
        if (!done) return fail(at_partition(topic.to, i, done.error()));
        before += offsets_in(range);
        ++progress_.partitions_done;
      }
    }
    return {};
  }

  // ------------------------------------------------------------------------------------- copying

  Result<void> copy() {
    POLYLOG_TRY(open_target());
    Result<void> done = copy_all();
    // A clean stop even now: the next run has nothing to recover.
    Result<void> closed = target_->close();
    target_.reset();
    return done ? closed : done;
  }

  Result<void> open_target() {
    Target::Setup setup;
    setup.path = target_path_;
    setup.layout = options_.layout;
    setup.cluster_id = source_->cluster_id();
    setup.marker = marker();
    setup.settings = &options_.settings;
    if (options_.layout == Layout::rocketmq) {
      for (const std::string_view name :
           {rocketmq::topics_file, rocketmq::subscription_groups_file,
            rocketmq::consumer_offsets_file, rocketmq::delay_offsets_file}) {
        POLYLOG_ASSIGN(text, source_->rocketmq_config(name));
        if (!text.empty()) setup.rocketmq_configs[std::string(name)] = std::move(text);
      }
    }
    POLYLOG_ASSIGN(target, Target::open(fs_, clock_, engines_, setup));
    target_ = std::move(target);
    return {};
  }

  Result<void> copy_all() {
    POLYLOG_TRY(write_catalog());
    POLYLOG_TRY(for_each_partition(
        Progress::Phase::copying, [&](const PlannedTopic& topic, std::int32_t partition,
                                      OffsetRange range, std::uint64_t before) {
          return copy_partition(*source_, *target_, topic, partition, options_.settings,
                                [&](Offset next, std::uint64_t bytes) {
                                  const auto here = next - range.start;
                                  return step(before + static_cast<std::uint64_t>(here), bytes);
                                });
        }));
    summary_.bytes_copied = progress_.bytes_done;
    if (source_->group_offsets().empty()) return {};
    POLYLOG_ASSIGN(config, broker::resolve_topic_config(offsets_record().configs,
                                                        options_.settings.values(), Layout::kafka));
    return write_group_offsets(source_->group_offsets(), *target_, offsets_id_, config.log,
                               clock_.now());
  }

  // Brings the row up to what is wanted; a topic without an id gets one, once.
  Result<void> write_row(meta::TopicRecord& record) {
    POLYLOG_ASSIGN(rows, target_->catalog().topics());
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& candidate) {
      return candidate.name == record.name;
    });
    if (record.id.is_zero()) record.id = row == rows.end() ? Uuid::random() : row->id;
    if (row != rows.end() && *row == record) return {};
    if (row != rows.end()) POLYLOG_TRY(target_->catalog().delete_topic(record.name));
    return target_->catalog().create_topic(record);
  }

  Result<void> write_catalog() {
    for (PlannedTopic& topic : plan_) {
      if (topic.to.rocketmq_internal) continue;
      POLYLOG_TRY(write_row(topic.to.record));
    }
    POLYLOG_TRY(write_settings());
    if (source_->group_offsets().empty()) return {};
    meta::TopicRecord record = offsets_record();
    POLYLOG_TRY(write_row(record));
    offsets_id_ = record.id;
    return {};
  }

  // What was set while the source ran: of brokers, of groups, and quotas.
  Result<void> write_settings() {
    for (const auto& [scope, configs] : source_->scoped_configs()) {
      POLYLOG_TRY(target_->catalog().set_scoped_configs(scope, configs));
    }
    std::vector<meta::QuotaChange> changes;
    for (const auto& [entity, limits] : source_->quotas()) {
      for (const auto& [key, limit] : limits) changes.push_back({entity, key, limit});
    }
    return changes.empty() ? Result<void>() : target_->catalog().change_quotas(changes);
  }

  // ----------------------------------------------------------------------------------- comparing

  Result<void> verify() {
    POLYLOG_ASSIGN(result, open_directory(target_path_, result_scratch, {}));
    if (result->kind() != DataDirectory::Kind::polylog) {
      return fail(Errc::invalid, target_path_ + " is no data directory of polylog");
    }
    std::map<std::string, const Topic*> topics;
    for (const Topic& topic : result->topics()) topics[topic.record.name] = &topic;
    for (PlannedTopic& topic : plan_) {
      const auto found = topics.find(topic.to.record.name);
      POLYLOG_TRY(check_topic(topic, found == topics.end() ? nullptr : found->second));
    }
    POLYLOG_TRY(verify_partitions(*result));
    const bool same_settings = result->scoped_configs() == source_->scoped_configs() &&
                               result->quotas() == source_->quotas();
    if (!same_settings) {
      return fail(Errc::invalid, "the settings of brokers and groups, or the quotas, differ");
    }
    return verify_group_offsets(*result);
  }

  Result<void> check_topic(PlannedTopic& wanted, const Topic* found) const {
    const meta::TopicRecord& record = wanted.to.record;
    if (found == nullptr && wanted.to.rocketmq_internal) {
      return fail(Errc::invalid, "topic " + record.name + " is missing in the result");
    }
    if (wanted.to.rocketmq_internal) return {};
    const bool same = found != nullptr && found->layout == wanted.to.layout &&
                      found->record.partitions == record.partitions &&
                      found->record.configs == record.configs &&
                      (record.id.is_zero() || found->record.id == record.id);
    if (same) return {};
    return fail(Errc::invalid, "topic " + record.name + " is missing in the result, or its id, " +
                                   "partitions or settings differ");
  }

  struct Comparison {
    const PlannedTopic* topic = nullptr;
    std::int32_t partition = 0;
    std::uint64_t offsets_done = 0;
  };

  // On several threads: reading is little of it, changing the records' form and comparing is much.
  Result<void> verify_partitions(const DataDirectory& result) {
    progress_.phase = Progress::Phase::comparing;
    progress_.partitions_done = progress_.offsets_done = progress_.bytes_done = 0;
    summary_.records = summary_.offsets_without_record = 0;
    std::vector<Comparison> all;
    for (const PlannedTopic& topic : plan_) {
      for (std::int32_t i = 0; i < topic.to.record.partitions; ++i) all.push_back({&topic, i});
    }
    std::atomic<std::size_t> next{0};
    Result<void> outcome;  // the first that failed; guarded, as all that a step touches
    std::mutex mutex;
    const auto work = [&] {
      for (std::size_t i = next++; i < all.size(); i = next++) {
        Result<void> done = verify_partition(result, all[i], mutex, outcome);
        if (done) continue;
        const std::lock_guard lock(mutex);
        next = all.size();
        if (!outcome) return;
        outcome = fail(at_partition(all[i].topic->to, all[i].partition, done.error()));
      }
    };
    const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1U);
    std::vector<std::thread> helpers;
    for (std::size_t i = 1; i < std::min({cores, comparisons_max, all.size()}); ++i) {
      helpers.emplace_back(work);
    }
    work();
    for (std::thread& helper : helpers) helper.join();
    return outcome;
  }

  Result<void> verify_partition(const DataDirectory& result, Comparison& comparison,
                                std::mutex& mutex, const Result<void>& outcome) {
    const PlannedTopic& topic = *comparison.topic;
    const auto from = source_->find(topic.from, comparison.partition);
    const auto to = result.find(topic.to, comparison.partition);
    const OffsetRange range = from == nullptr ? OffsetRange() : from->offsets();
    const auto reached = [&](Offset at) -> Result<void> {
      const std::lock_guard lock(mutex);
      if (!outcome) return fail(Errc::timed_out, "another partition failed");
      const auto here = static_cast<std::uint64_t>(at - range.start);
      const std::uint64_t before = std::exchange(comparison.offsets_done, here);
      return step(progress_.offsets_done + here - before, 0);
    };
    if (to == nullptr) return fail(Errc::invalid, "it is missing in the result");
    if (from == nullptr && !to->offsets().empty()) {
      return fail(Errc::invalid, "the source has no records in it");
    }
    Compared compared;
    if (from != nullptr) {
      const Surroundings around = surroundings_of(topic, comparison.partition, options_.settings);
      POLYLOG_ASSIGN(found, compare(*from, format_of(topic.from.layout), *to,
                                    format_of(topic.to.layout), around, reached));
      compared = found;
    }
    POLYLOG_TRY(reached(range.end));
    const std::lock_guard lock(mutex);
    ++progress_.partitions_done;
    summary_.records += compared.records;
    const std::uint64_t offsets = offsets_in(range);
    summary_.offsets_without_record += offsets - std::min(offsets, compared.records);
    largest_producer_ = std::max(largest_producer_, compared.largest_producer);
    return {};
  }

  Result<void> verify_group_offsets(const DataDirectory& result) {
    const std::vector<GroupOffset>& wanted = source_->group_offsets();
    if (wanted.empty()) return {};
    POLYLOG_ASSIGN(found, read_group_offsets(result));
    if (found != wanted) {
      return fail(Errc::invalid, "the committed offsets of RocketMQ's groups differ");
    }
    summary_.group_offsets = wanted.size();
    return {};
  }

  // ----------------------------------------------------------------------------------- finishing

  // Ids that producers have must not be given to others.
  Result<void> reserve_producer_ids() {
    const std::int64_t end = std::max(source_->producer_ids_end(), largest_producer_.value() + 1);
    POLYLOG_ASSIGN(catalog, meta::open_embedded_catalog(fs_, fs::join(target_path_, "meta"), {}));
    POLYLOG_ASSIGN(block, catalog->reserve_producer_ids(1));
    const std::int64_t missing = end - block.first - 1;
    if (missing <= 0) return {};
    return catalog->reserve_producer_ids(missing).map([](const auto&) {});
  }

  Result<void> finish() {
    POLYLOG_TRY(reserve_producer_ids());
    source_.reset();
    return remove_marker(fs_, target_path_);
  }

  fs::FileSystem& fs_;
  const Clock& clock_;
  const Engines& engines_;
  const Options& options_;
  const std::string source_path_, target_path_;
  std::unique_ptr<DataDirectory> source_;
  std::vector<PlannedTopic> plan_;
  std::unique_ptr<Target> target_;
  Uuid offsets_id_;
  std::uint64_t total_ = 0;
  Progress progress_;
  ProducerId largest_producer_ = no_producer;
  Summary summary_;
};

}  // namespace

Result<Summary> convert(fs::FileSystem& fs, const Clock& clock, const Engines& engines,
                        const Options& options) {
  Options complete = options;
  if (!complete.progress) complete.progress = [](const Progress&) {};
  if (!complete.note) complete.note = [](const std::string&) {};
  if (!complete.stop) complete.stop = [] { return false; };
  Conversion conversion(fs, clock, engines, complete);
  return conversion.run();
}

}  // namespace polylog::convert
