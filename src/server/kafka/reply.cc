#include "server/kafka/reply.h"

#include "protocol/kafka/api.h"

namespace polylog::server::kafka {

Reply::Reply(Context& context, ClientPtr client, ApiCounters& counters,
             const protocol::kafka::RequestHeader& header, ResponseSlot slot)
    : context_(context),
      client_(std::move(client)),
      counters_(&counters),
      api_key_(header.api_key),
      version_(header.api_version),
      correlation_id_(header.correlation_id),
      started_ns_(context.broker.clock().steady_ns()),
      slot_(std::move(slot)) {}

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
  log_warn(context_.refused_requests, "kafka: closed " + client_->peer.address + ": " +
                                          std::string(protocol::kafka::name(key)) + " v" +
                                          std::to_string(version_) + ": " + std::string(why));
  slot_.close();
}

void Reply::count_time() {
  const std::int64_t took_ns = context_.broker.clock().steady_ns() - started_ns_;
  counters_->nanoseconds->add(static_cast<std::uint64_t>(took_ns));
}

}  // namespace polylog::server::kafka
