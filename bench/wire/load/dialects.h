#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// How each broker wants its messages: requests are laid out once and patched, answers are read no
// further than needed to tell which request was accepted. Nothing is shared with polylog's own
// codecs.
namespace load {

using Bytes = std::vector<std::uint8_t>;

[[noreturn]] void die(const std::string& what);

struct Shape {
  std::string protocol = "kafka";  // kafka, nats, redis, rocketmq
  std::string topic;
  std::int64_t partitions = 1;
  std::int64_t partitions_per_request = 1;  // kafka only
  std::size_t record_bytes = 1024;
  std::size_t batch_bytes = 0;  // 0: one record a request
};

enum class Outcome { accepted, again, refused, not_an_answer, ping };

// Of one frame. `id` is that of the request, or `in_order`: that of the oldest one.
struct Answer {
  static constexpr std::uint64_t in_order = ~std::uint64_t{0};
  Outcome outcome = Outcome::accepted;
  std::uint64_t id = in_order;
  std::string why;
};

class Dialect {
 public:
  virtual ~Dialect() = default;

  // What a new connection says before anything is measured; blocking.
  virtual void greet(int /*link*/, std::size_t /*connection*/) {}
  // Writes the request up to its payload, which follows it on the wire and is shared by all.
  virtual void write_head(Bytes& head, std::size_t connection, std::uint64_t id,
                          std::int64_t partition) = 0;
  virtual const Bytes& payload(std::int64_t partition) const = 0;
  virtual std::int64_t records_per_request() const = 0;
  // Reads one answer at the start of `data`; the number of bytes it took, 0 when more are needed.
  virtual std::size_t read(std::string_view data, Answer& answer) = 0;
};

std::unique_ptr<Dialect> make_dialect(const Shape& shape);

void put(Bytes& out, std::int64_t value, int bytes);
void put_at(Bytes& out, std::size_t at, std::int64_t value, int bytes);
std::int64_t load_at(std::string_view data, std::size_t at, int bytes);

}  // namespace load
