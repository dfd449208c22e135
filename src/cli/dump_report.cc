#include "cli/dump_report.h"

#include <algorithm>

namespace polylog::cli {
namespace {

// "base_offset" for a person.
std::string spaced(std::string_view name) {
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

}  // namespace

void DumpReport::begin_file(const std::string& path, std::string_view kind,
                            const std::vector<Count>& facts) {
  damaged_before_ = damaged_;
  if (json_) {
    JsonWriter json = json_of_type("file");
    json.field("path", path).field("kind", kind);
    for (const Count& fact : facts) json.field(fact.name, fact.value);
    return object(json);
  }
  std::string line = path + ": " + spaced(kind);
  for (const Count& fact : facts)
    line += ", " + spaced(fact.name) + " " + std::to_string(fact.value);
  if (!first_file_) person("");
  first_file_ = false;
  person(line);
}

void DumpReport::person(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fputc('\n', out_);
}

void DumpReport::object(JsonWriter& json) {
  json.end_object();
  person(json.take());
}

void DumpReport::remark(std::string_view type, std::uint64_t position, const std::string& what) {
  if (json_) {
    JsonWriter json = json_of_type(type);
    json.field("position", position).field("what", what);
    return object(json);
  }
  const std::string head = type == "damage" ? "  DAMAGED at byte " : "  at byte ";
  person(head + std::to_string(position) + ": " + what);
}

void DumpReport::damage(std::uint64_t position, const std::string& what) {
  ++damaged_;
  remark("damage", position, what);
}

void DumpReport::end_file(const std::vector<Count>& counts) {
  const std::uint64_t places = damaged_ - damaged_before_;
  if (json_) {
    JsonWriter json = json_of_type("end");
    for (const Count& count : counts) json.field(count.name, count.value);
    json.field("damaged_places", places);
    return object(json);
  }
  std::string line;
  for (const Count& count : counts) {
    line += spaced(count.name) + " " + std::to_string(count.value) + ", ";
  }
  person("  " + line + (places == 0 ? "no damage" : "damaged places " + std::to_string(places)));
}

}  // namespace polylog::cli
