#include "journal/replay.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "bytes/endian.h"

namespace polylog::journal {
namespace {

constexpr std::size_t window_bytes = std::size_t{1} << 20;
constexpr std::size_t open_files_max = 256;
constexpr std::size_t end_mark_bytes = 8;
// A write has no more than half of it, so that a later one is found behind one that does not read.
constexpr std::uint64_t looked_ahead_bytes = std::uint64_t{16} << 20;

Identity identity_of(const fs::FileInfo& info) { return {info.size, info.inode, info.modified_ns}; }

// One file that entries name.
struct Named {
  std::string path;
  std::uint64_t inode = 0;
  std::uint64_t settled = 0;  // number of its last settled entry among all; 0: none
  std::uint64_t writes = 0;   // that count
};

class Replay {
 public:
  Replay(fs::FileSystem& fs, const std::string& root, const fs::File& file, const Heads& heads,
         const std::string& journal_path)
      : fs_(fs), root_(root), file_(file), heads_(heads), journal_path_(journal_path) {}

  Result<Replayed> run() {
    POLYLOG_ASSIGN(damage, find_damage(file_, heads_));
    if (damage) {
      return fail(Errc::corrupt, journal_path_ + " is damaged at byte " +
                                     std::to_string(damage->position) + ": " + damage->what);
    }
    POLYLOG_TRY(each([this](std::size_t area, const Entry& entry) { return note(area, entry); }));
    number_ = 0;
    POLYLOG_TRY(each([this](std::size_t area, const Entry& entry) { return count(area, entry); }));
    if (done_.writes == 0) return done_;
    POLYLOG_TRY(check_witnesses());
    for (const auto& [inode, named] : files_) {
      if (named.writes > 0) POLYLOG_TRY(check_file(named));
    }
    POLYLOG_ASSIGN(volume, fs_.open_volume(root_));
    number_ = 0;
    POLYLOG_TRY(each([this](std::size_t area, const Entry& entry) { return apply(area, entry); }));
    open_.clear();
    POLYLOG_TRY(volume->sync());
    return done_;
  }

 private:
  using Visit = std::function<Result<void>(std::size_t area, const Entry& entry)>;

  Result<void> each(const Visit& visit) {
    for (const std::size_t area : heads_.in_order()) {
      EntryReader reader(file_, heads_, area);
      for (;;) {
        POLYLOG_ASSIGN(entry, reader.next());
        if (!entry) break;
        ++number_;
        POLYLOG_TRY(visit(area, *entry));
      }
    }
    return {};
  }

  tl::unexpected<Error> broken(const std::string& what) const {
    return fail(Errc::corrupt, journal_path_ + ": entry " + std::to_string(number_) + " " + what);
  }

  // First look: the files, where each was settled last, and the witnesses.
  Result<void> note(std::size_t area, const Entry& entry) {
    ++done_.entries;
    switch (entry.kind) {
      case EntryKind::file: {
        const std::string path(as_text(entry.payload));
        if (!is_inner_path(path)) return broken("names a path outside the data directory");
        generations_[{area, entry.generation}] = entry.position;
        Named& named = files_[entry.position];
        named.path = path;
        named.inode = entry.position;
        return {};
      }
      case EntryKind::settled: {
        Named* const named = find(area, entry);
        if (named == nullptr) return broken("is about a file that was never named");
        named->settled = number_;
        return {};
      }
      case EntryKind::witness: {
        auto witness = decode_witness(entry.payload);
        if (!witness) return broken("does not read");
        auto& known = witnesses_[witness->path];
        if (known.empty() || known.back() != witness->identity) known.push_back(witness->identity);
        // Any of ours may be there: a name can be lost whose directory failed to be synced.
        return {};
      }
      case EntryKind::write:
        if (find(area, entry) == nullptr) return broken("is about a file that was never named");
        if (entry.position > INT64_MAX - entry.payload.size()) return broken("lies nowhere");
        return {};
      case EntryKind::fill:
      case EntryKind::other: return {};
    }
    return {};
  }

  // Null unless this write still counts.
  Named* counting(std::size_t area, const Entry& entry) {
    if (entry.kind != EntryKind::write) return nullptr;
    Named* const named = find(area, entry);
    return named != nullptr && number_ > named->settled ? named : nullptr;
  }

  Result<void> count(std::size_t area, const Entry& entry) {
    Named* const named = counting(area, entry);
    if (named == nullptr) return {};
    if (named->writes++ == 0) ++done_.files;
    ++done_.writes;
    done_.bytes += entry.payload.size();
    return {};
  }

  Result<void> apply(std::size_t area, const Entry& entry) {
    const Named* const named = counting(area, entry);
    if (named == nullptr) return {};
    fs::FilePtr& file = open_[named->inode];
    if (file == nullptr) {
      if (open_.size() > open_files_max) open_.clear();
      POLYLOG_ASSIGN(opened, fs_.open(fs::join(root_, named->path), fs::OpenMode::write));
      return put(*(open_[named->inode] = std::move(opened)), entry);
    }
    return put(*file, entry);
  }

  // The zeros by which a shared log says that nothing follows yet are left out when all before them
  // stands in the file, and bytes in their place: that is so after a kill, and what stands there
  // then was written later. After a power cut it is no more than what of a later write may have
  // reached the disk anyway.
  Result<void> put(fs::File& file, const Entry& entry) {
    ByteView payload = entry.payload;
    if (payload.size() > end_mark_bytes) {
      const ByteView front = payload.first(payload.size() - end_mark_bytes);
      const ByteView mark = payload.subspan(front.size());
      const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
      if (std::all_of(mark.begin(), mark.end(), is_zero)) {
        present_.resize(payload.size());
        POLYLOG_ASSIGN(got, file.read(entry.position, present_));
        const bool whole = got == payload.size();
        if (whole && std::equal(front.begin(), front.end(), present_.begin())) payload = front;
      }
    }
    return file.write(entry.position, payload);
  }

  Named* find(std::size_t area, const Entry& entry) {
    const auto inode = generations_.find({area, entry.generation});
    if (inode == generations_.end()) return nullptr;
    const auto named = files_.find(inode->second);
    return named == files_.end() ? nullptr : &named->second;
  }

  tl::unexpected<Error> changed(const std::string& path, const std::string& how) const {
    return fail(Errc::unsupported,
                path + " " + how + " since polylog did, and " + journal_path_ +
                    " holds what belongs there. After a power cut that may be nowhere else: put "
                    "the directory back as it was. After a kill alone the files have it too. To go "
                    "on with what the files have, remove " +
                    journal_path_);
  }

  Result<void> check_witnesses() const {
    for (const auto& [name, known] : witnesses_) {
      const std::string path = fs::join(root_, name);
      std::optional<Identity> now;
      const auto info = fs_.info(path);
      if (info) {
        now = identity_of(*info);
      } else if (info.error().code != Errc::not_found) {
        return fail(info.error());
      }
      if (std::find(known.begin(), known.end(), now) == known.end()) {
        return changed(path, "shows that another program has run here");
      }
    }
    return {};
  }

  Result<void> check_file(const Named& named) const {
    const std::string path = fs::join(root_, named.path);
    const auto info = fs_.info(path);
    if (!info) {
      if (info.error().code != Errc::not_found) return fail(info.error());
      return changed(path, "has gone");
    }
    if (info->inode != named.inode || info->directory) return changed(path, "was replaced");
    return {};
  }

  fs::FileSystem& fs_;
  const std::string& root_;
  const fs::File& file_;
  const Heads& heads_;
  const std::string& journal_path_;
  Replayed done_;
  std::uint64_t number_ = 0;  // of the entry looked at, from 1, over both areas
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> generations_;  // -> inode
  std::unordered_map<std::uint64_t, Named> files_;                              // by inode
  std::map<std::string, std::vector<std::optional<Identity>>> witnesses_;
  std::unordered_map<std::uint64_t, fs::FilePtr> open_;
  std::vector<std::uint8_t> present_;
};

}  // namespace

std::array<std::size_t, area_count> Heads::in_order() const {
  if (epochs[0] < epochs[1]) return {0, 1};
  return {1, 0};
}

Result<Heads> read_heads(const fs::File& file) {
  Heads heads;
  std::vector<std::uint8_t> block(block_bytes);
  POLYLOG_ASSIGN(got, file.read(0, block));
  const auto area_bytes = decode_file_head(ByteView(block).first(got));
  POLYLOG_ASSIGN(info, file.info());
  if (!area_bytes || *area_bytes > info.size || area_start(area_count, *area_bytes) > info.size) {
    return fail(Errc::corrupt, "the head of the journal does not read");
  }
  heads.area_bytes = *area_bytes;
  for (std::size_t area = 0; area < area_count; ++area) {
    POLYLOG_ASSIGN(read, file.read(area_start(area, *area_bytes), block));
    const auto epoch = decode_area_head(ByteView(block).first(read));
    if (!epoch) {
      return fail(Errc::corrupt,
                  "the head of area " + std::to_string(area) + " of the journal does not read");
    }
    heads.epochs[area] = *epoch;
  }
  return heads;
}

EntryReader::EntryReader(const fs::File& file, const Heads& heads, std::size_t area)
    : file_(file),
      epoch_(heads.epochs[area]),
      end_(area_start(area, heads.area_bytes) + heads.area_bytes),
      at_(area_start(area, heads.area_bytes) + block_bytes) {}

Result<bool> EntryReader::fill(std::size_t bytes) {
  const std::uint64_t window_end = window_at_ + window_.size();
  if (at_ >= window_at_ && at_ + bytes <= window_end) return true;
  if (bytes > end_ - at_) return false;
  const std::uint64_t size = std::min<std::uint64_t>(end_ - at_, window_bytes);
  window_.resize(static_cast<std::size_t>(size));
  window_at_ = at_;
  POLYLOG_ASSIGN(got, file_.read(at_, window_));
  window_.resize(got);
  return bytes <= got;
}

Result<std::optional<Entry>> EntryReader::next() {
  const auto front = [this] {
    return ByteView(window_).subspan(static_cast<std::size_t>(at_ - window_at_));
  };
  POLYLOG_ASSIGN(head, fill(entry_head_bytes));
  if (!head) return std::optional<Entry>();
  const auto size = entry_size(front());
  if (!size) return std::optional<Entry>();
  POLYLOG_ASSIGN(whole, fill(*size));
  if (!whole) return std::optional<Entry>();
  auto entry = decode_entry(front(), epoch_, sequence_);
  if (!entry) return std::optional<Entry>();
  ++sequence_;
  at_ += entry->size;
  return entry;
}

Result<std::optional<std::uint64_t>> EntryReader::written_behind() const {
  std::uint64_t at = (at_ / block_bytes + 1) * block_bytes;
  const std::uint64_t end = std::min(end_, at + looked_ahead_bytes);
  std::vector<std::uint8_t> window;
  for (std::uint64_t window_at = at; at < end; at += block_bytes) {
    if (at + entry_head_bytes > window_at + window.size()) {
      window_at = at;
      window.resize(static_cast<std::size_t>(std::min<std::uint64_t>(end_ - at, window_bytes)));
      POLYLOG_ASSIGN(got, file_.read(at, window));
      window.resize(got);
      if (got < entry_head_bytes) break;
    }
    const ByteView head = ByteView(window).subspan(static_cast<std::size_t>(at - window_at));
    const auto size = entry_size(head);
    if (!size || load_big<std::uint64_t>(head.data() + 8) != epoch_) continue;
    std::vector<std::uint8_t> whole(*size);
    POLYLOG_ASSIGN(got, file_.read(at, whole));
    const auto entry = decode_entry(ByteView(whole).first(got), epoch_);
    if (entry && entry->first && entry->sequence > sequence_) return std::optional(at);
  }
  return std::optional<std::uint64_t>();
}

Result<std::optional<Damage>> find_damage(const fs::File& file, const Heads& heads) {
  struct Area {
    std::uint64_t entries = 0, end = 0;
    std::uint64_t wanted = 0;  // entries, as the other area says
  };
  std::array<Area, area_count> areas;
  for (const std::size_t index : heads.in_order()) {
    EntryReader reader(file, heads, index);
    for (;;) {
      POLYLOG_ASSIGN(entry, reader.next());
      if (!entry) break;
      if (entry->kind != EntryKind::other) continue;
      const std::size_t other = 1 - index;
      if (decode_epoch(entry->payload) == heads.epochs[other]) {
        areas[other].wanted = entry->position;
      }
    }
    areas[index].entries = reader.sequence();
    areas[index].end = reader.position();
    POLYLOG_ASSIGN(behind, reader.written_behind());
    if (behind) {
      return std::optional(Damage{reader.position(), "what was written later, at byte " +
                                                         std::to_string(*behind) + ", reads"});
    }
  }
  for (const Area& area : areas) {
    if (area.entries >= area.wanted) continue;
    return std::optional(Damage{area.end, std::to_string(area.wanted) +
                                              " entries were written there, " +
                                              std::to_string(area.entries) + " read"});
  }
  return std::optional<Damage>();
}

Result<Replayed> replay(fs::FileSystem& fs, const std::string& root, const fs::File& file,
                        const Heads& heads, const std::string& journal_path) {
  return Replay(fs, root, file, heads, journal_path).run();
}

}  // namespace polylog::journal
