#include "convert/convert.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "convert/convert_rig.h"
#include "convert/marker.h"
#include "journal/journal.h"

namespace polylog::convert {
namespace {

using format::kafka::BatchOptions;
using format::kafka::Codec;

constexpr Codec codecs[] = {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd};

class Convert : public ConvertRig {
 protected:
  // Several topics and partitions, of records that have everything.
  void fill(Directory& directory, Layout layout, std::uint32_t seed, int batches) {
    RandomRecords random(seed);
    make_topic(directory, "a.b", layout, 3,
               {{"max.message.bytes", "2000000"}, {"internal.segment.bytes", "40000"}});
    make_topic(directory, "empty", layout, 2);
    for (int i = 0; i < batches; ++i) {
      std::vector<OwnedRecord> records(random.below(6) + 1);
      for (std::size_t k = 0; k < records.size(); ++k) {
        records[k] = random.record();
        records[k].offset = static_cast<std::int64_t>(k);
      }
      BatchOptions batch;
      batch.codec = codecs[random.below(5)];
      if (random.below(3) == 0) {
        batch.producer_id = ProducerId(1000 + i);
        batch.producer_epoch = 0;
        batch.base_sequence = 0;
      }
      append(directory, "a.b", static_cast<std::int32_t>(random.below(3)),
             batch_of(records, batch));
    }
  }

  void expect_equal(const std::string& from, Layout from_layout, const std::string& to,
                    Layout to_layout) {
    const auto before = topics_of(from), after = topics_of(to);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(after[i].name, before[i].name);
      EXPECT_EQ(after[i].id, before[i].id);
      EXPECT_EQ(after[i].partitions, before[i].partitions);
      EXPECT_EQ(after[i].layout, broker::layout_name(to_layout));
      auto configs = before[i].configs;
      configs["polylog.layout"] = after[i].layout;
      EXPECT_EQ(after[i].configs, configs);
      for (std::int32_t p = 0; p < before[i].partitions; ++p) {
        const Found a = read(from, from_layout, before[i].name, p);
        const Found b = read(to, to_layout, before[i].name, p);
        EXPECT_EQ(a.start, b.start) << before[i].name << "-" << p;
        EXPECT_EQ(a.end, b.end) << before[i].name << "-" << p;
        EXPECT_EQ(a.records, b.records) << before[i].name << "-" << p;
      }
    }
  }
};

class EveryPair : public Convert,
                  public testing::WithParamInterface<std::pair<storage::Layout, storage::Layout>> {
};

TEST_P(EveryPair, keeps_topics_and_records) {
  const auto [from, to] = GetParam();
  Directory directory = open_directory(source);
  fill(directory, from, 1, 120);
  close(directory);
  const Summary summary = converted(source, target, to);
  EXPECT_EQ(summary.topics, 2U);
  EXPECT_EQ(summary.partitions, 5U);
  EXPECT_GT(summary.records, 120U);
  EXPECT_FALSE(summary.resumed);
  EXPECT_FALSE(fs::exists(*disk, std::string(target) + "/conversion.unfinished"));
  EXPECT_FALSE(fs::exists(*disk, std::string(target) + "/conversion.scratch"));
  expect_equal(source, from, target, to);
  // And what it made can be converted again.
  const std::string back = "/polylog-test/back";
  converted(target, back, from);
  expect_equal(source, from, back, from);
}

TEST_P(EveryPair, goes_on_where_a_killed_run_was) {
  const auto [from, to] = GetParam();
  Directory directory = open_directory(source);
  fill(directory, from, 2, 60);
  close(directory);
  // Times it may die at: every step of the run, counted first.
  const std::uint64_t begun = disk->steps();
  const auto untouched = disk->crash_state({.mode = fs::CrashChoice::Mode::keep_all});
  converted(source, target, to);
  const std::uint64_t steps = disk->steps() - begun;
  ASSERT_GT(steps, 60U);
  const fs::CrashChoice::Mode modes[] = {fs::CrashChoice::Mode::kill,
                                         fs::CrashChoice::Mode::lose_all};
  for (std::uint64_t k = 1; k <= 24; ++k) {
    SCOPED_TRACE("step " + std::to_string(steps * k / 25) + " of " + std::to_string(steps));
    disk = untouched->crash_state({.mode = fs::CrashChoice::Mode::keep_all});
    disk->crash_at(disk->steps() + steps * k / 25, true);
    ASSERT_FALSE(run(options(source, target, to)));
    disk = disk->crash_state({.mode = modes[k % 2]});
    const Summary summary = converted(source, target, to);
    if (::testing::Test::HasFailure()) return;
    EXPECT_GT(summary.records, 60U);
    expect_equal(source, from, target, to);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, EveryPair,
    testing::Values(std::pair(storage::Layout::kafka, storage::Layout::rocketmq),
                    std::pair(storage::Layout::rocketmq, storage::Layout::kafka),
                    std::pair(storage::Layout::kafka, storage::Layout::kafka),
                    std::pair(storage::Layout::rocketmq, storage::Layout::rocketmq),
                    std::pair(storage::Layout::kafka, storage::Layout::segment),
                    std::pair(storage::Layout::segment, storage::Layout::kafka),
                    std::pair(storage::Layout::rocketmq, storage::Layout::segment),
                    std::pair(storage::Layout::segment, storage::Layout::rocketmq),
                    std::pair(storage::Layout::segment, storage::Layout::segment)),
    [](const auto& pair) {
      return std::string(broker::layout_name(pair.param.first)) + "_to_" +
             std::string(broker::layout_name(pair.param.second));
    });

// Offsets that have no record: below, between, behind, all.
class Offsets : public Convert {
 protected:
  void SetUp() override {
    Directory directory = open_directory(source);
    make_topic(directory, "t", Layout::kafka, 6);
    RandomRecords random(3);
    const auto at = [&](std::int64_t offset) {
      OwnedRecord record = random.record();
      record.offset = offset;
      return record;
    };
    put(directory, "t", 0, batch_of({at(5), at(7), at(40)}));
    put(directory, "t", 0, batch_of({at(41), at(1000)}, {}, 1500));
    put(directory, "t", 1, batch_of({at(0), at(1), at(2), at(3)}));
    put(directory, "t", 1, batch_of({at(4), at(9)}));
    EXPECT_TRUE(log(directory, 1)->advance_start(Offset(2)));
    put(directory, "t", 2, batch_of({at(0), at(77)}));
    EXPECT_TRUE(log(directory, 2)->advance_start(Offset(78)));
    put(directory, "t", 3, batch_of({at(5'000'000)}));
    EXPECT_TRUE(log(directory, 3)->advance_start(Offset(5'000'000)));
    put(directory, "t", 4, batch_of({at(0), at(50)}));
    EXPECT_TRUE(log(directory, 4)->advance_start(Offset(20)));
    close(directory);
  }
  static std::shared_ptr<storage::PartitionLog> log(Directory& directory, std::int32_t partition) {
    return directory.stores.at(Layout::kafka)->find({"t", partition});
  }
  void check(const std::string& path, Layout layout) {
    const std::pair<std::int64_t, std::int64_t> ranges[] = {
        {0, 1500}, {2, 10}, {78, 78}, {5'000'000, 5'000'001}, {20, 51}, {0, 0}};
    for (std::int32_t p = 0; p < 6; ++p) {
      const Found found = read(path, layout, "t", p);
      EXPECT_EQ(std::pair(found.start, found.end), ranges[p]) << p;
      EXPECT_EQ(found.records, read(source, Layout::kafka, "t", p).records) << p;
    }
  }
};

TEST_F(Offsets, stay_as_they_are_whatever_is_missing) {
  check(source, Layout::kafka);
  const Summary summary = converted(source, target, Layout::rocketmq);
  EXPECT_EQ(summary.records, 5U + 4 + 0 + 1 + 1);
  EXPECT_EQ(summary.offsets_without_record, 1500U - 5 + (8 - 4) + 30);
  check(target, Layout::rocketmq);
  converted(target, "/polylog-test/2", Layout::rocketmq);
  check("/polylog-test/2", Layout::rocketmq);
  converted("/polylog-test/2", "/polylog-test/3", Layout::kafka);
  check("/polylog-test/3", Layout::kafka);
  converted("/polylog-test/3", "/polylog-test/4", Layout::kafka);
  check("/polylog-test/4", Layout::kafka);
}

TEST_F(Offsets, stay_in_the_segment_layout_too) {
  const Summary summary = converted(source, target, Layout::segment);
  EXPECT_EQ(summary.records, 5U + 4 + 0 + 1 + 1);
  EXPECT_EQ(summary.offsets_without_record, 1500U - 5 + (8 - 4) + 30);
  check(target, Layout::segment);
  // Opened and stopped again, as by a broker that had nothing to do.
  for (int i = 0; i < 2; ++i) {
    Directory directory = open_directory(target);
    close(directory);
    check(target, Layout::segment);
  }
  converted(target, "/polylog-test/2", Layout::segment);
  check("/polylog-test/2", Layout::segment);
  converted("/polylog-test/2", "/polylog-test/3", Layout::rocketmq);
  check("/polylog-test/3", Layout::rocketmq);
  converted("/polylog-test/3", "/polylog-test/4", Layout::segment);
  check("/polylog-test/4", Layout::segment);
  converted("/polylog-test/4", "/polylog-test/5", Layout::kafka);
  check("/polylog-test/5", Layout::kafka);
}

TEST_F(Offsets, survive_a_kill_of_the_broker_that_serves_them) {
  for (const Layout layout : {Layout::kafka, Layout::rocketmq, Layout::segment}) {
    const std::string name(broker::layout_name(layout));
    SCOPED_TRACE(name);
    converted(source, "/polylog-test/" + name, layout);
    Directory directory = open_directory("/polylog-test/" + name);
    const auto killed = disk->crash_state({.mode = fs::CrashChoice::Mode::lose_all});
    directory = {};
    disk = killed->crash_state({.mode = fs::CrashChoice::Mode::keep_all});
    check("/polylog-test/" + name, layout);
  }
}

TEST_F(Offsets, go_on_behind_what_was_converted) {
  for (const Layout layout : {Layout::rocketmq, Layout::segment, Layout::kafka}) {
    const std::string to = "/polylog-test/" + std::string(broker::layout_name(layout));
    SCOPED_TRACE(to);
    converted(source, to, layout);
    Directory directory = open_directory(to);
    for (std::int32_t p = 0; p < 6; ++p) append(directory, "t", p, batch_of({OwnedRecord()}));
    close(directory);
    const std::int64_t ends[] = {1501, 11, 79, 5'000'002, 52, 1};
    for (std::int32_t p = 0; p < 6; ++p) EXPECT_EQ(read(to, layout, "t", p).end, ends[p]) << p;
  }
}

TEST_F(Offsets, go_on_where_a_killed_run_was) {
  const auto untouched = disk->crash_state({.mode = fs::CrashChoice::Mode::keep_all});
  for (const Layout layout : {Layout::rocketmq, Layout::segment}) {
    disk = untouched->crash_state({.mode = fs::CrashChoice::Mode::keep_all});
    const std::uint64_t begun = disk->steps();
    converted(source, target, layout);
    const std::uint64_t steps = disk->steps() - begun;
    for (std::uint64_t k = 1; k < 20; ++k) {
      SCOPED_TRACE(std::string(broker::layout_name(layout)) + ", " + std::to_string(k));
      disk = untouched->crash_state({.mode = fs::CrashChoice::Mode::keep_all});
      disk->crash_at(disk->steps() + steps * k / 20, true);
      ASSERT_FALSE(run(options(source, target, layout)));
      disk = disk->crash_state(
          {.mode = k % 2 == 0 ? fs::CrashChoice::Mode::kill : fs::CrashChoice::Mode::lose_all});
      converted(source, target, layout);
      check(target, layout);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST_F(Convert, timestamps_of_the_store_are_kept_where_readers_see_them) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 1, {{"message.timestamp.type", "LogAppendTime"}});
  BatchOptions stamped;
  stamped.append_time = Timestamp(1'600'000'000'123);
  put(directory, "t", 0, batch_of({OwnedRecord{0, 5, {}, "x", {}}}, stamped));
  put(directory, "t", 0, batch_of({OwnedRecord{1, 6, {}, "y", {}}}));
  close(directory);
  converted(source, target, Layout::rocketmq);
  converted(target, "/polylog-test/2", Layout::rocketmq);
  converted("/polylog-test/2", "/polylog-test/3", Layout::kafka);
  const Found found = read("/polylog-test/3", Layout::kafka, "t", 0);
  ASSERT_EQ(found.records.size(), 2U);
  EXPECT_EQ(found.records[0].timestamp, 1'600'000'000'123);
  EXPECT_EQ(found.records[1].timestamp, 6);
}

TEST_F(Convert, the_brokers_own_topics_stay_in_kafkas_layout_byte_for_byte) {
  Directory directory = open_directory(source);
  make_topic(directory, offsets_topic, Layout::kafka, 50, {{"cleanup.policy", "compact"}});
  make_topic(directory, "t", Layout::kafka, 1);
  const std::vector<GroupOffset> offsets{{"g", {"t", 0}, 17}};
  put(directory, offsets_topic, partition_of_group("g", 50),
      kafka_batch(*offsets_batch(offsets, Timestamp(1))));
  BatchOptions transactional;
  transactional.transactional = true;
  transactional.producer_id = ProducerId(4000);
  transactional.producer_epoch = 3;
  transactional.base_sequence = 0;
  put(directory, offsets_topic, 7, batch_of({OwnedRecord()}, transactional));
  format::kafka::Marker marker;
  marker.commit = true;
  marker.offset = Offset(1);
  marker.epoch = LeaderEpoch(2);
  marker.producer_id = ProducerId(4000);
  marker.producer_epoch = 3;
  put(directory, offsets_topic, 7, kafka_batch(format::kafka::build_marker(marker)));
  close(directory);
  converted(source, target, Layout::rocketmq);
  const auto topics = topics_of(target);
  ASSERT_EQ(topics.size(), 2U);
  EXPECT_EQ(topics[0].layout, "kafka");
  EXPECT_EQ(topics[1].layout, "rocketmq");
  for (const std::int32_t p : {7, partition_of_group("g", 50)}) {
    const std::string file =
        "/kafka/__consumer_offsets-" + std::to_string(p) + "/00000000000000000000.log";
    EXPECT_EQ(*fs::read_file(*disk, source + file, 1 << 20),
              *fs::read_file(*disk, target + file, 1 << 20));
  }
  // Ids that producers have are not given again.
  auto catalog = meta::open_embedded_catalog(*disk, std::string(target) + "/meta", {});
  EXPECT_EQ((*catalog)->reserve_producer_ids(1)->first, 4001);
}

TEST_F(Convert, epochs_that_clients_saw_are_not_given_again) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 1);
  put(directory, "t", 0, batch_of({OwnedRecord()}));
  const auto log = directory.stores.at(Layout::kafka)->find({"t", 0})->log();
  ASSERT_TRUE(log->begin_epoch(LeaderEpoch(9)));
  close(directory);
  converted(source, target, Layout::rocketmq);
  directory = open_directory(target);
  const auto queue = directory.stores.at(Layout::rocketmq)->find({"t", 0});
  EXPECT_GE(queue->log()->epoch(), LeaderEpoch(9));
  // As the broker's first append begins one; who read under an earlier one finds all there still.
  ASSERT_TRUE(queue->log()->begin_epoch(queue->log()->epoch() + 1));
  EXPECT_EQ(queue->end_of_epoch(LeaderEpoch(2)), (EpochEnd{LeaderEpoch(0), LogPosition(1)}));
}

// Consumers ask where the epoch ended under which they read last.
TEST_F(Convert, leader_epochs_end_where_they_ended_in_layouts_that_know_them) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 1);
  std::int64_t next = 0;
  for (const std::int32_t epoch : {0, 0, 1, 4, 4, 7}) {
    std::vector<OwnedRecord> records(3);
    for (OwnedRecord& record : records) record.offset = next++;
    Batch batch = batch_of(records);
    std::vector<std::uint8_t> bytes = to_vector(batch.bytes.view());
    format::kafka::patch_leader_epoch(
        format::kafka::HeaderBytes(bytes.data(), format::kafka::header_bytes), LeaderEpoch(epoch));
    put(directory, "t", 0, kafka_batch(std::move(bytes)));
  }
  close(directory);
  const auto epochs_in = [&](const std::string& path, Layout layout) {
    Directory opened = open_directory(path);
    const auto log = opened.stores.at(layout)->find({"t", 0});
    std::vector<EpochEnd> ends;
    for (std::int32_t epoch = 0; epoch < 8; ++epoch) {
      ends.push_back(log->end_of_epoch(LeaderEpoch(epoch)));
    }
    EXPECT_EQ(log->first_epoch(), LeaderEpoch(0));
    close(opened);
    return ends;
  };
  const std::vector<EpochEnd> wanted = epochs_in(source, Layout::kafka);
  EXPECT_EQ(wanted[3], (EpochEnd{LeaderEpoch(1), LogPosition(9)}));
  // Also where a run was cut off, and the next one goes on.
  const auto untouched = disk->crash_state({.mode = fs::CrashChoice::Mode::keep_all});
  const std::uint64_t begun = disk->steps();
  converted(source, target, Layout::segment);
  const std::uint64_t steps = disk->steps() - begun;
  EXPECT_EQ(epochs_in(target, Layout::segment), wanted);
  const std::string back = "/polylog-test/back";
  converted(target, back, Layout::kafka);
  EXPECT_EQ(epochs_in(back, Layout::kafka), wanted);
  for (std::uint64_t k = 1; k < 12; ++k) {
    disk = untouched->crash_state({.mode = fs::CrashChoice::Mode::keep_all});
    disk->crash_at(disk->steps() + steps * k / 12, true);
    ASSERT_FALSE(run(options(source, target, Layout::segment)));
    disk = disk->crash_state({.mode = fs::CrashChoice::Mode::kill});
    converted(source, target, Layout::segment);
    EXPECT_EQ(epochs_in(target, Layout::segment), wanted) << k;
  }
}

// ------------------------------------------------------------------------------------ refusals

TEST_F(Convert, refuses_a_target_that_holds_anything) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 1);
  close(directory);
  ASSERT_TRUE(fs::create_directories(*disk, std::string(target) + "/photos"));
  const std::string before = disk->dump_tree();
  refused(options(source, target, Layout::rocketmq), {target, "not empty"});
  refused(options(source, source, Layout::rocketmq), {"in each other"});
  refused(options(source, std::string(source) + "/x", Layout::rocketmq), {"in each other"});
  refused(options("/polylog-test/none", "/polylog-test/2", Layout::kafka), {"/polylog-test/none"});
  refused(options(std::string(target) + "/photos", "/polylog-test/2", Layout::kafka),
          {"neither", "Kafka log directory"});
  EXPECT_EQ(disk->dump_tree(), before);
}

TEST_F(Convert, refuses_an_unfinished_directory_of_another_conversion) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 1);
  append(directory, "t", 0, batch_of({OwnedRecord()}));
  close(directory);
  Options stopped = options(source, target, Layout::rocketmq);
  stopped.stop = [] { return true; };
  refused(stopped, {"goes on"});
  refused(options(source, target, Layout::kafka), {"unfinished", "rocketmq"});
  refused(options(target, "/polylog-test/2", Layout::kafka), {"unfinished"});
  EXPECT_FALSE(check_finished(*disk, target));
  EXPECT_TRUE(converted(source, target, Layout::rocketmq).resumed);
  EXPECT_TRUE(check_finished(*disk, target));
  refused(options(source, target, Layout::rocketmq), {"not empty"});
}

TEST_F(Convert, refuses_a_source_that_somebody_runs_on) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 1);
  refused(options(source, target, Layout::rocketmq), {source, "in use"});
  close(directory);
  const auto held = disk->lock(std::string(source) + "/.lock");
  refused(options(source, target, Layout::rocketmq), {source, "in use"});
  EXPECT_FALSE(fs::exists(*disk, target));
}

// They are not in the source's files yet, which a conversion doesn't change.
TEST_F(Convert, refuses_a_source_whose_journal_holds_records) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 1);
  close(directory);
  journal::Options journal;
  journal.root = source;
  journal.directory = std::string(source) + "/journal";
  journal.bytes = journal::bytes_min;
  journal.own_thread = false;
  const std::string path = std::string(source) + "/kafka/t-0/00000000000000000000.log";
  {
    const auto opened = journal::Journal::open(*disk, journal);
    ASSERT_TRUE(opened);
    const auto file = (*opened)->file_system().open(path, fs::OpenMode::write);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write((*file)->info()->size, as_bytes("not whole")));
    ASSERT_TRUE((*opened)->cover(std::span(&*file, 1)));
  }
  refused(options(source, target, Layout::rocketmq), {source, "journal holds records"});
  EXPECT_FALSE(fs::exists(*disk, target));
}

TEST_F(Convert, stops_at_records_that_the_layout_can_not_hold) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 2);
  append(directory, "t", 1, batch_of({OwnedRecord(), OwnedRecord{1, 1, {}, "x", {}}}));
  BatchOptions transactional;
  transactional.transactional = true;
  transactional.producer_id = ProducerId(1);
  transactional.producer_epoch = 0;
  transactional.base_sequence = 0;
  append(directory, "t", 1, batch_of({OwnedRecord()}, transactional));
  close(directory);
  refused(options(source, target, Layout::rocketmq),
          {"topic t", "partition 1", "offset 2", "transaction"});
  EXPECT_FALSE(check_finished(*disk, target));
  // In Kafka's own layout they are welcome.
  converted(source, "/polylog-test/2", Layout::kafka);
}

TEST_F(Convert, stops_at_a_value_over_the_limit) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 1);
  put(directory, "t", 0, batch_of({OwnedRecord{0, 1, {}, std::string(70'000, 'x'), {}}}));
  close(directory);
  refused(options(source, target, Layout::rocketmq),
          {"topic t", "partition 0", "offset 0", "commit log file"});
}

TEST_F(Convert, refuses_settings_and_names_that_the_layout_can_not_keep) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 1, {{"cleanup.policy", "compact"}});
  close(directory);
  refused(options(source, target, Layout::rocketmq), {"topic t", "cleanup.policy"});
  directory = open_directory("/polylog-test/2");
  make_topic(directory, std::string(200, 'n'), Layout::kafka, 1);
  close(directory);
  refused(options("/polylog-test/2", target, Layout::rocketmq), {"127", "--exclude"});
  EXPECT_FALSE(fs::exists(*disk, target));
  Options without = options("/polylog-test/2", target, Layout::rocketmq);
  without.exclude = {std::string(200, 'n')};
  EXPECT_TRUE(run(without));
  without.target = "/polylog-test/3";
  without.exclude = {"x"};
  refused(without, {"--exclude x"});
}

TEST_F(Convert, a_flipped_bit_is_no_success) {
  Directory directory = open_directory(source);
  make_topic(directory, "t", Layout::kafka, 1);
  for (int i = 0; i < 20; ++i) append(directory, "t", 0, batch_of({OwnedRecord()}));
  close(directory);
  converted(source, target, Layout::rocketmq);
  Options again = options(source, target, Layout::rocketmq);
  again.verify_only = true;
  EXPECT_TRUE(run(again));
  const std::string before = disk->dump_tree();
  disk->flip_bit(std::string(target) + "/rocketmq/commitlog/00000000000000000000", 500, 3);
  refused(again, {"topic t", "partition 0", "differs"});
  EXPECT_EQ(disk->dump_tree(), before);
  disk->flip_bit(std::string(source) + "/kafka/t-0/00000000000000000000.log", 500, 3);
  refused(options(source, "/polylog-test/2", Layout::rocketmq), {"topic t", "partition 0"});
}

TEST_F(Convert, progress_comes_to_all_there_is) {
  Directory directory = open_directory(source);
  fill(directory, Layout::kafka, 5, 50);
  close(directory);
  Options wanted = options(source, target, Layout::rocketmq);
  Progress last[2];
  wanted.progress = [&](const Progress& progress) {
    EXPECT_LE(progress.offsets_done, progress.offsets_total);
    last[progress.phase == Progress::Phase::comparing] = progress;
  };
  const auto summary = run(wanted);
  ASSERT_TRUE(summary);
  EXPECT_EQ(last[0].offsets_done, summary->records);
  EXPECT_EQ(last[0].bytes_done, summary->bytes_copied);
  EXPECT_EQ(last[1].offsets_total, summary->records);
}

}  // namespace
}  // namespace polylog::convert
