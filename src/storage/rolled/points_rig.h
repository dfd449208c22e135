#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "record/producers.h"
#include "storage/filelog/sidecar.h"
#include "storage/rolled/log.h"
#include "storage/rolled/store_rig.h"

// Test only: how much a start reads, of the stores in each layout of rolled logs.
namespace polylog::storage {

inline SidecarState noted_in(fs::FileSystem& on, const std::string& sidecar_path) {
  SidecarState state;
  const auto bytes = fs::read_file(on, sidecar_path, 1 << 20);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  if (bytes) decode_sidecar(*bytes, state);
  return state;
}

inline std::uint64_t bytes_to_scan(PartitionLog& log) {
  return dynamic_cast<RolledLog&>(log).bytes_to_scan();
}

inline constexpr int point_logs = 16;
inline constexpr int point_appends = 40;  // to each

// Ten times what a start may read, in logs none of which comes to 16 MiB; what the store asks for
// is synced as a broker does it, nothing else is.
template <typename Rig>
void write_beyond_the_bound(Rig& rig) {
  rig.config.scan_bytes_max = 2 << 20;
  ASSERT_TRUE(rig.open());
  const std::string value(32 << 10, 'x');
  for (int i = 0; i < point_appends; ++i) {
    for (int log = 0; log < point_logs; ++log) {
      ASSERT_TRUE(rig.append(*rig.log("t", log), {value}));
      if (!rig.store->points_due()) continue;
      for (const auto& behind : rig.store->advance_points()) ASSERT_TRUE(rig.sync(*behind));
      EXPECT_FALSE(rig.store->points_due());
    }
  }
}

template <typename Rig>
void check_that_what_a_start_reads_stays_bounded() {
  Rig rig;
  ASSERT_NO_FATAL_FAILURE(write_beyond_the_bound(rig));
  ASSERT_TRUE(rig.kill());
  EXPECT_GT(rig.recovery.bytes_scanned, 0U);
  EXPECT_LE(rig.recovery.bytes_scanned, rig.config.scan_bytes_max);
  for (int log = 0; log < point_logs; ++log) {
    EXPECT_EQ(rig.log("t", log)->offsets().end, Offset(point_appends));
  }
}

// A point never says more than a sync has covered.
template <typename Rig>
void check_that_points_survive_a_power_cut() {
  Rig rig;
  ASSERT_NO_FATAL_FAILURE(write_beyond_the_bound(rig));
  std::int64_t durable[point_logs];
  for (int log = 0; log < point_logs; ++log) {
    durable[log] = rig.log("t", log)->log()->durable_end().value();
  }
  ASSERT_TRUE(rig.crash({.mode = fs::CrashChoice::Mode::lose_all}));
  for (int log = 0; log < point_logs; ++log) {
    const auto partition = rig.log("t", log);
    EXPECT_EQ(partition->offsets().end, Offset(durable[log]));
    EXPECT_EQ(Rig::read_all(*partition)->size(), static_cast<std::size_t>(durable[log]));
  }
}

template <typename Rig>
void check_that_a_recovery_leaves_points() {
  Rig rig;
  ASSERT_TRUE(rig.open());
  const std::string value(100'000, 'x');
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(rig.append(*rig.log(), {value}));
  ASSERT_TRUE(rig.kill());
  EXPECT_GT(rig.recovery.bytes_scanned, 2'000'000U);
  ASSERT_TRUE(rig.kill());
  EXPECT_EQ(rig.recovery.bytes_scanned, 0U);
  ASSERT_TRUE(rig.append(*rig.log(), {"tail"}));
  ASSERT_TRUE(rig.kill());
  EXPECT_LT(rig.recovery.bytes_scanned, 1000U);
  EXPECT_EQ(rig.log()->offsets().end, Offset(21));
}

template <typename Rig>
void check_that_a_round_brings_a_point_after_16_mib() {
  Rig rig;
  ASSERT_TRUE(rig.open());
  const std::string value(900'000, 'x');
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(rig.append(*rig.log(), {value}));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.append(*rig.log(), {"tail"}));
  // What a layout's index has in memory alone is no matter of the round's.
  ASSERT_TRUE(rig.store->advance_points().empty());
  ASSERT_TRUE(rig.kill());
  EXPECT_LT(rig.recovery.bytes_scanned, 1000U);
}

// What a log says a start would read of it is what a start reads, whatever came in the way of its
// points.
template <typename Rig>
void check_that_what_a_start_reads_is_known() {
  const std::string value(1000, 'x');
  enum class Way { silent, left_out, with_a_round, no_room_at_a_start, none };
  for (const Way way :
       {Way::silent, Way::left_out, Way::with_a_round, Way::no_room_at_a_start, Way::none}) {
    SCOPED_TRACE(static_cast<int>(way));
    Rig rig;
    ASSERT_TRUE(rig.open());
    const auto write = [&rig, &value](int records) {
      for (int i = 0; i < records; ++i) ASSERT_TRUE(rig.append(*rig.log(), {value}));
    };
    write(10);
    ASSERT_TRUE(rig.sync(*rig.log()));
    ASSERT_TRUE(rig.store->checkpoint());
    write(20);
    if (way == Way::with_a_round) {
      ASSERT_TRUE(rig.store->checkpoint()) << "the round that covers them is to bring a point";
    } else {
      ASSERT_TRUE(rig.sync(*rig.log()));
    }
    if (way != Way::none) {
      rig.disk->fail_path(".sidecar", way == Way::silent ? fs::Fault::eio : fs::Fault::no_space);
    }
    ASSERT_TRUE(rig.sync(*rig.log()));
    if (way == Way::no_room_at_a_start) {
      auto killed = rig.disk->crash_state({.mode = fs::CrashChoice::Mode::kill});
      rig.store.reset();
      rig.disk = std::move(killed);
      rig.fill();
      ASSERT_TRUE(rig.open());
    }
    for (int i = 0; i < 2; ++i) static_cast<void>(rig.store->advance_points());
    EXPECT_EQ(rig.store->checkpoint().has_value(), way == Way::none);
    for (const bool mended : {false, true}) {
      if (mended) {
        rig.disk->clear_faults();
        rig.disk->set_capacity(UINT64_MAX);
        ASSERT_TRUE(rig.store->tend(rig.clock.now()));
        ASSERT_TRUE(rig.store->checkpoint());
        ASSERT_TRUE(rig.sync(*rig.log()));
      }
      Rig after;
      after.disk = rig.disk->crash_state({.mode = fs::CrashChoice::Mode::kill});
      ASSERT_TRUE(after.open());
      EXPECT_EQ(bytes_to_scan(*rig.log()), after.recovery.bytes_scanned) << mended;
      EXPECT_EQ(after.recovery.bytes_scanned == 0, mended || way == Way::none);
    }
  }
}

// Of a producer that sent one record a batch, all at these offsets.
template <typename Rig, typename MakeBatch>
void expect_known(Rig& rig, MakeBatch make, std::int64_t id, int from, int to) {
  using Verdict = ProducerState::Verdict;
  const auto judge = [&](int offset) {
    return rig.log()->check_producer(make(id, offset - from).info);
  };
  for (int i = from; i < to; ++i) {
    EXPECT_EQ(judge(i).verdict, Verdict::duplicate) << "producer " << id << ", offset " << i;
    EXPECT_EQ(judge(i).original.start, Offset(i));
  }
  EXPECT_EQ(judge(to).verdict, Verdict::accept) << "producer " << id;
  EXPECT_EQ(judge(to + 1).verdict, Verdict::out_of_order_sequence) << "producer " << id;
}

// Retention takes the records of a producer, perhaps with the file of the last recovery point, and
// the power goes at each step of it. `make`: a batch of one record, of a producer and a sequence.
template <typename Rig, typename MakeBatch>
void check_that_producers_outlive_their_records(MakeBatch make) {
  enum class Point { none, within, end };
  for (const Point point : {Point::none, Point::within, Point::end}) {
    for (const bool all : {true, false}) {  // of the records go
      bool done = false;
      for (std::uint64_t step = 1; !done; ++step) {
        SCOPED_TRACE("point " + std::to_string(static_cast<int>(point)) +
                     (all ? ", all go, step " : ", a file stays, step ") + std::to_string(step));
        Rig rig;
        rig.log_config.retention_ms = 1000;
        rig.log_config.segment_ms = 500;
        ASSERT_TRUE(rig.open());
        auto log = rig.log();
        for (int i = 0; i < 4; ++i) {
          ASSERT_TRUE(rig.append(*log, make(8, i)));
          if (i != 1 || point != Point::within) continue;
          ASSERT_TRUE(rig.sync(*log));
          ASSERT_TRUE(rig.store->checkpoint());
        }
        ASSERT_TRUE(rig.sync(*log));
        if (point == Point::end) {
          ASSERT_TRUE(rig.store->checkpoint());
        }
        if (!all) {
          rig.clock.advance_ms(10'000);
          ASSERT_TRUE(dynamic_cast<RolledLog&>(*log).roll_by_age(rig.clock.now()));
          for (int i = 0; i < 2; ++i) ASSERT_TRUE(rig.append(*log, make(9, i)));
          ASSERT_TRUE(rig.sync(*log));
        }
        rig.disk->crash_at(rig.disk->steps() + step, step % 2 == 0);
        const auto retained = rig.store->retain({"t", 0}, Offset(4), Timestamp(2'000'000));
        done = !rig.disk->powered_off();
        if (done) {
          ASSERT_TRUE(retained);
          EXPECT_EQ(retained->segments_removed, 1U);
        }
        log.reset();
        rig.store.reset();
        auto choices = rig.disk->crash_choices(step, 12);
        choices.push_back({.mode = fs::CrashChoice::Mode::kill});
        for (const fs::CrashChoice& choice : choices) {
          SCOPED_TRACE(choice.to_string());
          Rig after;
          after.disk = rig.disk->crash_state(choice);
          ASSERT_TRUE(after.open());
          for (int start = 0; start < 2; ++start) {
            EXPECT_EQ(after.log()->offsets().end, Offset(all ? 4 : 6));
            expect_known(after, make, 8, 0, 4);
            if (!all) expect_known(after, make, 9, 4, 6);
            ASSERT_TRUE(after.kill());
          }
        }
      }
    }
  }
}

// The same while records wait for a sync: there is no point at the end that could be given at once.
template <typename Rig, typename MakeBatch>
void check_that_producers_outlive_their_records_between_syncs(MakeBatch make) {
  for (const bool within : {false, true}) {    // there is a point in the file that goes
    for (const bool sealed : {false, true}) {  // a round covered what that file ended with
      for (const bool synced : {true, false}) {
        SCOPED_TRACE(std::string(within ? "a point within, " : "no point, ") +
                     (sealed ? "sealed, " : "") + (synced ? "then a round" : "no round"));
        Rig rig;
        rig.log_config.retention_ms = 1000;
        rig.log_config.segment_ms = 500;
        ASSERT_TRUE(rig.open());
        for (int i = 0; i < 4; ++i) {
          ASSERT_TRUE(rig.append(*rig.log(), make(8, i)));
          if (i != 1 || !within) continue;
          ASSERT_TRUE(rig.sync(*rig.log()));
          ASSERT_TRUE(rig.store->checkpoint());
        }
        ASSERT_TRUE(rig.sync(*rig.log()));
        rig.clock.advance_ms(10'000);
        ASSERT_TRUE(dynamic_cast<RolledLog&>(*rig.log()).roll_by_age(rig.clock.now()));
        ASSERT_TRUE(rig.append(*rig.log(), make(9, 0)));
        if (sealed) {
          ASSERT_TRUE(rig.sync(*rig.log()));
          ASSERT_TRUE(rig.append(*rig.log(), make(9, 1)));
        }
        const auto retain = [&rig] {
          const auto retained = rig.store->retain({"t", 0}, Offset(4), Timestamp(2'000'000));
          EXPECT_TRUE(retained) << retained.error().to_string();
          return retained ? retained->segments_removed : 0;
        };
        const auto expect_producer = [&rig, &make] {
          Rig after;
          after.disk = rig.disk->crash_state({.mode = fs::CrashChoice::Mode::kill});
          ASSERT_TRUE(after.open());
          expect_known(after, make, 8, 0, 4);
        };
        const bool removed = retain() > 0;
        expect_producer();
        if (removed) continue;
        if (synced) {
          ASSERT_TRUE(rig.sync(*rig.log()));
        }
        EXPECT_EQ(retain(), 1U) << "it is put off once: a round may find no room";
        if (synced) expect_producer();
      }
    }
  }
}

// The power goes at each step of a retention that takes what an earlier one left, and the last
// point's file with it: of the producers of then that point alone tells.
template <typename Rig, typename MakeBatch>
void check_that_producers_outlive_two_retentions(MakeBatch make) {
  for (const bool two : {false, true}) {  // files go at once
    bool done = false;
    for (std::uint64_t step = 1; !done; ++step) {
      SCOPED_TRACE((two ? "two files go, step " : "one file goes, step ") + std::to_string(step));
      Rig rig;
      rig.log_config.retention_ms = 1000;
      rig.log_config.segment_ms = 500;
      ASSERT_TRUE(rig.open());
      const auto write = [&](std::int64_t id, int from, int to, bool then_rolls) {
        for (int i = from; i < to; ++i) ASSERT_TRUE(rig.append(*rig.log(), make(id, i)));
        ASSERT_TRUE(rig.sync(*rig.log()));
        if (id == 8 && to == 4) {
          ASSERT_TRUE(rig.store->checkpoint());
        }
        if (!then_rolls) return;
        rig.clock.advance_ms(10'000);
        ASSERT_TRUE(dynamic_cast<RolledLog&>(*rig.log()).roll_by_age(rig.clock.now()));
      };
      write(7, 0, 3, true);
      ASSERT_EQ(rig.store->retain({"t", 0}, Offset(3), Timestamp(2'000'000))->segments_removed, 1U);
      write(8, 0, 2, two);
      write(8, 2, 4, true);
      write(9, 0, 2, false);
      rig.disk->crash_at(rig.disk->steps() + step, step % 2 == 0);
      const auto retained = rig.store->retain({"t", 0}, Offset(7), Timestamp(2'000'000));
      done = !rig.disk->powered_off();
      if (done) {
        ASSERT_TRUE(retained);
        EXPECT_EQ(retained->segments_removed, two ? 2U : 1U);
      }
      rig.store.reset();
      auto choices = rig.disk->crash_choices(step, 24);
      choices.push_back({.mode = fs::CrashChoice::Mode::kill});
      for (const fs::CrashChoice& choice : choices) {
        SCOPED_TRACE(choice.to_string());
        Rig after;
        after.disk = rig.disk->crash_state(choice);
        ASSERT_TRUE(after.open());
        for (int start = 0; start < 2; ++start) {
          EXPECT_EQ(after.log()->offsets().end, Offset(9));
          expect_known(after, make, 7, 0, 3);
          expect_known(after, make, 8, 3, 7);
          expect_known(after, make, 9, 7, 9);
          ASSERT_TRUE(after.kill());
        }
      }
    }
  }
}

// DeleteRecords raised the start before, so nothing else of the retention syncs the sidecar.
template <typename Rig, typename MakeBatch>
void check_that_a_point_is_on_the_disk_before_files_go(MakeBatch make) {
  Rig rig;
  rig.log_config.retention_ms = 1000;
  rig.log_config.segment_ms = 500;
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(rig.append(*rig.log(), make(8, i)));
  ASSERT_TRUE(rig.sync(*rig.log()));
  ASSERT_TRUE(rig.log()->advance_start(Offset(4)));
  ASSERT_TRUE(rig.store->checkpoint());
  rig.clock.advance_ms(10'000);
  ASSERT_TRUE(dynamic_cast<RolledLog&>(*rig.log()).roll_by_age(rig.clock.now()));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(rig.append(*rig.log(), make(9, i)));
  ASSERT_TRUE(rig.sync(*rig.log()));
  const auto retained = rig.store->retain({"t", 0}, Offset(4), Timestamp(2'000'000));
  ASSERT_TRUE(retained);
  EXPECT_EQ(retained->segments_removed, 1U);
  Rig after;
  after.disk = rig.disk->crash_state({.mode = fs::CrashChoice::Mode::lose_all});
  ASSERT_TRUE(after.open());
  expect_known(after, make, 8, 0, 4);
}

}  // namespace polylog::storage
