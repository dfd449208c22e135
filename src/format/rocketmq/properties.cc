#include "format/rocketmq/properties.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "bytes/slice.h"

namespace polylog::format::rocketmq {
namespace {

constexpr char name_end = '\x01';
constexpr char property_end = '\x02';
constexpr std::string_view separators = "\x01\x02";

constexpr std::string_view transient_prefix = "__RMQ.TRANSIENT.";

// In the order of their bytes, for the binary search.
constexpr std::array<std::string_view, 63> reserved_names{"1ST_POP_TIME",
                                                          "ARRIVE_TIME",
                                                          "BORN_TIMESTAMP",
                                                          "BUYER_ID",
                                                          "CHECK_IMMUNITY_TIME_IN_SECONDS",
                                                          "CLUSTER",
                                                          "CONSUME_START_TIME",
                                                          "CORRECTION_FLAG",
                                                          "CORRELATION_ID",
                                                          "DELAY",
                                                          "DLQ_ORIGIN_MESSAGE_ID",
                                                          "DLQ_ORIGIN_TOPIC",
                                                          "DUP_INFO",
                                                          "EXTEND_UNIQ_INFO",
                                                          "INNER_BASE",
                                                          "INNER_MULTI_DISPATCH",
                                                          "INNER_MULTI_QUEUE_OFFSET",
                                                          "INNER_NUM",
                                                          "INSTANCE_ID",
                                                          "KEYS",
                                                          "MAX_OFFSET",
                                                          "MAX_RECONSUME_TIMES",
                                                          "MIN_OFFSET",
                                                          "MQ2_FLAG",
                                                          "MSG_REGION",
                                                          "MSG_TYPE",
                                                          "ORIGIN_MESSAGE_ID",
                                                          "PGROUP",
                                                          "POP_CK",
                                                          "POP_CK_OFFSET",
                                                          "PUSH_REPLY_TIME",
                                                          "REAL_QID",
                                                          "REAL_TOPIC",
                                                          "RECONSUME_TIME",
                                                          "REPLY_TO_CLIENT",
                                                          "RETRY_TOPIC",
                                                          "TAGS",
                                                          "TIMER_DELAY_LEVEL",
                                                          "TIMER_DELAY_MS",
                                                          "TIMER_DELAY_SEC",
                                                          "TIMER_DELIVER_MS",
                                                          "TIMER_DEL_UNIQKEY",
                                                          "TIMER_DEQUEUE_MS",
                                                          "TIMER_ENQUEUE_MS",
                                                          "TIMER_OUT_MS",
                                                          "TIMER_ROLL_TIMES",
                                                          "TRACE_CONTEXT",
                                                          "TRACE_ON",
                                                          "TRANSACTION_CHECK_TIMES",
                                                          "TRANSFER_FLAG",
                                                          "TRAN_MSG",
                                                          "TRAN_PREPARED_QUEUE_OFFSET",
                                                          "TTL",
                                                          "UNIQ_KEY",
                                                          "WAIT",
                                                          "__BORNHOST",
                                                          "__CRC32#",
                                                          "__KHDRS",
                                                          "__KKEY",
                                                          "__KPS",
                                                          "__NULL",
                                                          "__SHARDINGKEY",
                                                          "__transactionId__"};
static_assert(std::is_sorted(reserved_names.begin(), reserved_names.end()));

// The next UTF-16 code units of UTF-8 text: one, or two for what lies beyond the BMP.
struct Units {
  std::uint16_t first = 0xfffd;
  std::uint16_t second = 0;  // 0 = none
  std::size_t bytes = 1;     // how much text they stand for
};

bool continues(std::uint8_t byte) { return (byte & 0xc0) == 0x80; }

// What Java's decoder makes of a sequence that is not ASCII. Of a malformed one, the longest start
// that could have become a character turns into a single U+FFFD; so does an encoded surrogate.
Units decode_units(const std::uint8_t* at, std::size_t left) {
  const std::uint8_t lead = at[0];
  if (lead < 0xc2 || lead > 0xf4) return {};
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const std::uint8_t second_min = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const std::uint8_t second_max = lead == 0xf4 ? 0x8f : 0xbf;
  if (left < 2 || at[1] < second_min || at[1] > second_max) return {};
  std::uint32_t code = lead & (0x7fU >> size);
  code = code << 6 | (at[1] & 0x3fU);
  Units units;
  for (std::size_t i = 2; i < size; ++i) {
    units.bytes = i;
    if (left <= i || !continues(at[i])) return units;
    code = code << 6 | (at[i] & 0x3fU);
  }
  units.bytes = size;
  if (code >= 0x10000) {
    units.first = static_cast<std::uint16_t>(0xd800 + ((code - 0x10000) >> 10));
    units.second = static_cast<std::uint16_t>(0xdc00 + (code & 0x3ff));
  } else if (code < 0xd800 || code > 0xdfff) {
    units.first = static_cast<std::uint16_t>(code);
  }
  return units;
}

using PartText = std::array<char, 64>;  // five numbers of at most 20 characters: 20+6+11+11+11+4

std::string_view write_part(const ProducerPart& part, PartText& room) {
  char* at = room.data();
  char* const end = room.data() + room.size();
  at = std::to_chars(at, end, part.id.value()).ptr;
  for (const std::int32_t number :
       {static_cast<std::int32_t>(part.epoch), part.base_sequence, part.index, part.count}) {
    *at++ = ':';
    at = std::to_chars(at, end, number).ptr;
  }
  return {room.data(), static_cast<std::size_t>(at - room.data())};
}

// Takes one number and, unless it is the last, the ':' behind it.
template <typename T>
bool take_number(std::string_view& text, T& value, bool last) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (last) return text.empty();
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

bool is_reserved(std::string_view name) {
  return name.starts_with(transient_prefix) ||
         std::binary_search(reserved_names.begin(), reserved_names.end(), name);
}

std::optional<std::string_view> find_property(std::string_view text, std::string_view name) {
  if (name.empty() || name.find_first_of(separators) != std::string_view::npos) {
    return std::nullopt;
  }
  // From the back: the first hit is the one that counts.
  while (!text.empty()) {
    const void* const cut = ::memrchr(text.data(), property_end, text.size());
    const std::size_t from =
        cut == nullptr ? 0
                       : static_cast<std::size_t>(static_cast<const char*>(cut) - text.data()) + 1;
    const std::string_view piece = text.substr(from);
    if (piece.size() > name.size() + 1 && piece[name.size()] == name_end &&
        piece.starts_with(name)) {
      return piece.substr(name.size() + 1);
    }
    text = text.substr(0, from == 0 ? 0 : from - 1);
  }
  return std::nullopt;
}

Result<void> add_property(std::string& text, std::string_view name, std::string_view value) {
  if (name.empty() || value.empty()) {
    return fail(Errc::invalid, "a property needs a name and a value");
  }
  if (name.find_first_of(separators) != std::string_view::npos ||
      value.find_first_of(separators) != std::string_view::npos) {
    return fail(Errc::invalid, "a property may not contain the characters U+0001 and U+0002");
  }
  if (!text.empty() && text.back() != property_end) text += property_end;
  text.append(name) += name_end;
  text.append(value) += property_end;
  return {};
}

std::string to_text(const ProducerPart& part) {
  PartText room;
  return std::string(write_part(part, room));
}

Result<ProducerPart> parse_producer_part(std::string_view text) {
  ProducerPart part;
  std::int64_t id = 0;
  std::string_view rest = text;
  PartText room;
  const bool whole = take_number(rest, id, false) && take_number(rest, part.epoch, false) &&
                     take_number(rest, part.base_sequence, false) &&
                     take_number(rest, part.index, false) && take_number(rest, part.count, true);
  part.id = ProducerId(id);
  // Written back it must be the same text: no leading zeros, no "-0".
  if (!whole || write_part(part, room) != text || id < -1 || part.epoch < -1 ||
      part.base_sequence < -1 || part.index < 0 || part.index >= part.count) {
    return fail(Errc::corrupt,
                "property __KPS is not 'producer:epoch:sequence:index:count' in numbers");
  }
  return part;
}

std::int32_t java_hash(std::string_view utf8) { return java_hash_extend(0, utf8); }

std::int32_t java_hash_extend(std::int32_t before, std::string_view utf8) {
  auto hash = static_cast<std::uint32_t>(before);
  const ByteView bytes = as_bytes(utf8);
  for (std::size_t i = 0; i < bytes.size();) {
    if (bytes[i] < 0x80) [[likely]] {
      hash = 31 * hash + bytes[i];
      ++i;
      continue;
    }
    const Units units = decode_units(bytes.data() + i, bytes.size() - i);
    hash = 31 * hash + units.first;
    if (units.second != 0) hash = 31 * hash + units.second;
    i += units.bytes;
  }
  return static_cast<std::int32_t>(hash);
}

}  // namespace polylog::format::rocketmq
