#include "server/heap.h"

#include <gtest/gtest.h>

namespace polylog::server {
namespace {

TEST(Heap, resident_memory_is_told) { EXPECT_GT(resident_bytes(), 1 << 20); }

}  // namespace
}  // namespace polylog::server
