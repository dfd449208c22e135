#include "storage/rocketmq/key_index.h"

#include <algorithm>

#include "base/assert.h"
#include "bytes/endian.h"

namespace polylog::storage::rocketmq {

namespace stored = format::rocketmq;

namespace {

constexpr std::size_t page_bytes = 1024 * stored::index_slot_bytes;

}  // namespace

void KeyIndexFiles::add(const stored::Message& message, std::int64_t position) {
  if (!setup_.enabled || position <= indexed_to_) return;
  const std::int32_t transaction = message.sys_flag & stored::sys_flag::transaction_mask;
  if (transaction == stored::sys_flag::transaction_rollback) return;
  stored::for_each_key(message.properties, [&](std::string_view key) {
    waiting_.push_back(
        {stored::index_key_hash(message.topic, key), position, message.store_timestamp});
  });
}

bool KeyIndexFiles::full(const IndexFile& file) const {
  return file.header.next_entry >= setup_.entries;
}

Result<void> KeyIndexFiles::load(std::vector<std::string>& notes) {
  auto names = fs_.list(setup_.directory);
  if (!names) {
    return names.error().code == Errc::not_found ? Result<void>() : fail(names.error());
  }
  const std::uint64_t bytes = stored::index_file_bytes(setup_.slots, setup_.entries);
  for (const std::string& name : *names) {
    const std::string path = fs::join(setup_.directory, name);
    POLYLOG_ASSIGN(info, fs_.info(path));
    if (!stored::is_index_file_name(name)) {
      notes.push_back(path + " is left alone: no index file");
      continue;
    }
    if (info.size != bytes) {
      notes.push_back(path + " has " + std::to_string(info.size) +
                      " bytes where maxHashSlotNum "
                      "and maxIndexNum make " +
                      std::to_string(bytes) + ": not used");
      continue;
    }
    auto file = std::make_shared<IndexFile>();
    file->path = path;
    file->name = name;
    POLYLOG_ASSIGN(opened, fs_.open(path, fs::OpenMode::write));
    file->file = std::move(opened);
    std::array<std::uint8_t, stored::index_header_bytes> head{};
    POLYLOG_TRY(file->file->read(0, head).map([](const auto&) {}));
    file->header = stored::decode_index_header(head.data());
    // Before the first checkpoint it has none.
    const bool fresh = std::all_of(head.begin(), head.end(), [](auto byte) { return byte == 0; });
    if (fresh) file->header = stored::IndexHeader();
    if (!stored::plausible(file->header, setup_.slots, setup_.entries)) {
      notes.push_back(path + ": its header does not make sense: not used");
      continue;
    }
    indexed_to_ =
        std::max(indexed_to_,
                 file->header.next_entry > 1 ? file->header.end_physical_offset : std::int64_t{-1});
    if (full(*file)) full_until_ = std::max(full_until_, file->header.end_timestamp);
    files_.push_back(std::move(file));
  }
  if (files_.empty()) return {};
  return mend_slots(*files_.back()).map([](std::int32_t) {});
}

// A crash between slots and header leaves slots that name entries beyond the next one. Those
// numbers are given again, so each such slot goes back to the entry it named at the checkpoint.
Result<std::int32_t> KeyIndexFiles::mend_slots(IndexFile& file) const {
  const std::int32_t next = file.header.next_entry;
  if (next >= setup_.entries) return 0;
  POLYLOG_ASSIGN(beyond, read_entry(file, next));
  if (beyond == stored::IndexEntry()) return 0;  // nothing was written behind the checkpoint
  std::int32_t emptied = 0;
  for (std::int32_t first = 0; first < setup_.slots;
       first += static_cast<std::int32_t>(slots_per_page)) {
    POLYLOG_ASSIGN(page, page_of(file, first));
    for (std::int32_t& value : page->slots) {
      while (value >= next) {
        stored::IndexEntry entry;
        if (value < setup_.entries) {
          POLYLOG_ASSIGN(read, read_entry(file, value));
          entry = read;
        }
        value = entry.previous < value ? entry.previous : 0;
        if (value == 0) ++emptied;
        page->dirty = true;
      }
    }
    if (!page->dirty) file.pages[static_cast<std::size_t>(first) / slots_per_page] = nullptr;
  }
  return emptied;
}

// Keys come in the order of the log, save those that had to wait for room: what is to go is at the
// end, and what is not found there is passed over by its position.
Result<void> KeyIndexFiles::take_back(std::int64_t end) {
  POLYLOG_TRY(remove_beyond(end));
  const std::lock_guard lock(mutex_);
  if (files_.empty()) return {};
  IndexFile& file = *files_.back();
  std::int32_t next = file.header.next_entry;
  for (; next > 1; --next) {
    POLYLOG_ASSIGN(entry, read_entry(file, next - 1));
    if (entry.physical_offset < end) break;
  }
  if (next == file.header.next_entry) return {};
  file.header.next_entry = next;
  file.dirty = true;
  POLYLOG_ASSIGN(emptied, mend_slots(file));
  file.header.slots_used -= std::min(emptied, file.header.slots_used);
  return {};
}

Result<void> KeyIndexFiles::make_file() {
  if (auto made = fs::create_directories(fs_, setup_.directory); !made) {
    // Its name was not synced, and no later sync would make up for that: it is to be made anew.
    static_cast<void>(fs_.remove_directory(setup_.directory));
    return made;
  }
  auto file = std::make_shared<IndexFile>();
  std::int64_t created = clock_.now().value();
  file->name = stored::index_file_name(created);
  // Names order the files, whatever the clock says.
  const std::string last = files_.empty() ? std::string() : files_.back()->name;
  if (!last.empty() && file->name <= last) {
    file->name = std::to_string(std::stoll(last) + 1);
  }
  while (fs::exists(fs_, fs::join(setup_.directory, file->name))) {
    file->name = std::to_string(std::stoll(file->name) + 1);
  }
  file->path = fs::join(setup_.directory, file->name);
  POLYLOG_ASSIGN(opened, fs_.open(file->path, fs::OpenMode::create_new));
  file->file = std::move(opened);
  POLYLOG_TRY(file->file->truncate(stored::index_file_bytes(setup_.slots, setup_.entries)));
  if (!files_.empty()) {
    // A following file begins where the one before it ended.
    const stored::IndexHeader& before = files_.back()->header;
    file->header.begin_timestamp = file->header.end_timestamp = before.end_timestamp;
    file->header.begin_physical_offset = before.end_physical_offset;
    file->header.end_physical_offset = before.end_physical_offset;
  }
  file->dirty = true;
  files_.push_back(std::move(file));
  return {};
}

Result<KeyIndexFiles::Page*> KeyIndexFiles::page_of(IndexFile& file, std::int32_t slot) const {
  const auto number = static_cast<std::size_t>(slot) / slots_per_page;
  const std::size_t pages =
      (static_cast<std::size_t>(setup_.slots) + slots_per_page - 1) / slots_per_page;
  if (file.pages.empty()) file.pages.resize(pages);
  std::unique_ptr<Page>& page = file.pages[number];
  if (page == nullptr) {
    auto loaded = std::make_unique<Page>();
    const std::size_t first = number * slots_per_page;
    const std::size_t count =
        std::min(slots_per_page, static_cast<std::size_t>(setup_.slots) - first);
    std::array<std::uint8_t, page_bytes> bytes{};
    POLYLOG_TRY(file.file
                    ->read(stored::index_slot_at(static_cast<std::int32_t>(first)),
                           MutableBytes(bytes).first(count * stored::index_slot_bytes))
                    .map([](const auto&) {}));
    for (std::size_t i = 0; i < count; ++i) {
      loaded->slots[i] = load_big<std::int32_t>(bytes.data() + i * stored::index_slot_bytes);
    }
    page = std::move(loaded);
  }
  return page.get();
}

// Of the file being filled from memory, of older ones from the file.
Result<std::int32_t> KeyIndexFiles::slot_value(IndexFile& file, std::int32_t slot) const {
  if (&file == files_.back().get()) {
    POLYLOG_ASSIGN(page, page_of(file, slot));
    return page->slots[static_cast<std::size_t>(slot) % slots_per_page];
  }
  std::array<std::uint8_t, stored::index_slot_bytes> bytes{};
  POLYLOG_TRY(file.file->read(stored::index_slot_at(slot), bytes).map([](const auto&) {}));
  return load_big<std::int32_t>(bytes.data());
}

Result<stored::IndexEntry> KeyIndexFiles::read_entry(const IndexFile& file,
                                                     std::int32_t number) const {
  std::array<std::uint8_t, stored::index_entry_bytes> bytes{};
  if (!file.unwritten.empty() && number >= file.unwritten_from) {
    const auto at = static_cast<std::size_t>(number - file.unwritten_from);
    if (at < file.unwritten.size() / bytes.size()) {
      return stored::decode_index_entry(file.unwritten.data() + at * bytes.size());
    }
  }
  POLYLOG_TRY(
      file.file->read(stored::index_entry_at(setup_.slots, number), bytes).map([](const auto&) {}));
  return stored::decode_index_entry(bytes.data());
}

Result<stored::IndexEntry> KeyIndexFiles::add_entry(IndexFile& file, const Waiting& key) {
  stored::IndexHeader& header = file.header;
  const std::int32_t slot = stored::index_slot_of(key.hash, setup_.slots);
  POLYLOG_ASSIGN(page, page_of(file, slot));
  std::int32_t& value = page->slots[static_cast<std::size_t>(slot) % slots_per_page];
  std::int32_t previous = value;
  while (previous >= header.next_entry && previous < setup_.entries) {
    POLYLOG_ASSIGN(later, read_entry(file, previous));
    if (later.previous >= previous) break;
    previous = later.previous;
  }
  previous = previous > 0 && previous < header.next_entry ? previous : 0;
  stored::IndexEntry entry;
  entry.key_hash = key.hash;
  entry.physical_offset = key.position;
  entry.seconds = stored::index_seconds(header.begin_timestamp, key.store_time);
  entry.previous = previous;
  if (header.next_entry <= 1) {
    header.begin_physical_offset = key.position;
    header.begin_timestamp = key.store_time;
  }
  if (previous == 0) ++header.slots_used;
  value = header.next_entry++;
  page->dirty = true;
  file.dirty = true;
  header.end_physical_offset = key.position;
  header.end_timestamp = key.store_time;
  return entry;
}

// As many keys as fit; their entries in one write. What a full disk keeps from the file waits.
Result<void> KeyIndexFiles::write_into(IndexFile& file, std::size_t& done) {
  while (done < backlog_.size() && !full(file)) {
    if (file.unwritten.empty()) file.unwritten_from = file.header.next_entry;
    POLYLOG_ASSIGN(entry, add_entry(file, backlog_[done]));
    const std::size_t at = file.unwritten.size();
    file.unwritten.resize(at + stored::index_entry_bytes);
    stored::encode_index_entry(entry, file.unwritten.data() + at);
    ++done;
  }
  return write_entries(file);
}

Result<void> KeyIndexFiles::write_entries(IndexFile& file) {
  if (file.unwritten.empty()) return {};
  POLYLOG_TRY(
      file.file->write(stored::index_entry_at(setup_.slots, file.unwritten_from), file.unwritten));
  file.unwritten.clear();
  return {};
}

Result<void> KeyIndexFiles::write(const Keys& keys) {
  const std::lock_guard lock(mutex_);
  backlog_.insert(backlog_.end(), keys.begin(), keys.end());
  std::size_t done = 0;
  const auto go_on = [&]() -> Result<void> {
    while (done < backlog_.size()) {
      if (files_.empty() || full(*files_.back())) {
        if (!files_.empty()) {
          POLYLOG_TRY(write_table(*files_.back()));
          full_until_ = std::max(full_until_, files_.back()->header.end_timestamp);
          files_.back()->pages.clear();
        }
        POLYLOG_TRY(make_file());
      }
      POLYLOG_TRY(write_into(*files_.back(), done));
    }
    return files_.empty() ? Result<void>() : write_entries(*files_.back());
  };
  const Result<void> outcome = go_on();
  backlog_.erase(backlog_.begin(), backlog_.begin() + static_cast<std::ptrdiff_t>(done));
  if (backlog_.empty()) backlog_.shrink_to_fit();
  return outcome;
}

Result<void> KeyIndexFiles::sync(const IndexFile& file) {
  auto synced = file.file->sync();
  if (!synced) sync_failed_ = true;
  return synced;
}

// Entries before the slots that name them, slots before the header that counts them.
Result<void> KeyIndexFiles::write_table(IndexFile& file) {
  if (!file.dirty) return {};
  if (sync_failed_) return fail(Errc::io, file.path + ": a sync of the key index failed");
  POLYLOG_TRY(write_entries(file));
  POLYLOG_TRY(sync(file));
  for (std::size_t number = 0; number < file.pages.size(); ++number) {
    Page* const page = file.pages[number].get();
    if (page == nullptr || !page->dirty) continue;
    const std::size_t first = number * slots_per_page;
    const std::size_t count =
        std::min(slots_per_page, static_cast<std::size_t>(setup_.slots) - first);
    std::array<std::uint8_t, page_bytes> bytes{};
    for (std::size_t i = 0; i < count; ++i) {
      store_big(bytes.data() + i * stored::index_slot_bytes, page->slots[i]);
    }
    POLYLOG_TRY(file.file->write(stored::index_slot_at(static_cast<std::int32_t>(first)),
                                 ByteView(bytes).first(count * stored::index_slot_bytes)));
    page->dirty = false;
  }
  POLYLOG_TRY(sync(file));
  std::array<std::uint8_t, stored::index_header_bytes> head{};
  stored::encode_index_header(file.header, head.data());
  POLYLOG_TRY(file.file->write(0, ByteView(head)));
  file.dirty = false;
  return {};
}

Result<void> KeyIndexFiles::checkpoint() {
  const std::lock_guard lock(mutex_);
  if (files_.empty()) return {};
  return write_table(*files_.back());
}

// Chains run from the newest entry down, so what was cut off is passed over by its position.
Result<void> KeyIndexFiles::remove_beyond(std::int64_t end) {
  const std::lock_guard lock(mutex_);
  indexed_to_ = std::min(indexed_to_, end - 1);
  while (!files_.empty() && files_.back()->header.begin_physical_offset >= end &&
         files_.back()->header.next_entry > 1) {
    POLYLOG_TRY(fs_.remove(files_.back()->path));
    files_.pop_back();
  }
  if (files_.empty()) return {};
  stored::IndexHeader& header = files_.back()->header;
  if (header.end_physical_offset >= end) {
    header.end_physical_offset = std::max<std::int64_t>(end - 1, 0);
    files_.back()->dirty = true;
  }
  return {};
}

Result<void> KeyIndexFiles::remove_after(std::int64_t time_ms) {
  const std::lock_guard lock(mutex_);
  while (!files_.empty() && files_.back()->header.end_timestamp > time_ms) {
    POLYLOG_TRY(fs_.remove(files_.back()->path));
    files_.pop_back();
  }
  const bool none = files_.empty() || files_.back()->header.next_entry <= 1;
  indexed_to_ = none ? -1 : files_.back()->header.end_physical_offset;
  return {};
}

Result<void> KeyIndexFiles::remove_below(std::int64_t start) {
  const std::lock_guard lock(mutex_);
  while (files_.size() > 1 && files_.front()->header.end_physical_offset < start) {
    POLYLOG_TRY(fs_.remove(files_.front()->path));
    files_.erase(files_.begin());
  }
  return {};
}

Result<std::vector<std::int64_t>> KeyIndexFiles::candidates(IndexFile& file, std::int32_t hash,
                                                            std::int64_t from_ms,
                                                            std::int64_t to_ms,
                                                            bool& older_matter) const {
  constexpr std::int64_t tolerance_ms = 1000;
  const std::lock_guard lock(mutex_);
  std::vector<std::int64_t> positions;
  const stored::IndexHeader& header = file.header;
  older_matter = header.begin_timestamp >= from_ms;
  if (header.next_entry <= 1) return positions;
  POLYLOG_ASSIGN(number, slot_value(file, stored::index_slot_of(hash, setup_.slots)));
  // Of an older file whose last header a crash took: what it names beyond was indexed again.
  while (number >= header.next_entry && number < setup_.entries) {
    POLYLOG_ASSIGN(beyond, read_entry(file, number));
    number = beyond.previous < number ? beyond.previous : 0;
  }
  while (number > 0 && number < header.next_entry) {
    POLYLOG_ASSIGN(entry, read_entry(file, number));
    const std::int64_t time = stored::index_timestamp(header.begin_timestamp, entry.seconds);
    if (time + 2 * tolerance_ms < from_ms) break;
    if (entry.key_hash == hash && time - tolerance_ms <= to_ms) {
      positions.push_back(entry.physical_offset);
    }
    if (entry.previous >= number) break;
    number = entry.previous;
  }
  return positions;
}

}  // namespace polylog::storage::rocketmq
