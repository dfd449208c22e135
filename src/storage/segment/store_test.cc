#include "storage/segment/store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "storage/filelog/held_syncs_rig.h"
#include "storage/filelog/sidecar_codec.h"
#include "storage/rolled/checks_rig.h"
#include "storage/rolled/points_rig.h"
#include "storage/segment/store_rig.h"

namespace polylog::storage::segment {
namespace {

using Strings = std::vector<std::string>;
using Mode = fs::CrashChoice::Mode;

std::uint64_t size_of(const StoreRig& rig, const std::string& path) {
  const auto info = rig.disk->info(path);
  return info ? info->size : UINT64_MAX;
}

TEST(SegmentStore, a_shard_is_a_directory_of_numbered_files) {
  StoreRig rig;
  rig.log_config.segment_bytes = 400;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(rig.append(*log, numbered(i, i + 1)));
  EXPECT_EQ(*rig.disk->list("/data/segment/t-0"), (Strings{"0.msg", "1.msg"}));
  EXPECT_EQ(*StoreRig::read_all(*log), numbered(0, 12));
}

TEST(SegmentStore, two_batches_of_one_write_have_each_their_own_offsets_in_input_order) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  const auto first = log->append(make_batch({"a", "b", "c"}));
  const auto second = log->append(make_batch({"d", "e"}));
  ASSERT_TRUE(log->log()->write_staged());
  EXPECT_EQ(first->offsets, (OffsetRange{Offset(0), Offset(3)}));
  EXPECT_EQ(second->offsets, (OffsetRange{Offset(3), Offset(5)}));
  EXPECT_EQ(*StoreRig::read_all(*log), (Strings{"a", "b", "c", "d", "e"}));
}

TEST(SegmentStore, no_file_exceeds_its_limit_and_a_sealed_one_is_never_written_again) {
  StoreRig rig;
  rig.log_config.segment_bytes = 1000;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  std::vector<std::int64_t> sealed;  // when it was last written
  for (int i = 0; i < 100; ++i) {
    rig.clock.advance_ms(10);
    ASSERT_TRUE(rig.append(*log, {std::string(static_cast<std::size_t>(i * 7 % 300), 'x')}));
    const auto names = rig.disk->list("/data/segment/t-0");
    for (std::size_t n = 0; n < names->size(); ++n) {
      const auto info = rig.disk->info("/data/segment/t-0/" + std::to_string(n) + ".msg");
      ASSERT_TRUE(info);
      EXPECT_LE(info->size, 1000U);
      if (n + 1 == names->size()) continue;
      if (n < sealed.size()) {
        EXPECT_EQ(info->modified_ns, sealed[n]) << n;
      } else {
        sealed.push_back(info->modified_ns);
      }
    }
  }
  EXPECT_GT(sealed.size(), 10U);
}

TEST(SegmentStore, the_file_is_left_at_a_ten_thousandth_offset_when_it_is_nine_tenths_full) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  const std::uint64_t one = make_batch({"x"}).bytes.size();
  rig.log_config.segment_bytes = static_cast<std::int64_t>(one * 10'800);
  log->configure(rig.log_config);
  // The batch that holds offset 10,000 finds the file more than nine tenths full.
  for (int i = 0; i < 105; ++i) ASSERT_TRUE(rig.append(*log, Strings(100, "x")));
  EXPECT_EQ(size_of(rig, "/data/segment/t-0/0.msg"), one * 10'000);
  EXPECT_EQ(size_of(rig, "/data/segment/t-0/1.msg"), one * 500);
}

TEST(SegmentStore, a_small_topic_rolls_by_age_too) {
  StoreRig rig;
  rig.log_config.segment_ms = 1000;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  ASSERT_TRUE(rig.append(*log, make_batch({"a"}, {}, {5000})));
  ASSERT_TRUE(rig.append(*log, make_batch({"b"}, {}, {5900})));
  ASSERT_TRUE(rig.append(*log, make_batch({"c"}, {}, {6001})));
  EXPECT_EQ(*rig.disk->list("/data/segment/t-0"), (Strings{"0.msg", "1.msg"}));
}

TEST(SegmentStore, a_log_that_nobody_appends_to_has_its_file_sealed_by_age) {
  StoreRig rig;
  rig.log_config.segment_ms = 60'000;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  const auto empty = rig.log("empty");
  // An old time in a record makes no file old.
  ASSERT_TRUE(rig.append(*log, make_batch({"a", "b"}, {}, {5, 6})));
  ASSERT_TRUE(rig.sync(*log));
  rig.clock.advance_ms(60'000);
  ASSERT_TRUE(rig.store->tend(rig.clock.now()));
  EXPECT_EQ(*rig.disk->list("/data/segment/t-0"), (Strings{"0.msg"}));
  rig.clock.advance_ms(60'000);
  ASSERT_TRUE(rig.store->tend(rig.clock.now()));
  EXPECT_EQ(*rig.disk->list("/data/segment/t-0"), (Strings{"0.msg", "1.msg"}));
  EXPECT_EQ(*rig.disk->list("/data/segment/empty-0"), (Strings{"0.msg"}));
  rig.clock.advance_ms(600'000);
  ASSERT_TRUE(rig.store->tend(rig.clock.now()));
  EXPECT_EQ(*rig.disk->list("/data/segment/t-0"), (Strings{"0.msg", "1.msg"}))
      << "there is nothing in the new one that could be old";
  // What is appended next goes on behind it, after a power cut too.
  for (const Mode mode : {Mode::kill, Mode::lose_all}) {
    ASSERT_TRUE(rig.crash({.mode = mode}));
    EXPECT_EQ(rig.log()->offsets(), (OffsetRange{Offset(0), Offset(2)}));
    EXPECT_EQ(*StoreRig::read_all(*rig.log()), (Strings{"a", "b"}));
  }
  EXPECT_EQ(rig.append(*rig.log(), {"c"})->offsets.start, Offset(2));
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), (Strings{"a", "b", "c"}));
}

TEST(SegmentStore, a_file_is_not_sealed_by_age_while_something_waits_to_be_written_into_it) {
  StoreRig rig;
  rig.log_config.segment_ms = 1000;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  ASSERT_TRUE(rig.append(*log, {"a"}));
  ASSERT_TRUE(log->append(make_batch({"b"})));
  rig.clock.advance_ms(100'000);
  ASSERT_TRUE(rig.store->tend(rig.clock.now()));
  EXPECT_EQ(*rig.disk->list("/data/segment/t-0"), (Strings{"0.msg"}));
  ASSERT_TRUE(log->log()->write_staged());
  EXPECT_EQ(*StoreRig::read_all(*log), (Strings{"a", "b"}));
}

TEST(SegmentStore, what_was_sealed_by_age_expires_by_time_and_by_size) {
  for (const bool by_size : {false, true}) {
    StoreRig rig;
    rig.log_config.segment_ms = 1000;
    (by_size ? rig.log_config.retention_bytes : rig.log_config.retention_ms) = by_size ? 0 : 5000;
    ASSERT_TRUE(rig.open());
    const auto log = rig.log();
    const std::int64_t now = rig.clock.now().value();
    ASSERT_TRUE(rig.append(*log, make_batch({"a", "b"}, {}, {now, now})));
    ASSERT_TRUE(rig.sync(*log));
    rig.clock.advance_ms(20'000);
    ASSERT_TRUE(rig.store->tend(rig.clock.now()));
    ASSERT_TRUE(rig.sync(*log));
    ASSERT_EQ(*rig.disk->list("/data/segment/t-0"), (Strings{"0.msg", "1.msg"}));
    const auto retained = rig.store->retain({"t", 0}, Offset(2), rig.clock.now());
    ASSERT_TRUE(retained) << retained.error().to_string();
    EXPECT_EQ(retained->segments_removed, 1U);
    EXPECT_EQ(*rig.disk->list("/data/segment/t-0"), (Strings{"1.msg"}));
    ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
    EXPECT_EQ(rig.append(*rig.log(), {"c"})->offsets.start, Offset(2)) << by_size;
  }
}

TEST(SegmentStore, a_sidecar_that_failed_is_written_anew_by_tending) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  ASSERT_TRUE(rig.append(*log, {"a"}));
  ASSERT_TRUE(rig.sync(*log));
  rig.disk->fail_path(".sidecar", fs::Fault::eio);
  EXPECT_FALSE(log->advance_start(Offset(1)));
  EXPECT_FALSE(rig.store->tend(rig.clock.now()));
  rig.disk->clear_faults();
  ASSERT_TRUE(rig.store->tend(rig.clock.now()));
  ASSERT_TRUE(log->log()->begin_epoch(LeaderEpoch(1)));
  EXPECT_TRUE(rig.append(*log, {"b"})) << "a new epoch is a fact that must be noted";
  ASSERT_TRUE(rig.sync(*log));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), (Strings{"a", "b"}));
  EXPECT_EQ(rig.log()->log()->epoch(), LeaderEpoch(1));
}

// Grants what it was told to.
class Grants final : public SegmentGrants {
 public:
  Result<void> grant(const TopicPartition& id, std::int64_t number, Offset start) override {
    asked.push_back(id.topic + "-" + std::to_string(id.partition) + " " + std::to_string(number) +
                    " at " + std::to_string(start.value()));
    if (refusals == 0) return {};
    --refusals;
    return fail(code, "no leader");
  }
  Strings asked;
  int refusals = 0;
  Errc code = Errc::would_block;
};

TEST(SegmentStore, the_next_segment_is_asked_for_and_begins_where_the_last_one_ends) {
  StoreRig rig;
  Grants grants;
  rig.config.segment_grants = &grants;
  rig.log_config.segment_bytes = 200;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  grants.refusals = 2;
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(rig.append(*log, numbered(i, i + 1)));
  EXPECT_EQ(grants.asked.front(), "t-0 0 at 0");
  EXPECT_EQ(grants.asked[1], grants.asked[2]) << "an undecided answer is asked for again";
  EXPECT_EQ(grants.asked[1], grants.asked[3]);
  EXPECT_TRUE(grants.asked[1].starts_with("t-0 1 at ")) << grants.asked[1];
  EXPECT_EQ(*StoreRig::read_all(*log), numbered(0, 6));
}

TEST(SegmentStore, a_batch_waits_for_the_grant_and_is_refused_after_three_tries) {
  StoreRig rig;
  Grants grants;
  rig.config.segment_grants = &grants;
  rig.log_config.segment_bytes = 200;
  ASSERT_TRUE(rig.open());
  const auto log = rig.log();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(rig.append(*log, numbered(i, i + 1)));
  grants.asked.clear();
  grants.refusals = 3;
  const auto refused = rig.append(*log, {std::string(150, 'x')});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unavailable);
  EXPECT_EQ(grants.asked.size(), 3U);
  EXPECT_EQ(log->offsets().end, Offset(3));
  EXPECT_TRUE(rig.append(*log, {std::string(150, 'x')})) << "granted now";
  grants.code = Errc::fenced;
  grants.refusals = 1;
  grants.asked.clear();
  EXPECT_FALSE(rig.append(*log, {std::string(150, 'x')}));
  EXPECT_EQ(grants.asked.size(), 1U) << "a refusal is not asked about again";
}

TEST(SegmentStore, a_seek_finds_each_offset_and_time_with_entries_in_memory_in_the_index_or_lost) {
  StoreRig rig;
  rig.log_config.segment_bytes = 1 << 20;
  ASSERT_TRUE(rig.open());
  auto log = rig.log();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(rig.append(
        *log, make_batch({std::string(5000, 'a'), std::string(5000, 'b')}, {}, {i * 10, i * 5})));
  }
  const auto check = [&](const std::string& when) {
    SCOPED_TRACE(when);
    ReadLimits limits;
    limits.bytes_max = 1;
    limits.first_whole = true;
    limits.end = log->offsets().end;
    for (std::int64_t offset = 0; offset < 600; offset += 7) {
      const auto batches = log->read(Offset(offset), limits);
      ASSERT_TRUE(batches) << batches.error().to_string();
      ASSERT_EQ(batches->size(), 1U);
      EXPECT_EQ(batches->front().info.first, Offset(offset));
      EXPECT_EQ(batches->front().info.last, Offset(offset));
    }
    for (std::int64_t at = 1; at < 2990; at += 11) {
      const auto found = log->offset_for_time(Timestamp(at));
      ASSERT_TRUE(found && *found);
      EXPECT_EQ((*found)->offset, Offset((at + 9) / 10 * 2)) << at;
    }
    EXPECT_EQ((*log->offset_of_max_timestamp())->offset, Offset(598));
  };
  check("in memory");
  ASSERT_TRUE(rig.sync(*log));
  ASSERT_TRUE(rig.store->checkpoint());
  check("in the index");
  ASSERT_TRUE(rig.kill());
  log = rig.log();
  check("after a kill");
  ASSERT_TRUE(rig.store->close());
  log.reset();
  ASSERT_TRUE(rig.open());
  log = rig.log();
  EXPECT_EQ(rig.recovery.bytes_scanned, 0U);
  check("after a clean stop");
  log.reset();
  ASSERT_TRUE(rig.store->close());
  rig.store.reset();
  ASSERT_TRUE(fs::remove_tree(*rig.disk, "/data/sidecar/segment.index"));
  ASSERT_TRUE(rig.open());
  EXPECT_GT(rig.recovery.indexes_rebuilt, 0U);
  log = rig.log();
  check("after the index was lost");
}

TEST(SegmentStore, a_batch_that_reached_the_disk_in_part_is_dropped_whole) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  auto log = rig.log();
  ASSERT_TRUE(rig.append(*log, make_batch({"a", "b"}, {ProducerId(7), 0, 0, 1})));
  ASSERT_TRUE(rig.sync(*log));
  const std::uint64_t before = size_of(rig, "/data/segment/t-0/0.msg");
  ASSERT_TRUE(rig.append(*log, make_batch({"c", "d", "e"}, {ProducerId(7), 0, 2, 4})));
  const std::uint64_t after = size_of(rig, "/data/segment/t-0/0.msg");
  log.reset();
  for (std::uint64_t cut = before; cut < after; ++cut) {
    auto copy = rig.disk->crash_state({.mode = Mode::kill});
    StoreRig other;
    other.disk = std::move(copy);
    const auto file = other.disk->open("/data/segment/t-0/0.msg", fs::OpenMode::write);
    ASSERT_TRUE((*file)->truncate(cut));
    ASSERT_TRUE(other.open());
    const auto left = other.log();
    EXPECT_EQ(*StoreRig::read_all(*left), (Strings{"a", "b"})) << cut;
    EXPECT_EQ(size_of(other, "/data/segment/t-0/0.msg"), before);
    EXPECT_EQ(left->check_producer(make_batch({"c"}, {ProducerId(7), 0, 2, 2}).info).verdict,
              ProducerState::Verdict::accept);
  }
}

TEST(SegmentStore, a_whole_batch_is_remembered_over_a_kill) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  const Batch batch = make_batch({"a", "b", "c"}, {ProducerId(7), 0, 0, 2});
  ASSERT_TRUE(rig.append(*rig.log(), batch));
  ASSERT_TRUE(rig.kill());
  const auto check = rig.log()->check_producer(batch.info);
  EXPECT_EQ(check.verdict, ProducerState::Verdict::duplicate);
  EXPECT_EQ(check.original, (OffsetRange{Offset(0), Offset(3)}));
}

TEST(SegmentStore, log_start_and_epochs_survive_a_power_cut) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  auto log = rig.log();
  ASSERT_TRUE(log->log()->begin_epoch(LeaderEpoch(3)));
  ASSERT_TRUE(rig.append(*log, numbered(0, 4)));
  ASSERT_TRUE(log->log()->begin_epoch(LeaderEpoch(5)));
  ASSERT_TRUE(rig.append(*log, numbered(4, 6)));
  ASSERT_TRUE(rig.sync(*log));
  ASSERT_TRUE(log->advance_start(Offset(2)));
  log.reset();
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  log = rig.log();
  EXPECT_EQ(log->offsets(), (OffsetRange{Offset(2), Offset(6)}));
  EXPECT_EQ(log->end_of_epoch(LeaderEpoch(3)), (EpochEnd{LeaderEpoch(3), LogPosition(4)}));
  EXPECT_EQ(log->end_of_epoch(LeaderEpoch(5)), (EpochEnd{LeaderEpoch(5), LogPosition(6)}));
  EXPECT_EQ(*rig.store->topic_id({"t", 0}), *Uuid::parse("AAAAAAAAAAAAAAAAAAAABA"));
  // A batch is of one epoch.
  ReadLimits limits;
  limits.bytes_max = 1 << 20;
  limits.end = Offset(6);
  const auto first = log->read(Offset(2), limits);
  EXPECT_EQ(first->front().info.epoch, LeaderEpoch(3));
  EXPECT_EQ(first->front().info.last, Offset(3));
  EXPECT_EQ(log->read(Offset(4), limits)->front().info.epoch, LeaderEpoch(5));
}

TEST(SegmentStore, offsets_go_on_when_retention_took_everything) {
  StoreRig rig;
  rig.log_config.retention_ms = 1;
  ASSERT_TRUE(rig.open());
  auto log = rig.log();
  ASSERT_TRUE(rig.append(*log, numbered(0, 5)));
  ASSERT_TRUE(rig.sync(*log));
  ASSERT_TRUE(rig.store->retain({"t", 0}, Offset(5), Timestamp(2'000'000)));
  EXPECT_EQ(*rig.disk->list("/data/segment/t-0"), (Strings{"1.msg"}));
  ASSERT_TRUE(rig.sync(*log));
  log.reset();
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_EQ(rig.log()->offsets(), (OffsetRange{Offset(5), Offset(5)}));
  EXPECT_EQ(rig.append(*rig.log(), {"next"})->offsets.start, Offset(5));
}

TEST(SegmentStore, offsets_and_epochs_go_on_when_retention_took_everything_and_the_power_goes) {
  check_that_offsets_go_on_when_all_expires<StoreRig>(false, true);
}

TEST(SegmentStore, they_go_on_when_the_disk_had_no_room_for_a_note) {
  check_that_offsets_go_on_when_all_expires<StoreRig>(true, false);
}

TEST(SegmentStore, records_are_deleted_on_a_full_disk) {
  check_that_records_are_deleted_on_a_full_disk<StoreRig>();
}

TEST(SegmentStore, what_is_appended_after_damage_in_the_last_block_is_found_again) {
  check_that_records_behind_a_damaged_block_are_found<StoreRig>(
      "/data/segment/t-0/0.msg");
}

TEST(SegmentStore, foreign_bytes_behind_a_sealed_file_cost_nothing) {
  check_that_bytes_behind_a_sealed_file_cost_nothing<StoreRig>("/data/segment/t-0/0.msg");
}

TEST(SegmentStore, a_log_that_is_removed_writes_nothing_any_more) {
  check_that_a_removed_log_writes_nothing<StoreRig>();
}

// As conversion and replication write it.
TEST(SegmentStore, a_read_from_a_gap_finds_what_the_epoch_behind_it_has) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  for (const std::int64_t offset : {5, 9}) {
    std::vector<std::uint8_t> frame = to_vector(make_batch({"x"}).bytes.view());
    format::segment::place(frame, Offset(offset));
    const auto log = rig.log()->log();
    ASSERT_TRUE(log->begin_epoch(LeaderEpoch(static_cast<std::int32_t>(offset))));
    ASSERT_TRUE(log->append_chunk(
        {LogPosition(offset), LogPosition(offset + 1), Slice::of(std::move(frame))}));
  }
  ASSERT_TRUE(rig.sync(*rig.log()));
  for (const bool again : {false, true}) {
    if (again) {
      ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
    }
    const auto log = rig.log();
    EXPECT_EQ(log->end_of_epoch(LeaderEpoch(5)), (EpochEnd{LeaderEpoch(5), LogPosition(9)}));
    ReadLimits limits;
    limits.bytes_max = 1 << 20;
    limits.end = Offset(10);
    for (const std::int64_t from : {0, 5, 6, 9}) {
      const auto read = log->read(Offset(from), limits);
      ASSERT_TRUE(read) << read.error().to_string();
      ASSERT_EQ(read->size(), 1U) << from;
      EXPECT_EQ(read->front().info.first, Offset(from <= 5 ? 5 : 9));
      EXPECT_EQ(read->front().info.epoch, LeaderEpoch(from <= 5 ? 5 : 9));
    }
  }
}

TEST(SegmentStore, threads_may_work_on_a_log_at_once) {
  check_that_threads_may_work_on_a_log_at_once<StoreRig>();
}

TEST(SegmentStore, an_append_that_begins_an_epoch_does_not_wait_for_a_sync_of_the_sidecar) {
  StoreRig rig;
  HeldSyncs held(*rig.disk);
  const auto open_index = [&](const std::string& directory) {
    return open_memory_index(*rig.disk, directory);
  };
  auto opened = SegmentStore::open(held, rig.clock, rig.config, open_index);
  ASSERT_TRUE(opened);
  rig.store = std::move(opened->store);
  const auto log = rig.log();
  ASSERT_TRUE(rig.append(*log, numbered(0, 5)));
  const auto during = [&](const std::function<void()>& slow, std::int32_t epoch) {
    held.hold();
    std::thread other(slow);
    EXPECT_TRUE(held.one_waits());
    std::atomic<bool> done = false;
    std::thread append([&] {
      EXPECT_TRUE(log->log()->begin_epoch(LeaderEpoch(epoch)));
      EXPECT_TRUE(rig.append(*log, {"one"}));
      done = true;
    });
    for (int i = 0; i < 3000 && !done; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(done) << "it waits for the sync";
    held.let_go();
    append.join();
    other.join();
  };
  during([&] { EXPECT_TRUE(log->advance_start(Offset(3))); }, 1);
  during([&] { EXPECT_TRUE(rig.sync(*log)); }, 2);
  rig.store.reset();
}

TEST(SegmentStore, epochs_that_the_sidecar_lost_are_unknown_and_no_others) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  auto log = rig.log();
  for (const int epoch : {3, 5, 7}) {
    ASSERT_TRUE(log->log()->begin_epoch(LeaderEpoch(epoch)));
    ASSERT_TRUE(rig.append(*log, numbered(epoch, epoch + 2)));
    ASSERT_TRUE(rig.sync(*log));
  }
  log.reset();
  const std::string path = "/data/sidecar/segment.sidecar";
  const auto bytes = *fs::read_file(*rig.disk, path, 1 << 20);
  int epochs = 0;
  SidecarReader reader(bytes);
  while (const auto record = reader.next()) {
    if (record->type != sidecar_type::epoch_start || epochs++ / 2 != 1) continue;
    rig.disk->flip_bit(path, record->position + 5, 3);  // both copies of the second one
  }
  ASSERT_TRUE(rig.kill());
  ASSERT_EQ(rig.recovery.notes.size(), 1U);
  EXPECT_NE(rig.recovery.notes[0].find("leader epochs"), std::string::npos);
  log = rig.log();
  EXPECT_EQ(StoreRig::read_all(*log)->size(), 6U);
  for (int start = 0; start < 2; ++start) {
    ReadLimits limits;
    limits.bytes_max = 1 << 20;
    limits.end = Offset(6);
    EXPECT_EQ(log->read(Offset(0), limits)->front().info.epoch, no_epoch);
    EXPECT_EQ(log->read(Offset(2), limits)->front().info.epoch, no_epoch);
    EXPECT_EQ(log->read(Offset(4), limits)->front().info.epoch, LeaderEpoch(7));
    EXPECT_EQ(log->first_epoch(), no_epoch);
    EXPECT_EQ(log->end_of_epoch(LeaderEpoch(3)), EpochEnd());
    EXPECT_EQ(log->end_of_epoch(LeaderEpoch(5)), EpochEnd());
    EXPECT_EQ(log->end_of_epoch(LeaderEpoch(7)), (EpochEnd{LeaderEpoch(7), LogPosition(6)}));
    EXPECT_GE(log->log()->epoch(), LeaderEpoch(7));
    log.reset();
    ASSERT_TRUE(rig.kill());
    log = rig.log();
  }
}

TEST(SegmentStore, what_is_wrong_with_the_index_is_said_at_a_creation_too) {
  StoreRig rig;
  Strings said;
  rig.config.report = [&](const std::string& line) { said.push_back(line); };
  int tries = 0;
  using Index = Result<std::unique_ptr<OrderedIndex>>;
  const auto open_index = [&](const std::string& directory) -> Index {
    if (tries++ == 0) return fail(Errc::corrupt, "noise");
    return open_memory_index(*rig.disk, directory);
  };
  ASSERT_TRUE(fs::create_directories(*rig.disk, "/data/sidecar/segment.index"));
  auto opened = SegmentStore::open(*rig.disk, rig.clock, rig.config, open_index);
  ASSERT_TRUE(opened);
  rig.store = std::move(opened->store);
  ASSERT_TRUE(rig.append(*rig.log(), numbered(0, 1)));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("does not read and is made anew: noise"), std::string::npos) << said[0];
  rig.store.reset();
}

TEST(SegmentStore, a_removed_partition_does_not_come_back_and_its_name_is_free) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.append(*rig.log(), {"old"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.store->remove({"t", 0}));
  ASSERT_TRUE(rig.append(*rig.log(), {"new"}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_EQ(*StoreRig::read_all(*rig.log()), Strings{"new"});
}

TEST(SegmentStore, a_creation_that_was_refused_can_be_tried_again) {
  StoreRig rig;
  Grants grants;
  rig.config.segment_grants = &grants;
  ASSERT_TRUE(rig.open());
  grants.code = Errc::fenced;
  grants.refusals = 1;
  const Uuid first = *Uuid::parse("AAAAAAAAAAAAAAAAAAAABA");
  EXPECT_FALSE(rig.store->create({"t", 0}, first, rig.log_config));
  const Uuid second = *Uuid::parse("AAAAAAAAAAAAAAAAAAAABQ");
  const auto made = rig.store->create({"t", 0}, second, rig.log_config);
  ASSERT_TRUE(made) << made.error().to_string();
  ASSERT_TRUE(rig.append(**made, {"a"}));
  ASSERT_TRUE(rig.sync(**made));
  ASSERT_TRUE(rig.crash({.mode = Mode::lose_all}));
  EXPECT_EQ(rig.store->topic_id({"t", 0}), second);
}

TEST(SegmentStore, damage_below_the_durable_end_is_stepped_over_and_above_it_cut) {
  StoreRig rig;
  ASSERT_TRUE(rig.open());
  auto log = rig.log();
  const std::string text(3000, 'x');
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(rig.append(*log, {text + std::to_string(i)}));
  ASSERT_TRUE(rig.sync(*log));
  log.reset();
  const auto file = rig.disk->open("/data/segment/t-0/0.msg", fs::OpenMode::write);
  const std::vector<std::uint8_t> flipped{0xff};
  ASSERT_TRUE((*file)->write(100'000, flipped));
  ASSERT_TRUE(rig.kill());
  log = rig.log();
  EXPECT_EQ(log->offsets(), (OffsetRange{Offset(0), Offset(100)}));
  EXPECT_FALSE(rig.recovery.notes.empty());
  ReadLimits limits;
  limits.bytes_max = 1;
  limits.first_whole = true;
  limits.end = Offset(100);
  int lost = 0;
  for (std::int64_t offset = 0; offset < 100; ++offset) {
    const auto batches = log->read(Offset(offset), limits);
    if (!batches) {
      EXPECT_EQ(batches.error().code, Errc::corrupt);
      ++lost;
    } else if (batches->empty() || batches->front().info.first != Offset(offset)) {
      ++lost;
    } else {
      const auto stored = format::segment::decode(batches->front().bytes.view());
      EXPECT_EQ(as_text(*stored->record.value), text + std::to_string(offset));
    }
  }
  EXPECT_GE(lost, 1);
  EXPECT_LE(lost, 23) << "no more than the rest of one block";
}

TEST(SegmentStore, stray_names_are_left_alone_and_said) {
  StoreRig rig;
  ASSERT_TRUE(fs::create_directories(*rig.disk, "/data/segment/what is this"));
  ASSERT_TRUE(rig.disk->open("/data/segment/readme", fs::OpenMode::create));
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.recovery.notes.size(), 2U);
  EXPECT_TRUE(rig.store->partitions().empty());
}

TEST(SegmentStore, shard_names_are_read_back_exactly) {
  for (const TopicPartition& id :
       {TopicPartition{"a", 0}, TopicPartition{"a-b", 17}, TopicPartition{"a-1", 2147483647}}) {
    EXPECT_EQ(parse_shard_name(shard_name(id)), id);
  }
  for (const char* name : {"a", "-1", "a-", "a-01", "a--", "a-1x", "a-2147483648", "a-0.removed"}) {
    EXPECT_FALSE(parse_shard_name(name)) << name;
  }
}

TEST(SegmentStore, a_recovery_leaves_points_so_that_the_next_start_reads_next_to_nothing) {
  check_that_a_recovery_leaves_points<StoreRig>();
}

TEST(SegmentStore, a_round_brings_a_point_once_16_mib_lie_beyond_the_last) {
  check_that_a_round_brings_a_point_after_16_mib<StoreRig>();
}

TEST(SegmentStore, what_lies_beyond_the_points_of_many_logs_stays_bounded) {
  check_that_what_a_start_reads_stays_bounded<StoreRig>();
}

TEST(SegmentStore, points_of_many_logs_say_no_more_than_what_is_durable) {
  check_that_points_survive_a_power_cut<StoreRig>();
}

}  // namespace
}  // namespace polylog::storage::segment
