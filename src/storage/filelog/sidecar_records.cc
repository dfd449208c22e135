#include "storage/filelog/sidecar_records.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/crc.h"
#include "bytes/endian.h"
#include "bytes/writer.h"
#include "storage/filelog/sidecar_codec.h"

namespace polylog::storage {
namespace {

// No UTF-8 text and no small number has it.
constexpr std::array<std::uint8_t, 4> record_magic{0xd7, 0x70, 0x9c, 0x6c};
constexpr std::size_t record_head_bytes = 20;  // before the type
constexpr std::size_t old_head_bytes = 8;
constexpr std::size_t head_copy_bytes = sidecar_head_bytes / 2;

// Of a record at `position`: a copy of its bytes elsewhere, within another's payload say, is none.
std::uint32_t record_crc(std::uint64_t position, std::uint32_t length, ByteView from_facts) {
  std::array<std::uint8_t, 12> place{};
  store_big(place.data(), position);
  store_big(place.data() + 8, length);
  return crc32c_extend(crc32c(place), from_facts);
}

std::optional<std::uint64_t> head_copy(ByteView copy) {
  if (as_text(copy.first(sidecar_magic.size())) != sidecar_magic) return std::nullopt;
  const ByteView sealed = copy.first(head_copy_bytes - 4);
  if (crc32c(sealed) != load_big<std::uint32_t>(copy.data() + sealed.size())) return std::nullopt;
  return load_big<std::uint64_t>(copy.data() + sidecar_magic.size());
}

}  // namespace

bool is_fact(std::uint8_t type) {
  return type != sidecar_type::round && type != sidecar_type::sealed &&
         type != sidecar_type::recovery_point;
}

// A recovery point is the only place that knows producers whose records are deleted.
std::size_t sidecar_copies(std::uint8_t type) {
  return is_fact(type) || type == sidecar_type::recovery_point ? 2 : 1;
}

void SidecarFrames::add(std::uint8_t type, ByteView payload) {
  if (is_fact(type)) ++facts_;
  const auto length = static_cast<std::uint32_t>(payload.size() + 1);
  for (std::size_t copy = 0; copy < sidecar_copies(type); ++copy) {
    const std::uint64_t position = end();
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    writer_.bytes(record_magic);
    writer_.u32(length);
    const std::size_t crc_at = writer_.size();
    writer_.u32(0);
    const std::size_t facts_at = writer_.size();
    writer_.u32(facts_);
    writer_.u32(
        static_cast<std::uint32_t>(std::min(position - std::min(position, durable_), most)));
    writer_.u8(type);
    writer_.bytes(payload);
    const ByteView from_facts = bytes().subspan(facts_at);
    writer_.patch_i32(crc_at, static_cast<std::int32_t>(record_crc(position, length, from_facts)));
  }
}

std::vector<std::uint8_t> encode_sidecar_head(std::uint64_t durable) {
  ByteWriter writer;
  for (int copy = 0; copy < 2; ++copy) {
    ByteWriter sealed;
    sealed.text(sidecar_magic);
    sealed.u64(durable);
    const std::vector<std::uint8_t> bytes = sealed.take_bytes();
    writer.bytes(bytes);
    writer.u32(crc32c(bytes));
  }
  return writer.take_bytes();
}

SidecarReader::SidecarReader(ByteView file) : file_(file) {
  const auto begins_with = [&](std::string_view magic) {
    return file_.size() >= magic.size() && as_text(file_.first(magic.size())) == magic;
  };
  if (begins_with(sidecar_magic_before)) {
    version_ = 1;
    position_ = begin();
    return;
  }
  if (file_.size() >= sidecar_head_bytes) {
    const auto first = head_copy(file_.first(head_copy_bytes));
    const auto second = head_copy(file_.subspan(head_copy_bytes, head_copy_bytes));
    durable_ =
        std::min<std::uint64_t>(std::max(first.value_or(0), second.value_or(0)), file_.size());
    head_damaged_ = !first || !second;
    if (first || second) version_ = 2;
  }
  if (version_ == 0) {
    // Its records still say whose file it is.
    version_ = 2;
    head_damaged_ = next().has_value();
    if (!head_damaged_) version_ = 0;
  }
  position_ = begin();
}

std::uint64_t SidecarReader::begin() const {
  if (version_ == 1) return sidecar_magic_before.size();
  return version_ == 2 ? sidecar_head_bytes : 0;
}

std::optional<SidecarRecord> SidecarReader::at(std::uint64_t position) const {
  if (file_.size() - position < record_head_bytes + 1) return std::nullopt;
  const std::uint8_t* const head = file_.data() + position;
  if (!std::equal(record_magic.begin(), record_magic.end(), head)) return std::nullopt;
  const auto length = load_big<std::uint32_t>(head + 4);
  if (length < 1 || length > file_.size() - position - record_head_bytes) return std::nullopt;
  const ByteView from_facts =
      file_.subspan(static_cast<std::size_t>(position) + 12, std::size_t{8} + length);
  if (record_crc(position, length, from_facts) != load_big<std::uint32_t>(head + 8)) {
    return std::nullopt;
  }
  SidecarRecord record;
  record.position = position;
  record.bytes = record_head_bytes + std::uint64_t{length};
  record.facts = load_big<std::uint32_t>(from_facts.data());
  record.durable =
      position - std::min<std::uint64_t>(position, load_big<std::uint32_t>(from_facts.data() + 4));
  record.type = from_facts[8];
  record.payload = from_facts.subspan(9);
  return record;
}

std::optional<SidecarRecord> SidecarReader::before(std::uint64_t position) const {
  if (file_.size() - position < old_head_bytes + 1) return std::nullopt;
  const std::uint8_t* const head = file_.data() + position;
  const auto length = load_big<std::uint32_t>(head);
  if (length < 1 || length > file_.size() - position - old_head_bytes) return std::nullopt;
  const ByteView body = file_.subspan(static_cast<std::size_t>(position) + old_head_bytes, length);
  if (crc32c(body) != load_big<std::uint32_t>(head + 4)) return std::nullopt;
  SidecarRecord record;
  record.position = position;
  record.bytes = old_head_bytes + std::uint64_t{length};
  record.type = body[0];
  record.payload = body.subspan(1);
  return record;
}

std::optional<SidecarRecord> SidecarReader::next() {
  if (version_ == 0) return std::nullopt;
  std::optional<SidecarRecord> found;
  if (version_ == 1) {
    found = before(position_);
  } else {
    std::uint64_t position = position_;
    while (position < file_.size() && !(found = at(position))) {
      const auto rest = file_.begin() + static_cast<std::ptrdiff_t>(position) + 1;
      const auto candidate =
          std::search(rest, file_.end(), record_magic.begin(), record_magic.end());
      position = static_cast<std::uint64_t>(candidate - file_.begin());
    }
  }
  if (found) position_ = found->position + found->bytes;
  return found;
}

}  // namespace polylog::storage
