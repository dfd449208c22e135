#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fs/file_system.h"
#include "journal/entries.h"

// Reading a journal file, and bringing what it holds into the files it names.
namespace polylog::journal {

// What the heads of a journal file say.
struct Heads {
  std::uint64_t area_bytes = 0;
  std::array<std::uint64_t, area_count> epochs{};

  // Areas by rising epoch: the order in which they were written.
  std::array<std::size_t, area_count> in_order() const;
};
// corrupt: no journal file, or a head of it does not read.
Result<Heads> read_heads(const fs::File& file);

// Entries of one area, in order, up to the first place where the next one does not stand.
class EntryReader {
 public:
  EntryReader(const fs::File& file, const Heads& heads, std::size_t area);
  // The payload stays until the next call.
  Result<std::optional<Entry>> next();
  std::uint64_t position() const { return at_; }        // in the file, of the entry to come
  std::uint64_t sequence() const { return sequence_; }  // of the entry to come
  // Where a later write stands behind the end. Each was begun when the one before it was
  // acknowledged, so the end is no write that was cut off then. REQUIRES: next() gave nothing.
  Result<std::optional<std::uint64_t>> written_behind() const;

 private:
  Result<bool> fill(std::size_t bytes);  // false: the area ends before

  const fs::File& file_;
  const std::uint64_t epoch_;
  const std::uint64_t end_;
  std::uint64_t at_;
  std::uint64_t sequence_ = 0;
  std::vector<std::uint8_t> window_;
  std::uint64_t window_at_ = 0;
};

// Acknowledged entries that do not read any more.
struct Damage {
  std::uint64_t position = 0;  // in the file, where reading ends
  std::string what;
};
// Of a last write that does not read nobody can say whether it was acknowledged: it counts as cut
// off. Everything before it is found here.
Result<std::optional<Damage>> find_damage(const fs::File& file, const Heads& heads);

// What a replay found.
struct Replayed {
  std::uint64_t entries = 0;
  std::uint64_t writes = 0;  // of those, writes that count
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
};

// Writes what counts into the files below `root` and syncs them. Nothing is written when a file is
// gone or is another one now, or when a witness says that another program has been at work:
// unsupported, and the error says how to go on; nor when the journal is damaged: corrupt. Doing it
// twice is the same as doing it once.
Result<Replayed> replay(fs::FileSystem& fs, const std::string& root, const fs::File& file,
                        const Heads& heads, const std::string& journal_path);

}  // namespace polylog::journal
