#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>

#include "format/kafka/validate.h"
#include "protocol/kafka/produce_request.h"
#include "protocol/kafka/produce_response.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::ProduceRequest;
using protocol::kafka::ProduceResponse;

namespace {

namespace stored = format::kafka;
using Answer = ProduceResponse::PartitionProduceResponse;
using Checked = tl::expected<Batch, stored::ValidationError>;

constexpr std::int16_t topics_by_id_from = 13;
constexpr std::string_view admin_client_id = "__admin_client";

// A batch that was appended; its answer is good once it is as safe as asked.
struct Appended {
  std::shared_ptr<broker::Partition> partition;
  broker::Partition::Appended appended;
  std::size_t topic = 0, index = 0;  // of its answer
};

// One request on its way from append to answer.
struct Produced {
  ProduceResponse response;
  std::vector<Appended> appended;
  broker::Acks acks = broker::Acks::leader;
  std::int64_t deadline_ns = INT64_MAX;
  bool by_id = false;
  bool failed = false;  // some partition was refused
};

void refuse(Context& context, Produced& work, Answer& answer, ErrorCode code,
            std::optional<std::string> message = std::nullopt) {
  work.failed = true;
  answer.error_code = context.wire(code);
  answer.error_message = std::move(message);
  answer.base_offset = -1;
  answer.log_append_time_ms = -1;
}

void refuse_storage(Context& context, Produced& work, Answer& answer, const Error& error,
                    const TopicPartition& id) {
  ErrorCode code = error_code(error.code);
  if (error.code == Errc::not_found && work.by_id) code = ErrorCode::unknown_topic_id;
  if (code == ErrorCode::kafka_storage_error) {
    log_warn(context.storage_trouble, "kafka: cannot append to " + id.topic + "-" +
                                          std::to_string(id.partition) + ": " + error.to_string());
  }
  refuse(context, work, answer, code, error.to_string());
}

void refuse_batch(Context& context, Produced& work, Answer& answer,
                  const stored::ValidationError& error) {
  refuse(context, work, answer, error_code(error.code), error.message);
  for (const stored::RecordFault& fault : error.records) {
    auto& out = answer.record_errors.emplace_back();
    out.batch_index = fault.index;
    out.batch_index_error_message = fault.message;
  }
}

stored::ValidationRules rules_of(const broker::TopicConfig& config, const Context& context,
                                 std::int16_t version) {
  stored::ValidationRules rules;
  rules.max_message_bytes = config.max_message_bytes;
  rules.segment_bytes = config.log.segment_bytes;
  rules.timestamp_type = config.timestamp_type == broker::TimestampType::log_append_time
                             ? stored::TimestampType::log_append_time
                             : stored::TimestampType::create_time;
  rules.before_max_ms = config.timestamp_before_max_ms;
  rules.after_max_ms = config.timestamp_after_max_ms;
  rules.now = context.broker.clock().now();
  rules.compacted = config.compact;
  rules.produce_version = version;
  const std::int64_t output_max = context.broker.settings().max_decompressed_bytes;
  if (output_max > 0) rules.output_max = static_cast<std::size_t>(output_max);
  if (config.compression_type == "producer") return rules;

  const Result<stored::Codec> codec = stored::parse_codec(config.compression_type);
  if (!codec) return rules;
  rules.target = *codec;
  if (*codec == stored::Codec::gzip) rules.level = config.gzip_level;
  if (*codec == stored::Codec::lz4) rules.level = config.lz4_level;
  if (*codec == stored::Codec::zstd) rules.level = config.zstd_level;
  return rules;
}

// What a record can't be stored for, in the terms of Kafka's protocol.
stored::ValidationError not_storable(const Error& error) {
  stored::ValidationError refused;
  refused.message = error.context;
  refused.code = stored::BatchFault::invalid_record;
  if (error.code == Errc::too_large) refused.code = stored::BatchFault::message_too_large;
  if (error.code == Errc::corrupt) refused.code = stored::BatchFault::corrupt_message;
  return refused;
}

// How the batches for one partition become what its log takes.
struct Intake {
  stored::ValidationRules rules;
  std::optional<broker::Transcoder> transcoder;
  broker::Origin origin;

  // Judges a client's batch, and changes its form where the log has another.
  Checked take(const Slice& records, const stored::ValidationRules& limits) const {
    Checked checked = stored::validate(records, limits);
    if (!checked || !transcoder || checked->info.transactional) return checked;
    Result<Batch> native = transcoder->to_native(*checked, origin);
    if (!native) return tl::unexpected(not_storable(native.error()));
    return std::move(*native);
  }
};

// Small batches are taken where the request runs; nothing: it is work for the pool.
std::optional<Checked> take_here(const Slice& records, const Intake& intake) {
  const stored::ValidationRules& rules = intake.rules;
  if (intake.transcoder && records.size() > broker::Transcoder::inline_bytes_max) {
    return std::nullopt;
  }
  if (stored::needs_pool(records.view(), rules)) return std::nullopt;
  stored::ValidationRules small = rules;
  small.output_max = std::min(rules.output_max, stored::inline_output_max);
  Checked checked = intake.take(records, small);
  const bool small_lied =
      !checked && checked.error().output_over_cap && rules.output_max > stored::inline_output_max;
  if (small_lied) return std::nullopt;
  return checked;
}

// What speaks against the partition before its records are looked at.
ErrorCode check_partition(const broker::Partition* partition, const Call& call,
                          const Produced& work, bool topic_known) {
  if (partition == nullptr) {
    return work.by_id && !topic_known ? ErrorCode::unknown_topic_id
                                      : ErrorCode::unknown_topic_or_partition;
  }
  if (is_internal_topic(partition->id().topic) && call.client_id != admin_client_id) {
    return ErrorCode::invalid_topic_exception;
  }
  // One replica is all there is.
  if (work.acks == broker::Acks::all && partition->config().min_insync_replicas > 1) {
    return ErrorCode::not_enough_replicas;
  }
  return ErrorCode::none;
}

// The batch is checked: stages it and notes what its answer has to wait for.
void append(Context& context, Produced& work, const std::shared_ptr<broker::Partition>& partition,
            Batch batch, std::size_t topic, std::size_t index) {
  Answer& answer = work.response.responses[topic].partition_responses[index];
  if (batch.info.transactional) {
    refuse(context, work, answer, ErrorCode::invalid_txn_state, "transactions are not served yet");
    return;
  }
  const std::size_t bytes = batch.bytes.size();
  const auto records = static_cast<std::uint64_t>(batch.info.records);
  const Timestamp max_timestamp = batch.info.max_timestamp;
  Result<broker::Partition::Appended> appended = partition->append(std::move(batch));
  if (!appended) {
    refuse_storage(context, work, answer, appended.error(), partition->id());
    return;
  }
  const ErrorCode verdict = error_code(appended->verdict);
  if (verdict != ErrorCode::none) {
    refuse(context, work, answer, verdict);
    return;
  }
  answer.base_offset = appended->base.value();
  answer.log_start_offset = partition->log_start().value();
  if (appended->verdict == ProducerState::Verdict::duplicate) {
    answer.log_append_time_ms = appended->duplicate_timestamp.value();
  } else {
    if (partition->config().timestamp_type == broker::TimestampType::log_append_time) {
      answer.log_append_time_ms = max_timestamp.value();
    }
    context.produced_bytes.add(bytes);
    context.produced_records.add(records);
  }
  work.appended.push_back({partition, *appended, topic, index});
}

Intake intake_of(const broker::Partition& partition, const Client& client, std::int16_t version) {
  Intake intake;
  intake.rules = rules_of(partition.config(), *client.context, version);
  intake.transcoder = partition.transcoder();
  if (!intake.transcoder) return intake;
  intake.origin = client.origin;
  intake.rules.target = std::nullopt;  // no codec outlives the change of form
  return intake;
}

// Judges and appends the batches of one topic, in order.
Async<void> produce_topic(Context& context, const Client& client, const Call& call,
                          const ProduceRequest::TopicProduceData& data, Produced& work) {
  const std::shared_ptr<broker::Topic> topic =
      work.by_id ? context.broker.find(data.topic_id) : context.broker.find(data.name);
  const std::size_t topic_index = work.response.responses.size();
  {
    ProduceResponse::TopicProduceResponse& out = work.response.responses.emplace_back();
    out.name = data.name;
    out.topic_id = data.topic_id;
    out.partition_responses.reserve(data.partition_data.size());
  }
  for (const ProduceRequest::PartitionProduceData& asked : data.partition_data) {
    auto& answers = work.response.responses[topic_index].partition_responses;
    const std::size_t index = answers.size();
    answers.emplace_back().index = asked.index;
    std::shared_ptr<broker::Partition> partition;
    if (topic && asked.index >= 0 &&
        static_cast<std::size_t>(asked.index) < topic->partitions.size()) {
      partition = topic->partitions[static_cast<std::size_t>(asked.index)];
    }
    const ErrorCode error = check_partition(partition.get(), call, work, topic != nullptr);
    if (error != ErrorCode::none) {
      refuse(context, work, answers[index], error);
      continue;
    }
    const Slice records = asked.records.value_or(Slice());
    const Intake intake = intake_of(*partition, client, call.version);
    std::optional<Checked> checked = take_here(records, intake);
    if (!checked) {
      std::function<void()> work_there = [&checked, &records, &intake] {
        checked = intake.take(records, intake.rules);
      };
      co_await context.broker.pool().run(std::move(work_there));
    }
    if (!*checked) {
      refuse_batch(context, work, answers[index], checked->error());
      continue;
    }
    append(context, work, partition, std::move(**checked), topic_index, index);
  }
}

// Waits until everything appended is as safe as asked, then answers.
Async<void> answer_when_safe(ClientPtr client, std::shared_ptr<Produced> work, Reply reply) {
  Context& context = *client->context;
  for (const Appended& waiting : work->appended) {
    if (waiting.partition->is_acknowledged(waiting.appended, work->acks)) continue;
    const Result<void> safe =
        co_await waiting.partition->acknowledged(waiting.appended, work->acks, work->deadline_ns);
    if (safe) continue;
    Answer& answer = work->response.responses[waiting.topic].partition_responses[waiting.index];
    refuse_storage(context, *work, answer, safe.error(), waiting.partition->id());
  }
  reply.send(work->response);
}

void refuse_all(Context& context, const ProduceRequest& request, ErrorCode code, Produced& work) {
  for (const ProduceRequest::TopicProduceData& topic : request.topic_data) {
    ProduceResponse::TopicProduceResponse& out = work.response.responses.emplace_back();
    out.name = topic.name;
    out.topic_id = topic.topic_id;
    for (const auto& partition : topic.partition_data) {
      Answer& answer = out.partition_responses.emplace_back();
      answer.index = partition.index;
      refuse(context, work, answer, code);
    }
  }
}

std::optional<broker::Acks> acks_of(std::int16_t acks) {
  if (acks == 0) return broker::Acks::none;
  if (acks == 1) return broker::Acks::leader;
  if (acks == -1) return broker::Acks::all;
  return std::nullopt;
}

// Known when the batches are in the log, not when they are safe: a client that sends on meanwhile
// is held up where it went over its quota.
void charge(Context& context, bool answered, Reply& reply) {
  using broker::quotas::Kind;
  broker::quotas::Quotas& quotas = context.broker.quotas();
  if (quotas.limited(Kind::produce)) {
    const auto bytes = static_cast<double>(reply.request_bytes());
    reply.silence(Kind::produce,
                  quotas.record(Kind::produce, reply.who(), bytes, context.broker.steady_ms()));
  }
  if (answered) reply.charge_work();
}

}  // namespace

Async<void> produce(Context& context, ClientPtr client, Call call, Reply reply) {
  Result<ProduceRequest> request = ProduceRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  call.body = {};
  auto work = std::make_shared<Produced>();
  work->by_id = call.version >= topics_by_id_from;
  const std::optional<broker::Acks> acks = acks_of(request->acks);
  if (!acks) {
    refuse_all(context, *request, ErrorCode::invalid_required_acks, *work);
    reply.send(work->response);
    co_return;
  }
  work->acks = *acks;
  if (*acks == broker::Acks::all) work->deadline_ns = context.deadline_in_ms(request->timeout_ms);
  work->response.responses.reserve(request->topic_data.size());
  for (const ProduceRequest::TopicProduceData& topic : request->topic_data) {
    co_await produce_topic(context, *client, call, topic, *work);
  }
  // The frame's memory is the log's now, or nobody's: the wait must not hold it.
  request = ProduceRequest();
  if (reply.limited()) charge(context, *acks != broker::Acks::none, reply);

  if (*acks == broker::Acks::none) {
    // Closing is the only way to tell such a client that it should look again.
    if (work->failed) {
      reply.close("an acks=0 batch was refused");
    } else {
      reply.send_nothing();
    }
    co_return;
  }
  boost::asio::co_spawn(context.broker.reactor().context(),
                        answer_when_safe(std::move(client), std::move(work), std::move(reply)),
                        boost::asio::detached);
}

}  // namespace polylog::server::kafka
