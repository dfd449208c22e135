#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace polylog::server {

// A number that only rises. Any thread.
class Counter {
 public:
  void add(std::uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Everything the broker counts, as the Prometheus text format shows it (exposition format
// 0.0.4). Registration and text() happen on the reactor; counters are added to from any thread
// and stay where they are as long as the registry lives.
class Metrics {
 public:
  // `labels` is the text between the braces, `api="Fetch"`, or empty. Asking for a known name
  // and labels again returns the same counter. Shown as value * scale.
  Counter& counter(const std::string& name, const std::string& help,
                   const std::string& labels = "", double scale = 1);

  // Read when the text is made. `rises` tells Prometheus that it is a counter.
  void gauge(const std::string& name, const std::string& help, std::function<double()> read,
             const std::string& labels = "", bool rises = false);

  std::string text() const;

 private:
  struct Series {
    std::string labels;
    Counter* counter = nullptr;
    double scale = 1;
    std::function<double()> read;
  };
  struct Family {
    std::string help;
    bool rises = true;
    std::vector<Series> series;
  };
  std::map<std::string, Family> families_;
  std::deque<Counter> counters_;
};

// Registers resident memory, CPU time, open descriptors and start time of this process under
// the names that Prometheus' client libraries use.
void add_process_metrics(Metrics& metrics);

}  // namespace polylog::server
