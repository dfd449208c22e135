#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/json.h"

namespace polylog::cli {

// Where a dump's lines go: for a person, or one JSON object a line (docs/guide/cli.md has the
// contract), and what was found damaged. Used by one thread.
class DumpReport {
 public:
  struct Count {
    std::string_view name;  // also the JSON field's
    std::int64_t value = 0;
  };

  // `out` outlives the report.
  DumpReport(std::FILE* out, bool json) : out_(out), json_(json) {}

  bool json() const { return json_; }
  std::uint64_t damaged() const { return damaged_; }  // places so far, in all files

  // A file begins: its path, kind, and what its name and size say.
  void begin_file(const std::string& path, std::string_view kind, const std::vector<Count>& facts);
  // One line of it for a person, or the fields of one object; `json` begins with {"type":...}.
  void person(const std::string& line);
  void object(JsonWriter& json);
  // Something worth a remark that is no damage.
  void note(std::uint64_t position, const std::string& what) { remark("note", position, what); }
  void damage(std::uint64_t position, const std::string& what);
  void end_file(const std::vector<Count>& counts);

 private:
  void remark(std::string_view type, std::uint64_t position, const std::string& what);

  std::FILE* const out_;
  const bool json_;
  std::uint64_t damaged_ = 0;
  std::uint64_t damaged_before_ = 0;  // this file began
  bool first_file_ = true;
};

// An object of one type, begun.
inline JsonWriter json_of_type(std::string_view type) {
  JsonWriter json;
  json.begin_object().field("type", type);
  return json;
}

}  // namespace polylog::cli
