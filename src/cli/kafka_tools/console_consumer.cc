#include <algorithm>
#include <chrono>
#include <climits>
#include <memory>
#include <thread>

#include "cli/command.h"
#include "cli/fetcher.h"
#include "cli/group_membership.h"
#include "cli/interrupt.h"
#include "cli/kafka_tools/name_filter.h"
#include "cli/kafka_tools/record_printer.h"
#include "cli/kafka_tools/table.h"
#include "cli/text.h"
#include "cli/topic_view.h"

// kafka-console-consumer: prints records (Kafka 4.4, ConsoleConsumer). With --group it is a member
// of that group. Without one it reads all partitions as they are when it starts and commits
// nothing, where the original would leave a group of its own behind.
namespace polylog::cli::kafka_tools {
namespace {

using Clock = std::chrono::steady_clock;
using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::int32_t wait_ms = 500;
constexpr std::size_t print_bytes = 64 * 1024;
constexpr std::chrono::milliseconds retry_pause{200};
constexpr std::chrono::seconds patience{60};  // with a broker that is away

struct Settings {
  std::optional<std::string> topic, include, group;
  std::optional<std::int32_t> partition;
  std::int64_t start = latest_offset;  // an offset, or one of the special times
  std::int64_t max_messages = -1;
  std::int64_t timeout_ms = -1;
  IsolationLevel isolation = IsolationLevel::read_uncommitted;
  std::int64_t reset_to = latest_offset;
  bool commits = true;
  std::int64_t commit_pause_ms = 5000;
  Pairs printer;
};

bool lost(const Error& error) {
  return error.code == Errc::unavailable || error.code == Errc::timed_out || error.code == Errc::io;
}

class ConsoleConsumer {
 public:
  ConsoleConsumer(const Settings& settings, const Arguments& arguments, RecordPrinter printer)
      : settings_(settings),
        arguments_(arguments),
        printer_(std::move(printer)),
        fetcher_(settings.isolation, settings.reset_to) {}

  // Until the limit, the timeout, or SIGINT. A broker that goes away is waited for.
  Result<void> run() {
    POLYLOG_TRY(open());
    last_record_ = last_commit_ = lost_since_ = Clock::now();
    for (bool fine = true; !done();) {
      const Result<void> turn = fine ? step() : open();
      flush();
      if (std::ferror(stdout) != 0) break;
      if (turn) {
        fine = true;
        lost_since_ = Clock::now();
        continue;
      }
      if (interrupted()) break;
      if (!lost(turn.error()) || Clock::now() - lost_since_ > patience) return turn;
      fine = false;
      std::this_thread::sleep_for(retry_pause);
    }
    close();
    return {};
  }

  std::int64_t printed() const { return printed_; }

 private:
  bool done() const {
    if (interrupted() || printed_ == settings_.max_messages) return true;
    const auto idle = Clock::now() - last_record_;
    return settings_.timeout_ms >= 0 && idle >= std::chrono::milliseconds(settings_.timeout_ms);
  }

  // A connection, and the partitions when they are not known yet.
  Result<void> open() {
    POLYLOG_ASSIGN(client, connect(arguments_, options_));
    client_ = std::move(client);
    if (settings_.group) {
      if (membership_) {
        membership_->use(*client_);
      } else {
        membership_ = std::make_unique<GroupMembership>(options_, *client_, *settings_.group,
                                                        [this] { return topics(); });
      }
      return take_share();
    }
    if (!fetcher_.positions().empty()) return {};
    POLYLOG_ASSIGN(partitions, all_partitions());
    return assign(partitions, {});
  }

  Result<std::vector<std::string>> topics() {
    if (settings_.topic) return std::vector<std::string>{*settings_.topic};
    POLYLOG_ASSIGN(filter, NameFilter::parse(*settings_.include));
    POLYLOG_ASSIGN(all, list_topics(*client_));
    std::vector<std::string> names;
    for (const TopicView& topic : all) {
      if (!topic.internal && filter.fits(topic.name)) names.push_back(topic.name);
    }
    return names;
  }

  Result<std::vector<TopicPartition>> all_partitions() {
    POLYLOG_ASSIGN(names, topics());
    std::vector<TopicPartition> partitions;
    for (const std::string& name : names) {
      POLYLOG_ASSIGN(topic, find_topic(*client_, name, settings_.topic.has_value()));
      std::vector<std::int32_t> wanted;
      if (settings_.partition) wanted.push_back(*settings_.partition);
      POLYLOG_TRY(check_led_here(*client_, topic, wanted));
      for (const PartitionView& partition : topic.partitions) {
        if (wanted.empty() || wanted.front() == partition.id) {
          partitions.push_back({name, partition.id});
        }
      }
    }
    return partitions;
  }

  Result<void> assign(const std::vector<TopicPartition>& partitions,
                      const CommittedOffsets& committed) {
    Fetcher::Positions positions;
    for (const TopicPartition& where : partitions) {
      if (const auto at = committed.find(where); at != committed.end()) {
        positions[where] = {at->second.offset, at->second.leader_epoch};
      } else if (settings_.start >= 0) {
        positions[where] = {settings_.start, -1};
      } else {
        POLYLOG_ASSIGN(offsets, list_offsets(*client_, where.topic, {where.partition},
                                             settings_.start, settings_.isolation));
        positions[where] = {offsets.at(where.partition), -1};
      }
    }
    fetcher_.assign(std::move(positions));
    return {};
  }

  Result<void> take_share() {
    fetcher_.assign({});
    POLYLOG_ASSIGN(share, membership_->join());
    POLYLOG_ASSIGN(committed, membership_->committed(share));
    return assign(share, committed);
  }

  Result<void> step() {
    if (membership_) {
      POLYLOG_ASSIGN(again, membership_->keep());
      if (again) {
        commit(true);
        return take_share();
      }
      commit(false);
    }
    const Fetcher::Visit visit = [this](const Fetcher::Fetched& fetched) {
      printer_.print(fetched, out_);
      if (out_.size() > print_bytes) flush();
      ++printed_;
      return printed_ != settings_.max_messages;
    };
    std::int32_t wait = wait_ms;
    if (settings_.timeout_ms >= 0) {
      wait = static_cast<std::int32_t>(std::min<std::int64_t>(wait, settings_.timeout_ms));
    }
    POLYLOG_ASSIGN(visited, fetcher_.poll(*client_, wait, visit));
    if (visited > 0) last_record_ = Clock::now();
    return {};
  }

  // What was printed; an error only means that some records may be printed again.
  void commit(bool now) {
    const bool due =
        Clock::now() - last_commit_ >= std::chrono::milliseconds(settings_.commit_pause_ms);
    if (!settings_.commits || (!now && !due)) return;
    last_commit_ = Clock::now();
    flush();
    CommittedOffsets offsets;
    for (const auto& [where, position] : fetcher_.positions()) {
      offsets[where] = {position.next, position.leader_epoch, ""};
    }
    if (const auto committed = membership_->commit(offsets); !committed) {
      if (!interrupted()) failed("WARN " + committed.error().context);
    }
  }

  void close() {
    flush();
    if (!membership_) return;
    commit(true);
    membership_->leave();
  }

  void flush() {
    print(out_);
    std::fflush(stdout);
    out_.clear();
  }

  const Settings& settings_;
  const Arguments& arguments_;
  const RecordPrinter printer_;
  ClientOptions options_;
  std::unique_ptr<KafkaClient> client_;
  std::unique_ptr<GroupMembership> membership_;
  Fetcher fetcher_;
  std::string out_;
  std::int64_t printed_ = 0;
  Clock::time_point last_record_, last_commit_, lost_since_;
};

// What is wrong with the flags together; empty: nothing.
std::string usage_problem(const Arguments& arguments) {
  if (arguments.has("topic") == arguments.has("include")) {
    return "Exactly one of the following arguments is required: [topic], [include]";
  }
  if (arguments.has("partition") && !arguments.has("topic")) {
    return "The topic is required when partition is specified.";
  }
  if (arguments.has("offset") && !arguments.has("partition")) {
    return "The partition is required when offset is specified.";
  }
  if (arguments.has("offset") && arguments.has("from-beginning")) {
    return "Options from-beginning and offset cannot be specified together.";
  }
  if (arguments.has("group") && arguments.has("partition")) {
    return "Options group and partition cannot be specified together.";
  }
  return {};
}

Result<void> take_property(const std::string& key, const std::string& value, bool from_beginning,
                           Settings& settings) {
  const auto number = parse_integer(value);
  if (key == "group.id") settings.group = value;
  if (key == "isolation.level" && value == "read_committed") {
    settings.isolation = IsolationLevel::read_committed;
  }
  if (key == "enable.auto.commit") settings.commits = value != "false";
  if (key == "auto.commit.interval.ms" && number && *number >= 0)
    settings.commit_pause_ms = *number;
  if (key == "group.protocol" && value != "classic") {
    return fail(Errc::unsupported, "group.protocol=" + value +
                                       " is not supported: this consumer joins with the classic "
                                       "protocol");
  }
  if (key == "group.instance.id") {
    return fail(Errc::unsupported, "The setting group.instance.id is not supported");
  }
  if (key != "auto.offset.reset") return {};
  if (from_beginning && value != "earliest") {
    return fail(Errc::invalid,
                "Can't simultaneously specify --from-beginning and "
                "'auto.offset.reset=" +
                    value + "', please remove one option");
  }
  if (value == "earliest") settings.start = settings.reset_to = earliest_offset;
  if (value != "earliest" && value != "latest") {
    return fail(Errc::unsupported, "auto.offset.reset=" + value + " is not supported");
  }
  return {};
}

// Errors out_of_range: the whole help belongs to them.
Result<Settings> read_settings(const Arguments& arguments) {
  Settings settings;
  POLYLOG_ASSIGN(topic, arguments.value("topic"));
  POLYLOG_ASSIGN(include, arguments.value("include"));
  POLYLOG_ASSIGN(partition, arguments.number("partition", 0, INT_MAX));
  POLYLOG_ASSIGN(most, arguments.number("max-messages", INT_MIN, INT_MAX));
  POLYLOG_ASSIGN(timeout, arguments.number("timeout-ms", INT_MIN, INT64_MAX / 2));
  settings.topic = topic;
  settings.include = include;
  if (partition) settings.partition = static_cast<std::int32_t>(*partition);
  settings.max_messages = std::max<std::int64_t>(most.value_or(-1), -1);
  settings.timeout_ms = timeout.value_or(-1);
  const bool beginning = arguments.has("from-beginning");
  if (beginning) settings.start = settings.reset_to = earliest_offset;
  Pairs properties;
  for (const char* flag : {"consumer.config", "command-config"}) {
    for (const std::string& path : arguments.values(flag)) {
      POLYLOG_ASSIGN(read, read_properties(path));
      properties.insert(properties.end(), read.begin(), read.end());
    }
  }
  for (const char* flag : {"consumer-property", "command-property"}) {
    POLYLOG_ASSIGN(given, parse_pairs(arguments.values(flag)));
    properties.insert(properties.end(), given.begin(), given.end());
  }
  POLYLOG_TRY(check_security(properties));
  for (const auto& [key, value] : properties) {
    POLYLOG_TRY(take_property(key, value, beginning, settings));
  }
  POLYLOG_ASSIGN(group, arguments.value("group"));
  if (group) settings.group = group;
  POLYLOG_ASSIGN(isolation, arguments.value("isolation-level"));
  if (isolation && *isolation == "read_committed") {
    settings.isolation = IsolationLevel::read_committed;
  } else if (isolation && *isolation != "read_uncommitted") {
    return fail(Errc::invalid, "Invalid value " + *isolation + " for --isolation-level");
  }
  POLYLOG_ASSIGN(offset, arguments.value("offset"));
  if (offset && *offset == "earliest") {
    settings.start = earliest_offset;
  } else if (offset && *offset != "latest") {
    const auto number = parse_integer(*offset);
    if (!number || *number < 0) {
      return fail(Errc::out_of_range, "The provided offset value '" + *offset +
                                          "' is incorrect. Valid values are 'earliest', 'latest', "
                                          "or a non-negative long.");
    }
    settings.start = *number;
  }
  if (settings.partition && settings.group) settings.group.reset();
  return settings;
}

Result<Pairs> printer_properties(const Arguments& arguments) {
  Pairs all;
  for (const std::string& path : arguments.values("formatter-config")) {
    POLYLOG_ASSIGN(read, read_properties(path));
    all.insert(all.end(), read.begin(), read.end());
  }
  for (const char* flag : {"property", "formatter-property"}) {
    POLYLOG_ASSIGN(given, parse_pairs(arguments.values(flag)));
    all.insert(all.end(), given.begin(), given.end());
  }
  for (const char* flag : {"key-deserializer", "value-deserializer"}) {
    for (const std::string& name : arguments.values(flag)) all.emplace_back("x.deserializer", name);
  }
  for (const std::string& formatter : arguments.values("formatter")) {
    if (formatter.ends_with("DefaultMessageFormatter")) continue;
    return fail(Errc::unsupported, "--formatter " + formatter +
                                       " is not supported: there is no Java here; what is printed "
                                       "is chosen with --formatter-property");
  }
  return all;
}

}  // namespace

std::vector<Flag> console_consumer_flags() {
  using enum Flag::Value;
  return {
      bootstrap_flag(),
      {"topic", required, "The topic"},
      {"include", required, "A regular expression for topics"},
      {"from-beginning", none, "Where no offset is committed, begin with the first record"},
      {"partition", required, "Read this partition only"},
      {"offset", required, "With --partition: earliest, latest (default), or an offset"},
      {"max-messages", required, "Stop after so many records"},
      {"timeout-ms", required, "Stop when no record comes for so long"},
      {"group", required, "Be a member of this group"},
      {"formatter-property", required, "print.key=true, key.separator=:, null.literal=NULL, ..."},
      {"property", required, "The same, by its old name"},
      {"formatter-config", required, "A file of such properties"},
      {"command-property", required, "A setting: auto.offset.reset, enable.auto.commit, ..."},
      {"consumer-property", required, "The same, by its old name"},
      command_config_flag(),
      {"consumer.config", required, "The same, by its old name"},
      {"isolation-level", required, "read_uncommitted (default) or read_committed"},
      {"key-deserializer", required, "A Java class; those of strings and bytes are taken"},
      {"value-deserializer", required, "The same"},
      {"formatter", required, "A Java class: not supported"},
      {"skip-message-on-error", none, "Taken, and of no effect here"},
      {"enable-systest-events", none, "Not supported"},
  };
}

int run_console_consumer(const Tool& tool, const Arguments& arguments) {
  if (const std::string problem = usage_problem(arguments); !problem.empty()) {
    return wrong_usage(tool, problem);
  }
  if (!arguments.has("bootstrap-server")) {
    return wrong_usage(tool, "Missing required argument \"[bootstrap-server]\"");
  }
  if (arguments.has("enable-systest-events")) {
    return failed("--enable-systest-events is not supported");
  }
  // The original says this on stdout; here records alone stand there.
  if (arguments.has("property")) {
    failed(
        "Option --property is deprecated and will be removed in a future version. Use "
        "--formatter-property instead.");
  }
  if (arguments.has("consumer-property")) {
    failed(
        "Option --consumer-property is deprecated and will be removed in a future version. Use "
        "--command-property instead.");
  }
  const auto settings = read_settings(arguments);
  if (!settings) {
    const bool usage = settings.error().code == Errc::out_of_range;
    return usage ? wrong_usage(tool, settings.error().context) : failed(settings.error().context);
  }
  const auto properties = printer_properties(arguments);
  if (!properties) return failed(properties.error().context);
  auto printer = RecordPrinter::from(*properties);
  if (!printer) return failed(printer.error().context);
  catch_interrupts();
  ConsoleConsumer consumer(*settings, arguments, *printer);
  const Result<void> done = consumer.run();
  const int code = done ? 0 : failed(done.error().context);
  failed("Processed a total of " + std::to_string(consumer.printed()) + " messages");
  return code;
}

}  // namespace polylog::cli::kafka_tools
