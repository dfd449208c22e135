#include "cli/dump_store_log.h"

#include <algorithm>
#include <array>

#include "format/rocketmq/names.h"

namespace polylog::cli {

namespace rocketmq = format::rocketmq;

namespace {

constexpr std::uint64_t record_bytes_max = std::uint64_t{512} << 20;

StoreLog::Found wrong(std::string why) {
  return {StoreLog::Found::State::wrong, std::move(why), {}, 0};
}

}  // namespace

std::string_view path_part(std::string_view path, int up) {
  for (; up > 0; --up) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return {};
    path = path.substr(0, slash);
  }
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

Result<std::optional<StoreLog>> StoreLog::beside(fs::FileSystem& fs, const std::string& path,
                                                 int levels) {
  std::string root = path;
  for (; levels > 0; --levels) {
    const std::size_t slash = root.rfind('/');
    root = slash == std::string::npos ? "" : root.substr(0, slash);
  }
  const std::string directory = (root.empty() && !path.starts_with('/') ? "." : root) + "/" +
                                std::string(rocketmq::commit_log_directory);
  if (const auto info = fs.info(directory); !info || !info->directory) {
    return std::optional<StoreLog>();
  }
  POLYLOG_ASSIGN(names, fs.list(directory));
  StoreLog log;
  for (const std::string& name : names) {
    const auto position = rocketmq::parse_file_name(name);
    if (!position) continue;
    POLYLOG_ASSIGN(file, fs.open(fs::join(directory, name), fs::OpenMode::read));
    POLYLOG_ASSIGN(info, file->info());
    log.parts_.push_back({*position, info.size, file});
  }
  if (log.parts_.empty()) return std::optional<StoreLog>();
  std::sort(log.parts_.begin(), log.parts_.end(),
            [](const Part& a, const Part& b) { return a.first < b.first; });
  return std::optional<StoreLog>(std::move(log));
}

Result<StoreLog::Found> StoreLog::at(std::int64_t position) {
  if (position < parts_.front().first) return Found{Found::State::deleted, {}, {}, 0};
  const auto part = std::prev(
      std::upper_bound(parts_.begin(), parts_.end(), position,
                       [](std::int64_t p, const Part& candidate) { return p < candidate.first; }));
  const auto inside = static_cast<std::uint64_t>(position - part->first);
  if (inside >= part->size) return wrong("lies behind the end of the commit log");
  const std::uint64_t left = part->size - inside;
  std::array<std::uint8_t, rocketmq::blank_bytes> head{};
  POLYLOG_ASSIGN(got, part->file->read(inside, head));
  const auto frame = rocketmq::next_frame(ByteView(head).first(got),
                                          got < head.size() ? std::uint64_t{got} : left);
  if (frame.state == rocketmq::FrameState::zeros) return wrong("is not written in the commit log");
  if (frame.state != rocketmq::FrameState::complete || frame.size > record_bytes_max) {
    return wrong("is no record's beginning in the commit log");
  }
  record_.resize(static_cast<std::size_t>(frame.size));
  POLYLOG_ASSIGN(read, part->file->read(inside, record_));
  if (read < record_.size()) return wrong("is a record that its file cuts off");
  auto message = rocketmq::parse(record_);
  if (!message) return wrong("is a damaged record: " + message.error().context);
  return Found{Found::State::whole, {}, *message, frame.size};
}

}  // namespace polylog::cli
