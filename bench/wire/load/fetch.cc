#include "fetch.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "links.h"

namespace load {
namespace {

constexpr std::int32_t bytes_max = 50 << 20;  // of an answer, as consumers ask for
constexpr std::int32_t partition_bytes_max = 1 << 20;

struct Place {
  std::int64_t partition = 0, offset = 0;
  bool at_end = false;
};

// One connection and the partitions it reads. Source: Kafka 4.3 message schemas, Fetch v11.
class Reader {
 public:
  Reader(int descriptor, std::string topic) : descriptor_(descriptor), topic_(std::move(topic)) {}
  ~Reader() { ::close(descriptor_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  int descriptor() const { return descriptor_; }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t records() const { return records_; }
  void add(std::int64_t partition) { places_.push_back({partition, 0, false}); }

  // Whether there was anything left to ask for.
  bool ask() {
    std::int64_t left = 0;
    for (const Place& place : places_) left += place.at_end ? 0 : 1;
    if (left == 0) return false;
    Bytes out;
    put(out, 0, 4);
    put(out, 1, 2);  // Fetch
    put(out, 11, 2);
    put(out, ++id_, 4);
    put(out, -1, 2);  // no client id
    put(out, -1, 4);  // replica
    put(out, 500, 4);
    put(out, 1, 4);
    put(out, bytes_max, 4);
    put(out, 0, 1);
    put(out, 0, 4);  // no session
    put(out, -1, 4);
    put(out, 1, 4);
    put(out, static_cast<std::int64_t>(topic_.size()), 2);
    out.insert(out.end(), topic_.begin(), topic_.end());
    put(out, left, 4);
    // The one asked for last comes last, so that none starves.
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Place& place = places_[(i + turn_) % places_.size()];
      if (place.at_end) continue;
      put(out, place.partition, 4);
      put(out, -1, 4);
      put(out, place.offset, 8);
      put(out, -1, 8);
      put(out, partition_bytes_max, 4);
    }
    ++turn_;
    put(out, 0, 4);  // none forgotten
    put(out, 0, 2);  // no rack
    put_at(out, 0, static_cast<std::int64_t>(out.size()) - 4, 4);
    for (std::size_t at = 0; at < out.size();) {
      const ssize_t sent = ::send(descriptor_, out.data() + at, out.size() - at, 0);
      if (sent <= 0) die("send failed");
      at += static_cast<std::size_t>(sent);
    }
    return true;
  }

  // Takes what is there; true when a whole answer was.
  bool receive() {
    const std::size_t want = size_ == 0 ? 4 - got_ : size_ - got_;
    const ssize_t got = ::recv(descriptor_, answer_.data() + got_, want, 0);
    if (got <= 0) die("the broker closed a connection");
    got_ += static_cast<std::size_t>(got);
    if (size_ == 0 && got_ == 4) {
      size_ = 4 + static_cast<std::size_t>(load_at(text(), 0, 4));
      if (size_ > 2u * bytes_max) die("an answer of " + std::to_string(size_) + " bytes");
      if (answer_.size() < size_) answer_.resize(size_);
    }
    if (size_ == 0 || got_ < size_) return false;
    bytes_ += static_cast<std::int64_t>(size_);
    take();
    size_ = got_ = 0;
    return true;
  }

 private:
  std::string_view text() const { return {answer_.data(), answer_.size()}; }

  void take() {
    const std::string_view data = text().substr(0, size_);
    std::size_t at = 4 + 4 + 4;  // size, correlation id, throttle
    if (load_at(data, at, 2) != 0) die("Fetch answered " + std::to_string(load_at(data, at, 2)));
    at += 2 + 4;
    if (load_at(data, at, 4) != 1) die("not one topic in an answer");
    at += 4 + 2 + topic_.size();
    const std::int64_t partitions = load_at(data, at, 4);
    at += 4;
    for (std::int64_t i = 0; i < partitions; ++i) at = take_partition(data, at);
  }

  std::size_t take_partition(std::string_view data, std::size_t at) {
    const std::int64_t partition = load_at(data, at, 4), error = load_at(data, at + 4, 2);
    const std::int64_t end = load_at(data, at + 6, 8);
    if (error != 0) die("partition answered " + std::to_string(error));
    const std::int64_t aborted = load_at(data, at + 30, 4);
    at += 34 + (aborted > 0 ? static_cast<std::size_t>(aborted) * 16 : 0) + 4;
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(0, load_at(data, at, 4)));
    at += 4;
    if (at + bytes > data.size()) die("an answer that is cut");
    for (Place& place : places_) {
      if (place.partition != partition) continue;
      walk(data.substr(at, bytes), place);
      place.at_end = place.offset >= end;
    }
    return at + bytes;
  }

  void walk(std::string_view batches, Place& place) {
    while (batches.size() >= 61) {
      const auto size = 12 + static_cast<std::size_t>(load_at(batches, 8, 4));
      if (size > batches.size()) break;
      place.offset = load_at(batches, 0, 8) + load_at(batches, 23, 4) + 1;
      records_ += load_at(batches, 57, 4);
      batches.remove_prefix(size);
    }
  }

  const int descriptor_;
  const std::string topic_;
  std::vector<Place> places_;
  std::vector<char> answer_ = std::vector<char>(16 << 20);
  std::size_t size_ = 0, got_ = 0, turn_ = 0;
  std::int64_t id_ = 0, bytes_ = 0, records_ = 0;
};

}  // namespace

void fetch_all(const std::string& host, std::uint16_t port, const Shape& shape,
               std::size_t connections) {
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::size_t i = 0; i < connections; ++i) {
    readers.push_back(std::make_unique<Reader>(connect_to(host, port), shape.topic));
  }
  for (std::int64_t p = 0; p < shape.partitions; ++p) {
    readers[static_cast<std::size_t>(p) % connections]->add(p);
  }
  const std::int64_t began = now_ns();
  std::vector<pollfd> polled;
  std::vector<Reader*> asking;
  for (const auto& reader : readers) {
    if (!reader->ask()) continue;
    polled.push_back({reader->descriptor(), POLLIN, 0});
    asking.push_back(reader.get());
  }
  while (!polled.empty()) {
    ::poll(polled.data(), polled.size(), -1);
    for (std::size_t i = polled.size(); i-- > 0;) {
      if (polled[i].revents == 0 || !asking[i]->receive() || asking[i]->ask()) continue;
      polled.erase(polled.begin() + static_cast<std::ptrdiff_t>(i));
      asking.erase(asking.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  const double seconds = static_cast<double>(now_ns() - began) / 1e9;
  std::int64_t bytes = 0, records = 0;
  for (const auto& reader : readers) {
    bytes += reader->bytes();
    records += reader->records();
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  std::printf("{\"records\": %" PRId64 ", \"bytes\": %" PRId64
              ", \"seconds\": %.6f, \"cpu_seconds\": %.3f}\n",
              records, bytes, seconds, cpu);
}

}  // namespace load
