#include "shared_log_check.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/delay_levels.h"
#include "format/rocketmq/index_file.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/names.h"
#include "format/rocketmq/property_crc.h"
#include "storage/filelog/sidecar.h"
#include "storage/rocketmq/store.h"

namespace polylog::crash {
namespace {

namespace stored = format::rocketmq;

constexpr std::size_t file_bytes_max = 1 << 20;

class SharedLogCheck {
 public:
  SharedLogCheck(fs::FileSystem& disk, const storage::rocketmq::RocketmqStore& store,
                 const storage::StoreConfig& config)
      : disk_(disk), store_(store), config_(config) {}

  std::string run() {
    std::string wrong = walk_log();
    if (wrong.empty()) wrong = sort_frames();
    for (const auto& [id, queue] : queues_) {
      if (wrong.empty()) wrong = check_entries(*queue);
    }
    // Looking up flushes what waits in memory: the files are complete then.
    if (wrong.empty()) wrong = check_keys();
    if (wrong.empty()) wrong = check_queue_files();
    return wrong;
  }

 private:
  struct Frame {
    std::string topic;
    std::int32_t queue_id;
    std::int64_t offset;
    stored::QueueEntry entry;
    std::vector<std::string> keys;
  };
  using Queue = storage::rocketmq::Queue;
  using Frames = std::map<std::int64_t, const Frame*>;  // by offset

  std::string path(std::string_view name) const { return fs::join(config_.directory, name); }

  std::vector<std::string> names_in(const std::string& directory) const {
    auto names = disk_.list(directory);
    return names ? *std::move(names) : std::vector<std::string>();
  }

  std::string walk_log() {
    const std::string directory = path(stored::commit_log_directory);
    const std::int64_t end = store_.shared_log()->end().value();
    for (const std::string& name : names_in(directory)) {
      const std::int64_t base = *stored::parse_file_name(name);
      const auto bytes = fs::read_file(disk_, fs::join(directory, name), file_bytes_max);
      if (!bytes) return bytes.error().to_string();
      std::string wrong = walk_file(*bytes, base, end);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  std::string walk_file(ByteView bytes, std::int64_t base, std::int64_t end) {
    std::size_t at = 0;
    for (;;) {
      const std::int64_t position = base + static_cast<std::int64_t>(at);
      const ByteView rest = bytes.subspan(at);
      const stored::FrameHead head = stored::next_frame(rest, rest.size());
      if (position >= end) {
        const bool nothing =
            std::all_of(rest.begin(), rest.end(), [](auto byte) { return byte == 0; });
        return nothing ? std::string() : "something stands behind the log end " + where(position);
      }
      if (head.state == stored::FrameState::blank) return {};
      if (head.state != stored::FrameState::complete) return "no record " + where(position);
      const ByteView record = rest.first(static_cast<std::size_t>(head.size));
      const auto message = stored::parse(record);
      if (!message || message->physical_offset != position ||
          stored::check_property_crc(record) != stored::PropertyCrc::good) {
        return "a damaged record " + where(position);
      }
      add(*message, record.size());
      at += record.size();
    }
  }

  static std::string where(std::int64_t position) { return "at " + std::to_string(position); }

  void add(const stored::Message& message, std::size_t bytes) {
    Frame frame;
    frame.topic = message.topic;
    frame.queue_id = message.queue_id;
    frame.offset = message.queue_offset;
    frame.entry = {message.physical_offset, static_cast<std::int32_t>(bytes),
                   stored::entry_tags_code(message, stored::DelayLevels::standard())};
    stored::for_each_key(message.properties,
                         [&](std::string_view key) { frame.keys.emplace_back(key); });
    frames_.push_back(std::move(frame));
  }

  // Whose frames they are: only the sidecar says where a topic begins in the log.
  std::string sort_frames() {
    const auto bytes = fs::read_file(disk_, fs::join(config_.sidecar_directory, "rocketmq.sidecar"),
                                     file_bytes_max);
    if (!bytes) return bytes.error().to_string();
    storage::SidecarState state;
    storage::decode_sidecar(*bytes, state);
    for (const auto& queue : store_.shared_log()->queues()) queues_[queue->id()] = queue.get();
    for (const Frame& frame : frames_) {
      const TopicPartition id{stored::from_stored_topic(frame.topic), frame.queue_id};
      const auto note = state.queues.find(id);
      if (note == state.queues.end()) return "a record of a queue that nobody made";
      if (frame.entry.physical_offset < note->second.birth) continue;  // of an earlier topic
      if (!queues_.contains(id)) return "a record of a removed queue behind its removal";
      const auto [place, added] = live_[id].try_emplace(frame.offset, &frame);
      if (!added) return "offset " + std::to_string(frame.offset) + " is there twice";
    }
    return {};
  }

  const Frames& live(const Queue& queue) { return live_[queue.id()]; }

  static std::string name_of(const Queue& queue) {
    return queue.id().topic + "-" + std::to_string(queue.id().partition) + ": ";
  }

  std::string check_entries(const Queue& queue) {
    const OffsetRange range = queue.offsets();
    const Frames& frames = live(queue);
    if (!frames.empty() && frames.rbegin()->first >= range.end.value()) {
      return name_of(queue) + "a record without an entry, offset " +
             std::to_string(frames.rbegin()->first);
    }
    const auto count = static_cast<std::size_t>(range.end - range.start);
    const auto entries = queue.entries(range.start.value(), count, true);
    if (!entries) return name_of(queue) + entries.error().to_string();
    if (entries->size() != count) return name_of(queue) + "entries are missing";
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t offset = range.start.value() + static_cast<std::int64_t>(i);
      const auto frame = frames.find(offset);
      if (frame == frames.end()) {
        return name_of(queue) + "an entry without a record, offset " + std::to_string(offset);
      }
      if ((*entries)[i] != frame->second->entry) {
        return name_of(queue) + "the entry of another record at offset " + std::to_string(offset);
      }
    }
    return {};
  }

  // What another program would read: no entry behind the end, no directory of a removed queue.
  std::string check_queue_files() {
    const std::string root = path(stored::consume_queue_directory);
    for (const std::string& topic : names_in(root)) {
      const std::string folder = fs::join(root, topic);
      for (const std::string& name : names_in(folder)) {
        const auto queue = queues_.find({stored::from_stored_topic(topic), std::stoi(name)});
        if (queue == queues_.end()) return fs::join(folder, name) + " belongs to no queue";
        std::string wrong = check_files_of(*queue->second, fs::join(folder, name));
        if (!wrong.empty()) return wrong;
      }
    }
    return {};
  }

  std::string check_files_of(const Queue& queue, const std::string& folder) {
    const OffsetRange range = queue.offsets();
    std::int64_t in_files = 0;
    for (const std::string& name : names_in(folder)) {
      const auto bytes = fs::read_file(disk_, fs::join(folder, name), file_bytes_max);
      if (!bytes) return bytes.error().to_string();
      if (bytes->size() != static_cast<std::size_t>(config_.shared.queue_file_bytes)) {
        return fs::join(folder, name) + " has another length";
      }
      std::int64_t offset =
          *stored::parse_file_name(name) / static_cast<std::int64_t>(stored::queue_entry_bytes);
      for (std::size_t at = 0; at < bytes->size(); at += stored::queue_entry_bytes, ++offset) {
        const stored::QueueEntry entry = stored::decode_entry(bytes->data() + at);
        if (offset >= range.end.value()) {
          if (entry != stored::QueueEntry()) return name_of(queue) + "an entry behind its end";
        } else if (offset >= range.start.value()) {
          ++in_files;
          if (entry != live(queue).at(offset)->entry) return name_of(queue) + "a wrong entry";
        }
      }
    }
    return in_files == range.end - range.start ? std::string()
                                               : name_of(queue) + "its files lack entries";
  }

  std::string check_keys() {
    std::set<std::pair<std::string, std::string>> asked;
    for (const Frame& frame : frames_) {
      const std::string topic = stored::from_stored_topic(frame.topic);
      for (const std::string& key : frame.keys) asked.emplace(topic, key);
      asked.emplace(topic, "nobody's");
    }
    for (const auto& [topic, key] : asked) {
      std::string wrong = check_key(topic, key);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  std::string check_key(const std::string& topic, const std::string& key) {
    std::vector<std::int64_t> expected;
    for (const auto& [id, frames] : live_) {
      if (id.topic != topic) continue;
      const std::int64_t start = queues_.at(id)->offsets().start.value();
      for (const auto& [offset, frame] : frames) {
        const bool named = std::count(frame->keys.begin(), frame->keys.end(), key) > 0;
        if (offset >= start && named) expected.push_back(frame->entry.physical_offset);
      }
    }
    std::sort(expected.rbegin(), expected.rend());
    storage::KeyIndex::KeyQuery query;
    query.topic = topic;
    query.key = key;
    query.records_max = expected.size() + 10;
    const auto found = store_.key_index()->find_by_key(query);
    if (!found) return "looking up " + key + ": " + found.error().to_string();
    std::vector<std::int64_t> positions;
    for (const auto& match : *found) {
      const auto message = stored::parse(match.record.bytes.view());
      if (!message) return "looking up " + key + ": " + message.error().to_string();
      positions.push_back(message->physical_offset);
    }
    if (positions == expected) return {};
    return "looking up " + key + " finds " + listed(positions) + "instead of " + listed(expected);
  }

  static std::string listed(const std::vector<std::int64_t>& positions) {
    std::string text;
    for (const std::int64_t position : positions) text += std::to_string(position) + " ";
    return text.empty() ? "nothing " : text;
  }

  fs::FileSystem& disk_;
  const storage::rocketmq::RocketmqStore& store_;
  const storage::StoreConfig& config_;
  std::vector<Frame> frames_;
  std::map<TopicPartition, const Queue*> queues_;
  std::map<TopicPartition, Frames> live_;
};

}  // namespace

std::string check_shared_log(fs::FileSystem& disk, storage::Store& store,
                             const storage::StoreConfig& config) {
  return SharedLogCheck(disk, dynamic_cast<storage::rocketmq::RocketmqStore&>(store), config).run();
}

}  // namespace polylog::crash
