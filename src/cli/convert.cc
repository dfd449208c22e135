#include "cli/convert.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "broker/topic_config.h"
#include "cli/convert_progress.h"
#include "cli/interrupt.h"
#include "cli/read_settings.h"
#include "convert/convert.h"
#include "fs/posix_file_system.h"
#include "server/heap.h"

namespace polylog::cli {
namespace {

using Steady = std::chrono::steady_clock;

double seconds_since(Steady::time_point start) {
  return std::chrono::duration<double>(Steady::now() - start).count();
}

// A line about once a second, on stderr.
class ProgressLines {
 public:
  void show(const convert::Progress& progress) {
    const Steady::time_point now = Steady::now();
    if (!begun_ || progress.phase != phase_) {
      begun_ = true;
      phase_ = progress.phase;
      started_ = shown_ = now;
      first_ = progress.offsets_done;
    }
    if (now - shown_ < std::chrono::seconds(1)) return;
    shown_ = now;
    std::fprintf(stderr, "%s\n", progress_text(progress, seconds_since(started_), first_).c_str());
  }

 private:
  bool begun_ = false;
  convert::Progress::Phase phase_ = convert::Progress::Phase::copying;
  Steady::time_point started_, shown_;
  std::uint64_t first_ = 0;
};

void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

convert::Engines engines_by_layout(const Engines& engines) {
  convert::Engines by_layout;
  if (engines.kafka != nullptr) by_layout[storage::Layout::kafka] = engines.kafka;
  if (engines.rocketmq != nullptr) by_layout[storage::Layout::rocketmq] = engines.rocketmq;
  if (engines.segment != nullptr) by_layout[storage::Layout::segment] = engines.segment;
  return by_layout;
}

}  // namespace

int convert(const ConvertOptions& options, const Engines& engines) {
  fs::PosixFileSystem fs;
  const SystemClock clock;
  convert::Options wanted;
  wanted.source = options.source;
  wanted.target = options.target;
  const auto layout = broker::parse_layout(options.layout);
  if (!layout) return complain("--layout takes kafka, rocketmq or segment", exit_usage);
  wanted.layout = *layout;
  auto settings = read_settings(fs, options.config, options.set);
  if (!settings) return complain(settings.error().context, exit_usage);
  wanted.settings = std::move(*settings);
  wanted.exclude.insert(options.exclude.begin(), options.exclude.end());
  for (const std::string& pair : options.topics) {
    const std::size_t equals = pair.find('=');
    const bool good =
        equals != std::string::npos && equals > 0 && equals + 1 < pair.size() &&
        wanted.topic_names.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second;
    if (!good) return complain("--topic " + pair + ": takes ID=NAME, once for an id", exit_usage);
  }
  wanted.kafka_metadata = options.kafka_metadata;
  wanted.verify_only = options.verify_only;
  ProgressLines lines;
  if (!options.quiet) {
    wanted.progress = [&](const convert::Progress& progress) { lines.show(progress); };
    wanted.note = [](const std::string& line) { std::fprintf(stderr, "note: %s\n", line.c_str()); };
  }
  wanted.stop = [] { return interrupted(); };
  raise_open_files();
  server::keep_freed_memory();
  catch_interrupts();
  const Steady::time_point started = Steady::now();
  const auto summary = convert::convert(fs, clock, engines_by_layout(engines), wanted);
  if (!summary) return complain(summary.error().context);
  if (!options.quiet) {
    std::fprintf(
        stderr, "%s\n",
        summary_text(*summary, options.target, options.layout, seconds_since(started)).c_str());
  }
  return exit_done;
}

}  // namespace polylog::cli
