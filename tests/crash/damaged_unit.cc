#include "damaged_unit.h"

#include "format/kafka/names.h"
#include "format/kafka/record_batch.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/names.h"
#include "format/segment/frame.h"
#include "fs/file_system.h"
#include "storage/filelog/block_sums.h"
#include "storage/segment/store.h"

namespace polylog::crash {
namespace {

struct Frame {
  std::uint64_t size = 0;  // 0: none begins here
  OffsetRange offsets;
};

// The first `head_bytes` of a frame tell how long it is and which offsets it has.
template <typename FrameAt>
std::optional<OffsetRange> unit_of_rolled(ByteView file, std::uint64_t position,
                                          std::uint64_t head_bytes, FrameAt&& frame_at) {
  std::optional<OffsetRange> found;
  std::uint64_t until = 0;  // frames that begin before it go, too
  for (std::uint64_t at = 0; at < file.size();) {
    const Frame frame = frame_at(file.subspan(static_cast<std::size_t>(at)));
    if (frame.size == 0) break;
    if (found && at >= until) break;
    if (found) found->end = frame.offsets.end;
    if (!found && position < at + frame.size) {
      found = frame.offsets;
      constexpr std::uint64_t block = storage::BlockSums::block_bytes;
      until = position < at + head_bytes ? (at / block + 1) * block : at;
    }
    at += frame.size;
  }
  return found;
}

std::string directory_name(const std::string& path) {
  const std::string directory = fs::parent_of(path);
  return directory.substr(directory.find_last_of('/') + 1);
}

}  // namespace

std::optional<DamagedUnit> unit_of_kafka_log(ByteView file, const std::string& path,
                                             std::uint64_t position) {
  constexpr std::uint64_t head_bytes = format::kafka::header_bytes;
  const auto offsets = unit_of_rolled(file, position, head_bytes, [](ByteView rest) {
    const auto head = format::kafka::next_frame(rest);
    if (head.state != format::kafka::FrameState::complete) return Frame();
    return Frame{head.size, {head.first(), head.last() + 1}};
  });
  const auto partition = format::kafka::parse_partition_directory(directory_name(path));
  if (!offsets || !partition) return std::nullopt;
  return DamagedUnit{partition->id, *offsets};
}

std::optional<DamagedUnit> unit_of_segment(ByteView file, const std::string& path,
                                           std::uint64_t position) {
  constexpr std::uint64_t head_bytes = format::segment::frame_head_bytes;
  const auto offsets = unit_of_rolled(file, position, head_bytes, [](ByteView rest) {
    const auto head = format::segment::next_frame(rest, rest.size());
    if (head.state != format::segment::FrameState::complete) return Frame();
    return Frame{head.size, {head.offset, head.offset + 1}};
  });
  const auto partition = storage::segment::parse_shard_name(directory_name(path));
  if (!offsets || !partition) return std::nullopt;
  return DamagedUnit{*partition, *offsets};
}

std::optional<DamagedUnit> unit_of_commit_log(ByteView file, const std::string&,
                                              std::uint64_t position) {
  for (std::uint64_t at = 0; at < file.size();) {
    const ByteView rest = file.subspan(static_cast<std::size_t>(at));
    const auto head = format::rocketmq::next_frame(rest, rest.size());
    if (head.state != format::rocketmq::FrameState::complete) break;
    if (position < at + head.size) {
      const auto message = format::rocketmq::parse(rest.first(static_cast<std::size_t>(head.size)));
      if (!message) break;
      const Offset offset(message->queue_offset);
      return DamagedUnit{{format::rocketmq::from_stored_topic(message->topic), message->queue_id},
                         {offset, offset + 1}};
    }
    at += head.size;
  }
  return std::nullopt;
}

}  // namespace polylog::crash
