#include "cli/batch_sender.h"

#include <chrono>
#include <limits>
#include <thread>

#include "protocol/kafka/init_producer_id_request.h"
#include "protocol/kafka/init_producer_id_response.h"
#include "protocol/kafka/produce_request.h"
#include "protocol/kafka/produce_response.h"

namespace polylog::cli {
namespace {

using protocol::kafka::ErrorCode;
using protocol::kafka::InitProducerIdRequest;
using protocol::kafka::InitProducerIdResponse;
using protocol::kafka::ProduceRequest;
using protocol::kafka::ProduceResponse;

constexpr std::int16_t names_topics_up_to = 12;  // later versions name them by id
constexpr std::chrono::milliseconds retry_pause{200};

using Answer = ProduceResponse::PartitionProduceResponse;

// The answer for the only batch of a request.
const Answer* only_answer(const ProduceResponse& response) {
  const bool one =
      response.responses.size() == 1 && response.responses.front().partition_responses.size() == 1;
  return one ? &response.responses.front().partition_responses.front() : nullptr;
}

std::string words(const Answer& answer) {
  std::string text = wire_error(answer.error_code, answer.error_message);
  const bool told = answer.error_message && !answer.error_message->empty();
  if (told || answer.record_errors.empty()) return text;
  const auto& first = answer.record_errors.front();
  text += ": record " + std::to_string(first.batch_index);
  if (first.batch_index_error_message) text += ": " + *first.batch_index_error_message;
  return text;
}

}  // namespace

Result<ProducerIdentity> BatchSender::identify() {
  InitProducerIdRequest request;
  request.transactional_id.reset();
  request.transaction_timeout_ms = std::numeric_limits<std::int32_t>::max();
  POLYLOG_ASSIGN(answer, client_->call<InitProducerIdResponse>(request));
  if (answer.error_code != 0) {
    return fail(Errc::io, "no producer id: " + wire_error(answer.error_code));
  }
  return ProducerIdentity{answer.producer_id, answer.producer_epoch};
}

Result<void> BatchSender::send(std::int32_t partition, std::vector<std::uint8_t> batch,
                               std::int32_t records) {
  while (in_flight_.size() >= in_flight_max) POLYLOG_TRY(receive_one());
  in_flight_.push_back({partition, records, Slice::of(std::move(batch))});
  if (auto sent = send_now(in_flight_.back()); !sent) return start_over(sent.error());
  if (acks_ == 0) return acknowledged(-1);
  return {};
}

Result<void> BatchSender::send_now(const InFlight& batch) {
  ProduceRequest request;
  request.acks = acks_;
  request.timeout_ms = static_cast<std::int32_t>(options_.request_ms);
  auto& topic = request.topic_data.emplace_back();
  topic.name = topic_.name;
  topic.topic_id = topic_.id;
  auto& data = topic.partition_data.emplace_back();
  data.index = batch.partition;
  data.records = batch.batch;
  const std::int16_t highest =
      topic_.id.is_zero() ? names_topics_up_to : std::numeric_limits<std::int16_t>::max();
  POLYLOG_ASSIGN(version, client_->version(protocol::kafka::ApiKey::produce, highest));
  return client_->send(request, version, acks_ != 0);
}

Result<void> BatchSender::receive_one() {
  const Result<ProduceResponse> response = client_->receive<ProduceResponse>();
  if (!response) return start_over(response.error());
  const Answer* const answer = only_answer(*response);
  if (answer == nullptr) return fail(Errc::corrupt, "an answer to Produce that fits no request");
  const auto error = static_cast<ErrorCode>(answer->error_code);
  if (error == ErrorCode::none || error == ErrorCode::duplicate_sequence_number) {
    return acknowledged(answer->base_offset);
  }
  const InFlight& refused = in_flight_.front();
  Error cause{Errc::io, topic_.name + "-" + std::to_string(refused.partition) + " refused " +
                            std::to_string(refused.records) + " records: " + words(*answer)};
  if (idempotent_ && protocol::kafka::retriable(error)) return start_over(cause);
  return fail(std::move(cause));
}

// A new connection and everything unanswered once more, in order.
Result<void> BatchSender::start_over(const Error& cause) {
  if (!idempotent_) return fail(cause);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(patience_ms);
  Error last = cause;
  while (Clock::now() < deadline) {
    std::this_thread::sleep_for(retry_pause);
    auto client = KafkaClient::connect(options_);
    if (!client) {
      last = client.error();
      continue;
    }
    client_ = std::move(*client);
    Result<void> sent;
    for (const InFlight& batch : in_flight_) {
      sent = send_now(batch);
      if (!sent) break;
    }
    if (sent) return {};
    last = sent.error();
  }
  return fail(last);
}

Result<void> BatchSender::acknowledged(std::int64_t first_offset) {
  const InFlight& done = in_flight_.front();
  Progress& progress = progress_[done.partition];
  progress.records += static_cast<std::uint64_t>(done.records);
  if (first_offset >= 0) {
    if (progress.first_offset < 0) progress.first_offset = first_offset;
    progress.last_offset = first_offset + done.records - 1;
  }
  in_flight_.pop_front();
  return {};
}

Result<void> BatchSender::drain() {
  while (!in_flight_.empty()) POLYLOG_TRY(receive_one());
  // Without acknowledgements an answer to something else shows that everything was taken.
  if (acks_ == 0) return client_->ping();
  return {};
}

}  // namespace polylog::cli
