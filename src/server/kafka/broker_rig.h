#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "broker/broker.h"
#include "broker/groups/coordinator.h"
#include "format/kafka/compression.h"
#include "fs/posix_file_system.h"
#include "protocol/kafka/header.h"
#include "server/kafka/service.h"

// For tests: a broker with the real engine in a directory of its own, served on a port that was
// free, and a client that speaks the protocol through the generated codecs.
namespace polylog::server::kafka {

class WireClient {
 public:
  explicit WireClient(std::uint16_t port);
  ~WireClient();
  WireClient(const WireClient&) = delete;
  WireClient& operator=(const WireClient&) = delete;

  void send_bytes(ByteView bytes);
  void half_close();
  // One frame without its size; nothing when the connection was closed or silent for 10 s.
  std::optional<Slice> receive_frame();
  bool closed_by_peer();  // waits for it
  bool silent_for(int ms);

  template <typename Request>
  void send(const Request& request, std::int16_t version) {
    ByteWriter body;
    const Result<void> encoded = request.encode(body, version);
    ASSERT_TRUE(encoded) << encoded.error().to_string();
    send_request(Request::api_key, version, body.take().flatten());
  }
  template <typename Response>
  Response receive(std::int16_t version) {
    const std::optional<Slice> frame = receive_frame();
    EXPECT_TRUE(frame) << "closed or silent, version " << version;
    if (!frame) return {};
    const auto header =
        protocol::kafka::ResponseHeader::decode(*frame, Response::api_key, version);
    EXPECT_TRUE(header);
    if (!header) return {};
    EXPECT_EQ(header->correlation_id, ++received_);
    Result<Response> response = Response::decode(header->body(*frame), version);
    EXPECT_TRUE(response) << response.error().to_string() << ", version " << version;
    return response ? *response : Response();
  }
  template <typename Response, typename Request>
  Response ask(const Request& request, std::int16_t version) {
    send(request, version);
    return receive<Response>(version);
  }

  std::optional<std::string> client_id = "test";

 private:
  void send_request(std::int16_t key, std::int16_t version, ByteView body);
  bool readable_within(int ms);

  int socket_;
  std::int32_t sent_ = 0;
  std::int32_t received_ = 0;
};

class BrokerRig {
 public:
  explicit BrokerRig(std::map<std::string, std::string> settings = {});
  ~BrokerRig();
  BrokerRig(const BrokerRig&) = delete;
  BrokerRig& operator=(const BrokerRig&) = delete;

  std::uint16_t port() const { return service_->port(); }
  broker::Broker& broker() { return *broker_; }
  broker::groups::Coordinator& groups() { return *groups_; }
  Metrics& metrics() { return *metrics_; }
  // The same directory served anew, on another port. Unclean: nothing was closed before, as after
  // a kill.
  void restart(bool clean = true);
  // A line with this text may be reported about groups; any other fails the test.
  void expect_report(std::string text) { expected_report_ = std::move(text); }
  // Runs on the reactor's thread; returns when it has.
  void on_reactor(std::function<void()> task);
  // Makes a topic through the protocol; fails the test when that fails.
  void create_topic(const std::string& name, std::int32_t partitions = 1,
                    const std::map<std::string, std::string>& configs = {});
  Uuid topic_id(const std::string& name);

 private:
  void open();
  void close(bool clean);

  std::string directory_;
  std::string expected_report_ = "\n";  // never part of a line
  fs::PosixFileSystem fs_;
  SystemClock clock_;
  std::unique_ptr<Metrics> metrics_;
  broker::Settings settings_;
  std::unique_ptr<broker::Reactor> reactor_;
  std::unique_ptr<broker::Pool> pool_;
  std::unique_ptr<broker::Broker> broker_;
  std::unique_ptr<broker::groups::Coordinator> groups_;
  std::unique_ptr<KafkaService> service_;
  std::thread thread_;
};

struct RecordText {
  std::string value;
  std::int64_t timestamp_ms;
};
struct Stamp {
  std::int64_t producer_id = -1;
  std::int16_t epoch = -1;
  std::int32_t sequence = -1;
  bool transactional = false;
};
// A batch as a producer sends it.
Slice batch_of(const std::vector<RecordText>& records, Stamp stamp = {},
               format::kafka::Codec codec = format::kafka::Codec::none);
Slice batch_of(const std::vector<std::string>& values, Stamp stamp = {});
// The values in the batches of a fetch answer, in order.
std::vector<std::string> values_in(const Slice& batches);

}  // namespace polylog::server::kafka
