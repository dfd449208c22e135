#include "server/net/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "bytes/endian.h"

namespace polylog::server {
namespace {

namespace asio = boost::asio;

std::string framed(const std::string& body) {
  std::string frame(4, '\0');
  store_big(reinterpret_cast<std::uint8_t*>(frame.data()), static_cast<std::int32_t>(body.size()));
  return frame + body;
}

// Answers a frame with itself. "hold" waits until a later "go" frees all that are held; "none"
// has no answer; "close" closes; "drop" loses its slot; "big N" answers N bytes; "mute N" mutes
// the connection for N ms.
class Echo : public FrameHandler {
 public:
  Async<void> on_frame(Slice frame, ResponseSlot slot) override {
    const std::string text(as_text(frame.view()));
    if (text == "hold") {
      held_.push_back(std::move(slot));
    } else if (text == "none") {
      slot.send_nothing();
    } else if (text == "close") {
      slot.close();
    } else if (text.starts_with("big ")) {
      answer(std::move(slot), std::string(std::stoul(text.substr(4)), 'b'));
    } else if (text.starts_with("mute ")) {
      slot.mute(std::stol(text.substr(5)));
      answer(std::move(slot), text);
    } else if (text != "drop") {
      answer(std::move(slot), text);
    }
    if (text == "go") {
      // In reverse, to show that order is not theirs to decide.
      while (!held_.empty()) {
        answer(std::move(held_.back()), "held" + std::to_string(held_.size()));
        held_.pop_back();
      }
    }
    co_return;
  }

 private:
  static void answer(ResponseSlot slot, const std::string& text) {
    ByteWriter out;
    out.i32(static_cast<std::int32_t>(text.size()));
    out.slice(Slice::copy_of(as_bytes(text)));
    slot.send(out.take());
  }
  std::deque<ResponseSlot> held_;
};

class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(socket_, generic, sizeof(address)), 0);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& bytes) {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void half_close() { ::shutdown(socket_, SHUT_WR); }
  // "" when the connection was closed, "?" after five seconds of silence.
  std::string receive() {
    std::string size = exactly(4);
    if (size.size() != 4) return size;
    return exactly(static_cast<std::size_t>(
        load_big<std::int32_t>(reinterpret_cast<const std::uint8_t*>(size.data()))));
  }
  bool readable_within(int ms) {
    pollfd wanted{socket_, POLLIN, 0};
    return ::poll(&wanted, 1, ms) == 1;
  }
  int descriptor() const { return socket_; }

 private:
  std::string exactly(std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t have = 0;
    while (have < size) {
      if (!readable_within(5000)) return "?";
      const ssize_t count = ::recv(socket_, bytes.data() + have, size - have, 0);
      if (count <= 0) return "";
      have += static_cast<std::size_t>(count);
    }
    return bytes;
  }
  int socket_;
};

class Serving : public testing::Test {
 protected:
  void start(std::function<void(ListenerOptions&)> change = nullptr) {
    ListenerOptions options;
    options.protocol = "echo";
    options.address = "127.0.0.1:0";
    options.frame_bytes_max = 4 * 1024 * 1024;
    if (change) change(options);
    const auto make = [](const std::shared_ptr<const Peer>&) { return std::make_shared<Echo>(); };
    Result<std::unique_ptr<Listener>> opened = Listener::open(context_, options, make, metrics_);
    ASSERT_TRUE(opened) << opened.error().to_string();
    listener_ = std::move(*opened);
    listener_->start();
    thread_ = std::thread([this] { context_.run(); });
  }
  void on_reactor(std::function<void()> task) {
    std::atomic<bool> done = false;
    asio::post(context_, [&] {
      task();
      done = true;
    });
    while (!done) std::this_thread::yield();
  }
  std::size_t connections() {
    std::size_t count = 0;
    on_reactor([&] { count = listener_->connections(); });
    return count;
  }
  bool connections_become(std::size_t wanted) {
    for (int i = 0; i < 500; ++i) {
      if (connections() == wanted) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    on_reactor([&] { listener_->abort(); });
    context_.stop();
    thread_.join();
    listener_ = nullptr;
  }

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  Metrics metrics_;
  std::unique_ptr<Listener> listener_;
  std::thread thread_;
};

TEST_F(Serving, pipelined_requests_are_answered_in_order) {
  start();
  Client client(listener_->port());
  std::string stream;
  for (int i = 0; i < 5000; ++i) stream += framed("request " + std::to_string(i));
  std::thread sender([&] { client.send(stream); });
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(client.receive(), "request " + std::to_string(i));
  sender.join();
}

TEST_F(Serving, an_answer_that_is_late_holds_later_ones_back) {
  start();
  Client client(listener_->port());
  client.send(framed("hold") + framed("hold") + framed("quick"));
  EXPECT_FALSE(client.readable_within(100));
  client.send(framed("go"));
  EXPECT_EQ(client.receive(), "held1");
  EXPECT_EQ(client.receive(), "held2");
  EXPECT_EQ(client.receive(), "quick");
  EXPECT_EQ(client.receive(), "go");
}

TEST_F(Serving, a_request_without_an_answer_is_left_out) {
  start();
  Client client(listener_->port());
  client.send(framed("none") + framed("a") + framed("none") + framed("b"));
  EXPECT_EQ(client.receive(), "a");
  EXPECT_EQ(client.receive(), "b");
}

TEST_F(Serving, a_muted_connection_is_answered_and_not_heard_for_so_long) {
  start();
  Client client(listener_->port());
  const auto begun = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begun);
  };
  // What was sent along with the request that mutes waits as what comes later does.
  client.send(framed("mute 400") + framed("with it"));
  EXPECT_EQ(client.receive(), "mute 400");
  EXPECT_LT(passed(), std::chrono::milliseconds(300)) << "its own answer leaves at once";
  client.send(framed("later"));
  EXPECT_EQ(client.receive(), "with it");
  EXPECT_GE(passed(), std::chrono::milliseconds(395));
  EXPECT_EQ(client.receive(), "later");
  Client other(listener_->port());
  client.send(framed("mute 60000"));
  EXPECT_EQ(client.receive(), "mute 60000");
  other.send(framed("free"));
  EXPECT_EQ(other.receive(), "free") << "others are not meant";
}

TEST_F(Serving, a_mute_holds_up_what_would_free_earlier_answers) {
  start();
  Client client(listener_->port());
  const auto begun = std::chrono::steady_clock::now();
  client.send(framed("hold") + framed("mute 300"));
  EXPECT_FALSE(client.readable_within(50)) << "answers keep their order";
  client.send(framed("go"));
  EXPECT_EQ(client.receive(), "held1");
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(295));
  EXPECT_EQ(client.receive(), "mute 300");
  EXPECT_EQ(client.receive(), "go");
}

TEST_F(Serving, a_slow_dribble_is_one_request) {
  start();
  Client client(listener_->port());
  for (const char byte : framed("drip")) {
    client.send(std::string(1, byte));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(client.receive(), "drip");
}

TEST_F(Serving, large_frames_come_back_whole) {
  start();
  Client client(listener_->port());
  std::string body(3'500'000, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 7 + i / 1000);
  std::thread sender([&] { client.send(framed(body) + framed("after")); });
  EXPECT_TRUE(client.receive() == body);
  EXPECT_EQ(client.receive(), "after");
  sender.join();
}

TEST_F(Serving, close_sends_what_is_before_it) {
  start();
  Client client(listener_->port());
  client.send(framed("first") + framed("close") + framed("never"));
  EXPECT_EQ(client.receive(), "first");
  EXPECT_EQ(client.receive(), "");
  EXPECT_TRUE(connections_become(0));
}

TEST_F(Serving, a_lost_answer_closes_the_connection) {
  start();
  Client client(listener_->port());
  client.send(framed("drop"));
  EXPECT_EQ(client.receive(), "");
}

TEST_F(Serving, an_oversized_or_foreign_frame_closes_the_connection) {
  start();
  for (const std::string& bytes :
       {std::string("\x7f\xff\xff\xff", 4), std::string("\xff\xff\xff\xfe", 4),
        std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\x16\x03\x01\x02\x00\x01\x00", 7)}) {
    Client client(listener_->port());
    client.send(bytes);
    EXPECT_EQ(client.receive(), "");
  }
  EXPECT_TRUE(connections_become(0));
}

TEST_F(Serving, a_half_closed_peer_still_gets_its_answers) {
  start();
  Client client(listener_->port());
  client.send(framed("one") + framed("two"));
  client.half_close();
  EXPECT_EQ(client.receive(), "one");
  EXPECT_EQ(client.receive(), "two");
  EXPECT_EQ(client.receive(), "");
  EXPECT_TRUE(connections_become(0));
}

TEST_F(Serving, a_peer_that_vanishes_is_forgotten) {
  start();
  {
    Client client(listener_->port());
    client.send(framed("hold") + framed("big 3000000"));
    EXPECT_TRUE(connections_become(1));
    const linger abort_on_close{1, 0};
    ::setsockopt(client.descriptor(), SOL_SOCKET, SO_LINGER, &abort_on_close,
                 sizeof(abort_on_close));
  }
  EXPECT_TRUE(connections_become(0));
}

TEST_F(Serving, a_peer_that_does_not_read_stops_being_read) {
  start([](ListenerOptions& options) { options.answer_bytes_max = 1024 * 1024; });
  Client client(listener_->port());
  std::string stream;
  for (int i = 0; i < 64; ++i) stream += framed("big 1000000");
  client.send(stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const Counter& sent =
      metrics_.counter("polylog_network_sent_bytes_total", "", "protocol=\"echo\"");
  EXPECT_LT(sent.value(), 30'000'000U);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(client.receive().size(), 1'000'000U);
}

TEST_F(Serving, requests_in_flight_are_bounded) {
  start([](ListenerOptions& options) { options.requests_in_flight_max = 3; });
  Client client(listener_->port());
  client.send(framed("hold") + framed("hold") + framed("hold") + framed("go"));
  // The fourth frees the others, but it is not looked at while three are in flight.
  EXPECT_FALSE(client.readable_within(200));
}

TEST_F(Serving, connections_beyond_the_limit_are_closed_at_once) {
  start([](ListenerOptions& options) { options.connections_max = 2; });
  Client first(listener_->port()), second(listener_->port());
  EXPECT_TRUE(connections_become(2));
  Client third(listener_->port());
  EXPECT_EQ(third.receive(), "");
  first.send(framed("still"));
  EXPECT_EQ(first.receive(), "still");
}

TEST_F(Serving, idle_connections_are_closed_and_waiting_ones_are_not) {
  start([](ListenerOptions& options) { options.idle_ms_max = 200; });
  Client idle(listener_->port()), waiting(listener_->port());
  waiting.send(framed("hold"));
  EXPECT_EQ(idle.receive(), "");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(connections(), 1U);
  waiting.send(framed("go"));
  EXPECT_EQ(waiting.receive(), "held1");
}

TEST_F(Serving, stop_lets_answers_out_and_then_closes) {
  start();
  Client waiting(listener_->port()), idle(listener_->port());
  waiting.send(framed("big 2000000"));
  EXPECT_TRUE(connections_become(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  on_reactor([&] { listener_->stop(); });
  EXPECT_EQ(idle.receive(), "");
  EXPECT_EQ(waiting.receive().size(), 2'000'000U);
  EXPECT_EQ(waiting.receive(), "");
}

// BR-31: no busy accept loop, a clear refusal, and service again once descriptors are free.
TEST_F(Serving, running_out_of_descriptors_refuses_without_spinning_and_recovers) {
  start();
  Client early(listener_->port());
  early.send(framed("early"));
  EXPECT_EQ(early.receive(), "early");
  Client late(listener_->port());  // its client-side descriptor has to exist before the drought
  EXPECT_TRUE(connections_become(2));

  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int waiting = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::vector<int> hogs;
  rlimit low = before;
  low.rlim_cur = static_cast<rlim_t>(waiting) + 20;
  ::setrlimit(RLIMIT_NOFILE, &low);
  for (int hog = ::open("/dev/null", O_RDONLY); hog >= 0; hog = ::open("/dev/null", O_RDONLY)) {
    hogs.push_back(hog);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(listener_->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  timespec cpu_before{}, cpu_after{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_before);
  ASSERT_EQ(::connect(waiting, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  pollfd wanted{waiting, POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 3000), 1) << "not refused";
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_after);
  const double cpu = static_cast<double>(cpu_after.tv_sec - cpu_before.tv_sec) +
                     static_cast<double>(cpu_after.tv_nsec - cpu_before.tv_nsec) / 1e9;
  EXPECT_LT(cpu, 0.25);
  late.send(framed("late"));
  EXPECT_EQ(late.receive(), "late");

  for (const int hog : hogs) ::close(hog);
  ::close(waiting);
  ::setrlimit(RLIMIT_NOFILE, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  Client again(listener_->port());
  again.send(framed("again"));
  EXPECT_EQ(again.receive(), "again");
}

TEST_F(Serving, a_port_in_use_is_one_clear_sentence) {
  start();
  ListenerOptions options;
  options.address = "127.0.0.1:" + std::to_string(listener_->port());
  const auto make = [](const std::shared_ptr<const Peer>&) { return std::make_shared<Echo>(); };
  asio::io_context other;
  Metrics metrics;
  const auto second = Listener::open(other, options, make, metrics);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::exists);
  EXPECT_NE(second.error().context.find("in use"), std::string::npos);
}

TEST(HostPort, forms) {
  EXPECT_EQ(parse_host_port("localhost:9092")->host, "localhost");
  EXPECT_EQ(parse_host_port("localhost:9092")->port, 9092);
  EXPECT_EQ(parse_host_port("[::1]:1")->host, "::1");
  EXPECT_EQ(parse_host_port(":80")->host, "");
  for (const std::string bad :
       {"localhost", "localhost:", "localhost:65536", "localhost:9x", "::1:9092", "a:-1"}) {
    EXPECT_FALSE(parse_host_port(bad)) << bad;
  }
}

}  // namespace
}  // namespace polylog::server
