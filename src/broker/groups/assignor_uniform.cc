#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "broker/groups/assignor.h"

namespace polylog::broker::groups {
namespace {

using Index = std::size_t;  // of a member, in the order of their ids
constexpr Index nobody = SIZE_MAX;

// One topic at work: who wants it and who has which partition of it.
struct TopicShare {
  Uuid topic;
  std::vector<Index> subscribers;
  std::vector<Index> owners;  // by partition
};

class Uniform {
 public:
  explicit Uniform(const AssignorInput& input) : input_(input) {
    for (const auto& entry : input.members) members_.push_back(&entry);
    loads_.resize(members_.size());
    collect_topics();
    keep_current();
  }

  TargetAssignment run() {
    if (homogeneous()) {
      trim_to_quota();
    }
    hand_out();
    if (!homogeneous()) balance();
    return target();
  }

 private:
  bool homogeneous() const {
    return std::all_of(topics_.begin(), topics_.end(), [this](const TopicShare& share) {
      return share.subscribers.size() == members_.size();
    });
  }

  void collect_topics() {
    std::map<Uuid, std::vector<Index>> subscribers;
    for (Index i = 0; i < members_.size(); ++i) {
      for (const Uuid& topic : members_[i]->second.topics) subscribers[topic].push_back(i);
    }
    for (auto& [topic, wanting] : subscribers) {
      const auto partitions = static_cast<std::size_t>(input_.partitions.at(topic));
      by_topic_.emplace(topic, topics_.size());
      topics_.push_back({topic, std::move(wanting), std::vector<Index>(partitions, nobody)});
    }
  }

  // What somebody has, still wants and still exists stays with them for the time being.
  void keep_current() {
    for (Index i = 0; i < members_.size(); ++i) {
      for (const auto& [topic, partitions] : members_[i]->second.current) {
        if (!members_[i]->second.topics.contains(topic)) continue;
        TopicShare& share = topics_[by_topic_.at(topic)];
        for (const std::int32_t partition : partitions) {
          const auto at = static_cast<std::size_t>(partition);
          if (at < share.owners.size() && share.owners[at] == nobody) give(share, at, i);
        }
      }
    }
  }

  void give(TopicShare& share, std::size_t partition, Index to) {
    Index& owner = share.owners[partition];
    if (owner != nobody) --loads_[owner];
    owner = to;
    if (to != nobody) ++loads_[to];
  }

  // Everybody wants everything: those who have most already may have one more than the rest, and
  // what is above that is taken away. Which partitions go does not matter for the balance; the
  // last ones do.
  void trim_to_quota() {
    std::size_t total = 0;
    for (const TopicShare& share : topics_) total += share.owners.size();
    const std::size_t least = total / members_.size();
    std::size_t with_one_more = total % members_.size();

    std::vector<Index> order(members_.size());
    for (Index i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [this](Index a, Index b) {
      return loads_[a] != loads_[b] ? loads_[a] > loads_[b] : a < b;
    });
    quotas_.assign(members_.size(), least);
    for (const Index i : order) {
      if (with_one_more == 0) break;
      ++quotas_[i];
      --with_one_more;
    }
    for (auto share = topics_.rbegin(); share != topics_.rend(); ++share) {
      for (std::size_t at = share->owners.size(); at-- > 0;) {
        const Index owner = share->owners[at];
        if (owner != nobody && loads_[owner] > quotas_[owner]) give(*share, at, nobody);
      }
    }
  }

  // Gives what nobody has to who has least; topics with few takers first, while there is a choice.
  void hand_out() {
    std::vector<TopicShare*> order;
    for (TopicShare& share : topics_) order.push_back(&share);
    std::sort(order.begin(), order.end(), [](const TopicShare* a, const TopicShare* b) {
      const auto takers = a->subscribers.size() <=> b->subscribers.size();
      return takers != 0 ? takers < 0 : a < b;  // both lie in topics_
    });
    for (TopicShare* share : order) {
      std::set<std::pair<std::size_t, Index>> least_first;
      for (const Index i : share->subscribers) least_first.emplace(loads_[i], i);
      for (std::size_t at = 0; at < share->owners.size(); ++at) {
        if (share->owners[at] != nobody) continue;
        const auto [load, i] = *least_first.begin();
        least_first.erase(least_first.begin());
        give(*share, at, i);
        least_first.emplace(load + 1, i);
      }
    }
  }

  // Moves partitions from who has most to who has least, topic by topic, until no move of one
  // partition makes it more even. Every move lowers the sum of the squares of the loads, so this
  // ends; the limit on the rounds keeps a large group from stalling the reactor.
  void balance() {
    constexpr int rounds_max = 16;
    for (int round = 0; round < rounds_max; ++round) {
      bool moved = false;
      for (TopicShare& share : topics_) moved |= balance(share);
      if (!moved) return;
    }
  }

  bool balance(TopicShare& share) {
    if (share.subscribers.size() < 2) return false;
    std::map<Index, std::vector<std::size_t>> partitions;
    for (std::size_t at = 0; at < share.owners.size(); ++at) {
      partitions[share.owners[at]].push_back(at);
    }
    std::set<std::pair<std::size_t, Index>> all, owning;
    for (const Index i : share.subscribers) {
      all.emplace(loads_[i], i);
      if (partitions.contains(i)) owning.emplace(loads_[i], i);
    }
    bool moved = false;
    while (!owning.empty()) {
      const auto [most, from] = *owning.rbegin();
      const auto [least, to] = *all.begin();
      if (most < least + 2) break;
      const std::size_t at = partitions[from].back();
      partitions[from].pop_back();
      give(share, at, to);
      moved = true;
      owning.erase({most, from});
      owning.erase({least, to});
      all.erase({most, from});
      all.erase({least, to});
      all.emplace(most - 1, from);
      all.emplace(least + 1, to);
      // What was moved here stays here: it is not among the partitions that may go on.
      if (!partitions[from].empty()) owning.emplace(most - 1, from);
      if (!partitions[to].empty()) owning.emplace(least + 1, to);
    }
    return moved;
  }

  TargetAssignment target() const {
    TargetAssignment target;
    for (const auto* member : members_) target.try_emplace(member->first);
    for (const TopicShare& share : topics_) {
      for (std::size_t at = 0; at < share.owners.size(); ++at) {
        std::set<std::int32_t>& mine = target[members_[share.owners[at]]->first][share.topic];
        mine.insert(mine.end(), static_cast<std::int32_t>(at));
      }
    }
    return target;
  }

  const AssignorInput& input_;
  std::vector<std::map<std::string, AssignorMember>::const_pointer> members_;
  std::vector<std::size_t> loads_;  // partitions each has
  std::vector<std::size_t> quotas_;
  std::vector<TopicShare> topics_;
  std::map<Uuid, std::size_t> by_topic_;
};

}  // namespace

TargetAssignment assign_uniform(const AssignorInput& input) {
  if (input.members.empty()) return {};
  return Uniform(input).run();
}

}  // namespace polylog::broker::groups
