#pragma once

// Inside net/ only: included by .cc files that have Boost.Asio anyway.

#include <boost/asio/ip/tcp.hpp>

#include "server/net/connection.h"

namespace polylog::server {

class Connection::Socket {
 public:
  explicit Socket(boost::asio::ip::tcp::socket socket) : tcp(std::move(socket)) {}
  boost::asio::ip::tcp::socket tcp;
};

}  // namespace polylog::server
