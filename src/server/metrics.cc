#include "server/metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "server/heap.h"

namespace polylog::server {
namespace {

std::string number(double value) {
  char text[40];
  if (value == static_cast<double>(static_cast<std::int64_t>(value))) {
    std::snprintf(text, sizeof(text), "%lld",
                  static_cast<long long>(static_cast<std::int64_t>(value)));
  } else {
    std::snprintf(text, sizeof(text), "%.9g", value);
  }
  return text;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double open_descriptors() {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  double count = -3;  // ".", ".." and the descriptor that lists
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

}  // namespace

Counter& Metrics::counter(const std::string& name, const std::string& help,
                          const std::string& labels, double scale) {
  Family& family = families_[name];
  family.help = help;
  for (Series& series : family.series) {
    if (series.labels == labels && series.counter != nullptr) return *series.counter;
  }
  Series series;
  series.labels = labels;
  series.counter = &counters_.emplace_back();
  series.scale = scale;
  family.series.push_back(std::move(series));
  return *family.series.back().counter;
}

void Metrics::gauge(const std::string& name, const std::string& help,
                    std::function<double()> read, const std::string& labels, bool rises) {
  Family& family = families_[name];
  family.help = help;
  family.rises = rises;
  Series series;
  series.labels = labels;
  series.read = std::move(read);
  family.series.push_back(std::move(series));
}

std::string Metrics::text() const {
  std::string text;
  for (const auto& [name, family] : families_) {
    text += "# HELP " + name + " " + family.help + "\n";
    text += "# TYPE " + name + (family.rises ? " counter\n" : " gauge\n");
    for (const Series& series : family.series) {
      text += name;
      if (!series.labels.empty()) text += "{" + series.labels + "}";
      const double value = series.counter != nullptr
                               ? static_cast<double>(series.counter->value()) * series.scale
                               : series.read();
      text += " " + number(value) + "\n";
    }
  }
  return text;
}

void add_process_metrics(Metrics& metrics) {
  const auto started = std::chrono::system_clock::now().time_since_epoch();
  const double start_seconds = std::chrono::duration<double>(started).count();
  metrics.gauge("process_resident_memory_bytes", "Resident memory size in bytes.",
                [] { return static_cast<double>(resident_bytes()); });
  metrics.gauge("process_cpu_seconds_total", "Total user and system CPU time in seconds.",
                cpu_seconds, "", true);
  metrics.gauge("process_open_fds", "Number of open file descriptors.", open_descriptors);
  metrics.gauge("process_start_time_seconds", "Start of the process, seconds since 1970.",
                [start_seconds] { return start_seconds; });
}

}  // namespace polylog::server
