// A Kafka producer that costs next to nothing: one connection, one record batch that was encoded
// beforehand, sent to the partitions of a topic in turn, so that what is measured with many
// partitions is the broker. librdkafka walks all partitions each time it wakes up, and with 10,000
// of them needs more CPU than any broker beside it.
//
//   batch_load HOST PORT TOPIC PARTITIONS FIRST-PARTITION RECORDS RECORD-BYTES BATCH-BYTES
//   IN-FLIGHT
//
// Prints a summary in the form of librdkafka's load tool. SIGINT ends it early; what was
// acknowledged until then counts. Source of the frames: Kafka 4.3 message schemas, Produce v7;
// record batch format, magic 2.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<std::uint8_t>;
using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t stopped = 0;

[[noreturn]] void die(const std::string& what) {
  std::printf("%% ERROR: %s\n", what.c_str());
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

Bytes encode_record(std::int64_t index, std::size_t value_bytes) {
  Bytes body;
  put(body, 0, 1);          // attributes
  put_varint(body, 0);      // timestamp delta
  put_varint(body, index);  // offset delta
  body.push_back(1);        // no key
  put_varint(body, static_cast<std::int64_t>(value_bytes));
  body.insert(body.end(), value_bytes, 'x');
  put_varint(body, 0);  // headers
  Bytes record;
  put_varint(record, static_cast<std::int64_t>(body.size()));
  record.insert(record.end(), body.begin(), body.end());
  return record;
}

struct Batch {
  Bytes bytes;
  std::int64_t records = 0;
};

// As many records as fit into `bytes_max`, but one at least.
Batch encode_batch(std::size_t record_bytes, std::size_t bytes_max) {
  constexpr std::size_t length_at = 8, crc_at = 17, count_from = 21, last_delta_at = 23;
  constexpr std::size_t count_at = 57;
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  Batch batch;
  Bytes& out = batch.bytes;
  put(out, 0, 8);   // base offset
  put(out, 0, 4);   // length, below
  put(out, -1, 4);  // leader epoch
  put(out, 2, 1);   // magic
  put(out, 0, 4);   // checksum, below
  put(out, 0, 2);   // attributes
  put(out, 0, 4);   // last offset delta, below
  put(out, now, 8);
  put(out, now, 8);
  put(out, -1, 8);  // producer id
  put(out, -1, 2);
  put(out, -1, 4);
  put(out, 0, 4);  // number of records, below
  for (;;) {
    const Bytes record = encode_record(batch.records, record_bytes);
    if (batch.records > 0 && out.size() + record.size() > bytes_max) break;
    out.insert(out.end(), record.begin(), record.end());
    ++batch.records;
  }
  put_at(out, length_at, static_cast<std::int64_t>(out.size()) - 12, 4);
  put_at(out, last_delta_at, batch.records - 1, 4);
  put_at(out, count_at, batch.records, 4);
  put_at(out, crc_at, crc32c(out.data() + count_from, out.size() - count_from), 4);
  return batch;
}

struct Arguments {
  const char* host;
  std::uint16_t port;
  std::string topic;
  std::int64_t partitions, first, records;
  std::size_t record_bytes, batch_bytes, in_flight_max;
};

int connect_to(const Arguments& arguments) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(arguments.port);
  if (inet_pton(AF_INET, arguments.host, &address.sin_addr) != 1) die("not an IPv4 address");
  const int link = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(link, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    die(std::string("connect: ") + std::strerror(errno));
  }
  const int on = 1;
  ::setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return link;
}

class Producer {
 public:
  explicit Producer(const Arguments& arguments)
      : arguments_(arguments),
        batch_(encode_batch(arguments.record_bytes, arguments.batch_bytes)),
        link_(connect_to(arguments)),
        next_(arguments.first % arguments.partitions) {
    make_head();
  }

  void run() {
    const auto began = Clock::now();
    while (acked_ < arguments_.records && !stopped) {
      while (in_flight_.size() < arguments_.in_flight_max && wanted() && !stopped) send();
      if (!in_flight_.empty()) receive();
    }
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began).count();
    const std::int64_t delivered = acked_ < arguments_.records ? acked_ : arguments_.records;
    std::printf("%% %" PRId64 " delivered (batches of %" PRId64 ", 0 failed) in %" PRId64
                "ms: %" PRId64 " msgs/s\n",
                delivered, batch_.records, static_cast<std::int64_t>(took),
                delivered * 1000 / (took > 0 ? took : 1));
  }

 private:
  // Whether anything is left to send, beyond what is under way.
  bool wanted() const {
    const auto under_way = static_cast<std::int64_t>(in_flight_.size()) * batch_.records;
    return acked_ + under_way < arguments_.records;
  }

  void make_head() {
    const std::string client = "batch-load";
    put(head_, 0, 4);  // frame size, below
    put(head_, 0, 2);  // Produce
    put(head_, 7, 2);
    correlation_at_ = head_.size();
    put(head_, 0, 4);
    put(head_, static_cast<std::int64_t>(client.size()), 2);
    head_.insert(head_.end(), client.begin(), client.end());
    put(head_, -1, 2);      // no transaction
    put(head_, -1, 2);      // acks=all
    put(head_, 30'000, 4);  // timeout
    put(head_, 1, 4);
    put(head_, static_cast<std::int64_t>(arguments_.topic.size()), 2);
    head_.insert(head_.end(), arguments_.topic.begin(), arguments_.topic.end());
    put(head_, 1, 4);
    partition_at_ = head_.size();
    put(head_, 0, 4);
    put(head_, static_cast<std::int64_t>(batch_.bytes.size()), 4);
    put_at(head_, 0, static_cast<std::int64_t>(head_.size() + batch_.bytes.size()) - 4, 4);
  }

  std::int64_t next_partition() {
    if (!again_.empty()) {
      const std::int64_t partition = again_.front();
      again_.pop_front();
      return partition;
    }
    const std::int64_t partition = next_;
    next_ = (next_ + 1) % arguments_.partitions;
    return partition;
  }

  void send() {
    const std::int64_t partition = next_partition();
    put_at(head_, correlation_at_, ++correlation_, 4);
    put_at(head_, partition_at_, partition, 4);
    iovec parts[2] = {{head_.data(), head_.size()}, {batch_.bytes.data(), batch_.bytes.size()}};
    for (iovec* part = parts; part != parts + 2;) {
      const ssize_t sent = ::writev(link_, part, static_cast<int>(parts + 2 - part));
      if (sent < 0 && errno == EINTR) {
        if (stopped) return;  // the frame stays cut; the connection ends with the process
        continue;
      }
      if (sent < 0) die(std::string("send: ") + std::strerror(errno));
      auto left = static_cast<std::size_t>(sent);
      while (part != parts + 2 && left >= part->iov_len) left -= part++->iov_len;
      if (part == parts + 2) break;
      part->iov_base = static_cast<char*>(part->iov_base) + left;
      part->iov_len -= left;
    }
    in_flight_.push_back(partition);
  }

  std::int64_t load(std::size_t at, int bytes) const {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value = value << 8 | received_[at + static_cast<std::size_t>(i)];
    const int unused = 64 - 8 * bytes;
    return static_cast<std::int64_t>(value << unused) >> unused;
  }

  // Waits for bytes, then takes every whole answer among them.
  void receive() {
    const std::size_t before = received_.size();
    received_.resize(before + 65'536);
    const ssize_t got = ::recv(link_, received_.data() + before, 65'536, 0);
    received_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && errno == EINTR) return;
    if (got < 0) die(std::string("receive: ") + std::strerror(errno));
    if (got == 0) die("the broker closed the connection");
    std::size_t at = 0;
    while (received_.size() - at >= 4) {
      const auto size = static_cast<std::size_t>(load(at, 4));
      if (size > 65'536) die("an answer of " + std::to_string(size) + " bytes");
      if (received_.size() - at < 4 + size) break;
      take_answer(at + 4, size);
      at += 4 + size;
    }
    received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void take_answer(std::size_t at, std::size_t size) {
    // Correlation id, topics, name, partitions, partition, error.
    const std::size_t error_at = 4 + 4 + 2 + arguments_.topic.size() + 4 + 4;
    if (size < error_at + 2 || in_flight_.empty()) die("an answer that is none");
    const std::int64_t error = load(at + error_at, 2);
    const std::int64_t partition = in_flight_.front();
    in_flight_.pop_front();
    if (error == 0) {
      acked_ += batch_.records;
    } else if (error == 3 || error == 5 || error == 6) {  // no leader yet: the topic is new
      again_.push_back(partition);
      ::usleep(1000);
    } else {
      die("partition " + std::to_string(partition) + " answered " + std::to_string(error));
    }
  }

  const Arguments& arguments_;
  Batch batch_;
  const int link_;
  Bytes head_, received_;
  std::size_t correlation_at_ = 0, partition_at_ = 0;
  std::int64_t next_;
  std::int64_t correlation_ = 0;
  std::int64_t acked_ = 0;              // records
  std::deque<std::int64_t> in_flight_;  // partitions, oldest first
  std::deque<std::int64_t> again_;      // partitions that were not ready
};

}  // namespace

int main(int count, char** words) {
  if (count != 10) die("usage: see the head of batch_load.cc");
  const auto number = [&](int i) { return std::strtoll(words[i], nullptr, 10); };
  const Arguments arguments{words[1],
                            static_cast<std::uint16_t>(number(2)),
                            words[3],
                            number(4),
                            number(5),
                            number(6),
                            static_cast<std::size_t>(number(7)),
                            static_cast<std::size_t>(number(8)),
                            static_cast<std::size_t>(number(9))};
  if (arguments.partitions < 1 || arguments.records < 1 || arguments.in_flight_max < 1) {
    die("partitions, records and in-flight must be positive");
  }
  struct sigaction action{};
  action.sa_handler = [](int) { stopped = 1; };  // without SA_RESTART: calls return at once
  ::sigaction(SIGINT, &action, nullptr);
  Producer(arguments).run();
  return 0;
}
