#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "bytes/slice.h"
#include "format/rocketmq/fields.h"
#include "format/rocketmq/properties.h"

// RocketMQ's message record (RocketMQ store format, "Commit log", "Message record"): what commit
// log files hold, back to back, big-endian. Byte table: docs/formats/rocketmq-commitlog.md.
namespace polylog::format::rocketmq {

inline constexpr std::uint32_t magic_v1 = 0xdaa320a7;     // topic length in one byte
inline constexpr std::uint32_t magic_v2 = 0xdaa320ab;     // topic length in two
inline constexpr std::uint32_t magic_blank = 0xcbd43194;  // the rest of the file is empty

inline constexpr std::size_t blank_bytes = 8;  // always left at a file's end for the blank record
inline constexpr std::size_t fixed_bytes_min = 91;  // v1, both hosts IPv4, everything empty

// What a message may have at most. The record's own limit follows from them.
inline constexpr std::size_t body_bytes_max_default = 4'194'304;  // maxMessageSize
inline constexpr std::size_t properties_bytes_max = 32'767;
inline constexpr std::size_t topic_bytes_max_v1 = 127;
inline constexpr std::size_t topic_bytes_max = 255;            // %RETRY% names only
inline constexpr std::size_t record_extra_bytes_max = 65'536;  // record <= maxMessageSize + this

// Up to the hosts the places are fixed; behind them they move by 12 for each IPv6 host.
namespace message_at {
inline constexpr std::size_t total_size = 0;
inline constexpr std::size_t magic = 4;
inline constexpr std::size_t body_crc = 8;
inline constexpr std::size_t queue_id = 12;
inline constexpr std::size_t flag = 16;
inline constexpr std::size_t queue_offset = 20;
inline constexpr std::size_t physical_offset = 28;
inline constexpr std::size_t sys_flag = 36;
inline constexpr std::size_t born_timestamp = 40;
inline constexpr std::size_t born_host = 48;
}  // namespace message_at
// The fixed fields, placed as with two IPv4 hosts. The body follows.
inline constexpr std::array<Field, 16> message_fields{{
    {"totalSize", message_at::total_size, 4},
    {"magic", message_at::magic, 4},
    {"bodyCrc", message_at::body_crc, 4},
    {"queueId", message_at::queue_id, 4},
    {"flag", message_at::flag, 4},
    {"queueOffset", message_at::queue_offset, 8},
    {"physicalOffset", message_at::physical_offset, 8},
    {"sysFlag", message_at::sys_flag, 4},
    {"bornTimestamp", message_at::born_timestamp, 8},
    {"bornHost", message_at::born_host, 8},
    {"storeTimestamp", 56, 8},
    {"storeHost", 64, 8},
    {"reconsumeTimes", 72, 4},
    {"preparedTransactionOffset", 76, 8},
    {"bodyLength", 84, 4},
    {"body", 88, 0},
}};
static_assert(contiguous(message_fields, 88));

namespace sys_flag {
inline constexpr std::int32_t compressed = 0x1;
inline constexpr std::int32_t several_tags = 0x2;
inline constexpr std::int32_t transaction_mask = 0xc;
inline constexpr std::int32_t transaction_prepared = 0x4;
inline constexpr std::int32_t transaction_commit = 0x8;
inline constexpr std::int32_t transaction_rollback = 0xc;
inline constexpr std::int32_t born_host_v6 = 0x10;
inline constexpr std::int32_t store_host_v6 = 0x20;
inline constexpr std::int32_t unwrap = 0x40;  // the client must unwrap an inner batch
inline constexpr std::int32_t inner_batch = 0x80;
inline constexpr std::int32_t compression_mask = 0x700;  // 0 zlib (old), 1 LZ4, 2 zstd, 3 zlib
}  // namespace sys_flag

// Where a record came from, or was stored.
struct Host {
  std::array<std::uint8_t, 16> address{};  // the first 4 for IPv4
  bool v6 = false;
  std::int32_t port = 0;
  bool operator==(const Host&) const = default;
  std::size_t bytes() const { return v6 ? 20 : 8; }
};

// "a.b.c.d:port" or "[v6]:port". invalid: anything else.
Result<Host> parse_host(std::string_view text);

// One record's fields. The views point into the bytes it was parsed from, or that it is to be
// encoded from.
struct Message {
  std::uint32_t magic = magic_v1;
  std::uint32_t body_crc = 0;  // as stored; encode() computes it
  std::int32_t queue_id = 0;
  std::int32_t flag = 0;
  std::int64_t queue_offset = 0;
  std::int64_t physical_offset = 0;
  std::int32_t sys_flag = 0;
  std::int64_t born_timestamp = 0;  // ms
  Host born_host;
  std::int64_t store_timestamp = 0;  // ms
  Host store_host;
  std::int32_t reconsume_times = 0;
  std::int64_t prepared_transaction_offset = 0;
  ByteView body;
  std::string_view topic;
  std::string_view properties;  // the text; see properties.h

  std::size_t size() const;  // TOTALSIZE
  bool v2() const { return magic == magic_v2 || topic.size() > topic_bytes_max_v1; }
};

// Appends the record to `out`. Sets the host bits of sys_flag from the hosts, the magic to v2 when
// the topic needs it, the CRC from the body; everything else as given. too_large: topic over 255
// bytes, properties over 32,767, or the record over 2^31-1; invalid: an empty topic, a queue id
// below 0. Limits that depend on settings (maxMessageSize) are the caller's.
Result<void> encode(const Message& message, std::vector<std::uint8_t>& out);

// Parses one whole record and checks its structure as recovery does: the lengths add up to
// TOTALSIZE exactly, the magic is v1 or v2, no length, queue id, queue or physical offset is
// negative, the topic is not empty. Neither the body's CRC nor the physical offset is compared.
// corrupt otherwise.
Result<Message> parse(ByteView record);

// CRC-32 (zlib's polynomial) & 0x7fffffff of the stored body; 0 for an empty one.
std::uint32_t body_crc(ByteView body);
inline bool crc_matches(const Message& message) {
  return body_crc(message.body) == message.body_crc;
}

// What the store assigns at append: patches a parsed or encoded record in place.
struct Placement {
  std::int64_t queue_offset = 0;
  std::int64_t physical_offset = 0;
  std::int64_t store_timestamp = 0;
};
// REQUIRES: `record` is a whole, structurally sound record.
void patch_placement(MutableBytes record, const Placement& placement);

// The end-of-file record: int `remaining`, int magic_blank.
std::array<std::uint8_t, blank_bytes> blank_record(std::int32_t remaining);

// What begins at a place of a commit log file.
enum class FrameState {
  complete,  // a structurally possible size and a message magic; `size` is TOTALSIZE
  blank,     // the end-of-file record: go on with the next file
  zeros,     // size 0 and magic 0: never written
  torn,      // the file (or window) ends inside the record it announces; `size` 0 = unknown
  corrupt,   // anything else
};
struct FrameHead {
  FrameState state = FrameState::corrupt;
  std::uint64_t size = 0;  // complete, torn: TOTALSIZE; blank: what the record says remains, which
                           // is not compared with `remaining`
};
// Judges the first 8 bytes; `remaining` is what is left of the file from here.
// REQUIRES: head.size() >= min(remaining, 8).
FrameHead next_frame(ByteView head, std::uint64_t remaining);

// Calls f(ByteView record, const Message&) -> Result<void> for each whole record in `bytes`.
// corrupt: what is not a sequence of whole records.
template <typename F>
Result<void> for_each_message(ByteView bytes, F&& f) {
  while (!bytes.empty()) {
    const FrameHead head = next_frame(bytes, bytes.size());
    if (head.state != FrameState::complete) return fail(Errc::corrupt, "not a whole record");
    const ByteView record = bytes.first(static_cast<std::size_t>(head.size));
    POLYLOG_ASSIGN(message, parse(record));
    POLYLOG_TRY(f(record, message));
    bytes = bytes.subspan(record.size());
  }
  return {};
}

// Upper-case hex of store host and physical offset: 32 characters, 56 with IPv6.
std::string offset_message_id(const Host& store_host, std::int64_t physical_offset);
struct OffsetMessageId {
  Host store_host;
  std::int64_t physical_offset = 0;
};
Result<OffsetMessageId> parse_offset_message_id(std::string_view text);  // invalid

}  // namespace polylog::format::rocketmq
