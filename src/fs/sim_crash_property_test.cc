#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <random>
#include <set>

#include "fs/sim_file_system.h"

// Random work on the simulated disk against a shadow that knows only the contract: what is in a
// crash state was either synced or asked for since, and what was synced and not touched since is
// there.
namespace polylog::fs {
namespace {

constexpr std::size_t file_bytes_max = 3000;

struct ShadowByte {
  std::bitset<256> possible;  // besides the synced value and zero
  bool touched = false;       // written or cut off since the last good sync
};

struct ShadowFile {
  std::vector<std::uint8_t> synced;
  std::vector<ShadowByte> bytes = std::vector<ShadowByte>(file_bytes_max);
  bool cut = false;  // truncated since the last good sync
  std::size_t size_max = 0;
  std::vector<std::uint8_t> now;
  bool failed = false;   // a sync failed: no claims about what later syncs do
  bool removed = false;  // somebody asked for it to go
  bool named = false;    // its name was durable once
};

class Workload {
 public:
  explicit Workload(std::uint64_t seed) : random_(seed) {
    for (const std::string directory : {"/a", "/b"}) {
      EXPECT_TRUE(create_directories(fs_, directory));
    }
  }

  void run(int operations) {
    for (int i = 0; i < operations; ++i) one();
  }

  // Every state must satisfy the contract; returns how many were looked at.
  std::size_t check(std::size_t count) {
    const auto choices = fs_.crash_choices(random_(), count);
    for (const CrashChoice& choice : choices) {
      const auto state = fs_.crash_state(choice);
      check_state(*state, choice.to_string());
      if (testing::Test::HasFatalFailure()) return 0;
    }
    return choices.size();
  }

 private:
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  std::string any_path() {
    static const std::vector<std::string> directories{"/", "/a", "/b"};
    return join(directories[pick(3)], "f" + std::to_string(pick(4)));
  }

  // The shadow of the file at a path; null when there is none.
  ShadowFile* shadow(const std::string& path) {
    const auto info = fs_.info(path);
    return info ? &files_[info->inode] : nullptr;
  }

  void one() {
    const std::string path = any_path();
    switch (pick(12)) {
      case 0:
      case 1:
      case 2:
      case 3: write(path); break;
      case 4: truncate(path); break;
      case 5:
      case 6: sync(path); break;
      case 7: rename(path, any_path()); break;
      case 8: remove(path); break;
      case 9:
      case 10: sync_directory(parent_of(path)); break;
      case 11:
        if (pick(4) == 0) sync_volume();
        break;
    }
  }

  void write(const std::string& path) {
    const FilePtr file = fs_.open(path, OpenMode::create).value();
    ShadowFile& shadow = files_[file->info()->inode];
    std::size_t position = pick(2) == 0 ? shadow.now.size() : pick(file_bytes_max);
    const std::size_t count = 1 + pick(pick(2) == 0 ? 20 : 1200);
    if (position + count > file_bytes_max) position = file_bytes_max - count;
    const auto value = static_cast<std::uint8_t>(1 + pick(255));
    ASSERT_TRUE(file->write(position, std::vector<std::uint8_t>(count, value)));
    for (std::size_t at = position; at < position + count; ++at) {
      shadow.bytes[at].possible.set(value);
      shadow.bytes[at].touched = true;
    }
    if (shadow.now.size() < position + count) shadow.now.resize(position + count);
    std::fill_n(shadow.now.begin() + static_cast<std::ptrdiff_t>(position), count, value);
    shadow.size_max = std::max(shadow.size_max, position + count);
  }

  void truncate(const std::string& path) {
    ShadowFile* const shadow = this->shadow(path);
    if (shadow == nullptr) return;
    const std::size_t size = pick(file_bytes_max);
    ASSERT_TRUE(fs_.open(path, OpenMode::write).value()->truncate(size));
    for (std::size_t at = size; at < file_bytes_max; ++at) shadow->bytes[at].touched = true;
    shadow->cut = true;
    shadow->now.resize(size);
    shadow->size_max = std::max(shadow->size_max, size);
  }

  static void now_synced(ShadowFile& shadow) {
    if (shadow.failed) return;
    shadow.synced = shadow.now;
    shadow.bytes.assign(file_bytes_max, {});
    shadow.cut = false;
    shadow.size_max = shadow.now.size();
  }

  void sync(const std::string& path) {
    ShadowFile* const shadow = this->shadow(path);
    if (shadow == nullptr) return;
    const FilePtr file = fs_.open(path, OpenMode::read).value();
    if (pick(12) == 0) {
      fs_.fail_step(fs_.steps() + 1, Fault::eio);
      ASSERT_FALSE(file->sync());
      // From here on the shadow only knows what was written at any time, and that nothing
      // synced before and untouched since may go.
      shadow->failed = true;
      return;
    }
    ASSERT_TRUE(file->sync());
    now_synced(*shadow);
  }

  void rename(const std::string& from, const std::string& to) {
    ShadowFile* const moved = shadow(from);
    if (moved == nullptr || from == to) return;
    if (ShadowFile* const replaced = shadow(to); replaced != nullptr) replaced->removed = true;
    ASSERT_TRUE(fs_.rename(from, to));
    names_touched_.insert(from);
    names_touched_.insert(to);
  }

  void remove(const std::string& path) {
    ShadowFile* const gone = shadow(path);
    if (gone == nullptr) return;
    gone->removed = true;
    ASSERT_TRUE(fs_.remove(path));
    names_touched_.insert(path);
  }

  void names_synced(const std::string& directory) {
    const std::vector<std::string> names = fs_.list(directory).value();
    for (const std::string& name : names) {
      const std::string path = join(directory, name);
      const FileInfo info = fs_.info(path).value();
      if (info.directory) continue;
      files_[info.inode].named = true;
      durable_names_[path] = info.inode;
    }
    const auto here = [&](const std::string& path) { return parent_of(path) == directory; };
    std::erase_if(names_touched_, here);
    std::erase_if(durable_names_, [&](const auto& entry) {
      return here(entry.first) && !exists(fs_, entry.first);
    });
  }

  void sync_directory(const std::string& directory) {
    ASSERT_TRUE(fs_.sync_directory(directory));
    names_synced(directory);
  }

  void sync_volume() {
    ASSERT_TRUE(fs_.open_volume("/").value()->sync());
    for (auto& [inode, shadow] : files_) now_synced(shadow);
    for (const std::string directory : {"/", "/a", "/b"}) names_synced(directory);
  }

  void check_state(SimFileSystem& state, const std::string& what) {
    std::map<std::string, std::uint64_t> names;
    std::set<std::uint64_t> inodes;
    for (const std::string directory : {"/", "/a", "/b"}) {
      const auto listed = state.list(directory);
      ASSERT_TRUE(listed) << what;
      for (const std::string& name : *listed) {
        const std::string path = join(directory, name);
        const FileInfo info = state.info(path).value();
        if (info.directory) continue;
        names[path] = info.inode;
        ASSERT_TRUE(inodes.insert(info.inode).second) << what << ": one file under two names";
        ASSERT_TRUE(files_.contains(info.inode)) << what;
        check_content(state, path, files_[info.inode], what);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
    for (const auto& [path, inode] : durable_names_) {
      if (names_touched_.contains(path)) continue;
      const auto found = names.find(path);
      ASSERT_TRUE(found != names.end()) << what << ": " << path << " was synced and is gone";
      ASSERT_EQ(found->second, inode) << what << ": " << path;
    }
    for (const auto& [inode, shadow] : files_) {
      if (!shadow.named || shadow.removed) continue;
      ASSERT_TRUE(inodes.contains(inode)) << what << ": inode " << inode << " is nowhere";
    }
  }

  static void check_content(SimFileSystem& state, const std::string& path, const ShadowFile& shadow,
                            const std::string& what) {
    const auto bytes = read_file(state, path, file_bytes_max);
    ASSERT_TRUE(bytes) << what;
    ASSERT_LE(bytes->size(), shadow.size_max) << what << ": " << path;
    if (!shadow.cut) {
      ASSERT_GE(bytes->size(), shadow.synced.size()) << what << ": " << path;
    }
    for (std::size_t at = 0; at < bytes->size(); ++at) {
      const std::uint8_t byte = (*bytes)[at];
      const ShadowByte& known = shadow.bytes[at];
      const bool was_synced = at < shadow.synced.size();
      if (was_synced && !known.touched) {
        ASSERT_EQ(byte, shadow.synced[at]) << what << ": " << path << " at " << at;
      } else {
        ASSERT_TRUE(byte == 0 || known.possible.test(byte) ||
                    (was_synced && byte == shadow.synced[at]))
            << what << ": " << path << " at " << at << " holds what nobody wrote";
      }
    }
  }

  std::mt19937_64 random_;
  SimFileSystem fs_;
  std::map<std::uint64_t, ShadowFile> files_;
  std::map<std::string, std::uint64_t> durable_names_;
  std::set<std::string> names_touched_;  // renamed, replaced or removed since the last sync
};

TEST(CrashProperty, synced_is_never_lost_and_nothing_is_made_up) {
  std::size_t states = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Workload workload(seed);
    for (int round = 0; round < 4; ++round) {
      workload.run(3 + static_cast<int>(seed % 25));
      states += workload.check(16);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(states, 7'000U);
}

}  // namespace
}  // namespace polylog::fs
