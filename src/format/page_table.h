#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "format/kafka/fields.h"

// For tests: the tables of a page of docs/formats/, to be compared with the code.
namespace polylog::format::page {

inline std::ifstream open(const std::string& name) {
  const char* source = std::getenv("POLYLOG_SOURCE_DIR");
  EXPECT_NE(source, nullptr) << "run through ctest";
  std::ifstream in(std::string(source != nullptr ? source : ".") + "/docs/formats/" + name);
  EXPECT_TRUE(in) << name;
  return in;
}

inline bool says(const std::string& name, std::string_view text) {
  std::stringstream whole;
  whole << open(name).rdbuf();
  return whole.str().find(text) != std::string::npos;
}

inline std::string trimmed(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" `");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" `") - from + 1);
}

inline std::optional<std::size_t> number(const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

// The cells of the page's table number `table` among those whose first line begins with
// `heading`; that line and the one under it stand first.
inline std::vector<std::vector<std::string>> cells_of(const std::string& name,
                                                      std::string_view heading, int table) {
  std::ifstream in = open(name);
  std::vector<std::vector<std::string>> rows;
  int seen = -1;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(heading)) {
      ++seen;
      inside = true;
    }
    inside = inside && line.starts_with('|');
    if (seen != table || !inside) continue;
    std::vector<std::string> cells;
    std::istringstream cut(line.substr(1));
    for (std::string cell; std::getline(cut, cell, '|');) cells.push_back(trimmed(cell));
    rows.push_back(std::move(cells));
  }
  return rows;
}

struct Row {
  std::size_t at = 0;
  std::size_t size = 0;
  std::string name;
  bool operator==(const Row&) const = default;
};

// Rows `| at | size | type | name | ...` of the page's table number `table`; rows without a fixed
// place and size are left out.
inline std::vector<Row> table_of(const std::string& name, int table) {
  std::vector<Row> rows;
  for (const auto& cells : cells_of(name, "| at | size |", table)) {
    if (cells.size() < 4) continue;
    const auto at = number(cells[0]);
    const auto size = number(cells[1]);
    if (at && size) rows.push_back({*at, *size, cells[3]});
  }
  return rows;
}

inline std::vector<Row> rows_of(std::span<const kafka::Field> fields) {
  std::vector<Row> rows;
  for (const kafka::Field& field : fields) {
    if (field.size != 0) rows.push_back({field.at, field.size, std::string(field.name)});
  }
  return rows;
}

// Rows `| heading | name | ...` with a number in the first column.
struct Named {
  std::size_t number = 0;
  std::string name;
  bool operator==(const Named&) const = default;
};
inline std::vector<Named> named_of(const std::string& name, const std::string& heading, int table) {
  std::vector<Named> rows;
  for (const auto& cells : cells_of(name, "| " + heading + " |", table)) {
    if (cells.size() < 2) continue;
    if (const auto value = number(cells[0])) rows.push_back({*value, cells[1]});
  }
  return rows;
}

}  // namespace polylog::format::page
