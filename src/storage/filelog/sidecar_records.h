#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bytes/slice.h"
#include "bytes/writer.h"

// How records lie in a sidecar file (docs/formats/sidecar.md): framed so that one that does not
// read costs itself alone. What a record says is sidecar_codec.h's.
namespace polylog::storage {

inline constexpr std::string_view sidecar_magic = "PLSIDE02";
inline constexpr std::string_view sidecar_magic_before = "PLSIDE01";  // read, never written
inline constexpr std::size_t sidecar_head_bytes = 40;

// Facts are numbered, so that a lost one is missed; lower bounds need no number.
bool is_fact(std::uint8_t type);
// How often a record stands in the file, one copy right behind the other.
std::size_t sidecar_copies(std::uint8_t type);

struct SidecarRecord {
  std::uint64_t position = 0;
  std::uint64_t bytes = 0;    // of this copy
  std::uint64_t durable = 0;  // so much of the file was known to be on the disk when it was written
  std::uint32_t facts = 0;    // number of the last fact, itself included
  std::uint8_t type = 0;
  ByteView payload;
};

// Writes records in a row.
class SidecarFrames {
 public:
  // `position` in the file of the first, number of the last fact before it, and how much of the
  // file is known to be on the disk.
  SidecarFrames(std::uint64_t position, std::uint32_t facts, std::uint64_t durable)
      : position_(position), facts_(facts), durable_(durable) {}

  void add(std::uint8_t type, ByteView payload);

  std::uint64_t end() const { return position_ + writer_.size(); }
  std::uint32_t facts() const { return facts_; }
  ByteView bytes() const { return writer_.own_bytes(); }

 private:
  const std::uint64_t position_;
  std::uint32_t facts_;
  const std::uint64_t durable_;
  ByteWriter writer_;
};

// The head of a file whose first `durable` bytes are on the disk before it gets its name.
std::vector<std::uint8_t> encode_sidecar_head(std::uint64_t durable);

// Reads records in a row, and finds the next one where one does not read.
class SidecarReader {
 public:
  explicit SidecarReader(ByteView file);

  int version() const { return version_; }  // 0: not a sidecar
  std::uint64_t durable() const { return durable_; }
  bool head_damaged() const { return head_damaged_; }
  std::uint64_t begin() const;  // where the first record lies

  // Bytes between one record's end and the next one's position do not read.
  std::optional<SidecarRecord> next();

 private:
  std::optional<SidecarRecord> at(std::uint64_t position) const;
  std::optional<SidecarRecord> before(std::uint64_t position) const;  // of version 1

  const ByteView file_;
  std::uint64_t position_ = 0;
  std::uint64_t durable_ = 0;
  int version_ = 0;
  bool head_damaged_ = false;
};

}  // namespace polylog::storage
