#include "cli/connection.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace polylog::cli {
namespace {

// Accepts one connection on a port that the system picks, and treats it as told.
class Peer {
 public:
  explicit Peer(std::function<void(int)> treat) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, treat = std::move(treat)] {
      const int socket = ::accept(listener_, nullptr, nullptr);
      treat(socket);
      ::close(socket);
    });
  }
  ~Peer() {
    thread_.join();
    ::close(listener_);
  }
  const std::string& address() const { return address_; }

 private:
  int listener_ = -1;
  std::string address_;
  std::thread thread_;
};

void say(int socket, std::string_view bytes) {
  EXPECT_EQ(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// Until the other side has closed.
void wait_for_end(int socket) {
  char byte = 0;
  while (::recv(socket, &byte, 1, 0) > 0) {
  }
}

using namespace std::string_view_literals;

TEST(Connection, a_frame_that_comes_in_pieces_is_put_together) {
  Peer peer([](int socket) {
    for (const std::string_view piece : {"\0\0"sv, "\0\x05he"sv, "ll"sv, "o\0\0\0\0"sv}) {
      say(socket, piece);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    wait_for_end(socket);
  });
  const auto connection = Connection::open(peer.address(), 5000);
  ASSERT_TRUE(connection) << connection.error().context;
  const auto frame = (*connection)->receive(5000);
  ASSERT_TRUE(frame);
  EXPECT_EQ(as_text(frame->view()), "hello");
  const auto empty = (*connection)->receive(5000);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->empty());
}

TEST(Connection, what_does_not_come_in_time_is_an_error) {
  Peer peer([](int socket) {
    say(socket, "\0\0\0\x05he"sv);
    wait_for_end(socket);
  });
  const auto connection = Connection::open(peer.address(), 5000);
  ASSERT_TRUE(connection);
  const auto frame = (*connection)->receive(50);
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code, Errc::timed_out);
}

TEST(Connection, a_peer_that_takes_nothing_is_an_error_in_time) {
  Peer peer([](int socket) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    wait_for_end(socket);
  });
  const auto connection = Connection::open(peer.address(), 5000);
  ASSERT_TRUE(connection);
  Chain chain;
  chain.bytes.assign(64 << 20, 0);
  const auto sent = (*connection)->send(chain, 100);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::timed_out);
}

TEST(Connection, a_peer_that_goes_away_is_an_error) {
  Peer peer([](int socket) { say(socket, "\0\0\0\x05he"sv); });
  const auto connection = Connection::open(peer.address(), 5000);
  ASSERT_TRUE(connection);
  const auto frame = (*connection)->receive(5000);
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code, Errc::unavailable);
}

TEST(Connection, another_protocols_greeting_is_no_frame) {
  Peer peer([](int socket) {
    say(socket, "HTTP/1.1 400 Bad Request\r\n\r\n");
    wait_for_end(socket);
  });
  const auto connection = Connection::open(peer.address(), 5000);
  ASSERT_TRUE(connection);
  const auto frame = (*connection)->receive(5000);
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code, Errc::too_large);
  EXPECT_NE(frame.error().context.find("Kafka's protocol"), std::string::npos);
}

TEST(Connection, nobody_listening_is_said_with_what_to_do) {
  // A port that was bound a moment ago and is free again.
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in bound{};
  bound.sin_family = AF_INET;
  bound.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(probe, reinterpret_cast<sockaddr*>(&bound), sizeof bound), 0);
  socklen_t size = sizeof bound;
  ::getsockname(probe, reinterpret_cast<sockaddr*>(&bound), &size);
  ::close(probe);
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
  const auto refused = Connection::open(address, 1000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unavailable);
  EXPECT_NE(refused.error().context.find("polylog serve"), std::string::npos);
}

TEST(Connection, an_address_that_is_none_is_refused) {
  for (const char* address : {"localhost:", "localhost:http", "localhost:99999", "::1:9092"}) {
    const auto connection = Connection::open(address, 1000);
    ASSERT_FALSE(connection) << address;
    EXPECT_EQ(connection.error().code, Errc::invalid) << address;
  }
}

}  // namespace
}  // namespace polylog::cli
