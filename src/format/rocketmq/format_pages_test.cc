#include <gtest/gtest.h>

#include <string>

#include "format/page_table.h"
#include "format/rocketmq/checkpoint.h"
#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/consume_queue_ext.h"
#include "format/rocketmq/delay_levels.h"
#include "format/rocketmq/index_file.h"
#include "format/rocketmq/message.h"

// The byte tables of docs/formats/ must say what the code does.
namespace polylog::format::rocketmq {
namespace {

using page::rows_of;
using page::table_of;

TEST(FormatPages, tables_equal_the_code) {
  EXPECT_EQ(table_of("rocketmq-commitlog.md", 0), rows_of(message_fields));
  EXPECT_EQ(table_of("rocketmq-consumequeue.md", 0), rows_of(queue_entry_fields));
  EXPECT_EQ(table_of("rocketmq-consumequeue-ext.md", 0), rows_of(ext_unit_fields));
  EXPECT_EQ(table_of("rocketmq-index.md", 0), rows_of(index_header_fields));
  EXPECT_EQ(table_of("rocketmq-index.md", 1), rows_of(index_entry_fields));
  EXPECT_EQ(table_of("rocketmq-checkpoint.md", 0), rows_of(checkpoint_fields));
}

TEST(FormatPages, numbers_equal_the_code) {
  EXPECT_TRUE(page::says("rocketmq-commitlog.md", "`" + std::string(delay_levels_default) + "`"));
  EXPECT_TRUE(page::says("rocketmq-index.md", std::to_string(index_file_bytes(
                                                  index_slots_default, index_entries_default))));
  EXPECT_TRUE(page::says("rocketmq-consumequeue.md",
                         std::to_string(queue_entry_bytes * queue_entries_per_file_default)));
}

}  // namespace
}  // namespace polylog::format::rocketmq
