#include "server/kafka/broker_rig.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "format/kafka/records.h"
#include "meta/catalog.h"
#include "protocol/kafka/create_topics_request.h"
#include "protocol/kafka/create_topics_response.h"
#include "storage/kafka/store.h"
#include "storage/rocketmq/store.h"
#include "storage/rocksdb/index.h"
#include "storage/segment/store.h"

namespace polylog::server::kafka {
namespace {

Result<storage::Opened> open_segment_store(fs::FileSystem& fs, const Clock& clock,
                                           const storage::StoreConfig& config) {
  const auto open_index = [&fs](const std::string& directory) {
    return storage::open_rocksdb_index(fs, directory);
  };
  return storage::segment::SegmentStore::open(fs, clock, config, open_index);
}

}  // namespace

WireClient::WireClient(std::uint16_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
}

WireClient::~WireClient() { ::close(socket_); }

void WireClient::send_bytes(ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // the peer closed; receiving will tell
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void WireClient::half_close() { ::shutdown(socket_, SHUT_WR); }

bool WireClient::readable_within(int ms) {
  pollfd wanted{socket_, POLLIN, 0};
  return ::poll(&wanted, 1, ms) == 1;
}

bool WireClient::silent_for(int ms) { return !readable_within(ms); }

bool WireClient::closed_by_peer() {
  std::uint8_t byte = 0;
  return readable_within(10'000) && ::recv(socket_, &byte, 1, 0) <= 0;
}

std::optional<Slice> WireClient::receive_frame() {
  const auto exactly = [this](std::size_t size) -> std::optional<std::vector<std::uint8_t>> {
    std::vector<std::uint8_t> bytes(size);
    std::size_t have = 0;
    while (have < size) {
      if (!readable_within(10'000)) return std::nullopt;
      const ssize_t count = ::recv(socket_, bytes.data() + have, size - have, 0);
      if (count <= 0) return std::nullopt;
      have += static_cast<std::size_t>(count);
    }
    return bytes;
  };
  const auto prefix = exactly(4);
  if (!prefix) return std::nullopt;
  auto frame = exactly(static_cast<std::size_t>(load_big<std::int32_t>(prefix->data())));
  if (!frame) return std::nullopt;
  return Slice::of(std::move(*frame));
}

void WireClient::send_request(std::int16_t key, std::int16_t version, ByteView body) {
  protocol::kafka::RequestHeader header;
  header.api_key = key;
  header.api_version = version;
  header.correlation_id = ++sent_;
  header.client_id = client_id;
  ByteWriter out;
  out.i32(0);
  ASSERT_TRUE(header.encode(out));
  out.bytes(body);
  out.patch_i32(0, static_cast<std::int32_t>(out.size() - 4));
  send_bytes(out.take_bytes());
}

BrokerRig::BrokerRig(std::map<std::string, std::string> settings) {
  std::string pattern = (std::filesystem::temp_directory_path() / "polylog-rig-XXXXXX").string();
  directory_ = ::mkdtemp(pattern.data());
  settings_ = broker::Settings::from(settings).value();
  EXPECT_TRUE(fs_.create_directory(directory_ + "/meta"));
  open();
}

void BrokerRig::open() {
  const std::string meta = directory_ + "/meta";
  metrics_ = std::make_unique<Metrics>();
  reactor_ = std::make_unique<broker::Reactor>();
  pool_ = std::make_unique<broker::Pool>(*reactor_, 2);
  auto catalog = meta::open_embedded_catalog(fs_, meta, Uuid{}).value();
  settings_.shared_log.store_host = "127.0.0.1:9092";
  storage::StoreConfig config;
  config.sidecar_directory = directory_ + "/sidecar";
  config.cluster_id = catalog->cluster_id();
  config.shared = settings_.shared_log;
  config.shared.commit_log_file_bytes = 16 << 20;
  config.shared.index_slots = 1000;
  config.shared.index_entries = 4000;
  const auto open_store = [&](storage::OpenStore engine, const std::string& name) {
    config.directory = directory_ + "/" + name;
    auto opened = engine(fs_, clock_, config);
    EXPECT_TRUE(opened) << opened.error().to_string();
    return std::move(opened->store);
  };
  broker::Broker::Stores stores;
  stores.volume = fs_.open_volume(directory_).value();
  stores.kafka = open_store(&storage::kafka::KafkaStore::open, "kafka");
  stores.rocketmq = open_store(&storage::rocketmq::RocketmqStore::open, "rocketmq");
  stores.segment = open_store(&open_segment_store, "segment");
  broker_ = std::make_unique<broker::Broker>(*reactor_, *pool_, fs_, clock_, settings_,
                                             std::move(catalog), std::move(stores));
  EXPECT_TRUE(broker_->load());
  groups_ = std::make_unique<broker::groups::Coordinator>(
      *broker_, [this](const std::string& line) {
        EXPECT_NE(line.find(expected_report_), std::string::npos) << line;
      });
  groups_->start();
  auto service = KafkaService::open(*broker_, *groups_, *metrics_, "127.0.0.1:0");
  EXPECT_TRUE(service) << service.error().to_string();
  service_ = std::move(*service);
  service_->start();
  thread_ = std::thread([this] { reactor_->run(); });
}

void BrokerRig::close(bool clean) {
  on_reactor([this] { service_->abort(); });
  reactor_->stop();
  thread_.join();
  if (clean) {
    EXPECT_TRUE(broker_->close());
  }
  service_ = nullptr;
  groups_ = nullptr;
  broker_ = nullptr;
  pool_ = nullptr;
  reactor_ = nullptr;
}

void BrokerRig::restart(bool clean) {
  close(clean);
  open();
}

BrokerRig::~BrokerRig() {
  close(true);
  std::filesystem::remove_all(directory_);
}

void BrokerRig::on_reactor(std::function<void()> task) {
  std::atomic<bool> done = false;
  reactor_->post([&] {
    task();
    done = true;
  });
  while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void BrokerRig::create_topic(const std::string& name, std::int32_t partitions,
                             const std::map<std::string, std::string>& configs) {
  protocol::kafka::CreateTopicsRequest request;
  auto& topic = request.topics.emplace_back();
  topic.name = name;
  topic.num_partitions = partitions;
  topic.replication_factor = 1;
  for (const auto& [key, value] : configs) {
    auto& config = topic.configs.emplace_back();
    config.name = key;
    config.value = value;
  }
  WireClient client(port());
  const auto response = client.ask<protocol::kafka::CreateTopicsResponse>(request, 7);
  ASSERT_EQ(response.topics.size(), 1U);
  ASSERT_EQ(response.topics[0].error_code, 0) << response.topics[0].error_message.value_or("");
}

Uuid BrokerRig::topic_id(const std::string& name) {
  Uuid id;
  on_reactor([&] {
    if (const auto topic = broker_->find(name)) id = topic->id;
  });
  return id;
}

Slice batch_of(const std::vector<RecordText>& records, Stamp stamp, format::kafka::Codec codec) {
  format::kafka::BatchOptions options;
  options.codec = codec;
  options.producer_id = ProducerId(stamp.producer_id);
  options.producer_epoch = stamp.epoch;
  options.base_sequence = stamp.sequence;
  options.transactional = stamp.transactional;
  format::kafka::BatchBuilder builder(options);
  for (const RecordText& text : records) {
    Record record;
    record.timestamp = Timestamp(text.timestamp_ms);
    record.value = as_bytes(text.value);
    EXPECT_TRUE(builder.add(record));
  }
  return Slice::of(builder.finish().value());
}

Slice batch_of(const std::vector<std::string>& values, Stamp stamp) {
  std::vector<RecordText> records;
  const std::int64_t now_ms = SystemClock().now().value();
  for (const std::string& value : values) records.push_back({value, now_ms});
  return batch_of(records, stamp);
}

std::vector<std::string> values_in(const Slice& batches) {
  std::vector<std::string> values;
  const auto read = [&values](const format::kafka::BatchHeader&, ByteView batch) {
    return format::kafka::for_each_record(batch, 1 << 20, [&values](const Record& record) {
      values.emplace_back(as_text(*record.value));
      return true;
    });
  };
  EXPECT_TRUE(format::kafka::for_each_batch(batches.view(), read));
  return values;
}

}  // namespace polylog::server::kafka
