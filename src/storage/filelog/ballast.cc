#include "storage/filelog/ballast.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace polylog::storage {
namespace {

constexpr std::uint64_t piece_bytes = 64 << 10;
constexpr std::uint64_t roomy = 4;  // times the ballast: it must not be what fills the disk

}  // namespace

Ballast::Ballast(fs::FileSystem& fs, std::string directory, std::uint64_t bytes,
                 std::string_view name)
    : fs_(fs),
      directory_(std::move(directory)),
      path_(fs::join(directory_, name)),
      bytes_(bytes) {
  const auto info = fs_.info(path_);
  laid_ = bytes_ > 0 && info && info->size >= bytes_;
}

Result<void> Ballast::give_back_if_short() {
  POLYLOG_ASSIGN(free, fs_.free_bytes(directory_));
  return free >= bytes_ ? Result<void>() : give_back().map([](bool) {});
}

Result<bool> Ballast::give_back() {
  laid_ = false;
  // Also one that is only half there.
  auto removed = fs_.remove(path_);
  if (!removed && removed.error().code == Errc::not_found) return false;
  POLYLOG_TRY(std::move(removed));
  // Some file systems hand blocks out again only after the change is on the disk.
  POLYLOG_TRY(fs_.sync_directory(directory_));
  return true;
}

Result<void> Ballast::lay_if_roomy() {
  if (laid_ || bytes_ == 0) return {};
  POLYLOG_ASSIGN(free, fs_.free_bytes(directory_));
  if (free / roomy < bytes_) return {};
  auto done = lay();
  if (!done) static_cast<void>(fs_.remove(path_));
  laid_ = done.has_value();
  return done;
}

// Noise, because a file system that compresses would keep no room for zeros.
Result<void> Ballast::lay() {
  POLYLOG_ASSIGN(file, fs_.open(path_, fs::OpenMode::create));
  POLYLOG_TRY(file->truncate(0));
  std::minstd_rand random;
  std::vector<std::uint8_t> piece(piece_bytes);
  for (std::uint64_t at = 0; at < bytes_; at += piece.size()) {
    std::generate(piece.begin(), piece.end(),
                  [&] { return static_cast<std::uint8_t>(random() >> 8); });
    const auto size = static_cast<std::size_t>(std::min(piece_bytes, bytes_ - at));
    POLYLOG_TRY(file->write(at, ByteView(piece).first(size)));
  }
  POLYLOG_TRY(file->sync());
  return fs_.sync_directory(directory_);
}

}  // namespace polylog::storage
