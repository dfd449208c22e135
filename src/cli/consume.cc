#include "cli/consume.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "cli/aborted_filter.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/record_format.h"
#include "cli/start_offset.h"
#include "cli/topic_view.h"
#include "format/kafka/records.h"
#include "protocol/kafka/fetch_request.h"
#include "protocol/kafka/fetch_response.h"

namespace polylog::cli {
namespace {

using protocol::kafka::ErrorCode;
using protocol::kafka::FetchRequest;
using protocol::kafka::FetchResponse;

constexpr std::int16_t names_topics_up_to = 12;  // later versions name them by id
constexpr std::int32_t wait_ms = 500;
constexpr std::int32_t fetch_bytes = 8 << 20;
constexpr std::int32_t partition_fetch_bytes = 1 << 20;
constexpr std::size_t batch_output_max = std::size_t{512} << 20;
constexpr std::size_t print_bytes = 64 * 1024;
constexpr std::chrono::milliseconds retry_pause{100};
constexpr int tries_max = 100;  // of a fetch that a broker answers with "later"

struct Position {
  std::int32_t partition = 0;
  std::int64_t next = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();  // where reading ends
  bool done() const { return next >= end; }
};

class Consumer {
 public:
  Consumer(const ConsumeOptions& options, KafkaClient& client, RecordFormat format)
      : options_(options),
        client_(client),
        format_(std::move(format)),
        isolation_(options.isolation == "read_committed" ? IsolationLevel::read_committed
                                                         : IsolationLevel::read_uncommitted) {}

  Result<void> prepare(const StartOffset& start) {
    POLYLOG_ASSIGN(topic, find_topic(client_, options_.topic));
    POLYLOG_TRY(check_led_here(client_, topic, options_.partitions));
    topic_ = std::move(topic);
    std::vector<std::int32_t> partitions = options_.partitions;
    if (partitions.empty()) {
      for (const PartitionView& partition : topic_.partitions) partitions.push_back(partition.id);
    }
    std::sort(partitions.begin(), partitions.end());
    partitions.erase(std::unique(partitions.begin(), partitions.end()), partitions.end());
    POLYLOG_ASSIGN(first, list(partitions, earliest_offset));
    POLYLOG_ASSIGN(last, list(partitions, latest_offset));
    PartitionOffsets timed;
    if (start.kind == StartOffset::Kind::time) {
      POLYLOG_ASSIGN(found, list(partitions, start.value));
      timed = std::move(found);
    }
    for (const std::int32_t partition : partitions) {
      Position position;
      position.partition = partition;
      POLYLOG_ASSIGN(next, choose(start, partition, first.at(partition), last.at(partition),
                                  timed[partition]));
      position.next = next;
      if (options_.exit_at_end) position.end = last.at(partition);
      positions_.push_back(position);
    }
    return {};
  }

  Result<void> run() {
    while (left_ != 0 && !interrupted()) {
      flush();
      if (std::ferror(stdout) != 0) break;
      const bool done = std::all_of(positions_.begin(), positions_.end(),
                                    [](const Position& position) { return position.done(); });
      if (done) break;
      POLYLOG_ASSIGN(response, client_.call<FetchResponse>(request(), highest_version()));
      if (response.error_code != 0) return fail(Errc::io, wire_error(response.error_code));
      POLYLOG_TRY(take(response));
      // Whoever came first in this answer comes last in the next.
      std::rotate(positions_.begin(), positions_.begin() + 1, positions_.end());
    }
    return {};
  }

  void flush() {
    std::fwrite(out_.data(), 1, out_.size(), stdout);
    std::fflush(stdout);
    out_.clear();
  }

 private:
  Result<PartitionOffsets> list(const std::vector<std::int32_t>& partitions,
                                std::int64_t timestamp) {
    return list_offsets(client_, topic_.name, partitions, timestamp, isolation_);
  }

  std::string name(std::int32_t partition) const {
    return topic_.name + "-" + std::to_string(partition);
  }

  Result<std::int64_t> choose(const StartOffset& start, std::int32_t partition, std::int64_t first,
                              std::int64_t last, std::int64_t timed) const {
    switch (start.kind) {
      case StartOffset::Kind::beginning: return first;
      case StartOffset::Kind::end: return last;
      case StartOffset::Kind::before_end: return std::max(first, last - start.value);
      case StartOffset::Kind::time: return timed < 0 ? last : timed;
      case StartOffset::Kind::offset: break;
    }
    if (start.value < first || start.value > last) {
      return fail(Errc::out_of_range, name(partition) + " has offsets " + std::to_string(first) +
                                          " to " + std::to_string(last) + ", not " +
                                          std::to_string(start.value) +
                                          "; -o beginning starts at the first");
    }
    return start.value;
  }

  std::int16_t highest_version() const {
    return topic_.id.is_zero() ? names_topics_up_to : std::numeric_limits<std::int16_t>::max();
  }

  FetchRequest request() const {
    FetchRequest request;
    request.max_wait_ms = wait_ms;
    request.min_bytes = 1;
    request.max_bytes = fetch_bytes;
    request.isolation_level = static_cast<std::int8_t>(isolation_);
    auto& topic = request.topics.emplace_back();
    topic.topic = topic_.name;
    topic.topic_id = topic_.id;
    for (const Position& position : positions_) {
      if (position.done()) continue;
      auto& partition = topic.partitions.emplace_back();
      partition.partition = position.partition;
      partition.fetch_offset = position.next;
      partition.partition_max_bytes = partition_fetch_bytes;
    }
    return request;
  }

  Result<void> take(const FetchResponse& response) {
    bool later = false;
    for (const auto& topic : response.responses) {
      for (const auto& data : topic.partitions) {
        const auto at = std::find_if(positions_.begin(), positions_.end(), [&](const Position& p) {
          return p.partition == data.partition_index;
        });
        if (at == positions_.end()) continue;
        const auto error = static_cast<ErrorCode>(data.error_code);
        if (error == ErrorCode::none) {
          POLYLOG_TRY(take(data, *at));
        } else if (protocol::kafka::retriable(error) && error != ErrorCode::corrupt_message &&
                   tries_ < tries_max) {
          later = true;
        } else {
          return fail(Errc::io, name(data.partition_index) + " at offset " +
                                    std::to_string(at->next) + ": " + wire_error(data.error_code));
        }
      }
    }
    tries_ = later ? tries_ + 1 : 0;
    if (later) std::this_thread::sleep_for(retry_pause);
    return {};
  }

  Result<void> take(const FetchResponse::PartitionData& data, Position& position) {
    if (!data.records) return {};
    std::vector<AbortedFilter::Aborted> aborted;
    if (data.aborted_transactions) {
      for (const auto& entry : *data.aborted_transactions) {
        aborted.push_back({entry.producer_id, entry.first_offset});
      }
    }
    AbortedFilter filter(std::move(aborted));
    return format::kafka::for_each_batch(
        data.records->view(),
        [&](const format::kafka::BatchHeader& header, ByteView batch) -> Result<void> {
          return take(header, batch, filter, position);
        });
  }

  Result<void> take(const format::kafka::BatchHeader& header, ByteView batch, AbortedFilter& filter,
                    Position& position) {
    const bool hidden = filter.hides(header, batch) || header.control();
    if (header.last_offset().value() < position.next || position.done() || left_ == 0) return {};
    if (!format::kafka::crc_matches(batch)) {
      return fail(Errc::corrupt, name(position.partition) + ": the batch at offset " +
                                     std::to_string(header.base_offset.value()) +
                                     " arrived with a wrong checksum");
    }
    if (!hidden) POLYLOG_TRY(print(batch, position));
    position.next = header.last_offset().value() + 1;
    return {};
  }

  Result<void> print(ByteView batch, const Position& position) {
    const RecordPlace place{topic_.name, position.partition};
    const auto read =
        format::kafka::for_each_record(batch, batch_output_max, [&](const Record& record) {
          const std::int64_t offset = record.offset.value();
          if (offset < position.next) return true;
          if (offset >= position.end || left_ == 0) return false;
          if (options_.json) {
            print_json(place, record, out_);
          } else {
            format_.print(place, record, out_);
          }
          if (out_.size() > print_bytes) flush();
          if (left_ > 0) --left_;
          return true;
        });
    if (read) return {};
    return fail(read.error().code, name(position.partition) + ", batch behind offset " +
                                       std::to_string(position.next) + ": " + read.error().context);
  }

  const ConsumeOptions& options_;
  KafkaClient& client_;
  const RecordFormat format_;
  const IsolationLevel isolation_;
  TopicView topic_;
  std::vector<Position> positions_;
  std::string out_;
  std::int64_t left_ = options_.count;  // negative: no limit
  int tries_ = 0;
};

}  // namespace

int consume(const ConsumeOptions& options) {
  const auto start = parse_start_offset(options.offset);
  if (!start) return complain("-o: " + start.error().context, exit_usage);
  const auto format = RecordFormat::parse(options.format);
  if (!format) return complain("-f: " + format.error().context, exit_usage);
  catch_interrupts();
  auto client = KafkaClient::connect(options.client);
  if (!client) return complain(client.error().context);
  Consumer consumer(options, **client, *format);
  auto ran = consumer.prepare(*start);
  if (ran) ran = consumer.run();
  consumer.flush();
  if (!ran && !interrupted()) return complain(ran.error().context);
  return finished(stdout);
}

}  // namespace polylog::cli
