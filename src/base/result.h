#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace polylog {

// What went wrong, in terms of what the caller should do about it. Each protocol maps these to
// its own codes in one switch without a default, so a new code does not compile until it is
// mapped.
enum class Errc {
  invalid,       // The input breaks a rule; the same input will fail again. Answer the caller.
  out_of_range,  // An offset or position outside what exists. The caller picks another.
  not_found,     // The named thing does not exist (not: "could not be looked up").
  exists,        // The named thing exists already.
  too_large,     // Within the rules but over a limit; the context names the limit.
  corrupt,       // Stored or received bytes fail their check. Skip the unit; never truncate.
  unsupported,   // Well-formed, but nothing here can do it.
  fenced,        // The caller acts under an epoch that has been superseded.
  no_space,      // The disk is full; nothing was written. Retriable once there is room.
  io,            // A read, write or sync failed. After a failed sync this is final (see
                 // unavailable for what later callers get).
  unavailable,   // The log or store refuses work until restart, or is shutting down.
  would_block,   // Not in memory and the caller asked not to wait; call again where waiting is
                 // allowed.
  locked,        // Another process holds the directory.
  timed_out,     // The deadline passed first; the operation may still take effect.
};

std::string_view to_string(Errc code);

// A failure as a value: what to do (code) and a sentence for the person reading the log.
struct Error {
  Errc code = Errc::invalid;
  std::string context;

  std::string to_string() const;
};

template <typename T>
using Result = tl::expected<T, Error>;

// Makes the error branch of a Result: `return fail(Errc::corrupt, "batch at 17: bad CRC");`
inline tl::unexpected<Error> fail(Errc code, std::string context) {
  return tl::unexpected<Error>(Error{code, std::move(context)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace polylog

// Returns the error of a Result<void> expression to the caller.
#define POLYLOG_TRY(expression)                                       \
  do {                                                                \
    if (auto polylog_try = (expression); !polylog_try) [[unlikely]] { \
      return ::polylog::fail(std::move(polylog_try).error());         \
    }                                                                 \
  } while (false)

// Declares `name` from a Result<T>, or returns its error: `POLYLOG_ASSIGN(file, fs.open(path));`
#define POLYLOG_ASSIGN(name, expression)                         \
  auto name##_result = (expression);                             \
  if (!name##_result) [[unlikely]] {                             \
    return ::polylog::fail(std::move(name##_result).error());    \
  }                                                              \
  auto name = std::move(*name##_result)
