#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "broker/settings.h"
#include "convert/data_directory.h"
#include "fs/file_system.h"
#include "storage/store.h"

// `polylog convert`: a stopped data directory into a new one in another layout.
namespace polylog::convert {

struct Progress {
  enum class Phase { copying, comparing };
  Phase phase = Phase::copying;
  std::uint64_t offsets_done = 0, offsets_total = 0;
  std::uint64_t bytes_done = 0;
  std::uint64_t partitions_done = 0, partitions_total = 0;
};

struct Options {
  std::string source;
  std::string target;
  storage::Layout layout = storage::Layout::kafka;
  broker::Settings settings;      // those the broker will run with
  std::set<std::string> exclude;  // topics to leave out
  TopicNames topic_names;         // for RobustMQ's topics, by their ids
  std::string kafka_metadata;     // Kafka's metadata.log.dir where it is not the source
  bool verify_only = false;       // compares, and writes nothing
  std::function<void(const Progress&)> progress;
  std::function<void(const std::string&)> note;
  std::function<bool()> stop;  // asked now and then: true ends the work, to be gone on with later
};

struct Summary {
  std::uint64_t topics = 0;
  std::uint64_t partitions = 0;
  std::uint64_t records = 0;
  std::uint64_t offsets_without_record = 0;
  std::uint64_t bytes_copied = 0;   // in this run
  std::uint64_t group_offsets = 0;  // that were RocketMQ's
  bool resumed = false;
};

// `fs`, `clock` and `engines` outlive the call. The target is finished when this returns a summary:
// everything in it was compared with the source. After an error it stays unfinished, a run with the
// same options goes on with it, and the broker refuses it.
// invalid: not to be converted so, with the reason; locked: somebody runs on one of the two;
// unsupported, too_large: the layout can't hold what the context names; timed_out: stopped.
Result<Summary> convert(fs::FileSystem& fs, const Clock& clock, const Engines& engines,
                        const Options& options);

}  // namespace polylog::convert
