#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace polylog {

// An integer that can't be mistaken for another kind of integer. Two of the same kind can be
// compared and subtracted; a plain count can be added.
template <typename Tag, typename Rep = std::int64_t>
class Strong {
 public:
  using rep = Rep;
  constexpr Strong() = default;
  constexpr explicit Strong(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const Strong&) const = default;
  constexpr Strong operator+(Rep count) const { return Strong(static_cast<Rep>(value_ + count)); }
  constexpr Strong operator-(Rep count) const { return Strong(static_cast<Rep>(value_ - count)); }
  constexpr Rep operator-(Strong other) const { return static_cast<Rep>(value_ - other.value_); }
  constexpr Strong& operator+=(Rep count) { return *this = *this + count; }

 private:
  Rep value_ = 0;
};

using Offset = Strong<struct OffsetTag>;            // number of a record in a partition
using LogPosition = Strong<struct LogPositionTag>;  // place in a Log: offset or byte, by layout
using Timestamp = Strong<struct TimestampTag>;      // ms since 1970; -1 = none
using LeaderEpoch = Strong<struct LeaderEpochTag, std::int32_t>;  // -1 = unknown
using ProducerId = Strong<struct ProducerIdTag>;                  // -1 = none

inline constexpr Timestamp no_timestamp{-1};
inline constexpr LeaderEpoch no_epoch{-1};
inline constexpr ProducerId no_producer{-1};

// Half-open: [start, end).
struct OffsetRange {
  Offset start;
  Offset end;
  bool operator==(const OffsetRange&) const = default;
  bool empty() const { return start == end; }
};

struct TopicPartition {
  std::string topic;
  std::int32_t partition = 0;
  auto operator<=>(const TopicPartition&) const = default;
};

// A topic or directory id. Text form is Kafka's: 22 characters of URL-safe base64, no padding.
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const Uuid&) const = default;
  bool is_zero() const { return *this == Uuid{}; }
  std::string to_string() const;
  static Result<Uuid> parse(std::string_view text);
  // Random, never zero, never one, and its text never begins with '-' (Kafka's rule).
  static Uuid random();
};

}  // namespace polylog

template <typename Tag, typename Rep>
struct std::hash<polylog::Strong<Tag, Rep>> {
  std::size_t operator()(polylog::Strong<Tag, Rep> id) const {
    return std::hash<Rep>()(id.value());
  }
};

template <>
struct std::hash<polylog::TopicPartition> {
  std::size_t operator()(const polylog::TopicPartition& id) const {
    return std::hash<std::string>()(id.topic) * 31 + static_cast<std::size_t>(id.partition);
  }
};

template <>
struct std::hash<polylog::Uuid> {
  std::size_t operator()(const polylog::Uuid& id) const {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
  }
};
