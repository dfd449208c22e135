#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "bytes/endian.h"
#include "cli/dump_files.h"
#include "cli/dump_store_log.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "format/rocketmq/index_file.h"

namespace polylog::cli {
namespace {

namespace rocketmq = format::rocketmq;
using rocketmq::IndexEntry;
using rocketmq::IndexHeader;

// Numbers of slots and entries. The file itself doesn't say; RocketMQ's settings for them default
// to this proportion, so a file's size tells as long as that is kept.
std::optional<std::int32_t> slots_of(std::uint64_t file_bytes) {
  constexpr std::int32_t entries_per_slot =
      rocketmq::index_entries_default / rocketmq::index_slots_default;
  constexpr std::uint64_t bytes_per_slot =
      rocketmq::index_file_bytes(1, entries_per_slot) - rocketmq::index_header_bytes;
  if (file_bytes <= rocketmq::index_header_bytes) return std::nullopt;
  const std::uint64_t slots = (file_bytes - rocketmq::index_header_bytes) / bytes_per_slot;
  if (slots == 0 || slots > 100'000'000) return std::nullopt;
  const auto count = static_cast<std::int32_t>(slots);
  if (rocketmq::index_file_bytes(count, count * entries_per_slot) != file_bytes) {
    return std::nullopt;
  }
  return count;
}

class KeyIndexDump {
 public:
  KeyIndexDump(const DumpFile& file, StoreLog* log, const DumpOptions& options, DumpReport& report)
      : file_(file),
        log_(log),
        deep_(options.deep),
        report_(report),
        progress_(file.path, file.size) {}

  Result<void> run() {
    const auto slots = slots_of(file_.size);
    if (!slots) {
      report_.damage(0, "no index file has this size (one slot to four entries is what it takes)");
      report_.end_file({{"entries", 0}});
      return {};
    }
    slots_ = *slots;
    std::array<std::uint8_t, rocketmq::index_header_bytes> head{};
    POLYLOG_ASSIGN(got, file_.file->read(0, head));
    if (got < head.size()) return fail(Errc::io, file_.path + " became shorter meanwhile");
    header_ = rocketmq::decode_index_header(head.data());
    if (std::all_of(head.begin(), head.end(), [](std::uint8_t byte) { return byte == 0; })) {
      report_.note(0, "no header was written: the file is new");
      header_.next_entry = 1;
    }
    show_header();
    const auto entries = static_cast<std::int32_t>(
        (file_.size - rocketmq::index_entry_at(slots_, 0)) / rocketmq::index_entry_bytes);
    if (!rocketmq::plausible(header_, slots_, entries)) {
      report_.damage(0, "the header's numbers cannot be meant");
      header_.next_entry = std::clamp(header_.next_entry, 1, entries);
    }
    POLYLOG_TRY(show_entries());
    if (deep_) POLYLOG_TRY(check_slots());
    report_.end_file({{"entries", header_.next_entry - 1}, {"slots", slots_}});
    return {};
  }

 private:
  void show_header() {
    if (report_.json()) {
      JsonWriter json = json_of_type("index_header");
      json.field("begin_timestamp", header_.begin_timestamp);
      json.field("end_timestamp", header_.end_timestamp);
      json.field("begin_physical_offset", header_.begin_physical_offset);
      json.field("end_physical_offset", header_.end_physical_offset);
      json.field("slots_used", header_.slots_used).field("next_entry", header_.next_entry);
      return report_.object(json);
    }
    report_.person("  from " + format_time(Timestamp(header_.begin_timestamp)) + " to " +
                   format_time(Timestamp(header_.end_timestamp)) + " records at " +
                   std::to_string(header_.begin_physical_offset) + ".." +
                   std::to_string(header_.end_physical_offset) + " slots used " +
                   std::to_string(header_.slots_used) + " next entry " +
                   std::to_string(header_.next_entry));
  }

  // Entries first to header_.next_entry - 1, in pieces.
  template <typename F>
  Result<void> for_each_entry(F&& visit) {
    constexpr std::int32_t entries_per_read = 8192;
    std::vector<std::uint8_t> chunk(entries_per_read * rocketmq::index_entry_bytes);
    for (std::int32_t first = 1; first < header_.next_entry; first += entries_per_read) {
      const std::uint64_t from = rocketmq::index_entry_at(slots_, first);
      POLYLOG_ASSIGN(got, file_.file->read(from, chunk));
      const auto there = static_cast<std::int32_t>(got / rocketmq::index_entry_bytes);
      const std::int32_t count = std::min(there, header_.next_entry - first);
      progress_.at(from);
      for (std::int32_t i = 0; i < count; ++i) {
        const std::size_t at = static_cast<std::size_t>(i) * rocketmq::index_entry_bytes;
        POLYLOG_TRY(visit(first + i, from + at, rocketmq::decode_index_entry(&chunk[at])));
      }
    }
    return {};
  }

  Result<void> show_entries() {
    return for_each_entry([&](std::int32_t number, std::uint64_t at, const IndexEntry& entry) {
      show(number, entry);
      return check(number, at, entry);
    });
  }

  void show(std::int32_t number, const IndexEntry& entry) {
    const std::int64_t time = rocketmq::index_timestamp(header_.begin_timestamp, entry.seconds);
    if (report_.json()) {
      JsonWriter json = json_of_type("entry");
      json.field("number", number).field("key_hash", entry.key_hash);
      json.field("physical_offset", entry.physical_offset).field("seconds", entry.seconds);
      json.field("timestamp", time).field("previous", entry.previous);
      return report_.object(json);
    }
    report_.person("  entry " + std::to_string(number) + " hash " + std::to_string(entry.key_hash) +
                   " at " + std::to_string(entry.physical_offset) + " about " +
                   format_time(Timestamp(time)) + " previous " + std::to_string(entry.previous));
  }

  Result<void> check(std::int32_t number, std::uint64_t at, const IndexEntry& entry) {
    if (entry.key_hash < 0 || entry.physical_offset < 0 || entry.seconds < 0) {
      report_.damage(at, "a negative number");
      return {};
    }
    if (entry.previous < 0 || entry.previous >= number) {
      report_.damage(at, "the chain does not lead to an older entry");
    }
    if (entry.physical_offset < last_physical_) {
      report_.damage(at, "the record lies before that of the entry before");
    } else if (entry.physical_offset > header_.end_physical_offset) {
      report_.damage(at, "the record lies behind those that the header knows");
    } else if (log_ != nullptr) {
      POLYLOG_TRY(follow(at, entry));
    }
    last_physical_ = entry.physical_offset;
    return {};
  }

  Result<void> follow(std::uint64_t at, const IndexEntry& entry) {
    POLYLOG_ASSIGN(found, log_->at(entry.physical_offset));
    if (found.state == StoreLog::Found::State::deleted) return {};
    const std::string where = "byte " + std::to_string(entry.physical_offset) + " ";
    if (found.state == StoreLog::Found::State::wrong) {
      report_.damage(at, where + found.why);
      return {};
    }
    const rocketmq::Message& message = found.message;
    bool has_key = false;
    const auto compare = [&](std::string_view key) {
      has_key |= rocketmq::index_key_hash(message.topic, key) == entry.key_hash;
    };
    rocketmq::for_each_key(message.properties, compare);
    // RocketMQ 5.5 finds messages by their tag, too: the text it hashes is topic#T#tag.
    if (const auto tag = rocketmq::find_property(message.properties, rocketmq::property::tags)) {
      compare("T#" + std::string(*tag));
    }
    if (!has_key) report_.damage(at, where + "of the commit log has a record without that key");
    return {};
  }

  // The slots against the entries: each used one begins the chain of all entries with its hash.
  Result<void> check_slots() {
    std::vector<std::int32_t> newest(static_cast<std::size_t>(slots_));
    POLYLOG_TRY(for_each_entry(
        [&](std::int32_t number, std::uint64_t at, const IndexEntry& entry) -> Result<void> {
          if (entry.key_hash < 0) return {};
          auto& slot =
              newest[static_cast<std::size_t>(rocketmq::index_slot_of(entry.key_hash, slots_))];
          if (entry.previous != slot && entry.previous < number && entry.previous >= 0) {
            report_.damage(at, "the chain leads past the entry before, " + std::to_string(slot));
          }
          slot = number;
          return {};
        }));
    std::vector<std::uint8_t> chunk(1 << 16);
    std::int64_t used = 0;
    for (std::int32_t first = 0; first < slots_;) {
      POLYLOG_ASSIGN(got, file_.file->read(rocketmq::index_slot_at(first), chunk));
      const auto count =
          std::min(static_cast<std::int32_t>(got / rocketmq::index_slot_bytes), slots_ - first);
      if (count == 0) break;
      for (std::int32_t i = 0; i < count; ++i) {
        const auto value = load_big<std::int32_t>(&chunk[static_cast<std::size_t>(i) * 4]);
        if (value != 0) ++used;
        if (value == newest[static_cast<std::size_t>(first + i)]) continue;
        report_.damage(rocketmq::index_slot_at(first + i),
                       "slot " + std::to_string(first + i) + " leads to entry " +
                           std::to_string(value) + ", not to the newest, " +
                           std::to_string(newest[static_cast<std::size_t>(first + i)]));
      }
      first += count;
    }
    if (used != header_.slots_used) {
      report_.damage(0, "the header counts " + std::to_string(header_.slots_used) +
                            " used slots, and there are " + std::to_string(used));
    }
    return {};
  }

  const DumpFile& file_;
  StoreLog* const log_;
  const bool deep_;
  DumpReport& report_;
  Progress progress_;
  std::int32_t slots_ = 0;
  IndexHeader header_;
  std::int64_t last_physical_ = 0;
};

}  // namespace

Result<void> dump_key_index(const DumpFile& file, StoreLog* log, const DumpOptions& options,
                            DumpReport& report) {
  report.begin_file(file.path, "key_index", {{"bytes", static_cast<std::int64_t>(file.size)}});
  return KeyIndexDump(file, log, options, report).run();
}

}  // namespace polylog::cli
