#include "journal/journal.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/assert.h"
#include "bytes/reader.h"
#include "fs/sim_file_system.h"
#include "journal/entries.h"

// A journal file as it is found: the first byte says whether the input is the entries of one area
// as they stand, or a list of entries that get good checksums. Replaying it may be refused;
// nothing but the files it may name is changed, and a second replay finds nothing to do.

using namespace polylog;
using namespace polylog::journal;

namespace {

constexpr std::uint64_t area_bytes = std::uint64_t{16} << 10;
constexpr std::uint64_t epoch = 5;
constexpr std::size_t file_bytes_max = 1 << 20;

// kind and whether a write begins, generation, position, length, payload: again and again.
std::vector<std::uint8_t> entries_from(ByteView input) {
  std::vector<std::uint8_t> all;
  ByteReader reader(input);
  for (std::uint64_t sequence = 0; reader.remaining() > 0; ++sequence) {
    const std::uint8_t kind = reader.u8();
    const std::uint32_t generation = reader.u8();
    const std::uint64_t position = reader.u16();
    const ByteView payload = reader.bytes(std::min<std::size_t>(reader.u8(), reader.remaining()));
    if (!reader.ok()) break;
    std::vector<std::uint8_t> whole(entry_head_bytes + payload.size());
    std::copy(payload.begin(), payload.end(), whole.begin() + entry_head_bytes);
    encode_entry_head(whole, {static_cast<EntryKind>(kind & 0x0f), kind >= 0x80, epoch, sequence,
                              generation, position});
    all.insert(all.end(), whole.begin(), whole.end());
  }
  return all;
}

void put(fs::FileSystem& fs, const std::string& path, std::uint64_t position, ByteView bytes) {
  const auto file = fs.open(path, fs::OpenMode::create);
  POLYLOG_ASSERT(file && (*file)->write(position, bytes));
}

std::string content(fs::FileSystem& fs, const std::string& path) {
  const auto bytes = fs::read_file(fs, path, file_bytes_max);
  POLYLOG_ASSERT(bytes.has_value());
  return std::string(as_text(*bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView rest = ByteView(data, size).subspan(1);
  auto entries = data[0] % 2 == 0 ? to_vector(rest) : entries_from(rest);
  entries.resize(std::min<std::size_t>(entries.size(), area_bytes - block_bytes));

  fs::SimFileSystem disk;
  POLYLOG_ASSERT(fs::create_directories(disk, "/data/store"));
  POLYLOG_ASSERT(fs::create_directories(disk, "/data/journal"));
  put(disk, "/outside", 0, as_bytes("untouched"));
  put(disk, "/data/store/a", 0, as_bytes("some bytes"));  // inode 7
  Options options;
  options.root = "/data";
  options.directory = "/data/journal";
  options.bytes = block_bytes + area_count * area_bytes;
  options.own_thread = false;
  const std::string path = journal_path(options.directory);
  put(disk, path, area_start(area_count, area_bytes) - 1, as_bytes(std::string_view("\0", 1)));
  put(disk, path, 0, encode_file_head(area_bytes));
  put(disk, path, area_start(0, area_bytes), encode_area_head(epoch));
  put(disk, path, area_start(1, area_bytes), encode_area_head(epoch + 1));
  if (!entries.empty()) put(disk, path, area_start(0, area_bytes) + block_bytes, entries);

  const auto opened = Journal::open(disk, options);
  POLYLOG_ASSERT(content(disk, "/outside") == "untouched");
  if (!opened) return 0;
  const auto again = Journal::recover_and_remove(disk, options);
  POLYLOG_ASSERT(again && again->entries == 0);
  return 0;
}
