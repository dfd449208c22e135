#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "broker/durability.h"
#include "broker/topic_config.h"
#include "convert/convert.h"
#include "convert/layouts.h"
#include "format/kafka/records.h"
#include "format/transcode/transcode.h"
#include "fs/sim_file_system.h"
#include "meta/catalog.h"
#include "storage/kafka/store.h"
#include "storage/rocketmq/store.h"
#include "storage/rocksdb/index.h"
#include "storage/segment/store.h"

// Test only: data directories to convert, and what is in them.
namespace polylog::convert {

// A record that owns its bytes.
struct OwnedRecord {
  std::int64_t offset = 0;
  std::int64_t timestamp = 0;
  std::optional<std::string> key, value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  bool operator==(const OwnedRecord&) const = default;
};

inline std::optional<std::string> owned(const std::optional<ByteView>& bytes) {
  return bytes ? std::optional(std::string(as_text(*bytes))) : std::nullopt;
}

inline std::optional<ByteView> viewed(const std::optional<std::string>& text) {
  return text ? std::optional(as_bytes(*text)) : std::nullopt;
}

inline Record view_of(const OwnedRecord& owned_record) {
  Record record;
  record.offset = Offset(owned_record.offset);
  record.timestamp = Timestamp(owned_record.timestamp);
  record.key = viewed(owned_record.key);
  record.value = viewed(owned_record.value);
  for (const auto& [name, value] : owned_record.headers) {
    record.headers.push_back({name, viewed(value)});
  }
  return record;
}

// Records with everything in them that may get lost on the way.
class RandomRecords {
 public:
  explicit RandomRecords(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) { return random_() % bound; }
  OwnedRecord record() {
    OwnedRecord made;
    made.timestamp = 1'700'000'000'000 + static_cast<std::int64_t>(below(1'000'000));
    if (below(20) == 0) made.timestamp = -1;
    made.key = bytes(40);
    made.value = bytes(below(50) == 0 ? 30'000 : 300);
    for (std::size_t i = below(5); i > 0; --i) {
      static const char* const names[] = {"a", "b", "", "rmq.tags", "KEYS", "h:x", "\x01", "ö"};
      made.headers.emplace_back(names[below(8)], bytes(20));
    }
    return made;
  }

 private:
  // Null, empty, text or binary.
  std::optional<std::string> bytes(std::size_t size_max) {
    switch (below(6)) {
      case 0: return std::nullopt;
      case 1: return "";
      case 2: return std::string(below(size_max) + 1, 'x');
      default: break;
    }
    std::string made(below(size_max) + 1, '\0');
    for (char& c : made) c = static_cast<char>(random_());
    return made;
  }

  std::mt19937 random_;
};

inline Batch kafka_batch(std::vector<std::uint8_t> bytes) {
  Batch batch;
  batch.info = format::kafka::to_info(format::kafka::decode_header(bytes));
  batch.bytes = Slice::of(std::move(bytes));
  return batch;
}

// At the offsets of the records; `end` is behind the last of them where more are taken.
inline Batch batch_of(const std::vector<OwnedRecord>& records,
                      format::kafka::BatchOptions options = {},
                      std::optional<std::int64_t> end = std::nullopt) {
  options.base_offset = Offset(records.front().offset);
  options.epoch = LeaderEpoch(2);
  if (end) {
    options.last_offset_delta = static_cast<std::int32_t>(*end - records.front().offset - 1);
  }
  format::kafka::BatchBuilder builder(options);
  for (const OwnedRecord& record : records) EXPECT_TRUE(builder.add_at_offset(view_of(record)));
  return kafka_batch(*builder.finish());
}

inline Result<storage::Opened> open_segment_store(fs::FileSystem& fs, const Clock& clock,
                                                  const storage::StoreConfig& config) {
  return storage::segment::SegmentStore::open(fs, clock, config, [&fs](const std::string& path) {
    return storage::open_rocksdb_index(fs, path);
  });
}

class ConvertRig : public testing::Test {
 protected:
  using Layout = storage::Layout;
  static constexpr const char* source = "/polylog-test/src";
  static constexpr const char* target = "/polylog-test/dst";

  ConvertRig() {
    engines[Layout::kafka] = &storage::kafka::KafkaStore::open;
    engines[Layout::rocketmq] = &storage::rocketmq::RocketmqStore::open;
    engines[Layout::segment] = &open_segment_store;
    settings = broker::Settings::from({{"mappedFileSizeCommitLog", "65536"},
                                       {"mappedFileSizeConsumeQueue", "400"},
                                       {"maxHashSlotNum", "64"},
                                       {"maxIndexNum", "1000"}})
                   .value();
    EXPECT_TRUE(disk->create_directory("/polylog-test"));
  }

  // A data directory of polylog, open for filling.
  struct Directory {
    std::unique_ptr<meta::Catalog> catalog;
    std::map<Layout, std::unique_ptr<storage::Store>> stores;
  };
  Directory open_directory(const std::string& path) {
    Directory directory;
    EXPECT_TRUE(fs::create_directories(*disk, path + "/meta"));
    EXPECT_TRUE(disk->open(path + "/.lock", fs::OpenMode::create));
    directory.catalog = std::move(*meta::open_embedded_catalog(*disk, path + "/meta", {}));
    for (const auto& [layout, engine] : engines) {
      storage::StoreConfig config;
      config.directory = path + "/" + std::string(broker::layout_name(layout));
      config.sidecar_directory = path + "/sidecar";
      config.cluster_id = directory.catalog->cluster_id();
      config.shared = settings.shared_log;
      auto opened = engine(*disk, clock, config);
      EXPECT_TRUE(opened) << opened.error().to_string();
      EXPECT_TRUE(opened->recovery.notes.empty()) << opened->recovery.notes.front();
      directory.stores[layout] = std::move(opened->store);
    }
    return directory;
  }
  static void close(Directory& directory) {
    for (auto& [layout, store] : directory.stores) EXPECT_TRUE(store->close());
    directory = {};
  }

  static void make_topic(Directory& directory, const std::string& name, Layout layout,
                         std::int32_t partitions,
                         std::map<std::string, std::string> configs = {}) {
    meta::TopicRecord record;
    record.name = name;
    record.id = Uuid::random();
    record.partitions = partitions;
    record.layout = broker::layout_name(layout);
    record.configs = std::move(configs);
    ASSERT_TRUE(directory.catalog->create_topic(record));
    for (std::int32_t i = 0; i < partitions; ++i) {
      storage::LogConfig config;
      config.segment_bytes = 40'000;
      ASSERT_TRUE(directory.stores.at(layout)->create({name, i}, record.id, config));
    }
  }

  // Appends as the broker does: the store gives the offsets.
  void append(Directory& directory, const std::string& topic, std::int32_t partition,
              const Batch& batch) {
    for (auto& [layout, store] : directory.stores) {
      const auto log = store->find({topic, partition});
      if (log == nullptr) continue;
      Surroundings around;
      around.topic = topic;
      around.partition = partition;
      auto native = change({batch}, store->traits().native, around);
      ASSERT_TRUE(native) << native.error().to_string();
      if (layout == Layout::segment) {  // what append() takes is not placed yet
        native->assign(1, format::kafka_to_segment(batch, format::SegmentTarget()).value());
      }
      for (const Batch& each : *native) {
        const auto staged = log->append(each);
        ASSERT_TRUE(staged) << staged.error().to_string();
      }
      ASSERT_TRUE(log->log()->write_staged());
      return;
    }
    FAIL() << "no " << topic << "-" << partition;
  }
  // At the batch's own offsets (Kafka's layout).
  static void put(Directory& directory, const std::string& topic, std::int32_t partition,
                  const Batch& batch) {
    const auto log = directory.stores.at(Layout::kafka)->find({topic, partition});
    ASSERT_TRUE(log->log()->append_chunk(
        {LogPosition(batch.info.first.value()), LogPosition(batch.info.last.value() + 1),
         batch.bytes}));
  }

  struct Found {
    std::int64_t start = 0, end = 0;
    std::vector<OwnedRecord> records;
    bool operator==(const Found&) const = default;
  };
  // A stopped directory's partition, in Kafka's terms.
  Found read(const std::string& path, Layout layout, const std::string& topic,
             std::int32_t partition) {
    OverlayFileSystem overlay(*disk, "/polylog-test/pages");
    storage::StoreConfig config;
    config.directory = path + "/" + std::string(broker::layout_name(layout));
    config.sidecar_directory = path + "/sidecar";
    config.shared = settings.shared_log;
    auto catalog = meta::open_embedded_catalog(overlay, path + "/meta", {});
    EXPECT_TRUE(catalog) << catalog.error().to_string();
    if (!catalog) return {};
    config.cluster_id = (*catalog)->cluster_id();
    auto opened = engines.at(layout)(overlay, clock, config);
    EXPECT_TRUE(opened) << opened.error().to_string();
    if (!opened) return {};
    const auto log = opened->store->find({topic, partition});
    EXPECT_NE(log, nullptr) << topic << "-" << partition;
    Found found;
    if (log == nullptr) return found;
    found.start = log->offsets().start.value();
    found.end = log->offsets().end.value();
    Surroundings around;
    around.topic = topic;
    for (std::int64_t at = found.start; at < found.end;) {
      storage::ReadLimits limits;
      limits.bytes_max = 1 << 20;
      limits.end = Offset(found.end);
      limits.first_whole = true;
      const auto batches = log->read(Offset(at), limits);
      EXPECT_TRUE(batches) << batches.error().to_string();
      if (!batches || batches->empty()) break;
      const auto changed = change(*batches, BatchFormat::kafka, around);
      EXPECT_TRUE(changed) << changed.error().to_string();
      for (const Batch& batch : *changed) add_records(batch, at, found.records);
      at = batches->back().info.last.value() + 1;
    }
    return found;
  }
  static void add_records(const Batch& batch, std::int64_t from,
                          std::vector<OwnedRecord>& records) {
    EXPECT_TRUE(format::kafka::for_each_batch(
        batch.bytes.view(), [&](const format::kafka::BatchHeader&, ByteView whole) {
          return format::kafka::for_each_record(whole, 1 << 26, [&](const Record& record) {
            if (record.offset.value() < from) return true;
            OwnedRecord made;
            made.offset = record.offset.value();
            made.timestamp = record.timestamp.value();
            made.key = owned(record.key);
            made.value = owned(record.value);
            for (const Header& header : record.headers) {
              made.headers.emplace_back(std::string(header.name), owned(header.value));
            }
            records.push_back(std::move(made));
            return true;
          });
        }));
  }

  Options options(const std::string& from, const std::string& to, Layout layout) {
    Options wanted;
    wanted.source = from;
    wanted.target = to;
    wanted.layout = layout;
    wanted.settings = settings;
    return wanted;
  }
  Result<Summary> run(Options wanted) {
    notes.clear();
    wanted.note = [this](const std::string& line) { notes.push_back(line); };
    return convert(*disk, clock, engines, wanted);
  }
  Summary converted(const std::string& from, const std::string& to, Layout layout) {
    const auto summary = run(options(from, to, layout));
    EXPECT_TRUE(summary) << summary.error().to_string();
    return summary.value_or(Summary());
  }
  void refused(const Options& wanted, const std::vector<std::string>& words) {
    const auto summary = run(wanted);
    ASSERT_FALSE(summary);
    for (const std::string& word : words) {
      EXPECT_NE(summary.error().context.find(word), std::string::npos)
          << word << " is not in: " << summary.error().to_string();
    }
  }
  std::vector<meta::TopicRecord> topics_of(const std::string& path) {
    OverlayFileSystem overlay(*disk, "/polylog-test/pages");
    auto catalog = meta::open_embedded_catalog(overlay, path + "/meta", {});
    EXPECT_TRUE(catalog) << catalog.error().to_string();
    return *(*catalog)->topics();
  }

  ManualClock clock{Timestamp(1'700'000'000'000)};
  std::unique_ptr<fs::SimFileSystem> disk = std::make_unique<fs::SimFileSystem>();
  Engines engines;
  broker::Settings settings;
  std::vector<std::string> notes;  // of the last run
};

}  // namespace polylog::convert
