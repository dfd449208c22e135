#include "storage/kafka/store.h"

#include "storage/kafka/store_rig.h"
#include "storage/rolled/checks_rig.h"
#include "storage/rolled/points_rig.h"

namespace polylog::storage::kafka {
namespace {

using Strings = std::vector<std::string>;
using Mode = fs::CrashChoice::Mode;

TEST(KafkaStore, what_is_appended_is_read_back_in_order) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  EXPECT_EQ(rig.append(*log, {"a", "b"})->offsets, (OffsetRange{Offset(0), Offset(2)}));
  EXPECT_EQ(rig.append(*log, {"c"})->offsets, (OffsetRange{Offset(2), Offset(3)}));
  EXPECT_EQ(*StoreRig::read_all(*log), (Strings{"a", "b", "c"}));
}

TEST(KafkaStore, nothing_is_there_before_write_staged) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  ASSERT_TRUE(log->append(make_batch({"a"})));
  EXPECT_EQ(log->offsets().end, Offset(0));
  ASSERT_TRUE(log->append(make_batch({"b"})));
  ASSERT_TRUE(log->log()->write_staged());
  EXPECT_EQ(*StoreRig::read_all(*log), (Strings{"a", "b"}));
}

TEST(KafkaStore, a_clean_stop_leaves_the_marker_and_everything_is_back_without_a_scan) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(rig.append(*rig.log(), {"value-" + std::to_string(i)}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->close());
  EXPECT_TRUE(fs::exists(*rig.disk, "/data/kafka/.kafka_cleanshutdown"));
  EXPECT_TRUE(fs::exists(*rig.disk, "/data/kafka/t-0/00000000000000000050.snapshot"));
  ASSERT_TRUE(rig.open());
  EXPECT_TRUE(rig.recovery.clean);
  EXPECT_EQ(rig.recovery.bytes_scanned, 0U);
  EXPECT_EQ(rig.recovery.notes, Strings());
  EXPECT_FALSE(fs::exists(*rig.disk, "/data/kafka/.kafka_cleanshutdown"));
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), numbered(0, 50));
  EXPECT_FALSE(rig.log()->log()->unclean());
}

TEST(KafkaStore, after_a_kill_all_is_there_and_the_log_says_unclean) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(rig.append(*rig.log(), {"value-" + std::to_string(i)}));
    if (i == 25) {
      ASSERT_TRUE(rig.sync(*rig.log()));
    }
  }
  ASSERT_TRUE(rig.kill());
  EXPECT_FALSE(rig.recovery.clean);
  EXPECT_TRUE(rig.log()->log()->unclean());
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), numbered(0, 50));
  EXPECT_EQ(rig.append(*rig.log(), {"value-50"})->offsets.start, Offset(50));
}

TEST(KafkaStore, a_power_cut_keeps_what_was_synced_and_cuts_the_rest) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(rig.append(*rig.log(), {"value-" + std::to_string(i)}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  for (int i = 20; i < 30; ++i) {
    ASSERT_TRUE(rig.append(*rig.log(), {"value-" + std::to_string(i)}));
  }
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), numbered(0, 20));
}

TEST(KafkaStore, segments_roll_by_size_and_are_named_by_their_first_offset) {
  StoreRig rig;
  rig.log_config.segment_bytes = 300;
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(rig.append(*rig.log(), {"value-" + std::to_string(i)}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  const auto names = *rig.disk->list("/data/kafka/t-0");
  int logs = 0;
  for (const std::string& name : names) {
    const auto parsed = *format::kafka::parse_segment_file_name(name);
    if (!parsed || parsed->file != format::kafka::SegmentFile::log) continue;
    ++logs;
    const auto bytes = *fs::read_file(*rig.disk, "/data/kafka/t-0/" + name, 1000);
    ASSERT_LE(bytes.size(), 300U);
    if (!bytes.empty()) {
      EXPECT_EQ(format::kafka::decode_header(bytes).base_offset, parsed->offset);
    }
  }
  EXPECT_GT(logs, 5);
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), numbered(0, 30));
  ASSERT_TRUE(rig.kill());
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), numbered(0, 30));
}

TEST(KafkaStore, a_failed_write_leaves_nothing_behind_and_later_ones_work) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  ASSERT_TRUE(rig.append(*log, {"a"}));
  ASSERT_TRUE(log->append(make_batch({"b"}, {ProducerId(7), 0, 0, 0})));
  rig.disk->fail_step(rig.disk->steps() + 1, fs::Fault::short_write);
  const auto failed = log->log()->write_staged();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::no_space);
  EXPECT_EQ(log->check_producer(make_batch({"b"}, {ProducerId(7), 0, 0, 0}).info).verdict,
            ProducerState::Verdict::accept);
  EXPECT_EQ(rig.append(*log, {"c"})->offsets.start, Offset(1));
  EXPECT_EQ(*StoreRig::read_all(*log), (Strings{"a", "c"}));
}

TEST(KafkaStore, a_failed_sync_is_final_until_restart) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  ASSERT_TRUE(rig.append(*log, {"a"}));
  rig.disk->fail_path(".log", fs::Fault::eio);
  EXPECT_FALSE(rig.sync(*log));
  rig.disk->clear_faults();
  EXPECT_EQ(rig.append(*log, {"b"}).error().code, Errc::unavailable);
  EXPECT_EQ(*StoreRig::read_all(*log), (Strings{"a"}));
  EXPECT_FALSE(rig.store->close());
  EXPECT_FALSE(fs::exists(*rig.disk, "/data/kafka/.kafka_cleanshutdown"));
}

TEST(KafkaStore, bytes_that_were_reported_lost_by_a_sync_are_written_again_at_start) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.append(*rig.log(), {"a"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.append(*rig.log(), {"b"}));
  rig.disk->fail_step(rig.disk->steps() + 1, fs::Fault::eio);
  EXPECT_FALSE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.kill());  // "b" is still read from memory here
  ASSERT_EQ(*StoreRig::read_all(*rig.log()), (Strings{"a", "b"}));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), (Strings{"a", "b"}));
}

TEST(KafkaStore, damage_below_the_durable_end_is_reported_and_stepped_over) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const std::string big(40'000, 'x');
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(rig.append(*rig.log(), {big + std::to_string(i)}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  rig.disk->flip_bit("/data/kafka/t-0/00000000000000000000.log", 100'000, 3);
  ASSERT_TRUE(rig.kill());
  const auto log = rig.log();
  EXPECT_EQ(log->offsets().end, Offset(8));
  ReadLimits limits;
  limits.bytes_max = 10;
  limits.first_whole = true;
  limits.end = Offset(8);
  EXPECT_TRUE(log->read(Offset(1), limits));
  const auto damaged = log->read(Offset(2), limits);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, Errc::corrupt);
  for (int i = 4; i < 8; ++i) {
    const auto good = log->read(Offset(i), limits);
    ASSERT_TRUE(good) << i << " " << good.error().to_string();
    EXPECT_EQ(good->front().info.first, Offset(i));
  }
}

TEST(KafkaStore, a_torn_tail_is_cut_and_zeros_behind_the_data_too) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.append(*rig.log(), {"a"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  const std::string path = "/data/kafka/t-0/00000000000000000000.log";
  const auto size = rig.disk->info(path)->size;
  for (const auto& tail :
       {std::vector<std::uint8_t>(1 << 20, 0), std::vector<std::uint8_t>(7, 0xff),
        std::vector<std::uint8_t>(200, 0xff)}) {
    rig.disk->append_raw(path, tail);
    ASSERT_TRUE(rig.kill());
    EXPECT_EQ(rig.disk->info(path)->size, size);
    EXPECT_EQ(*StoreRig::read_all(*rig.log()), (Strings{"a"}));
  }
}

TEST(KafkaStore, times_are_found_between_before_and_beyond_the_records) {  // BR-09
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  for (const std::int64_t time : {2, 4, 6, 8}) {
    ASSERT_TRUE(rig.append(*log, make_batch({"x"}, {}, {time})));
  }
  const std::vector<std::int64_t> expected = {0, 0, 1, 1, 2, 2, 3, 3};
  for (std::int64_t at = 1; at <= 8; ++at) {
    const auto found = *log->offset_for_time(Timestamp(at));
    ASSERT_TRUE(found) << at;
    EXPECT_EQ(found->offset, Offset(expected[static_cast<std::size_t>(at - 1)])) << at;
  }
  EXPECT_FALSE(*log->offset_for_time(Timestamp(9)));
}

TEST(KafkaStore, the_largest_timestamp_is_found_in_plain_and_compressed_batches) {  // BR-07
  using format::kafka::Codec;
  for (const Codec codec : {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    StoreRig rig;
    ASSERT_TRUE(rig.open());
    ASSERT_TRUE(rig.append(*rig.log(), make_batch({"a"}, {}, {5})));
    ASSERT_TRUE(rig.append(*rig.log(), make_batch({"b", "c", "d"}, {}, {10, 30, 20}, codec)));
    ASSERT_TRUE(rig.append(*rig.log(), make_batch({"e"}, {}, {7})));
    EXPECT_EQ((*rig.log()->offset_of_max_timestamp())->offset, Offset(2));
    EXPECT_EQ((*rig.log()->offset_of_max_timestamp())->timestamp, Timestamp(30));
    ASSERT_TRUE(rig.sync(*rig.log()));
    ASSERT_TRUE(rig.store->close());
    ASSERT_TRUE(rig.disk->remove("/data/kafka/t-0/00000000000000000000.timeindex"));
    ASSERT_TRUE(rig.open());
    EXPECT_EQ((*rig.log()->offset_of_max_timestamp())->offset, Offset(2));
  }
}

TEST(KafkaStore, producers_are_known_again_after_a_kill) {  // BR-15
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  for (std::int32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(rig.append(*rig.log(), make_batch({"v"}, {ProducerId(9), 0, i, i})));
    if (i == 3) {
      ASSERT_TRUE(rig.sync(*rig.log()));
      ASSERT_TRUE(rig.store->checkpoint());
    }
  }
  ASSERT_TRUE(rig.kill());
  using Verdict = ProducerState::Verdict;
  for (std::int32_t i = 3; i < 8; ++i) {
    const auto check = rig.log()->check_producer(make_batch({"v"}, {ProducerId(9), 0, i, i}).info);
    EXPECT_EQ(check.verdict, Verdict::duplicate) << i;
    EXPECT_EQ(check.original.start, Offset(i));
  }
  EXPECT_EQ(rig.log()->check_producer(make_batch({"v"}, {ProducerId(9), 0, 8, 8}).info).verdict,
            Verdict::accept);
}

TEST(KafkaStore, a_start_reads_only_what_lies_beyond_the_last_recovery_point) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const std::string big(100'000, 'x');
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(rig.append(*rig.log(), {big}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->checkpoint());
  ASSERT_TRUE(rig.append(*rig.log(), {"tail"}));
  ASSERT_TRUE(rig.kill());
  EXPECT_EQ(rig.log()->offsets().end, Offset(21));
  EXPECT_LT(rig.recovery.bytes_scanned, 1000U);
}

TEST(KafkaStore, a_recovery_leaves_points_so_that_the_next_start_reads_next_to_nothing) {
  check_that_a_recovery_leaves_points<StoreRig>();
}

TEST(KafkaStore, a_round_brings_a_point_once_16_mib_lie_beyond_the_last) {
  check_that_a_round_brings_a_point_after_16_mib<StoreRig>();
}

TEST(KafkaStore, what_lies_beyond_the_points_of_many_logs_stays_bounded) {
  check_that_what_a_start_reads_stays_bounded<StoreRig>();
}

TEST(KafkaStore, points_of_many_logs_say_no_more_than_what_is_durable) {
  check_that_points_survive_a_power_cut<StoreRig>();
}

TEST(KafkaStore, the_log_start_survives_and_old_segments_go) {
  StoreRig rig;
  rig.log_config.segment_bytes = 300;
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(rig.append(*rig.log(), {"value-" + std::to_string(i)}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.log()->advance_start(Offset(17)));
  EXPECT_EQ(rig.log()->advance_start(Offset(31)).error().code, Errc::out_of_range);
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), numbered(17, 30));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_EQ(rig.log()->offsets().start, Offset(17));
  const auto retained = rig.store->retain({"t", 0}, Offset(30), rig.clock.now());
  ASSERT_TRUE(retained) << retained.error().to_string();
  EXPECT_GT(retained->segments_removed, 2U);
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), numbered(17, 30));
  ReadLimits limits;
  limits.bytes_max = 100;
  limits.end = Offset(30);
  EXPECT_EQ(rig.log()->read(Offset(16), limits).error().code, Errc::out_of_range);
}

TEST(KafkaStore, retention_by_time_rolls_and_leaves_one_empty_segment) {
  StoreRig rig;
  rig.log_config.retention_ms = 1000;
  ASSERT_TRUE(rig.open());
  const std::int64_t future = rig.clock.now().value() + 86'400'000LL * 3650;
  ASSERT_TRUE(rig.append(*rig.log(), make_batch({"x"}, {}, {future})));  // BR-11
  ASSERT_TRUE(rig.sync(*rig.log()));
  EXPECT_EQ(rig.store->retain({"t", 0}, Offset(1), rig.clock.now())->segments_removed, 0U);
  rig.clock.advance_ms(2000);
  EXPECT_EQ(rig.store->retain({"t", 0}, Offset(1), rig.clock.now())->segments_removed, 1U);
  EXPECT_EQ(rig.log()->offsets(), (OffsetRange{Offset(1), Offset(1)}));
  EXPECT_FALSE(*rig.log()->offset_for_time(Timestamp(0)));
  EXPECT_EQ(rig.append(*rig.log(), {"y"})->offsets.start, Offset(1));
}

TEST(KafkaStore, offsets_and_epochs_go_on_when_retention_took_everything_and_the_power_goes) {
  check_that_offsets_go_on_when_all_expires<StoreRig>(false, true);
}

TEST(KafkaStore, they_go_on_when_the_disk_had_no_room_for_a_note) {
  check_that_offsets_go_on_when_all_expires<StoreRig>(true, true);
}

TEST(KafkaStore, records_are_deleted_on_a_full_disk) {
  check_that_records_are_deleted_on_a_full_disk<StoreRig>();
}

TEST(KafkaStore, what_is_appended_after_damage_in_the_last_block_is_found_again) {
  check_that_records_behind_a_damaged_block_are_found<StoreRig>(
      "/data/kafka/t-0/00000000000000000000.log");
}

TEST(KafkaStore, foreign_bytes_behind_a_sealed_file_cost_nothing) {
  check_that_bytes_behind_a_sealed_file_cost_nothing<StoreRig>(
      "/data/kafka/t-0/00000000000000000000.log");
}

TEST(KafkaStore, a_log_that_is_removed_writes_nothing_any_more) {
  check_that_a_removed_log_writes_nothing<StoreRig>();
}

TEST(KafkaStore, threads_may_work_on_a_log_at_once) {
  check_that_threads_may_work_on_a_log_at_once<StoreRig>();
}

TEST(KafkaStore, the_epoch_does_not_fall_back_when_the_last_record_is_deleted) {
  StoreRig rig;
  rig.log_config.retention_ms = 1;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.log()->log()->begin_epoch(LeaderEpoch(0)));
  ASSERT_TRUE(rig.append(*rig.log(), numbered(0, 5)));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->retain({"t", 0}, Offset(5), Timestamp(2'000'000)));
  ASSERT_TRUE(rig.sync(*rig.log()));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
    EXPECT_GE(rig.log()->log()->epoch(), LeaderEpoch(0));
    EXPECT_EQ(rig.log()->end_of_epoch(LeaderEpoch(0)), (EpochEnd{LeaderEpoch(0), LogPosition(5)}));
    ASSERT_TRUE(rig.sync(*rig.log()));
  }
}

TEST(KafkaStore, truncation_cuts_whole_batches_and_survives) {
  StoreRig rig;
  rig.log_config.segment_bytes = 300;
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(rig.append(*rig.log(),
                           make_batch({"value-" + std::to_string(i)}, {ProducerId(1), 0, i, i})));
  }
  ASSERT_TRUE(rig.sync(*rig.log()));
  const auto cut = rig.log()->log()->truncate(LogPosition(14));
  ASSERT_TRUE(cut) << cut.error().to_string();
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), numbered(0, 14));
  EXPECT_EQ(rig.log()->check_producer(make_batch({"v"}, {ProducerId(1), 0, 14, 14}).info).verdict,
            ProducerState::Verdict::accept);
  ASSERT_TRUE(rig.append(*rig.log(), make_batch({"new"}, {ProducerId(1), 0, 14, 14})));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  auto expected = numbered(0, 14);
  expected.push_back("new");
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), expected);
}

TEST(KafkaStore, an_epoch_whose_records_a_power_cut_took_is_not_begun_again) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.log()->log()->begin_epoch(LeaderEpoch(0)));
  ASSERT_TRUE(rig.append(*rig.log(), {"a"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  const LeaderEpoch second = rig.log()->log()->epoch() + 1;
  ASSERT_TRUE(rig.log()->log()->begin_epoch(second));
  ASSERT_TRUE(rig.append(*rig.log(), {"lost"}));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_EQ(rig.log()->offsets().end, Offset(1));
  EXPECT_GE(rig.log()->log()->epoch(), second);
}

TEST(KafkaStore, after_a_kill_sealed_segments_have_their_indexes_in_files) {
  StoreRig rig;
  rig.log_config.segment_bytes = 600;
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(rig.append(*rig.log(), {"value-" + std::to_string(i)}));
  ASSERT_TRUE(rig.disk->remove("/data/sidecar/kafka.sidecar"));
  ASSERT_TRUE(rig.kill());
  const auto names = *rig.disk->list("/data/kafka/t-0");
  int sealed = 0;
  for (const std::string& name : names) {
    const auto parsed = *format::kafka::parse_segment_file_name(name);
    if (!parsed || parsed->file != format::kafka::SegmentFile::timeindex) continue;
    ++sealed;
    EXPECT_GT(rig.disk->info("/data/kafka/t-0/" + name)->size, 0U) << name;
  }
  EXPECT_GT(sealed, 3);
}

std::vector<std::string> snapshots(const StoreRig& rig) {
  std::vector<std::string> paths;
  const auto names = *rig.disk->list("/data/kafka/t-0");
  for (const std::string& name : names) {
    if (name.ends_with(".snapshot")) paths.push_back("/data/kafka/t-0/" + name);
  }
  return paths;
}

TEST(KafkaStore, a_snapshot_whose_content_a_power_cut_took_does_not_stay) {
  for (const bool sidecar : {true, false}) {
    StoreRig rig;
    rig.log_config.segment_bytes = 300;
    ASSERT_TRUE(rig.open());
    ASSERT_TRUE(rig.append(*rig.log(), {"value"}));
    ASSERT_TRUE(rig.sync(*rig.log()));
    ASSERT_TRUE(rig.store->checkpoint());
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(rig.append(*rig.log(), {"value"}));
    ASSERT_TRUE(rig.sync(*rig.log()));
    std::vector<std::string> torn = snapshots(rig);
    ASSERT_GT(torn.size(), 3U);
    torn.erase(torn.begin() + 1);  // this one had reached the disk
    for (const std::string& path : torn) {
      ASSERT_TRUE((*rig.disk->open(path, fs::OpenMode::write))->truncate(0));
    }
    if (!sidecar) {
      ASSERT_TRUE(rig.disk->remove("/data/sidecar/kafka.sidecar"));
    }
    ASSERT_TRUE(rig.kill());
    for (const std::string& path : torn) EXPECT_FALSE(fs::exists(*rig.disk, path)) << path;
    EXPECT_EQ(snapshots(rig).size(), 1U);
    EXPECT_EQ(rig.log()->offsets().end, Offset(21));
  }
}

TEST(KafkaStore, the_epoch_file_is_there_with_the_first_round_of_an_epoch) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.log()->log()->begin_epoch(LeaderEpoch(4)));
  ASSERT_TRUE(rig.append(*rig.log(), {"a"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  const auto text = *fs::read_file(*rig.disk, "/data/kafka/t-0/leader-epoch-checkpoint", 100);
  EXPECT_EQ(as_text(text), "0\n1\n4 0\n");
  EXPECT_TRUE(fs::exists(*rig.disk, "/data/kafka/t-0/00000000000000000000.index"));
}

TEST(KafkaStore, a_removal_that_failed_can_be_tried_again) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.append(*rig.log(), {"a"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  rig.disk->fail_step(rig.disk->steps() + 1, fs::Fault::eio);
  EXPECT_FALSE(rig.store->remove({"t", 0}));
  EXPECT_TRUE(rig.store->remove({"t", 0}));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_TRUE(rig.store->partitions().empty());
}

TEST(KafkaStore, a_removed_partition_stays_away_and_its_name_can_be_used_again) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.append(*rig.log(), {"old"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->remove({"t", 0}));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_TRUE(rig.store->partitions().empty());
  EXPECT_EQ(rig.log()->offsets().end, Offset(0));
  ASSERT_TRUE(rig.append(*rig.log(), {"new"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), (Strings{"new"}));
}

TEST(KafkaStore, a_foreign_directory_is_refused_and_left_as_it_was) {
  StoreRig rig;
  ASSERT_TRUE(rig.disk->create_directory("/data"));
  ASSERT_TRUE(rig.disk->create_directory("/data/kafka"));
  ASSERT_TRUE(rig.disk->create_directory("/data/kafka/holiday-pictures"));
  const auto opened = rig.open();
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().context.find("holiday-pictures"), std::string::npos);
  EXPECT_FALSE(fs::exists(*rig.disk, "/data/kafka/meta.properties"));
}

TEST(KafkaStore, two_openers_exclude_each_other) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const auto second = KafkaStore::open(*rig.disk, rig.clock, rig.config);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::locked);
}

TEST(KafkaStore, chunks_carry_a_log_over_byte_for_byte) {
  StoreRig from, to;
  from.log_config.segment_bytes = to.log_config.segment_bytes = 500;
  ASSERT_TRUE(from.open());
  ASSERT_TRUE(to.open());
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(from.append(*from.log(), {"value-" + std::to_string(i)}));
  }
  for (LogPosition at(0); at < from.log()->log()->end();) {
    const auto chunk = from.log()->log()->read_chunk(at, 150);
    ASSERT_TRUE(chunk);
    ASSERT_TRUE(to.log()->log()->append_chunk(*chunk));
    at = chunk->end;
  }
  EXPECT_EQ(*StoreRig::read_all(*to.log()), numbered(0, 30));
  const std::string first = "/data/kafka/t-0/00000000000000000000.log";
  EXPECT_EQ(*fs::read_file(*to.disk, first, 1000), *fs::read_file(*from.disk, first, 1000));
}

TEST(KafkaStore, one_wrong_bit_in_a_file_that_says_whose_it_is_costs_nothing) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.append(*rig.log(), {"a", "b"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  const Uuid topic = *rig.store->topic_id({"t", 0});
  const auto killed = rig.disk->crash_state({.mode = Mode::kill});
  rig.store.reset();
  for (const std::string path :
       {"/data/kafka/t-0/partition.metadata", "/data/kafka/meta.properties"}) {
    const auto text = *fs::read_file(*killed, path, 1000);
    for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
      SCOPED_TRACE(path + " byte " + std::to_string(bit / 8) + " bit " + std::to_string(bit % 8));
      rig.disk = killed->crash_state({.mode = Mode::kill});
      rig.disk->flip_bit(path, bit / 8, static_cast<unsigned>(bit % 8));
      ASSERT_TRUE(rig.open());
      ASSERT_NE(rig.store->find({"t", 0}), nullptr);
      EXPECT_EQ(rig.store->topic_id({"t", 0}), topic);
      EXPECT_EQ(*StoreRig::read_all(*rig.log()), (Strings{"a", "b"}));
      rig.store.reset();
    }
  }
}

TEST(KafkaStore, whose_a_partition_is_the_sidecar_says_when_its_own_file_is_gone) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.append(*rig.log(), {"a"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  const std::string path = "/data/kafka/t-0/partition.metadata";
  const auto before = *fs::read_file(*rig.disk, path, 1000);
  rig.disk->corrupt(path, 3, std::vector<std::uint8_t>(20, 0xff));
  ASSERT_TRUE(rig.kill());
  EXPECT_EQ(rig.recovery.notes.size(), 1U);
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), (Strings{"a"}));
  EXPECT_EQ(*fs::read_file(*rig.disk, path, 1000), before);
  // Another topic's, which is whole, is not taken for damage.
  const std::string other = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAPQ";
  rig.disk->corrupt(path, 0, to_vector(as_bytes(other)));
  ASSERT_TRUE(rig.kill());
  EXPECT_EQ(rig.store->topic_id({"t", 0})->to_string(), "AAAAAAAAAAAAAAAAAAAAPQ");
}

}  // namespace
}  // namespace polylog::storage::kafka
