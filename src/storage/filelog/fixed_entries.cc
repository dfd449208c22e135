#include "storage/filelog/fixed_entries.h"

#include "base/assert.h"

namespace polylog::storage {

Result<std::vector<std::uint8_t>> FixedEntries::entry(std::uint64_t i) const {
  POLYLOG_ASSERT(i < count_);
  std::vector<std::uint8_t> bytes(entry_bytes_);
  POLYLOG_ASSIGN(got, file_.read(i * entry_bytes_, bytes));
  if (got != entry_bytes_) {
    return fail(Errc::corrupt, "entry " + std::to_string(i) + " lies beyond the file's end");
  }
  return bytes;
}

}  // namespace polylog::storage
