#include "storage/rocksdb/loader.h"

#include <gtest/gtest.h>

#include "fs/sim_file_system.h"

namespace polylog::storage {
namespace {

TEST(IndexLoader, the_module_beside_the_program_opens_an_index_that_keeps_what_it_is_given) {
  fs::SimFileSystem disk;
  ASSERT_TRUE(disk.create_directory("/data"));
  {
    auto index = load_rocksdb_index(disk, "/data/index");
    ASSERT_TRUE(index) << index.error().to_string();
    ASSERT_TRUE((*index)->write({.puts = {{"b", "1"}}, .removed_ranges = {}}));
    ASSERT_TRUE((*index)->sync());
  }
  const auto index = load_rocksdb_index(disk, "/data/index");
  ASSERT_TRUE(index) << index.error().to_string();
  const auto found = (*index)->floor("c", "a");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(**found, OrderedIndex::Entry("b", "1"));
}

}  // namespace
}  // namespace polylog::storage
