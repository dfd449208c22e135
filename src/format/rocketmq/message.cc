#include "format/rocketmq/message.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/assert.h"
#include "base/crc.h"
#include "bytes/endian.h"

namespace polylog::format::rocketmq {
namespace {

constexpr std::uint32_t crc_mask = 0x7fffffff;  // Java keeps its ints positive
constexpr std::size_t host_v4_bytes = 8;
constexpr std::size_t host_v6_bytes = 20;
constexpr std::size_t record_bytes_max = std::numeric_limits<std::int32_t>::max();

// Puts values down one after the other. The room has been made before.
class Cursor {
 public:
  explicit Cursor(std::uint8_t* at) : at_(at) {}
  template <typename T>
  void big(T value) {
    store_big(at_, value);
    at_ += sizeof(T);
  }
  void bytes(const void* from, std::size_t size) {
    if (size != 0) std::memcpy(at_, from, size);
    at_ += size;
  }
  void host(const Host& host) {
    bytes(host.address.data(), host.v6 ? 16 : 4);
    big(host.port);
  }
  std::uint8_t* at() const { return at_; }

 private:
  std::uint8_t* at_;
};

Host load_host(const std::uint8_t* at, bool v6) {
  Host host;
  host.v6 = v6;
  std::memcpy(host.address.data(), at, v6 ? 16 : 4);
  host.port = load_big<std::int32_t>(at + (v6 ? 16 : 4));
  return host;
}

std::size_t host_bytes(std::int32_t flags, std::int32_t v6_bit) {
  return (flags & v6_bit) != 0 ? host_v6_bytes : host_v4_bytes;
}

tl::unexpected<Error> no_record(const char* why) {
  return fail(Errc::corrupt, std::string("message record: ") + why);
}

// Everything before the body's length, whose place is returned; the caller knows that it is there.
std::size_t load_fixed(const std::uint8_t* at, Message& message) {
  message.body_crc = load_big<std::uint32_t>(at + message_at::body_crc);
  message.queue_id = load_big<std::int32_t>(at + message_at::queue_id);
  message.flag = load_big<std::int32_t>(at + message_at::flag);
  message.queue_offset = load_big<std::int64_t>(at + message_at::queue_offset);
  message.physical_offset = load_big<std::int64_t>(at + message_at::physical_offset);
  message.born_timestamp = load_big<std::int64_t>(at + message_at::born_timestamp);
  std::size_t next = message_at::born_host;
  message.born_host = load_host(at + next, (message.sys_flag & sys_flag::born_host_v6) != 0);
  next += message.born_host.bytes();
  message.store_timestamp = load_big<std::int64_t>(at + next);
  next += 8;
  message.store_host = load_host(at + next, (message.sys_flag & sys_flag::store_host_v6) != 0);
  next += message.store_host.bytes();
  message.reconsume_times = load_big<std::int32_t>(at + next);
  message.prepared_transaction_offset = load_big<std::int64_t>(at + next + 4);
  return next + 12;
}

}  // namespace

std::size_t Message::size() const {
  return fixed_bytes_min - 2 * host_v4_bytes + born_host.bytes() + store_host.bytes() +
         (v2() ? 1 : 0) + body.size() + topic.size() + properties.size();
}

Result<void> encode(const Message& message, std::vector<std::uint8_t>& out) {
  if (message.topic.empty()) return fail(Errc::invalid, "a message needs a topic");
  if (message.queue_id < 0) return fail(Errc::invalid, "negative queue id");
  if (message.topic.size() > topic_bytes_max) {
    return fail(Errc::too_large,
                "a topic has at most 255 bytes, not " + std::to_string(message.topic.size()));
  }
  if (message.properties.size() > properties_bytes_max) {
    return fail(Errc::too_large, "the properties take at most 32767 bytes, not " +
                                     std::to_string(message.properties.size()));
  }
  const std::size_t size = message.size();
  if (size > record_bytes_max) return fail(Errc::too_large, "a record has at most 2^31-1 bytes");

  constexpr std::int32_t host_bits = sys_flag::born_host_v6 | sys_flag::store_host_v6;
  const std::int32_t flags = (message.sys_flag & ~host_bits) |
                             (message.born_host.v6 ? sys_flag::born_host_v6 : 0) |
                             (message.store_host.v6 ? sys_flag::store_host_v6 : 0);
  const std::size_t start = out.size();
  out.resize(start + size);
  Cursor cursor(out.data() + start);
  cursor.big(static_cast<std::int32_t>(size));
  cursor.big(message.v2() ? magic_v2 : magic_v1);
  cursor.big(body_crc(message.body));
  cursor.big(message.queue_id);
  cursor.big(message.flag);
  cursor.big(message.queue_offset);
  cursor.big(message.physical_offset);
  cursor.big(flags);
  cursor.big(message.born_timestamp);
  cursor.host(message.born_host);
  cursor.big(message.store_timestamp);
  cursor.host(message.store_host);
  cursor.big(message.reconsume_times);
  cursor.big(message.prepared_transaction_offset);
  cursor.big(static_cast<std::int32_t>(message.body.size()));
  cursor.bytes(message.body.data(), message.body.size());
  if (message.v2()) {
    cursor.big(static_cast<std::int16_t>(message.topic.size()));
  } else {
    cursor.big(static_cast<std::int8_t>(message.topic.size()));
  }
  cursor.bytes(message.topic.data(), message.topic.size());
  cursor.big(static_cast<std::int16_t>(message.properties.size()));
  cursor.bytes(message.properties.data(), message.properties.size());
  POLYLOG_ASSERT(cursor.at() == out.data() + out.size());
  return {};
}

Result<Message> parse(ByteView record) {
  if (record.size() < fixed_bytes_min) return no_record("shorter than its fixed fields");
  const std::uint8_t* at = record.data();
  if (load_big<std::uint32_t>(at + message_at::total_size) != record.size()) {
    return no_record("TOTALSIZE is not the size of the record");
  }
  Message message;
  message.magic = load_big<std::uint32_t>(at + message_at::magic);
  if (message.magic != magic_v1 && message.magic != magic_v2) return no_record("unknown magic");
  message.sys_flag = load_big<std::int32_t>(at + message_at::sys_flag);
  const std::size_t topic_length_bytes = message.magic == magic_v2 ? 2 : 1;
  const std::size_t fixed_bytes = fixed_bytes_min - 1 + topic_length_bytes - 2 * host_v4_bytes +
                                  host_bytes(message.sys_flag, sys_flag::born_host_v6) +
                                  host_bytes(message.sys_flag, sys_flag::store_host_v6);
  if (record.size() < fixed_bytes) return no_record("shorter than its fixed fields");
  std::size_t next = load_fixed(at, message);
  if (message.queue_id < 0 || message.queue_offset < 0 || message.physical_offset < 0) {
    return no_record("negative queue id or offset");
  }

  // What is left for body, topic and properties together; each length is taken from it.
  std::size_t left = record.size() - fixed_bytes;
  const auto body_size = load_big<std::int32_t>(at + next);
  if (body_size < 0 || static_cast<std::size_t>(body_size) > left) {
    return no_record("impossible body length");
  }
  message.body = record.subspan(next + 4, static_cast<std::size_t>(body_size));
  left -= message.body.size();
  next += 4 + message.body.size();
  const int topic_size = topic_length_bytes == 2 ? load_big<std::int16_t>(at + next)
                                                 : load_big<std::int8_t>(at + next);
  if (topic_size <= 0 || static_cast<std::size_t>(topic_size) > left) {
    return no_record("impossible topic length");
  }
  next += topic_length_bytes;
  message.topic = as_text(record.subspan(next, static_cast<std::size_t>(topic_size)));
  left -= message.topic.size();
  next += message.topic.size();
  const auto properties_size = load_big<std::int16_t>(at + next);
  if (properties_size < 0 || static_cast<std::size_t>(properties_size) != left) {
    return no_record("the lengths do not add up to TOTALSIZE");
  }
  message.properties = as_text(record.subspan(next + 2));
  return message;
}

std::uint32_t body_crc(ByteView body) { return crc32(body) & crc_mask; }

void patch_placement(MutableBytes record, const Placement& placement) {
  std::uint8_t* at = record.data();
  const auto flags = load_big<std::int32_t>(at + message_at::sys_flag);
  store_big(at + message_at::queue_offset, placement.queue_offset);
  store_big(at + message_at::physical_offset, placement.physical_offset);
  store_big(at + message_at::born_host + host_bytes(flags, sys_flag::born_host_v6),
            placement.store_timestamp);
}

std::array<std::uint8_t, blank_bytes> blank_record(std::int32_t remaining) {
  std::array<std::uint8_t, blank_bytes> bytes;
  store_big(bytes.data(), remaining);
  store_big(bytes.data() + 4, magic_blank);
  return bytes;
}

FrameHead next_frame(ByteView head, std::uint64_t remaining) {
  POLYLOG_ASSERT(head.size() >= std::min<std::uint64_t>(remaining, blank_bytes));
  if (remaining < blank_bytes) return {FrameState::torn, 0};
  const auto size = load_big<std::int32_t>(head.data());
  const auto magic = load_big<std::uint32_t>(head.data() + message_at::magic);
  const auto claimed = static_cast<std::uint64_t>(size);
  switch (magic) {
    case 0: return {size == 0 ? FrameState::zeros : FrameState::corrupt, 0};
    case magic_blank:
      if (size < 0) return {FrameState::corrupt, 0};
      return {FrameState::blank, claimed};
    case magic_v1:
    case magic_v2:
      if (size < static_cast<std::int32_t>(fixed_bytes_min)) return {FrameState::corrupt, 0};
      return {claimed > remaining ? FrameState::torn : FrameState::complete, claimed};
    default: return {FrameState::corrupt, 0};
  }
}

std::string offset_message_id(const Host& store_host, std::int64_t physical_offset) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::array<std::uint8_t, host_v6_bytes + 8> bytes;
  Cursor cursor(bytes.data());
  cursor.host(store_host);
  cursor.big(physical_offset);
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t* at = bytes.data(); at != cursor.at(); ++at) {
    text += digits[*at >> 4];
    text += digits[*at & 15];
  }
  return text;
}

Result<OffsetMessageId> parse_offset_message_id(std::string_view text) {
  constexpr std::size_t v4_digits = 2 * (host_v4_bytes + 8);
  constexpr std::size_t v6_digits = 2 * (host_v6_bytes + 8);
  const auto no_id = [] {
    return fail(Errc::invalid, "a message id is 32 or 56 hexadecimal digits");
  };
  if (text.size() != v4_digits && text.size() != v6_digits) return no_id();
  std::array<std::uint8_t, v6_digits / 2> bytes{};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return no_id();
    bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] << 4 | digit);
  }
  OffsetMessageId id;
  id.store_host = load_host(bytes.data(), text.size() == v6_digits);
  id.physical_offset = load_big<std::int64_t>(bytes.data() + id.store_host.bytes());
  if (id.physical_offset < 0) return fail(Errc::invalid, "the message id's offset is negative");
  return id;
}

Result<Host> parse_host(std::string_view text) {
  const auto no = [text] {
    return fail(Errc::invalid, "'" + std::string(text) + "' is no address and port");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return no();
  std::string address(text.substr(0, colon));
  Host host;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + colon + 1, last, host.port);
  if (error != std::errc() || end != last || host.port < 0 || host.port > 65535) return no();
  if (address.size() > 2 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
    host.v6 = true;
  }
  const int family = host.v6 ? AF_INET6 : AF_INET;
  if (inet_pton(family, address.c_str(), host.address.data()) != 1) return no();
  return host;
}

}  // namespace polylog::format::rocketmq
