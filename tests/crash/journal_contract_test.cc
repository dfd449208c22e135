#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

#include "base/crc.h"
#include "bytes/reader.h"
#include "bytes/writer.h"
#include "fs/sim_file_system.h"
#include "journal/journal.h"

// The recovery contract of docs/decisions/journal-recovery-contract.md: held by the smallest
// journal that follows its rules, which shows what breaking one of them costs, and by the real one.
// Both face every crash state of the same workloads.
namespace polylog::crash {
namespace {

enum class Broken { nothing, acknowledges_early, keeps_its_epoch, empties_before_syncing };

constexpr std::uint64_t header_bytes = 16;  // u64 epoch, u32 crc, padding
constexpr const char* journal_path = "/journal";

struct Entry {
  enum class Kind : std::uint8_t { write = 1, create, remove } kind = Kind::write;
  std::uint32_t generation = 0;
  std::uint64_t position = 0;
  std::string bytes;
};

std::string name_of(std::uint32_t generation) { return "/file-" + std::to_string(generation); }

class ModelJournal {
 public:
  ModelJournal(fs::SimFileSystem& disk, Broken broken) : disk_(disk), broken_(broken) {}

  // Opening replays. A header that does not read is a journal that was never begun.
  Result<void> open() {
    POLYLOG_ASSIGN(file, disk_.open(journal_path, fs::OpenMode::create));
    file_ = file;
    POLYLOG_TRY(replay());
    return empty();
  }

  // Writes the entry, and the layout file lazily. Durable after flush().
  Result<void> add(const Entry& entry) {
    POLYLOG_TRY(file_->write(end_, ByteView(encode(entry))));
    end_ += encode(entry).size();
    ++sequence_;
    return apply(entry);
  }
  Result<void> flush() {
    if (broken_ == Broken::acknowledges_early) return {};
    return file_->sync();
  }
  // Rule 6.
  Result<void> checkpoint() {
    if (broken_ != Broken::empties_before_syncing) POLYLOG_TRY(sync_files());
    return empty();
  }

 private:
  std::vector<std::uint8_t> encode(const Entry& entry) const {
    ByteWriter body;
    body.u64(epoch_);
    body.u64(sequence_);
    body.u8(static_cast<std::uint8_t>(entry.kind));
    body.u32(entry.generation);
    body.u64(entry.position);
    body.u32(static_cast<std::uint32_t>(entry.bytes.size()));
    body.text(entry.bytes);
    const auto bytes = body.take_bytes();
    ByteWriter framed;
    framed.u32(static_cast<std::uint32_t>(bytes.size()));
    framed.u32(crc32c(bytes));
    framed.bytes(bytes);
    return framed.take_bytes();
  }

  Result<void> apply(const Entry& entry) {
    const std::string path = name_of(entry.generation);
    touched_[entry.generation] = path;
    switch (entry.kind) {
      case Entry::Kind::create: return disk_.open(path, fs::OpenMode::create).map([](auto&&) {});
      case Entry::Kind::write: {
        POLYLOG_ASSIGN(file, disk_.open(path, fs::OpenMode::create));
        return file->write(entry.position, as_bytes(entry.bytes));
      }
      case Entry::Kind::remove: {
        touched_.erase(entry.generation);
        auto removed = disk_.remove(path);
        if (!removed && removed.error().code == Errc::not_found) return {};
        return removed;
      }
    }
    return {};
  }

  Result<void> sync_files() {
    for (const auto& [generation, path] : touched_) {
      POLYLOG_ASSIGN(file, disk_.open(path, fs::OpenMode::create));
      POLYLOG_TRY(file->sync());
    }
    return disk_.sync_directory("/");
  }

  Result<void> replay() {
    POLYLOG_ASSIGN(bytes, fs::read_file(disk_, journal_path, 1 << 20));
    ByteReader head(bytes);
    epoch_ = head.u64();
    if (!head.ok() || head.u32() != crc32c(ByteView(bytes).first(8))) epoch_ = 0;
    if (epoch_ == 0) return {};
    std::size_t at = header_bytes;
    for (std::uint64_t sequence = 0; at + 8 <= bytes.size(); ++sequence) {
      const std::uint32_t size = load_big<std::uint32_t>(bytes.data() + at);
      if (size > bytes.size() - at - 8) break;
      const ByteView body = ByteView(bytes).subspan(at + 8, size);
      if (crc32c(body) != load_big<std::uint32_t>(bytes.data() + at + 4)) break;
      ByteReader reader(body);
      if (reader.u64() != epoch_ || reader.u64() != sequence) break;
      Entry entry;
      entry.kind = static_cast<Entry::Kind>(reader.u8());
      entry.generation = reader.u32();
      entry.position = reader.u64();
      entry.bytes = std::string(reader.text(reader.u32()));
      if (!reader.ok()) break;
      POLYLOG_TRY(apply(entry));
      at += 8 + size;
    }
    return sync_files();
  }

  Result<void> empty() {
    if (broken_ != Broken::keeps_its_epoch || epoch_ == 0) ++epoch_;
    ByteWriter head;
    head.u64(epoch_);
    head.u32(crc32c(head.own_bytes()));
    head.u32(0);
    POLYLOG_TRY(file_->write(0, ByteView(head.take_bytes())));
    POLYLOG_TRY(file_->sync());
    POLYLOG_TRY(disk_.sync_directory("/"));
    end_ = header_bytes;
    sequence_ = 0;
    return {};
  }

  fs::SimFileSystem& disk_;
  const Broken broken_;
  fs::FilePtr file_;
  std::map<std::uint32_t, std::string> touched_;
  std::uint64_t epoch_ = 0, sequence_ = 0, end_ = header_bytes;
};

// The real one: files are written through its file system, and a flush covers what was written.
class RealJournal {
 public:
  RealJournal(fs::SimFileSystem& disk, Broken /*it has no broken form*/) : disk_(disk) {}

  Result<void> open() {
    journal::Options options;
    options.root = "/";
    options.directory = "/journal";
    options.bytes = journal::bytes_min;
    options.own_thread = false;
    POLYLOG_ASSIGN(opened, journal::Journal::open(disk_, options));
    journal_ = std::move(opened);
    return {};
  }

  Result<void> add(const Entry& entry) {
    const std::string path = name_of(entry.generation);
    fs::FileSystem& fs = journal_->file_system();
    switch (entry.kind) {
      case Entry::Kind::create: {
        POLYLOG_ASSIGN(file, fs.open(path, fs::OpenMode::create));
        POLYLOG_TRY(fs.sync_directory("/"));
        written_[entry.generation] = std::move(file);
        return {};
      }
      case Entry::Kind::write: {
        fs::FilePtr& file = written_[entry.generation];
        if (file == nullptr) {
          POLYLOG_ASSIGN(opened, fs.open(path, fs::OpenMode::create));
          file = std::move(opened);
        }
        return file->write(entry.position, as_bytes(entry.bytes));
      }
      case Entry::Kind::remove:
        // What was written to it may still be on its way into the journal.
        return fs.remove(path);
    }
    return {};
  }
  Result<void> flush() {
    std::vector<fs::FilePtr> files;
    for (const auto& [generation, file] : written_) files.push_back(file);
    return journal_->cover(files);
  }
  Result<void> checkpoint() { return journal_->checkpoint(); }

 private:
  fs::SimFileSystem& disk_;
  std::unique_ptr<journal::Journal> journal_;
  std::map<std::uint32_t, fs::FilePtr> written_;
};

// Appends to a few files, removes some, checkpoints now and then; remembers what was acknowledged.
template <typename Journal>
struct Workload {
  std::map<std::uint32_t, std::string> content, acknowledged;
  std::map<std::uint32_t, std::string> removed;
  std::uint32_t next = 0;

  void run(fs::SimFileSystem& disk, Broken broken, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Journal journal(disk, broken);
    if (!journal.open()) return;
    for (int i = 0; i < 24; ++i) {
      const auto choice = random() % 10;
      if (content.empty() || choice == 0) {
        if (!journal.add({Entry::Kind::create, next, 0, {}})) return;
        content[next++] = "";
      } else if (choice < 7) {
        auto file = content.begin();
        std::advance(file, static_cast<std::ptrdiff_t>(random() % content.size()));
        const std::string bytes(1 + random() % 40, static_cast<char>('a' + i));
        if (!journal.add({Entry::Kind::write, file->first, file->second.size(), bytes})) return;
        file->second += bytes;
      } else if (choice == 7 && content.size() > 1) {
        const std::uint32_t generation = content.begin()->first;
        removed[generation] = content.begin()->second;
        acknowledged.erase(generation);
        content.erase(content.begin());
        if (!journal.add({Entry::Kind::remove, generation, 0, {}})) return;
      } else if (choice == 8) {
        if (!journal.checkpoint()) return;
      }
      if (!journal.flush()) return;
      acknowledged = content;
    }
  }

  std::string check(fs::SimFileSystem& disk, Broken broken) const {
    Journal journal(disk, broken);
    if (auto opened = journal.open(); !opened) return opened.error().to_string();
    for (const auto& [generation, bytes] : acknowledged) {
      const auto found = fs::read_file(disk, name_of(generation), 1 << 20);
      if (!found) return name_of(generation) + " is gone";
      const std::string text(as_text(*found));
      if (text.size() < bytes.size() || text.substr(0, bytes.size()) != bytes) {
        return name_of(generation) + " lost acknowledged bytes";
      }
    }
    return {};
  }
};

// The first wrong state found, or an empty string.
template <typename Journal>
std::string explore(Broken broken, int& states) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    fs::SimFileSystem whole;
    Workload<Journal> counted;
    counted.run(whole, broken, seed);
    for (std::uint64_t step = 1; step <= whole.steps() + 1; ++step) {
      fs::SimFileSystem disk;
      disk.crash_at(step, step % 2 == 0);
      Workload<Journal> workload;
      workload.run(disk, broken, seed);
      for (const fs::CrashChoice& choice : disk.crash_choices(step, 6)) {
        const auto crashed = disk.crash_state(choice);
        std::string wrong = workload.check(*crashed, broken);
        if (wrong.empty()) {
          // Replay again, after losing what the first replay did not sync.
          const auto again = crashed->crash_state({.mode = fs::CrashChoice::Mode::lose_all});
          wrong = workload.check(*again, broken);
        }
        states += 2;
        if (!wrong.empty()) {
          return "seed " + std::to_string(seed) + ", step " + std::to_string(step) + ", " +
                 choice.to_string() + ": " + wrong;
        }
      }
    }
  }
  return {};
}

TEST(JournalContract, nothing_acknowledged_is_lost_in_any_crash_state) {
  int states = 0;
  EXPECT_EQ(explore<ModelJournal>(Broken::nothing, states), "");
  EXPECT_GT(states, 5'000);
}

TEST(JournalContract, the_real_journal_loses_nothing_in_any_crash_state) {
  int states = 0;
  EXPECT_EQ(explore<RealJournal>(Broken::nothing, states), "");
  EXPECT_GT(states, 5'000);
}

TEST(JournalContract, each_broken_rule_is_caught) {
  int states = 0;
  EXPECT_NE(explore<ModelJournal>(Broken::acknowledges_early, states), "");
  EXPECT_NE(explore<ModelJournal>(Broken::empties_before_syncing, states), "");
}

// Rule 3: what lies behind the end from an earlier round reads well and does not count.
template <typename Journal>
std::string content_after_a_checkpoint(Broken broken) {
  fs::SimFileSystem disk;
  {
    Journal journal(disk, broken);
    EXPECT_TRUE(journal.open());
    EXPECT_TRUE(journal.add({Entry::Kind::write, 0, 0, "old old old"}));
    EXPECT_TRUE(journal.add({Entry::Kind::write, 0, 0, "old"}));
    EXPECT_TRUE(journal.flush());
    EXPECT_TRUE(journal.checkpoint());
    EXPECT_TRUE(journal.add({Entry::Kind::write, 0, 0, "new new new"}));
    EXPECT_TRUE(journal.flush());
  }
  Journal journal(disk, broken);
  EXPECT_TRUE(journal.open());
  return std::string(as_text(*fs::read_file(disk, name_of(0), 100)));
}

TEST(JournalContract, entries_of_an_earlier_epoch_do_not_count) {
  EXPECT_EQ(content_after_a_checkpoint<ModelJournal>(Broken::nothing), "new new new");
  EXPECT_EQ(content_after_a_checkpoint<ModelJournal>(Broken::keeps_its_epoch), "old new new");
  EXPECT_EQ(content_after_a_checkpoint<RealJournal>(Broken::nothing), "new new new");
}

}  // namespace
}  // namespace polylog::crash
