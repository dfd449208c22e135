#include "journal/entries.h"

#include <algorithm>

#include "base/crc.h"
#include "bytes/endian.h"
#include "bytes/reader.h"
#include "bytes/writer.h"

namespace polylog::journal {
namespace {

constexpr std::string_view file_magic = "PLJRNL01";
constexpr std::string_view area_magic = "PLAREA01";
// The copies of a head lie in sectors of their own: a write that is cut off spoils one of them.
constexpr std::size_t copy_bytes = 512;
constexpr std::size_t copies = 2;
constexpr std::size_t head_front_bytes = 8;  // length and checksum
constexpr std::size_t payload_bytes_max = write_bytes_max;

std::uint32_t entry_crc(ByteView whole) {
  return crc32c_extend(crc32c(whole.first(4)), whole.subspan(head_front_bytes));
}

std::vector<std::uint8_t> encode_head(std::string_view magic, std::uint64_t value) {
  ByteWriter writer;
  writer.text(magic);
  writer.u64(value);
  writer.u32(crc32c(writer.own_bytes()));
  const auto one = writer.take_bytes();
  std::vector<std::uint8_t> block(block_bytes);
  for (std::size_t copy = 0; copy < copies; ++copy) {
    std::copy(one.begin(), one.end(),
              block.begin() + static_cast<std::ptrdiff_t>(copy * copy_bytes));
  }
  return block;
}

// Of two copies that read the later one counts: the write of the other was cut off.
std::optional<std::uint64_t> decode_head(ByteView block, std::string_view magic) {
  std::optional<std::uint64_t> value;
  for (std::size_t copy = 0; copy < copies; ++copy) {
    if (block.size() < copy * copy_bytes) break;
    ByteReader reader(block.subspan(copy * copy_bytes));
    const bool known = reader.text(magic.size()) == magic;
    const std::uint64_t read = reader.u64();
    const std::size_t summed = reader.position();
    const std::uint32_t crc = reader.u32();
    if (!known || !reader.ok()) continue;
    if (crc != crc32c(block.subspan(copy * copy_bytes, summed))) continue;
    value = std::max(value.value_or(0), read);
  }
  return value;
}

}  // namespace

void encode_entry_head(MutableBytes whole, const EntryHead& head) {
  POLYLOG_ASSERT(whole.size() >= entry_head_bytes);
  std::uint8_t* const at = whole.data();
  store_big(at, static_cast<std::uint32_t>(whole.size() - head_front_bytes));
  store_big(at + 8, head.epoch);
  store_big(at + 16, head.sequence);
  at[24] = static_cast<std::uint8_t>(head.kind);
  at[25] = head.first ? 1 : 0;
  at[26] = at[27] = 0;
  store_big(at + 28, head.generation);
  store_big(at + 32, head.position);
  store_big(at + 4, entry_crc(whole));
}

std::optional<std::size_t> entry_size(ByteView head) {
  POLYLOG_ASSERT(head.size() >= entry_head_bytes);
  const std::size_t size = std::size_t{load_big<std::uint32_t>(head.data())} + head_front_bytes;
  if (size < entry_head_bytes || size > entry_head_bytes + payload_bytes_max) return std::nullopt;
  return size;
}

std::optional<Entry> decode_entry(ByteView bytes, std::uint64_t epoch, std::uint64_t sequence) {
  auto entry = decode_entry(bytes, epoch);
  return entry && entry->sequence == sequence ? entry : std::nullopt;
}

std::optional<Entry> decode_entry(ByteView bytes, std::uint64_t epoch) {
  if (bytes.size() < entry_head_bytes) return std::nullopt;
  const auto size = entry_size(bytes);
  if (!size || *size > bytes.size()) return std::nullopt;
  const ByteView whole = bytes.first(*size);
  if (load_big<std::uint32_t>(whole.data() + 4) != entry_crc(whole)) return std::nullopt;
  ByteReader reader(whole.subspan(head_front_bytes));
  if (reader.u64() != epoch) return std::nullopt;
  Entry entry;
  entry.sequence = reader.u64();
  const std::uint8_t kind = reader.u8();
  if (kind < static_cast<std::uint8_t>(EntryKind::write) ||
      kind > static_cast<std::uint8_t>(EntryKind::other)) {
    return std::nullopt;
  }
  entry.kind = static_cast<EntryKind>(kind);
  entry.first = reader.u8() != 0;
  reader.skip(2);
  entry.generation = reader.u32();
  entry.position = reader.u64();
  entry.payload = whole.subspan(entry_head_bytes);
  entry.size = *size;
  return entry;
}

bool is_inner_path(std::string_view path) {
  if (path.empty() || path.size() > path_bytes_max || path.front() == '/') return false;
  if (path.find('\0') != std::string_view::npos) return false;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash + 1 == path.size()) return false;  // ends in a slash
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return true;
}

std::vector<std::uint8_t> encode_witness(const Witness& witness) {
  const Identity identity = witness.identity.value_or(Identity());
  ByteWriter writer;
  writer.u8(witness.identity ? 1 : 0);
  writer.u64(identity.size);
  writer.u64(identity.inode);
  writer.i64(identity.modified_ns);
  writer.text(witness.path);
  return writer.take_bytes();
}

std::optional<Witness> decode_witness(ByteView payload) {
  ByteReader reader(payload);
  Witness witness;
  const bool present = reader.u8() != 0;
  Identity identity;
  identity.size = reader.u64();
  identity.inode = reader.u64();
  identity.modified_ns = reader.i64();
  witness.path = std::string(reader.text(reader.remaining()));
  if (!reader.ok() || !is_inner_path(witness.path)) return std::nullopt;
  if (present) witness.identity = identity;
  return witness;
}

std::vector<std::uint8_t> encode_epoch(std::uint64_t epoch) {
  ByteWriter writer;
  writer.u64(epoch);
  return writer.take_bytes();
}

std::optional<std::uint64_t> decode_epoch(ByteView payload) {
  ByteReader reader(payload);
  const std::uint64_t epoch = reader.u64();
  return reader.ok() && reader.remaining() == 0 ? std::optional(epoch) : std::nullopt;
}

std::vector<std::uint8_t> encode_file_head(std::uint64_t area_bytes) {
  return encode_head(file_magic, area_bytes);
}

std::optional<std::uint64_t> decode_file_head(ByteView block) {
  const auto area_bytes = decode_head(block, file_magic);
  if (!area_bytes || *area_bytes < 2 * block_bytes || *area_bytes % block_bytes != 0) {
    return std::nullopt;
  }
  return area_bytes;
}

std::vector<std::uint8_t> encode_area_head(std::uint64_t epoch) {
  return encode_head(area_magic, epoch);
}

std::optional<std::uint64_t> decode_area_head(ByteView block) {
  return decode_head(block, area_magic);
}

}  // namespace polylog::journal
