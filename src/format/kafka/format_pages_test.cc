#include <gtest/gtest.h>

#include "format/kafka/index.h"
#include "format/kafka/record_batch.h"
#include "format/kafka/snapshot.h"
#include "format/page_table.h"

// The byte tables of docs/formats/ must say what the code does.
namespace polylog::format::kafka {
namespace {

using page::rows_of;
using page::table_of;

TEST(FormatPages, tables_equal_the_code) {
  EXPECT_EQ(table_of("kafka-log.md", 0), rows_of(batch_header_fields));
  EXPECT_EQ(table_of("kafka-index.md", 0), rows_of(offset_index_fields));
  EXPECT_EQ(table_of("kafka-timeindex.md", 0), rows_of(time_index_fields));
  EXPECT_EQ(table_of("kafka-txnindex.md", 0), rows_of(transaction_index_fields));
  EXPECT_EQ(table_of("kafka-snapshot.md", 0), rows_of(snapshot_header_fields));
  EXPECT_EQ(table_of("kafka-snapshot.md", 1), rows_of(snapshot_entry_fields));
}

}  // namespace
}  // namespace polylog::format::kafka
