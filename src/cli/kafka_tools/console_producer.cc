#include <unistd.h>

#include <chrono>
#include <climits>
#include <map>

#include "base/clock.h"
#include "cli/batch_sender.h"
#include "cli/kafka_tools/line_parser.h"
#include "cli/kafka_tools/table.h"
#include "cli/line_reader.h"
#include "cli/partitioner.h"
#include "cli/text.h"
#include "cli/topic_view.h"
#include "format/kafka/records.h"
#include "record/producers.h"

// kafka-console-producer: lines of standard input as records (Kafka 4.4, ConsoleProducer).
namespace polylog::cli::kafka_tools {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t line_bytes_max = std::size_t{64} << 20;

struct Settings {
  std::string topic;
  format::kafka::Codec codec = format::kafka::Codec::none;
  std::int16_t acks = -1;
  bool idempotent = true;
  bool sync = false;
  std::size_t batch_bytes = 16 * 1024;
  int linger_ms = 5;
  Pairs reader;
};

// Properties that some file or flag gives; later ones count.
Result<Pairs> collect(const Arguments& arguments, const std::vector<const char*>& files,
                      const std::vector<const char*>& flags) {
  Pairs all;
  for (const char* flag : files) {
    for (const std::string& path : arguments.values(flag)) {
      POLYLOG_ASSIGN(settings, read_properties(path));
      all.insert(all.end(), settings.begin(), settings.end());
    }
  }
  for (const char* flag : flags) {
    POLYLOG_ASSIGN(settings, parse_pairs(arguments.values(flag)));
    all.insert(all.end(), settings.begin(), settings.end());
  }
  return all;
}

Result<format::kafka::Codec> parse_codec(const std::string& name) {
  using format::kafka::Codec;
  for (const Codec codec : {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd}) {
    if (name == to_string(codec)) return codec;
  }
  return fail(Errc::invalid,
              "org.apache.kafka.common.config.ConfigException: Invalid value " + name +
                  " for configuration compression.type: String must be one of: none, gzip, "
                  "snappy, lz4, zstd");
}

Result<void> take_property(const std::string& key, const std::string& value, Settings& settings) {
  const auto number = parse_integer(value);
  if (key == "acks") {
    const bool known = value == "all" || value == "-1" || value == "0" || value == "1";
    if (!known) return fail(Errc::invalid, "Invalid value " + value + " for configuration acks");
    settings.acks = static_cast<std::int16_t>(value == "all" ? -1 : *number);
  } else if (key == "compression.type") {
    POLYLOG_ASSIGN(codec, parse_codec(value));
    settings.codec = codec;
  } else if (key == "enable.idempotence") {
    settings.idempotent = value != "false";
  } else if (key == "batch.size" && number && *number >= 0 && *number <= INT_MAX) {
    settings.batch_bytes = static_cast<std::size_t>(*number);
  } else if (key == "linger.ms" && number && *number >= 0 && *number <= INT_MAX) {
    settings.linger_ms = static_cast<int>(*number);
  } else if (key == "transactional.id") {
    return fail(Errc::unsupported, "The setting transactional.id is not supported");
  }
  return {};
}

Result<Settings> read_settings(const Arguments& arguments) {
  Settings settings;
  POLYLOG_ASSIGN(topic, arguments.value("topic"));
  settings.topic = *topic;
  settings.sync = arguments.has("sync");
  POLYLOG_ASSIGN(reader, arguments.value("line-reader"));
  if (reader && !reader->ends_with("LineMessageReader")) {
    return fail(Errc::unsupported, "--line-reader " + *reader +
                                       " is not supported: there is no Java here; lines are read "
                                       "with --reader-property");
  }
  POLYLOG_ASSIGN(size, arguments.number("batch-size", 0, INT_MAX));
  POLYLOG_ASSIGN(memory, arguments.number("max-partition-memory-bytes", 0, INT_MAX));
  settings.batch_bytes = static_cast<std::size_t>(
      memory.value_or(size.value_or(static_cast<std::int64_t>(settings.batch_bytes))));
  POLYLOG_ASSIGN(linger, arguments.number("timeout", 0, INT_MAX));
  if (linger) settings.linger_ms = static_cast<int>(*linger);
  POLYLOG_ASSIGN(acks, arguments.value("request-required-acks"));
  if (acks) POLYLOG_TRY(take_property("acks", *acks, settings));
  POLYLOG_ASSIGN(properties, collect(arguments, {"producer.config", "command-config"},
                                     {"producer-property", "command-property"}));
  POLYLOG_TRY(check_security(properties));
  for (const auto& [key, value] : properties) POLYLOG_TRY(take_property(key, value, settings));
  if (arguments.has("compression-codec")) {
    POLYLOG_ASSIGN(codec, arguments.value("compression-codec"));
    POLYLOG_ASSIGN(parsed, parse_codec(codec && !codec->empty() ? *codec : "gzip"));
    settings.codec = parsed;
  }
  if (settings.acks != -1) settings.idempotent = false;
  POLYLOG_ASSIGN(lines, collect(arguments, {"reader-config"}, {"property", "reader-property"}));
  settings.reader = std::move(lines);
  return settings;
}

// One open batch a partition; a new one when it is full or the input pauses.
class Writer {
 public:
  Writer(const Settings& settings, std::size_t partitions, BatchSender& sender,
         const format::kafka::BatchOptions& batch)
      : settings_(settings),
        sender_(sender),
        batch_(batch),
        partitioner_(static_cast<std::int32_t>(partitions)) {}

  Result<void> run(const LineParser& parser, bool prompt) {
    LineReader lines(STDIN_FILENO, line_bytes_max);
    const SystemClock clock;
    for (std::size_t number = 1;;) {
      if (prompt) {
        print(">");
        std::fflush(stdout);
        POLYLOG_TRY(flush());
      }
      std::string_view line;
      POLYLOG_ASSIGN(state, lines.next(open_.empty() ? -1 : settings_.linger_ms, line));
      if (state == LineReader::State::none) {
        POLYLOG_TRY(flush());
        continue;
      }
      if (state == LineReader::State::end) return flush();
      if (line.ends_with('\r')) line.remove_suffix(1);
      Record record;
      record.timestamp = clock.now();
      if (auto parsed = parser.parse(line, number++, record); !parsed) {
        // What was read before counts.
        POLYLOG_TRY(flush());
        return parsed;
      }
      POLYLOG_TRY(add(record));
      if (settings_.sync) POLYLOG_TRY(flush());
    }
  }

 private:
  Result<void> add(const Record& record) {
    const std::int32_t partition = partitioner_.choose(record.key);
    auto& builder = open_[partition];
    if (!builder) {
      format::kafka::BatchOptions batch = batch_;
      if (settings_.idempotent) batch.base_sequence = next_sequence_[partition];
      builder = std::make_unique<format::kafka::BatchBuilder>(batch);
    }
    POLYLOG_TRY(builder->add(record));
    if (builder->uncompressed_bytes() < settings_.batch_bytes) return {};
    POLYLOG_TRY(send(partition, *builder));
    open_.erase(partition);
    return {};
  }

  Result<void> send(std::int32_t partition, format::kafka::BatchBuilder& builder) {
    const std::int32_t records = builder.count();
    POLYLOG_ASSIGN(bytes, builder.finish());
    std::int32_t& sequence = next_sequence_[partition];
    sequence = sequence_plus(sequence, records);
    return sender_.send(partition, std::move(bytes), records);
  }

  Result<void> flush() {
    for (auto& [partition, builder] : open_) POLYLOG_TRY(send(partition, *builder));
    open_.clear();
    return sender_.drain();
  }

  const Settings& settings_;
  BatchSender& sender_;
  const format::kafka::BatchOptions batch_;
  Partitioner partitioner_;
  std::map<std::int32_t, std::unique_ptr<format::kafka::BatchBuilder>> open_;
  std::map<std::int32_t, std::int32_t> next_sequence_;
};

Result<void> produce_lines(const Arguments& arguments) {
  POLYLOG_ASSIGN(settings, read_settings(arguments));
  auto parser = LineParser::from(settings.reader);
  if (!parser) {
    return fail(parser.error().code,
                "org.apache.kafka.common.KafkaException: " + parser.error().context);
  }
  ClientOptions options;
  POLYLOG_ASSIGN(client, connect(arguments, options));
  POLYLOG_ASSIGN(topic, find_topic(*client, settings.topic, true));
  POLYLOG_TRY(check_led_here(*client, topic, {}));
  const std::size_t partitions = topic.partitions.size();
  BatchSender sender(options, std::move(client), std::move(topic), settings.acks,
                     settings.idempotent);
  format::kafka::BatchOptions batch;
  batch.codec = settings.codec;
  if (settings.idempotent) {
    POLYLOG_ASSIGN(identity, sender.identify());
    batch.producer_id = ProducerId(identity.id);
    batch.producer_epoch = identity.epoch;
  }
  Writer writer(settings, partitions, sender, batch);
  const auto done = writer.run(*parser, isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0);
  if (!done && done.error().code == Errc::invalid) {
    return fail(Errc::invalid, "org.apache.kafka.common.KafkaException: " + done.error().context);
  }
  return done;
}

}  // namespace

std::vector<Flag> console_producer_flags() {
  using enum Flag::Value;
  return {
      bootstrap_flag(),
      {"topic", required, "The topic"},
      {"reader-property", required, "How lines are read: parse.key=true, key.separator=:, ..."},
      {"property", required, "The same, by its old name"},
      {"reader-config", required, "A file of such properties"},
      {"command-property", required, "A setting: acks, compression.type, batch.size, linger.ms"},
      {"producer-property", required, "The same, by its old name"},
      command_config_flag(),
      {"producer.config", required, "The same, by its old name"},
      {"compression-codec", optional, "none, gzip (without a value), snappy, lz4 or zstd"},
      {"request-required-acks", required, "all, 1 or 0"},
      {"sync", none, "Wait for each record's acknowledgement"},
      {"batch-size", required, "Bytes of a batch"},
      {"max-partition-memory-bytes", required, "The same"},
      {"timeout", required, "How long a batch waits for more lines, in ms"},
      {"line-reader", required, "A Java class: not supported"},
      {"message-send-max-retries", required, "Taken, and of no effect here"},
      {"retry-backoff-ms", required, "Taken, and of no effect here"},
      {"request-timeout-ms", required, "Taken, and of no effect here"},
      {"metadata-expiry-ms", required, "Taken, and of no effect here"},
      {"max-block-ms", required, "Taken, and of no effect here"},
      {"max-memory-bytes", required, "Taken, and of no effect here"},
      {"socket-buffer-size", required, "Taken, and of no effect here"},
  };
}

int run_console_producer(const Tool& tool, const Arguments& arguments) {
  for (const char* flag : {"topic", "bootstrap-server"}) {
    if (!arguments.has(flag)) {
      return wrong_usage(tool, std::string("Missing required argument \"[") + flag + "]\"");
    }
  }
  if (arguments.has("property")) {
    failed(
        "Warning: --property is deprecated and will be removed in a future version. Use "
        "--reader-property instead.");
  }
  if (arguments.has("producer-property")) {
    failed(
        "Warning: --producer-property is deprecated and will be removed in a future version. "
        "Use --command-property instead.");
  }
  const Result<void> done = produce_lines(arguments);
  return done ? 0 : failed(done.error().context);
}

}  // namespace polylog::cli::kafka_tools
