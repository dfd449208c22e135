#include "server/net/listener.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <map>
#include <unordered_map>
#include <vector>

#include "server/log.h"
#include "server/net/socket.h"

namespace polylog::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;

constexpr milliseconds accept_pause{100};
constexpr int refused_per_pause_max = 64;
constexpr std::size_t held_max = 1024;  // connections over their address' quota

std::int64_t steady_now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

std::string describe(const tcp::endpoint& endpoint) {
  return join_host_port(endpoint.address().to_string(), endpoint.port());
}

// IPv4 clients of a dual-stack socket look like ::ffff:192.0.2.1; nobody can connect to that.
asio::ip::address plain(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return address;
}

bool out_of_descriptors(const boost::system::error_code& error) {
  return error == asio::error::no_descriptors || error.value() == ENFILE ||
         error == asio::error::no_buffer_space || error == asio::error::no_memory;
}

}  // namespace

struct Listener::Impl : std::enable_shared_from_this<Listener::Impl> {
  Impl(asio::io_context& context_in, ListenerOptions options_in, MakeHandler make_handler_in,
       Metrics& metrics)
      : context(context_in),
        options(std::move(options_in)),
        make_handler(std::move(make_handler_in)),
        sweep_timer(context),
        held_timer(context) {
    // Connections may outlive the listener, but are closed before.
    shared.closed = [this](Connection& closed) { connections.erase(&closed); };
    const std::string label = "protocol=\"" + options.protocol + "\"";
    shared.protocol = options.protocol;
    shared.frames = {std::make_shared<BufferPool>(), options.cut, options.frame_bytes_max};
    shared.requests_in_flight_max = options.requests_in_flight_max;
    shared.answer_bytes_max = options.answer_bytes_max;
    shared.bytes_received = &metrics.counter("polylog_network_received_bytes_total",
                                             "Bytes received from clients.", label);
    shared.bytes_sent = &metrics.counter("polylog_network_sent_bytes_total",
                                         "Bytes sent to clients.", label);
    accepted = &metrics.counter("polylog_connections_accepted_total", "Connections accepted.",
                                label);
    refused = &metrics.counter("polylog_connections_refused_total",
                               "Connections closed at once: max.connections or no descriptors.",
                               label);
    throttled = &metrics.counter("polylog_connections_throttled_total",
                                 "Connections closed for the connection rate of their address.",
                                 label);
    spare_descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  ~Impl() {
    if (spare_descriptor >= 0) ::close(spare_descriptor);
  }

  Result<void> bind(const HostPort& where);
  Result<void> bind_one(tcp::endpoint endpoint);
  void welcome(TcpSocket socket);
  void hold(TcpSocket socket, std::int64_t ms);
  void release_held();
  void refuse_some(tcp::acceptor& acceptor);
  static Async<void> accept_loop(std::shared_ptr<Impl> self, std::size_t index);
  static Async<void> sweep_loop(std::shared_ptr<Impl> self);
  void close_acceptors();

  asio::io_context& context;
  ListenerOptions options;
  MakeHandler make_handler;
  ConnectionShared shared;
  std::vector<tcp::acceptor> acceptors;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections;
  asio::steady_timer sweep_timer;
  std::multimap<std::int64_t, TcpSocket> held;    // by when they are closed, steady ns
  asio::steady_timer held_timer;                  // for the first of them
  std::uint16_t port = 0;
  std::string host;
  bool stopped = false;
  int spare_descriptor = -1;
  Counter* accepted = nullptr;
  Counter* refused = nullptr;
  Counter* throttled = nullptr;
  RateLimit accept_trouble{10'000};
};

Result<void> Listener::Impl::bind_one(tcp::endpoint endpoint) {
  boost::system::error_code error;
  tcp::acceptor acceptor(context);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) {
    acceptor.set_option(asio::ip::v6_only(!endpoint.address().is_unspecified()), error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1024, error);
  if (error == asio::error::address_in_use) {
    return fail(Errc::exists, "port " + std::to_string(endpoint.port()) + " of " +
                                  endpoint.address().to_string() +
                                  " is in use by another process");
  }
  if (error) {
    return fail(Errc::io, "cannot listen on " + describe(endpoint) + ": " + error.message());
  }
  port = acceptor.local_endpoint().port();
  acceptors.push_back(std::move(acceptor));
  return {};
}

Result<void> Listener::Impl::bind(const HostPort& where) {
  port = where.port;
  host = where.host;
  boost::system::error_code error;
  if (where.host.empty() || where.host == "*") {
    // One dual-stack socket serves both families; a machine without IPv6 gets the other.
    Result<void> both = bind_one(tcp::endpoint(asio::ip::address_v6::any(), port));
    if (both || both.error().code == Errc::exists) return both;
    return bind_one(tcp::endpoint(asio::ip::address_v4::any(), port));
  }
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(where.host, std::to_string(port), error);
  if (error) {
    return fail(Errc::invalid, "cannot resolve '" + where.host + "': " + error.message());
  }
  Result<void> last = fail(Errc::invalid, "'" + where.host + "' has no address");
  for (const auto& entry : found) {
    tcp::endpoint endpoint = entry.endpoint();
    endpoint.port(port);  // with port 0, every address gets the port the first one got
    const bool known = std::any_of(acceptors.begin(), acceptors.end(), [&](const auto& acceptor) {
      return acceptor.local_endpoint() == endpoint;
    });
    if (known) continue;
    Result<void> bound = bind_one(endpoint);
    if (!bound && bound.error().code == Errc::exists) return bound;
    if (!bound) last = std::move(bound);
  }
  if (acceptors.empty()) return last;
  return {};
}

Async<void> Listener::Impl::accept_loop(std::shared_ptr<Impl> self, std::size_t index) {
  tcp::acceptor& acceptor = self->acceptors[index];
  asio::steady_timer pause(self->context);
  while (!self->stopped) {
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    TcpSocket socket = co_await acceptor.async_accept(self->context, token);
    if (self->stopped) co_return;
    if (!error) {
      self->welcome(std::move(socket));
      continue;
    }
    if (error == asio::error::connection_aborted || error == asio::error::interrupted) continue;
    log_warn(self->accept_trouble, self->options.protocol +
                                       ": cannot accept connections: " + error.message());
    if (out_of_descriptors(error)) self->refuse_some(acceptor);
    // The backlog stays readable, so trying again at once would spin.
    pause.expires_after(accept_pause);
    co_await pause.async_wait(token);
  }
}

// Without descriptors, clients in the backlog would wait for an answer that does not come: the
// spare descriptor lets them in just to be closed.
void Listener::Impl::refuse_some(tcp::acceptor& acceptor) {
  if (spare_descriptor < 0) return;
  ::close(spare_descriptor);
  for (int i = 0; i < refused_per_pause_max; ++i) {
    const int descriptor =
        ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) break;
    ::close(descriptor);
    refused->add();
  }
  spare_descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void Listener::Impl::welcome(TcpSocket socket) {
  if (connections.size() >= options.connections_max) {
    refused->add();
    log_warn(accept_trouble, options.protocol + ": refused a connection: " +
                                 std::to_string(connections.size()) +
                                 " are open, and max.connections allows no more");
    return;
  }
  boost::system::error_code error;
  const tcp::endpoint remote = socket.remote_endpoint(error);
  if (error) return;  // gone already
  const tcp::endpoint local = socket.local_endpoint(error);
  if (error) return;
  const auto peer = std::make_shared<Peer>();
  peer->ip = plain(remote.address()).to_string();
  peer->port = remote.port();
  peer->local_host = plain(local.address()).to_string();
  peer->local_port = local.port();
  if (const std::int64_t ms = options.admit ? options.admit(peer->ip) : 0; ms > 0) {
    throttled->add();
    hold(std::move(socket), ms);
    return;
  }
  socket.set_option(tcp::no_delay(true), error);
  socket.non_blocking(true, error);
  accepted->add();

  const std::shared_ptr<Connection> connection =
      make_connection(std::move(socket), peer, shared, make_handler(peer));
  connections.emplace(connection.get(), connection);
  connection->start();
}

// A client whose connection is closed at once tries again at once: it is let wait instead. Beyond
// a number of those, closing is all that is left.
void Listener::Impl::hold(TcpSocket socket, std::int64_t ms) {
  if (held.size() >= held_max) return;
  held.emplace(steady_now_ns() + ms * 1'000'000, std::move(socket));
  release_held();
}

void Listener::Impl::release_held() {
  held.erase(held.begin(), held.upper_bound(steady_now_ns()));
  if (held.empty() || stopped) return;
  const std::chrono::nanoseconds first(held.begin()->first);
  held_timer.expires_at(asio::steady_timer::time_point(first));
  held_timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error) self->release_held();
  });
}

Async<void> Listener::Impl::sweep_loop(std::shared_ptr<Impl> self) {
  const std::int64_t idle_ms = self->options.idle_ms_max;
  const milliseconds period(std::clamp<std::int64_t>(idle_ms / 8, 20, 5000));
  while (!self->stopped) {
    self->sweep_timer.expires_after(period);
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await self->sweep_timer.async_wait(token);
    if (self->stopped) co_return;
    const std::int64_t before_ns = steady_now_ns() - idle_ms * 1'000'000;
    std::vector<std::shared_ptr<Connection>> idle;
    for (const auto& [key, connection] : self->connections) {
      if (connection->idle_since(before_ns)) idle.push_back(connection);
    }
    for (const auto& connection : idle) connection->close();
  }
}

void Listener::Impl::close_acceptors() {
  stopped = true;
  boost::system::error_code ignored;
  for (tcp::acceptor& acceptor : acceptors) acceptor.close(ignored);
  sweep_timer.cancel();
  held.clear();
  held_timer.cancel();
}

Listener::Listener(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Listener::~Listener() { abort(); }

Result<std::unique_ptr<Listener>> Listener::open(boost::asio::io_context& context,
                                                 ListenerOptions options,
                                                 MakeHandler make_handler, Metrics& metrics) {
  POLYLOG_ASSIGN(where, parse_host_port(options.address));
  auto impl = std::make_shared<Impl>(context, std::move(options), std::move(make_handler), metrics);
  POLYLOG_TRY(impl->bind(where));
  const std::weak_ptr<Impl> weak = impl;
  metrics.gauge("polylog_connections", "Connections that are open.",
                [weak] {
                  const auto self = weak.lock();
                  return self ? static_cast<double>(self->connections.size()) : 0.0;
                },
                "protocol=\"" + impl->options.protocol + "\"");
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

void Listener::start() {
  for (std::size_t i = 0; i < impl_->acceptors.size(); ++i) {
    asio::co_spawn(impl_->context, Impl::accept_loop(impl_, i), asio::detached);
  }
  if (impl_->options.idle_ms_max > 0) {
    asio::co_spawn(impl_->context, Impl::sweep_loop(impl_), asio::detached);
  }
}

void Listener::stop() {
  impl_->close_acceptors();
  std::vector<std::shared_ptr<Connection>> open;
  for (const auto& [key, connection] : impl_->connections) open.push_back(connection);
  for (const auto& connection : open) connection->finish();
}

void Listener::abort() {
  impl_->close_acceptors();
  std::vector<std::shared_ptr<Connection>> open;
  for (const auto& [key, connection] : impl_->connections) open.push_back(connection);
  for (const auto& connection : open) connection->close();
}

void Listener::set_connections_max(std::size_t connections_max) {
  impl_->options.connections_max = connections_max;
}

std::uint16_t Listener::port() const { return impl_->port; }
std::string Listener::address() const {
  return join_host_port(impl_->host, impl_->port);
}
std::size_t Listener::connections() const { return impl_->connections.size(); }

}  // namespace polylog::server
