#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/property_crc.h"
#include "storage/rocketmq/store_rig.h"

// Damage behind the last checkpoint, met by the start that follows a kill: no offset that was given
// out is given again, and nothing but the damaged record is lost.
namespace polylog::storage::rocketmq {
namespace {

namespace stored = format::rocketmq;
using Strings = StoreRig::Strings;
using Entries = std::vector<stored::QueueEntry>;

const std::string log_file = "/data/rocketmq/commitlog/00000000000000000000";

// One log file, and three queues: what is last in "a" and "b" is damaged, "c" goes on behind it.
class RocketmqDamageTest : public ::testing::Test, protected StoreRig {
 protected:
  void SetUp() override {
    config.shared.commit_log_file_bytes = 1 << 20;
    open();
  }

  // As the broker writes them: with a checksum over the whole record.
  Staged put_new(const std::string& body, const std::string& topic) {
    std::string properties;
    stored::append_property_crc_room(properties);
    return put(body, topic, properties);
  }
  void put_summed(const std::string& body, const std::string& topic) {
    put_new(body, topic);
    entries.push_back(entry_of(topic, queue(topic)->offsets().end.value() - 1));
  }
  // 0: a0, 1: b0, then the checkpoint; 2: a1, 3: b1, 4: c0, 5: a2, 6: b2, 7: c1.
  void write_all(bool flushed) {
    put_summed("a0", "a");
    put_summed("b0", "b");
    sync();
    ASSERT_TRUE(store->checkpoint());
    for (const std::string body : {"a1", "b1", "c0", "a2", "b2", "c1"}) {
      put_summed(body, body.substr(0, 1));
    }
    sync();
    if (flushed) {
      ASSERT_TRUE(store->shared_log()->flush_entries());
    }
  }
  stored::QueueEntry entry_of(const std::string& topic, std::int64_t offset) {
    const auto found = store->find_queue(topic, 0)->entries(offset, 1, true);
    return found && !found->empty() ? found->front() : stored::QueueEntry();
  }
  void flip(std::size_t record, std::size_t field, unsigned bit) {
    disk->flip_bit(log_file, static_cast<std::uint64_t>(entries[record].physical_offset) + field,
                   bit);
  }
  void spoil(std::int64_t position, std::size_t bytes, std::uint8_t with) {
    const std::vector<std::uint8_t> wrong(bytes, with);
    disk->corrupt(log_file, static_cast<std::uint64_t>(position), wrong);
  }
  std::int64_t end(const std::string& topic) { return queue(topic)->offsets().end.value(); }
  // Everything but `lost` is there, at its offset, and new records come behind all of it, also when
  // the store is opened once more.
  void expect_all_but(const std::string& lost, std::int64_t a = 3, std::int64_t b = 3,
                      std::int64_t c = 2) {
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(end("a"), a + round);
      EXPECT_EQ(end("b"), b + round);
      EXPECT_EQ(end("c"), c + round);
      for (const std::string topic : {"a", "b", "c"}) {
        Strings expected;
        for (int i = 0; i < (topic == "c" ? 2 : 3); ++i) {
          const std::string body = topic + std::to_string(i);
          if (lost.find(body) == std::string::npos) expected.push_back(body);
        }
        for (int i = 0; i < round; ++i) expected.push_back("new" + std::to_string(i));
        EXPECT_EQ(read(topic), expected) << lost << ", round " << round;
        put_new("new" + std::to_string(round), topic);
      }
      sync();
      if (round == 0) {
        kill();
      } else {
        reopen();
      }
    }
  }

  Entries entries;  // of the records in the order of the log
};

struct Fault {
  const char* name;
  std::size_t field;
  unsigned bit;
};
// Body: "a2" and the like; behind it the topic's length and the topic.
constexpr std::size_t body_at = stored::message_fields.back().at;
const std::vector<Fault> faults{
    {"size, shorter", stored::message_at::total_size + 3, 3},
    {"size, longer", stored::message_at::total_size + 2, 0},
    {"size, beyond the file", stored::message_at::total_size, 6},
    {"magic", stored::message_at::magic + 1, 5},
    {"body checksum", stored::message_at::body_crc, 1},
    {"queue id", stored::message_at::queue_id + 3, 0},
    {"queue offset, low", stored::message_at::queue_offset + 7, 0},
    {"queue offset, high", stored::message_at::queue_offset, 3},
    {"physical offset", stored::message_at::physical_offset + 7, 2},
    {"system flags", stored::message_at::sys_flag + 3, 4},
    {"body length", body_at - 1, 0},
    {"body", body_at, 4},
    {"topic length", body_at + 2, 0},
    {"topic, another that exists", body_at + 3, 1},  // "a" and "c"
    {"topic, an impossible one", body_at + 3, 6},
    {"properties length", body_at + 5, 3},
    {"properties", body_at + 8, 2},
    {"record checksum", body_at + 20, 0},
};

TEST_F(RocketmqDamageTest, one_bit_anywhere_in_a_queues_last_record_costs_that_record_only) {
  for (const bool flushed : {false, true}) {
    for (const Fault& fault : faults) {
      SCOPED_TRACE(std::string(fault.name) + (flushed ? ", entries flushed" : ""));
      disk = std::make_unique<fs::SimFileSystem>();
      entries.clear();
      store.reset();
      open();
      write_all(flushed);
      flip(5, fault.field, fault.bit);
      const Recovery report = kill();
      EXPECT_FALSE(report.notes.empty());
      EXPECT_EQ(report.bytes_truncated, 0U);
      expect_all_but("a2");
    }
  }
}

TEST_F(RocketmqDamageTest, damage_before_later_records_of_the_queue_costs_that_record_only) {
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    disk = std::make_unique<fs::SimFileSystem>();
    entries.clear();
    store.reset();
    open();
    write_all(false);
    flip(2, fault.field, fault.bit);
    kill();
    expect_all_but("a1");
  }
}

TEST_F(RocketmqDamageTest, the_last_record_of_the_log_keeps_its_offset) {
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    disk = std::make_unique<fs::SimFileSystem>();
    entries.clear();
    store.reset();
    open();
    write_all(false);
    flip(7, fault.field, fault.bit);
    kill();
    expect_all_but("c1");
  }
}

TEST_F(RocketmqDamageTest, what_no_sync_has_covered_is_told_from_a_torn_tail) {
  write_all(false);
  put_summed("a3", "a");
  put_summed("b3", "b");
  flip(8, stored::message_at::queue_offset + 7, 0);
  kill();
  EXPECT_EQ(end("a"), 4);
  EXPECT_EQ(read("b"), (Strings{"b0", "b1", "b2", "b3"}));
}

TEST_F(RocketmqDamageTest, a_tail_that_did_not_arrive_is_cut) {
  write_all(false);
  put_summed("a3" + std::string(2000, '.'), "a");
  put_summed("b3", "b");
  const std::int64_t begin = entries[8].physical_offset;
  spoil((begin / 512 + 2) * 512, 512, 0);  // one sector of it
  const Recovery report = kill();
  EXPECT_GT(report.bytes_truncated, 0U);
  EXPECT_EQ(store->shared_log()->end(), LogPosition(begin));
  EXPECT_EQ(end("a"), 3);
  EXPECT_EQ(end("b"), 3);
}

TEST_F(RocketmqDamageTest, entries_tell_whose_records_stood_in_a_wrecked_stretch) {
  write_all(true);
  spoil(entries[4].physical_offset,
        static_cast<std::size_t>(entries[6].end() - entries[4].physical_offset), 0xee);
  kill();
  expect_all_but("c0 a2 b2");
}

TEST_F(RocketmqDamageTest, without_entries_every_queue_that_may_have_had_it_passes_an_offset_over) {
  write_all(false);
  // Its beginning is there, and what says whose it was is not.
  spoil(entries[5].physical_offset + 8, 28, 0x55);
  spoil(entries[5].physical_offset + static_cast<std::int64_t>(body_at) + 2, 3, 0x55);
  const Recovery report = kill();
  EXPECT_EQ(end("a"), 3);
  EXPECT_EQ(end("b"), 3);  // b2 stands behind it
  EXPECT_EQ(end("c"), 2);
  EXPECT_EQ(read("a"), (Strings{"a0", "a1"}));
  EXPECT_FALSE(report.notes.empty());
}

TEST_F(RocketmqDamageTest, several_flips_in_records_and_entries_lose_no_offset) {
  write_all(true);
  flip(5, stored::message_at::total_size + 3, 3);
  flip(6, stored::message_at::magic, 2);
  flip(7, stored::message_at::queue_offset + 7, 1);
  // Entries of a2 and b1.
  disk->flip_bit("/data/rocketmq/consumequeue/a/0/00000000000000000000", 2 * 20 + 7, 4);
  disk->flip_bit("/data/rocketmq/consumequeue/b/0/00000000000000000000", 1 * 20 + 10, 1);
  kill();
  expect_all_but("a2 b2 c1");
}

TEST_F(RocketmqDamageTest, a_deleted_queue_file_and_a_damaged_record_do_not_take_the_end_back) {
  write_all(true);
  for (const std::string topic : {"a", "b"}) put_summed(topic + "3", topic);
  sync();
  ASSERT_TRUE(store->checkpoint());
  flip(8, body_at, 0);
  store.reset();
  ASSERT_TRUE(fs::remove_tree(*disk, "/data/rocketmq/consumequeue/a"));
  kill();
  EXPECT_EQ(end("a"), 4);
  EXPECT_EQ(read("a"), (Strings{"a0", "a1", "a2"}));
}

TEST_F(RocketmqDamageTest, producers_of_a_damaged_record_are_known) {
  write_all(false);
  std::string properties =
      "__KPS\x01"
      "77:0:0:0:1\x02";
  stored::append_property_crc_room(properties);
  put("a3", "a", properties);
  sync();
  const auto entry = entry_of("a", 3);
  disk->flip_bit(log_file, static_cast<std::uint64_t>(entry.physical_offset) + body_at, 2);
  kill();
  BatchInfo again;
  again.records = 1;
  again.producer = {ProducerId(77), 0, 0, 0};
  EXPECT_EQ(queue("a")->check_producer(again).verdict, ProducerState::Verdict::duplicate);
  EXPECT_EQ(end("a"), 4);
}

TEST_F(RocketmqDamageTest, a_damaged_blank_record_does_not_end_the_log) {
  config.shared.commit_log_file_bytes = 4096;
  disk = std::make_unique<fs::SimFileSystem>();
  store.reset();
  open();
  const auto filled = [&] { return store->shared_log()->end().value() > 4096; };
  int count = 0;
  std::int64_t end_of_first = 0;
  while (!filled()) {
    end_of_first = store->shared_log()->end().value();
    put_summed("m" + std::to_string(count++) + std::string(100, '.'), "a");
  }
  for (int i = 0; i < 4; ++i) put_summed("m" + std::to_string(count++), "a");
  for (const std::size_t byte : {2U, 5U}) {
    disk->flip_bit(log_file, static_cast<std::uint64_t>(end_of_first) + byte, 3);
    kill();
    EXPECT_EQ(end("a"), count);
    EXPECT_EQ(read("a").size(), static_cast<std::size_t>(count));
  }
}

// ------------------------------------------------------------------------------------- searches

// Records of 256 bytes: a flipped bit in an entry's position leads to another record.
class RocketmqEntryTest : public RocketmqDamageTest {
 protected:
  void SetUp() override {
    RocketmqDamageTest::SetUp();
    config.shared.queue_file_bytes = 20 * 100;
    disk = std::make_unique<fs::SimFileSystem>();
    store.reset();
    open();
    const std::size_t fixed = message("", "a").bytes.size() + stored::property_crc_bytes;
    const auto log = queue("a")->log();
    for (std::int32_t epoch = 0; epoch < 4; ++epoch) {
      ASSERT_TRUE(log->begin_epoch(LeaderEpoch(epoch)));
      for (int i = 0; i < 16; ++i) {
        clock.advance_ms(1000);
        put_summed(std::string(256 - fixed, 'x'), i % 3 == 2 ? "b" : "a");
      }
    }
    sync();
    ASSERT_TRUE(store->shared_log()->flush_entries());
    ASSERT_TRUE(store->checkpoint());
    for (std::int32_t epoch = 0; epoch < 4; ++epoch) epoch_ends.push_back(end_of(epoch));
    for (std::int64_t second = 0; second < 70; ++second) bounds.push_back(bounds_at(second));
  }
  std::int64_t end_of(std::int32_t epoch) {
    return queue("a")->end_of_epoch(LeaderEpoch(epoch)).end.value();
  }
  std::pair<std::int64_t, std::int64_t> bounds_at(std::int64_t second) {
    const Timestamp at(1'700'000'000'000 + second * 1000);
    const auto own = store->find_queue("a", 0);
    return {own->offset_by_store_time(at, Queue::Bound::lower)->value(),
            own->offset_by_store_time(at, Queue::Bound::upper)->value()};
  }
  void expect_the_same() {
    for (std::int32_t epoch = 0; epoch < 4; ++epoch) {
      EXPECT_EQ(end_of(epoch), epoch_ends[static_cast<std::size_t>(epoch)]) << "epoch " << epoch;
    }
  }

  std::vector<std::int64_t> epoch_ends;
  std::vector<std::pair<std::int64_t, std::int64_t>> bounds;
};

TEST_F(RocketmqEntryTest, a_damaged_entry_does_not_move_the_end_of_an_epoch) {
  const std::string file = "/data/rocketmq/consumequeue/a/0/00000000000000000000";
  const std::int64_t count = end("a");
  for (std::int64_t entry = 0; entry < count; ++entry) {
    for (const unsigned bit : {0U, 3U, 8U, 9U, 10U, 13U, 40U, 63U, 64U, 72U, 94U}) {
      SCOPED_TRACE("entry " + std::to_string(entry) + " bit " + std::to_string(bit));
      // Bit 0 is the lowest of the position, bit 64 the lowest of the size.
      const std::uint64_t byte = static_cast<std::uint64_t>(entry) * 20 +
                                 (bit < 64 ? 7 - bit / 8 : 8 + 3 - (bit - 64) / 8);
      disk->flip_bit(file, byte, bit % 8);
      expect_the_same();
      disk->flip_bit(file, byte, bit % 8);
      if (HasFailure()) return;
    }
  }
}

TEST_F(RocketmqEntryTest, nor_does_a_damaged_record) {
  for (std::size_t record = 0; record < entries.size(); ++record) {
    SCOPED_TRACE("record " + std::to_string(record));
    for (const std::size_t field : {stored::message_at::total_size + 2, stored::message_at::magic,
                                    stored::message_at::queue_offset + 7, body_at}) {
      flip(record, field, 2);
      expect_the_same();
      flip(record, field, 2);
    }
    if (HasFailure()) return;
  }
}

TEST_F(RocketmqEntryTest, a_damaged_entry_costs_no_record) {
  const std::string file = "/data/rocketmq/consumequeue/a/0/00000000000000000000";
  const std::int64_t count = end("a");
  const auto all = read("a").size();
  ASSERT_EQ(static_cast<std::int64_t>(all), count);
  const auto newest = queue("a")->offset_of_max_timestamp();
  for (std::int64_t entry = 0; entry < count; ++entry) {
    for (std::uint64_t bit = 0; bit < 96; bit += 5) {
      SCOPED_TRACE("entry " + std::to_string(entry) + " bit " + std::to_string(bit));
      const std::uint64_t byte = static_cast<std::uint64_t>(entry) * 20 + bit / 8;
      disk->flip_bit(file, byte, bit % 8);
      EXPECT_EQ(read("a").size(), all);
      EXPECT_EQ(read("a", 300).size(), all) << "one by one";
      const auto found = queue("a")->offset_of_max_timestamp();
      ASSERT_TRUE(found && *found);
      EXPECT_EQ((*found)->offset, (*newest)->offset);
      disk->flip_bit(file, byte, bit % 8);
      if (HasFailure()) return;
    }
  }
}

TEST_F(RocketmqEntryTest, what_was_looked_for_in_vain_is_not_looked_for_again) {
  ReadLimits limits;
  limits.bytes_max = 1 << 20;
  limits.end = queue("a")->offsets().end;
  limits.wait = false;
  EXPECT_TRUE(queue("a")->read(Offset(0), limits));
  flip(0, body_at, 2);
  EXPECT_EQ(queue("a")->read(Offset(0), limits).error().code, Errc::would_block);
  EXPECT_EQ(read("a").size(), static_cast<std::size_t>(end("a")) - 1);
  EXPECT_TRUE(queue("a")->read(Offset(0), limits));
}

TEST_F(RocketmqEntryTest, a_damaged_entry_moves_a_search_by_store_time_to_its_neighbour_at_most) {
  const std::string file = "/data/rocketmq/consumequeue/a/0/00000000000000000000";
  for (std::int64_t entry = 0; entry < end("a"); ++entry) {
    const auto byte = static_cast<std::uint64_t>(entry) * 20 + 6;
    disk->flip_bit(file, byte, 1);
    for (std::size_t second = 0; second < bounds.size(); ++second) {
      const auto now = bounds_at(static_cast<std::int64_t>(second));
      EXPECT_LE(std::abs(now.first - bounds[second].first), 1) << entry << " at " << second;
      EXPECT_LE(std::abs(now.second - bounds[second].second), 1) << entry << " at " << second;
    }
    disk->flip_bit(file, byte, 1);
    if (HasFailure()) return;
  }
}

TEST_F(RocketmqEntryTest, expiry_takes_nothing_that_is_there_for_gone) {
  config.shared.commit_log_file_bytes = 4096;
  config.shared.delete_hours.clear();
  for (int hour = 0; hour < 24; ++hour) config.shared.delete_hours.push_back(hour);
  config.shared.reserved_ms = 1000;
  disk = std::make_unique<fs::SimFileSystem>(&clock);
  store.reset();
  open();
  for (int i = 0; i < 60; ++i) put_summed("r" + std::to_string(i) + std::string(200, '.'), "a");
  sync();
  ASSERT_TRUE(store->shared_log()->flush_entries());
  ASSERT_TRUE(store->checkpoint());
  const auto state = disk->crash_state({.mode = fs::CrashChoice::Mode::kill});
  const auto expire = [&](std::int64_t entry) {
    disk = state->crash_state({.mode = fs::CrashChoice::Mode::kill});
    store.reset();
    if (entry >= 0) {
      // Of a position the bit of 32 KiB, which makes it one before all there is, or behind it.
      disk->flip_bit("/data/rocketmq/consumequeue/a/0/00000000000000000000",
                     static_cast<std::uint64_t>(entry) * 20 + 6, 3);
      disk->flip_bit("/data/rocketmq/consumequeue/a/0/00000000000000000000",
                     static_cast<std::uint64_t>(entry) * 20 + 6, 4);
    }
    open();
    EXPECT_TRUE(store->tend(clock.now() + 1'000'000'000'000));
    return queue("a")->offsets().start.value();
  };
  const std::int64_t start = expire(-1);
  ASSERT_GT(start, 10);
  for (std::int64_t entry = 0; entry < 60; ++entry) {
    const std::int64_t found = expire(entry);
    EXPECT_LE(found, entry == start ? start + 1 : start) << entry;
    EXPECT_GE(found, entry == start - 1 ? start - 1 : start) << entry;
  }
}

}  // namespace
}  // namespace polylog::storage::rocketmq
