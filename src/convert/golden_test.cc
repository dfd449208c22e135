#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <tuple>

#include "convert/convert_rig.h"
#include "convert/marker.h"
#include "fs/posix_file_system.h"

// Directories that the originals themselves wrote.
namespace polylog::convert {
namespace {

namespace files = std::filesystem;
using storage::Layout;

files::path golden() {
  const char* const source = std::getenv("POLYLOG_SOURCE_DIR");
  return files::path(source != nullptr ? source : ".") / "tests" / "golden";
}

// Every name below a folder with size, time of modification and content.
using Snapshot = std::map<std::string, std::tuple<std::int64_t, std::int64_t, std::string>>;
Snapshot snapshot(const files::path& folder) {
  Snapshot found;
  for (const auto& entry : files::recursive_directory_iterator(folder)) {
    struct stat info{};
    EXPECT_EQ(::stat(entry.path().c_str(), &info), 0);
    std::string content;
    if (entry.is_regular_file()) {
      std::ifstream in(entry.path(), std::ios::binary);
      content.assign(std::istreambuf_iterator<char>(in), {});
    }
    found[entry.path().string()] = {info.st_mtim.tv_sec, info.st_mtim.tv_nsec, std::move(content)};
  }
  return found;
}

class Golden : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (files::temp_directory_path() / "polylog-convert-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    engines[Layout::kafka] = &storage::kafka::KafkaStore::open;
    engines[Layout::rocketmq] = &storage::rocketmq::RocketmqStore::open;
    settings = broker::Settings::from({{"mappedFileSizeCommitLog", "1048576"}}).value();
  }
  void TearDown() override { files::remove_all(folder); }

  void take(const files::path& from, const std::string& name) {
    files::copy(golden() / from, folder / name, files::copy_options::recursive);
  }
  Result<Summary> run(const std::string& from, const std::string& to, Layout layout,
                      std::set<std::string> exclude = {}) {
    Options options;
    options.source = folder / from;
    options.target = folder / to;
    options.layout = layout;
    options.settings = settings;
    options.exclude = std::move(exclude);
    options.note = [this](const std::string& line) { notes += line + "\n"; };
    return convert(fs_, clock, engines, options);
  }

  files::path folder;
  fs::PosixFileSystem fs_;
  SystemClock clock;
  Engines engines;
  broker::Settings settings;
  std::string notes;
};

TEST_F(Golden, kafka_directories_are_taken_in_whole_and_nothing_in_them_changes) {
  for (const std::string name : {"clean", "killed"}) {
    take(files::path("kafka_log") / name, name);
    const Snapshot before = snapshot(folder / name);
    ASSERT_GT(before.size(), 20U);
    const auto summary = run(name, name + "-kafka", Layout::kafka);
    ASSERT_TRUE(summary) << summary.error().to_string();
    EXPECT_EQ(summary->topics, 6U);
    EXPECT_GT(summary->records, 200U);
    EXPECT_GT(summary->offsets_without_record, 0U);  // compaction
    EXPECT_EQ(snapshot(folder / name), before);
    EXPECT_TRUE(check_finished(fs_, folder / (name + "-kafka")));
    // A second run from what came out, in the same layout.
    ASSERT_TRUE(run(name + "-kafka", name + "-again", Layout::kafka));
  }
}

TEST_F(Golden, a_kafka_directory_gives_its_topics_settings_and_its_groups_offsets) {
  take("kafka_directory/written", "src");
  const Snapshot before = snapshot(folder / "src");
  const auto summary = run("src", "dst", Layout::kafka);
  ASSERT_TRUE(summary) << summary.error().to_string() << "\n" << notes;
  EXPECT_EQ(snapshot(folder / "src"), before);
  auto catalog = meta::open_embedded_catalog(fs_, folder / "dst/meta", {});
  ASSERT_TRUE(catalog);
  std::map<std::string, meta::TopicRecord> topics;
  const auto records = (*catalog)->topics();
  ASSERT_TRUE(records);
  for (const auto& record : *records) topics[record.name] = record;
  using Values = std::map<std::string, std::string>;
  const auto layout = [](Values values) {
    values["polylog.layout"] = "kafka";
    return values;
  };
  EXPECT_EQ(topics.at("orders").configs,
            layout({{"retention.ms", "7200000"}, {"message.timestamp.type", "LogAppendTime"}}));
  EXPECT_EQ(topics.at("orders").partitions, 3);
  EXPECT_EQ(topics.at("compacted").configs, layout({{"cleanup.policy", "compact"}}));
  EXPECT_EQ(topics.at("forever").configs, layout({{"retention.ms", "-1"}}));
  EXPECT_EQ(topics.at("plain").configs, layout({}));
  EXPECT_EQ(topics.at("again").configs, layout({})) << "one that was deleted had others";
  EXPECT_EQ(topics.at("sized").configs,
            layout({{"retention.bytes", "5000"}, {"segment.bytes", "2000000"}}));
  EXPECT_FALSE(topics.contains("gone"));
  EXPECT_EQ(topics.at("__consumer_offsets").configs.at("cleanup.policy"), "compact");
  const meta::ConfigScope all;
  EXPECT_EQ((*catalog)->scoped_configs()->at(all),
            (Values{{"log.retention.ms", "86400000"}, {"min.insync.replicas", "1"}}));
}

TEST_F(Golden, kafkas_transactions_have_no_place_in_rocketmqs_layout) {
  take("kafka_log/clean", "src");
  const Snapshot before = snapshot(folder / "src");
  const auto refused = run("src", "dst", Layout::rocketmq);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("topic transactions"), std::string::npos)
      << refused.error().to_string();
  EXPECT_FALSE(check_finished(fs_, folder / "dst"));
  files::remove_all(folder / "dst");
  const auto summary = run("src", "dst", Layout::rocketmq,
                           {"transactions", "transactions-gzip", "transactions-open"});
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(summary->topics, 3U);
  EXPECT_EQ(snapshot(folder / "src"), before);
  ASSERT_TRUE(run("dst", "back", Layout::kafka));
}

TEST_F(Golden, a_rocketmq_store_with_its_groups_offsets) {
  take("rocketmq_store/plain", "src");
  files::create_directories(folder / "src/config");
  std::ofstream(folder / "src/config/consumerOffset.json")
      << R"({"offsetTable":{"TopicTest@readers":{0:2,1:1},"Many@others":{0:12},"Gone@g":{0:1}}})";
  std::ofstream(folder / "src/config/topics.json")
      << R"({"topicConfigTable":{"TopicTest":{"readQueueNums":4,"writeQueueNums":6}}})";
  const Snapshot before = snapshot(folder / "src");
  const auto refused = run("src", "dst", Layout::kafka);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("one of RocketMQ's own"), std::string::npos)
      << refused.error().to_string();
  EXPECT_FALSE(files::exists(folder / "dst"));
  std::set<std::string> exclude{"SCHEDULE_TOPIC_XXXX"};
  for (const auto& entry : files::directory_iterator(folder / "src/consumequeue")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("%RETRY%")) exclude.insert(name);
  }
  const auto summary = run("src", "dst", Layout::kafka, exclude);
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(summary->group_offsets, 3U);
  EXPECT_GT(summary->records, 20U);
  EXPECT_EQ(snapshot(folder / "src"), before);
  auto catalog = meta::open_embedded_catalog(fs_, folder / "dst/meta", {});
  ASSERT_TRUE(catalog);
  std::map<std::string, meta::TopicRecord> topics;
  const auto records = (*catalog)->topics();
  ASSERT_TRUE(records);
  for (const auto& record : *records) topics[record.name] = record;
  EXPECT_EQ(topics.at("TopicTest").partitions, 6);
  EXPECT_EQ(topics.at("__consumer_offsets").partitions, 50);
  EXPECT_EQ(topics.at("TopicTest").configs.at("polylog.retention.suspended"), "true");
  catalog->reset();
  // Its own layout takes all of it, what RocketMQ keeps for itself included.
  const auto same = run("src", "same", Layout::rocketmq);
  ASSERT_TRUE(same) << same.error().to_string();
  EXPECT_GT(same->records, summary->records);
  EXPECT_TRUE(files::exists(folder / "same/rocketmq/config/consumerOffset.json"));
}

}  // namespace
}  // namespace polylog::convert
