#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "bytes/slice.h"
#include "format/rocketmq/message.h"
#include "storage/rocketmq/commit_log.h"

// Where a commit log file goes on behind bytes that are no record, and whether those are a torn
// tail or bit rot (RocketMQ store format, "Message record", "Record validation used by recovery").
namespace polylog::storage::rocketmq {

// Bytes [at, at + size) as far as the file has them.
Result<std::vector<std::uint8_t>> read_some(const CommitFile& file, std::uint64_t at,
                                            std::uint64_t size);

// The record at byte `at` of a file, if it stands where it says and proves itself. Waits for disk.
Result<std::optional<format::rocketmq::Message>> check_record(const CommitFile& file,
                                                              std::uint64_t at, ByteView record);

// The first byte of one: its magic, and its own position.
bool begins_record(ByteView head, std::int64_t position);
inline constexpr std::size_t record_head_bytes = 36;  // what begins_record() wants

// Whether a record that proves itself, or the blank one, stands at `at`.
Result<bool> goes_on_at(const CommitFile& file, std::uint64_t file_bytes, std::uint64_t at);

// The first place in (after, to) where a record that proves itself or the blank record of the
// file's end stands: where the length of what stands at `after` leads to when that is sound, so
// that nothing inside a damaged body passes for a record; the next that can be found otherwise.
// Up to the file's end it stops at a stretch of nothing but zeros. Waits for disk.
Result<std::optional<std::uint64_t>> next_record(const CommitFile& file, std::uint64_t file_bytes,
                                                 std::uint64_t after, std::uint64_t to);

// Behind the last byte in [from, to) that is not zero, as far as zeros don't go on for long.
Result<std::uint64_t> last_byte_used(const CommitFile& file, std::uint64_t from, std::uint64_t to);

// Zeros were to be written over a record that began with `bytes`, and the first of them are there.
bool being_erased(ByteView bytes, std::int64_t position);

// False: some of `bytes`, which begin at byte `at` of a file, never reached the disk. Files are
// zeros before they are written, and a disk writes whole sectors: a sector of zeros, or zeros at
// the end, is what a torn write leaves. Bit rot leaves neither, as a rule.
bool arrived(ByteView bytes, std::uint64_t at);

// The record as it was written, if `bytes` are it but for one bit: told by the checksum over the
// whole record. Good as evidence of whose it was, never to be served.
std::optional<std::vector<std::uint8_t>> mend_one_bit(ByteView bytes);

// Calls on_record for each record that proves itself in [from, to) of the file, and on_damage for
// what lies between them and is none.
struct Walk {
  std::function<void(const format::rocketmq::Message&, std::size_t bytes)> on_record;
  std::function<void(std::uint64_t from, std::uint64_t to)> on_damage;
};
Result<void> walk(const CommitFile& file, std::uint64_t file_bytes, std::uint64_t from,
                  std::uint64_t to, const Walk& visit);

}  // namespace polylog::storage::rocketmq
