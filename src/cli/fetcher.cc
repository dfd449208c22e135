#include "cli/fetcher.h"

#include <chrono>
#include <thread>

#include "cli/aborted_filter.h"
#include "format/kafka/records.h"
#include "protocol/kafka/fetch_request.h"

namespace polylog::cli {
namespace {

using protocol::kafka::ErrorCode;
using protocol::kafka::FetchRequest;
using protocol::kafka::FetchResponse;

constexpr std::int16_t names_topics_up_to = 12;  // later versions name them by id
constexpr std::int32_t fetch_bytes = 8 << 20;
constexpr std::int32_t partition_fetch_bytes = 1 << 20;
constexpr std::size_t batch_output_max = std::size_t{512} << 20;
constexpr std::chrono::milliseconds retry_pause{100};

std::string name(const TopicPartition& where) {
  return where.topic + "-" + std::to_string(where.partition);
}

}  // namespace

Result<std::int64_t> Fetcher::poll(KafkaClient& client, std::int32_t wait_ms, const Visit& visit) {
  if (positions_.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    return 0;
  }
  FetchRequest request;
  request.max_wait_ms = wait_ms;
  request.min_bytes = 1;
  request.max_bytes = fetch_bytes;
  request.isolation_level = static_cast<std::int8_t>(isolation_);
  // Whoever came first comes last in the next request: none starves behind a busy one.
  std::vector<Positions::const_iterator> order;
  for (auto at = positions_.cbegin(); at != positions_.cend(); ++at) order.push_back(at);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& [where, position] = *order[(turn_ + i) % order.size()];
    if (request.topics.empty() || request.topics.back().topic != where.topic) {
      request.topics.emplace_back().topic = where.topic;
    }
    auto& asked = request.topics.back().partitions.emplace_back();
    asked.partition = where.partition;
    asked.fetch_offset = position.next;
    asked.partition_max_bytes = partition_fetch_bytes;
  }
  turn_ = (turn_ + 1) % order.size();
  POLYLOG_ASSIGN(answer, client.call<FetchResponse>(request, names_topics_up_to));
  if (answer.error_code != 0) return fail(Errc::io, wire_error(answer.error_code));
  visited_ = 0;
  stopped_ = later_ = false;
  for (const auto& topic : answer.responses) {
    for (const auto& data : topic.partitions) {
      if (stopped_) return visited_;
      POLYLOG_TRY(take(client, {topic.topic, data.partition_index}, data, visit));
    }
  }
  if (later_ && visited_ == 0) std::this_thread::sleep_for(retry_pause);
  return visited_;
}

Result<void> Fetcher::take(KafkaClient& client, const TopicPartition& where, const Data& data,
                           const Visit& visit) {
  const auto at = positions_.find(where);
  if (at == positions_.end()) return {};
  const auto error = static_cast<ErrorCode>(data.error_code);
  if (error == ErrorCode::offset_out_of_range) {
    POLYLOG_ASSIGN(offsets,
                   list_offsets(client, where.topic, {where.partition}, reset_to_, isolation_));
    at->second = {offsets.at(where.partition), -1};
    return {};
  }
  if (error != ErrorCode::none) {
    later_ = protocol::kafka::retriable(error) && error != ErrorCode::corrupt_message;
    if (later_) return {};
    return fail(Errc::io, name(where) + " at offset " + std::to_string(at->second.next) + ": " +
                              wire_error(data.error_code));
  }
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
        const bool hidden = filter.hides(header, batch) || header.control();
        if (stopped_ || header.last_offset().value() < at->second.next) return {};
        if (!format::kafka::crc_matches(batch)) {
          return fail(Errc::corrupt, name(where) + ": the batch at offset " +
                                         std::to_string(header.base_offset.value()) +
                                         " arrived with a wrong checksum");
        }
        if (!hidden) POLYLOG_TRY(take_batch(where, header, batch, at->second, visit));
        if (!stopped_) at->second = {header.last_offset().value() + 1, header.leader_epoch.value()};
        return {};
      });
}

Result<void> Fetcher::take_batch(const TopicPartition& where,
                                 const format::kafka::BatchHeader& header, ByteView batch,
                                 Position& position, const Visit& visit) {
  const bool append_time = header.timestamp_type() == format::kafka::TimestampType::log_append_time;
  const auto read =
      format::kafka::for_each_record(batch, batch_output_max, [&](const Record& record) {
        if (record.offset.value() < position.next) return true;
        ++visited_;
        position = {record.offset.value() + 1, header.leader_epoch.value()};
        stopped_ = !visit(Fetched{where, record, append_time});
        return !stopped_;
      });
  if (read) return {};
  return fail(read.error().code, name(where) + ", batch behind offset " +
                                     std::to_string(position.next) + ": " + read.error().context);
}

}  // namespace polylog::cli
