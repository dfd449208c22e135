#include "cli/dump_target.h"

#include <algorithm>
#include <array>
#include <optional>

#include "cli/dump_store_log.h"
#include "cli/text.h"
#include "format/kafka/names.h"
#include "format/rocketmq/config_json.h"
#include "format/rocketmq/consume_queue.h"
#include "format/rocketmq/index_file.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/names.h"

namespace polylog::cli {
namespace {

namespace rocketmq = format::rocketmq;
using format::kafka::SegmentFile;

struct Named {
  DumpKind kind = DumpKind::log;
  Offset base_offset{0};
};

DumpKind kind_of(SegmentFile file) {
  switch (file) {
    case SegmentFile::log: return DumpKind::log;
    case SegmentFile::index: return DumpKind::offset_index;
    case SegmentFile::timeindex: return DumpKind::time_index;
    case SegmentFile::txnindex: return DumpKind::transaction_index;
    case SegmentFile::snapshot: return DumpKind::snapshot;
  }
  return DumpKind::log;
}

// Nothing: no name of a Kafka log directory. invalid: nearly one.
Result<std::optional<Named>> kafka_file(std::string_view name) {
  namespace names = format::kafka;
  if (name == names::epoch_checkpoint_file) return Named{DumpKind::epoch_checkpoint};
  if (name == names::partition_metadata_file) return Named{DumpKind::partition_metadata};
  if (name == names::meta_properties_file) return Named{DumpKind::meta_properties};
  if (name == names::clean_shutdown_file) return Named{DumpKind::clean_shutdown};
  for (const std::string_view known :
       {names::recovery_point_checkpoint_file, names::high_watermark_checkpoint_file,
        names::log_start_checkpoint_file, names::cleaner_checkpoint_file}) {
    if (name == known) return Named{DumpKind::offset_checkpoint};
  }
  POLYLOG_ASSIGN(segment, names::parse_segment_file_name(name));
  if (!segment) return std::optional<Named>();
  return Named{kind_of(segment->file), segment->offset};
}

// A store's file whose name alone tells what it is.
std::optional<Named> store_file(std::string_view name) {
  if (name == rocketmq::checkpoint_file) return Named{DumpKind::store_checkpoint};
  if (name == rocketmq::abort_file) return Named{DumpKind::abort_mark};
  if (rocketmq::is_index_file_name(name)) return Named{DumpKind::key_index};
  if (name.ends_with(rocketmq::backup_suffix)) name.remove_suffix(rocketmq::backup_suffix.size());
  if (name == rocketmq::topics_file) return Named{DumpKind::topics};
  if (name == rocketmq::subscription_groups_file) return Named{DumpKind::subscription_groups};
  if (name == rocketmq::consumer_offsets_file) return Named{DumpKind::consumer_offsets};
  if (name == rocketmq::delay_offsets_file) return Named{DumpKind::delay_offsets};
  return std::nullopt;
}

// The number of "7.msg".
std::optional<std::int64_t> segment_number(std::string_view name) {
  constexpr std::string_view suffix = ".msg";
  if (!name.ends_with(suffix)) return std::nullopt;
  name.remove_suffix(suffix.size());
  const bool digits = !name.empty() && std::all_of(name.begin(), name.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  return digits ? parse_integer(name) : std::nullopt;
}

// A file that stood somewhere else in a store, or was copied out of it.
Result<std::optional<DumpKind>> kind_by_content(fs::FileSystem& fs, const std::string& path) {
  POLYLOG_ASSIGN(file, fs.open(path, fs::OpenMode::read));
  POLYLOG_ASSIGN(info, file->info());
  std::array<std::uint8_t, rocketmq::queue_entry_bytes> head{};
  POLYLOG_ASSIGN(got, file->read(0, head));
  if (got >= rocketmq::blank_bytes) {
    const auto frame = rocketmq::next_frame(ByteView(head).first(got), info.size);
    if (frame.state != rocketmq::FrameState::corrupt &&
        frame.state != rocketmq::FrameState::zeros) {
      return DumpKind::commit_log;
    }
  }
  if (got == head.size() && info.size % rocketmq::queue_entry_bytes == 0 &&
      rocketmq::decode_entry(head.data()).valid()) {
    return DumpKind::consume_queue;
  }
  return std::optional<DumpKind>();
}

// A file of a mapped file queue: 20 digits, and where it lies decides.
Result<std::optional<Named>> positioned_file(fs::FileSystem& fs, const std::string& path,
                                             std::string_view name) {
  const auto position = rocketmq::parse_file_name(name);
  if (!position) return std::optional<Named>();
  if (path_part(path, 1) == rocketmq::commit_log_directory) {
    return Named{DumpKind::commit_log, Offset(*position)};
  }
  const std::string_view store_directory = path_part(path, 3);
  if (store_directory == rocketmq::consume_queue_directory) {
    return Named{DumpKind::consume_queue, Offset(*position)};
  }
  if (store_directory == rocketmq::consume_queue_ext_directory) {
    return Named{DumpKind::consume_queue_ext, Offset(*position)};
  }
  POLYLOG_ASSIGN(kind, kind_by_content(fs, path));
  if (!kind) return std::optional<Named>();
  return Named{*kind, Offset(*position)};
}

Result<std::optional<Named>> classify(fs::FileSystem& fs, const std::string& path) {
  const std::string_view name = path_part(path, 0);
  if (name.ends_with(".sidecar")) return Named{DumpKind::sidecar};
  if (name.ends_with(".journal")) return Named{DumpKind::journal};
  if (const auto number = segment_number(name)) return Named{DumpKind::segment, Offset(*number)};
  if (const auto named = store_file(name)) return named;
  POLYLOG_ASSIGN(kafka, kafka_file(name));
  if (kafka) return kafka;
  return positioned_file(fs, path, name);
}

Result<std::vector<DumpTarget>> targets_in(fs::FileSystem& fs, const std::string& directory) {
  POLYLOG_ASSIGN(names, fs.list(directory));
  std::vector<DumpTarget> targets, segments;
  for (const std::string& name : names) {
    const std::string path = fs::join(directory, name);
    POLYLOG_ASSIGN(info, fs.info(path));
    if (info.directory) continue;
    const auto named = classify(fs, path);
    if (!named || !*named) continue;
    const bool segment = (*named)->kind == DumpKind::segment;
    (segment ? segments : targets).push_back({path, (*named)->kind, (*named)->base_offset});
  }
  // Numbers of .msg files have no zeros in front: by name 10 would come before 2.
  std::sort(segments.begin(), segments.end(),
            [](const DumpTarget& a, const DumpTarget& b) { return a.base_offset < b.base_offset; });
  if (targets.empty() && segments.empty()) {
    return fail(Errc::invalid, directory +
                                   " holds no file of a Kafka log directory, a RocketMQ store or a "
                                   "RobustMQ shard; name a directory with such files, like "
                                   "data/kafka/topic-0, data/rocketmq/commitlog or "
                                   "data/segment/topic-0");
  }
  targets.insert(targets.end(), segments.begin(), segments.end());
  return targets;
}

}  // namespace

Result<std::vector<DumpTarget>> find_targets(fs::FileSystem& fs,
                                             const std::vector<std::string>& paths) {
  std::vector<DumpTarget> targets;
  for (std::string path : paths) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    POLYLOG_ASSIGN(info, fs.info(path));
    if (info.directory) {
      POLYLOG_ASSIGN(found, targets_in(fs, path));
      targets.insert(targets.end(), found.begin(), found.end());
      continue;
    }
    const auto named = classify(fs, path);
    if (!named) return fail(Errc::invalid, path + ": " + named.error().context);
    if (!*named) {
      return fail(Errc::invalid, path +
                                     " has no name of a Kafka log directory's, a RocketMQ "
                                     "store's or a RobustMQ shard's file; `polylog dump --help` "
                                     "lists them");
    }
    targets.push_back({path, (*named)->kind, (*named)->base_offset});
  }
  return targets;
}

}  // namespace polylog::cli
