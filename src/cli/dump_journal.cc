#include <map>

#include "cli/dump_files.h"
#include "journal/replay.h"

namespace polylog::cli {
namespace {

using journal::Entry;
using journal::EntryKind;

std::string_view kind_name(EntryKind kind) {
  switch (kind) {
    case EntryKind::write: return "write";
    case EntryKind::file: return "file";
    case EntryKind::settled: return "settled";
    case EntryKind::witness: return "witness";
    case EntryKind::fill: return "fill";
    case EntryKind::other: return "other";
  }
  return "unknown";
}

// What the entry is about, as a path below the data directory.
std::string path_of(const Entry& entry, const std::map<std::uint32_t, std::string>& files) {
  if (entry.kind == EntryKind::witness) {
    const auto witness = journal::decode_witness(entry.payload);
    return witness ? witness->path : std::string();
  }
  const auto known = files.find(entry.generation);
  return known == files.end() ? std::string() : known->second;
}

void show_entry(const Entry& entry, std::uint64_t position, const std::string& path,
                DumpReport& report) {
  if (report.json()) {
    JsonWriter json = json_of_type("journal_entry");
    json.field("position", position).field("entry", kind_name(entry.kind)).field("path", path);
    json.field("at", entry.position).field("bytes", entry.payload.size());
    return report.object(json);
  }
  std::string line = "  @" + std::to_string(position) + " " + std::string(kind_name(entry.kind));
  if (!path.empty()) line += " " + path;
  if (entry.kind == EntryKind::write) {
    line +=
        " at " + std::to_string(entry.position) + " bytes " + std::to_string(entry.payload.size());
  } else if (entry.kind == EntryKind::file) {
    line += " inode " + std::to_string(entry.position);
  }
  report.person(line);
}

}  // namespace

Result<void> dump_journal(const DumpFile& file, const DumpOptions& options, DumpReport& report) {
  report.begin_file(file.path, "journal", {{"bytes", static_cast<std::int64_t>(file.size)}});
  const auto heads = journal::read_heads(*file.file);
  if (!heads) {
    if (heads.error().code != Errc::corrupt) return fail(heads.error());
    report.damage(0, heads.error().context);
    report.end_file({});
    return {};
  }
  POLYLOG_ASSIGN(damage, journal::find_damage(*file.file, *heads));
  if (damage) report.damage(damage->position, damage->what);
  std::int64_t entries = 0, writes = 0, bytes = 0;
  for (const std::size_t area : heads->in_order()) {
    std::map<std::uint32_t, std::string> files;
    journal::EntryReader reader(*file.file, *heads, area);
    for (;;) {
      const std::uint64_t position = reader.position();
      POLYLOG_ASSIGN(entry, reader.next());
      if (!entry) break;
      ++entries;
      if (entry->kind == EntryKind::file) {
        files[entry->generation] = std::string(as_text(entry->payload));
      }
      if (entry->kind == EntryKind::write) {
        ++writes;
        bytes += static_cast<std::int64_t>(entry->payload.size());
      }
      if (options.records) show_entry(*entry, position, path_of(*entry, files), report);
    }
  }
  report.end_file({{"entries", entries}, {"writes", writes}, {"bytes_written", bytes}});
  return {};
}

}  // namespace polylog::cli
