#include "server/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace polylog::server {
namespace {

constexpr int mapped_from_bytes = 32 << 20;  // the most that glibc takes
constexpr std::int64_t growth_bytes = std::int64_t{8} << 20;

}  // namespace

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, mapped_from_bytes);
  mallopt(M_TRIM_THRESHOLD, heap_kept_bytes);
}

std::int64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long long total_pages = 0, resident_pages = 0;
  const int fields = std::fscanf(file, "%lld %lld", &total_pages, &resident_pages);
  std::fclose(file);
  if (fields != 2) return 0;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

void HeapRest::give_back() {
  if (busy_.exchange(true)) return;  // the pool had no time for the one before until now
  const std::int64_t now = resident_bytes();
  if (rest_bytes_ != 0 && now < rest_bytes_ + growth_bytes) {
    rest_bytes_ = std::min(rest_bytes_, now);
  } else {
    malloc_trim(0);
    rest_bytes_ = resident_bytes();
  }
  busy_ = false;
}

}  // namespace polylog::server
