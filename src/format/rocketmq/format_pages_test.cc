#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "format/rocketmq/checkpoint.h"
#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/consume_queue_ext.h"
#include "format/rocketmq/delay_levels.h"
#include "format/rocketmq/index_file.h"
#include "format/rocketmq/message.h"

// The byte tables of docs/formats/ must say what the code does.
namespace polylog::format::rocketmq {
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

std::ifstream page(const std::string& name) {
  const char* source = std::getenv("POLYLOG_SOURCE_DIR");
  EXPECT_NE(source, nullptr) << "run through ctest";
  std::ifstream in(std::string(source != nullptr ? source : ".") + "/docs/formats/" + name);
  EXPECT_TRUE(in) << name;
  return in;
}

// Rows `| at | size | type | name | ...` of the page's table number `table`; rows without a fixed
// size are left out.
std::vector<Row> table_of(const std::string& name, int table) {
  std::ifstream in = page(name);
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
  for (const Field& field : fields) {
    if (field.size != 0) rows.push_back({field.at, field.size, std::string(field.name)});
  }
  return rows;
}

bool page_says(const std::string& name, std::string_view text) {
  std::stringstream whole;
  whole << page(name).rdbuf();
  return whole.str().find(text) != std::string::npos;
}

TEST(FormatPages, tables_equal_the_code) {
  EXPECT_EQ(table_of("rocketmq-commitlog.md", 0), rows_of(message_fields));
  EXPECT_EQ(table_of("rocketmq-consumequeue.md", 0), rows_of(queue_entry_fields));
  EXPECT_EQ(table_of("rocketmq-consumequeue-ext.md", 0), rows_of(ext_unit_fields));
  EXPECT_EQ(table_of("rocketmq-index.md", 0), rows_of(index_header_fields));
  EXPECT_EQ(table_of("rocketmq-index.md", 1), rows_of(index_entry_fields));
  EXPECT_EQ(table_of("rocketmq-checkpoint.md", 0), rows_of(checkpoint_fields));
}

TEST(FormatPages, numbers_equal_the_code) {
  EXPECT_TRUE(page_says("rocketmq-commitlog.md", "`" + std::string(delay_levels_default) + "`"));
  EXPECT_TRUE(page_says("rocketmq-index.md", std::to_string(index_file_bytes(
                                                 index_slots_default, index_entries_default))));
  EXPECT_TRUE(page_says("rocketmq-consumequeue.md",
                        std::to_string(queue_entry_bytes * queue_entries_per_file_default)));
}

}  // namespace
}  // namespace polylog::format::rocketmq
