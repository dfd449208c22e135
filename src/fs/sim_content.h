#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "bytes/slice.h"

namespace polylog::fs::sim {

// The bytes of one simulated file: pages shared between copies and copied on the first write,
// so that a copy costs nothing and thousands of crash states can share one disk's data. Pages
// never written are holes and read as zeros.
//
// One Content is used under its owner's lock; copies of it may live on other threads.
class Content {
 public:
  static constexpr std::size_t page_bytes = 4096;
  // Keeps a wild position from becoming a page table of gigabytes.
  static constexpr std::uint64_t size_max = std::uint64_t{16} << 30;

  Content();
  Content(const Content& other);
  Content& operator=(const Content& other);

  std::uint64_t size() const { return size_; }
  // Fills `into` from `position`; returns the bytes read, fewer only at the end.
  std::size_t read(std::uint64_t position, MutableBytes into) const;
  // REQUIRES: position + bytes.size() <= size_max. Extends as needed.
  void write(std::uint64_t position, ByteView bytes);
  // REQUIRES: size <= size_max. Cuts, or extends with zeros.
  void resize(std::uint64_t size);

  bool operator==(const Content& other) const;

 private:
  // A page or table may be written in place only by the Content whose stamp it carries. A
  // reference count would do too, but is no synchronisation between threads.
  struct Page {
    std::uint64_t stamp = 0;
    std::array<std::uint8_t, page_bytes> bytes{};  // zero beyond the end of the file
  };
  struct Table {
    std::uint64_t stamp = 0;
    std::vector<std::shared_ptr<Page>> pages;  // null: a hole; may be shorter than the file
  };

  Table& own_table();
  Page& own_page(std::size_t index);

  std::uint64_t size_ = 0;
  mutable std::uint64_t stamp_;  // copying takes the right to write in place from both sides
  std::shared_ptr<Table> table_;
};

}  // namespace polylog::fs::sim
