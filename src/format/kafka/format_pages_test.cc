#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "format/kafka/index.h"
#include "format/kafka/record_batch.h"
#include "format/kafka/snapshot.h"

// The byte tables of docs/formats/ must say what the code does.
namespace polylog::format::kafka {
namespace {

struct Row {
  std::size_t at = 0;
  std::size_t size = 0;
  std::string name;
  bool operator==(const Row&) const = default;
};

std::string trimmed(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" `");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" `") - from + 1);
}

std::optional<std::size_t> number(const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

// Rows `| at | size | type | name | ...` of the page's table number `table`; a row without a
// fixed size ends it.
std::vector<Row> table_of(const std::string& page, int table) {
  const char* source = std::getenv("POLYLOG_SOURCE_DIR");
  EXPECT_NE(source, nullptr) << "run through ctest";
  std::ifstream in(std::string(source != nullptr ? source : ".") + "/docs/formats/" + page);
  EXPECT_TRUE(in) << page;
  std::vector<Row> rows;
  int seen = -1;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| at | size |")) ++seen;
    if (seen != table || !line.starts_with('|')) continue;
    std::vector<std::string> cells;
    std::istringstream cut(line.substr(1));
    for (std::string cell; std::getline(cut, cell, '|');) cells.push_back(trimmed(cell));
    if (cells.size() < 4) continue;
    const auto at = number(cells[0]);
    const auto size = number(cells[1]);
    if (at && size) rows.push_back({*at, *size, cells[3]});
  }
  return rows;
}

std::vector<Row> rows_of(std::span<const Field> fields) {
  std::vector<Row> rows;
  for (const Field& field : fields) rows.push_back({field.at, field.size, std::string(field.name)});
  return rows;
}

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
