#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "broker/groups/types.h"
#include "bytes/slice.h"
#include "server/kafka/context.h"
#include "server/kafka/reply.h"

// What the handlers of group requests share: the coordinator answers through callbacks, some of
// them minutes later.
namespace polylog::server::kafka {

// A reply that a callback, which can be copied, holds until it is called. What follows is waiting,
// so the client's share of this thread's time is counted now.
inline std::shared_ptr<Reply> hold(Reply reply) {
  if (reply.limited()) reply.charge_work();
  return std::make_shared<Reply>(std::move(reply));
}

// Who asks, in the form Kafka shows it.
inline std::string client_host(const Client& client) { return "/" + client.peer->ip; }
inline broker::groups::Caller caller_of(const ClientPtr& client, const Call& call) {
  broker::groups::Caller caller;
  caller.client_id = call.client_id.value_or("");
  caller.host = client_host(*client);
  caller.connected = [client] { return !client->ended; };
  return caller;
}

inline Slice slice_of(broker::groups::Bytes bytes) {
  return bytes.empty() ? Slice() : Slice::of(std::move(bytes));
}

// One answer made of several, each from a callback of its own: sent when all are there.
template <typename Response>
class Gathering : public std::enable_shared_from_this<Gathering<Response>> {
 public:
  Gathering(Reply reply, std::size_t parts) : reply_(hold(std::move(reply))), missing_(parts) {
    if (missing_ == 0) reply_->send(response);
  }
  // `fill` is called with the part's result and `response`.
  template <typename R, typename F>
  std::function<void(R)> part(F fill) {
    return [self = this->shared_from_this(), fill = std::move(fill)](R result) {
      fill(self->response, std::move(result));
      if (--self->missing_ == 0) self->reply_->send(self->response);
    };
  }
  Response response;

 private:
  std::shared_ptr<Reply> reply_;
  std::size_t missing_;
};

}  // namespace polylog::server::kafka
