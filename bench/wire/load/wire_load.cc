// Load for any broker of the scoreboard, from one thread that costs next to nothing: what is sent
// was encoded beforehand. Prints one line of JSON; SIGINT ends it early.
//
//   wire_load produce HOST PORT [--name value ...]   as many as are answered
//   wire_load rate    HOST PORT --rate N ...         N requests a second, whatever comes back
//   wire_load rounds  HOST PORT --rounds N ...       every partition once, wait for all, again
//   wire_load fetch   HOST PORT ...                  Kafka: each partition from 0 to its end
//
// Latency is measured from when a request was due, which with `rate` need not be when it was sent.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "fetch.h"
#include "links.h"

namespace load {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t grace_ns = 5 * second_ns;
constexpr std::int64_t first_round_ns = 30 * second_ns;
constexpr double warm_share = 0.1;  // of the time of `rate`, whose latencies don't count

volatile std::sig_atomic_t stopped = 0;

struct Options {
  std::string mode, host;
  std::uint16_t port = 0;
  Shape shape;
  std::size_t connections = 1, in_flight = 1;
  std::int64_t records = 0;  // 0: as many as there is time for
  std::int64_t first = 0;    // partition
  std::int64_t rounds = 0;
  double rate = 0, seconds = 0;
};

class Load {
 public:
  explicit Load(const Options& options)
      : options_(options),
        links_(options.shape, options.host, options.port, options.connections),
        each_(links_.dialect().records_per_request()),
        next_(options.first % options.shape.partitions) {}

  void run() {
    began_ = now_ns();
    until_ = options_.seconds > 0 ? began_ + static_cast<std::int64_t>(options_.seconds * second_ns)
                                  : began_ + 3600 * second_ns;
    if (options_.mode == "produce") produce();
    if (options_.mode == "rate") at_a_rate();
    if (options_.mode == "rounds") in_rounds();
    print();
  }

 private:
  std::int64_t next_partition() {
    if (!again_.empty()) {
      const std::int64_t partition = again_.front();
      again_.pop_front();
      return partition;
    }
    const std::int64_t partition = next_;
    next_ = (next_ + options_.shape.partitions_per_request) % options_.shape.partitions;
    return partition;
  }

  bool wanted() const {
    if (stopped) return false;
    return options_.records == 0 ||
           accepted_ + static_cast<std::int64_t>(waiting_) * each_ < options_.records;
  }

  // Whether the request is settled: false when it has to be sent again.
  bool take(const Flight& flight, const Answer& answer) {
    --waiting_;
    const std::int64_t now = now_ns();
    if (answer.outcome == Outcome::again) {
      ++retried_;
      again_.push_back(flight.partition);
      return false;
    }
    if (answer.outcome == Outcome::refused) {
      if (refused_++ == 0) first_refusal_ = answer.why;
      if (refused_ > 100'000) die("refused: " + answer.why);
      return true;
    }
    accepted_ += each_;
    last_ = now;
    if (flight.due_ns >= count_from_) note(now - flight.due_ns);
    return true;
  }

  void note(std::int64_t took_ns) {
    took_.push_back(static_cast<std::uint32_t>(std::min<std::int64_t>(took_ns / 100, 0xffffffff)));
  }

  void fill(std::size_t i) {
    while (links_[i].in_flight() < options_.in_flight && now_ns() < until_ && wanted()) {
      links_[i].add(next_partition(), now_ns());
      ++waiting_;
    }
  }

  void produce() {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      fill(i);
      links_.flush(i);
    }
    while (waiting_ > 0 && now_ns() < until_ && !stopped) {
      bool pause = false;
      links_.turn(until_, [&](std::size_t i, const Flight& flight, const Answer& answer) {
        pause |= !take(flight, answer);
        fill(i);
      });
      if (pause) ::usleep(1000);
    }
  }

  void at_a_rate() {
    const double gap_ns = second_ns / options_.rate;
    const auto total = static_cast<std::int64_t>(options_.rate * options_.seconds);
    count_from_ = began_ + static_cast<std::int64_t>(options_.seconds * warm_share * second_ns);
    std::int64_t sent = 0;
    const auto due = [&](std::int64_t i) {
      return began_ + static_cast<std::int64_t>(static_cast<double>(i) * gap_ns);
    };
    std::int64_t give_up = until_ + grace_ns;
    while ((sent < total || waiting_ > 0) && now_ns() < give_up && !stopped) {
      const std::int64_t now = now_ns();
      for (; sent < total && due(sent) <= now; ++sent) {
        const auto i = static_cast<std::size_t>(sent) % links_.size();
        links_[i].add(next_partition(), due(sent));
        ++waiting_;
        links_.flush(i);
      }
      const std::int64_t wake = sent < total ? due(sent) : give_up;
      links_.turn(wake, [&](std::size_t, const Flight& flight, const Answer& answer) {
        if (!take(flight, answer)) ++refused_;
      });
    }
    // What never came back waited at least so long.
    for (std::size_t i = 0; i < links_.size(); ++i) {
      for (const Flight& flight : links_[i].flights()) {
        if (!flight.done && flight.due_ns >= count_from_) note(now_ns() - flight.due_ns);
      }
    }
  }

  void in_rounds() {
    const std::int64_t requests = options_.shape.partitions / options_.shape.partitions_per_request;
    for (std::int64_t round = 0; round < options_.rounds && now_ns() < until_; ++round) {
      const std::int64_t before = now_ns();
      count_from_ = before + 3600 * second_ns;  // single requests are not what is timed
      for (std::int64_t i = 0; i < requests; ++i) {
        links_[static_cast<std::size_t>(i) % links_.size()].add(next_partition(), before);
        ++waiting_;
      }
      for (std::size_t i = 0; i < links_.size(); ++i) links_.flush(i);
      // Whatever it takes, one round is timed.
      const std::int64_t give_up = round == 0 ? before + first_round_ns : until_ + grace_ns;
      while (waiting_ > 0) {
        if (stopped || now_ns() > give_up) return;
        links_.turn(give_up,
                    [&](std::size_t i, const Flight& flight, const Answer& answer) {
                      if (take(flight, answer)) return;
                      links_[i].add(next_partition(), before);
                      ++waiting_;
                    });
      }
      if (refused_ > 0) die("refused: " + first_refusal_);
      note(now_ns() - before);
    }
  }

  double quantile_us(double share) const {
    if (took_.empty()) return 0;
    const auto at = static_cast<std::size_t>(static_cast<double>(took_.size()) * share);
    return took_[std::min(at, took_.size() - 1)] / 10.0;
  }

  void print() {
    std::sort(took_.begin(), took_.end());
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    const double seconds = static_cast<double>(std::max<std::int64_t>(last_ - began_, 1)) / 1e9;
    std::printf("{\"records\": %" PRId64 ", \"records_per_request\": %" PRId64
                ", \"seconds\": %.6f, \"cpu_seconds\": %.3f, \"retried\": %" PRId64
                ", \"refused\": %" PRId64
                ", \"unanswered\": %zu, \"samples\": %zu"
                ", \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f",
                accepted_, each_, seconds, cpu, retried_, refused_, waiting_, took_.size(),
                quantile_us(0.5), quantile_us(0.99), quantile_us(0.999), quantile_us(1));
    std::printf("}\n");
    if (refused_ > 0) std::fprintf(stderr, "refused: %s\n", first_refusal_.c_str());
  }

  const Options& options_;
  Links links_;
  const std::int64_t each_;  // records of a request
  std::int64_t next_;
  std::deque<std::int64_t> again_;  // partitions that were not ready
  std::int64_t began_ = 0, until_ = 0, last_ = 0, count_from_ = 0;
  std::int64_t accepted_ = 0, retried_ = 0, refused_ = 0;
  std::size_t waiting_ = 0;
  std::vector<std::uint32_t> took_;  // tenths of microseconds
  std::string first_refusal_;
};

Options parse(int count, char** words) {
  if (count < 4 || count % 2 != 0) die("usage: see the head of wire_load.cc");
  Options options;
  options.mode = words[1];
  options.host = words[2];
  options.port = static_cast<std::uint16_t>(std::atoi(words[3]));
  for (int i = 4; i + 1 < count; i += 2) {
    const std::string name = words[i];
    const std::int64_t number = std::strtoll(words[i + 1], nullptr, 10);
    const auto size = static_cast<std::size_t>(number);
    if (name == "--protocol")
      options.shape.protocol = words[i + 1];
    else if (name == "--topic")
      options.shape.topic = words[i + 1];
    else if (name == "--partitions")
      options.shape.partitions = number;
    else if (name == "--partitions-per-request")
      options.shape.partitions_per_request = number;
    else if (name == "--record-bytes")
      options.shape.record_bytes = size;
    else if (name == "--batch-bytes")
      options.shape.batch_bytes = size;
    else if (name == "--connections")
      options.connections = size;
    else if (name == "--in-flight")
      options.in_flight = size;
    else if (name == "--records")
      options.records = number;
    else if (name == "--first")
      options.first = number;
    else if (name == "--rounds")
      options.rounds = number;
    else if (name == "--rate")
      options.rate = std::atof(words[i + 1]);
    else if (name == "--seconds")
      options.seconds = std::atof(words[i + 1]);
    else
      die("no option " + name);
  }
  return options;
}

}  // namespace
}  // namespace load

int main(int count, char** words) {
  const load::Options options = load::parse(count, words);
  struct sigaction action{};
  action.sa_handler = [](int) { load::stopped = 1; };
  ::sigaction(SIGINT, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_TIMERSLACK, 1);  // a sleep of `rate` ends when it should
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (options.mode == "fetch") {
    load::fetch_all(options.host, options.port, options.shape, options.connections);
    return 0;
  }
  load::Load(options).run();
  return 0;
}
