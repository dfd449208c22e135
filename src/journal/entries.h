#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bytes/slice.h"

// The bytes of a journal file; docs/formats/journal.md has them as a table. Pure: no I/O here.
namespace polylog::journal {

inline constexpr std::uint64_t block_bytes = 4096;  // every write begins and ends at such a place
inline constexpr std::size_t area_count = 2;
inline constexpr std::size_t entry_head_bytes = 40;
inline constexpr std::size_t write_bytes_max = std::size_t{256} << 10;  // in one entry
inline constexpr std::size_t path_bytes_max = 4096;

enum class EntryKind : std::uint8_t {
  write = 1,    // `payload` stands at `position` of the file `generation`
  file = 2,     // names a generation: `position` is the inode, `payload` the path below the root
  settled = 3,  // all earlier entries of the file are in the file itself, and count no more
  witness = 4,  // `payload`: what a file looks like that any other program would have changed
  fill = 5,     // nothing: up to the end of a block
  other = 6,    // the other area, as long as its epoch is `payload`, holds `position` entries
};

struct Entry {
  EntryKind kind = EntryKind::fill;
  bool first = false;  // of those that one write brought to the device
  std::uint64_t sequence = 0;
  std::uint32_t generation = 0;
  std::uint64_t position = 0;
  ByteView payload;      // into the bytes decoded
  std::size_t size = 0;  // of the whole entry
};

// Puts the head in front of a payload that lies in its place already: `whole` is both.
// REQUIRES: whole.size() >= entry_head_bytes.
struct EntryHead {
  EntryKind kind = EntryKind::fill;
  bool first = false;
  std::uint64_t epoch = 0, sequence = 0;
  std::uint32_t generation = 0;
  std::uint64_t position = 0;
};
void encode_entry_head(MutableBytes whole, const EntryHead& head);

// Size of the entry that begins with `head`, if there can be one. REQUIRES: a whole head.
std::optional<std::size_t> entry_size(ByteView head);
// The entry at the front of `bytes`; nothing unless it is whole, reads, and is the one of this
// epoch with this sequence number.
std::optional<Entry> decode_entry(ByteView bytes, std::uint64_t epoch, std::uint64_t sequence);
// The same, whatever its sequence number.
std::optional<Entry> decode_entry(ByteView bytes, std::uint64_t epoch);

// Whether a path that a journal names leads below the root and nowhere else.
bool is_inner_path(std::string_view path);

// A file as another program would not leave it.
struct Identity {
  std::uint64_t size = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const Identity&) const = default;
};
struct Witness {
  std::string path;                  // below the root
  std::optional<Identity> identity;  // nothing: there is no such file
};
std::vector<std::uint8_t> encode_witness(const Witness& witness);
std::optional<Witness> decode_witness(ByteView payload);

// What an entry of kind `other` says.
std::vector<std::uint8_t> encode_epoch(std::uint64_t epoch);
std::optional<std::uint64_t> decode_epoch(ByteView payload);

// The first block of the file: bytes of one area. The areas follow, each with a block of its own
// in front, which says the epoch whose entries count in it.
std::vector<std::uint8_t> encode_file_head(std::uint64_t area_bytes);
std::optional<std::uint64_t> decode_file_head(ByteView block);
std::vector<std::uint8_t> encode_area_head(std::uint64_t epoch);
std::optional<std::uint64_t> decode_area_head(ByteView block);

inline std::uint64_t area_start(std::size_t area, std::uint64_t area_bytes) {
  return block_bytes + area * area_bytes;
}

}  // namespace polylog::journal
