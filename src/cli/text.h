#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "bytes/slice.h"

// How values are shown on a terminal.
namespace polylog::cli {

// How many bytes at the start are whole UTF-8 characters (RFC 3629).
std::size_t utf8_prefix(std::string_view text);

// RFC 4648, with padding.
std::string to_base64(ByteView bytes);

// In double quotes, on one line: \n, \t, \\, \" and \xHH for control characters and for bytes that
// are no UTF-8. Nothing: null, without quotes.
std::string quoted(const std::optional<ByteView>& bytes);

// 2023-11-14T22:13:20.000Z; the plain number below zero and beyond the year 9999.
std::string format_time(Timestamp time);

// 1,234,567 bytes as "1.2 MiB", for sizes a person compares.
std::string format_size(std::uint64_t bytes);

// Columns as wide as their widest cell, two spaces apart; no spaces at the ends of lines.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

// A whole decimal number, with a sign if it has one; nothing for anything else.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace polylog::cli
