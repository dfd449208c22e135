// Preloaded into a broker: numbers its storage calls by call site, and lets one of them fail.
//
// A site is the function and the stack that leads to it. PROVE_ROOT: only files below it count.
// PROVE_LOG: every call is written there as "call SITE FUNCTION PATH", a fault as "fault ...".
// PROVE_SITE, PROVE_NTH, PROVE_FAULT (eio, enospc, emfile or short): the call to fail.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

// How much of the stack tells sites apart: more of it for what changes the disk.
enum { frames_max = 16, frames_of_changes = 5, frames_of_reads = 3 };
enum fault { none, short_count, error };

static const char* root;
static size_t root_size;
static const char* fault_name;
static uint64_t site_wanted;
static long nth_wanted;
static long nth_seen;
static int log_descriptor = -1;
static int recording;
static __thread int inside;

static void set_up(void) {
  static int done;
  if (done) return;
  done = 1;
  root = getenv("PROVE_ROOT");
  root_size = root == NULL ? 0 : strlen(root);
  fault_name = getenv("PROVE_FAULT");
  const char* const site = getenv("PROVE_SITE");
  if (site != NULL) site_wanted = strtoull(site, NULL, 16);
  const char* const nth = getenv("PROVE_NTH");
  nth_wanted = nth == NULL ? 1 : atol(nth);
  const char* const log = getenv("PROVE_LOG");
  if (log != NULL) log_descriptor = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  recording = site == NULL;
}

// The constructor runs before the program has threads.
__attribute__((constructor)) static void begin(void) {
  inside = 1;
  set_up();
  void* frames[2];
  backtrace(frames, 2);  // loads what unwinding needs
  inside = 0;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value;
  hash *= 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

static int frames_of(const char* function) {
  static const char* const reads[] = {"open", "stat", "fstat", "pread", "preadv2", "statvfs"};
  for (size_t i = 0; i < sizeof reads / sizeof *reads; ++i) {
    if (strcmp(function, reads[i]) == 0) return frames_of_reads;
  }
  return frames_of_changes;
}

static uint64_t site_of(const char* function) {
  void* frames[frames_max];
  const int count = backtrace(frames, frames_max);
  uint64_t hash = 1;
  for (const char* c = function; *c != 0; ++c) hash = mix(hash, (uint64_t)*c);
  const int most = frames_of(function);
  int used = 0;
  for (int i = 0; i < count && used < most; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) == 0 || info.dli_fname == NULL) continue;
    if (strstr(info.dli_fname, "polylog") == NULL) continue;  // its own code alone
    if (strstr(info.dli_fname, "fault_shim") != NULL) continue;
    hash = mix(hash, (uint64_t)((char*)frames[i] - (char*)info.dli_fbase));
    ++used;
  }
  return hash;
}

static int counts(const char* path) {
  return root == NULL || strncmp(path, root, root_size) == 0;
}

static const char* path_of(int descriptor, char* into) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t size = readlink(link, into, PATH_MAX - 1);
  into[size < 0 ? 0 : size] = 0;
  return into;
}

static void say(const char* kind, uint64_t site, const char* function, const char* path) {
  char line[PATH_MAX + 128];
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int size = snprintf(line, sizeof line, "%s %016llx %s %s %lld.%09ld\n", kind,
                            (unsigned long long)site, function, path, (long long)now.tv_sec,
                            now.tv_nsec);
  if (log_descriptor >= 0 && write(log_descriptor, line, (size_t)size) < 0) return;
}

// What shall become of this call. errno is set for `error`.
static enum fault decide(const char* function, const char* path, int descriptor) {
  if (inside) return none;
  inside = 1;
  set_up();
  char buffer[PATH_MAX];
  enum fault fault = none;
  const int saved = errno;
  const uint64_t site = site_of(function);
  if (recording || site == site_wanted) {
    if (path == NULL) path = path_of(descriptor, buffer);
    if (counts(path)) {
      if (recording) {
        say("call", site, function, path);
      } else if (__sync_add_and_fetch(&nth_seen, 1) == nth_wanted) {
        say("fault", site, function, path);
        fault = strcmp(fault_name, "short") == 0 ? short_count : error;
      }
    }
  }
  inside = 0;
  errno = saved;
  if (fault == error) {
    errno = strcmp(fault_name, "enospc") == 0   ? ENOSPC
            : strcmp(fault_name, "emfile") == 0 ? EMFILE
                                                : EIO;
  }
  return fault;
}

#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

ssize_t pwritev(int descriptor, const struct iovec* parts, int count, off_t at) {
  static __typeof__(&pwritev) real;
  if (real == NULL) real = REAL(pwritev);
  const enum fault fault = decide("pwritev", NULL, descriptor);
  if (fault == error) return -1;
  if (fault == short_count) {
    struct iovec half = parts[0];
    if (count == 1 && half.iov_len > 1) half.iov_len /= 2;
    return real(descriptor, &half, 1, at);
  }
  return real(descriptor, parts, count, at);
}

ssize_t pread(int descriptor, void* into, size_t size, off_t at) {
  static __typeof__(&pread) real;
  if (real == NULL) real = REAL(pread);
  const enum fault fault = decide("pread", NULL, descriptor);
  if (fault == error) return -1;
  return real(descriptor, into, fault == short_count && size > 1 ? size / 2 : size, at);
}

ssize_t preadv2(int descriptor, const struct iovec* parts, int count, off_t at, int flags) {
  static __typeof__(&preadv2) real;
  if (real == NULL) real = REAL(preadv2);
  const enum fault fault = decide("preadv2", NULL, descriptor);
  if (fault == error) return -1;
  struct iovec half = parts[0];
  if (fault == short_count && half.iov_len > 1) half.iov_len /= 2;
  return fault == short_count ? real(descriptor, &half, 1, at, flags)
                              : real(descriptor, parts, count, at, flags);
}

#define OF_DESCRIPTOR(function)                                        \
  int function(int descriptor) {                                      \
    static __typeof__(&function) real;                                \
    if (real == NULL) real = REAL(function);                          \
    return decide(#function, NULL, descriptor) ? -1 : real(descriptor); \
  }
OF_DESCRIPTOR(fdatasync)
OF_DESCRIPTOR(fsync)
OF_DESCRIPTOR(syncfs)

int ftruncate(int descriptor, off_t size) {
  static __typeof__(&ftruncate) real;
  if (real == NULL) real = REAL(ftruncate);
  return decide("ftruncate", NULL, descriptor) ? -1 : real(descriptor, size);
}

int open(const char* path, int flags, ...) {
  static __typeof__(&open) real;
  if (real == NULL) real = REAL(open);
  va_list list;
  va_start(list, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(list, int) : 0;
  va_end(list);
  const char* const name = (flags & O_CREAT) != 0 ? "create" : "open";
  return decide(name, path, -1) ? -1 : real(path, flags, mode);
}

#define OF_PATH(function)                                      \
  int function(const char* path) {                             \
    static __typeof__(&function) real;                         \
    if (real == NULL) real = REAL(function);                   \
    return decide(#function, path, -1) ? -1 : real(path);      \
  }
OF_PATH(unlink)
OF_PATH(rmdir)

int mkdir(const char* path, mode_t mode) {
  static __typeof__(&mkdir) real;
  if (real == NULL) real = REAL(mkdir);
  return decide("mkdir", path, -1) ? -1 : real(path, mode);
}

int rename(const char* from, const char* to) {
  static __typeof__(&rename) real;
  if (real == NULL) real = REAL(rename);
  return decide("rename", to, -1) ? -1 : real(from, to);
}

int stat(const char* path, struct stat* into) {
  static __typeof__(&stat) real;
  if (real == NULL) real = REAL(stat);
  return decide("stat", path, -1) ? -1 : real(path, into);
}

int fstat(int descriptor, struct stat* into) {
  static __typeof__(&fstat) real;
  if (real == NULL) real = REAL(fstat);
  return decide("fstat", NULL, descriptor) ? -1 : real(descriptor, into);
}

int statvfs(const char* path, struct statvfs* into) {
  static __typeof__(&statvfs) real;
  if (real == NULL) real = REAL(statvfs);
  return decide("statvfs", path, -1) ? -1 : real(path, into);
}

int utimensat(int folder, const char* path, const struct timespec times[2], int flags) {
  static __typeof__(&utimensat) real;
  if (real == NULL) real = REAL(utimensat);
  return decide("utimensat", path, -1) ? -1 : real(folder, path, times, flags);
}
