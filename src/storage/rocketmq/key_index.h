#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "format/rocketmq/index_file.h"
#include "format/rocketmq/message.h"
#include "fs/file_system.h"

// The index files (RocketMQ store format, "Index files"): a hash table on disk from topic#key to
// positions in the commit log, filled in the order of the log, one file after the other.
//
// Keys wait in memory until the next flush. A flush appends entries to the file; slots and header
// stay in memory until a checkpoint, which writes them only once the entries they point to are on
// disk. So an entry that a slot names is always whole, and a start after a crash finds the table as
// it was at a checkpoint, with entries behind it that dispatching the log again writes once more.
namespace polylog::storage::rocketmq {

class KeyIndexFiles {
 public:
  struct Setup {
    std::string directory;
    bool enabled = true;
    std::int32_t slots = 5'000'000;
    std::int32_t entries = 20'000'000;
  };
  KeyIndexFiles(fs::FileSystem& fs, const Clock& clock, Setup setup)
      : fs_(fs), clock_(clock), setup_(std::move(setup)) {}

  // Under the store's lock: the message's keys are to be indexed. Keys of messages at or below
  // indexed_to() are there already.
  void add(const format::rocketmq::Message& message, std::int64_t position);
  bool idle() const { return waiting_.empty(); }
  std::size_t waiting() const { return waiting_.size(); }

  // One caller at a time, all wait for disk. What add() collected is taken with take() under the
  // store's lock and handed to write() outside it.
  struct Waiting {
    std::int32_t hash;
    std::int64_t position;
    std::int64_t store_time;
  };
  using Keys = std::vector<Waiting>;
  Keys take() { return std::exchange(waiting_, {}); }
  Result<void> write(const Keys& keys);
  // Syncs the entries, then brings slots and header to the file: see above.
  Result<void> checkpoint();
  // A file could not be synced: what it holds is not sure to be on disk, whatever later syncs say.
  bool sync_failed() const { return sync_failed_; }
  // Store time of the last entry of the last file that is full; 0: none is.
  std::int64_t full_until() const { return full_until_; }

  // Opens what is there. Files that do not look like ours to use (another length) are left alone
  // and named in `notes`. Waits for disk.
  Result<void> load(std::vector<std::string>& notes);
  // Position of the last message whose keys a checkpoint has brought to the files; -1: none.
  std::int64_t indexed_to() const { return indexed_to_; }
  // Entries of messages at or beyond `end` go from the files: their keys come again.
  Result<void> take_back(std::int64_t end);
  // Those of messages below `end` are taken as indexed.
  void trust(std::int64_t end) { indexed_to_ = std::max(indexed_to_, end - 1); }
  // Entries for positions at or beyond `end` are forgotten as far as slots and header know them.
  Result<void> remove_beyond(std::int64_t end);
  // Files that hold entries stored after `time_ms` go: RocketMQ's rule after a crash of its own.
  Result<void> remove_after(std::int64_t time_ms);
  // Files all of whose entries lie below `start` go.
  Result<void> remove_below(std::int64_t start);

  // Calls accept(position) -> Result<bool> for candidates for topic#key stored within [from, to]
  // ms, give or take a second, newest first, until it says false. Hashes collide: the caller
  // compares the record. Flush first. Waits for disk.
  template <typename F>
  Result<void> lookup(std::string_view topic, std::string_view key, std::int64_t from_ms,
                      std::int64_t to_ms, F&& accept) const {
    const std::int32_t hash = format::rocketmq::index_key_hash(topic, key);
    std::vector<IndexFilePtr> files;
    {
      const std::lock_guard lock(mutex_);
      files.assign(files_.rbegin(), files_.rend());
    }
    for (const IndexFilePtr& file : files) {
      bool older_matter = true;
      POLYLOG_ASSIGN(positions, candidates(*file, hash, from_ms, to_ms, older_matter));
      for (const std::int64_t position : positions) {
        POLYLOG_ASSIGN(more, accept(position));
        if (!more) return {};
      }
      if (!older_matter) return {};
    }
    return {};
  }

 private:
  static constexpr std::size_t slots_per_page = 1024;
  struct Page {
    std::array<std::int32_t, slots_per_page> slots{};
    bool dirty = false;
  };
  struct IndexFile {
    std::string path;
    std::string name;
    fs::FilePtr file;
    format::rocketmq::IndexHeader header;
    std::vector<std::unique_ptr<Page>> pages;  // of the file being filled, as far as looked at
    std::vector<std::uint8_t> unwritten;       // entries the disk had no room for
    std::int32_t unwritten_from = 0;           // number of the first of them
    bool dirty = false;
  };
  using IndexFilePtr = std::shared_ptr<IndexFile>;

  bool full(const IndexFile& file) const;
  Result<std::int32_t> mend_slots(IndexFile& file) const;  // how many name nothing any more
  Result<void> make_file();
  Result<Page*> page_of(IndexFile& file, std::int32_t slot) const;
  Result<std::int32_t> slot_value(IndexFile& file, std::int32_t slot) const;
  Result<format::rocketmq::IndexEntry> read_entry(const IndexFile& file, std::int32_t number) const;
  // Gives the key the next entry and its slot. What the slot names beyond the next entry is from
  // before a crash, whole, and about to be written once more: its chain is followed.
  Result<format::rocketmq::IndexEntry> add_entry(IndexFile& file, const Waiting& key);
  Result<void> write_into(IndexFile& file, std::size_t& done);
  Result<void> write_entries(IndexFile& file);
  Result<void> write_table(IndexFile& file);
  Result<void> sync(const IndexFile& file);
  Result<std::vector<std::int64_t>> candidates(IndexFile& file, std::int32_t hash,
                                               std::int64_t from_ms, std::int64_t to_ms,
                                               bool& older_matter) const;

  fs::FileSystem& fs_;
  const Clock& clock_;
  const Setup setup_;
  Keys waiting_;                     // the store's lock
  mutable std::mutex mutex_;         // guards all below
  Keys backlog_;                     // taken, and not in a file yet
  std::vector<IndexFilePtr> files_;  // oldest first; the last one is being filled
  std::int64_t full_until_ = 0;
  std::atomic<bool> sync_failed_ = false;
  std::int64_t indexed_to_ = -1;
};

}  // namespace polylog::storage::rocketmq
