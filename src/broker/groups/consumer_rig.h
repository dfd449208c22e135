#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/groups/consumer_group.h"

// Topics, a clock and a log in memory for the tests of KIP-848 groups.
namespace polylog::broker::groups {

class FakeTopics final : public TopicView {
 public:
  void add(const std::string& name, std::int32_t partitions) {
    Uuid id;
    id.bytes[0] = 7;
    id.bytes[15] = static_cast<std::uint8_t>(++made_);
    id.bytes[14] = static_cast<std::uint8_t>(made_ >> 8);
    topics_[name] = {name, id, partitions};
  }
  void grow(const std::string& name, std::int32_t partitions) {
    topics_.at(name).partitions = partitions;
  }
  void remove(const std::string& name) { topics_.erase(name); }
  const std::map<std::string, TopicImage>& all() const { return topics_; }
  Uuid id(const std::string& name) const { return topics_.at(name).id; }

  std::optional<TopicImage> find(const std::string& name) const override {
    const auto topic = topics_.find(name);
    if (topic == topics_.end()) return std::nullopt;
    return topic->second;
  }
  std::optional<TopicImage> find(const Uuid& id) const override {
    for (const auto& [name, topic] : topics_) {
      if (topic.id == id) return topic;
    }
    return std::nullopt;
  }
  void each(const std::function<void(const TopicImage&)>& visit) const override {
    for (const auto& [name, topic] : topics_) visit(topic);
  }

 private:
  std::map<std::string, TopicImage> topics_;
  int made_ = 0;
};

struct ConsumerRig {
  ConsumerLimits limits;
  FakeTopics topics;
  Now now{1'000, 1'700'000'000'000};
  GroupRecords log;
  std::unique_ptr<ConsumerGroup> group = std::make_unique<ConsumerGroup>("orders", limits);

  GroupEvent event() { return {now, topics, log}; }
  void advance(std::int64_t ms) {
    now.steady_ms += ms;
    now.wall_ms += ms;
    const std::optional<std::int64_t> deadline = group->next_deadline_ms();
    if (deadline && *deadline <= now.steady_ms) group->on_time(event());
  }
  void topics_changed() { group->on_topics_changed(event()); }

  static ConsumerHeartbeat join_of(const std::string& member, std::vector<std::string> names) {
    ConsumerHeartbeat request;
    request.group = "orders";
    request.member_id = member;
    request.rebalance_timeout_ms = 60'000;
    request.topics = std::move(names);
    request.owned.emplace();
    request.names_itself = true;
    request.client_id = "app";
    request.client_host = "/127.0.0.1";
    return request;
  }
  static ConsumerHeartbeat beat_of(const std::string& member, std::int32_t epoch,
                                   std::optional<PartitionSet> owned = std::nullopt) {
    ConsumerHeartbeat request;
    request.group = "orders";
    request.member_id = member;
    request.member_epoch = epoch;
    request.owned = std::move(owned);
    request.names_itself = true;
    request.client_id = "app";
    request.client_host = "/127.0.0.1";
    return request;
  }
  ConsumerHeartbeatResult send(const ConsumerHeartbeat& request) {
    if (const Refusal why = check(request, limits)) {
      ConsumerHeartbeatResult result;
      result.error = why.error;
      return result;
    }
    return group->consumer_heartbeat(request, event());
  }
  ConsumerHeartbeatResult join(const std::string& member, std::vector<std::string> names) {
    return send(join_of(member, std::move(names)));
  }
  ConsumerHeartbeatResult beat(const std::string& member, std::int32_t epoch,
                               std::optional<PartitionSet> owned = std::nullopt) {
    return send(beat_of(member, epoch, std::move(owned)));
  }

  // What a load makes of the records written so far.
  std::unique_ptr<ConsumerGroup> loaded(const GroupRecords& records) const {
    auto copy = std::make_unique<ConsumerGroup>("orders", limits);
    for (const GroupRecord& record : records) {
      const auto key = format::kafka::decode_consumer_group_key(record.key);
      std::optional<ByteView> value;
      if (record.value) value = ByteView(*record.value);
      const std::int64_t written_ms = record.timestamp_ms < 0 ? now.wall_ms : record.timestamp_ms;
      if (!key || !copy->replay(*key, value, written_ms)) return nullptr;
    }
    copy->loaded(now);
    return copy;
  }
  GroupRecords snapshot_of(const ConsumerGroup& of) const {
    GroupRecords out;
    of.snapshot(out, now);
    return out;
  }
};

inline bool operator==(const GroupRecord& a, const GroupRecord& b) {
  return a.key == b.key && a.value == b.value;
}

}  // namespace polylog::broker::groups
