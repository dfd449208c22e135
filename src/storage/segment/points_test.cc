#include <iterator>
#include <string>

#include "storage/rolled/points_rig.h"
#include "storage/segment/store_rig.h"

// What a start counts on behind a recovery point.
namespace polylog::storage::segment {
namespace {

const std::string sidecar_path = "/data/sidecar/segment.sidecar";

TEST(SegmentPoints, what_a_round_that_was_given_up_had_sealed_is_the_next_ones) {
  StoreRig rig;
  rig.log_config.segment_bytes = 600;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log(), other = rig.log("t", 1);
  ASSERT_TRUE(rig.sync(*log));
  ASSERT_TRUE(log->log()->begin_epoch(LeaderEpoch(1)));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(rig.append(*log, {"value-" + std::to_string(i)}));
  rig.disk->fail_path(".sidecar", fs::Fault::eio);
  ASSERT_FALSE(rig.sync(*other)) << "the sidecar falls silent";
  rig.disk->fail_path(".sidecar", fs::Fault::no_space);
  const auto given_up = rig.sync(*log);
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, Errc::no_space);
  rig.disk->clear_faults();
  ASSERT_TRUE(rig.sync(*log));
  const SidecarState state = noted_in(*rig.disk, sidecar_path);
  const auto& files = state.logs.at("t-0").files;
  ASSERT_GT(files.size(), 2U);
  for (auto file = files.begin(); file != std::prev(files.end()); ++file) {
    EXPECT_TRUE(file->second.sealed) << file->first;
  }
}

TEST(SegmentPoints, a_producer_whose_records_expired_is_known_after_a_power_cut) {
  check_that_producers_outlive_their_records<StoreRig>([](std::int64_t id, int sequence) {
    return make_batch({"value"}, {ProducerId(id), 0, sequence, sequence});
  });
}

TEST(SegmentPoints, a_producer_whose_records_expire_between_syncs_is_known_after_a_kill) {
  check_that_producers_outlive_their_records_between_syncs<StoreRig>(
      [](std::int64_t id, int sequence) {
        return make_batch({"value"}, {ProducerId(id), 0, sequence, sequence});
      });
}

TEST(SegmentPoints, producers_of_two_generations_are_known_after_a_power_cut) {
  check_that_producers_outlive_two_retentions<StoreRig>([](std::int64_t id, int sequence) {
    return make_batch({"value"}, {ProducerId(id), 0, sequence, sequence});
  });
}

TEST(SegmentPoints, a_point_is_on_the_disk_before_the_files_it_stands_for_go) {
  check_that_a_point_is_on_the_disk_before_files_go<StoreRig>([](std::int64_t id, int sequence) {
    return make_batch({"value"}, {ProducerId(id), 0, sequence, sequence});
  });
}

TEST(SegmentPoints, what_a_start_would_read_is_known_whatever_came_in_the_way_of_a_point) {
  check_that_what_a_start_reads_is_known<StoreRig>();
}

Batch of_producer(std::int64_t id, int sequence) {
  return make_batch({"value"}, {ProducerId(id), 0, sequence, sequence});
}

// Retention has taken all that producer 7 sent, so that only a recovery point tells of it; then
// comes something by producer 9, not synced yet.
void let_producer_expire(StoreRig& rig) {
  rig.config.scan_bytes_max = 1;
  rig.log_config.retention_ms = 1000;
  rig.log_config.segment_ms = 500;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(rig.append(*log, of_producer(7, i)));
  ASSERT_TRUE(rig.sync(*log));
  rig.clock.advance_ms(10'000);
  ASSERT_TRUE(dynamic_cast<RolledLog&>(*log).roll_by_age(rig.clock.now()));
  ASSERT_TRUE(rig.sync(*log));
  const auto retained = rig.store->retain({"t", 0}, Offset(4), Timestamp(2'000'000));
  ASSERT_TRUE(retained);
  ASSERT_EQ(retained->segments_removed, 1U);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(rig.append(*log, of_producer(9, i)));
}

// What it rests on is not in the sidecar: it must not take the place of one that can be used.
TEST(SegmentPoints, a_point_behind_a_round_that_found_no_room_takes_no_ones_place) {
  StoreRig rig;
  ASSERT_NO_FATAL_FAILURE(let_producer_expire(rig));
  const auto log = rig.log();
  const auto dirty = log->log()->dirty();
  ASSERT_TRUE(dirty && *dirty);
  for (const fs::FilePtr& file : (*dirty)->files) ASSERT_TRUE(file->sync());
  log->log()->settled(**dirty, true);
  rig.disk->fail_step(rig.disk->steps() + 1, fs::Fault::no_space);
  log->log()->write_noted();
  EXPECT_TRUE(rig.store->advance_points().empty());
  ASSERT_TRUE(rig.kill());
  EXPECT_EQ(rig.log()->offsets().end, Offset(8));
  expect_known(rig, of_producer, 7, 0, 4);
  expect_known(rig, of_producer, 9, 4, 8);
}

// A power cut may take what a round said, and leave what was said after it.
TEST(SegmentPoints, a_hole_in_the_sidecars_end_leaves_the_point_before_it) {
  for (const bool blocks : {false, true}) {  // rounds that each add one to those of the file
    StoreRig rig;
    ASSERT_NO_FATAL_FAILURE(let_producer_expire(rig));
    ASSERT_TRUE(rig.sync(*rig.log()));
    for (int i = 0; blocks && i < 4; ++i) {
      ASSERT_TRUE(rig.append(*rig.log(), {std::string(70'000, 'x')}));
      ASSERT_TRUE(rig.sync(*rig.log()));
    }
    EXPECT_TRUE(rig.store->advance_points().empty());
    for (const fs::CrashChoice& choice : rig.disk->crash_choices(1, 100)) {
      SCOPED_TRACE(choice.to_string());
      StoreRig after;
      after.disk = rig.disk->crash_state(choice);
      ASSERT_TRUE(after.open());
      EXPECT_EQ(after.log()->offsets().end, Offset(blocks ? 12 : 8));
      expect_known(after, of_producer, 7, 0, 4);
      expect_known(after, of_producer, 9, 4, 8);
    }
  }
}

// The log goes on in a new file, which no sync has covered when the sidecar is written anew.
TEST(SegmentPoints, a_start_that_begins_a_new_file_behind_damage_keeps_its_point) {
  StoreRig rig;
  ASSERT_NO_FATAL_FAILURE(let_producer_expire(rig));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->close());
  rig.disk->flip_bit("/data/segment/t-0/1.msg", 40, 0);
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.recovery.clean);
  ASSERT_FALSE(rig.recovery.notes.empty());
  for (int start = 0; start < 3; ++start) {
    EXPECT_EQ(rig.log()->offsets().end, Offset(8));
    expect_known(rig, of_producer, 7, 0, 4);
    ASSERT_TRUE(rig.kill());
  }
  ASSERT_TRUE(rig.append(*rig.log(), of_producer(8, 0)));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.kill());
  EXPECT_EQ(rig.log()->offsets().end, Offset(9));
  expect_known(rig, of_producer, 7, 0, 4);
  expect_known(rig, of_producer, 8, 8, 9);
}

}  // namespace
}  // namespace polylog::storage::segment
