#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "storage/filelog/held_syncs_rig.h"
#include "storage/filelog/sidecar_codec.h"
#include "storage/rocketmq/store_rig.h"

// What the layout's own files don't tell, and the sidecar does: epochs, where queues begin, which
// topics are gone.
namespace polylog::storage::rocketmq {
namespace {

using Strings = StoreRig::Strings;

const std::string sidecar_path = "/data/sidecar/rocketmq.sidecar";

class RocketmqFactsTest : public ::testing::Test, protected StoreRig {
 protected:
  void SetUp() override {
    config.shared.commit_log_file_bytes = 1 << 20;
    open();
  }
  Result<void> begin(std::int32_t epoch) { return queue()->log()->begin_epoch(LeaderEpoch(epoch)); }
  // Both copies of the fact of that type that is number `which` in the file.
  void lose_fact(std::uint8_t type, int which) {
    const auto bytes = *fs::read_file(*disk, sidecar_path, 1 << 20);
    int copies = 0;
    SidecarReader reader(bytes);
    while (const auto record = reader.next()) {
      if (record->type != type || copies++ / 2 != which) continue;
      disk->flip_bit(sidecar_path, record->position + 5, 3);
    }
    ASSERT_GT(copies, which * 2 + 1);
  }
  LeaderEpoch epoch_at(std::int64_t offset) {
    ReadLimits limits;
    limits.bytes_max = 1 << 20;
    limits.end = queue()->offsets().end;
    return queue()->read(Offset(offset), limits)->front().info.epoch;
  }
  EpochEnd end_of(std::int32_t epoch) { return queue()->end_of_epoch(LeaderEpoch(epoch)); }
};

TEST_F(RocketmqFactsTest, epochs_that_the_sidecar_lost_are_unknown_and_no_others) {
  for (const int epoch : {3, 5, 7}) {
    ASSERT_TRUE(begin(epoch));
    put(std::to_string(epoch) + "a");
    put(std::to_string(epoch) + "b");
    sync();
  }
  lose_fact(sidecar_type::epoch_start, 1);
  const Recovery report = kill();
  ASSERT_FALSE(report.notes.empty());
  EXPECT_NE(report.notes[0].find("leader epochs"), std::string::npos);
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(read(), (Strings{"3a", "3b", "5a", "5b", "7a", "7b"}));
    EXPECT_EQ(epoch_at(0), no_epoch);
    EXPECT_EQ(epoch_at(2), no_epoch);
    EXPECT_EQ(epoch_at(4), LeaderEpoch(7));
    EXPECT_EQ(queue()->first_epoch(), no_epoch);
    EXPECT_EQ(end_of(3), EpochEnd());
    EXPECT_EQ(end_of(5), EpochEnd());
    EXPECT_EQ(end_of(7), (EpochEnd{LeaderEpoch(7), LogPosition(6)}));
    EXPECT_GE(queue()->log()->epoch(), LeaderEpoch(7));
    kill();
  }
}

TEST_F(RocketmqFactsTest, an_epoch_whose_records_a_power_cut_took_is_not_begun_again) {
  ASSERT_TRUE(begin(4));
  put("one");
  sync();
  kill();
  ASSERT_TRUE(begin(5));
  put("shown and lost");
  power_cut();
  EXPECT_EQ(read(), (Strings{"one"}));
  EXPECT_GE(queue()->log()->epoch(), LeaderEpoch(5));
  EXPECT_EQ(end_of(4), (EpochEnd{LeaderEpoch(4), LogPosition(1)}));
}

TEST_F(RocketmqFactsTest, damage_in_the_sidecar_is_said_when_the_store_is_opened) {
  put("one");
  sync();
  put("two");
  sync();
  const auto bytes = *fs::read_file(*disk, sidecar_path, 1 << 20);
  SidecarReader reader(bytes);
  disk->flip_bit(sidecar_path, reader.next()->position + 6, 0);
  const Recovery report = kill();
  ASSERT_FALSE(report.notes.empty());
  EXPECT_NE(report.notes[0].find(sidecar_path), std::string::npos);
  EXPECT_EQ(read(), (Strings{"one", "two"}));
}

// The sidecar is written anew, and its sync waits; a fact is noted meanwhile.
TEST_F(RocketmqFactsTest, a_fact_is_kept_when_the_sidecar_is_being_written_anew) {
  HeldSyncs held(*disk);
  store.reset();
  auto opened = RocketmqStore::open(held, clock, config);
  ASSERT_TRUE(opened) << opened.error().to_string();
  store.reset(static_cast<RocketmqStore*>(opened->store.release()));
  ASSERT_TRUE(begin(1));
  put("one");
  sync();
  ASSERT_TRUE(store->checkpoint());
  // A round that finds no room for its note makes the next checkpoint write the file anew.
  put("two");
  const auto dirty = store->shared_log()->dirty();
  ASSERT_TRUE(dirty && *dirty);
  for (const fs::FilePtr& file : (*dirty)->files) ASSERT_TRUE(file->sync());
  disk->fail_step(disk->steps() + 1, fs::Fault::no_space);
  store->shared_log()->settled(**dirty, true);
  store->shared_log()->write_noted();
  ASSERT_TRUE(store->shared_log()->wants_checkpoint());
  held.hold();
  std::thread rewriting([&] { EXPECT_TRUE(store->checkpoint()); });
  ASSERT_TRUE(held.one_waits());
  EXPECT_TRUE(begin(2));
  put("three");
  held.let_go();
  rewriting.join();
  sync();
  store.reset();
  power_cut();
  EXPECT_EQ(read(), (Strings{"one", "two", "three"}));
  EXPECT_EQ(end_of(1), (EpochEnd{LeaderEpoch(1), LogPosition(2)}));
  EXPECT_EQ(end_of(2), (EpochEnd{LeaderEpoch(2), LogPosition(3)}));
}

TEST_F(RocketmqFactsTest, what_a_checkpoint_that_went_wrong_had_synced_is_noted) {
  put("one");
  ASSERT_TRUE(store->checkpoint());
  put("two");
  disk->fail_path("/consumequeue/", fs::Fault::no_space);
  EXPECT_FALSE(store->checkpoint());
  disk->clear_faults();
  const std::int64_t durable = store->shared_log()->durable_end().value();
  SidecarState state;
  decode_sidecar(*fs::read_file(*disk, sidecar_path, 1 << 20), state);
  const LogNote& note = state.logs.at("commitlog");
  EXPECT_EQ(note.durable.value(), durable);
  EXPECT_EQ(note.files.at(0).sums.size(), static_cast<std::uint64_t>(durable));
  EXPECT_LT(note.recovery.value().offset, durable);
}

TEST_F(RocketmqFactsTest, a_start_whose_indexes_wait_for_room_keeps_the_point_it_began_at) {
  for (int i = 0; i < 20; ++i) put("one", "a", "KEYS\x01k\x02");
  ASSERT_TRUE(store->checkpoint());
  put("two", "a", "KEYS\x01k\x02");
  sync();
  store.reset();
  disk = disk->crash_state({.mode = fs::CrashChoice::Mode::kill});
  disk->fail_path("/index/", fs::Fault::no_space);
  const Recovery waits = open();
  ASSERT_FALSE(waits.notes.empty());
  EXPECT_NE(waits.notes.back().find("for room"), std::string::npos) << waits.notes.back();
  EXPECT_GT(waits.bytes_scanned, 0U);
  EXPECT_EQ(kill().bytes_scanned, waits.bytes_scanned);
  EXPECT_EQ(read().size(), 21U);
  EXPECT_EQ(kill().bytes_scanned, 0U);
  EXPECT_EQ(find("a", "k").size(), 21U);
}

}  // namespace
}  // namespace polylog::storage::rocketmq
