#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dialects.h"

// The connections of the load tool: one epoll loop, non-blocking sockets, requests gathered into
// as few system calls as there are wake-ups.
namespace load {

std::int64_t now_ns();
int connect_to(const std::string& host, std::uint16_t port);

struct Flight {
  std::int64_t due_ns = 0;  // when it was sent, or ought to have been
  std::int64_t partition = 0;
  bool done = false;
};

class Link {
 public:
  Link(Dialect& dialect, std::size_t number, int descriptor)
      : dialect_(dialect), number_(number), descriptor_(descriptor) {}
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int descriptor() const { return descriptor_; }
  std::size_t in_flight() const { return waiting_; }
  bool wants_to_write() const { return !unsent_.empty(); }
  const std::deque<Flight>& flights() const { return flights_; }

  // Lays a request out; flush() sends what is laid out, as far as the socket takes it.
  void add(std::int64_t partition, std::int64_t due_ns);
  void flush();
  // Reads what is there. Calls taken(flight, answer) for every answer.
  template <class Taken>
  void receive(Taken taken) {
    const std::string_view data = fill();
    std::size_t at = 0;
    while (at < data.size()) {
      Answer answer;
      const std::size_t size = dialect_.read(data.substr(at), answer);
      if (size == 0) break;
      at += size;
      if (answer.outcome == Outcome::ping) say("PONG\r\n");
      if (answer.outcome == Outcome::ping || answer.outcome == Outcome::not_an_answer) continue;
      const Flight flight = settle(answer.id);
      taken(flight, answer);
    }
    rest_ = std::string(data.substr(at));
  }

 private:
  struct Piece {
    Bytes own;
    const Bytes* shared = nullptr;
  };

  // What is left of the time before and what has come, valid until the next call on any link.
  std::string_view fill();
  Flight settle(std::uint64_t id);
  void say(std::string_view text);

  Dialect& dialect_;
  const std::size_t number_;
  const int descriptor_;
  std::deque<Piece> unsent_;
  std::size_t sent_of_first_ = 0;
  std::string rest_;            // the beginning of an answer
  std::deque<Flight> flights_;  // oldest first; the first one's id is first_id_
  std::uint64_t first_id_ = 1;
  std::size_t waiting_ = 0;  // of the flights
};

// All links and their epoll.
class Links {
 public:
  Links(const Shape& shape, const std::string& host, std::uint16_t port, std::size_t count);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  Dialect& dialect() { return *dialect_; }
  Link& operator[](std::size_t i) { return *links_[i]; }
  std::size_t size() const { return links_.size(); }
  std::size_t in_flight() const;
  void flush(std::size_t i);

  // Waits for answers, at most until `until_ns`; calls taken(link, flight, answer) for each.
  template <class Taken>
  void turn(std::int64_t until_ns, Taken taken) {
    for (const std::size_t i : wait(until_ns)) {
      links_[i]->receive(
          [&](const Flight& flight, const Answer& answer) { taken(i, flight, answer); });
      flush(i);
    }
  }

 private:
  const std::vector<std::size_t>& wait(std::int64_t until_ns);

  std::unique_ptr<Dialect> dialect_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<bool> watching_writes_;
  std::vector<std::size_t> awake_;
  int epoll_ = -1;
};

}  // namespace load
