#include "server/kafka/fetch_sessions.h"

#include <algorithm>
#include <utility>

namespace polylog::server::kafka {
namespace {

using protocol::kafka::ErrorCode;
using protocol::kafka::FetchRequest;
using Partitions = std::list<std::shared_ptr<FetchedPartition>>;
using Key = std::tuple<std::string, Uuid, std::int32_t>;

constexpr std::int32_t first_epoch = 0;   // asks for a new session
constexpr std::int32_t final_epoch = -1;  // asks for none

Key key_of(const FetchedPartition& partition) {
  return {partition.topic, partition.topic_id, partition.asked.partition};
}

std::vector<std::shared_ptr<FetchedPartition>> asked_in(const FetchRequest& request) {
  std::vector<std::shared_ptr<FetchedPartition>> asked;
  for (const FetchRequest::FetchTopic& topic : request.topics) {
    for (const FetchRequest::FetchPartition& partition : topic.partitions) {
      auto entry = std::make_shared<FetchedPartition>();
      entry->topic = topic.topic;
      entry->topic_id = topic.topic_id;
      entry->asked = partition;
      asked.push_back(std::move(entry));
    }
  }
  return asked;
}

}  // namespace

std::int32_t next_session_epoch(std::int32_t epoch) {
  if (epoch < 0) return final_epoch;
  return epoch == INT32_MAX ? 1 : epoch + 1;
}

class FetchSessions::Session {
 public:
  std::int32_t id = 0;
  std::int32_t epoch = 1;  // of the next request
  bool by_id = false;
  std::int64_t created_ms = 0;
  std::int64_t used_ms = 0;
  Partitions order;  // the front has waited longest for records
  std::map<Key, Partitions::iterator> places;

  void put(std::shared_ptr<FetchedPartition> partition) {
    const Key key = key_of(*partition);
    const auto found = places.find(key);
    if (found != places.end()) {
      (*found->second)->asked = partition->asked;
    } else {
      places[key] = order.insert(order.end(), std::move(partition));
    }
  }

  void forget(const Key& key) {
    const auto found = places.find(key);
    if (found == places.end()) return;
    order.erase(found->second);
    places.erase(found);
  }

  void move_back(const FetchedPartition& partition) {
    const auto found = places.find(key_of(partition));
    if (found == places.end() || found->second->get() != &partition) return;
    order.splice(order.end(), order, found->second);
  }
};

FetchSessions::FetchSessions(std::size_t slots, std::int64_t idle_ms)
    : slots_(slots), idle_ms_(idle_ms), random_(std::random_device{}()) {}
FetchSessions::~FetchSessions() = default;

FetchSessions::Plan FetchSessions::begin(const FetchRequest& request, bool by_id,
                                         std::int64_t now_ms) {
  Plan plan;
  plan.by_id = by_id;
  if (request.session_epoch == final_epoch || request.session_epoch == first_epoch) {
    if (request.session_id != 0) sessions_.erase(request.session_id);
    plan.creates = request.session_epoch == first_epoch;
    plan.partitions = asked_in(request);
    return plan;
  }

  const auto found = sessions_.find(request.session_id);
  if (found == sessions_.end()) {
    plan.error = ErrorCode::fetch_session_id_not_found;
    return plan;
  }
  const std::shared_ptr<Session> session = found->second;
  if (session->by_id != by_id) {
    plan.error = ErrorCode::fetch_session_topic_id_error;
    return plan;
  }
  if (session->epoch != request.session_epoch) {
    plan.error = ErrorCode::invalid_fetch_session_epoch;
    return plan;
  }
  session->epoch = next_session_epoch(session->epoch);
  session->used_ms = now_ms;
  for (std::shared_ptr<FetchedPartition>& partition : asked_in(request)) {
    session->put(std::move(partition));
  }
  for (const FetchRequest::ForgottenTopic& topic : request.forgotten_topics_data) {
    for (const std::int32_t partition : topic.partitions) {
      session->forget({topic.topic, topic.topic_id, partition});
    }
  }
  if (session->order.empty()) {
    sessions_.erase(found);
    return plan;
  }
  plan.session = session;
  plan.partitions.assign(session->order.begin(), session->order.end());
  return plan;
}

FetchSessions::Outcome FetchSessions::finish(const Plan& plan,
                                             const std::vector<FetchAnswer>& answers,
                                             std::int64_t now_ms) {
  Outcome outcome;
  outcome.included.assign(answers.size(), true);
  if (!plan.session && !plan.creates) return outcome;

  for (std::size_t i = 0; i < answers.size(); ++i) {
    FetchedPartition& partition = *plan.partitions[i];
    const FetchAnswer& answer = answers[i];
    outcome.included[i] = !plan.session || answer.has_records || answer.has_error ||
                          answer.high_watermark != partition.told_high_watermark ||
                          answer.log_start != partition.told_log_start;
    // After an error the client is told again, whatever the marks are then.
    partition.told_high_watermark = answer.has_error ? -1 : answer.high_watermark;
    partition.told_log_start = answer.log_start;
    if (plan.session && answer.has_records) plan.session->move_back(partition);
  }
  outcome.session_id = plan.session ? plan.session->id : create(plan, now_ms);
  return outcome;
}

std::int32_t FetchSessions::session_of(const Plan& plan) {
  return plan.session ? plan.session->id : 0;
}

std::int32_t FetchSessions::create(const Plan& plan, std::int64_t now_ms) {
  if (plan.partitions.empty() || !make_room(plan.partitions.size(), now_ms)) return 0;
  auto session = std::make_shared<Session>();
  std::uniform_int_distribution<std::int32_t> ids(1, INT32_MAX);
  do {
    session->id = ids(random_);
  } while (sessions_.contains(session->id));
  session->by_id = plan.by_id;
  session->created_ms = session->used_ms = now_ms;
  for (const std::shared_ptr<FetchedPartition>& partition : plan.partitions) {
    session->put(partition);
  }
  sessions_.emplace(session->id, session);
  return session->id;
}

bool FetchSessions::make_room(std::size_t partitions, std::int64_t now_ms) {
  if (sessions_.size() < slots_) return true;
  if (sessions_.empty()) return false;
  const auto unused_longest = std::min_element(
      sessions_.begin(), sessions_.end(),
      [](const auto& a, const auto& b) { return a.second->used_ms < b.second->used_ms; });
  if (now_ms - unused_longest->second->used_ms > idle_ms_) {
    sessions_.erase(unused_longest);
    return true;
  }
  auto smallest = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    if (now_ms - it->second->created_ms <= idle_ms_) continue;
    if (smallest == sessions_.end() || it->second->order.size() < smallest->second->order.size()) {
      smallest = it;
    }
  }
  if (smallest == sessions_.end() || smallest->second->order.size() >= partitions) return false;
  sessions_.erase(smallest);
  return true;
}

std::size_t FetchSessions::partitions() const {
  std::size_t count = 0;
  for (const auto& [id, session] : sessions_) count += session->order.size();
  return count;
}

}  // namespace polylog::server::kafka
