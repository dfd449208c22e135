#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/rocketmq/config_json.h"
#include "format/rocketmq/message.h"
#include "storage/rocketmq/store.h"

// What RocketMQ's broker asks of its store, over a RocketmqStore: messages with tags, delays and
// transactions (RocketMQ store format, "Delayed delivery", "Retry and dead letters",
// "Transactions", "Read path").
namespace polylog::storage::rocketmq {

// RocketMQ's put statuses. END_OF_FILE is not among them: the log rolls and tries again by itself.
enum class PutStatus {
  put_ok,
  create_mapped_file_failed,  // no room for the next commit log file
  message_illegal,            // topic name or properties break a rule, or no such topic
  message_size_exceeded,      // maxMessageSize
  properties_size_exceeded,   // 32,767 bytes
  service_not_available,      // stopping, or a sync failed
  os_page_cache_busy,         // the append before this one takes too long
  unknown_error,
};
std::string_view to_string(PutStatus status);  // RocketMQ's spelling

struct PutResult {
  PutStatus status = PutStatus::unknown_error;
  std::string why;  // when it is not put_ok
  std::int64_t queue_offset = -1;
  std::int64_t physical_offset = -1;
  std::string offset_message_id;
  LogPosition end{0};  // an acknowledgement waits for it
};

enum class GetStatus {
  found,
  no_matched_message,
  message_was_removing,
  offset_found_null,
  offset_overflow_badly,
  offset_overflow_one,
  offset_too_small,
  no_matched_logic_queue,
  no_message_in_queue,
};

struct GetResult {
  GetStatus status = GetStatus::no_message_in_queue;
  std::int64_t next_offset = 0;
  std::int64_t min_offset = 0, max_offset = 0;
  std::vector<Slice> messages;  // whole records
};

// Which tags a reader wants: by the hash in the queue's entry first, by the text in the message
// then. Empty, "*": all.
class TagFilter {
 public:
  TagFilter() = default;
  explicit TagFilter(std::string_view expression);  // "TagA || TagB"
  bool wants(std::int64_t tags_code) const;
  bool wants(const format::rocketmq::Message& message) const;

 private:
  std::vector<std::string> tags_;
};

// Not thread-safe beside itself, except put() and get(). `append` brings a batch into a queue and
// writes it; the broker passes the way its own appends go.
class MessageStore {
 public:
  using Append = std::function<Result<Staged>(Queue& queue, Batch batch)>;
  MessageStore(RocketmqStore& store, const Clock& clock, const SharedLogConfig& config,
               Append append = nullptr);

  // Puts one message; its placement and store host are given here. With a delay level it goes to
  // the schedule topic, with the transaction type "prepared" to the half topic. Queues of known
  // topics, and of retry, dead letter and system topics, are made as needed.
  PutResult put(const format::rocketmq::Message& message);

  // `filter` applies to tags. At most `messages_max`, and at least one however large.
  Result<GetResult> get(std::string_view topic, std::int32_t queue_id, std::int64_t offset,
                        std::size_t messages_max, std::size_t bytes_max,
                        const TagFilter& filter) const;
  // By offset message id. Nothing: no such message here.
  Result<std::optional<Slice>> find_by_id(std::string_view offset_message_id) const;

  // Delivers what is due by `now` and says how many. A message that can't be delivered now is kept
  // and tried again: the level waits while the log takes no writes; what is for a topic that does
  // not exist is scheduled once more, so that it holds up nobody.
  Result<std::size_t> deliver_due(Timestamp now);
  // config/delayOffset.json, about every ten seconds and at a clean stop: what was delivered after
  // the last save is delivered again by the next start.
  Result<void> load_delay_offsets();
  Result<void> save_delay_offsets();

  // Ends a transaction: `half` is the half message as stored. Commit puts the message where it was
  // meant to go, both note in the operation topic that the half message is done with.
  PutResult commit(const format::rocketmq::Message& half);
  PutResult roll_back(const format::rocketmq::Message& half);
  // Half messages that no operation has ended yet, oldest first.
  Result<std::vector<Slice>> open_transactions(std::size_t messages_max) const;

  // A message that its consumer sent back (RocketMQ store format, "Retry and dead letters"): a new
  // one, for the group's retry topic after a delay, or for its dead letter topic. Level 0: grows
  // with the attempts.
  PutResult send_back(const format::rocketmq::Message& message, std::string_view group,
                      int delay_level, std::int32_t attempts_max);

 private:
  PutResult put_as(const format::rocketmq::Message& message);
  PutResult put_operation(const format::rocketmq::Message& half);
  std::optional<PutResult> refuse(const format::rocketmq::Message& message) const;
  Result<std::shared_ptr<Queue>> queue_of(std::string_view topic, std::int32_t queue_id);
  bool known_topic(std::string_view topic) const;
  Result<std::size_t> deliver_level(int level, Timestamp now);
  Result<bool> deliver(const format::rocketmq::Message& message, int level);

  RocketmqStore& store_;
  const Clock& clock_;
  const SharedLogConfig config_;
  const Append append_;
  format::rocketmq::DelayLevels levels_;
  format::rocketmq::Host store_host_;
  format::rocketmq::DelayOffsetTable delay_offsets_;
};

}  // namespace polylog::storage::rocketmq
