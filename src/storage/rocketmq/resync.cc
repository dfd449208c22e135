#include "storage/rocketmq/resync.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/crc.h"
#include "bytes/endian.h"
#include "format/rocketmq/property_crc.h"
#include "storage/rocketmq/log.h"

namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

Result<std::vector<std::uint8_t>> read_some(const CommitFile& file, std::uint64_t at,
                                            std::uint64_t size) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    POLYLOG_ASSIGN(got, file.file->read(at + filled, MutableBytes(bytes).subspan(filled)));
    if (got == 0) break;
    filled += got;
  }
  bytes.resize(filled);
  return bytes;
}

namespace {

constexpr std::uint64_t chunk_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t sector_bytes = 512;
constexpr std::size_t digit_count = 10;
constexpr std::uint32_t crc_mask = 0x7fffffff;

bool all_zeros(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](auto byte) { return byte == 0; });
}

bool is_magic(std::uint32_t magic) {
  return magic == stored::magic_v1 || magic == stored::magic_v2;
}

// By its magic and, of a record, its position; the checksums are asked of what passes.
bool may_go_on(ByteView rest, std::int64_t position, std::uint64_t left) {
  const auto magic = load_big<std::uint32_t>(rest.data() + stored::message_at::magic);
  if (magic == stored::magic_blank) return load_big<std::uint32_t>(rest.data()) == left;
  return is_magic(magic) && begins_record(rest, position);
}

}  // namespace

Result<bool> goes_on_at(const CommitFile& file, std::uint64_t file_bytes, std::uint64_t at) {
  if (at + stored::blank_bytes > file_bytes) return false;
  const auto left = file_bytes - at;
  POLYLOG_ASSIGN(head, read_some(file, at, std::min<std::uint64_t>(record_head_bytes, left)));
  if (head.size() < stored::blank_bytes) return false;
  const stored::FrameHead frame = stored::next_frame(head, left);
  if (frame.state == stored::FrameState::blank) return frame.size == left;
  const std::int64_t position = file.base + static_cast<std::int64_t>(at);
  if (frame.state != stored::FrameState::complete || !begins_record(head, position)) return false;
  POLYLOG_ASSIGN(record, read_some(file, at, frame.size));
  if (record.size() < frame.size) return false;
  POLYLOG_ASSIGN(message, check_record(file, at, record));
  return message.has_value();
}

namespace {

Result<std::optional<std::uint64_t>> search(const CommitFile& file, std::uint64_t file_bytes,
                                            std::uint64_t from, std::uint64_t to) {
  while (from < to) {
    const std::uint64_t want = std::min(chunk_bytes + record_head_bytes, file_bytes - from);
    POLYLOG_ASSIGN(chunk, read_some(file, from, want));
    if (to == file_bytes && all_zeros(chunk)) return std::nullopt;  // nothing was written here
    const auto places = std::min({chunk_bytes, to - from, std::uint64_t{chunk.size()}});
    for (std::uint64_t i = 0; i < places; ++i) {
      const ByteView rest = ByteView(chunk).subspan(static_cast<std::size_t>(i));
      if (rest.size() < stored::blank_bytes) break;
      // The magics begin with these two.
      if (rest[stored::message_at::magic] != 0xda && rest[stored::message_at::magic] != 0xcb) {
        continue;
      }
      const std::uint64_t at = from + i;
      const std::int64_t position = file.base + static_cast<std::int64_t>(at);
      if (!may_go_on(rest, position, file_bytes - at)) continue;
      POLYLOG_ASSIGN(found, goes_on_at(file, file_bytes, at));
      if (found) return at;
    }
    if (chunk.size() < want) break;  // the file is shorter than it was said to be
    from += chunk_bytes;
  }
  return std::nullopt;
}

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320U : 0U);
    table[i] = value;
  }
  return table;
}

// The bit of `bytes` whose change changes their CRC-32 by `difference`. CRC-32 is linear: what one
// bit does to it depends on how far from the end it stands only.
std::optional<std::size_t> bit_that_changes(std::size_t bytes, std::uint32_t difference) {
  static constexpr std::array<std::uint32_t, 256> table = crc_table();
  std::array<std::uint32_t, 8> effect{};
  for (std::size_t bit = 0; bit < effect.size(); ++bit) effect[bit] = table[std::size_t{1} << bit];
  for (std::size_t at = bytes; at-- > 0;) {
    for (std::size_t bit = 0; bit < effect.size(); ++bit) {
      if (effect[bit] == difference) return at * 8 + bit;
      effect[bit] = table[effect[bit] & 0xff] ^ (effect[bit] >> 8);
    }
  }
  return std::nullopt;
}

// The checksum that the record's last property holds. Nothing: those are no ten digits.
std::optional<std::uint32_t> checksum_of(ByteView tail) {
  std::uint64_t value = 0;
  for (std::size_t i = digit_count; i-- > 0;) {
    const std::uint8_t digit = tail[tail.size() - 1 - digit_count + i];
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + (digit - '0');
  }
  if (value > crc_mask) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

std::size_t differing_bits(ByteView a, ByteView b) {
  std::size_t bits = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    bits += static_cast<std::size_t>(__builtin_popcount(static_cast<unsigned>(a[i] ^ b[i])));
  }
  return bits;
}

// The bit is in the last property itself: all else is as it says there, or would say.
std::optional<std::vector<std::uint8_t>> mend_checksum(ByteView bytes) {
  std::string room;
  if (!stored::append_property_crc_room(room)) return std::nullopt;
  std::vector<std::uint8_t> mended(bytes.begin(), bytes.end());
  std::copy(room.begin(), room.end(), mended.end() - static_cast<std::ptrdiff_t>(room.size()));
  stored::patch_property_crc(mended);
  const auto tail = [](ByteView record) { return record.last(stored::property_crc_bytes); };
  if (differing_bits(tail(bytes), tail(mended)) != 1) return std::nullopt;
  return mended;
}

}  // namespace

Result<std::optional<stored::Message>> check_record(const CommitFile& file, std::uint64_t at,
                                                    ByteView record) {
  auto message = stored::parse(record);
  if (!message || message->physical_offset != file.base + static_cast<std::int64_t>(at)) {
    return std::optional<stored::Message>();
  }
  bool block_good = true;
  if (file.check != nullptr) {
    POLYLOG_ASSIGN(match, file.check->match(*file.file, at, at + record.size(), true));
    block_good = match;
  }
  if (!proves_itself(record, *message, block_good)) return std::optional<stored::Message>();
  return std::optional(std::move(*message));
}

bool begins_record(ByteView head, std::int64_t position) {
  return head.size() >= record_head_bytes &&
         is_magic(load_big<std::uint32_t>(head.data() + stored::message_at::magic)) &&
         load_big<std::int64_t>(head.data() + stored::message_at::physical_offset) == position;
}

Result<std::optional<std::uint64_t>> next_record(const CommitFile& file, std::uint64_t file_bytes,
                                                 std::uint64_t after, std::uint64_t to) {
  if (after >= to) return std::nullopt;
  POLYLOG_ASSIGN(head, read_some(file, after, record_head_bytes));
  if (head.size() == record_head_bytes) {
    const auto size = load_big<std::int32_t>(head.data());
    const bool magic = is_magic(load_big<std::uint32_t>(head.data() + stored::message_at::magic));
    if (magic && size >= static_cast<std::int32_t>(stored::fixed_bytes_min)) {
      const std::uint64_t next = after + static_cast<std::uint64_t>(size);
      if (next < to) {
        POLYLOG_ASSIGN(found, goes_on_at(file, file_bytes, next));
        if (found) return next;
      }
    }
  }
  return search(file, file_bytes, after + 1, to);
}

Result<std::uint64_t> last_byte_used(const CommitFile& file, std::uint64_t from, std::uint64_t to) {
  std::uint64_t end = from;
  for (std::uint64_t at = from; at < to; at += chunk_bytes) {
    POLYLOG_ASSIGN(chunk, read_some(file, at, std::min(chunk_bytes, to - at)));
    const auto last =
        std::find_if(chunk.rbegin(), chunk.rend(), [](auto byte) { return byte != 0; });
    if (last == chunk.rend()) break;
    end = at + static_cast<std::uint64_t>(chunk.rend() - last);
  }
  return end;
}

bool being_erased(ByteView bytes, std::int64_t position) {
  if (bytes.size() < stored::fixed_bytes_min) return false;
  const auto size = load_big<std::uint32_t>(bytes.data());
  if (size < stored::fixed_bytes_min) return true;
  // Of a length that had a third byte.
  return size < 256 && size < bytes.size() &&
         !begins_record(bytes.subspan(size), position + static_cast<std::int64_t>(size));
}

bool arrived(ByteView bytes, std::uint64_t at) {
  if (bytes.empty() || bytes.back() == 0) return false;
  for (std::size_t from = 0; from < bytes.size();) {
    const auto to_sector = static_cast<std::size_t>(sector_bytes - (at + from) % sector_bytes);
    const ByteView piece = bytes.subspan(from, std::min(to_sector, bytes.size() - from));
    // A record's first two bytes are zeros anyhow, unless it is over 64 KiB.
    const bool natural = from == 0 && piece.size() <= 2;
    if (!natural && all_zeros(piece)) return false;
    from += piece.size();
  }
  return true;
}

std::optional<std::vector<std::uint8_t>> mend_one_bit(ByteView bytes) {
  if (bytes.size() < stored::fixed_bytes_min + stored::property_crc_bytes) return std::nullopt;
  const ByteView covered = bytes.first(bytes.size() - stored::property_crc_bytes);
  auto mended = mend_checksum(bytes);
  const auto checksum = checksum_of(bytes.last(stored::property_crc_bytes));
  if (!mended && checksum) {
    // The checksum is kept without its highest bit.
    const std::uint32_t difference = (crc32(covered) & crc_mask) ^ *checksum;
    for (const std::uint32_t highest : {0U, ~crc_mask}) {
      const auto bit = bit_that_changes(covered.size(), difference | highest);
      if (!bit) continue;
      mended.emplace(bytes.begin(), bytes.end());
      (*mended)[*bit / 8] = static_cast<std::uint8_t>((*mended)[*bit / 8] ^ (1U << *bit % 8));
      break;
    }
  }
  if (!mended || !stored::parse(*mended) ||
      stored::check_property_crc(*mended) != stored::PropertyCrc::good) {
    return std::nullopt;
  }
  return mended;
}

Result<void> walk(const CommitFile& file, std::uint64_t file_bytes, std::uint64_t from,
                  std::uint64_t to, const Walk& visit) {
  while (from < to) {
    Result<void> read;
    POLYLOG_ASSIGN(
        end, scan(*file.file, from, to, MessageDecoder(), file_bytes, [&](const ScanFrame& frame) {
          auto message = check_record(file, frame.position, frame.bytes);
          if (!message) read = fail(message.error());
          if (!message || !*message) return ScanStep::corrupt;
          visit.on_record(**message, frame.bytes.size());
          return ScanStep::next;
        }));
    POLYLOG_TRY(read);
    if (end.position >= to) return {};
    POLYLOG_ASSIGN(blank, goes_on_at(file, file_bytes, end.position));
    if (blank) return {};  // nothing else stops a scan and proves itself
    POLYLOG_ASSIGN(next, next_record(file, file_bytes, end.position, to));
    from = next.value_or(to);
    visit.on_damage(end.position, from);
  }
  return {};
}

}  // namespace polylog::storage::rocketmq
