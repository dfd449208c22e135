#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>

#include "protocol/kafka/fetch_request.h"
#include "protocol/kafka/fetch_response.h"
#include "server/kafka/fetch_reader.h"
#include "server/kafka/handlers.h"

namespace polylog::server::kafka {

using protocol::kafka::FetchRequest;
using protocol::kafka::FetchResponse;

namespace {

constexpr std::int16_t topics_by_id_from = 13;

// Marks the connection's fetch as at work, and lets the next one in when it is done or dropped.
class FetchTurn {
 public:
  explicit FetchTurn(ClientPtr client) : client_(std::move(client)) { client_->fetching = true; }
  FetchTurn(FetchTurn&&) noexcept = default;
  FetchTurn& operator=(FetchTurn&&) = delete;
  ~FetchTurn() {
    if (!client_) return;
    client_->fetching = false;
    client_->fetch_waits = nullptr;
    if (client_->fetch_done) client_->fetch_done->raise();
  }

 private:
  ClientPtr client_;
};

FetchRules rules_of(const FetchRequest& request, const Context& context, std::int16_t version) {
  FetchRules rules;
  rules.version = version;
  rules.by_id = version >= topics_by_id_from;
  if (request.isolation_level == 1) rules.isolation = broker::Isolation::read_committed;
  rules.bytes_max = static_cast<std::size_t>(
      std::max(std::min(request.max_bytes, context.broker.settings().fetch_max_bytes), 0));
  rules.bytes_min =
      std::min(static_cast<std::size_t>(std::max(request.min_bytes, 0)), rules.bytes_max);
  return rules;
}

// One look at all partitions.
Async<void> read_pass(Context& context, FetchReader& reader) {
  reader.begin_pass();
  for (;;) {
    std::optional<FetchReader::ColdRead> cold = reader.advance();
    if (!cold) co_return;
    std::function<void()> work = [&cold] { cold->run(); };
    co_await context.broker.pool().run(std::move(work));
    reader.finish(std::move(*cold));
  }
}

void send(Context& context, FetchReader& reader, const FetchSessions::Plan& plan, Reply reply) {
  const FetchSessions::Outcome outcome =
      context.fetch_sessions.finish(plan, reader.summary(), context.now_ms());
  FetchResponse response;
  response.session_id = outcome.session_id;
  std::vector<FetchResponse::PartitionData>& answers = reader.answers();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!outcome.included[i]) continue;
    const FetchedPartition& asked = *plan.partitions[i];
    const bool same_topic = !response.responses.empty() &&
                            response.responses.back().topic == asked.topic &&
                            response.responses.back().topic_id == asked.topic_id;
    if (!same_topic) {
      FetchResponse::FetchableTopicResponse& topic = response.responses.emplace_back();
      topic.topic = asked.topic;
      topic.topic_id = asked.topic_id;
    }
    response.responses.back().partitions.push_back(std::move(answers[i]));
  }
  context.fetched_bytes.add(reader.bytes());
  context.fetched_records.add(reader.records());
  reply.send(response);
}

// What the client read counts against its quota when it is sent. True: it is over it, and gets
// nothing until it was silent; but a single piece that is more than the quota ever allows goes out,
// and is paid for afterwards.
bool over_quota(Context& context, const FetchReader& reader, Reply& reply) {
  using broker::quotas::Kind;
  broker::quotas::Quotas& quotas = context.broker.quotas();
  if (!quotas.limited(Kind::fetch)) return false;
  const std::int64_t now_ms = context.broker.steady_ms();
  const auto bytes = static_cast<double>(reader.bytes());
  const bool unused = quotas.unused(Kind::fetch, reply.who(), now_ms);
  const std::int64_t silence_ms = quotas.record(Kind::fetch, reply.who(), bytes, now_ms);
  reply.silence(Kind::fetch, silence_ms);
  if (silence_ms == 0 || unused) return false;
  quotas.take_back(Kind::fetch, reply.who(), bytes, now_ms);
  return true;
}

// A fetch is not read larger than its client's quota could let through.
void keep_within_quota(const Context& context, const Reply& reply, FetchRules& rules) {
  const auto most = context.broker.quotas().burst_max(broker::quotas::Kind::fetch, reply.who());
  if (!most || *most >= static_cast<double>(rules.bytes_max)) return;
  rules.bytes_max = static_cast<std::size_t>(*most);
  rules.bytes_min = std::min(rules.bytes_min, rules.bytes_max);
}

void send_nothing_yet(const FetchSessions::Plan& plan, Reply reply) {
  FetchResponse response;
  response.session_id = FetchSessions::session_of(plan);
  reply.send(response);
}

// Reads, waits for more as long as the client allows, and answers.
Async<void> serve(ClientPtr client, FetchSessions::Plan plan, FetchRules rules,
                  std::int64_t deadline_ns, Reply reply, [[maybe_unused]] FetchTurn turn) {
  Context& context = *client->context;
  broker::Signal signal(context.broker.reactor().context());
  FetchReader reader(context, rules, plan.partitions);
  std::int64_t work_ns = 0;  // without the waiting
  for (;;) {
    const std::int64_t pass_ns = context.broker.clock().steady_ns();
    co_await read_pass(context, reader);
    work_ns += context.broker.clock().steady_ns() - pass_ns;
    if (reader.satisfied() || client->ended || context.broker.clock().steady_ns() >= deadline_ns) {
      break;
    }
    client->fetch_waits = &signal;
    if (reader.subscribe(&signal)) co_await signal.wait(deadline_ns);
    client->fetch_waits = nullptr;
    reader.unsubscribe();
  }
  if (reply.limited()) {
    reply.charge_work(work_ns);
    if (over_quota(context, reader, reply)) {
      send_nothing_yet(plan, std::move(reply));
      co_return;
    }
  }
  send(context, reader, plan, std::move(reply));
}

Async<void> wait_for_turn(ClientPtr client) {
  while (client->fetching) {
    if (!client->fetch_done) {
      client->fetch_done =
          std::make_unique<broker::Signal>(client->context->broker.reactor().context());
    }
    co_await client->fetch_done->wait(INT64_MAX);
  }
}

}  // namespace

Async<void> fetch(Context& context, ClientPtr client, Call call, Reply reply) {
  Result<FetchRequest> request = FetchRequest::decode(call.body, call.version);
  if (!request) {
    reply.malformed(request.error());
    co_return;
  }
  call.body = {};
  co_await wait_for_turn(client);
  FetchTurn turn(client);
  FetchRules rules = rules_of(*request, context, call.version);
  if (reply.limited()) keep_within_quota(context, reply, rules);
  FetchSessions::Plan plan = context.fetch_sessions.begin(*request, rules.by_id, context.now_ms());
  if (plan.error != ErrorCode::none) {
    FetchResponse response;
    response.error_code = context.wire(plan.error);
    reply.send(response);
    co_return;
  }
  const std::int64_t deadline_ns = context.deadline_in_ms(request->max_wait_ms);
  boost::asio::co_spawn(context.broker.reactor().context(),
                        serve(std::move(client), std::move(plan), rules, deadline_ns,
                              std::move(reply), std::move(turn)),
                        boost::asio::detached);
}

}  // namespace polylog::server::kafka
