#include <algorithm>
#include <utility>

#include "broker/groups/coordinator_impl.h"

// Committed offsets: commits, fetches and deletions.
namespace polylog::broker::groups {
namespace {

CommitResult one_for_all(const CommitRequest& request, GroupError error) {
  CommitResult result;
  for (const CommitTopic& topic : request.topics) {
    result.topics.emplace_back(topic.partitions.size(), error);
  }
  return result;
}

// Fills in names and ids, and says which partitions there are. False: none of them.
bool look_up(const TopicView& topics, CommitRequest& request, CommitResult& result) {
  bool any = false;
  for (std::size_t t = 0; t < request.topics.size(); ++t) {
    CommitTopic& topic = request.topics[t];
    const auto image = request.by_id ? topics.find(topic.id) : topics.find(topic.name);
    for (std::size_t p = 0; p < topic.partitions.size(); ++p) {
      GroupError& error = result.topics[t][p];
      if (!image) {
        error =
            request.by_id ? GroupError::unknown_topic_id : GroupError::unknown_topic_or_partition;
        continue;
      }
      const std::int32_t partition = topic.partitions[p].partition;
      if (partition < 0 || partition >= image->partitions) {
        error = GroupError::unknown_topic_or_partition;
      }
      any = any || error == GroupError::none;
    }
    if (!image) continue;
    topic.name = image->name;
    topic.id = image->id;
  }
  return any;
}

void fail_rest(CommitResult& result, GroupError error) {
  for (auto& partitions : result.topics) {
    for (GroupError& its : partitions) {
      if (its == GroupError::none) its = error;
    }
  }
}

// Offsets of one group, and whatever of them was asked for.
FetchedTopic fetched(const GroupOffsets* offsets, std::string name, const Uuid& id,
                     const std::vector<std::int32_t>& partitions) {
  FetchedTopic topic{std::move(name), id, {}};
  for (const std::int32_t partition : partitions) {
    FetchedOffset& out = topic.partitions.emplace_back();
    out.partition = partition;
    const CommittedOffset* const committed =
        offsets == nullptr ? nullptr : offsets->find(topic.name, partition);
    if (committed != nullptr) out.committed = *committed;
  }
  return topic;
}

FetchedTopic not_fetched(const FetchOffsetsTopic& asked, GroupError error) {
  FetchedTopic topic{asked.name, asked.id, {}};
  for (const std::int32_t partition : asked.partitions) {
    topic.partitions.push_back({partition, error, std::nullopt});
  }
  return topic;
}

FetchOffsetsResult fetch_from(const GroupOffsets* offsets, const FetchOffsetsRequest& request,
                              const TopicView& topics) {
  FetchOffsetsResult result;
  if (request.topics) {
    for (const FetchOffsetsTopic& asked : *request.topics) {
      const auto image = request.by_id ? topics.find(asked.id) : std::nullopt;
      if (request.by_id && !image) {
        result.topics.push_back(not_fetched(asked, GroupError::unknown_topic_id));
        continue;
      }
      result.topics.push_back(
          fetched(offsets, image ? image->name : asked.name, asked.id, asked.partitions));
    }
    return result;
  }
  if (offsets == nullptr) return result;
  for (const auto& [name, partitions] : offsets->topics()) {
    const auto image = topics.find(name);
    if (request.by_id && !image) continue;  // it has no id to be told by
    FetchedTopic topic{name, image ? image->id : Uuid(), {}};
    for (const auto& [partition, committed] : partitions) {
      topic.partitions.push_back({partition, GroupError::none, committed});
    }
    result.topics.push_back(std::move(topic));
  }
  return result;
}

}  // namespace

void Coordinator::Impl::commit_to(Shard& shard, GroupEntry& entry, const CommitRequest& request,
                                  CommitResult& result) {
  const std::int64_t now_ms = now().wall_ms;
  for (std::size_t t = 0; t < request.topics.size(); ++t) {
    const CommitTopic& topic = request.topics[t];
    for (std::size_t p = 0; p < topic.partitions.size(); ++p) {
      GroupError& error = result.topics[t][p];
      if (error != GroupError::none) continue;
      const CommitPartition& asked = topic.partitions[p];
      if (static_cast<std::int64_t>(asked.metadata.size()) > settings.offset_metadata_bytes_max) {
        error = GroupError::offset_metadata_too_large;
        continue;
      }
      error = entry.group->check_commit_partition(request, topic.id, asked.partition);
      if (error != GroupError::none) continue;
      CommittedOffset offset;
      offset.offset = asked.offset;
      offset.leader_epoch = asked.leader_epoch;
      offset.metadata = asked.metadata;
      offset.committed_ms = now_ms;
      // A client may ask for as long as its number can say.
      if (request.retention_ms >= 0) {
        offset.expires_ms = now_ms + std::min(request.retention_ms, INT64_MAX - now_ms);
      }
      offset.topic_id = topic.id;
      entry.offsets.commit(topic.name, asked.partition, std::move(offset), shard.records());
      ++stats.commits;
    }
  }
}

void Coordinator::commit(CommitRequest request, std::function<void(CommitResult)> done) {
  Shard* shard = nullptr;
  if (const GroupError error = impl_->route(request.group, shard); error != GroupError::none) {
    return done(one_for_all(request, error));
  }
  CommitResult result = one_for_all(request, GroupError::none);
  const bool any = look_up(impl_->topics, request, result);
  GroupEntry* entry = shard->find(request.group);
  const bool known = entry != nullptr;
  if (any && !known) {
    if (request.generation < 0) {
      entry = &impl_->make_classic(*shard, request.group);
    } else {
      fail_rest(result, request.knows_epochs ? GroupError::group_id_not_found
                                             : GroupError::illegal_generation);
    }
  }
  if (any && entry != nullptr) {
    const GroupError error = entry->group->check_commit(request, impl_->event(*shard));
    if (error == GroupError::none) {
      impl_->commit_to(*shard, *entry, request, result);
      // A commit that was refused makes no group.
      if (!known && entry->offsets.empty()) shard->erase(request.group);
    } else {
      fail_rest(result, error);
    }
  }
  const std::string group = request.group;
  shard->answer([done = std::move(done), result = std::move(result)](GroupError error) mutable {
    if (error != GroupError::none) fail_rest(result, error);
    done(std::move(result));
  });
  shard->finish(group);
}

void Coordinator::fetch(FetchOffsetsRequest request, std::function<void(FetchOffsetsResult)> done) {
  FetchOffsetsResult result;
  Shard* shard = nullptr;
  result.error = impl_->route(request.group, shard);
  if (result.error != GroupError::none) return done(std::move(result));
  const GroupEntry* const entry = shard->find(request.group);
  if (entry != nullptr) result.error = entry->group->check_fetch(request);
  if (result.error == GroupError::none) {
    result = fetch_from(entry == nullptr ? nullptr : &entry->offsets, request, impl_->topics);
  }
  shard->kept(std::move(done))(std::move(result));
  shard->finish(request.group);
}

void Coordinator::delete_offsets(OffsetDeleteRequest request,
                                 std::function<void(OffsetDeleteResult)> done) {
  OffsetDeleteResult result;
  Shard* shard = nullptr;
  result.error =
      request.group.empty() ? GroupError::invalid_group_id : impl_->route(request.group, shard);
  if (result.error != GroupError::none) return done(std::move(result));
  GroupEntry* const entry = shard->find(request.group);
  result.error =
      entry == nullptr ? GroupError::group_id_not_found : entry->group->check_offset_delete();
  if (result.error == GroupError::none) {
    for (const FetchOffsetsTopic& topic : request.topics) {
      auto& errors = result.topics.emplace_back();
      const auto image = impl_->topics.find(topic.name);
      const bool subscribed = entry->group->subscribed(topic.name);
      for (const std::int32_t partition : topic.partitions) {
        GroupError error = GroupError::none;
        if (!image || partition < 0 || partition >= image->partitions) {
          error = GroupError::unknown_topic_or_partition;
        } else if (subscribed) {
          error = GroupError::group_subscribed_to_topic;
        } else {
          entry->offsets.erase(topic.name, partition, shard->records());
        }
        errors.push_back(error);
      }
    }
  }
  shard->kept(std::move(done))(std::move(result));
  shard->finish(request.group);
}

}  // namespace polylog::broker::groups
