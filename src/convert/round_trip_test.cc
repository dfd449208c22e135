#include <gtest/gtest.h>

#include "convert/convert_rig.h"

// A large number of records through every layout and back.
namespace polylog::convert {
namespace {

using format::kafka::BatchOptions;
using format::kafka::Codec;
using storage::Layout;

constexpr std::int32_t partitions = 4;
constexpr std::int64_t records_total = 100'000;
constexpr std::int64_t batch_records_max = 60;
constexpr Codec codecs[] = {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd};

class RoundTrip : public ConvertRig {
 protected:
  RoundTrip() {
    settings = broker::Settings::from({{"mappedFileSizeCommitLog", "8388608"},
                                       {"mappedFileSizeConsumeQueue", "200000"},
                                       {"maxHashSlotNum", "1000"},
                                       {"maxIndexNum", "4000"}})
                   .value();
  }

  static void make_large_topic(Directory& directory, Layout layout) {
    make_topic(directory, "t", layout, partitions, {{"internal.segment.bytes", "4000000"}});
    storage::LogConfig config;
    config.segment_bytes = 4'000'000;
    for (std::int32_t p = 0; p < partitions; ++p) {
      directory.stores.at(layout)->find({"t", p})->configure(config);
    }
  }

  // Random records at random offsets with gaps between some, in batches of every codec.
  void fill(Directory& directory) {
    make_large_topic(directory, Layout::kafka);
    RandomRecords random(20'26);
    std::int64_t next[partitions] = {0, 5, 0, 1'000'000};
    for (std::int64_t made = 0; made < records_total;) {
      const auto p = random.below(partitions);
      const auto most = std::min(batch_records_max, records_total - made);
      const auto count = static_cast<std::int64_t>(random.below(static_cast<std::size_t>(most)));
      std::vector<OwnedRecord> records;
      for (std::int64_t i = 0; i <= count; ++i) {
        records.push_back(random.record());
        records.back().offset = next[p]++;
        if (random.below(100) == 0) next[p] += static_cast<std::int64_t>(random.below(9));
        wanted[p].push_back(records.back());
      }
      BatchOptions batch;
      batch.codec = codecs[random.below(5)];
      put(directory, "t", static_cast<std::int32_t>(p), batch_of(records, batch));
      made += count + 1;
    }
  }

  void check(const std::string& path, Layout layout) {
    for (std::int32_t p = 0; p < partitions; ++p) {
      SCOPED_TRACE(path + ", partition " + std::to_string(p));
      const Found found = read(path, layout, "t", p);
      const auto& its = wanted[p];
      ASSERT_EQ(found.records.size(), its.size());
      EXPECT_EQ(found.end, its.back().offset + 1);
      for (std::size_t i = 0; i < its.size(); ++i) {
        ASSERT_TRUE(found.records[i] == its[i]) << "offset " << its[i].offset;
      }
    }
  }

  std::vector<OwnedRecord> wanted[partitions];
};

// Through the engines' own append, whose offsets have no gaps.
TEST_F(RoundTrip, a_hundred_thousand_records_written_through_each_layout_are_read_as_they_were) {
  for (const Layout layout : {Layout::kafka, Layout::rocketmq, Layout::segment}) {
    const std::string name(broker::layout_name(layout));
    SCOPED_TRACE(name);
    Directory directory = open_directory("/polylog-test/" + name);
    make_large_topic(directory, layout);
    RandomRecords random(30 + static_cast<std::uint32_t>(layout));
    for (auto& its : wanted) its.clear();
    for (std::int64_t made = 0; made < records_total;) {
      const auto p = random.below(partitions);
      const auto count = static_cast<std::int64_t>(random.below(batch_records_max)) + 1;
      std::vector<OwnedRecord> records;
      BatchOptions batch;
      batch.codec = codecs[random.below(5)];
      for (std::int64_t i = 0; i < count; ++i) {
        records.push_back(random.record());
        records.back().offset = i;
      }
      append(directory, "t", static_cast<std::int32_t>(p), batch_of(records, batch));
      for (OwnedRecord& record : records) {
        record.offset = static_cast<std::int64_t>(wanted[p].size());
        wanted[p].push_back(std::move(record));
      }
      made += count;
    }
    close(directory);
    check("/polylog-test/" + name, layout);
    if (::testing::Test::HasFailure()) return;
    ASSERT_TRUE(fs::remove_tree(*disk, "/polylog-test/" + name));
  }
}

TEST_F(RoundTrip, a_hundred_thousand_records_come_through_every_layout_as_they_were) {
  Directory directory = open_directory(source);
  fill(directory);
  close(directory);
  check(source, Layout::kafka);
  std::string from = source;
  for (const Layout layout : {Layout::rocketmq, Layout::segment, Layout::kafka}) {
    const std::string to = "/polylog-test/" + std::string(broker::layout_name(layout));
    const Summary summary = converted(from, to, layout);
    EXPECT_EQ(summary.records, static_cast<std::uint64_t>(records_total));
    check(to, layout);
    if (::testing::Test::HasFailure()) return;
    // One directory less in memory.
    ASSERT_TRUE(fs::remove_tree(*disk, from));
    from = to;
  }
}

}  // namespace
}  // namespace polylog::convert
