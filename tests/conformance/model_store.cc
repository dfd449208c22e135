#include "model_store.h"

#include <algorithm>
#include <functional>

#include "format/kafka/records.h"

namespace polylog::conformance {
namespace {

using storage::DirtyLog;
using storage::LogChunk;
using storage::ReadLimits;
using storage::Staged;
using storage::TimedOffset;
using Frame = ModelMedium::Frame;

constexpr std::size_t output_max = 1 << 24;

class ModelLog final : public storage::Log, public std::enable_shared_from_this<ModelLog> {
 public:
  ModelLog(Shape shape_in, std::shared_ptr<ModelMedium::LogContent> content_in, bool unclean)
      : shape(shape_in), content(std::move(content_in)), unclean_(unclean) {
    epochs = EpochList(content->epochs);
    epoch_ = epochs.latest();
    content->durable = content->frames.size();
  }

  LogPosition end_of(const std::vector<Frame>& frames) const {
    return frames.empty() ? LogPosition(0) : frames.back().end;
  }
  LogPosition end() const override { return end_of(content->frames); }
  LogPosition durable_end() const override {
    return content->durable == 0 ? LogPosition(0) : content->frames[content->durable - 1].end;
  }
  LeaderEpoch epoch() const override { return epoch_; }
  bool unclean() const override { return unclean_; }

  Result<void> usable() const {
    return failed ? fail(Errc::unavailable, "a sync failed") : Result<void>();
  }

  Result<void> begin_epoch(LeaderEpoch epoch) override {
    POLYLOG_TRY(usable());
    if (epoch < epoch_) return fail(Errc::fenced, "an older epoch");
    epoch_ = epoch;
    return {};
  }

  Result<void> write_staged() override {
    POLYLOG_TRY(usable());
    for (Frame& frame : staged) {
      if (epoch_ != no_epoch) epochs.assign(epoch_, frame.start);
      content->frames.push_back(std::move(frame));
    }
    staged.clear();
    content->epochs = epochs.entries();
    return {};
  }

  Result<std::optional<DirtyLog>> dirty() override {
    POLYLOG_TRY(usable());
    if (content->durable == content->frames.size()) return std::optional<DirtyLog>();
    DirtyLog dirty;
    dirty.log = shared_from_this();
    dirty.end = end();
    dirty.ticket = content->frames.size();
    return std::optional(dirty);
  }

  void settled(const DirtyLog& done, bool synced) override {
    if (!synced) failed = true;
    if (synced) content->durable = std::max<std::size_t>(content->durable, done.ticket);
  }

  Result<void> truncate(LogPosition end) override {
    POLYLOG_TRY(usable());
    while (!content->frames.empty() && content->frames.back().end > end) {
      content->frames.pop_back();
    }
    content->durable = std::min(content->durable, content->frames.size());
    epochs.truncate_end(end);
    content->epochs = epochs.entries();
    epoch_ = epochs.latest();
    return {};
  }

  // A model's chunk is one frame: which one is told by its place.
  Result<LogChunk> read_chunk(LogPosition from, std::size_t) const override {
    for (const Frame& frame : content->frames) {
      if (frame.end > from) return LogChunk{frame.start, frame.end, frame.bytes};
    }
    return LogChunk{from, from, {}};
  }
  Result<LogPosition> append_chunk(const LogChunk& chunk) override {
    POLYLOG_TRY(usable());
    if (chunk.start < end()) return fail(Errc::invalid, "begins below the end");
    Frame frame;
    frame.partition = sole_partition;
    frame.bytes = chunk.bytes;
    frame.info = format::kafka::to_info(*format::kafka::parse_header(chunk.bytes.view()));
    frame.start = chunk.start;
    frame.end = chunk.end;
    content->frames.push_back(std::move(frame));
    return end();
  }

  const Shape shape;
  std::shared_ptr<ModelMedium::LogContent> content;
  std::vector<Frame> staged;
  EpochList epochs;
  bool failed = false;
  TopicPartition sole_partition;  // log per partition only

 private:
  LeaderEpoch epoch_ = no_epoch;
  bool unclean_;
};

class ModelPartition final : public storage::PartitionLog {
 public:
  ModelPartition(TopicPartition id, std::shared_ptr<ModelLog> log,
                 ModelMedium::PartitionContent& content)
      : id_(std::move(id)), log_(std::move(log)), content_(content) {}

  template <typename F>
  void each(const std::vector<Frame>& frames, F&& f) const {
    for (const Frame& frame : frames) {
      if (frame.partition == id_) f(frame);
    }
  }
  std::int64_t end_in(const std::vector<Frame>& frames, std::int64_t end) const {
    each(frames, [&](const Frame& frame) { end = frame.info.last.value() + 1; });
    return end;
  }
  std::int64_t written_end() const { return end_in(log_->content->frames, 0); }

  OffsetRange offsets() const override {
    return {Offset(content_.start), Offset(std::max(written_end(), content_.start))};
  }

  Result<Staged> append(Batch batch) override {
    POLYLOG_TRY(log_->usable());
    const std::int64_t base = std::max(end_in(log_->staged, written_end()), content_.start);
    Frame frame;
    frame.partition = id_;
    frame.info = batch.info;
    frame.info.first = Offset(base);
    frame.info.last = Offset(base + (batch.info.last - batch.info.first));
    std::vector<std::uint8_t> bytes = to_vector(batch.bytes.view());
    format::kafka::patch_base_offset(std::span<std::uint8_t, format::kafka::header_bytes>(
                                         bytes.data(), format::kafka::header_bytes),
                                     Offset(base));
    frame.bytes = Slice::of(std::move(bytes));
    frame.start = log_->staged.empty() ? log_->end() : log_->staged.back().end;
    if (log_->shape == Shape::log_per_partition) {
      frame.start = LogPosition(base);
      frame.end = LogPosition(frame.info.last.value() + 1);
    } else {
      frame.end = frame.start + static_cast<std::int64_t>(frame.bytes.size());
    }
    const Staged staged{{frame.info.first, frame.info.last + 1}, frame.end};
    log_->staged.push_back(std::move(frame));
    return staged;
  }

  Result<std::vector<Batch>> read(Offset from, ReadLimits limits) const override {
    const Offset end = std::min(limits.end, offsets().end);
    if (from < offsets().start || from > end) return fail(Errc::out_of_range, "no such offset");
    std::vector<Batch> batches;
    std::size_t bytes = 0, records = 0;
    bool full = false;
    each(log_->content->frames, [&](const Frame& frame) {
      if (full || frame.info.last < from) return;
      const bool first = batches.empty() && limits.first_whole;
      full = frame.info.first >= end || records >= limits.records_max ||
             (!first && bytes + frame.bytes.size() > limits.bytes_max);
      if (full) return;
      bytes += frame.bytes.size();
      records += static_cast<std::size_t>(frame.info.records);
      batches.push_back({BatchFormat::kafka, frame.info, frame.bytes});
    });
    return batches;
  }

  std::optional<TimedOffset> first_record(const std::function<bool(const Record&)>& wanted) const {
    std::optional<TimedOffset> found;
    each(log_->content->frames, [&](const Frame& frame) {
      if (found) return;
      POLYLOG_ASSERT(
          format::kafka::for_each_record(frame.bytes.view(), output_max, [&](const Record& record) {
            if (record.offset >= offsets().start && wanted(record)) {
              found = TimedOffset{record.timestamp, record.offset, frame.info.epoch};
            }
            return !found;
          }));
    });
    return found;
  }
  Result<std::optional<TimedOffset>> offset_for_time(Timestamp at) const override {
    return first_record([at](const Record& record) { return record.timestamp >= at; });
  }
  Result<std::optional<TimedOffset>> offset_of_max_timestamp() const override {
    Timestamp largest = no_timestamp;
    first_record([&](const Record& record) {
      largest = std::max(largest, record.timestamp);
      return false;
    });
    return first_record([&](const Record& record) {
      return largest != no_timestamp && record.timestamp == largest;
    });
  }

  Result<void> advance_start(Offset start) override {
    POLYLOG_TRY(log_->usable());
    if (start > offsets().end) return fail(Errc::out_of_range, "beyond the end");
    content_.start = std::max(content_.start, start.value());
    return {};
  }

  Offset offset_at(LogPosition position) const override {
    Offset end(0);
    if (log_->shape == Shape::log_per_partition) return Offset(position.value());
    each(log_->content->frames, [&](const Frame& frame) {
      if (frame.end <= position) end = frame.info.last + 1;
    });
    return end;
  }
  Offset first_unstable() const override {
    return producer_state().first_open().value_or(offsets().end);
  }
  EpochEnd end_of_epoch(LeaderEpoch epoch) const override {
    EpochEnd end = log_->epochs.end_of(epoch, log_->end());
    if (end.end >= LogPosition(0)) end.end = LogPosition(offset_at(end.end).value());
    return end;
  }
  LeaderEpoch first_epoch() const override {
    LeaderEpoch epoch = no_epoch;
    each(log_->content->frames, [&](const Frame& frame) {
      if (epoch == no_epoch && frame.info.last.value() >= content_.start) {
        epoch = log_->epochs.at(frame.start);
      }
    });
    return epoch;
  }

  ProducerState producer_state() const {
    ProducerState state;
    const auto note = [&](const Frame& frame) {
      if (frame.info.max_timestamp < expired_) return;
      state.update(frame.info, frame.end);
    };
    each(log_->content->frames, note);
    each(log_->staged, note);
    return state;
  }
  ProducerState::Check check_producer(const BatchInfo& batch) const override {
    return producer_state().check(batch);
  }
  void expire_producers(Timestamp before) override { expired_ = before; }
  std::uint64_t size_bytes() const override {
    std::uint64_t bytes = 0;
    each(log_->content->frames, [&](const Frame& frame) { bytes += frame.bytes.size(); });
    return bytes;
  }
  void configure(const storage::LogConfig&) override {}
  std::shared_ptr<storage::Log> log() const override { return log_; }

 private:
  const TopicPartition id_;
  const std::shared_ptr<ModelLog> log_;
  ModelMedium::PartitionContent& content_;
  Timestamp expired_ = no_timestamp;
};

class ModelStore final : public storage::Store {
 public:
  ModelStore(Shape shape, std::shared_ptr<ModelMedium> medium)
      : shape_(shape), medium_(std::move(medium)), unclean_(!medium_->clean) {
    medium_->clean = false;
    for (auto& [id, content] : medium_->partitions) add(id, content);
  }

  const storage::Traits& traits() const override {
    static constexpr storage::Traits separate{BatchFormat::kafka, false, false, false};
    static constexpr storage::Traits shared{BatchFormat::kafka, true, false, false};
    return shape_ == Shape::shared_log ? shared : separate;
  }

  Result<std::shared_ptr<storage::PartitionLog>> create(const TopicPartition& id, const Uuid& topic,
                                                        const storage::LogConfig&) override {
    if (partitions_.contains(id)) return fail(Errc::exists, id.topic);
    ModelMedium::PartitionContent content;
    content.topic = topic;
    content.log = shape_ == Shape::shared_log
                      ? "shared"
                      : id.topic + "-" + std::to_string(id.partition) + topic.to_string();
    return add(id, medium_->partitions[id] = content);
  }

  std::shared_ptr<storage::PartitionLog> find(const TopicPartition& id) const override {
    const auto found = partitions_.find(id);
    return found == partitions_.end() ? nullptr : found->second;
  }
  std::vector<TopicPartition> partitions() const override {
    std::vector<TopicPartition> all;
    for (const auto& [id, partition] : partitions_) all.push_back(id);
    return all;
  }
  std::optional<Uuid> topic_id(const TopicPartition& id) const override {
    const auto found = medium_->partitions.find(id);
    if (found == medium_->partitions.end()) return std::nullopt;
    return found->second.topic;
  }
  Result<void> remove(const TopicPartition& id) override {
    if (!partitions_.contains(id)) return fail(Errc::not_found, id.topic);
    partitions_.erase(id);
    // In a shared log the records stay between those of others, but nobody finds them any more.
    auto& log = *medium_->logs[medium_->partitions[id].log];
    for (ModelMedium::Frame& frame : log.frames) {
      if (frame.partition == id) frame.partition = {"removed", -1};
    }
    medium_->partitions.erase(id);
    return {};
  }
  Result<storage::Retained> retain(const TopicPartition&, Offset, Timestamp) override {
    return storage::Retained();
  }
  Result<void> checkpoint() override { return {}; }
  Result<void> close() override {
    medium_->clean = true;
    return {};
  }

 private:
  std::shared_ptr<storage::PartitionLog> add(const TopicPartition& id,
                                             ModelMedium::PartitionContent& content) {
    auto& log = logs_[content.log];
    if (log == nullptr) {
      auto& frames = medium_->logs[content.log];
      if (frames == nullptr) frames = std::make_shared<ModelMedium::LogContent>();
      log = std::make_shared<ModelLog>(shape_, frames, unclean_);
      log->sole_partition = id;
    }
    return partitions_[id] = std::make_shared<ModelPartition>(id, log, content);
  }

  const Shape shape_;
  const std::shared_ptr<ModelMedium> medium_;
  const bool unclean_;
  std::map<std::string, std::shared_ptr<ModelLog>> logs_;
  std::map<TopicPartition, std::shared_ptr<storage::PartitionLog>> partitions_;
};

}  // namespace

void ModelMedium::lose_unsynced() {
  for (auto& [name, log] : logs) log->frames.resize(log->durable);
}

std::unique_ptr<storage::Store> open_model(Shape shape, std::shared_ptr<ModelMedium> medium) {
  return std::make_unique<ModelStore>(shape, std::move(medium));
}

}  // namespace polylog::conformance
