#pragma once

// Lets headers declare coroutines without including Boost.Asio; a .cc that defines or awaits one
// includes <boost/asio/awaitable.hpp> and friends itself.
namespace boost::asio {
class any_io_executor;
class io_context;
template <typename T, typename Executor>
class awaitable;
}  // namespace boost::asio

namespace polylog {

template <typename T>
using Async = boost::asio::awaitable<T, boost::asio::any_io_executor>;

}  // namespace polylog
