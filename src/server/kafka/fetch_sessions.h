#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "protocol/kafka/errors.h"
#include "protocol/kafka/fetch_request.h"

namespace polylog::server::kafka {

// One partition of a fetch: what the client asks, and what it was told last.
struct FetchedPartition {
  std::string topic;  // empty when the client names topics by id
  Uuid topic_id;
  protocol::kafka::FetchRequest::FetchPartition asked;
  std::int64_t told_high_watermark = -1;
  std::int64_t told_log_start = -1;
};

// The part of a partition's answer that decides whether an incremental answer repeats it.
struct FetchAnswer {
  std::int64_t high_watermark = -1;
  std::int64_t log_start = -1;
  bool has_records = false;
  bool has_error = false;  // or a diverging epoch
};

// Incremental fetch sessions (Kafka wire protocol, "Sessions", KIP-227): a client names its
// partitions once and afterwards only what changes. No I/O, no clock of its own. Reactor only.
class FetchSessions {
 public:
  // Sessions unused for `idle_ms` make room for new ones; smaller ones do after `idle_ms` of age.
  explicit FetchSessions(std::size_t slots, std::int64_t idle_ms = 120'000);
  ~FetchSessions();

  class Session;
  struct Plan {
    protocol::kafka::ErrorCode error = protocol::kafka::ErrorCode::none;  // of the whole request
    std::vector<std::shared_ptr<FetchedPartition>> partitions;            // in order of priority
    bool creates = false;              // a full fetch that asks for a session
    bool by_id = false;
    std::shared_ptr<Session> session;  // of an incremental fetch
  };
  // Applies the request to its session. `by_id`: the request's version names topics by id.
  Plan begin(const protocol::kafka::FetchRequest& request, bool by_id, std::int64_t now_ms);

  struct Outcome {
    std::int32_t session_id = 0;  // to answer; 0: none
    std::vector<bool> included;   // which of the answers go out
  };
  // `answers` are those of plan.partitions, in order. Makes the session if one was asked for and
  // there is room.
  Outcome finish(const Plan& plan, const std::vector<FetchAnswer>& answers, std::int64_t now_ms);

  // The session the plan goes on with, for an answer that tells nothing; 0: none.
  static std::int32_t session_of(const Plan& plan);

  std::size_t size() const { return sessions_.size(); }
  std::size_t partitions() const;

 private:
  std::int32_t create(const Plan& plan, std::int64_t now_ms);
  bool make_room(std::size_t partitions, std::int64_t now_ms);

  std::size_t slots_;
  std::int64_t idle_ms_;
  std::map<std::int32_t, std::shared_ptr<Session>> sessions_;
  std::minstd_rand random_;
};

// The epoch a session's next request must carry.
std::int32_t next_session_epoch(std::int32_t epoch);

}  // namespace polylog::server::kafka
