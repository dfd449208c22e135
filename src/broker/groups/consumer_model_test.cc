#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

#include "broker/groups/consumer_rig.h"

// Random members, subscriptions, topics, lost answers and pauses against one group. Clients behave
// as Kafka's do: of what they are told they give up first, and say so before they get more.
namespace polylog::broker::groups {
namespace {

struct ModelClient {
  std::string id;
  std::optional<std::string> instance_id;
  bool classic = false;
  bool eager = false;  // a classic one that gives up everything when it joins
  std::set<std::string> topics;
  std::string expression;
  std::int32_t epoch = 0;
  PartitionSet owned;
  std::optional<PartitionSet> wanted;  // told, and not yet acted upon
  bool says_all = true;
  bool owned_changed = false;
  bool joins = true;  // classic: JoinGroup comes next
  std::int64_t heard_ms = 0;
  std::int64_t told_ms = 0;  // when it was given something to do that it has not done
};

std::size_t size_of(const PartitionSet& partitions) {
  std::size_t size = 0;
  for (const auto& [id, mine] : partitions) size += mine.size();
  return size;
}

PartitionSet common(const PartitionSet& a, const PartitionSet& b) {
  PartitionSet both;
  for (const auto& [topic, mine] : a) {
    const auto other = b.find(topic);
    if (other == b.end()) continue;
    for (const std::int32_t partition : mine) {
      if (other->second.contains(partition)) both[topic].insert(partition);
    }
  }
  return both;
}

class Model : public ConsumerRig {
 public:
  explicit Model(unsigned seed, bool with_classic) : random_(seed), with_classic_(with_classic) {
    limits.assignment_interval_ms = pick(0, 1) == 0 ? 0 : 1'000;
    for (int i = 0; i < 3; ++i) topics.add("t" + std::to_string(i), pick(1, 6));
  }

  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  void step() {
    const int what = pick(0, 99);
    if (what < 8 && clients_.size() < 8) {
      add_client();
    } else if (what < 11) {
      leave();
    } else if (what < 15) {
      change_topics();
    } else if (what < 19) {
      change_subscription();
    } else if (what < 21) {
      reload();
    } else if (what < 26) {
      pause();
    } else if (what < 45) {
      act_on_wanted();
    } else {
      advance(pick(0, 2'000));
      forget_the_expired();
      beat_any(pick(0, 9) == 0);
    }
    check_invariants();
  }

  // Longer than the session of a static member that left for a while and whose client ended
  // before it came back.
  void quiet() {
    for (int round = 0; round < 120; ++round) {
      for (auto& client : clients_) {
        if (client->wanted) adopt(*client);
        beat(*client, false);
        check_invariants();
      }
      advance(500);
    }
  }

  void expect_settled() {
    if (clients_.empty()) return;
    EXPECT_EQ(group->state_name(), "Stable");
    std::map<Uuid, std::set<std::int32_t>> given;
    std::size_t least = SIZE_MAX, most = 0;
    std::set<std::set<std::string>> subscriptions;
    for (const auto& client : clients_) {
      EXPECT_EQ(client->owned, without_epochs(group->members().at(client->id).assigned));
      least = std::min(least, size_of(client->owned));
      most = std::max(most, size_of(client->owned));
      subscriptions.insert(names_of(*client));
      for (const auto& [topic, mine] : client->owned) {
        for (const std::int32_t partition : mine) given[topic].insert(partition);
      }
    }
    for (const auto& client : clients_) {
      for (const std::string& name : names_of(*client)) {
        EXPECT_EQ(given[topics.id(name)].size(),
                  static_cast<std::size_t>(topics.all().at(name).partitions));
      }
    }
    if (subscriptions.size() == 1) {
      EXPECT_LE(most - least, 1U);
    }
  }

 private:
  std::set<std::string> names_of(const ModelClient& client) const {
    std::set<std::string> names;
    for (const std::string& name : client.topics) {
      if (topics.all().contains(name)) names.insert(name);
    }
    if (client.expression.empty()) return names;
    const auto pattern = TopicPattern::compile(client.expression);
    for (const auto& [name, topic] : topics.all()) {
      if (pattern->matches(name)) names.insert(name);
    }
    return names;
  }

  void subscribe(ModelClient& client) {
    client.topics.clear();
    client.expression.clear();
    if (!client.classic && pick(0, 3) == 0) {
      client.expression = pick(0, 1) == 0 ? "t.*" : "t[01]";
      return;
    }
    for (int i = 0; i < 3; ++i) {
      if (pick(0, 2) > 0) client.topics.insert("t" + std::to_string(i));
    }
  }

  void add_client() {
    auto client = std::make_unique<ModelClient>();
    client->id = "m" + std::to_string(++made_);
    client->classic = with_classic_ && pick(0, 1) == 0;
    client->eager = pick(0, 1) == 0;
    if (!client->classic && pick(0, 3) == 0) client->instance_id = "i" + std::to_string(made_);
    subscribe(*client);
    client->heard_ms = now.steady_ms;
    client->told_ms = now.steady_ms;
    clients_.push_back(std::move(client));
    beat(*clients_.back(), false);
  }

  ModelClient* any() {
    if (clients_.empty()) return nullptr;
    return clients_[static_cast<std::size_t>(pick(0, static_cast<int>(clients_.size()) - 1))].get();
  }

  void leave() {
    ModelClient* client = any();
    if (client == nullptr) return;
    if (client->classic) {
      group->leave({"orders", {{client->id, std::nullopt}}}, event());
    } else {
      const bool comes_back = client->instance_id && pick(0, 1) == 0;
      ConsumerHeartbeat request =
          beat_of(client->id, comes_back ? leave_static_epoch : leave_epoch);
      request.instance_id = client->instance_id;
      const auto left = send(request);
      if (comes_back && left.error == GroupError::none) {
        // A new process under the same instance id.
        forget(*client);
        client->id = "m" + std::to_string(++made_);
        return;
      }
    }
    std::erase_if(clients_, [client](const auto& one) { return one.get() == client; });
  }

  void change_topics() {
    const std::string name = "t" + std::to_string(pick(0, 2));
    if (!topics.all().contains(name)) {
      topics.add(name, pick(1, 6));
    } else if (pick(0, 2) == 0) {
      topics.remove(name);
    } else {
      topics.grow(name, topics.all().at(name).partitions + pick(1, 2));
    }
    topics_changed();
  }

  void change_subscription() {
    ModelClient* client = any();
    if (client == nullptr) return;
    subscribe(*client);
    client->says_all = true;
    client->joins = true;
  }

  void reload() {
    group = loaded(log);
    ASSERT_NE(group, nullptr);
  }

  void pause() {
    advance(pick(1, 60) * 1'000);
    forget_the_expired();
  }

  // A client that was not heard of for a session's time gives up what it had, and so does one that
  // does not get done what it was told to (Kafka's max.poll.interval.ms).
  void forget_the_expired() {
    for (auto& client : clients_) {
      const bool has_work = client->wanted || client->owned_changed || client->joins;
      if (!has_work) client->told_ms = now.steady_ms;
      const bool late = now.steady_ms - client->told_ms >= 15'000;
      if (late || now.steady_ms - client->heard_ms >= 40'000) forget(*client);
    }
  }

  void act_on_wanted() {
    ModelClient* client = any();
    if (client != nullptr && client->wanted) adopt(*client);
  }

  void adopt(ModelClient& client) {
    const PartitionSet wanted = *std::exchange(client.wanted, std::nullopt);
    client.owned = wanted;
    client.owned_changed = true;
  }

  void forget(ModelClient& client) {
    client.epoch = 0;
    client.owned_changed = false;
    client.told_ms = now.steady_ms;
    client.owned.clear();
    client.wanted.reset();
    client.says_all = true;
    client.joins = true;
  }

  void beat_any(bool answer_lost) {
    ModelClient* client = any();
    if (client != nullptr) beat(*client, answer_lost);
  }

  void beat(ModelClient& client, bool answer_lost) {
    if (client.classic) return classic_beat(client, answer_lost);
    ConsumerHeartbeat request = beat_of(client.id, client.epoch);
    request.instance_id = client.instance_id;
    if (client.says_all || client.epoch == 0) {
      request.rebalance_timeout_ms = 60'000;
      request.topics.emplace(client.topics.begin(), client.topics.end());
      request.expression = client.expression;
      request.owned = client.epoch == 0 ? PartitionSet{} : client.owned;
      client.wanted.reset();  // what it reports is what it has; the answer says all anew
    } else if (client.owned_changed && !client.wanted) {
      request.owned = client.owned;
    }
    const auto answer = send(request);
    if (answer_lost) {
      client.says_all = true;
      return;
    }
    if (answer.error == GroupError::unreleased_instance_id) return;
    if (answer.error != GroupError::none) {
      EXPECT_TRUE(answer.error == GroupError::unknown_member_id ||
                  answer.error == GroupError::fenced_member_epoch)
          << static_cast<int>(answer.error);
      forget(client);
      return;
    }
    client.heard_ms = now.steady_ms;
    client.says_all = false;
    if (request.owned) client.owned_changed = false;
    client.epoch = answer.member_epoch;
    EXPECT_GT(answer.member_epoch, 0);
    if (!answer.assignment) return;
    client.wanted = *answer.assignment;
    // Giving up is the first thing it does, though it may take its time to say so.
    client.owned = common(client.owned, *client.wanted);
    client.owned_changed = true;
  }

  JoinRequest join_of_classic(const ModelClient& client) const {
    format::kafka::ConsumerSubscription subscription;
    subscription.version = client.eager ? 0 : 3;
    subscription.topics.assign(client.topics.begin(), client.topics.end());
    for (const auto& [id, partitions] : client.owned) {
      const auto topic = topics.find(id);
      if (topic)
        subscription.owned.push_back({topic->name, {partitions.begin(), partitions.end()}});
    }
    JoinRequest request;
    request.group = "orders";
    request.member_id = client.id;
    request.session_timeout_ms = 45'000;
    request.rebalance_timeout_ms = 60'000;
    request.protocol_type = "consumer";
    request.protocols = {{"range", format::kafka::encode(subscription)}};
    return request;
  }

  void classic_beat(ModelClient& client, bool answer_lost) {
    if (!client.joins) {
      HeartbeatRequest request{"orders", client.id, std::nullopt, client.epoch};
      const GroupError error = group->heartbeat(request, event());
      if (answer_lost) return;
      if (error == GroupError::none) client.heard_ms = now.steady_ms;
      if (error == GroupError::rebalance_in_progress) {
        client.joins = true;
      } else if (error != GroupError::none) {
        forget(client);
      }
      if (!client.joins) return;
    }
    if (client.eager) client.owned.clear();
    JoinResult joined;
    group->join(
        join_of_classic(client), [&](JoinResult result) { joined = std::move(result); }, event());
    if (answer_lost) return;
    if (joined.error != GroupError::none) {
      ADD_FAILURE() << "join: " << static_cast<int>(joined.error);
      return;
    }
    client.heard_ms = now.steady_ms;
    client.epoch = joined.generation;
    SyncRequest sync;
    sync.group = "orders";
    sync.member_id = client.id;
    sync.generation = client.epoch;
    SyncResult synced;
    group->sync(std::move(sync), [&](SyncResult result) { synced = std::move(result); }, event());
    if (synced.error != GroupError::none) return;  // it joins again
    const auto assignment = format::kafka::decode_assignment(synced.assignment);
    ASSERT_TRUE(assignment);
    PartitionSet got;
    for (const auto& topic : assignment->partitions) {
      got[topics.id(topic.topic)] = {topic.partitions.begin(), topic.partitions.end()};
    }
    // A cooperative one that had to give something up joins again to say so.
    client.joins = !client.eager && common(client.owned, got) != client.owned;
    client.owned = std::move(got);
  }

  void check_invariants() {
    std::map<std::pair<Uuid, std::int32_t>, std::string> owners;
    for (const auto& client : clients_) {
      for (const auto& [topic, partitions] : client->owned) {
        for (const std::int32_t partition : partitions) {
          const auto [owner, added] = owners.try_emplace({topic, partition}, client->id);
          ASSERT_TRUE(added) << "partition " << partition << " is at " << owner->second << " and "
                             << client->id;
        }
      }
    }
    ASSERT_GE(group->epoch(), epoch_);
    epoch_ = group->epoch();
    ASSERT_LE(group->assignment_epoch(), group->epoch());
    if (++checks_ % 10 != 0) return;
    const auto copy = loaded(log);
    ASSERT_NE(copy, nullptr);
    ASSERT_TRUE(snapshot_of(*copy) == snapshot_of(*group)) << "a load would make it another group";
  }

  std::mt19937 random_;
  const bool with_classic_;
  int made_ = 0;
  int checks_ = 0;
  std::int32_t epoch_ = 0;
  std::vector<std::unique_ptr<ModelClient>> clients_;
};

void run(unsigned seed, bool with_classic) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Model model(seed, with_classic);
  for (int i = 0; i < 150 && !testing::Test::HasFailure(); ++i) model.step();
  if (testing::Test::HasFailure()) return;
  model.quiet();
  model.expect_settled();
}

// POLYLOG_MODEL_SEEDS sets how many.
unsigned seeds() {
  const char* const given = std::getenv("POLYLOG_MODEL_SEEDS");
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 150;
}

TEST(ConsumerModel, no_partition_has_two_owners_and_everything_settles) {
  for (unsigned seed = 1; seed <= seeds() && !HasFailure(); ++seed) run(seed, false);
}

TEST(ConsumerModel, classic_members_among_them_keep_to_the_same) {
  for (unsigned seed = 1; seed <= seeds() && !HasFailure(); ++seed) run(1000 + seed, true);
}

}  // namespace
}  // namespace polylog::broker::groups
