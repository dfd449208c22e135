#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/batch.h"

// The property text of a message (RocketMQ store format, "Properties"): name 0x01 value 0x02, as
// often as needed; the last 0x02 may be missing.
namespace polylog::format::rocketmq {

namespace property {
inline constexpr std::string_view keys = "KEYS";
inline constexpr std::string_view tags = "TAGS";
inline constexpr std::string_view unique_key = "UNIQ_KEY";
inline constexpr std::string_view delay = "DELAY";
inline constexpr std::string_view real_topic = "REAL_TOPIC";
inline constexpr std::string_view real_queue_id = "REAL_QID";
inline constexpr std::string_view transaction_prepared = "TRAN_MSG";
inline constexpr std::string_view transaction_id = "__transactionId__";
inline constexpr std::string_view producer_group = "PGROUP";
inline constexpr std::string_view retry_topic = "RETRY_TOPIC";
inline constexpr std::string_view origin_message_id = "ORIGIN_MESSAGE_ID";
inline constexpr std::string_view crc32 = "__CRC32#";
inline constexpr std::string_view sharding_key = "__SHARDINGKEY";
// polylog's own (docs/formats/record-mapping.md); ordinary properties for everybody else.
inline constexpr std::string_view kafka_key = "__KKEY";
inline constexpr std::string_view kafka_headers = "__KHDRS";
inline constexpr std::string_view kafka_producer = "__KPS";
inline constexpr std::string_view null_value = "__NULL";
}  // namespace property

// True for the names users can't set, polylog's own included, and for those that RocketMQ removes
// before it stores a message (__RMQ.TRANSIENT.*).
bool is_reserved(std::string_view name);

// Calls f(std::string_view name, std::string_view value) -> bool for each property that counts
// (both parts non-empty), in order; false stops.
template <typename F>
void for_each_property(std::string_view text, F&& f) {
  while (!text.empty()) {
    const std::size_t end = text.find('\x02');
    const std::string_view piece = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::size_t split = piece.find('\x01');
    if (split == std::string_view::npos || split == 0 || split + 1 == piece.size()) continue;
    if (!f(piece.substr(0, split), piece.substr(split + 1))) return;
  }
}

// The last value of that name counts, as in the original's map.
std::optional<std::string_view> find_property(std::string_view text, std::string_view name);

// Appends one property in the trailing form, behind a separator if `text` lacks its last one.
// invalid: an empty part or a separator inside.
Result<void> add_property(std::string& text, std::string_view name, std::string_view value);

// Which part of which Kafka batch a message is: what idempotence needs after a crash.
// Value of __KPS: five decimal numbers joined by ':', producer id, epoch, base sequence of the
// batch, index of this record in it, number of records in it.
struct ProducerPart {
  ProducerId id = no_producer;
  std::int16_t epoch = -1;
  std::int32_t base_sequence = -1;
  std::int32_t index = 0;
  std::int32_t count = 1;
  bool operator==(const ProducerPart&) const = default;
};
std::string to_text(const ProducerPart& part);
Result<ProducerPart> parse_producer_part(std::string_view text);  // corrupt

// h = 31 h + c over UTF-16 code units, wrapping: Java's String.hashCode of UTF-8 text. What is not
// UTF-8 counts as U+FFFD, one for each piece that Java's decoder replaces.
std::int32_t java_hash(std::string_view utf8);
// Continues a hash: java_hash_extend(java_hash(a), b) is that of the two strings joined.
std::int32_t java_hash_extend(std::int32_t hash, std::string_view utf8);

// The tags code of a consume queue entry: 0 without a tag, else the sign-extended hash.
inline std::int64_t tags_code(std::string_view tag) {
  return tag.empty() ? 0 : static_cast<std::int64_t>(java_hash(tag));
}

}  // namespace polylog::format::rocketmq
