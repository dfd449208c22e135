#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "storage/filelog/held_syncs_rig.h"
#include "storage/kafka/store_rig.h"
#include "storage/rolled/points_rig.h"

// What a start counts on behind a recovery point: index files, sealed segments, producers.
namespace polylog::storage::kafka {
namespace {

using Mode = fs::CrashChoice::Mode;

constexpr std::int64_t first_time = 1000;
const std::string directory = "/data/kafka/t-0/";
const std::string sidecar_path = "/data/sidecar/kafka.sidecar";

class PointsRig : public StoreRig {
 public:
  // One record at each offset, each with a time of its own.
  void append_timed(int from, int to) {
    for (int i = from; i < to; ++i) {
      ASSERT_TRUE(append(*log(), make_batch({"value-" + std::to_string(i)}, {}, {first_time + i})));
    }
  }

  // An index that ends too early makes a lookup pass over records.
  void expect_found_by_time(int from, int to) {
    for (int i = from; i < to; ++i) {
      const auto found = log()->offset_for_time(Timestamp(first_time + i));
      ASSERT_TRUE(found) << found.error().to_string();
      ASSERT_TRUE(*found) << i;
      EXPECT_EQ((*found)->offset, Offset(i));
    }
  }

  // As if the kernel had written it back by itself.
  void sync_file(const std::string& path) {
    const auto file = disk->open(path, fs::OpenMode::write);
    ASSERT_TRUE(file) << path;
    ASSERT_TRUE((*file)->sync());
    ASSERT_TRUE(disk->sync_directory(directory));
  }

  static std::vector<std::string> sealed_files(const fs::FileSystem& on,
                                               const std::string& suffix) {
    std::vector<std::string> names;
    const auto all = *on.list(directory);
    for (const std::string& name : all) {
      if (name.ends_with(suffix)) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    if (!names.empty()) names.pop_back();  // the active segment's
    return names;
  }
};

TEST(KafkaPoints, no_point_passes_a_sealed_segment_whose_index_found_no_room) {
  PointsRig rig;
  rig.log_config.segment_bytes = 2000;
  ASSERT_TRUE(rig.open());
  rig.append_timed(0, 10);
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->checkpoint());
  int end = 10;
  while (PointsRig::sealed_files(*rig.disk, ".log").empty()) {
    rig.append_timed(end, end + 1);
    ++end;
  }
  rig.disk->fail_path(".index", fs::Fault::no_space);
  rig.disk->fail_path(".sidecar", fs::Fault::no_space);
  ASSERT_TRUE(rig.sync(*rig.log()));
  rig.disk->clear_faults();
  ASSERT_TRUE(rig.store->checkpoint()) << "writes the sidecar anew: a note was left out";
  ASSERT_TRUE(rig.kill());
  rig.expect_found_by_time(0, end);
  ASSERT_TRUE(rig.kill());
  rig.expect_found_by_time(0, end);
}

// An index that is written but not synced, in a round under way, is what a power cut takes.
TEST(KafkaPoints, no_point_passes_a_sealed_segment_whose_index_is_not_synced) {
  PointsRig rig;
  rig.log_config.segment_bytes = 2000;
  ASSERT_TRUE(rig.open());
  rig.append_timed(0, 10);
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->checkpoint());
  rig.sync_file(directory + "00000000000000000000.timeindex");
  int end = 10;
  while (PointsRig::sealed_files(*rig.disk, ".log").empty()) {
    rig.append_timed(end, end + 1);
    ++end;
  }
  rig.disk->fail_path(".index", fs::Fault::no_space);
  ASSERT_TRUE(rig.sync(*rig.log()));
  rig.disk->clear_faults();
  const auto held = rig.log()->log()->dirty();
  ASSERT_TRUE(held && *held);
  ASSERT_TRUE(rig.store->checkpoint());
  PointsRig after;
  after.disk = rig.disk->crash_state({.mode = Mode::lose_all});
  ASSERT_TRUE(after.open());
  EXPECT_EQ(after.log()->offsets().end, Offset(end));
  after.expect_found_by_time(0, end);
}

TEST(KafkaPoints, nor_does_the_originals_checkpoint) {
  PointsRig rig;
  rig.log_config.segment_bytes = 2000;
  ASSERT_TRUE(rig.open());
  rig.append_timed(0, 2);
  ASSERT_TRUE(rig.sync(*rig.log()));
  rig.sync_file(directory + "00000000000000000000.timeindex");
  rig.append_timed(2, 20);
  ASSERT_TRUE(rig.sync(*rig.log()));
  int end = 20;
  while (PointsRig::sealed_files(*rig.disk, ".log").empty()) {
    ASSERT_TRUE(rig.sync(*rig.log()));
    rig.append_timed(end, end + 1);
    ++end;
  }
  const auto held = rig.log()->log()->dirty();
  ASSERT_TRUE(held && *held);
  const auto names = *rig.disk->list(directory);
  for (const std::string& name : names) {
    if (name.ends_with(".snapshot")) rig.sync_file(directory + name);
  }
  ASSERT_TRUE(rig.store->checkpoint());
  PointsRig after;
  after.disk = rig.disk->crash_state({.mode = Mode::lose_all});
  ASSERT_TRUE(after.open());
  EXPECT_EQ(after.log()->offsets().end, Offset(end - 1));
  after.expect_found_by_time(0, end - 1);
}

TEST(KafkaPoints, an_index_made_again_after_a_clean_stop_outlives_a_power_cut) {
  PointsRig rig;
  rig.log_config.segment_bytes = 2000;
  ASSERT_TRUE(rig.open());
  rig.append_timed(0, 40);
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->close());
  const std::string path = directory + "00000000000000000000.timeindex";
  ASSERT_TRUE(rig.disk->remove(path));
  ASSERT_TRUE(rig.disk->sync_directory(directory));
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.recovery.clean);
  EXPECT_EQ(rig.recovery.indexes_rebuilt, 1U);
  const auto cut = rig.disk->crash_state({.mode = Mode::lose_all});
  const auto there = cut->info(path);
  ASSERT_TRUE(there);
  EXPECT_EQ(there->size, rig.disk->info(path)->size);
}

// The last batch of the file at `path` does not read any more, durable as it was.
void damage_end(fs::SimFileSystem& disk, const std::string& path) {
  const std::uint64_t size = disk.info(path)->size;
  disk.corrupt(path, size - 5, std::vector<std::uint8_t>(5, 0xff));
}

TEST(KafkaPoints, the_index_of_a_segment_left_because_its_end_is_damaged_is_whole) {
  for (const bool room : {true, false}) {
    PointsRig rig;
    ASSERT_TRUE(rig.open());
    rig.append_timed(0, 10);
    ASSERT_TRUE(rig.sync(*rig.log()));
    ASSERT_TRUE(rig.store->checkpoint());
    rig.append_timed(10, 40);
    ASSERT_TRUE(rig.sync(*rig.log()));
    damage_end(*rig.disk, directory + "00000000000000000000.log");
    auto killed = rig.disk->crash_state({.mode = Mode::kill});
    rig.store.reset();
    rig.disk = std::move(killed);
    if (!room) rig.fill();
    ASSERT_TRUE(rig.open());
    rig.disk->set_capacity(UINT64_MAX);
    ASSERT_EQ(rig.log()->offsets().end, Offset(40));
    rig.append_timed(40, 45);
    ASSERT_TRUE(rig.sync(*rig.log()));
    ASSERT_TRUE(rig.store->checkpoint());
    for (int start = 0; start < 3; ++start) {
      SCOPED_TRACE("start " + std::to_string(start) + (room ? "" : " after one without room"));
      rig.expect_found_by_time(0, 39);
      rig.expect_found_by_time(40, 45);
      ASSERT_TRUE(rig.kill());
    }
  }
}

TEST(KafkaPoints, what_a_round_that_was_given_up_had_sealed_is_the_next_ones) {
  PointsRig rig;
  rig.log_config.segment_bytes = 600;
  ASSERT_TRUE(rig.open());
  rig.append_timed(0, 40);
  const std::string metadata = directory + "partition.metadata";
  const auto text = *fs::read_file(*rig.disk, metadata, 1000);
  ASSERT_TRUE(rig.disk->remove(metadata));
  const auto given_up = rig.sync(*rig.log());
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, Errc::would_block);
  ASSERT_TRUE((*rig.disk->open(metadata, fs::OpenMode::create))->write(0, text));
  ASSERT_TRUE(rig.sync(*rig.log()));

  const SidecarState state = noted_in(*rig.disk, sidecar_path);
  const auto& files = state.logs.at("t-0").files;
  ASSERT_GT(files.size(), 3U);
  for (auto file = files.begin(); file != std::prev(files.end()); ++file) {
    EXPECT_TRUE(file->second.sealed) << file->first;
  }
  const auto cut = rig.disk->crash_state({.mode = Mode::lose_all});
  for (const char* const suffix : {".index", ".timeindex", ".snapshot"}) {
    const auto names = PointsRig::sealed_files(*rig.disk, suffix);
    ASSERT_GT(names.size(), 1U) << suffix;
    for (const std::string& name : names) {
      const auto there = cut->info(directory + name);
      ASSERT_TRUE(there) << name;
      EXPECT_EQ(there->size, rig.disk->info(directory + name)->size) << name;
    }
  }
}

// What a power cut leaves of the index files when the point that counts on them is on the disk.
TEST(KafkaPoints, lost_index_entries_are_made_again_from_the_last_one_that_is_there) {
  for (const std::int64_t step : {1, 0, -1}) {  // of the records' times
    PointsRig rig;
    ASSERT_TRUE(rig.open());
    const auto append = [&](int from, int to) {
      for (int i = from; i < to; ++i) {
        ASSERT_TRUE(rig.append(*rig.log(), make_batch({"value-" + std::to_string(i)}, {},
                                                      {first_time + 1000 + step * i})));
      }
    };
    append(0, 300);
    ASSERT_TRUE(rig.store->checkpoint()) << "the round is to bring a point";
    ASSERT_TRUE(rig.sync(*rig.log()));
    const std::string path = directory + "00000000000000000000";
    const std::uint64_t synced = rig.disk->info(path + ".log")->size;
    append(300, 400);
    ASSERT_TRUE(rig.sync(*rig.log()));
    ASSERT_TRUE(rig.store->checkpoint()) << "a point, and index entries that no sync covers";
    const std::uint64_t size = rig.disk->info(path + ".log")->size;
    ASSERT_TRUE((*rig.disk->open(sidecar_path, fs::OpenMode::write))->sync());
    ASSERT_TRUE(rig.disk->sync_directory("/data/sidecar"));
    const auto index = *fs::read_file(*rig.disk, path + ".index", 1 << 20);
    const auto times = *fs::read_file(*rig.disk, path + ".timeindex", 1 << 20);
    ASSERT_GT(index.size(), 0U);

    for (const fs::CrashChoice& choice : rig.disk->crash_choices(1, 60)) {
      SCOPED_TRACE("step " + std::to_string(step) + ", " + choice.to_string());
      PointsRig after;
      after.disk = rig.disk->crash_state(choice);
      ASSERT_TRUE(after.open());
      EXPECT_EQ(after.log()->offsets().end, Offset(400));
      // A hole within stays: what is looked for there is found, but by reading from the beginning.
      if (choice.mode != Mode::subset) {
        EXPECT_LE(after.recovery.bytes_scanned, size - synced + 500);
        EXPECT_EQ(*fs::read_file(*after.disk, path + ".index", 1 << 20), index);
        EXPECT_EQ(*fs::read_file(*after.disk, path + ".timeindex", 1 << 20), times);
      }
      const auto values = StoreRig::read_all(*after.log());
      ASSERT_TRUE(values);
      EXPECT_EQ(values->size(), 400U);
      for (int i = 0; i < 400; i += 7) {
        const auto found = after.log()->offset_for_time(Timestamp(first_time + 1000 + step * i));
        ASSERT_TRUE(found && *found);
        EXPECT_EQ((*found)->offset, Offset(step == 1 ? i : 0));
      }
    }
  }
}

TEST(KafkaPoints, a_producer_whose_records_expired_is_known_after_a_power_cut) {
  check_that_producers_outlive_their_records<StoreRig>([](std::int64_t id, int sequence) {
    return make_batch({"value"}, {ProducerId(id), 0, sequence, sequence});
  });
}

TEST(KafkaPoints, a_producer_whose_records_expire_between_syncs_is_known_after_a_kill) {
  check_that_producers_outlive_their_records_between_syncs<StoreRig>(
      [](std::int64_t id, int sequence) {
        return make_batch({"value"}, {ProducerId(id), 0, sequence, sequence});
      });
}

TEST(KafkaPoints, producers_of_two_generations_are_known_after_a_power_cut) {
  check_that_producers_outlive_two_retentions<StoreRig>([](std::int64_t id, int sequence) {
    return make_batch({"value"}, {ProducerId(id), 0, sequence, sequence});
  });
}

TEST(KafkaPoints, a_point_is_on_the_disk_before_the_files_it_stands_for_go) {
  check_that_a_point_is_on_the_disk_before_files_go<StoreRig>([](std::int64_t id, int sequence) {
    return make_batch({"value"}, {ProducerId(id), 0, sequence, sequence});
  });
}

TEST(KafkaPoints, what_a_start_would_read_is_known_whatever_came_in_the_way_of_a_point) {
  check_that_what_a_start_reads_is_known<StoreRig>();
}

// Does something once, when somebody looks at a sealed file.
class LookedAt final : public HeldSyncs {
 public:
  using HeldSyncs::HeldSyncs;
  Result<fs::FileInfo> info(const std::string& path) const override {
    if (path == directory + "00000000000000000000.log" && armed.exchange(false)) then();
    return HeldSyncs::info(path);
  }
  mutable std::atomic<bool> armed = false;
  std::function<void()> then;
};

// What a round made durable is noted while somebody cuts the log back.
TEST(KafkaPoints, the_sidecar_never_hears_of_a_round_after_the_cut_that_took_its_records) {
  StoreRig rig;
  rig.log_config.segment_bytes = 600;
  LookedAt disk(*rig.disk);
  auto opened = KafkaStore::open(disk, rig.clock, rig.config);
  ASSERT_TRUE(opened);
  rig.store = std::move(opened->store);
  const auto log = rig.log()->log();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(rig.append(*rig.log(), make_batch({"value"}, {ProducerId(1), 0, i, i})));
  }
  ASSERT_TRUE(rig.store->checkpoint()) << "the round is to bring a point";
  std::future<Result<void>> cut;
  disk.then = [&] {
    cut = std::async(std::launch::async, [&] { return log->truncate(LogPosition(14)); });
    cut.wait_for(std::chrono::milliseconds(200));
  };
  disk.armed = true;
  ASSERT_TRUE(rig.sync(*log));
  ASSERT_TRUE(cut.valid());
  ASSERT_TRUE(cut.get());
  const LogNote note = noted_in(*rig.disk, sidecar_path).logs.at("t-0");
  EXPECT_EQ(note.durable, LogPosition(14));
  EXPECT_FALSE(note.recovery) << "its producers have sent what is gone";
  rig.store.reset();
}

// Which transactions were aborted a segment's index alone tells, once a start does not read the
// markers again.
class AbortsRig : public PointsRig {
 public:
  // As a follower takes it over, one record at a time.
  static void take(Log& log, std::vector<std::uint8_t> bytes) {
    const LogPosition end = log.end();
    const LogChunk chunk{end, LogPosition(end.value() + 1), Slice::of(std::move(bytes))};
    ASSERT_TRUE(log.append_chunk(chunk));
  }
  static void begin(Log& log) {
    format::kafka::BatchOptions options;
    options.base_offset = Offset(log.end().value());
    options.producer_id = ProducerId(8);
    options.producer_epoch = 0;
    options.base_sequence = 0;
    options.transactional = true;
    format::kafka::BatchBuilder builder(options);
    Record record;
    record.timestamp = Timestamp(first_time);
    ASSERT_TRUE(builder.add(record));
    take(log, *builder.finish());
  }
  static void abort(Log& log) {
    format::kafka::Marker marker;
    marker.offset = Offset(log.end().value());
    marker.producer_id = ProducerId(8);
    marker.producer_epoch = 0;
    marker.coordinator_epoch = 0;
    marker.timestamp = Timestamp(first_time);
    take(log, format::kafka::build_marker(marker));
  }
  void write(int records) {
    for (int i = 0; i < records; ++i) ASSERT_TRUE(append(*log(), {"value"}));
  }
  // After two starts: what the first one leaves must do for the next.
  void expect_known_after(Mode mode) {
    SCOPED_TRACE(fs::CrashChoice{.mode = mode}.to_string());
    AbortsRig after;
    after.disk = disk->crash_state({.mode = mode});
    ASSERT_TRUE(after.open());
    for (int start = 0; start < 2; ++start) {
      const auto found = after.store->transactions()->aborted(*after.log(), after.log()->offsets());
      ASSERT_TRUE(found);
      EXPECT_EQ(found->size(), 1U);
      ASSERT_TRUE(after.kill());
    }
  }
};

TEST(KafkaPoints, an_aborted_transaction_is_known_after_a_crash) {
  for (const bool later : {false, true}) {    // not in the segment's first round
    for (const bool round : {false, true}) {  // one more comes behind the checkpoint
      SCOPED_TRACE(std::string(later ? "later" : "first") + (round ? ", and a round" : ""));
      AbortsRig rig;
      ASSERT_TRUE(rig.open());
      rig.write(3);
      if (later) {
        ASSERT_TRUE(rig.sync(*rig.log()));
      }
      AbortsRig::begin(*rig.log()->log());
      AbortsRig::abort(*rig.log()->log());
      rig.write(10);
      ASSERT_TRUE(rig.sync(*rig.log()));
      ASSERT_TRUE(rig.store->checkpoint());
      if (round) {
        ASSERT_TRUE(rig.sync(*rig.log()));
        ASSERT_TRUE(rig.store->checkpoint());
        EXPECT_EQ(bytes_to_scan(*rig.log()), 0U);
      }
      ASSERT_TRUE((*rig.disk->open(sidecar_path, fs::OpenMode::write))->sync());
      rig.expect_known_after(Mode::lose_all);
      rig.expect_known_after(Mode::kill);
    }
  }
}

// Does something once, when an index is about to be written.
class IndexOpened final : public HeldSyncs {
 public:
  using HeldSyncs::HeldSyncs;
  Result<fs::FilePtr> open(const std::string& path, fs::OpenMode mode) override {
    if (path.ends_with(".timeindex") && armed.exchange(false)) then();
    return HeldSyncs::open(path, mode);
  }
  std::atomic<bool> armed = false;
  std::function<void()> then;
};

TEST(KafkaPoints, a_transaction_aborted_while_a_round_is_made_ready_is_known_after_a_kill) {
  AbortsRig rig;
  IndexOpened disk(*rig.disk);
  auto opened = KafkaStore::open(disk, rig.clock, rig.config);
  ASSERT_TRUE(opened);
  rig.store = std::move(opened->store);
  const auto log = rig.log()->log();
  AbortsRig::begin(*log);
  ASSERT_TRUE(rig.sync(*log));
  rig.write(1);
  ASSERT_TRUE(rig.store->checkpoint()) << "the round is to bring a point";
  disk.then = [&] { AbortsRig::abort(*log); };
  disk.armed = true;
  ASSERT_TRUE(rig.sync(*log));
  ASSERT_FALSE(disk.armed);
  rig.expect_known_after(Mode::kill);
  rig.store.reset();
}

TEST(KafkaPoints, a_transaction_aborted_below_a_cut_is_known_after_a_kill) {
  AbortsRig rig;
  ASSERT_TRUE(rig.open());
  rig.write(3);
  AbortsRig::begin(*rig.log()->log());
  AbortsRig::abort(*rig.log()->log());
  rig.write(10);
  ASSERT_TRUE(rig.store->checkpoint()) << "the round is to bring a point";
  ASSERT_TRUE(rig.sync(*rig.log()));
  rig.write(10);
  ASSERT_TRUE(rig.log()->log()->truncate(LogPosition(20)));
  ASSERT_TRUE(noted_in(*rig.disk, sidecar_path).logs.at("t-0").recovery);
  rig.expect_known_after(Mode::kill);
  rig.write(1);
  ASSERT_TRUE(rig.sync(*rig.log()));
  rig.expect_known_after(Mode::kill);
}

}  // namespace
}  // namespace polylog::storage::kafka
