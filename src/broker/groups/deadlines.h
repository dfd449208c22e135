#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>

namespace polylog::broker::groups {

// When which group is to be looked at: one ordered list for all of them, which one timer follows.
class Deadlines {
 public:
  struct Due {
    std::int64_t steady_ms = 0;
    std::int32_t shard = 0;
    std::string group;
    auto operator<=>(const Due&) const = default;
  };

  void set(Due due) { due_.insert(std::move(due)); }
  void remove(const Due& due) { due_.erase(due); }
  std::optional<std::int64_t> first_ms() const {
    if (due_.empty()) return std::nullopt;
    return due_.begin()->steady_ms;
  }
  // Takes the first one out when it is due.
  std::optional<Due> take(std::int64_t now_ms) {
    if (due_.empty() || due_.begin()->steady_ms > now_ms) return std::nullopt;
    return std::move(due_.extract(due_.begin()).value());
  }
  std::size_t size() const { return due_.size(); }

 private:
  std::set<Due> due_;
};

}  // namespace polylog::broker::groups
