#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bytes/slice.h"

namespace polylog::cli {

// Writes JSON without spaces into a string, one value after the other; commas are put where they
// belong. Used by one thread.
class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  // Bytes that are no UTF-8 come out as U+FFFD; see bytes_field().
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag) { return raw(flag ? "true" : "false"); }
  template <std::integral T>
  JsonWriter& value(T number) {
    return raw(std::to_string(number));
  }
  JsonWriter& value(double number);  // null when it is none
  JsonWriter& null() { return raw("null"); }

  template <typename T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  // `json` is JSON already.
  JsonWriter& json_field(std::string_view name, std::string_view json) {
    return key(name).raw(json);
  }
  // "name":null, "name":"text", or "name_base64":"..." when the bytes are no UTF-8.
  JsonWriter& bytes_field(std::string_view name, const std::optional<ByteView>& content);

  const std::string& text() const { return out_; }
  // The text so far; the writer is as new afterwards.
  std::string take();

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view text);
  void comma();
  void quote(std::string_view text);

  std::string out_;
  bool first_ = true;  // nothing in this object or array yet, or a key just before
};

}  // namespace polylog::cli
