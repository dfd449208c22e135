#include "server/http/service.h"

#include <boost/asio/awaitable.hpp>

#include "server/http/respond.h"
#include "server/net/listener.h"

namespace polylog::server::http {
namespace {

struct State {
  const Metrics& metrics;
  bool ready = false;
};

class Dispatcher final : public FrameHandler {
 public:
  explicit Dispatcher(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  Async<void> on_frame(Slice frame, ResponseSlot slot) override {
    const Response response = respond(frame.view(), state_->metrics, state_->ready);
    ByteWriter out;
    out.text(response.bytes);
    if (response.close) {
      slot.send_last(out.take());
    } else {
      slot.send(out.take());
    }
    co_return;
  }

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace

struct HttpService::Impl {
  std::shared_ptr<State> state;
  std::unique_ptr<Listener> listener;
};

HttpService::HttpService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpService::~HttpService() = default;

Result<std::unique_ptr<HttpService>> HttpService::open(boost::asio::io_context& context,
                                                       Metrics& metrics,
                                                       const std::string& address) {
  auto impl = std::make_unique<Impl>();
  impl->state = std::make_shared<State>(State{metrics});
  ListenerOptions options;
  options.protocol = "http";
  options.address = address;
  options.cut = cut_head;
  options.frame_bytes_max = head_bytes_max;
  options.connections_max = 1000;
  options.idle_ms_max = 60'000;
  options.requests_in_flight_max = 16;
  const std::shared_ptr<const State> state = impl->state;
  const auto make_handler = [state](const std::shared_ptr<const Peer>&) {
    return std::make_shared<Dispatcher>(state);
  };
  POLYLOG_ASSIGN(listener,
                 Listener::open(context, std::move(options), make_handler, metrics));
  impl->listener = std::move(listener);
  return std::unique_ptr<HttpService>(new HttpService(std::move(impl)));
}

void HttpService::start() { impl_->listener->start(); }
void HttpService::stop() { impl_->listener->stop(); }
void HttpService::abort() { impl_->listener->abort(); }
void HttpService::set_ready(bool ready) { impl_->state->ready = ready; }
std::uint16_t HttpService::port() const { return impl_->listener->port(); }
std::string HttpService::address() const { return impl_->listener->address(); }

}  // namespace polylog::server::http
