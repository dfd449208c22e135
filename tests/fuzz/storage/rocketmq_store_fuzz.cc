#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"
#include "bytes/reader.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/property_crc.h"
#include "fs/sim_file_system.h"
#include "storage/rocketmq/store.h"

// A small RocketMQ store with damaged files: any of them, anywhere. Opening it may be refused; if
// it is not, everything is read, looked up, added to, closed and opened again. Nothing may crash,
// leave the store's directories, or show a record other than the one that was written. The input
// says how the store was stopped (one byte) and then, change by change, what happened to its files.

using namespace polylog;
using namespace polylog::storage;
namespace stored = polylog::format::rocketmq;

namespace {

const std::vector<std::string> topics{"a", "b"};
const std::string root = "/data";

StoreConfig store_config() {
  StoreConfig config;
  config.directory = root + "/rocketmq";
  config.sidecar_directory = root + "/sidecar";
  config.cluster_id = *Uuid::parse("AAAAAAAAAAAAAAAAAAAAAg");
  config.shared.commit_log_file_bytes = 1024;
  config.shared.queue_file_bytes = 100;
  config.shared.index_slots = 4;
  config.shared.index_entries = 6;
  return config;
}

// What was written: whole records by topic and offset, and the bodies alone.
struct Records {
  std::map<std::pair<std::string, std::int64_t>, std::string> whole;
  std::set<std::string> bodies;
};

std::string key_of(std::int64_t offset) { return "key" + std::to_string(offset % 3); }

// Every second message has the checksum over all of it.
Batch make_message(const std::string& topic, int number, Timestamp born) {
  const std::string body = topic + std::to_string(number) + std::string(30, '.');
  std::string properties = "KEYS\x01" + key_of(number) + "\x02";
  if (number % 2 == 0) POLYLOG_ASSERT(stored::append_property_crc_room(properties));
  stored::Message message;
  message.born_timestamp = born.value();
  message.body = as_bytes(body);
  const auto name = rocketmq::stored_name(topic);
  message.topic = *name;
  message.properties = properties;
  std::vector<std::uint8_t> bytes;
  POLYLOG_ASSERT(stored::encode(message, bytes));
  Batch batch;
  batch.format = BatchFormat::rocketmq;
  batch.info.records = 1;
  batch.info.max_timestamp = born;
  batch.bytes = Slice::of(std::move(bytes));
  return batch;
}

Result<void> sync_all(fs::SimFileSystem& disk, Log& log) {
  POLYLOG_ASSIGN(dirty, log.dirty());
  if (!dirty) return {};
  for (const fs::FilePtr& file : dirty->files) POLYLOG_TRY(file->sync());
  for (const std::string& path : dirty->directories) POLYLOG_TRY(disk.sync_directory(path));
  log.settled(*dirty, true);
  log.write_noted();
  return {};
}

// Calls f(ByteView record, const Message&, const TopicPartition&) for all that reads.
template <typename F>
void for_each_record(const Store& store, F&& f) {
  for (const TopicPartition& id : store.partitions()) {
    const auto log = store.find(id);
    POLYLOG_ASSERT(log != nullptr);
    ReadLimits limits;
    limits.bytes_max = 400;
    limits.end = log->offsets().end;
    limits.first_whole = true;
    for (Offset at = log->offsets().start; at < limits.end;) {
      const auto batches = log->read(at, limits);
      if (!batches || batches->empty()) break;
      for (const Batch& batch : *batches) {
        POLYLOG_ASSERT(batch.info.first >= at && batch.info.last < limits.end);
        std::int64_t offset = batch.info.first.value();
        const auto whole = stored::for_each_message(
            batch.bytes.view(), [&](ByteView record, const stored::Message& message) {
              POLYLOG_ASSERT(message.queue_offset == offset++);
              f(record, message, id);
              return Result<void>();
            });
        POLYLOG_ASSERT(whole && offset == batch.info.last.value() + 1);
        at = batch.info.last + 1;
      }
    }
  }
}

// ------------------------------------------------------------------------------------ the stores

struct Original {
  std::unique_ptr<fs::SimFileSystem> killed, stopped;
  Records records;  // of both
};

void fill(fs::SimFileSystem& disk, ManualClock& clock, Store& store, int from, int to) {
  for (int i = from; i < to; ++i) {
    clock.advance_ms(10);
    const std::string& topic = topics[static_cast<std::size_t>(i % 2)];
    const auto log = store.find({topic, 0});
    POLYLOG_ASSERT(log != nullptr && log->append(make_message(topic, i, clock.now())));
    POLYLOG_ASSERT(log->log()->write_staged());
    if (i % 5 == 4) POLYLOG_ASSERT(sync_all(disk, *log->log()));
    if (i % 9 == 8) POLYLOG_ASSERT(store.checkpoint());
  }
}

Original make_original() {
  Original made;
  fs::SimFileSystem disk;
  ManualClock clock{Timestamp(1'700'000'000'000)};
  auto opened = rocketmq::RocketmqStore::open(disk, clock, store_config());
  POLYLOG_ASSERT(opened);
  Store& store = *opened->store;
  std::uint8_t generation = 0;
  for (const std::string& topic : topics) {
    Uuid id;
    id.bytes[0] = ++generation;
    const auto log = store.create({topic, 0}, id, LogConfig());
    POLYLOG_ASSERT(log && (*log)->log()->begin_epoch(LeaderEpoch(1)));
  }
  fill(disk, clock, store, 0, 24);
  POLYLOG_ASSERT(sync_all(disk, *store.find({"a", 0})->log()));
  fill(disk, clock, store, 24, 28);  // not synced
  for_each_record(store, [&](ByteView record, const stored::Message& message, const auto& id) {
    made.records.whole[{id.topic, message.queue_offset}] = std::string(as_text(record));
    made.records.bodies.emplace(as_text(message.body));
  });
  POLYLOG_ASSERT(made.records.whole.size() == 28);
  made.killed = disk.crash_state({.mode = fs::CrashChoice::Mode::kill});
  POLYLOG_ASSERT(store.close());
  made.stopped = disk.crash_state({.mode = fs::CrashChoice::Mode::kill});
  return made;
}

// ------------------------------------------------------------------------------------- the damage

void list_files(const fs::FileSystem& disk, const std::string& directory,
                std::vector<std::string>& paths) {
  const auto names = disk.list(directory);
  if (!names) return;
  for (const std::string& name : *names) {
    const std::string path = fs::join(directory, name);
    const auto info = disk.info(path);
    if (info && info->directory) {
      list_files(disk, path, paths);
    } else if (info) {
      paths.push_back(path);
    }
  }
}

// What was done, as far as it matters to what may be expected.
struct Damage {
  int log_changes = 0;    // of the commit log
  bool log_wide = false;  // one of them more than four bytes, which a CRC need not notice
};

void note_damage(const std::string& path, std::size_t bytes, Damage& damage) {
  if (path.find("/commitlog/") == std::string::npos) return;
  ++damage.log_changes;
  if (bytes > 4) damage.log_wide = true;
}

void change(fs::SimFileSystem& disk, const std::string& path, ByteReader& reader, Damage& damage) {
  const std::uint8_t kind = reader.u8();
  const std::size_t at = reader.u16();
  auto bytes = fs::read_file(disk, path, 1 << 20);
  if (!bytes || !reader.ok()) return;
  std::size_t changed = SIZE_MAX;
  switch (kind % 6) {
    case 0: {  // exclusive or, up to four bytes
      const ByteView mask = reader.bytes(1 + kind / 6 % 4);
      if (bytes->empty() || mask.empty()) return;
      const std::size_t from = at % bytes->size();
      changed = std::min(mask.size(), bytes->size() - from);
      for (std::size_t i = 0; i < changed; ++i) (*bytes)[from + i] ^= mask[i];
      disk.corrupt(path, from, ByteView(*bytes).subspan(from, changed));
      break;
    }
    case 1: {  // other bytes
      const ByteView put = reader.bytes(std::min<std::size_t>(reader.u8(), reader.remaining()));
      if (bytes->empty() || put.empty()) return;
      const std::size_t from = at % bytes->size();
      disk.corrupt(path, from, put.first(std::min(put.size(), bytes->size() - from)));
      break;
    }
    case 2: disk.truncate_raw(path, at % (bytes->size() + 1)); break;
    case 3: {  // longer
      const std::vector<std::uint8_t> more(1 + at % 64, reader.u8());
      disk.append_raw(path, more);
      break;
    }
    case 4: POLYLOG_ASSERT(disk.remove(path)); break;
    default: {  // bytes of another place
      if (bytes->empty()) return;
      const std::size_t to = at % bytes->size(), from = reader.u16() % bytes->size();
      const std::size_t count =
          std::min<std::size_t>(1 + reader.u8(), bytes->size() - std::max(to, from));
      const std::vector<std::uint8_t> copy(
          bytes->begin() + static_cast<std::ptrdiff_t>(from),
          bytes->begin() + static_cast<std::ptrdiff_t>(from + count));
      disk.corrupt(path, to, copy);
    }
  }
  note_damage(path, changed, damage);
}

Damage apply(fs::SimFileSystem& disk, ByteReader& reader) {
  Damage damage;
  for (int changes = 0; reader.ok() && reader.remaining() > 0 && changes < 16; ++changes) {
    std::vector<std::string> paths;
    list_files(disk, root, paths);
    if (paths.empty()) break;
    change(disk, paths[reader.u8() % paths.size()], reader, damage);
  }
  return damage;
}

// ------------------------------------------------------------------------------------- the checks

// A record with the checksum over all of it is the one that was written there; of the others the
// body is one that was written. (Sums beside the log begin at 64 KiB and have no say here.) What
// may defeat a CRC is not judged.
void judge(const Records& records, const Damage& damage, ByteView record,
           const stored::Message& message, const std::string& topic) {
  if (damage.log_changes > 1 || damage.log_wide) return;
  POLYLOG_ASSERT(records.bodies.contains(std::string(as_text(message.body))));
  if (stored::check_property_crc(record) != stored::PropertyCrc::good) return;
  const auto original = records.whole.find({topic, message.queue_offset});
  POLYLOG_ASSERT(original != records.whole.end() && original->second == as_text(record));
}

void check_lookups(const Store& store, const Records& records, const Damage& damage) {
  for (const std::string& topic : topics) {
    for (std::int64_t i = 0; i < 3; ++i) {
      KeyIndex::KeyQuery query;
      query.topic = topic;
      query.key = key_of(i);
      const auto found = store.key_index()->find_by_key(query);
      if (!found) continue;
      for (const KeyIndex::Found& match : *found) {
        const auto message = stored::parse(match.record.bytes.view());
        POLYLOG_ASSERT(message && stored::crc_matches(*message));
        bool named = false;
        stored::for_each_key(message->properties,
                             [&](std::string_view key) { named = named || key == query.key; });
        POLYLOG_ASSERT(named);
        judge(records, damage, match.record.bytes.view(), *message, topic);
      }
    }
  }
}

void check_times(const Store& store) {
  for (const TopicPartition& id : store.partitions()) {
    const auto log = store.find(id);
    for (const std::int64_t at : {INT64_C(0), INT64_C(1'700'000'000'100), INT64_MAX}) {
      if (const auto found = log->offset_for_time(Timestamp(at)); found && *found) {
        POLYLOG_ASSERT((*found)->offset >= log->offsets().start);
      }
    }
    if (!log->offset_of_max_timestamp()) continue;
  }
}

// Damage must not lead outside: names in records and files are only names.
void check_paths(const fs::FileSystem& disk) {
  const auto names = disk.list("/");
  POLYLOG_ASSERT(names && names->size() == 1);
  const auto inside = disk.list(root);
  POLYLOG_ASSERT(inside);
  for (const std::string& name : *inside) {
    POLYLOG_ASSERT(name == "rocketmq" || name == "sidecar");
  }
}

// A damaged store that opened goes on working: what is acknowledged now is there afterwards.
void check_goes_on(fs::SimFileSystem& disk, const Clock& clock, Opened opened) {
  const TopicPartition id{"a", 0};
  const auto log = opened.store->find(id);
  std::optional<Staged> staged;
  if (log != nullptr) {
    const auto put = log->append(make_message("a", 100, clock.now()));
    if (put && log->log()->write_staged() && sync_all(disk, *log->log())) staged = *put;
  }
  const auto tended = opened.store->tend(clock.now());
  if (!tended || !opened.store->checkpoint() || !opened.store->close() || !staged) return;
  opened.store.reset();
  auto again = rocketmq::RocketmqStore::open(disk, clock, store_config());
  POLYLOG_ASSERT(again);
  const auto found = again->store->find(id);
  POLYLOG_ASSERT(found != nullptr && found->offsets().end >= staged->offsets.end);
  ReadLimits limits;
  limits.bytes_max = 1 << 20;
  limits.end = staged->offsets.end;
  limits.first_whole = true;
  const auto batches = found->read(staged->offsets.start, limits);
  POLYLOG_ASSERT(batches && batches->size() == 1);
  const auto message = stored::parse(batches->front().bytes.view());
  POLYLOG_ASSERT(message && as_text(message->body).starts_with("a100."));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Original original = make_original();
  ByteReader reader(ByteView(data, size));
  const bool stopped = (reader.u8() & 1) != 0;
  const auto disk = (stopped ? original.stopped : original.killed)
                        ->crash_state({.mode = fs::CrashChoice::Mode::kill});
  const Damage damage = apply(*disk, reader);
  const ManualClock clock{Timestamp(1'700'000'001'000)};
  auto opened = rocketmq::RocketmqStore::open(*disk, clock, store_config());
  if (opened) {
    for_each_record(*opened->store,
                    [&](ByteView record, const stored::Message& message, const auto& id) {
                      judge(original.records, damage, record, message, id.topic);
                    });
    check_lookups(*opened->store, original.records, damage);
    check_times(*opened->store);
    check_goes_on(*disk, clock, std::move(*opened));
  }
  check_paths(*disk);
  return 0;
}
