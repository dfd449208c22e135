#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "fs/sim_content.h"
#include "fs/sim_file_system.h"

// The inside of SimFileSystem: what is on the platter, what is only in memory, and the list of
// operations between the two. Included by the simulation only.
namespace polylog::fs::sim {

enum class DataKind { write, truncate, set_modified };

// A change of one file that no successful sync has covered yet.
struct DataOp {
  std::uint64_t order = 0;  // place among all operations of the disk
  DataKind kind = DataKind::write;
  std::uint64_t position = 0;                              // of a write; the new size of a truncate
  std::shared_ptr<const std::vector<std::uint8_t>> bytes;  // of a write
  std::int64_t modified_ns = 0;
  bool dropped = false;  // covered by a failed sync: later syncs do not see it
};

struct Image {
  Content content;
  std::int64_t modified_ns = 0;

  void apply(const DataOp& op);
};

struct Node;
using Names = std::map<std::string, Node*>;

// A file or a directory, owned by the disk as long as a name, an operation or a handle uses it.
struct Node {
  std::uint64_t inode = 0;
  bool directory = false;

  // Files: what reads see, what is on stable storage, and the operations in between. After a
  // failed sync `current` holds bytes that replaying `pending` would not give.
  Image current;
  Image durable;
  std::vector<DataOp> pending;
  bool lossy = false;

  // Directories.
  Names names;
  Names durable_names;

  std::string path;         // as the names lead to it, or last did; for faults and counters
  std::size_t handles = 0;  // open Files and Locks
  bool linked = true;       // has a name
  bool locked = false;
  bool cold = false;  // not in the page cache

  void sync();
  void drop_pending();
};

// One change of names. A rename is one operation in both of its directories, as it is one
// transaction on every journalling file system.
struct NameOp {
  std::uint64_t order = 0;
  Node* from_directory = nullptr;  // remove and rename
  std::string from;
  Node* to_directory = nullptr;  // create and rename
  std::string to;
  Node* node = nullptr;
  Node* emptied = nullptr;  // the directory this removes or replaces
  bool dropped = false;

  bool touches(const Node* directory) const {
    return from_directory == directory || to_directory == directory;
  }
  template <typename EditNames>  // Node* -> Names&
  void apply(EditNames&& edit) const {
    if (from_directory != nullptr) edit(from_directory).erase(from);
    if (to_directory != nullptr) edit(to_directory)[to] = node;
  }
};

// Where a path leads. `directory` is null for the root itself; `node` is null when missing.
struct Place {
  Node* directory = nullptr;
  std::string name;
  Node* node = nullptr;
};

// What a counted call must do: apply itself or not, and what to answer.
struct Step {
  bool apply = true;
  std::optional<Fault> fault;
  std::optional<Error> error;

  Result<void> result() const {
    if (error) return fail(*error);
    return {};
  }
};

// REQUIRES: `mutex` held for everything else.
struct Disk {
  Disk(const Clock* the_clock, bool with_root);

  Node* new_node(bool directory);
  Node* new_node(bool directory, std::uint64_t inode);
  Result<Place> locate(std::string_view call, const std::string& path);
  Result<Node*> find(std::string_view call, const std::string& path);  // not_found when missing
  std::int64_t now_ns();

  Result<void> check_power(std::string_view call, const std::string& path) const;
  std::optional<Fault> path_fault(const std::string& path) const;
  Step begin_step(std::string_view call, const std::string& path);

  // Name changes, unconditionally; the caller has checked them and counted the step.
  Node* create(const Place& place, bool directory);
  void unlink(const Place& place);
  void move(const Place& from, const Place& to);
  void close(Node* node);  // one handle less

  Result<void> write(Node* node, std::uint64_t position, std::vector<std::uint8_t> bytes);
  Result<void> truncate(Node* node, std::uint64_t size);
  Result<void> set_modified(Node* node, std::int64_t modified_ns);
  Result<void> sync_file(Node* node);
  Result<void> sync_names(Node* directory);
  Result<void> sync_everything(const std::string& path);

  // Adds to `chosen` every earlier name operation without which a chosen one would lose a name
  // that nobody removed: same name, a directory's last names, the way to a new directory.
  void close_over(std::vector<bool>& chosen) const;
  void collect_garbage();

  // Bit rot: the same change in memory and on stable storage. REQUIRES: the file exists.
  void rot_bytes(const std::string& path, std::uint64_t position, ByteView bytes);
  void rot_size(const std::string& path, std::uint64_t size);
  void rot_append(const std::string& path, ByteView bytes);
  Content content_of(const std::string& path);  // REQUIRES: the file exists

  std::mutex mutex;
  const Clock* clock;
  std::int64_t ticks_ms = 1'700'000'000'000;  // time when there is no clock
  std::unordered_map<std::uint64_t, std::unique_ptr<Node>> nodes;
  std::size_t nodes_after_collection = 0;
  Node* root = nullptr;
  std::uint64_t next_inode = 2;
  std::uint64_t next_order = 1;
  std::vector<NameOp> name_ops;
  std::uint64_t used_bytes = 0;
  std::uint64_t capacity_bytes = std::uint64_t{1} << 40;

  std::uint64_t steps = 0;
  std::uint64_t crash_step = 0;  // 0: none
  bool crash_applied = false;
  bool off = false;
  std::map<std::uint64_t, Fault> step_faults;
  std::vector<std::pair<std::string, Fault>> path_faults;
  bool tracing = false;
  std::vector<std::string> trace;

  std::unordered_map<std::string, SimCounters> counters;
  SimCounters totals;

 private:
  void resized(std::uint64_t before, std::uint64_t after);
  void record(Node* node, DataOp op);
  void count_synced(const Node* node);
  void settle(const std::vector<bool>& chosen);
  void detach(Node* node);
  void release(const Node* node);
};

// The parts of a path; "." and empty parts drop out, ".." goes up.
std::vector<std::string> parts_of(const std::string& path);
std::string canonical(const std::string& path);  // "/a/b"

Error sim_error(Errc code, std::string_view call, const std::string& path, std::string_view what);

}  // namespace polylog::fs::sim
