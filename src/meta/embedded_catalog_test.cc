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
      "PRAGMA application_id = 1886154599; PRAGMA user_version = 2; CREATE TABLE topics(x)");
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
