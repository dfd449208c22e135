#include "server/kafka/reply.h"

#include <utility>

#include "protocol/kafka/api.h"

namespace polylog::server::kafka {

Reply::Reply(Context& context, ClientPtr client, ApiCounters& counters,
             const protocol::kafka::RequestHeader& header, std::size_t request_bytes,
             ResponseSlot slot)
    : context_(context),
      client_(std::move(client)),
      counters_(&counters),
      api_key_(header.api_key),
      version_(header.api_version),
      correlation_id_(header.correlation_id),
      started_ns_(context.broker.clock().steady_ns()),
      request_bytes_(request_bytes),
      limited_(context.broker.quotas().limited()),
      slot_(std::move(slot)) {
  if (limited_ && header.client_id) client_id_ = *header.client_id;
}

broker::quotas::Who Reply::who() const { return {broker::quotas::anonymous, client_id_}; }

void Reply::silence(broker::quotas::Kind kind, std::int64_t ms) {
  if (ms <= 0) return;
  ThrottleCounters& counters = context_.throttles[static_cast<std::size_t>(kind)];
  counters.requests->add();
  counters.milliseconds->add(static_cast<std::uint64_t>(ms));
  silence_ms_ = std::max(silence_ms_, static_cast<std::int32_t>(std::min<std::int64_t>(
                                          ms, INT32_MAX)));
  slot_.mute(silence_ms_);
}

void Reply::charge_work(std::int64_t work_ns) {
  using broker::quotas::Kind;
  if (std::exchange(charged_, true)) return;
  broker::quotas::Quotas& quotas = context_.broker.quotas();
  if (!quotas.limited(Kind::request)) return;
  if (work_ns < 0) work_ns = context_.broker.clock().steady_ns() - started_ns_;
  constexpr double ns_per_percent = 1e7;  // of one second of one thread
  silence(Kind::request, quotas.record(Kind::request, who(),
                                       static_cast<double>(work_ns) / ns_per_percent,
                                       context_.broker.steady_ms()));
}

void Reply::begin(ByteWriter& out, std::int16_t version) const {
  protocol::kafka::begin_frame(out);
  const protocol::kafka::ResponseHeader header{correlation_id_};
  header.encode(out, api_key_, version);
}

void Reply::end(ByteWriter& out, const Result<void>& encoded) {
  if (!encoded) {
    close("the answer cannot be encoded: " + encoded.error().to_string());
    return;
  }
  counters_->response_bytes->add(out.size());
  count_time();
  slot_.send(out.take());
}

void Reply::send_nothing() {
  count_time();
  slot_.send_nothing();
}

void Reply::malformed(const Error& error) {
  close("the request cannot be read: " + error.to_string());
}

void Reply::close(std::string_view why) {
  count_time();
  const auto key = static_cast<protocol::kafka::ApiKey>(api_key_);
  log_warn(context_.refused_requests, "kafka: closed " + client_->peer->address() + ": " +
                                          std::string(protocol::kafka::name(key)) + " v" +
                                          std::to_string(version_) + ": " + std::string(why));
  slot_.close();
}

void Reply::count_time() {
  const std::int64_t took_ns = context_.broker.clock().steady_ns() - started_ns_;
  counters_->nanoseconds->add(static_cast<std::uint64_t>(took_ns));
}

}  // namespace polylog::server::kafka
