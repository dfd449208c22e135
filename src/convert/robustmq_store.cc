#include "convert/robustmq_store.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "convert/robustmq_shard.h"

namespace polylog::convert {
namespace {

constexpr storage::Traits robustmq_traits{BatchFormat::segment, false, false, false};

std::vector<std::string> shards_in(const fs::FileSystem& fs, const std::string& path) {
  std::vector<std::string> shards;
  const auto names = fs.list(path);
  if (!names) return shards;
  for (const std::string& name : *names) {
    const auto files = fs.list(fs::join(path, name));  // an error where it is no directory
    if (files && std::any_of(files->begin(), files->end(), [](const std::string& file) {
          return parse_robustmq_file(file).has_value();
        })) {
      shards.push_back(name);
    }
  }
  return shards;
}

tl::unexpected<Error> read_only() {
  return fail(Errc::unsupported, "RobustMQ's files are only read here");
}

}  // namespace

bool is_robustmq_directory(const fs::FileSystem& fs, const std::string& path) {
  return !shards_in(fs, path).empty();
}

TopicPartition parse_robustmq_shard(const std::string& shard) {
  const std::size_t dash = shard.rfind('-');
  std::int32_t partition = 0;
  if (dash == std::string::npos || dash == 0) return {shard, 0};
  const std::string digits = shard.substr(dash + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), partition);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || partition < 0 || std::to_string(partition) != digits) return {shard, 0};
  return {shard.substr(0, dash), partition};
}

Result<storage::Opened> RobustmqStore::open(fs::FileSystem& fs, const std::string& directory,
                                            const TopicNames& names) {
  auto store = std::make_unique<RobustmqStore>();
  storage::Recovery report;
  std::set<std::string> ids;
  for (const std::string& shard : shards_in(fs, directory)) {
    TopicPartition id = parse_robustmq_shard(shard);
    ids.insert(id.topic);
    if (const auto named = names.find(id.topic); named != names.end()) id.topic = named->second;
    const std::string path = fs::join(directory, shard);
    POLYLOG_ASSIGN(opened, RobustmqShard::open(fs, path, report.notes));
    report.bytes_scanned += opened->size_bytes();
    if (!store->shards_.emplace(id, std::move(opened)).second) {
      return fail(Errc::invalid, path + ": another shard is partition " +
                                     std::to_string(id.partition) + " of topic " + id.topic +
                                     " already");
    }
  }
  for (const auto& [id, name] : names) {
    if (ids.contains(id)) continue;
    return fail(Errc::invalid, "--topic " + id + "=" + name + ": no shard is named after " + id);
  }
  report.partitions = store->shards_.size();
  return storage::Opened{std::move(store), std::move(report)};
}

const storage::Traits& RobustmqStore::traits() const { return robustmq_traits; }

std::shared_ptr<storage::PartitionLog> RobustmqStore::find(const TopicPartition& id) const {
  const auto found = shards_.find(id);
  return found == shards_.end() ? nullptr : found->second;
}

std::vector<TopicPartition> RobustmqStore::partitions() const {
  std::vector<TopicPartition> all;
  all.reserve(shards_.size());
  for (const auto& [id, shard] : shards_) all.push_back(id);
  return all;
}

Result<std::shared_ptr<storage::PartitionLog>> RobustmqStore::create(const TopicPartition&,
                                                                     const Uuid&,
                                                                     const storage::LogConfig&) {
  return read_only();
}
Result<void> RobustmqStore::remove(const TopicPartition&) { return read_only(); }
Result<storage::Retained> RobustmqStore::retain(const TopicPartition&, Offset, Timestamp) {
  return read_only();
}

}  // namespace polylog::convert
