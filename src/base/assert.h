#pragma once

#include <cstdio>
#include <cstdlib>

// Assertions guard against ourselves, never against input, and stay on in release builds: a
// broker that has lost track of its own state must stop before it acknowledges anything more.
#define POLYLOG_ASSERT(condition)                                                          \
  do {                                                                                     \
    if (!(condition)) [[unlikely]] {                                                       \
      std::fprintf(stderr, "%s:%d: assertion failed: %s\n", __FILE__, __LINE__,            \
                   #condition);                                                            \
      std::abort();                                                                        \
    }                                                                                      \
  } while (false)
