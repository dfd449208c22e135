#pragma once

#include <cstddef>
#include <string>

#include "bytes/slice.h"
#include "server/metrics.h"
#include "server/net/handler.h"

namespace polylog::server::http {

inline constexpr std::size_t head_bytes_max = 8192;

// Cuts a stream into request heads (RFC 9112, section 2). What can't be one is handed out too, so
// that it gets an answer.
FrameCut cut_head(ByteView head, std::size_t head_bytes_limit);

struct Response {
  std::string bytes;
  bool close = false;  // the connection ends after it
};

// Answers one head as cut by cut_head().
Response respond(ByteView head, const Metrics& metrics, bool ready);

}  // namespace polylog::server::http
