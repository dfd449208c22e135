#include "fs/sim_content.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace polylog::fs::sim {
namespace {

std::uint64_t new_stamp() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Content::Content() : stamp_(new_stamp()) {}

Content::Content(const Content& other)
    : size_(other.size_), stamp_(new_stamp()), table_(other.table_) {
  other.stamp_ = new_stamp();
}

Content& Content::operator=(const Content& other) {
  if (this == &other) return *this;
  size_ = other.size_;
  stamp_ = new_stamp();
  table_ = other.table_;
  other.stamp_ = new_stamp();
  return *this;
}

Content::Table& Content::own_table() {
  if (table_ == nullptr) {
    table_ = std::make_shared<Table>();
  } else if (table_->stamp != stamp_) {
    table_ = std::make_shared<Table>(*table_);
  }
  table_->stamp = stamp_;
  return *table_;
}

Content::Page& Content::own_page(std::size_t index) {
  Table& table = own_table();
  if (table.pages.size() <= index) table.pages.resize(index + 1);
  std::shared_ptr<Page>& page = table.pages[index];
  if (page == nullptr) {
    page = std::make_shared<Page>();
  } else if (page->stamp != stamp_) {
    page = std::make_shared<Page>(*page);
  }
  page->stamp = stamp_;
  return *page;
}

std::size_t Content::read(std::uint64_t position, MutableBytes into) const {
  if (position >= size_) return 0;
  const std::uint64_t available = size_ - position;
  const auto total = static_cast<std::size_t>(std::min<std::uint64_t>(available, into.size()));
  std::size_t done = 0;
  while (done < total) {
    const auto index = static_cast<std::size_t>((position + done) / page_bytes);
    const auto within = static_cast<std::size_t>((position + done) % page_bytes);
    const std::size_t count = std::min(total - done, page_bytes - within);
    const Page* page =
        table_ != nullptr && index < table_->pages.size() ? table_->pages[index].get() : nullptr;
    if (page != nullptr) {
      std::memcpy(into.data() + done, page->bytes.data() + within, count);
    } else {
      std::memset(into.data() + done, 0, count);
    }
    done += count;
  }
  return total;
}

void Content::write(std::uint64_t position, ByteView bytes) {
  POLYLOG_ASSERT(position <= size_max && bytes.size() <= size_max - position);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto index = static_cast<std::size_t>((position + done) / page_bytes);
    const auto within = static_cast<std::size_t>((position + done) % page_bytes);
    const std::size_t count = std::min(bytes.size() - done, page_bytes - within);
    std::memcpy(own_page(index).bytes.data() + within, bytes.data() + done, count);
    done += count;
  }
  if (!bytes.empty()) size_ = std::max(size_, position + bytes.size());
}

void Content::resize(std::uint64_t size) {
  POLYLOG_ASSERT(size <= size_max);
  if (size < size_ && table_ != nullptr) {
    const auto whole = static_cast<std::size_t>(size / page_bytes);
    const auto within = static_cast<std::size_t>(size % page_bytes);
    const std::size_t kept = whole + (within != 0 ? 1 : 0);
    if (table_->pages.size() > kept) own_table().pages.resize(kept);
    if (within != 0 && whole < table_->pages.size() && table_->pages[whole] != nullptr) {
      Page& last = own_page(whole);
      std::memset(last.bytes.data() + within, 0, page_bytes - within);
    }
  }
  size_ = size;
}

bool Content::operator==(const Content& other) const {
  if (size_ != other.size_) return false;
  if (table_ == other.table_) return true;
  std::array<std::uint8_t, page_bytes> mine;
  std::array<std::uint8_t, page_bytes> theirs;
  for (std::uint64_t at = 0; at < size_; at += page_bytes) {
    const std::size_t count = read(at, mine);
    other.read(at, theirs);
    if (std::memcmp(mine.data(), theirs.data(), count) != 0) return false;
  }
  return true;
}

}  // namespace polylog::fs::sim
