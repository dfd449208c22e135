// What a produce request costs at least: a broker that only receives, checks, stores and answers.
// One thread, one file, no topics, no offsets; it answers the Produce v7 requests of wire_load and
// nothing else. What it reaches is the limit that the scoreboard measures brokers against.
//
//   ideal_broker PORT FILE FILE-MIB memory|durable
//
// memory: pwrite to the page cache, then answer. durable: one O_DIRECT write with O_DSYNC for all
// that has come since the last one, into blocks that were written before, at most four under way
// through io_uring, answers in order. The file is written again from its start when it is full.
#include <fcntl.h>
#include <isa-l/crc.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "dialects.h"

namespace load {
namespace {

constexpr std::size_t block = 4096;
constexpr std::size_t write_bytes_max = 2 << 20;
constexpr unsigned writes_max = 4;
constexpr std::size_t receive_bytes = 256 << 10;
constexpr std::uint64_t on_listener = ~std::uint64_t{0}, on_ring = on_listener - 1;

struct Buffer {
  Buffer() : data(static_cast<char*>(std::aligned_alloc(block, write_bytes_max + block))) {}
  ~Buffer() { std::free(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  char* const data;
  std::size_t size = 0;
};

// A client's connection: bytes of a frame that is not complete, and answers not sent yet.
struct Client {
  int descriptor = -1;
  std::vector<char> received;
  std::size_t size = 0;
  Bytes answers;  // of requests that are stored
  Bytes waiting;  // of requests in the buffer that is being filled
};

// Writes buffers in order and says how many are stored.
class Store {
 public:
  Store(const char* path, std::size_t file_bytes, bool durable)
      : durable_(durable), file_bytes_(file_bytes) {
    descriptor_ = ::open(path, O_RDWR | O_CREAT | (durable ? O_DIRECT | O_DSYNC : 0), 0600);
    if (descriptor_ < 0) die(std::string("open: ") + std::strerror(errno));
    Buffer zeros;
    std::memset(zeros.data, 0, write_bytes_max);
    for (std::size_t at = 0; durable && at < file_bytes; at += write_bytes_max) {
      if (::pwrite(descriptor_, zeros.data, write_bytes_max, static_cast<off_t>(at)) < 0) {
        die("prewriting failed");
      }
    }
    events_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (durable && (io_uring_queue_init(writes_max * 2, &ring_, 0) != 0 ||
                    io_uring_register_eventfd(&ring_, events_) != 0)) {
      die("io_uring is not to be had");
    }
  }

  int events() const { return events_; }
  bool full() const { return under_way_.size() >= writes_max; }
  bool durable() const { return durable_; }

  // A buffer with nothing in it; new ones would cost a page fault for every 4 KiB.
  std::unique_ptr<Buffer> take_spare() {
    if (spare_.empty()) return std::make_unique<Buffer>();
    std::unique_ptr<Buffer> buffer = std::move(spare_.back());
    spare_.pop_back();
    buffer->size = 0;
    return buffer;
  }

  // Takes the buffer; false when it is stored at once.
  bool write(std::unique_ptr<Buffer> buffer) {
    const std::size_t size = (buffer->size + block - 1) / block * block;
    if (at_ + size > file_bytes_) at_ = 0;
    if (!durable_) {
      if (::pwrite(descriptor_, buffer->data, buffer->size, static_cast<off_t>(at_)) < 0) {
        die("write failed");
      }
      at_ += buffer->size;
      spare_.push_back(std::move(buffer));
      return false;
    }
    std::memset(buffer->data + buffer->size, 0, size - buffer->size);
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    io_uring_prep_write(entry, descriptor_, buffer->data, static_cast<unsigned>(size), at_);
    io_uring_sqe_set_data64(entry, next_++);
    io_uring_submit(&ring_);
    under_way_.push_back({std::move(buffer), false});
    at_ += size;
    return true;
  }

  // How many buffers, oldest first, are stored since the last call.
  std::size_t stored() {
    if (!durable_) return 0;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t ignored = ::read(events_, &count, sizeof count);
    io_uring_cqe* entry = nullptr;
    while (io_uring_peek_cqe(&ring_, &entry) == 0) {
      if (entry->res < 0) die("a write failed");
      under_way_[io_uring_cqe_get_data64(entry) - first_].done = true;
      io_uring_cqe_seen(&ring_, entry);
    }
    std::size_t done = 0;
    for (; !under_way_.empty() && under_way_.front().done; ++done) {
      spare_.push_back(std::move(under_way_.front().buffer));
      under_way_.pop_front();
      ++first_;
    }
    return done;
  }

 private:
  struct Write {
    std::unique_ptr<Buffer> buffer;
    bool done;
  };
  const bool durable_;
  const std::size_t file_bytes_;
  int descriptor_ = -1, events_ = -1;
  io_uring ring_{};
  std::size_t at_ = 0;
  std::uint64_t first_ = 0, next_ = 0;
  std::deque<Write> under_way_;
  std::vector<std::unique_ptr<Buffer>> spare_;
};

class Broker {
 public:
  Broker(std::uint16_t port, Store& store) : store_(store) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 4096) != 0) {
      die(std::string("listen: ") + std::strerror(errno));
    }
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    watch(listener_, on_listener);
    watch(store.events(), on_ring);
    std::printf("ready\n");
    std::fflush(stdout);
  }

  [[noreturn]] void run() {
    for (;;) {
      epoll_event events[256];
      const int count = ::epoll_wait(epoll_, events, 256, -1);
      for (int i = 0; i < count; ++i) {
        const std::uint64_t what = events[i].data.u64;
        if (what == on_listener)
          accept();
        else if (what == on_ring)
          finish(store_.stored());
        else
          receive(static_cast<int>(what));
      }
      // Everything of this turn goes into one write.
      if (buffer_->size > 0 && !store_.full()) submit();
    }
  }

 private:
  void watch(int descriptor, std::uint64_t as) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = as;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
  }

  void accept() {
    for (;;) {
      const int link = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (link < 0) return;
      const int on = 1;
      ::setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      clients_[link].descriptor = link;
      watch(link, static_cast<std::uint64_t>(link));
    }
  }

  void receive(int link) {
    Client& client = clients_[link];
    // Most reads end with a frame: only who is in the middle of one has a buffer of its own.
    std::vector<char>& into = client.size > 0 ? client.received : shared_;
    into.resize(std::max(into.size(), client.size + receive_bytes));
    const ssize_t got =
        ::recv(link, into.data() + client.size, into.size() - client.size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      ::close(link);
      clients_.erase(link);
      return;
    }
    const std::size_t end = client.size + static_cast<std::size_t>(got);
    std::size_t at = 0;
    while (end - at >= 4) {
      const std::string_view rest(into.data() + at, end - at);
      const auto size = 4 + static_cast<std::size_t>(load_at(rest, 0, 4));
      if (size > rest.size()) break;
      take(client, rest.substr(0, size));
      at += size;
    }
    client.size = end - at;
    if (client.size == 0) return;
    client.received.resize(std::max(client.received.size(), client.size));
    std::memmove(client.received.data(), into.data() + at, client.size);
  }

  // A Produce v7 request: its batches go into the buffer, its answer waits for their write.
  void take(Client& client, std::string_view frame) {
    std::size_t at = 14 + static_cast<std::size_t>(load_at(frame, 12, 2)) + 2 + 2 + 4 + 4;
    const auto name = static_cast<std::size_t>(load_at(frame, at, 2));
    const std::string_view topic = frame.substr(at, 2 + name);
    at += 2 + name;
    const std::int64_t partitions = load_at(frame, at, 4);
    at += 4;
    if (buffer_->size + frame.size() > write_bytes_max) submit();
    Bytes& out = client.waiting;
    const std::size_t begins = out.size();
    put(out, 0, 4);
    put(out, load_at(frame, 8, 4), 4);
    put(out, 1, 4);
    out.insert(out.end(), topic.begin(), topic.end());
    put(out, partitions, 4);
    for (std::int64_t i = 0; i < partitions; ++i) {
      const auto bytes = static_cast<std::size_t>(load_at(frame, at + 4, 4));
      const std::string_view batch = frame.substr(at + 8, bytes);
      put(out, load_at(frame, at, 4), 4);
      put(out, right(batch) ? 0 : 2, 2);  // 2: corrupt
      put(out, 0, 8);
      put(out, -1, 8);
      put(out, 0, 8);
      std::memcpy(buffer_->data + buffer_->size, batch.data(), bytes);
      buffer_->size += bytes;
      at += 8 + bytes;
    }
    put(out, 0, 4);
    put_at(out, begins, static_cast<std::int64_t>(out.size() - begins) - 4, 4);
    if (begins == 0) asked_.push_back(client.descriptor);
  }

  static bool right(std::string_view batch) {
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(batch.data()));
    const std::uint32_t crc = ~crc32_iscsi(bytes + 21, static_cast<int>(batch.size() - 21), ~0u);
    return crc == static_cast<std::uint32_t>(load_at(batch, 17, 4));
  }

  void submit() {
    while (store_.full()) finish(store_.stored());
    std::vector<std::pair<int, Bytes>> answers;
    for (const int link : asked_) {
      const auto found = clients_.find(link);
      if (found != clients_.end()) answers.emplace_back(link, std::move(found->second.waiting));
      if (found != clients_.end()) found->second.waiting.clear();
    }
    asked_.clear();
    under_way_.push_back(std::move(answers));
    const bool later = store_.write(std::move(buffer_));
    buffer_ = store_.take_spare();
    if (!later) finish(1);
  }

  void finish(std::size_t stored) {
    for (; stored > 0; --stored) {
      for (const auto& [link, bytes] : under_way_.front()) {
        // Answers are small; a client that does not read them is none of ours.
        if (::send(link, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
            errno != ECONNRESET && errno != EBADF) {
          die(std::string("send: ") + std::strerror(errno));
        }
      }
      under_way_.pop_front();
    }
  }

  Store& store_;
  int listener_ = -1, epoll_ = -1;
  std::unordered_map<int, Client> clients_;
  std::vector<char> shared_;  // what is received
  std::unique_ptr<Buffer> buffer_ = std::make_unique<Buffer>();
  std::vector<int> asked_;  // who has an answer waiting for the buffer
  std::deque<std::vector<std::pair<int, Bytes>>> under_way_;
};

}  // namespace
}  // namespace load

int main(int count, char** words) {
  if (count != 5) load::die("usage: see the head of ideal_broker.cc");
  ::signal(SIGPIPE, SIG_IGN);
  load::Store store(words[2], static_cast<std::size_t>(std::atoi(words[3])) << 20,
                    std::string(words[4]) == "durable");
  load::Broker(static_cast<std::uint16_t>(std::atoi(words[1])), store).run();
}
