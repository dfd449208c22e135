#pragma once

#include <string_view>

// What text may go where in a property, and a key's form as text. Page:
// docs/formats/record-mapping.md.
namespace polylog::format {

// Valid UTF-8 without the separators U+0001 and U+0002, and not empty: fits into a property as it
// is, and comes back from a Java client as it is.
bool is_plain_text(std::string_view text);

// Plain text without ASCII control characters.
bool is_printable(std::string_view text);

// Printable and without a space: one entry of KEYS.
bool is_token(std::string_view text);

}  // namespace polylog::format
