#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "fs/posix_file_system.h"
#include "fs/sim_file_system.h"
#include "meta/catalog.h"

namespace polylog::meta {
namespace {

Uuid id_of(std::uint8_t number) {
  Uuid id;
  id.bytes[0] = number;
  return id;
}

TopicRecord topic(const std::string& name, std::uint8_t number) {
  return {name, id_of(number), number, "kafka", {{"retention.ms", std::to_string(number)}}};
}

std::unique_ptr<Catalog> open(fs::FileSystem& fs, const std::string& directory = "/",
                              const Uuid& cluster = {}) {
  auto catalog = open_embedded_catalog(fs, directory, cluster);
  EXPECT_TRUE(catalog) << catalog.error().to_string();
  return catalog ? std::move(*catalog) : nullptr;
}

Error open_error(fs::FileSystem& fs) {
  auto catalog = open_embedded_catalog(fs, "/", {});
  EXPECT_FALSE(catalog);
  return catalog ? Error{} : catalog.error();
}

// A database some SQLite made, as bytes.
std::vector<std::uint8_t> foreign_database(const char* sql) {
  sqlite3* memory = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &memory), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(memory, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(memory, "main", &size, 0);
  std::vector<std::uint8_t> out(bytes, bytes + size);
  sqlite3_free(bytes);
  sqlite3_close(memory);
  return out;
}

void put(fs::FileSystem& fs, const std::string& path, const std::vector<std::uint8_t>& bytes) {
  auto file = fs.open(path, fs::OpenMode::create);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(0, ByteView(bytes)));
  ASSERT_TRUE((*file)->sync());
  ASSERT_TRUE(fs.sync_directory("/"));
}

std::vector<std::uint8_t> content(fs::FileSystem& fs, const std::string& path) {
  auto bytes = fs::read_file(fs, path, std::size_t{1} << 24);
  EXPECT_TRUE(bytes);
  return bytes.value_or(std::vector<std::uint8_t>{});
}

TEST(EmbeddedCatalog, starts_empty_with_an_id_that_stays) {
  fs::SimFileSystem fs;
  const Uuid made = open(fs)->cluster_id();
  EXPECT_FALSE(made.is_zero());
  auto again = open(fs, "/", id_of(9));
  EXPECT_EQ(again->cluster_id(), made);
  EXPECT_TRUE(again->topics()->empty());
}

TEST(EmbeddedCatalog, adopts_a_cluster_id_at_the_first_opening) {
  fs::SimFileSystem fs;
  EXPECT_EQ(open(fs, "/", id_of(9))->cluster_id(), id_of(9));
  EXPECT_EQ(open(fs)->cluster_id(), id_of(9));
}

TEST(EmbeddedCatalog, keeps_topics_across_reopening_in_name_order) {
  fs::SimFileSystem fs;
  const TopicRecord plain{"c", id_of(3), 1, "segment", {}};
  {
    auto catalog = open(fs);
    ASSERT_TRUE(catalog->create_topic(plain));
    ASSERT_TRUE(catalog->create_topic(topic("a", 1)));
    ASSERT_TRUE(catalog->create_topic(topic("b", 2)));
  }
  auto catalog = open(fs);
  EXPECT_EQ(*catalog->topics(), (std::vector{topic("a", 1), topic("b", 2), plain}));
}

TEST(EmbeddedCatalog, works_on_a_real_directory_and_leaves_its_files) {
  std::string path = ::testing::TempDir() + "catalogXXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  fs::PosixFileSystem fs;
  {
    auto catalog = open(fs, path);
    ASSERT_TRUE(catalog->create_topic(topic("a", 1)));
  }
  EXPECT_EQ(*open(fs, path)->topics(), std::vector{topic("a", 1)});
  EXPECT_EQ(*fs.list(path), (std::vector<std::string>{"ballast", "meta.db", "meta.db-wal"}));
  EXPECT_TRUE(fs::remove_tree(fs, path));
}

TEST(EmbeddedCatalog, a_name_or_an_id_is_given_once) {
  fs::SimFileSystem fs;
  auto catalog = open(fs);
  ASSERT_TRUE(catalog->create_topic(topic("a", 1)));
  EXPECT_EQ(catalog->create_topic(topic("a", 2)).error().code, Errc::exists);
  EXPECT_EQ(catalog->create_topic(topic("b", 1)).error().code, Errc::exists);
  EXPECT_EQ(*catalog->topics(), std::vector{topic("a", 1)});
  EXPECT_TRUE(catalog->create_topic(topic("b", 2)));
}

TEST(EmbeddedCatalog, a_deleted_topic_is_gone_with_its_settings) {
  fs::SimFileSystem fs;
  auto catalog = open(fs);
  ASSERT_TRUE(catalog->create_topic(topic("a", 1)));
  ASSERT_TRUE(catalog->delete_topic("a"));
  EXPECT_EQ(catalog->delete_topic("a").error().code, Errc::not_found);
  EXPECT_TRUE(catalog->topics()->empty());
  const TopicRecord bare{"a", id_of(1), 1, "kafka", {}};
  ASSERT_TRUE(catalog->create_topic(bare));
  EXPECT_EQ(*catalog->topics(), std::vector{bare});
}

TEST(EmbeddedCatalog, settings_are_replaced_as_a_whole) {
  fs::SimFileSystem fs;
  auto catalog = open(fs);
  ASSERT_TRUE(catalog->create_topic(topic("a", 1)));
  ASSERT_TRUE(catalog->set_configs("a", {{"x", ""}, {"y", "it's \"quoted\"; -- \xc3\xa9"}}));
  EXPECT_EQ(catalog->topics()->front().configs,
            (std::map<std::string, std::string>{{"x", ""}, {"y", "it's \"quoted\"; -- \xc3\xa9"}}));
  ASSERT_TRUE(catalog->set_configs("a", {}));
  EXPECT_TRUE(catalog->topics()->front().configs.empty());
  EXPECT_EQ(catalog->set_configs("b", {}).error().code, Errc::not_found);
}

TEST(EmbeddedCatalog, the_number_of_partitions_only_grows) {
  fs::SimFileSystem fs;
  auto catalog = open(fs);
  ASSERT_TRUE(catalog->create_topic(topic("a", 2)));
  ASSERT_TRUE(catalog->set_partitions("a", 5));
  EXPECT_EQ(catalog->topics()->front().partitions, 5);
  EXPECT_EQ(catalog->set_partitions("a", 4).error().code, Errc::invalid);
  EXPECT_EQ(catalog->set_partitions("a", 0).error().code, Errc::invalid);
  EXPECT_EQ(catalog->set_partitions("b", 4).error().code, Errc::not_found);
}

TEST(EmbeddedCatalog, what_is_no_topic_is_refused) {
  fs::SimFileSystem fs;
  auto catalog = open(fs);
  const auto refused = [&](const TopicRecord& record) {
    return catalog->create_topic(record).error().code;
  };
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("a b"),
        std::string("a\0b", 3), std::string("\xc3\xa9"), std::string(250, 'a')}) {
    EXPECT_EQ(refused(topic(name, 1)), Errc::invalid) << name;
  }
  EXPECT_EQ(refused({"a", id_of(1), 0, "kafka", {}}), Errc::invalid);
  EXPECT_EQ(refused({"a", id_of(1), -1, "kafka", {}}), Errc::invalid);
  EXPECT_EQ(refused({"a", {}, 1, "kafka", {}}), Errc::invalid);
  EXPECT_EQ(refused({"a", id_of(1), 1, "tape", {}}), Errc::invalid);
  EXPECT_EQ(refused({"a", id_of(1), 1, "kafka", {{"", "x"}}}), Errc::invalid);
  EXPECT_EQ(refused({"a", id_of(1), 1, "kafka", {{"k", std::string("\0", 1)}}}), Errc::invalid);
  EXPECT_EQ(refused({"a", id_of(1), 1, "kafka", {{"k", std::string(70000, 'x')}}}),
            Errc::too_large);
  EXPECT_TRUE(catalog->topics()->empty());
  EXPECT_TRUE(catalog->create_topic(topic(std::string(249, 'a'), 1)));
}

TEST(EmbeddedCatalog, producer_ids_are_never_given_twice) {
  fs::SimFileSystem fs;
  {
    auto catalog = open(fs);
    EXPECT_EQ(catalog->reserve_producer_ids(1000)->first, 0);
    EXPECT_EQ(catalog->reserve_producer_ids(500)->first, 1000);
    EXPECT_EQ(catalog->reserve_producer_ids(0).error().code, Errc::invalid);
    EXPECT_EQ(catalog->reserve_producer_ids(INT64_MAX).error().code, Errc::too_large);
  }
  auto block = open(fs)->reserve_producer_ids(1);
  EXPECT_EQ(block->first, 1500);
  EXPECT_EQ(block->count, 1);
}

using Kind = ConfigScope::Kind;

TEST(EmbeddedCatalog, settings_of_brokers_and_groups_are_kept_and_replaced_as_a_whole) {
  fs::SimFileSystem fs;
  const ConfigScope all{Kind::brokers, ""}, one{Kind::broker, "1"}, group{Kind::group, "g*="};
  {
    auto catalog = open(fs);
    EXPECT_TRUE(catalog->scoped_configs()->empty());
    ASSERT_TRUE(catalog->set_scoped_configs(all, {{"log.retention.ms", "1"}, {"x", ""}}));
    ASSERT_TRUE(catalog->set_scoped_configs(one, {{"log.retention.ms", "2"}}));
    ASSERT_TRUE(catalog->set_scoped_configs(group, {{"consumer.session.timeout.ms", "3"}}));
    ASSERT_TRUE(catalog->set_scoped_configs(all, {{"log.retention.ms", "4"}}));
  }
  auto catalog = open(fs);
  const ScopedConfigs expected{{all, {{"log.retention.ms", "4"}}},
                               {one, {{"log.retention.ms", "2"}}},
                               {group, {{"consumer.session.timeout.ms", "3"}}}};
  EXPECT_EQ(*catalog->scoped_configs(), expected);
  ASSERT_TRUE(catalog->set_scoped_configs(one, {}));
  EXPECT_EQ(catalog->scoped_configs()->count(one), 0U);
  const ConfigScope bad{Kind::group, std::string("a\0b", 3)};
  EXPECT_EQ(catalog->set_scoped_configs(bad, {}).error().code, Errc::invalid);
}

TEST(EmbeddedCatalog, quotas_keep_their_exact_value_and_tell_default_from_absent) {
  fs::SimFileSystem fs;
  QuotaEntity user, default_user, both, ip;
  user.user = QuotaName{false, "*"};
  default_user.user = QuotaName{true, ""};
  both.user = QuotaName{false, "a"};
  both.client_id = QuotaName{true, ""};
  ip.ip = QuotaName{false, "127.0.0.1"};
  {
    auto catalog = open(fs);
    ASSERT_TRUE(catalog->change_quotas({{user, "producer_byte_rate", 1048576.0},
                                        {default_user, "request_percentage", 0.1},
                                        {both, "consumer_byte_rate", 1e15},
                                        {ip, "connection_creation_rate", 7}}));
    ASSERT_TRUE(catalog->change_quotas(
        {{user, "producer_byte_rate", 5}, {ip, "connection_creation_rate", std::nullopt}}));
    EXPECT_EQ(catalog->change_quotas({{QuotaEntity{}, "k", 1}}).error().code, Errc::invalid);
  }
  const Quotas expected{{user, {{"producer_byte_rate", 5}}},
                        {default_user, {{"request_percentage", 0.1}}},
                        {both, {{"consumer_byte_rate", 1e15}}}};
  EXPECT_EQ(*open(fs)->quotas(), expected);
}

// What version 1 left behind.
const char* version_1_sql = R"sql(
  PRAGMA application_id = 1886154599; PRAGMA user_version = 1;
  CREATE TABLE identity(only INTEGER PRIMARY KEY CHECK (only = 1), cluster_id TEXT NOT NULL,
                        created_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE topics(name TEXT NOT NULL PRIMARY KEY, id TEXT NOT NULL UNIQUE,
                      partitions INTEGER NOT NULL, layout TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE topic_configs(topic TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
                             PRIMARY KEY (topic, key)) STRICT, WITHOUT ROWID;
  CREATE TABLE producer_ids(only INTEGER PRIMARY KEY CHECK (only = 1), next INTEGER NOT NULL)
    STRICT;
  INSERT INTO producer_ids VALUES (1, 5000);
  INSERT INTO identity VALUES (1, 'AQAAAAAAAAAAAAAAAAAAAA', 1);
  INSERT INTO topics VALUES ('old', 'AgAAAAAAAAAAAAAAAAAAAA', 3, 'kafka');
  INSERT INTO topic_configs VALUES ('old', 'retention.ms', '9');
)sql";

TEST(EmbeddedCatalog, version_1_is_upgraded_and_keeps_what_it_had) {
  fs::SimFileSystem fs;
  put(fs, "/meta.db", foreign_database(version_1_sql));
  const TopicRecord old{"old", id_of(2), 3, "kafka", {{"retention.ms", "9"}}};
  for (int round = 0; round < 2; ++round) {
    auto catalog = open(fs);
    ASSERT_NE(catalog, nullptr);
    EXPECT_EQ(catalog->cluster_id(), id_of(1));
    EXPECT_EQ(*catalog->topics(), std::vector{old});
    EXPECT_EQ(catalog->reserve_producer_ids(10)->first, 5000 + 10 * round);
    EXPECT_EQ(catalog->scoped_configs()->size(), static_cast<std::size_t>(round));
    ASSERT_TRUE(catalog->set_scoped_configs({Kind::brokers, ""}, {{"k", "v"}}));
  }
}

TEST(EmbeddedCatalog, version_1_on_a_full_disk_is_read_and_upgraded_once_there_is_room) {
  fs::SimFileSystem fs;
  auto bytes = foreign_database(version_1_sql);
  bytes[18] = bytes[19] = 2;  // it was used in WAL mode
  put(fs, "/meta.db", bytes);
  fs.set_capacity(0);
  auto catalog = open(fs);
  ASSERT_NE(catalog, nullptr);
  EXPECT_EQ(catalog->topics()->size(), 1U);
  EXPECT_TRUE(catalog->quotas()->empty());
  EXPECT_EQ(catalog->set_scoped_configs({Kind::brokers, ""}, {{"k", "v"}}).error().code,
            Errc::no_space);
  fs.set_capacity(1 << 30);
  ASSERT_TRUE(catalog->set_scoped_configs({Kind::brokers, ""}, {{"k", "v"}}));
  EXPECT_EQ(catalog->scoped_configs()->size(), 1U);
}

TEST(EmbeddedCatalog, an_upgrade_cut_off_at_any_step_leaves_version_1_or_2_whole) {
  std::uint64_t steps = 0;
  {
    fs::SimFileSystem fs;
    put(fs, "/meta.db", foreign_database(version_1_sql));
    const std::uint64_t before = fs.steps();
    open(fs);
    steps = fs.steps() - before;
  }
  ASSERT_GT(steps, 3U);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    fs::SimFileSystem fs;
    put(fs, "/meta.db", foreign_database(version_1_sql));
    const std::uint64_t at = fs.steps() + step;
    fs.crash_at(at, false);
    { auto cut = open_embedded_catalog(fs, "/", {}); }
    for (const fs::CrashChoice& choice : fs.crash_choices(step, 6)) {
      auto after = fs.crash_state(choice);
      auto catalog = open(*after);
      ASSERT_NE(catalog, nullptr) << step;
      EXPECT_EQ(catalog->topics()->size(), 1U) << step;
      EXPECT_TRUE(catalog->change_quotas({{QuotaEntity{QuotaName{true, ""}, {}, {}}, "k", 1}}));
    }
  }
}

TEST(EmbeddedCatalog, many_topics_and_checkpoints_of_the_wal_fit_together) {
  fs::SimFileSystem fs;
  constexpr int count = 1500;  // beyond the thousand pages after which SQLite checkpoints
  auto catalog = open(fs);
  for (int i = 0; i < count; ++i) {
    TopicRecord record{"t" + std::to_string(i), Uuid::random(), 1, "kafka", {}};
    ASSERT_TRUE(catalog->create_topic(record));
  }
  EXPECT_EQ(catalog->topics()->size(), count);
  EXPECT_LT(fs.info("/meta.db-wal")->size, 10U << 20);
  auto after = fs.crash_state({.mode = fs::CrashChoice::Mode::lose_all});
  EXPECT_EQ(open(*after)->topics()->size(), count);
}

TEST(EmbeddedCatalog, calls_from_several_threads_do_not_mix) {
  fs::SimFileSystem fs;
  auto catalog = open(fs);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&catalog, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string name = "t" + std::to_string(t) + "-" + std::to_string(i);
        EXPECT_TRUE(catalog->create_topic({name, Uuid::random(), 1, "kafka", {{"k", name}}}));
        EXPECT_TRUE(catalog->topics());
        EXPECT_TRUE(catalog->reserve_producer_ids(10));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(catalog->topics()->size(), 80U);
  EXPECT_EQ(catalog->reserve_producer_ids(1)->first, 800);
}

TEST(EmbeddedCatalog, two_catalogues_can_be_open_in_one_process) {
  fs::SimFileSystem one, two;
  auto first = open(one);
  auto second = open(two);
  ASSERT_TRUE(first->create_topic(topic("a", 1)));
  first.reset();
  EXPECT_TRUE(second->topics()->empty());
  EXPECT_EQ(open(one)->topics()->size(), 1U);
}

TEST(EmbeddedCatalog, a_file_that_is_no_database_is_refused_and_left) {
  fs::SimFileSystem fs;
  const auto bytes = to_vector(as_bytes(std::string(20000, 'x')));
  put(fs, "/meta.db", bytes);
  const Error error = open_error(fs);
  EXPECT_EQ(error.code, Errc::corrupt);
  EXPECT_NE(error.context.find("/meta.db"), std::string::npos);
  EXPECT_NE(error.context.find("left as it is"), std::string::npos);
  EXPECT_EQ(content(fs, "/meta.db"), bytes);
}

TEST(EmbeddedCatalog, another_programs_database_is_refused_and_left) {
  for (const char* sql : {"CREATE TABLE t(x)", "PRAGMA user_version = 1; CREATE TABLE topics(x)",
                          "PRAGMA application_id = 7; CREATE TABLE t(x)"}) {
    fs::SimFileSystem fs;
    const auto bytes = foreign_database(sql);
    put(fs, "/meta.db", bytes);
    const Error error = open_error(fs);
    EXPECT_EQ(error.code, Errc::corrupt) << sql;
    EXPECT_NE(error.context.find("another program"), std::string::npos) << error.context;
    EXPECT_EQ(content(fs, "/meta.db"), bytes);
  }
}

TEST(EmbeddedCatalog, a_schema_from_the_future_is_refused_and_left) {
  fs::SimFileSystem fs;
  const auto bytes = foreign_database(
      "PRAGMA application_id = 1886154599; PRAGMA user_version = 3; CREATE TABLE topics(x)");
  put(fs, "/meta.db", bytes);
  const Error error = open_error(fs);
  EXPECT_EQ(error.code, Errc::unsupported);
  EXPECT_NE(error.context.find("newer polylog"), std::string::npos) << error.context;
  EXPECT_EQ(content(fs, "/meta.db"), bytes);
}

TEST(EmbeddedCatalog, an_emptied_database_beside_its_wal_is_refused_and_both_are_left) {
  for (const bool gone : {false, true}) {
    fs::SimFileSystem fs;
    {
      auto catalog = open(fs);
      ASSERT_TRUE(catalog->create_topic(topic("a", 1)));
    }
    const auto wal = content(fs, "/meta.db-wal");
    ASSERT_FALSE(wal.empty());
    if (gone) {
      ASSERT_TRUE(fs.remove("/meta.db"));
    } else {
      fs.truncate_raw("/meta.db", 0);
    }
    EXPECT_EQ(open_error(fs).code, Errc::corrupt);
    EXPECT_EQ(content(fs, "/meta.db-wal"), wal);
  }
}

TEST(EmbeddedCatalog, damage_in_any_block_is_an_error_or_harmless_but_never_a_changed_topic) {
  fs::SimFileSystem whole;
  {
    auto catalog = open(whole);
    for (std::uint8_t i = 1; i <= 40; ++i) {
      ASSERT_TRUE(catalog->create_topic(topic("topic-" + std::to_string(i), i)));
    }
  }
  const std::size_t topics = open(whole)->topics()->size();
  ASSERT_TRUE(whole.remove("/meta.db-wal"));  // everything is in the database now
  const std::uint64_t size = whole.info("/meta.db")->size;
  int refused = 0;
  for (std::uint64_t block = 0; block < size; block += 512) {
    auto fs = whole.crash_state({.mode = fs::CrashChoice::Mode::keep_all});
    const std::vector<std::uint8_t> garbage(512, 0xa5);
    fs->corrupt("/meta.db", block, garbage);
    auto catalog = open_embedded_catalog(*fs, "/", {});
    if (!catalog) {
      EXPECT_EQ(catalog.error().code, Errc::corrupt) << catalog.error().to_string();
      EXPECT_EQ(fs->info("/meta.db")->size, size);
      ++refused;
    } else {
      EXPECT_EQ((*catalog)->topics()->size(), topics) << block;
    }
  }
  EXPECT_GT(refused, 10);
}

TEST(EmbeddedCatalog, a_missing_directory_is_an_error_not_a_new_one) {
  fs::SimFileSystem fs;
  auto catalog = open_embedded_catalog(fs, "/nowhere", {});
  ASSERT_FALSE(catalog);
  EXPECT_EQ(catalog.error().code, Errc::not_found);
}

}  // namespace
}  // namespace polylog::meta
