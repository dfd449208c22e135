#pragma once

// Inside net/ only: included by .cc files that have Boost.Asio anyway.

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "server/net/connection.h"

namespace polylog::server {

// An accepted, non-blocking TCP socket. Bound to the reactor's own executor and not to any
// executor, it is less than half the size.
using TcpSocket =
    boost::asio::ip::tcp::socket::rebind_executor<boost::asio::io_context::executor_type>::other;

// `shared` outlives it.
std::shared_ptr<Connection> make_connection(TcpSocket socket, std::shared_ptr<const Peer> peer,
                                            ConnectionShared& shared,
                                            std::shared_ptr<FrameHandler> handler);

}  // namespace polylog::server
