#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "damaged_unit.h"
#include "format/kafka/records.h"
#include "format/transcode/transcode.h"
#include "fs/sim_file_system.h"
#include "storage/filelog/memory_index.h"
#include "storage/kafka/store.h"
#include "storage/rocketmq/store.h"
#include "storage/segment/store.h"

// One flipped bit in one file of a store, in each layout, at many places: no wrong byte is served,
// no offset that was given out is given again, and nothing is lost but the record or batch that the
// bit is in. Damage is an error or a gap of what stood there, never a changed record, offset, epoch
// or time.
namespace polylog::crash {
namespace {

using storage::LogConfig;
using storage::Opened;
using storage::PartitionLog;
using storage::ReadLimits;
using storage::Store;

constexpr std::size_t block_bytes = std::size_t{64} * 1024;
constexpr std::int64_t first_time = 1'700'000'000'000;
constexpr int epochs = 4;
constexpr std::int64_t producers[] = {71, 72};

// ------------------------------------------------------------------------------------- layouts

struct Layout {
  std::string name;
  storage::StoreConfig config;
  std::function<Result<Opened>(fs::FileSystem&, const Clock&, const storage::StoreConfig&)> open;
  std::function<Result<Batch>(const Batch& kafka, const TopicPartition& id)> to_native;
  std::function<Result<std::vector<Batch>>(std::vector<Batch> native)> to_kafka;
  std::string data_part;  // of the path of a file of records
  bool records_alone;     // each has a checksum over all of itself: no other one suffers with it
  std::function<std::optional<DamagedUnit>(ByteView, const std::string&, std::uint64_t)> unit_of;
};

storage::StoreConfig config_for(const std::string& name) {
  storage::StoreConfig config;
  config.directory = "/data/" + name;
  config.sidecar_directory = "/data/sidecar";
  config.cluster_id = *Uuid::parse("AAAAAAAAAAAAAAAAAAAAAg");
  return config;
}

Layout kafka_layout() {
  Layout layout{"kafka", config_for("kafka"), &storage::kafka::KafkaStore::open, {}, {}, ".log",
                false,   &unit_of_kafka_log};
  layout.to_native = [](const Batch& batch, const TopicPartition&) { return Result<Batch>(batch); };
  layout.to_kafka = [](std::vector<Batch> native) {
    return Result<std::vector<Batch>>(std::move(native));
  };
  return layout;
}

Layout rocketmq_layout() {
  Layout layout{"rocketmq",
                config_for("rocketmq"),
                &storage::rocketmq::RocketmqStore::open,
                {},
                {},
                "/commitlog/",
                true,
                &unit_of_commit_log};
  layout.config.shared.commit_log_file_bytes = 160 * 1024;
  layout.config.shared.queue_file_bytes = 2000;
  layout.config.shared.index_slots = 16;
  layout.config.shared.index_entries = 100;
  layout.to_native = [](const Batch& kafka, const TopicPartition& id) {
    format::RocketmqTarget target;
    target.topic = *storage::rocketmq::stored_name(id.topic);
    target.queue_id = id.partition;
    return format::kafka_to_rocketmq(kafka, target);
  };
  layout.to_kafka = [](const std::vector<Batch>& native) {
    return format::rocketmq_to_kafka(native, {});
  };
  return layout;
}

Layout segment_layout() {
  Layout layout{"segment", config_for("segment"), {}, {}, {}, ".msg", false, &unit_of_segment};
  layout.open = [](fs::FileSystem& fs, const Clock& clock, const storage::StoreConfig& config) {
    return storage::segment::SegmentStore::open(
        fs, clock, config,
        [&fs](const std::string& directory) { return storage::open_memory_index(fs, directory); });
  };
  layout.to_native = [](const Batch& kafka, const TopicPartition&) {
    return format::kafka_to_segment(kafka, {});
  };
  layout.to_kafka = [](const std::vector<Batch>& native) {
    return format::segment_to_kafka(native, {});
  };
  return layout;
}

// --------------------------------------------------------------------------------------- model

// What a reader sees of one record.
struct Seen {
  std::string text;
  std::int64_t time = 0;
  LeaderEpoch epoch = no_epoch;
  bool operator==(const Seen& other) const { return text == other.text && time == other.time; }
};
using Records = std::map<std::int64_t, Seen>;

struct Lookup {
  std::int64_t at = 0;  // what was asked; the largest one of all for -1
  std::optional<storage::TimedOffset> answer;
};

struct Partition {
  Records records;
  OffsetRange offsets;
  Uuid topic;
  std::vector<Lookup> lookups;
  std::map<std::int64_t, EpochEnd> epoch_ends;
  LeaderEpoch first_epoch = no_epoch;
  std::vector<std::pair<BatchInfo, ProducerState::Verdict>> verdicts;
};
using Model = std::map<TopicPartition, Partition>;

std::string text_of(const Record& record, const format::kafka::BatchHeader& header) {
  const auto optional = [](const std::optional<ByteView>& bytes) {
    return bytes ? "=" + std::string(as_text(*bytes)) : std::string("-");
  };
  std::string text = std::to_string(record.timestamp.value()) + optional(record.key) + "|" +
                     optional(record.value);
  for (const Header& item : record.headers) {
    text += "|" + std::string(item.name) + optional(item.value);
  }
  text += "|" + std::to_string(header.producer_id.value()) + "," +
          std::to_string(header.producer_epoch);
  if (header.producer_id != no_producer) {
    const auto delta = record.offset - header.base_offset;
    text += "," + std::to_string(header.base_sequence + delta);
  }
  return text;
}

// The records of one answer to a read, at or beyond `from`.
Result<void> add_records(const Layout& layout, const Batch& batch, std::int64_t from,
                         Records& records) {
  POLYLOG_ASSIGN(kafka, layout.to_kafka({batch}));
  const bool native = batch.format == BatchFormat::kafka;
  for (const Batch& each : kafka) {
    POLYLOG_TRY(format::kafka::for_each_batch(
        each.bytes.view(),
        [&](const format::kafka::BatchHeader& header, ByteView whole) -> Result<void> {
          if (!format::kafka::crc_matches(whole)) return fail(Errc::corrupt, "served a bad CRC");
          return format::kafka::for_each_record(whole, 1 << 20, [&](const Record& record) {
            if (record.offset.value() < from) return true;
            const LeaderEpoch epoch = native ? header.leader_epoch : batch.info.epoch;
            records[record.offset.value()] = {text_of(record, header), record.timestamp.value(),
                                              epoch};
            return true;
          });
        }));
  }
  return {};
}

struct ReadOut {
  Records records;
  std::string wrong;
};

// Everything, read as a consumer does that goes on behind what does not read.
ReadOut read_all(const Layout& layout, const PartitionLog& log, std::size_t bytes_max) {
  ReadOut out;
  const OffsetRange range = log.offsets();
  ReadLimits limits;
  limits.bytes_max = bytes_max;
  limits.end = range.end;
  limits.first_whole = true;
  for (std::int64_t at = range.start.value(); at < range.end.value();) {
    const auto batches = log.read(Offset(at), limits);
    if (!batches) {
      if (batches.error().code != Errc::corrupt) out.wrong = batches.error().to_string();
      ++at;
      continue;
    }
    if (batches->empty()) break;
    for (const Batch& batch : *batches) {
      if (auto added = add_records(layout, batch, at, out.records); !added) {
        out.wrong = "at " + std::to_string(at) + ": " + added.error().to_string();
      }
    }
    at = std::max(at + 1, batches->back().info.last.value() + 1);
  }
  return out;
}

// ------------------------------------------------------------------------------------ building

class Builder {
 public:
  Builder(const Layout& layout, fs::SimFileSystem& disk, const Clock& clock)
      : layout_(layout), disk_(disk) {
    auto opened = layout.open(disk, clock, layout.config);
    EXPECT_TRUE(opened) << opened.error().to_string();
    store_ = std::move(opened->store);
  }

  std::unique_ptr<Store> run() {
    for (const auto& [id, segment_bytes] :
         {std::pair{TopicPartition{"a", 0}, 5000}, std::pair{TopicPartition{"a", 1}, 100'000},
          std::pair{TopicPartition{"b", 0}, 1 << 20}}) {
      Uuid topic;
      topic.bytes[3] = static_cast<std::uint8_t>(id.topic[0]);
      LogConfig config;
      config.segment_bytes = segment_bytes;
      config.index_interval_bytes = 1000;
      config.retention_ms = -1;
      auto made = store_->create(id, topic, config);
      EXPECT_TRUE(made) << made.error().to_string();
      logs_[id] = *made;
    }
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (const auto& [id, log] : logs_) EXPECT_TRUE(begin(*log, LeaderEpoch(epoch)));
      for (int i = 0; i < 40; ++i) {
        append({"a", 0}, 40);
        append({"a", 1}, 1800);
        append({"b", 0}, 300);
        if (i % 8 == 7) sync();
      }
      sync();
      EXPECT_TRUE(store_->tend(Timestamp(first_time)));
      if (epoch != epochs - 1) {
        EXPECT_TRUE(store_->checkpoint());
      }
      sync();
    }
    EXPECT_TRUE(logs_[TopicPartition({"b", 0})]->advance_start(Offset(7)));
    EXPECT_TRUE(logs_[TopicPartition({"a", 0})]->advance_start(Offset(25)));
    sync();
    return std::move(store_);
  }

 private:
  static Result<void> begin(PartitionLog& log, LeaderEpoch epoch) {
    return log.log()->epoch() >= epoch ? Result<void>() : log.log()->begin_epoch(epoch);
  }

  void append(const TopicPartition& id, std::size_t bytes) {
    format::kafka::BatchOptions options;
    const std::size_t which = random_() % 3;
    const auto count = static_cast<std::int32_t>(1 + random_() % 3);
    if (which < 2) {
      options.producer_id = ProducerId(producers[which]);
      options.producer_epoch = 0;
      options.base_sequence =
          std::exchange(sequences_[{id, which}], sequences_[{id, which}] + count);
    }
    format::kafka::BatchBuilder builder(options);
    for (std::int32_t i = 0; i < count; ++i) {
      const std::string key = "key-" + std::to_string(random_() % 9);
      const std::string value =
          "value-" + std::to_string(++counter_) + std::string(random_() % bytes, 'v');
      Record record;
      time_ += static_cast<std::int64_t>(random_() % 40);
      record.timestamp = Timestamp(time_ - static_cast<std::int64_t>(random_() % 60));
      if (random_() % 3 != 0) record.key = as_bytes(key);
      record.value = as_bytes(value);
      if (random_() % 2 == 0) record.headers.push_back({"name", as_bytes("some header")});
      EXPECT_TRUE(builder.add(record));
    }
    Batch batch;
    batch.bytes = Slice::of(*builder.finish());
    batch.info = format::kafka::to_info(*format::kafka::parse_header(batch.bytes.view()));
    auto native = layout_.to_native(batch, id);
    ASSERT_TRUE(native) << native.error().to_string();
    const auto staged = logs_[id]->append(std::move(*native));
    ASSERT_TRUE(staged) << staged.error().to_string();
    ASSERT_TRUE(logs_[id]->log()->write_staged());
  }

  void sync() {
    for (const auto& [id, log] : logs_) {
      const auto dirty = log->log()->dirty();
      ASSERT_TRUE(dirty) << dirty.error().to_string();
      if (!*dirty) continue;
      for (const fs::FilePtr& file : (*dirty)->files) ASSERT_TRUE(file->sync());
      for (const std::string& path : (*dirty)->directories) ASSERT_TRUE(disk_.sync_directory(path));
      log->log()->settled(**dirty, true);
      log->log()->write_noted();
    }
  }

  const Layout& layout_;
  fs::SimFileSystem& disk_;
  std::mt19937_64 random_{20};
  std::unique_ptr<Store> store_;
  std::map<TopicPartition, std::shared_ptr<PartitionLog>> logs_;
  std::map<std::pair<TopicPartition, std::size_t>, std::int32_t> sequences_;
  std::int64_t time_ = first_time;
  int counter_ = 0;
};

Result<std::optional<storage::TimedOffset>> look_up(const PartitionLog& log, std::int64_t at) {
  return at < 0 ? log.offset_of_max_timestamp() : log.offset_for_time(Timestamp(at));
}

BatchInfo next_of(std::int64_t producer, std::int32_t sequence) {
  BatchInfo info;
  info.records = 1;
  info.producer = {ProducerId(producer), 0, sequence, sequence};
  return info;
}

Model model_of(const Layout& layout, Store& store) {
  Model model;
  for (const TopicPartition& id : store.partitions()) {
    const auto log = store.find(id);
    Partition& partition = model[id];
    ReadOut all = read_all(layout, *log, 1 << 20);
    EXPECT_EQ(all.wrong, "");
    partition.records = std::move(all.records);
    partition.offsets = log->offsets();
    partition.topic = *store.topic_id(id);
    EXPECT_EQ(static_cast<std::int64_t>(partition.records.size()),
              partition.offsets.end - partition.offsets.start);
    std::vector<std::int64_t> times{-1, 0, INT64_MAX};
    const auto step = std::max<std::size_t>(1, partition.records.size() / 12);
    std::size_t count = 0;
    for (const auto& [offset, record] : partition.records) {
      if (count++ % step == 0) times.push_back(record.time + static_cast<std::int64_t>(count % 2));
    }
    for (const std::int64_t at : times) {
      const auto answer = look_up(*log, at);
      EXPECT_TRUE(answer) << answer.error().to_string();
      partition.lookups.push_back({at, *answer});
    }
    for (int epoch = 0; epoch <= epochs; ++epoch) {
      partition.epoch_ends[epoch] = log->end_of_epoch(LeaderEpoch(epoch));
    }
    partition.first_epoch = log->first_epoch();
    for (const std::int64_t producer : producers) {
      for (std::int32_t sequence = 0; sequence < 400; ++sequence) {
        const BatchInfo info = next_of(producer, sequence);
        const auto verdict = log->check_producer(info).verdict;
        if (verdict == ProducerState::Verdict::out_of_order_sequence && sequence % 50 != 0)
          continue;
        partition.verdicts.emplace_back(info, verdict);
      }
    }
  }
  return model;
}

// ------------------------------------------------------------------------------------ flipping

struct Flip {
  std::string path;
  std::uint64_t position = 0;
  unsigned bit = 0;
  std::string to_string() const {
    return path + " byte " + std::to_string(position) + " bit " + std::to_string(bit);
  }
};

void list_files(const fs::FileSystem& disk, const std::string& directory,
                std::vector<std::pair<std::string, std::uint64_t>>& files) {
  const auto names = disk.list(directory);
  for (const std::string& name : *names) {
    const std::string path = fs::join(directory, name);
    const auto info = disk.info(path);
    if (info->directory) {
      list_files(disk, path, files);
    } else if (info->size > 0) {
      files.emplace_back(path, info->size);
    }
  }
}

// The last byte that is not zero, and one behind it: a file may have been given its length ahead.
std::uint64_t used_bytes(fs::FileSystem& disk, const std::string& path) {
  const auto bytes = fs::read_file(disk, path, std::size_t{16} << 20);
  const auto last = std::find_if(bytes->rbegin(), bytes->rend(), [](auto b) { return b != 0; });
  return static_cast<std::uint64_t>(bytes->rend() - last);
}

std::vector<Flip> choose_flips(fs::SimFileSystem& disk, std::size_t count) {
  std::vector<std::pair<std::string, std::uint64_t>> files;
  list_files(disk, "/data", files);
  std::vector<Flip> all;
  std::mt19937_64 random(count);
  std::vector<Flip> rest;
  for (const auto& [path, size] : files) {
    if (path.ends_with(".ballast")) continue;  // says nothing
    const std::uint64_t used = std::max<std::uint64_t>(used_bytes(disk, path), 1);
    const bool small = used <= 48;
    const std::uint64_t bits = small ? used * 8 : 40 + used / 200;
    for (std::uint64_t i = 0; i < bits; ++i) {
      const std::uint64_t bit = small ? i : random() % (used * 8);
      (small || i < 40 ? all : rest).push_back({path, bit / 8, static_cast<unsigned>(bit % 8)});
    }
    // Where the sums of whole blocks end.
    for (int i = 0; used > block_bytes && i < 40; ++i) {
      const std::uint64_t from = used / block_bytes * block_bytes;
      const std::uint64_t bit = from * 8 + random() % ((used - from) * 8);
      all.push_back({path, bit / 8, static_cast<unsigned>(bit % 8)});
    }
  }
  all.insert(all.end(), rest.begin(), rest.end());
  std::shuffle(all.begin(), all.end(), random);
  if (all.size() > count) all.resize(count);
  return all;
}

// ------------------------------------------------------------------------------------ checking

class Checker {
 public:
  enum class Then { nothing, close, kill };

  Checker(const Layout& layout, const Model& model, const Clock& clock, bool clean)
      : layout_(layout), model_(model), clock_(clock), clean_(clean) {}

  // What is wrong, or nothing.
  std::string check(fs::SimFileSystem& disk, const Flip& flip, Then then) {
    data_ = flip.path.find(layout_.data_part) != flip.path.npos;
    unit_.reset();
    if (data_) {
      const auto file = fs::read_file(disk, flip.path, std::size_t{16} << 20);
      unit_ = layout_.unit_of(*file, flip.path, flip.position);
    }
    disk.flip_bit(flip.path, flip.position, flip.bit);
    added_.clear();
    auto opened = layout_.open(disk, clock_, layout_.config);
    if (!opened) return "does not open: " + opened.error().to_string();
    std::string wrong = check_store(*opened->store, true);
    if (!wrong.empty() || then == Then::nothing) return wrong + notes_of(wrong, opened->recovery);
    // What was written behind the damage is found by the next run, too.
    if (then == Then::close) {
      if (auto closed = opened->store->close(); !closed) {
        return "does not close: " + closed.error().to_string();
      }
    }
    opened->store.reset();
    const auto after = disk.crash_state({.mode = fs::CrashChoice::Mode::kill});
    auto next = layout_.open(*after, clock_, layout_.config);
    if (!next) return "does not open again: " + next.error().to_string();
    wrong = check_store(*next->store, false);
    return (wrong.empty() ? "" : "after another start: " + wrong) + notes_of(wrong, next->recovery);
  }

  std::size_t lost = 0;

 private:
  static std::string notes_of(const std::string& wrong, const storage::Recovery& recovery) {
    std::string notes;
    for (const std::string& note : recovery.notes) {
      if (!wrong.empty()) notes += "\n    note: " + note;
    }
    return notes;
  }

  std::string check_store(Store& store, bool first) {
    for (const auto& [id, expected] : model_) {
      const auto log = store.find(id);
      if (log == nullptr) return name_of(id) + "is not there";
      if (store.topic_id(id) != expected.topic) return name_of(id) + "has another topic's id";
      const std::string wrong = check_partition(id, *log, expected);
      if (!wrong.empty()) return name_of(id) + wrong;
    }
    for (const auto& [id, expected] : model_) {
      if (!first) continue;
      const std::string wrong = check_append(id, *store.find(id));
      if (!wrong.empty()) return name_of(id) + wrong;
    }
    return "";
  }

  static std::string name_of(const TopicPartition& id) {
    return id.topic + "-" + std::to_string(id.partition) + ": ";
  }

  std::string check_partition(const TopicPartition& id, const PartitionLog& log,
                              const Partition& expected) {
    const auto added = added_.find(id);
    const OffsetRange range = log.offsets();
    const Offset end =
        added == added_.end() ? expected.offsets.end : Offset(added->second.rbegin()->first + 1);
    if (range.start != expected.offsets.start || range.end != end) {
      return "offsets are [" + std::to_string(range.start.value()) + ", " +
             std::to_string(range.end.value()) + ") and not [" +
             std::to_string(expected.offsets.start.value()) + ", " + std::to_string(end.value()) +
             ")";
    }
    Records all = expected.records;
    if (added != added_.end()) {
      for (const auto& [offset, record] : added->second) all[offset] = record;
    }
    const ReadOut read = read_all(layout_, log, 40'000);
    if (!read.wrong.empty()) return read.wrong;
    for (const auto& [offset, record] : read.records) {
      const auto known = all.find(offset);
      if (known == all.end()) return "offset " + std::to_string(offset) + " was never written";
      if (known->second != record || known->second.epoch != record.epoch) {
        return "offset " + std::to_string(offset) + " is\n  " + record.text.substr(0, 200) +
               "\nand not\n  " + known->second.text.substr(0, 200);
      }
    }
    lost_.clear();
    for (const auto& [offset, record] : all) {
      if (read.records.contains(offset)) continue;
      lost_.insert(offset);
      const bool own = unit_ && unit_->id == id && unit_->offsets.start.value() <= offset &&
                       offset < unit_->offsets.end.value();
      if (own) continue;
      const std::string damaged = unit_ ? name_of(unit_->id) + "[" +
                                              std::to_string(unit_->offsets.start.value()) + ", " +
                                              std::to_string(unit_->offsets.end.value()) + ")"
                                        : std::string("no record");
      return "offset " + std::to_string(offset) + " is missing, and damaged is " + damaged;
    }
    lost += lost_.size();
    if (added != added_.end()) return "";
    std::string wrong = check_lookups(log, expected);
    return wrong.empty() ? check_state(log, expected) : wrong;
  }

  std::string check_lookups(const PartitionLog& log, const Partition& expected) const {
    for (const Lookup& lookup : expected.lookups) {
      const auto answer = look_up(log, lookup.at);
      const std::string asked = "looking for time " + std::to_string(lookup.at) + ": ";
      if (!answer) {
        if (data_ && answer.error().code == Errc::corrupt) continue;
        return asked + answer.error().to_string();
      }
      if (*answer == lookup.answer) continue;
      const bool gone = lookup.answer && lost_.contains(lookup.answer->offset.value());
      if (gone && !*answer) continue;
      // Damage may keep a look-up by time from finding what lies behind it, never the reverse.
      if (data_ && !lost_.empty() && !*answer && !layout_.records_alone) continue;
      if (gone) {
        // What comes next, as it is.
        const auto known = expected.records.find((*answer)->offset.value());
        if (known != expected.records.end() && known->second.time == (*answer)->timestamp.value() &&
            (lookup.at < 0 ||
             (known->second.time >= lookup.at && (*answer)->offset > lookup.answer->offset))) {
          continue;
        }
      }
      const auto text = [](const std::optional<storage::TimedOffset>& item) {
        return item ? std::to_string(item->offset.value()) + " of time " +
                          std::to_string(item->timestamp.value()) + " epoch " +
                          std::to_string(item->epoch.value())
                    : std::string("nothing");
      };
      return asked + text(*answer) + " and not " + text(lookup.answer);
    }
    return "";
  }

  std::string check_state(const PartitionLog& log, const Partition& expected) const {
    for (const auto& [epoch, end] : expected.epoch_ends) {
      const EpochEnd found = log.end_of_epoch(LeaderEpoch(static_cast<std::int32_t>(epoch)));
      if (found == end) continue;
      return "epoch " + std::to_string(epoch) + " ends at " + std::to_string(found.end.value()) +
             " (epoch " + std::to_string(found.epoch.value()) + ") and not at " +
             std::to_string(end.end.value());
    }
    if (log.first_epoch() != expected.first_epoch) {
      return "the first epoch is " + std::to_string(log.first_epoch().value());
    }
    // A scan that meets the damage can't know what the lost batch was, unless records say it.
    if (!clean_ && !lost_.empty() && !layout_.records_alone) return "";
    for (const auto& [batch, verdict] : expected.verdicts) {
      const auto found = log.check_producer(batch).verdict;
      if (found != verdict) {
        return "producer " + std::to_string(batch.producer.id.value()) + " sequence " +
               std::to_string(batch.producer.first_sequence) + ": verdict " +
               std::to_string(static_cast<int>(found)) + " and not " +
               std::to_string(static_cast<int>(verdict));
      }
    }
    return "";
  }

  std::string check_append(const TopicPartition& id, PartitionLog& log) {
    const LeaderEpoch epoch = log.log()->epoch() + 1;
    if (auto begun = log.log()->begin_epoch(epoch); !begun) return begun.error().to_string();
    const std::int64_t begin = log.offsets().end.value();
    std::int64_t next = begin;
    for (int i = 0; i < 3; ++i) {
      format::kafka::BatchBuilder builder({});
      Record record;
      record.timestamp = Timestamp(first_time);
      const std::string value = "appended " + std::to_string(i);
      record.value = as_bytes(value);
      EXPECT_TRUE(builder.add(record));
      Batch batch;
      batch.bytes = Slice::of(*builder.finish());
      batch.info = format::kafka::to_info(*format::kafka::parse_header(batch.bytes.view()));
      auto native = layout_.to_native(batch, id);
      if (!native) return native.error().to_string();
      const auto staged = log.append(std::move(*native));
      if (!staged) return "append: " + staged.error().to_string();
      if (auto wrote = log.log()->write_staged(); !wrote) return wrote.error().to_string();
      if (staged->offsets.start.value() != next) return "the append came to another offset";
      ++next;
    }
    ReadLimits limits;
    limits.bytes_max = 1 << 20;
    limits.end = Offset(next);
    Records& found = added_[id];
    for (std::int64_t at = begin; at < next;) {
      const auto batches = log.read(Offset(at), limits);
      if (!batches) return "what was appended does not read: " + batches.error().to_string();
      if (batches->empty()) return "what was appended is not there";
      for (const Batch& batch : *batches) {
        if (auto added = add_records(layout_, batch, at, found); !added) {
          return added.error().to_string();
        }
      }
      at = batches->back().info.last.value() + 1;
    }
    for (int i = 0; i < 3; ++i) {
      const auto record = found.find(begin + i);
      const std::string value = "appended " + std::to_string(i);
      if (record == found.end() || record->second.text.find(value) == std::string::npos) {
        return "what was appended reads as something else";
      }
    }
    return "";
  }

  const Layout& layout_;
  const Model& model_;
  const Clock& clock_;
  const bool clean_;
  bool data_ = false;                // the bit is in a file of records
  std::optional<DamagedUnit> unit_;  // what it may cost
  std::set<std::int64_t> lost_;
  std::map<TopicPartition, Records> added_;
};

std::size_t flips_per_store() {
  const char* const asked = std::getenv("POLYLOG_FLIPS");
  return asked == nullptr ? 200 : static_cast<std::size_t>(std::atoll(asked));
}

class FlippedBit : public ::testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(FlippedBit, no_wrong_byte_is_served) {
  const auto [which, clean] = GetParam();
  const Layout layout = which == 0   ? kafka_layout()
                        : which == 1 ? rocketmq_layout()
                                     : segment_layout();
  ManualClock clock{Timestamp(first_time)};
  auto disk = std::make_unique<fs::SimFileSystem>(&clock);
  {
    auto store = Builder(layout, *disk, clock).run();
    ASSERT_FALSE(HasFatalFailure());
    if (clean) {
      ASSERT_TRUE(store->close());
    }
  }
  const fs::CrashChoice as_it_is{.mode = fs::CrashChoice::Mode::kill};
  disk = disk->crash_state(as_it_is);
  Model model;
  {
    const auto copy = disk->crash_state(as_it_is);
    auto opened = layout.open(*copy, clock, layout.config);
    ASSERT_TRUE(opened) << opened.error().to_string();
    model = model_of(layout, *opened->store);
  }
  ASSERT_EQ(model.size(), 3U);
  Checker checker(layout, model, clock, clean);
  std::size_t done = 0;
  std::size_t bad = 0;
  for (const Flip& flip : choose_flips(*disk, flips_per_store())) {
    const auto copy = disk->crash_state(as_it_is);
    const auto then = static_cast<Checker::Then>(++done % 3);
    const std::string wrong = checker.check(*copy, flip, then);
    if (wrong.empty()) continue;
    ADD_FAILURE() << flip.to_string() << ": " << wrong;
    if (++bad >= 20) break;
  }
  std::printf("%zu flips, %zu records lost\n", done, checker.lost);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<int, bool>>& param) {
  const std::vector<std::string> names{"kafka", "rocketmq", "segment"};
  return names[static_cast<std::size_t>(std::get<0>(param.param))] +
         (std::get<1>(param.param) ? "_closed" : "_killed");
}

INSTANTIATE_TEST_SUITE_P(Layouts, FlippedBit,
                         ::testing::Combine(::testing::Values(0, 1, 2), ::testing::Bool()),
                         name_of);

}  // namespace
}  // namespace polylog::crash
