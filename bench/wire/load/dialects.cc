#include "dialects.h"

#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace load {
namespace {

void append(Bytes& out, std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }

void put_varint(Bytes& out, std::int64_t value) {
  auto zigzag = static_cast<std::uint64_t>(value) << 1;
  for (; zigzag > 0x7f; zigzag >>= 7) out.push_back(static_cast<std::uint8_t>(zigzag | 0x80));
  out.push_back(static_cast<std::uint8_t>(zigzag));
}

std::uint32_t crc32c(const std::uint8_t* data, std::size_t size) {
  std::uint32_t crc = 0xffffffff;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82f63b78 & (0u - (crc & 1)));
  }
  return ~crc;
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void send_all(int link, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(link, text.data(), text.size(), 0);
    if (sent <= 0) die("greeting: send failed");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Kafka: Produce v7 with record batches of magic 2. Source: Kafka 4.3 message schemas; log format.
class Kafka final : public Dialect {
 public:
  explicit Kafka(const Shape& shape) : shape_(shape) {
    encode_batch();
    if (shape.partitions_per_request > 1) make_groups();
    make_head();
  }

  void write_head(Bytes& head, std::size_t /*connection*/, std::uint64_t id,
                  std::int64_t partition) override {
    head = head_;
    put_at(head, 8, static_cast<std::int64_t>(id & 0x7fffffff), 4);
    if (shape_.partitions_per_request == 1) put_at(head, partition_at_, partition, 4);
  }

  const Bytes& payload(std::int64_t partition) const override {
    if (shape_.partitions_per_request == 1) return batch_;
    return groups_[static_cast<std::size_t>(partition / shape_.partitions_per_request)];
  }
  std::int64_t records_per_request() const override {
    return records_ * shape_.partitions_per_request;
  }

  std::size_t read(std::string_view data, Answer& answer) override {
    if (data.size() < 4) return 0;
    const auto size = static_cast<std::size_t>(load_at(data, 0, 4));
    if (size < 8 || size > (1u << 24)) die("an answer of " + std::to_string(size) + " bytes");
    if (data.size() < 4 + size) return 0;
    answer.id = static_cast<std::uint64_t>(load_at(data, 4, 4));
    judge(data.substr(8, size - 4), answer);
    return 4 + size;
  }

 private:
  void judge(std::string_view body, Answer& answer) const {
    // Topics, name, partitions, then 30 bytes each: partition, error, offset, time, start.
    std::size_t at = 4 + 2 + shape_.topic.size();
    if (body.size() < at + 4) die("an answer that is none");
    const std::int64_t count = load_at(body, at, 4);
    at += 4;
    if (body.size() < at + static_cast<std::size_t>(count) * 30) die("an answer that is cut");
    for (std::int64_t i = 0; i < count; ++i, at += 30) {
      const std::int64_t error = load_at(body, at + 4, 2);
      if (error == 0) continue;
      // 3, 5, 6: no leader yet, the topic is new; 7: not stored in time.
      const bool again = error == 3 || error == 5 || error == 6;
      answer.outcome = again ? Outcome::again : Outcome::refused;
      answer.why = "partition " + std::to_string(load_at(body, at, 4)) + " answered " +
                   std::to_string(error);
      return;
    }
  }

  Bytes encode_record(std::int64_t index) const {
    Bytes body;
    put(body, 0, 1);          // attributes
    put_varint(body, 0);      // timestamp delta
    put_varint(body, index);  // offset delta
    body.push_back(1);        // no key
    put_varint(body, static_cast<std::int64_t>(shape_.record_bytes));
    body.insert(body.end(), shape_.record_bytes, 'x');
    put_varint(body, 0);  // headers
    Bytes record;
    put_varint(record, static_cast<std::int64_t>(body.size()));
    record.insert(record.end(), body.begin(), body.end());
    return record;
  }

  // As many records as fit into batch_bytes, but one at least.
  void encode_batch() {
    Bytes& out = batch_;
    put(out, 0, 8);   // base offset
    put(out, 0, 4);   // length, below
    put(out, -1, 4);  // leader epoch
    put(out, 2, 1);   // magic
    put(out, 0, 4);   // checksum, below
    put(out, 0, 2);   // attributes
    put(out, 0, 4);   // last offset delta, below
    put(out, now_ms(), 8);
    put(out, now_ms(), 8);
    put(out, -1, 8);  // producer id
    put(out, -1, 2);
    put(out, -1, 4);
    put(out, 0, 4);  // number of records, below
    for (;;) {
      const Bytes record = encode_record(records_);
      if (records_ > 0 && out.size() + record.size() > shape_.batch_bytes) break;
      out.insert(out.end(), record.begin(), record.end());
      ++records_;
    }
    put_at(out, 8, static_cast<std::int64_t>(out.size()) - 12, 4);
    put_at(out, 23, records_ - 1, 4);
    put_at(out, 57, records_, 4);
    put_at(out, 17, crc32c(out.data() + 21, out.size() - 21), 4);
  }

  // What follows the head in requests of several partitions.
  void make_groups() {
    if (shape_.partitions % shape_.partitions_per_request != 0) die("uneven requests");
    groups_.resize(static_cast<std::size_t>(shape_.partitions / shape_.partitions_per_request));
    for (std::int64_t i = 0; i < shape_.partitions; ++i) {
      Bytes& group = groups_[static_cast<std::size_t>(i / shape_.partitions_per_request)];
      put(group, i, 4);
      put(group, static_cast<std::int64_t>(batch_.size()), 4);
      group.insert(group.end(), batch_.begin(), batch_.end());
    }
  }

  void make_head() {
    put(head_, 0, 4);  // frame size, below
    put(head_, 0, 2);  // Produce
    put(head_, 7, 2);
    put(head_, 0, 4);  // correlation id
    put(head_, 4, 2);
    append(head_, "load");
    put(head_, -1, 2);      // no transaction
    put(head_, -1, 2);      // acks=all
    put(head_, 30'000, 4);  // timeout
    put(head_, 1, 4);
    put(head_, static_cast<std::int64_t>(shape_.topic.size()), 2);
    append(head_, shape_.topic);
    put(head_, shape_.partitions_per_request, 4);
    std::size_t after = 0;
    if (shape_.partitions_per_request == 1) {
      partition_at_ = head_.size();
      put(head_, 0, 4);
      put(head_, static_cast<std::int64_t>(batch_.size()), 4);
      after = batch_.size();
    } else {
      after = static_cast<std::size_t>(shape_.partitions_per_request) * (8 + batch_.size());
    }
    put_at(head_, 0, static_cast<std::int64_t>(head_.size() + after) - 4, 4);
  }

  const Shape shape_;
  Bytes batch_, head_;
  std::vector<Bytes> groups_;  // of partitions that are asked for together
  std::size_t partition_at_ = 0;
  std::int64_t records_ = 0;
};

// NATS JetStream: PUB with a reply subject that carries the number of the request. Source: NATS
// client protocol; JetStream publish acknowledgements.
class Nats final : public Dialect {
 public:
  explicit Nats(const Shape& shape) : shape_(shape) {
    payload_.assign(shape.record_bytes, 'x');
    append(payload_, "\r\n");
  }

  void greet(int link, std::size_t connection) override {
    send_all(link,
             "CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"c\","
             "\"version\":\"1\",\"protocol\":1}\r\nSUB _I." +
                 std::to_string(connection) + ".* 1\r\nPING\r\n");
    std::string said;
    while (said.find("PONG\r\n") == std::string::npos) {
      char part[4096];
      const ssize_t got = ::recv(link, part, sizeof part, 0);
      if (got <= 0) die("greeting: the broker closed the connection");
      said.append(part, static_cast<std::size_t>(got));
    }
  }

  void write_head(Bytes& head, std::size_t connection, std::uint64_t id,
                  std::int64_t partition) override {
    char text[256];
    const int size =
        shape_.partitions > 1
            ? std::snprintf(text, sizeof text, "PUB %s.%lld _I.%zu.%llu %zu\r\n",
                            shape_.topic.c_str(), static_cast<long long>(partition), connection,
                            static_cast<unsigned long long>(id), shape_.record_bytes)
            : std::snprintf(text, sizeof text, "PUB %s.0 _I.%zu.%llu %zu\r\n", shape_.topic.c_str(),
                            connection, static_cast<unsigned long long>(id), shape_.record_bytes);
    head.assign(text, text + size);
  }

  const Bytes& payload(std::int64_t /*partition*/) const override { return payload_; }
  std::int64_t records_per_request() const override { return 1; }

  std::size_t read(std::string_view data, Answer& answer) override {
    const std::size_t end = data.find("\r\n");
    if (end == std::string_view::npos) return 0;
    const std::string_view line = data.substr(0, end);
    if (!line.starts_with("MSG ")) {
      answer.outcome = line == "PING" ? Outcome::ping : Outcome::not_an_answer;
      if (line.starts_with("-ERR")) die(std::string(line));
      return end + 2;
    }
    const std::size_t last = line.rfind(' ');
    std::size_t bytes = 0;
    std::from_chars(line.data() + last + 1, line.data() + line.size(), bytes);
    if (data.size() < end + 2 + bytes + 2) return 0;
    const std::size_t dot = line.find('.', line.find('.') + 1);
    std::from_chars(line.data() + dot + 1, line.data() + line.size(), answer.id);
    const std::string_view said = data.substr(end + 2, bytes);
    if (said.find("\"error\"") != std::string_view::npos || bytes == 0) {
      answer.outcome = Outcome::refused;
      answer.why = bytes == 0 ? "no stream takes the subject" : std::string(said);
    }
    return end + 2 + bytes + 2;
  }

 private:
  const Shape shape_;
  Bytes payload_;
};

// Redis: XADD in RESP2. Answers come in the order of the requests.
class Redis final : public Dialect {
 public:
  explicit Redis(const Shape& shape) : shape_(shape) {
    payload_.assign(shape.record_bytes, 'x');
    append(payload_, "\r\n");
  }

  void write_head(Bytes& head, std::size_t /*connection*/, std::uint64_t /*id*/,
                  std::int64_t partition) override {
    const std::string key = shape_.topic + ":" + std::to_string(partition);
    char text[256];
    const int size = std::snprintf(
        text, sizeof text, "*5\r\n$4\r\nXADD\r\n$%zu\r\n%s\r\n$1\r\n*\r\n$1\r\nv\r\n$%zu\r\n",
        key.size(), key.c_str(), shape_.record_bytes);
    head.assign(text, text + size);
  }

  const Bytes& payload(std::int64_t /*partition*/) const override { return payload_; }
  std::int64_t records_per_request() const override { return 1; }

  std::size_t read(std::string_view data, Answer& answer) override {
    const std::size_t end = data.find("\r\n");
    if (end == std::string_view::npos) return 0;
    if (data[0] == '-') {
      answer.outcome = Outcome::refused;
      answer.why = std::string(data.substr(0, end));
      return end + 2;
    }
    if (data[0] != '$') die("an answer that is none");
    std::size_t bytes = 0;
    std::from_chars(data.data() + 1, data.data() + end, bytes);
    return data.size() < end + 2 + bytes + 2 ? 0 : end + 2 + bytes + 2;
  }

 private:
  const Shape shape_;
  Bytes payload_;
};

// RocketMQ's remoting protocol, SEND_MESSAGE_V2 (310), its header as JSON: what its own client
// sends, for numbers of connections that client cannot make.
class Rocketmq final : public Dialect {
 public:
  explicit Rocketmq(const Shape& shape) : shape_(shape) {
    payload_.assign(shape.record_bytes, 'x');
  }

  void write_head(Bytes& head, std::size_t /*connection*/, std::uint64_t id,
                  std::int64_t partition) override {
    const std::string json =
        "{\"code\":310,\"extFields\":{\"a\":\"load\",\"b\":\"" + shape_.topic +
        "\",\"c\":\"TBW102\",\"d\":\"4\",\"e\":\"" + std::to_string(partition) +
        "\",\"f\":\"0\",\"g\":\"" + std::to_string(now_ms()) +
        "\",\"h\":\"0\",\"i\":\"\",\"j\":\"0\",\"k\":\"false\",\"m\":\"false\"},\"flag\":0,"
        "\"language\":\"CPP\",\"opaque\":" +
        std::to_string(id & 0x7fffffff) + ",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":493}";
    head.clear();
    put(head, static_cast<std::int64_t>(4 + json.size() + shape_.record_bytes), 4);
    put(head, static_cast<std::int64_t>(json.size()), 4);
    append(head, json);
  }

  const Bytes& payload(std::int64_t /*partition*/) const override { return payload_; }
  std::int64_t records_per_request() const override { return 1; }

  std::size_t read(std::string_view data, Answer& answer) override {
    if (data.size() < 8) return 0;
    const auto size = static_cast<std::size_t>(load_at(data, 0, 4));
    if (size < 4 || size > (1u << 24)) die("an answer of " + std::to_string(size) + " bytes");
    if (data.size() < 4 + size) return 0;
    const auto header = static_cast<std::size_t>(load_at(data, 5, 3));
    if (header + 4 > size) die("an answer that is cut");
    const std::string_view json = data.substr(8, header);
    answer.id = static_cast<std::uint64_t>(number_after(json, "\"opaque\":"));
    const std::int64_t code = number_after(json, "\"code\":");
    if (code != 0 && code != 10) {  // 10: stored, its follower is behind
      answer.outcome = code == 2 ? Outcome::again : Outcome::refused;  // 2: busy
      answer.why = std::string(json.substr(0, 300));
    }
    return 4 + size;
  }

 private:
  static std::int64_t number_after(std::string_view text, std::string_view name) {
    const std::size_t at = text.find(name);
    if (at == std::string_view::npos) die("no " + std::string(name) + " in an answer");
    std::int64_t value = 0;
    std::from_chars(text.data() + at + name.size(), text.data() + text.size(), value);
    return value;
  }

  const Shape shape_;
  Bytes payload_;
};

}  // namespace

void die(const std::string& what) {
  std::printf("{\"failed\": \"");
  for (const char c : what) std::putchar(c == '"' || c == '\\' || c < ' ' ? '\'' : c);
  std::printf("\"}\n");
  std::exit(1);
}

void put(Bytes& out, std::int64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

void put_at(Bytes& out, std::size_t at, std::int64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out[at + static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
  }
}

std::int64_t load_at(std::string_view data, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value = value << 8 | static_cast<std::uint8_t>(data[at + static_cast<std::size_t>(i)]);
  }
  const int unused = 64 - 8 * bytes;
  return static_cast<std::int64_t>(value << unused) >> unused;
}

std::unique_ptr<Dialect> make_dialect(const Shape& shape) {
  if (shape.protocol == "kafka") return std::make_unique<Kafka>(shape);
  if (shape.protocol == "nats") return std::make_unique<Nats>(shape);
  if (shape.protocol == "redis") return std::make_unique<Redis>(shape);
  if (shape.protocol == "rocketmq") return std::make_unique<Rocketmq>(shape);
  die("no protocol " + shape.protocol);
}

}  // namespace load
