#include "server/kafka/service.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "bytes/reader.h"
#include "server/kafka/handlers.h"
#include "server/net/listener.h"

namespace polylog::server::kafka {
namespace {

using protocol::kafka::ApiKey;
using protocol::kafka::RequestHeader;

// Reads headers and hands requests to their handlers.
class Dispatcher final : public FrameHandler {
 public:
  Dispatcher(std::shared_ptr<const Peer> peer, std::shared_ptr<Context> context)
      : client_(std::make_shared<Client>(std::move(peer), std::move(context))) {}

  Async<void> on_frame(Slice frame, ResponseSlot slot) override {
    Result<RequestHeader> header = read_header(frame);
    if (!header) {
      refuse(header.error().to_string());
      slot.close();
      co_return;
    }
    const Api* api = find_api(header->api_key);
    if (api == nullptr) {
      refuse("API key " + std::to_string(header->api_key) + " is not served");
      slot.close();
      co_return;
    }
    Context& context = *client_->context;
    ApiCounters& counters = context.api_counters.at(header->api_key);
    counters.requests->add();
    counters.request_bytes->add(frame.size());
    Reply reply(context, client_, counters, *header, frame.size(), std::move(slot));
    if (header->api_version < api->first || header->api_version > api->last) {
      refuse_version(*api, reply);
      co_return;
    }
    Call call;
    call.version = header->api_version;
    call.client_id = std::move(header->client_id);
    call.body = header->body(frame);
    frame = {};
    co_await api->handle(context, client_, std::move(call), std::move(reply));
  }

  void on_end() override {
    client_->ended = true;
    if (client_->fetch_waits != nullptr) client_->fetch_waits->raise();
  }

 private:
  // The header of a version of ApiVersions that nobody knows yet may have any tail: what its
  // answer needs stands in front.
  static Result<RequestHeader> read_header(const Slice& frame) {
    ByteReader in(frame.view());
    RequestHeader header;
    header.api_key = in.i16();
    header.api_version = in.i16();
    header.correlation_id = in.i32();
    const Api* versions = find_api(static_cast<std::int16_t>(ApiKey::api_versions));
    if (in.ok() && header.api_key == static_cast<std::int16_t>(ApiKey::api_versions) &&
        (header.api_version < versions->first || header.api_version > versions->last)) {
      return header;
    }
    return RequestHeader::decode(frame);
  }

  void refuse_version(const Api& api, Reply& reply) {
    if (api.key == ApiKey::api_versions) {
      reply.send(unsupported_api_versions(), 0);
    } else {
      reply.close("the version is not served");
    }
  }

  void refuse(const std::string& why) {
    log_warn(client_->context->refused_requests,
             "kafka: closed " + client_->peer->address() + ": " + why);
  }

  ClientPtr client_;
};

// The coordinator outlives the metrics' use.
void add_group_metrics(Metrics& metrics, broker::groups::Coordinator& groups) {
  static constexpr const char* states[] = {"Empty",     "PreparingRebalance", "CompletingRebalance",
                                           "Assigning", "Reconciling",        "Stable"};
  for (const char* state : states) {
    metrics.gauge(
        "polylog_groups", "Consumer groups, by state.",
        [&groups, state] { return static_cast<double>(groups.groups_in_state(state)); },
        "state=\"" + std::string(state) + "\"");
  }
  metrics.gauge("polylog_group_members", "Members of consumer groups.",
                [&groups] { return static_cast<double>(groups.members()); });
  const auto rising = [&](const char* name, const char* help, auto read) {
    metrics.gauge(
        name, help, [&groups, read] { return static_cast<double>(read(groups.stats())); }, "",
        true);
  };
  using Stats = broker::groups::Coordinator::Stats;
  rising("polylog_group_commits_total", "Offsets committed by groups, one per partition.",
         [](const Stats& stats) { return stats.commits; });
  rising("polylog_group_rebalances_total", "Generations and group epochs begun.",
         [](const Stats& stats) { return stats.rebalances; });
  rising("polylog_group_offsets_expired_total", "Committed offsets dropped past retention.",
         [](const Stats& stats) { return stats.offsets_expired; });
}

std::shared_ptr<Context> make_context(broker::Broker& broker, broker::groups::Coordinator& groups,
                                      Metrics& metrics) {
  auto context = std::make_shared<Context>(broker, groups, metrics);
  add_group_metrics(metrics, groups);
  for (const Api& api : apis()) {
    const std::string label = "api=\"" + std::string(protocol::kafka::name(api.key)) + "\"";
    ApiCounters& counters = context->api_counters[static_cast<std::int16_t>(api.key)];
    counters.requests = &metrics.counter("polylog_kafka_requests_total", "Requests.", label);
    counters.nanoseconds =
        &metrics.counter("polylog_kafka_request_seconds_total",
                         "Time from requests to their answers, waiting included.", label, 1e-9);
    counters.request_bytes =
        &metrics.counter("polylog_kafka_request_bytes_total", "Bytes of requests.", label);
    counters.response_bytes =
        &metrics.counter("polylog_kafka_response_bytes_total", "Bytes of answers.", label);
  }
  const std::weak_ptr<Context> weak = context;
  metrics.gauge("polylog_fetch_sessions", "Incremental fetch sessions that are open.", [weak] {
    const auto alive = weak.lock();
    return alive ? static_cast<double>(alive->fetch_sessions.size()) : 0.0;
  });
  return context;
}

}  // namespace

struct KafkaService::Impl {
  std::shared_ptr<Context> context;
  std::shared_ptr<Listener> listener;
};

KafkaService::KafkaService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KafkaService::~KafkaService() = default;

Result<std::unique_ptr<KafkaService>> KafkaService::open(broker::Broker& broker,
                                                         broker::groups::Coordinator& groups,
                                                         Metrics& metrics,
                                                         const std::string& address) {
  const broker::Settings& settings = broker.settings();
  auto impl = std::make_unique<Impl>();
  impl->context = make_context(broker, groups, metrics);
  ListenerOptions options;
  options.protocol = "kafka";
  options.address = address;
  options.frame_bytes_max = static_cast<std::size_t>(settings.socket_request_max_bytes);
  options.connections_max = static_cast<std::size_t>(settings.max_connections);
  options.idle_ms_max = settings.connections_max_idle_ms;
  const std::shared_ptr<Context> context = impl->context;
  options.admit = [context](const std::string& ip) -> std::int64_t {
    broker::quotas::Quotas& quotas = context->broker.quotas();
    if (!quotas.limited(broker::quotas::Kind::connection)) return 0;
    return quotas.admit(ip, context->broker.steady_ms());
  };
  const auto make_handler = [context](std::shared_ptr<const Peer> peer) {
    return std::make_shared<Dispatcher>(std::move(peer), context);
  };
  POLYLOG_ASSIGN(listener, Listener::open(broker.reactor().context(), std::move(options),
                                          make_handler, metrics));
  impl->listener = std::move(listener);
  broker.observe_settings([weak = std::weak_ptr<Listener>(impl->listener), &broker] {
    const auto alive = weak.lock();
    const std::int32_t connections_max = broker.settings().max_connections;
    if (alive) alive->set_connections_max(static_cast<std::size_t>(connections_max));
  });
  return std::unique_ptr<KafkaService>(new KafkaService(std::move(impl)));
}

void KafkaService::start() { impl_->listener->start(); }
void KafkaService::stop() { impl_->listener->stop(); }
void KafkaService::abort() { impl_->listener->abort(); }
std::uint16_t KafkaService::port() const { return impl_->listener->port(); }
std::string KafkaService::address() const { return impl_->listener->address(); }
std::size_t KafkaService::connections() const { return impl_->listener->connections(); }

}  // namespace polylog::server::kafka
