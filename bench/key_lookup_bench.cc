#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "format/rocketmq/message.h"
#include "format/rocketmq/properties.h"
#include "fs/posix_file_system.h"
#include "storage/rocketmq/store.h"

// How long a look-up by key takes in a store in RocketMQ's layout, and whether its answers are
// right: fills a store with small records, each with a key of its own, opens it again, and asks for
// keys that are there and keys that are not.
//   key_lookup_bench [RECORDS [LOOKUPS [FOLDER]]]     10,000,000, 200,000, a new one in /var/tmp
// One record in ten has a key whose hash three others share (topics AaTopic and BBTopic, keys that
// end in Aa and BB): only the record tells them apart. Settings are the defaults: 5,000,000 slots,
// 20,000,000 entries a file. The folder's store is removed at the end. Exit status 1: an answer was
// wrong.
namespace {

using namespace polylog;
namespace stored = format::rocketmq;
using Clock = std::chrono::steady_clock;

constexpr std::int32_t queues = 4;
constexpr std::size_t records_per_batch = 250;

// A record's topic, key and queue follow from its number.
struct Name {
  std::string_view topic;
  std::string key;
};

Name name_of(std::int64_t number) {
  const bool shares = number / 4 % 10 == 0;
  const std::string_view topic = number % 2 == 0 ? "AaTopic" : "BBTopic";
  if (!shares) return {topic, "order-" + std::to_string(number)};
  return {topic, "order-" + std::to_string(number / 4) + (number % 4 < 2 ? "-Aa" : "-BB")};
}

bool shares_its_hash(std::int64_t number) { return number / 4 % 10 == 0; }

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void must(const Result<void>& done) {
  if (done) return;
  std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  std::exit(2);
}

template <typename T>
T must(Result<T> made) {
  if (!made) must(Result<void>(fail(made.error())));
  return *std::move(made);
}

class KeyLookup {
 public:
  KeyLookup(std::int64_t records, std::string folder)
      : records_(records), folder_(std::move(folder)) {
    config_.directory = folder_ + "/rocketmq";
    config_.sidecar_directory = folder_ + "/sidecar";
    config_.cluster_id = *Uuid::parse("AAAAAAAAAAAAAAAAAAAAAg");
    open();
  }
  ~KeyLookup() {
    store_.reset();
    must(fs::remove_tree(disk_, folder_));
  }

  void fill() {
    const auto start = Clock::now();
    for (const std::string_view topic : {"AaTopic", "BBTopic"}) {
      for (std::int32_t queue = 0; queue < queues; ++queue) {
        const TopicPartition id{std::string(topic), queue};
        must(store_->create(id, *Uuid::parse("AAAAAAAAAAAAAAAAAAAABA"), {}));
      }
    }
    // A batch is of one queue; its records are `2 * queues` numbers apart.
    constexpr std::int64_t stride = 2 * queues;
    for (std::int64_t first = 0; first < records_; first += stride * records_per_batch) {
      for (std::int64_t lane = 0; lane < stride; ++lane) append(first + lane);
      must(log()->write_staged());
      if (first % (1 << 20) < stride * static_cast<std::int64_t>(records_per_batch)) {
        must(store_->tend(clock_.now()));
      }
    }
    must(store_->close());
    store_.reset();
    std::printf("%lld records filled in %.1f s\n", static_cast<long long>(records_),
                seconds_since(start));
    open();
  }

  // Once to bring the pages into memory, once to measure.
  bool look_up(std::string_view what, const std::vector<std::int64_t>& numbers, bool there) const {
    std::vector<double> micros;
    micros.reserve(numbers.size());
    std::size_t wrong = 0;
    for (const bool measured : {false, true}) {
      for (const std::int64_t number : numbers) {
        storage::KeyIndex::KeyQuery query = query_of(number);
        if (!there) query.key += "-none";
        const auto start = Clock::now();
        const auto found = must(store_->key_index()->find_by_key(query));
        if (measured) micros.push_back(seconds_since(start) * 1e6);
        if (!(there ? is_answer(found, query, number) : found.empty())) ++wrong;
      }
    }
    std::sort(micros.begin(), micros.end());
    const auto at = [&](double share) {
      return micros[static_cast<std::size_t>(share * static_cast<double>(micros.size() - 1))];
    };
    std::printf("%-34.*s %9zu look-ups  p50 %7.1f us  p99 %7.1f us  wrong answers %zu\n",
                static_cast<int>(what.size()), what.data(), micros.size(), at(0.5), at(0.99),
                wrong);
    return wrong == 0;
  }

 private:
  void open() {
    auto opened = must(storage::rocketmq::RocketmqStore::open(disk_, clock_, config_));
    store_ = std::move(opened.store);
  }
  std::shared_ptr<storage::Log> log() const { return store_->find({"AaTopic", 0})->log(); }

  void append(std::int64_t first) {
    std::vector<std::uint8_t> bytes;
    std::int32_t count = 0;
    const TopicPartition id{std::string(name_of(first).topic),
                            static_cast<std::int32_t>(first / 2 % queues)};
    const Timestamp now = clock_.now();
    for (std::int64_t number = first; number < records_ && count < std::int32_t{records_per_batch};
         number += 2 * queues, ++count) {
      const Name name = name_of(number);
      const std::string body = std::to_string(number);
      std::string properties;
      must(stored::add_property(properties, stored::property::keys, name.key));
      stored::Message message;
      message.queue_id = id.partition;
      message.born_timestamp = now.value();
      message.topic = name.topic;
      message.body = as_bytes(body);
      message.properties = properties;
      must(stored::encode(message, bytes));
    }
    if (count == 0) return;
    Batch batch;
    batch.format = BatchFormat::rocketmq;
    batch.info.records = count;
    batch.info.max_timestamp = now;
    batch.bytes = Slice::of(std::move(bytes));
    must(store_->find(id)->append(std::move(batch)));
  }

  static storage::KeyIndex::KeyQuery query_of(std::int64_t number) {
    const Name name = name_of(number);
    storage::KeyIndex::KeyQuery query;
    query.topic = name.topic;
    query.key = name.key;
    return query;
  }

  // Exactly the one record, under the key that was asked for.
  static bool is_answer(const std::vector<storage::KeyIndex::Found>& found,
                        const storage::KeyIndex::KeyQuery& query, std::int64_t number) {
    if (found.size() != 1) return false;
    const auto message = stored::parse(found.front().record.bytes.view());
    return message && message->topic == query.topic &&
           stored::find_property(message->properties, stored::property::keys) == query.key &&
           as_text(message->body) == std::to_string(number);
  }

  const std::int64_t records_;
  const std::string folder_;
  fs::PosixFileSystem disk_;
  SystemClock clock_;
  storage::StoreConfig config_;
  std::unique_ptr<storage::Store> store_;
};

std::vector<std::int64_t> numbers(std::int64_t records, std::size_t count, bool shared) {
  std::mt19937_64 random(7);
  std::vector<std::int64_t> picked;
  while (picked.size() < count) {
    const auto number = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(records));
    if (shares_its_hash(number) == shared) picked.push_back(number);
  }
  return picked;
}

std::int64_t number_of(const char* text) {
  std::int64_t value = 0;
  const std::string_view digits(text);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size() && value >= 1000) return value;
  std::fprintf(stderr, "key_lookup_bench: %s: a number from 1000 on is wanted\n", text);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t records = argc > 1 ? number_of(argv[1]) : 10'000'000;
  const std::int64_t lookups = argc > 2 ? number_of(argv[2]) : 200'000;
  std::string folder = std::string(argc > 3 ? argv[3] : "/var/tmp") + "/polylog-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 2;
  }
  KeyLookup bench(records, folder);
  bench.fill();
  const auto count = static_cast<std::size_t>(lookups);
  bool right = bench.look_up("keys that are there", numbers(records, count, false), true);
  right &= bench.look_up("keys that share a hash with three", numbers(records, count, true), true);
  right &= bench.look_up("keys that are not there", numbers(records, count, false), false);
  return right ? 0 : 1;
}
