#include "cli/serve.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "broker/broker.h"
#include "broker/groups/coordinator.h"
#include "cli/read_settings.h"
#include "convert/marker.h"
#include "format/kafka/checkpoint.h"
#include "format/kafka/names.h"
#include "format/rocketmq/names.h"
#include "fs/posix_file_system.h"
#include "journal/journal.h"
#include "server/heap.h"
#include "server/http/broker_metrics.h"
#include "server/http/service.h"
#include "server/kafka/service.h"
#include "server/log.h"
#include "server/net/listener.h"

// `polylog serve`: one process, from an empty or existing data directory to a clean stop.
namespace polylog::cli {
namespace {

constexpr std::size_t config_bytes_max = 1 << 20;
constexpr std::size_t pool_threads = 3;
constexpr std::size_t recovery_threads = 16;  // they wait for the disk, mostly
constexpr std::int64_t stop_patience_ms = 5000;
constexpr std::int64_t stop_check_ms = 20;

// Descriptors: as many as the system allows. A quarter of them may be data files kept open, the
// rest is for files in the middle of a write and for connections, which get half: clients must not
// be able to take the descriptors that reading a cold segment needs.
std::size_t raise_open_files(std::int32_t& connections_max) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  connections_max = static_cast<std::int32_t>(
      std::min<rlim_t>(static_cast<rlim_t>(connections_max), limit.rlim_cur / 2));
  return std::clamp<std::size_t>(static_cast<std::size_t>(limit.rlim_cur) / 4, 32, 65536);
}

// The cluster a Kafka directory belongs to, when there is one already.
Result<Uuid> known_cluster(fs::FileSystem& fs, const std::string& directory) {
  const std::string path = fs::join(directory, format::kafka::meta_properties_file);
  if (!fs::exists(fs, path)) return Uuid{};
  POLYLOG_ASSIGN(bytes, fs::read_file(fs, path, config_bytes_max));
  POLYLOG_ASSIGN(identity, format::kafka::parse_meta_properties(as_text(bytes)));
  auto id = Uuid::parse(identity.cluster_id);
  if (!id) return fail(Errc::unsupported, path + ": cluster id " + identity.cluster_id);
  return id;
}

// A directory that is not ours to use is refused before anything is written to it: a second Kafka
// log directory, or one that a Kafka broker would not start on either.
Result<void> check_directory(fs::FileSystem& fs, const std::string& data) {
  POLYLOG_TRY(convert::check_finished(fs, data));
  const std::string directory = fs::join(data, "kafka");
  if (fs::exists(fs, fs::join(data, format::kafka::meta_properties_file))) {
    return fail(Errc::unsupported, data + " is itself a Kafka log directory, which polylog keeps " +
                                       "in " + directory +
                                       ": give another --data and move it there");
  }
  if (!fs::exists(fs, directory)) return {};
  // A Kafka broker that runs on it holds this lock; the store takes it for good later.
  const std::string lock = fs::join(directory, format::kafka::lock_file);
  if (fs::exists(fs, lock)) POLYLOG_TRY(fs.lock(lock).map([](const auto&) {}));
  POLYLOG_TRY(known_cluster(fs, directory).map([](const Uuid&) {}));
  POLYLOG_ASSIGN(names, fs.list(directory));
  for (const std::string& name : names) {
    const std::string path = fs::join(directory, name);
    POLYLOG_ASSIGN(info, fs.info(path));
    if (!info.directory || format::kafka::exempt_directory(name)) continue;
    if (!format::kafka::parse_partition_directory(name)) {
      return fail(Errc::unsupported, path + " is no partition's directory: " + directory +
                                         " is no Kafka log directory");
    }
  }
  return {};
}

// The address that records carry as their store's: the one clients are told to connect to, where
// that is a number.
std::string store_host(const broker::Settings& settings, const std::string& kafka) {
  std::string host = settings.advertised_host;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  const std::string advertised = host + ":" + std::to_string(settings.advertised_port);
  if (broker::parse_origin(advertised) != broker::Origin{}) return advertised;
  const auto listening = server::parse_host_port(kafka);
  return "127.0.0.1:" + std::to_string(listening ? listening->port : 0);
}

class Server {
 public:
  Server(const ServeOptions& options, const Engines& engines, broker::Settings settings)
      : options_(options),
        engines_(engines),
        settings_(std::move(settings)),
        signals_(reactor_.context(), SIGTERM, SIGINT) {}

  Result<void> start() {
    POLYLOG_TRY(open_listeners());
    POLYLOG_TRY(check_directory(fs_, options_.data));
    POLYLOG_TRY(open_broker());
    auto listening = open_kafka();
    // The stores were opened: they are closed as after any clean stop.
    if (!listening) {
      if (auto closed = broker_->close(); !closed) return closed;
    }
    return listening;
  }

  Result<void> run() {
    server::http::add_broker_metrics(metrics_, *broker_);
    broker_->start_background();
    // A full pool has no use for it either.
    reactor_.every(server::heap_rest_ms, [this] {
      static_cast<void>(pool_.submit([this] { heap_.give_back(); }, {}));
    });
    groups_->start();
    http_->start();
    kafka_->start();
    http_->set_ready(true);
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) begin_stop();
    });
    std::printf("polylog ready kafka=%s http=%s data=%s\n", kafka_->address().c_str(),
                http_->address().c_str(), options_.data.c_str());
    std::fflush(stdout);
    reactor_.run();
    server::log_info("stopping: closing the stores");
    auto closed = broker_->close();
    if (closed && journal_ != nullptr) closed = journal_->close();
    kafka_.reset();
    http_.reset();
    return closed;
  }

 private:
  // Ports before data: a port in use must leave a directory as it was, or unmade. Kafka's is only
  // tried here, as its service needs the broker.
  Result<void> open_listeners() {
    server::Metrics unused;
    server::ListenerOptions kafka;
    kafka.protocol = "kafka";
    kafka.address = options_.kafka;
    POLYLOG_TRY(
        server::Listener::open(reactor_.context(), kafka, nullptr, unused).map([](const auto&) {}));
    POLYLOG_ASSIGN(http,
                   server::http::HttpService::open(reactor_.context(), metrics_, options_.http));
    http_ = std::move(http);
    server::add_process_metrics(metrics_);
    return {};
  }

  Result<void> open_broker() {
    open_files_ = raise_open_files(settings_.max_connections);
    POLYLOG_TRY(fs::create_directories(fs_, options_.data));
    POLYLOG_ASSIGN(lock, fs_.lock(fs::join(options_.data, ".lock")));
    lock_ = std::move(lock);
    POLYLOG_ASSIGN(cluster, known_cluster(fs_, fs::join(options_.data, "kafka")));
    const std::string meta_directory = fs::join(options_.data, "meta");
    POLYLOG_TRY(fs::create_directories(fs_, meta_directory));
    POLYLOG_ASSIGN(catalog, meta::open_embedded_catalog(fs_, meta_directory, cluster));
    settings_.shared_log.store_host = store_host(settings_, options_.kafka);
    POLYLOG_TRY(open_journal());
    POLYLOG_ASSIGN(stores, open_stores(catalog->cluster_id()));
    broker_ = std::make_unique<broker::Broker>(reactor_, pool_, store_fs(), clock_, settings_,
                                               std::move(catalog), std::move(stores));
    broker_->set_report([](const std::string& line) { server::log_warn(line); });
    POLYLOG_ASSIGN(notes, broker_->load());
    for (const std::string& line : notes) server::log_warn(line);
    groups_ = std::make_unique<broker::groups::Coordinator>(
        *broker_, [](const std::string& line) { server::log_warn(line); });
    return {};
  }

  // Before the stores: what the last run left in it belongs into their files.
  Result<void> open_journal() {
    journal::Options options;
    options.root = options_.data;
    options.directory = fs::join(options_.data, "journal");
    options.bytes = static_cast<std::uint64_t>(settings_.journal_bytes);
    options.witnesses = {
        fs::join("kafka", format::kafka::recovery_point_checkpoint_file),
        fs::join("kafka", format::kafka::clean_shutdown_file),
        fs::join("kafka", format::kafka::high_watermark_checkpoint_file),  // Kafka's every 5 s
        fs::join("rocketmq", format::rocketmq::checkpoint_file),
    };
    // A RocketMQ broker that runs on the directory holds this one; Kafka's was tried before.
    const std::string lock = fs::join(options_.data, "rocketmq/lock");
    if (fs::exists(fs_, lock)) POLYLOG_TRY(fs_.lock(lock).map([](const auto&) {}));
    if (!settings_.journal) {
      POLYLOG_ASSIGN(replayed, journal::Journal::recover_and_remove(fs_, options));
      report(replayed);
      return {};
    }
    auto opened = journal::Journal::open(fs_, options);
    if (!opened && opened.error().code == Errc::no_space) {
      server::log_warn("no room for the journal, files are synced instead: " +
                       opened.error().to_string());
      return {};
    }
    if (!opened) return fail(std::move(opened).error());
    journal_ = std::move(*opened);
    report(journal_->replayed());
    return {};
  }

  fs::FileSystem& store_fs() { return journal_ != nullptr ? journal_->file_system() : fs_; }

  static void report(const journal::Replayed& replayed) {
    if (replayed.writes == 0) return;
    server::log_info("journal: " + std::to_string(replayed.bytes) + " bytes in " +
                     std::to_string(replayed.writes) + " writes put back into " +
                     std::to_string(replayed.files) + " files");
  }

  Result<broker::Broker::Stores> open_stores(const Uuid& cluster) {
    broker::Broker::Stores stores;
    POLYLOG_ASSIGN(volume, store_fs().open_volume(options_.data));
    stores.volume = std::move(volume);
    stores.journal = journal_.get();
    POLYLOG_ASSIGN(kafka, open_store(storage::Layout::kafka, engines_.kafka, cluster));
    stores.kafka = std::move(kafka);
    stores.grants = grants_;
    const auto add = [&](storage::Layout layout, storage::OpenStore open,
                         std::unique_ptr<storage::Store>& store) -> Result<void> {
      if (open == nullptr) return {};
      POLYLOG_ASSIGN(opened, open_store(layout, open, cluster));
      store = std::move(opened);
      return {};
    };
    auto others = add(storage::Layout::rocketmq, engines_.rocketmq, stores.rocketmq);
    if (others) others = add(storage::Layout::segment, engines_.segment, stores.segment);
    if (others) return stores;
    // Those that are open are closed as after any clean stop; what keeps one from it is less than
    // why we stop.
    for (const auto& [layout, store] : stores.opened()) {
      if (auto closed = store->close(); !closed) server::log_warn(closed.error().to_string());
    }
    return fail(others.error());
  }

  Result<std::unique_ptr<storage::Store>> open_store(storage::Layout layout,
                                                     storage::OpenStore open, const Uuid& cluster) {
    const auto engines = static_cast<std::size_t>(1 + (engines_.rocketmq != nullptr) +
                                                  (engines_.segment != nullptr));
    POLYLOG_ASSIGN(defaults, broker::resolve_topic_config({}, settings_.values(), layout));
    storage::StoreConfig config;
    config.directory = fs::join(options_.data, std::string(broker::layout_name(layout)));
    config.sidecar_directory = fs::join(options_.data, "sidecar");
    config.node_id = settings_.node_id;
    config.cluster_id = cluster;
    config.open_files_max = std::max<std::size_t>(open_files_ / engines, 32);
    config.recovery_threads = recovery_threads;
    config.defaults = defaults.log;
    config.shared = settings_.shared_log;
    config.segment_grants = grants_.get();
    config.report = [](const std::string& line) { server::log_warn(line); };
    POLYLOG_ASSIGN(opened, open(store_fs(), clock_, config));
    report(opened.recovery, config.directory);
    return std::move(opened.store);
  }

  static void report(const storage::Recovery& recovery, const std::string& directory) {
    for (const std::string& line : recovery.notes) server::log_warn(line);
    if (recovery.partitions == 0) return server::log_info(directory + ": no partitions yet");
    std::string line = directory + ": " + std::to_string(recovery.partitions) + " partitions, ";
    line += recovery.clean ? "clean stop" : "unclean stop";
    line += ", " + std::to_string(recovery.bytes_scanned) + " bytes read, " +
            std::to_string(recovery.bytes_truncated) + " cut, " +
            std::to_string(recovery.indexes_rebuilt) + " indexes made again";
    server::log_info(line);
  }

  Result<void> open_kafka() {
    POLYLOG_ASSIGN(kafka,
                   server::kafka::KafkaService::open(*broker_, *groups_, metrics_, options_.kafka));
    kafka_ = std::move(kafka);
    return {};
  }

  // Answers that wait for a sync still leave; then the reactor stops and the stores close.
  void begin_stop() {
    server::log_info("stop asked for");
    http_->set_ready(false);
    groups_->stop();
    kafka_->stop();
    reactor_.every(stop_check_ms, [this] {
      waited_ms_ += stop_check_ms;
      if (kafka_->connections() > 0 && waited_ms_ < stop_patience_ms) return;
      kafka_->abort();
      http_->abort();
      reactor_.stop();
    });
    signals_.async_wait([](const boost::system::error_code& error, int) {
      if (!error) std::_Exit(exit_failed);  // asked twice: now
    });
  }

  const ServeOptions& options_;
  const Engines& engines_;
  broker::Settings settings_;
  SystemClock clock_;
  std::shared_ptr<broker::LocalGrants> grants_ = std::make_shared<broker::LocalGrants>();
  fs::PosixFileSystem fs_;
  std::unique_ptr<journal::Journal> journal_;  // the stores' files are its
  server::Metrics metrics_;
  std::unique_ptr<fs::Lock> lock_;
  server::HeapRest heap_;
  broker::Reactor reactor_;
  broker::Pool pool_{reactor_, pool_threads};
  std::unique_ptr<broker::Broker> broker_;
  std::unique_ptr<broker::groups::Coordinator> groups_;
  std::unique_ptr<server::http::HttpService> http_;
  std::unique_ptr<server::kafka::KafkaService> kafka_;
  boost::asio::signal_set signals_;
  std::int64_t waited_ms_ = 0;
  std::size_t open_files_ = 0;
};

}  // namespace

int serve(const ServeOptions& options, const Engines& engines) {
  server::keep_freed_memory();
  std::signal(SIGPIPE, SIG_IGN);
  fs::PosixFileSystem fs;
  auto settings = read_settings(fs, options.config, options.set);
  if (!settings) {
    std::fprintf(stderr, "polylog: %s\n", settings.error().context.c_str());
    return exit_usage;
  }
  Server server(options, engines, std::move(*settings));
  if (auto started = server.start(); !started) {
    std::fprintf(stderr, "polylog: %s\n", started.error().to_string().c_str());
    return exit_failed;
  }
  if (auto ran = server.run(); !ran) {
    std::fprintf(stderr, "polylog: the stop was not clean: %s\n", ran.error().to_string().c_str());
    return exit_failed;
  }
  return exit_done;
}

}  // namespace polylog::cli
