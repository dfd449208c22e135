#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "format/rocketmq/message.h"
#include "fs/sim_file_system.h"
#include "storage/rocketmq/store.h"

// A RocketMQ store on a simulated disk, small enough that everything rolls soon.
namespace polylog::storage::rocketmq {

class StoreRig {
 public:
  using Strings = std::vector<std::string>;

  StoreRig() {
    config.directory = "/data/rocketmq";
    config.sidecar_directory = "/data/sidecar";
    config.shared.commit_log_file_bytes = 4096;
    config.shared.queue_file_bytes = 200;  // ten entries
    config.shared.index_slots = 8;
    config.shared.index_entries = 6;
  }

  Recovery open() {
    auto opened = RocketmqStore::open(*disk, clock, config);
    EXPECT_TRUE(opened) << opened.error().to_string();
    if (!opened) return {};
    store.reset(static_cast<RocketmqStore*>(opened->store.release()));
    return std::move(opened->recovery);
  }
  Recovery reopen() {
    EXPECT_TRUE(store->close());
    store.reset();
    return open();
  }
  Recovery crash(fs::CrashChoice::Mode mode) {
    store.reset();
    disk = disk->crash_state({.mode = mode});
    return open();
  }
  Recovery kill() { return crash(fs::CrashChoice::Mode::kill); }
  Recovery power_cut() { return crash(fs::CrashChoice::Mode::lose_all); }

  std::shared_ptr<PartitionLog> queue(const std::string& topic = "a", std::int32_t id = 0) {
    if (auto found = store->find({topic, id})) return found;
    Uuid topic_id;
    topic_id.bytes[0] = ++topics;
    auto made = store->create({topic, id}, topic_id, LogConfig());
    EXPECT_TRUE(made) << made.error().to_string();
    return *made;
  }

  // One message, native form; offsets are the store's to give.
  Batch message(const std::string& body, const std::string& topic = "a",
                const std::string& properties = "", std::int32_t queue_id = 0) const {
    format::rocketmq::Message message;
    message.queue_id = queue_id;
    message.born_timestamp = clock.now().value();
    message.body = as_bytes(body);
    const auto name = stored_name(topic);
    message.topic = *name;
    message.properties = properties;
    std::vector<std::uint8_t> bytes;
    EXPECT_TRUE(format::rocketmq::encode(message, bytes));
    Batch batch;
    batch.format = BatchFormat::rocketmq;
    batch.info.records = 1;
    batch.info.max_timestamp = Timestamp(message.born_timestamp);
    batch.bytes = Slice::of(std::move(bytes));
    return batch;
  }
  Staged put(const Batch& batch, const std::string& topic = "a") {
    const auto log = queue(topic);
    const auto staged = log->append(batch);
    EXPECT_TRUE(staged) << staged.error().to_string();
    EXPECT_TRUE(log->log()->write_staged());
    return *staged;
  }
  Staged put(const std::string& body, const std::string& topic = "a",
             const std::string& properties = "") {
    return put(message(body, topic, properties), topic);
  }
  void sync() {
    const auto log = store->shared_log();
    auto dirty = log->dirty();
    ASSERT_TRUE(dirty) << dirty.error().to_string();
    if (!*dirty) return;
    for (const fs::FilePtr& file : (*dirty)->files) ASSERT_TRUE(file->sync());
    for (const std::string& path : (*dirty)->directories) ASSERT_TRUE(disk->sync_directory(path));
    log->settled(**dirty, true);
    log->write_noted();
  }

  static Strings bodies(const std::vector<Batch>& batches) {
    Strings found;
    for (const Batch& batch : batches) {
      EXPECT_TRUE(format::rocketmq::for_each_message(
          batch.bytes.view(), [&](ByteView, const format::rocketmq::Message& message) {
            found.emplace_back(as_text(message.body));
            return Result<void>();
          }));
    }
    return found;
  }
  Strings read(const std::string& topic = "a", std::size_t bytes_max = 1 << 20) {
    Strings found;
    const auto log = queue(topic);
    ReadLimits limits;
    limits.bytes_max = bytes_max;
    limits.end = log->offsets().end;
    limits.first_whole = true;
    for (Offset at = log->offsets().start; at < limits.end;) {
      const auto batches = log->read(at, limits);
      EXPECT_TRUE(batches) << batches.error().to_string();
      if (!batches || batches->empty()) break;
      const Strings more = bodies(*batches);
      found.insert(found.end(), more.begin(), more.end());
      at = batches->back().info.last + 1;
    }
    return found;
  }
  Strings find(const std::string& topic, const std::string& key, std::size_t max = 32) {
    KeyIndex::KeyQuery query;
    query.topic = topic;
    query.key = key;
    query.records_max = max;
    const auto matches = store->key_index()->find_by_key(query);
    EXPECT_TRUE(matches) << matches.error().to_string();
    Strings found;
    for (const KeyIndex::Found& match : *matches) {
      const Strings body = bodies({match.record});
      found.insert(found.end(), body.begin(), body.end());
    }
    return found;
  }

  StoreConfig config;
  ManualClock clock{Timestamp(1'700'000'000'000)};
  std::unique_ptr<fs::SimFileSystem> disk = std::make_unique<fs::SimFileSystem>();
  std::unique_ptr<RocketmqStore> store;
  std::uint8_t topics = 0;
};

}  // namespace polylog::storage::rocketmq
