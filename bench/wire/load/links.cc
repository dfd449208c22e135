#include "links.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace load {

constexpr std::size_t receive_bytes = 256 * 1024;
constexpr std::size_t pieces_max = 64;

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

int connect_to(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) die("not an IPv4 address");
  const int link = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(link, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    die(std::string("connect: ") + std::strerror(errno));
  }
  const int on = 1;
  ::setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return link;
}

Link::~Link() { ::close(descriptor_); }

void Link::add(std::int64_t partition, std::int64_t due_ns) {
  Piece piece;
  dialect_.write_head(piece.own, number_, first_id_ + flights_.size(), partition);
  piece.shared = &dialect_.payload(partition);
  unsent_.push_back(std::move(piece));
  flights_.push_back({due_ns, partition, false});
  ++waiting_;
}

void Link::say(std::string_view text) {
  Piece piece;
  piece.own.assign(text.begin(), text.end());
  unsent_.push_back(std::move(piece));
}

void Link::flush() {
  while (!unsent_.empty()) {
    iovec parts[2 * pieces_max];
    int count = 0;
    std::size_t skip = sent_of_first_;
    for (std::size_t i = 0; i < unsent_.size() && i < pieces_max; ++i) {
      const auto add = [&](const Bytes& bytes) {
        if (skip >= bytes.size()) {
          skip -= bytes.size();
          return;
        }
        parts[count++] = {const_cast<std::uint8_t*>(bytes.data()) + skip, bytes.size() - skip};
        skip = 0;
      };
      add(unsent_[i].own);
      if (unsent_[i].shared != nullptr) add(*unsent_[i].shared);
    }
    const ssize_t sent = ::writev(descriptor_, parts, count);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) die(std::string("send: ") + std::strerror(errno));
    sent_of_first_ += static_cast<std::size_t>(sent);
    while (!unsent_.empty()) {
      const Piece& first = unsent_.front();
      const std::size_t size = first.own.size() + (first.shared ? first.shared->size() : 0);
      if (sent_of_first_ < size) break;
      sent_of_first_ -= size;
      unsent_.pop_front();
    }
  }
}

std::string_view Link::fill() {
  static std::vector<char> buffer;
  buffer.resize(std::max(buffer.size(), rest_.size() + receive_bytes));
  std::copy(rest_.begin(), rest_.end(), buffer.begin());
  const ssize_t got =
      ::recv(descriptor_, buffer.data() + rest_.size(), receive_bytes, MSG_DONTWAIT);
  if (got == 0) die("the broker closed a connection");
  if (got < 0 && errno != EAGAIN && errno != EINTR) {
    die(std::string("receive: ") + std::strerror(errno));
  }
  return {buffer.data(), rest_.size() + static_cast<std::size_t>(std::max<ssize_t>(0, got))};
}

Flight Link::settle(std::uint64_t id) {
  if (flights_.empty()) die("an answer nobody asked for");
  std::size_t at = 0;
  if (id != Answer::in_order) {
    if (id < first_id_ || id - first_id_ >= flights_.size()) die("an answer nobody asked for");
    at = static_cast<std::size_t>(id - first_id_);
  }
  if (flights_[at].done) die("an answer that came twice");
  flights_[at].done = true;
  --waiting_;
  const Flight flight = flights_[at];
  while (!flights_.empty() && flights_.front().done) {
    flights_.pop_front();
    ++first_id_;
  }
  return flight;
}

Links::Links(const Shape& shape, const std::string& host, std::uint16_t port, std::size_t count)
    : dialect_(make_dialect(shape)), watching_writes_(count) {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  for (std::size_t i = 0; i < count; ++i) {
    const int descriptor = connect_to(host, port);
    dialect_->greet(descriptor, i);
    links_.push_back(std::make_unique<Link>(*dialect_, i, descriptor));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
    const int size = 4 << 20;
    ::setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  }
  for (const auto& link : links_) {
    // Non-blocking only now: the greetings are plain calls.
    const int on = 1;
    ::setsockopt(link->descriptor(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
    if (::fcntl(link->descriptor(), F_SETFL, O_NONBLOCK) != 0) die("fcntl");
  }
}

Links::~Links() {
  links_.clear();
  ::close(epoll_);
}

std::size_t Links::in_flight() const {
  std::size_t sum = 0;
  for (const auto& link : links_) sum += link->in_flight();
  return sum;
}

void Links::flush(std::size_t i) {
  links_[i]->flush();
  if (links_[i]->wants_to_write() == watching_writes_[i]) return;
  watching_writes_[i] = !watching_writes_[i];
  epoll_event event{};
  event.events = watching_writes_[i] ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = i;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, links_[i]->descriptor(), &event);
}

const std::vector<std::size_t>& Links::wait(std::int64_t until_ns) {
  epoll_event events[256];
  const std::int64_t left = std::max<std::int64_t>(0, until_ns - now_ns());
  const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
  const int count = ::epoll_pwait2(epoll_, events, 256, &timeout, nullptr);
  awake_.clear();
  for (int i = 0; i < count; ++i) awake_.push_back(events[i].data.u64);
  return awake_;
}

}  // namespace load
