#include "cli/produce.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "cli/batch_sender.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/line_reader.h"
#include "cli/partitioner.h"
#include "cli/text.h"
#include "cli/topic_view.h"
#include "format/kafka/records.h"
#include "record/producers.h"

namespace polylog::cli {
namespace {

using format::kafka::BatchBuilder;
using format::kafka::BatchOptions;

constexpr std::size_t line_bytes_max = std::size_t{64} << 20;
// How long an unfilled batch waits for more lines.
constexpr int linger_ms = 5;

// Collects lines into batches, one open batch a partition.
class Producer {
 public:
  Producer(const ProduceOptions& options, std::size_t partitions, BatchSender& sender,
           const BatchOptions& batch)
      : options_(options),
        sender_(sender),
        batch_(batch),
        partitioner_(static_cast<std::int32_t>(partitions)),
        open_(partitions),
        next_sequence_(partitions, 0) {}

  Result<void> run(LineReader& lines) {
    for (;;) {
      std::string_view line;
      POLYLOG_ASSIGN(state, lines.next(waiting_ ? linger_ms : -1, line));
      if (state == LineReader::State::line) {
        POLYLOG_TRY(add(line));
        continue;
      }
      POLYLOG_TRY(flush_all());
      if (state == LineReader::State::end) return sender_.drain();
      POLYLOG_TRY(sender_.drain());
    }
  }

  std::uint64_t bytes() const { return bytes_; }

 private:
  Result<void> add(std::string_view line) {
    Record record;
    record.timestamp = clock_.now();
    if (!options_.key_delimiter.empty()) {
      if (const std::size_t at = line.find(options_.key_delimiter); at != std::string_view::npos) {
        record.key = as_bytes(line.substr(0, at));
        line.remove_prefix(at + options_.key_delimiter.size());
      }
    }
    if (!line.empty() || !options_.empty_is_null) record.value = as_bytes(line);
    bytes_ += line.size() + (record.key ? record.key->size() : 0);
    const std::int32_t partition =
        options_.partition >= 0 ? options_.partition : partitioner_.choose(record.key);
    return add(partition, record);
  }

  Result<void> add(std::int32_t partition, const Record& record) {
    const auto at = static_cast<std::size_t>(partition);
    if (!open_[at]) {
      BatchOptions batch = batch_;
      if (options_.idempotent) batch.base_sequence = next_sequence_[at];
      open_[at] = std::make_unique<BatchBuilder>(batch);
    }
    waiting_ = true;
    POLYLOG_TRY(open_[at]->add(record));
    if (open_[at]->uncompressed_bytes() < options_.batch_bytes) return {};
    return flush(at);
  }

  Result<void> flush(std::size_t partition) {
    BatchBuilder& builder = *open_[partition];
    const std::int32_t records = builder.count();
    POLYLOG_ASSIGN(bytes, builder.finish());
    open_[partition].reset();
    next_sequence_[partition] = sequence_plus(next_sequence_[partition], records);
    return sender_.send(static_cast<std::int32_t>(partition), std::move(bytes), records);
  }

  Result<void> flush_all() {
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (open_[i]) POLYLOG_TRY(flush(i));
    }
    waiting_ = false;
    return {};
  }

  const ProduceOptions& options_;
  BatchSender& sender_;
  const BatchOptions batch_;
  SystemClock clock_;
  Partitioner partitioner_;
  std::vector<std::unique_ptr<BatchBuilder>> open_;
  std::vector<std::int32_t> next_sequence_;
  std::uint64_t bytes_ = 0;
  bool waiting_ = false;  // some batch is open
};

std::int16_t acks_of(const std::string& text) {
  return text == "0" ? std::int16_t{0} : text == "1" ? std::int16_t{1} : std::int16_t{-1};
}

std::uint64_t records_in(const BatchSender& sender) {
  std::uint64_t records = 0;
  for (const auto& [partition, progress] : sender.progress()) records += progress.records;
  return records;
}

void print_summary(const ProduceOptions& options, const BatchSender& sender, std::uint64_t bytes) {
  JsonWriter json;
  json.begin_object().field("topic", options.topic).field("records", records_in(sender));
  json.field("bytes", bytes).key("partitions").begin_array();
  for (const auto& [partition, progress] : sender.progress()) {
    json.begin_object().field("partition", partition).field("records", progress.records);
    if (progress.first_offset >= 0) {
      json.field("first_offset", progress.first_offset);
      json.field("last_offset", progress.last_offset);
    }
    json.end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", json.text().c_str());
}

Result<void> run(const ProduceOptions& options, std::unique_ptr<KafkaClient> client,
                 BatchOptions batch) {
  POLYLOG_ASSIGN(topic, find_topic(*client, options.topic, true));
  std::vector<std::int32_t> chosen;
  if (options.partition >= 0) chosen.push_back(options.partition);
  POLYLOG_TRY(check_led_here(*client, topic, chosen));
  const std::size_t partitions = topic.partitions.size();
  BatchSender sender(options.client, std::move(client), std::move(topic), acks_of(options.acks),
                     options.idempotent);
  if (options.idempotent) {
    POLYLOG_ASSIGN(identity, sender.identify());
    batch.producer_id = ProducerId(identity.id);
    batch.producer_epoch = identity.epoch;
  }
  Producer producer(options, partitions, sender, batch);
  LineReader lines(STDIN_FILENO, line_bytes_max);
  const auto started = std::chrono::steady_clock::now();
  if (auto ran = producer.run(lines); !ran) {
    const char* const certain = acks_of(options.acks) == 0 ? " records were sent before"
                                                           : " records were acknowledged before";
    return fail(ran.error().code,
                ran.error().context + "; " + std::to_string(records_in(sender)) + certain);
  }
  if (options.json) print_summary(options, sender, producer.bytes());
  if (::isatty(STDERR_FILENO) != 0) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    std::fprintf(stderr, "%llu records, %s, %.1f s\n",
                 static_cast<unsigned long long>(records_in(sender)),
                 format_size(producer.bytes()).c_str(), took.count());
  }
  return {};
}

}  // namespace

int produce(const ProduceOptions& options) {
  const auto codec = format::kafka::parse_codec(options.codec);
  if (!codec) return complain("-z: " + codec.error().context, exit_usage);
  if (options.idempotent && acks_of(options.acks) != -1) {
    return complain("--idempotent needs --acks all", exit_usage);
  }
  BatchOptions batch;
  batch.codec = *codec;
  auto client = KafkaClient::connect(options.client);
  if (!client) return complain(client.error().context);
  if (auto ran = run(options, std::move(*client), batch); !ran) {
    return complain(ran.error().context);
  }
  return finished(stdout);
}

}  // namespace polylog::cli
