#include "fs/sim_file_system.h"

#include <utility>

#include "base/assert.h"
#include "fs/sim_disk.h"

namespace polylog::fs {
namespace {

using sim::Disk;
using sim::Node;
using sim::Place;
using sim::sim_error;
using sim::Step;

constexpr std::uint64_t direct_alignment = 4096;

FileInfo info_of(const Node& node) {
  const std::int64_t ns = node.current.modified_ns;
  FileInfo info;
  info.size = node.current.content.size();
  info.inode = node.inode;
  info.modified = Timestamp(ns / 1'000'000);
  info.modified_ns = ns;
  info.directory = node.directory;
  return info;
}

// A file opened or locked: keeps the node alive after its name is gone.
class Handle {
 public:
  Handle(std::shared_ptr<Disk> disk, Node* node) : disk_(std::move(disk)), node_(node) {
    ++node_->handles;  // made under the disk's lock
  }
  ~Handle() {
    const std::lock_guard guard(disk_->mutex);
    if (locks_) node_->locked = false;
    disk_->close(node_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void take_lock() { locks_ = node_->locked = true; }
  Disk& disk() const { return *disk_; }
  Node* node() const { return node_; }

 private:
  std::shared_ptr<Disk> disk_;
  Node* node_;
  bool locks_ = false;
};

class SimFile final : public File {
 public:
  SimFile(std::shared_ptr<Disk> disk, Node* node, bool writable, bool direct = false)
      : handle_(std::move(disk), node), writable_(writable), direct_(direct) {}

  Result<std::size_t> read(std::uint64_t position, MutableBytes into, bool wait) const override {
    Disk& disk = handle_.disk();
    Node* const node = handle_.node();
    const std::lock_guard guard(disk.mutex);
    POLYLOG_TRY(disk.check_power("read", node->path));
    if (disk.path_fault(node->path) == Fault::read_eio) {
      return fail(sim_error(Errc::io, "read", node->path, "simulated device error"));
    }
    const bool inside = position < node->current.content.size() && !into.empty();
    if (node->cold && inside && !wait) {
      return fail(sim_error(Errc::would_block, "read", node->path, "not in memory"));
    }
    if (inside) node->cold = false;
    return node->current.content.read(position, into);
  }

  Result<void> write(std::uint64_t position, std::span<const ByteView> parts) override {
    std::vector<std::uint8_t> bytes;
    std::size_t total = 0;
    for (const ByteView part : parts) total += part.size();
    bytes.reserve(total);
    for (const ByteView part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
    if (direct_) POLYLOG_TRY(check_aligned(position, parts));
    const std::lock_guard guard(handle_.disk().mutex);
    POLYLOG_TRY(check_writable("write"));
    if (bytes.empty()) return {};
    POLYLOG_TRY(handle_.disk().write(handle_.node(), position, std::move(bytes)));
    return direct_ ? handle_.disk().sync_file(handle_.node()) : Result<void>();
  }

  Result<void> sync() override {
    const std::lock_guard guard(handle_.disk().mutex);
    POLYLOG_TRY(handle_.disk().check_power("sync", handle_.node()->path));
    return handle_.disk().sync_file(handle_.node());
  }

  void start_writeback(std::uint64_t, std::uint64_t) override {}

  Result<void> truncate(std::uint64_t size) override {
    const std::lock_guard guard(handle_.disk().mutex);
    POLYLOG_TRY(check_writable("truncate"));
    return handle_.disk().truncate(handle_.node(), size);
  }

  Result<FileInfo> info() const override {
    const std::lock_guard guard(handle_.disk().mutex);
    POLYLOG_TRY(handle_.disk().check_power("info", handle_.node()->path));
    return info_of(*handle_.node());
  }

 private:
  Result<void> check_writable(std::string_view call) const {
    POLYLOG_TRY(handle_.disk().check_power(call, handle_.node()->path));
    if (writable_) return {};
    return fail(sim_error(Errc::invalid, call, handle_.node()->path, "opened for reading"));
  }

  // As a device would.
  Result<void> check_aligned(std::uint64_t position, std::span<const ByteView> parts) const {
    bool aligned = position % direct_alignment == 0;
    for (const ByteView part : parts) {
      aligned = aligned && part.size() % direct_alignment == 0 &&
                reinterpret_cast<std::uintptr_t>(part.data()) % direct_alignment == 0;
    }
    if (aligned) return {};
    return fail(sim_error(Errc::invalid, "write", handle_.node()->path, "not whole blocks"));
  }

  Handle handle_;
  bool writable_;
  bool direct_;
};

class SimLock final : public Lock {
 public:
  SimLock(std::shared_ptr<Disk> disk, Node* node) : handle_(std::move(disk), node) {
    handle_.take_lock();
  }

 private:
  Handle handle_;
};

class SimVolume final : public Volume {
 public:
  SimVolume(std::shared_ptr<Disk> disk, std::string path)
      : disk_(std::move(disk)), path_(std::move(path)) {}

  Result<void> sync() override {
    const std::lock_guard guard(disk_->mutex);
    POLYLOG_TRY(disk_->check_power("sync_volume", path_));
    return disk_->sync_everything(path_);
  }

 private:
  std::shared_ptr<Disk> disk_;
  std::string path_;
};

Result<Node*> find_directory(Disk& disk, std::string_view call, const std::string& path) {
  POLYLOG_ASSIGN(node, disk.find(call, path));
  if (!node->directory) return fail(sim_error(Errc::invalid, call, path, "not a directory"));
  return node;
}

Result<void> check_rename(const Place& from, const Place& to, const std::string& text) {
  const auto refuse = [&](Errc code, std::string_view what) {
    return fail(sim_error(code, "rename", text, what));
  };
  if (from.node == nullptr) return refuse(Errc::not_found, "no such file or directory");
  if (from.directory == nullptr || to.directory == nullptr) {
    return refuse(Errc::invalid, "the root cannot be renamed");
  }
  if (from.node->directory) {
    std::vector<const Node*> below{from.node};
    while (!below.empty()) {
      const Node* const node = below.back();
      below.pop_back();
      if (node == to.directory) return refuse(Errc::invalid, "a directory into itself");
      for (const auto& [name, child] : node->names) {
        if (child->directory) below.push_back(child);
      }
    }
  }
  if (to.node == nullptr || to.node == from.node) return {};
  if (from.node->directory && !to.node->directory) {
    return refuse(Errc::invalid, "not a directory");
  }
  if (!from.node->directory && to.node->directory) {
    return refuse(Errc::invalid, "is a directory");
  }
  if (!to.node->names.empty()) return refuse(Errc::invalid, "directory not empty");
  return {};
}

}  // namespace

SimFileSystem::SimFileSystem(const Clock* clock) : disk_(std::make_shared<Disk>(clock, true)) {}
SimFileSystem::SimFileSystem(std::shared_ptr<sim::Disk> disk) : disk_(std::move(disk)) {}
SimFileSystem::~SimFileSystem() = default;

Result<FilePtr> SimFileSystem::open(const std::string& path, OpenMode mode) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(place, disk_->locate("open", path));
  if (place.node != nullptr) {
    if (mode == OpenMode::create_new) {
      return fail(sim_error(Errc::exists, "open", path, "exists already"));
    }
    if (place.node->directory) {
      return fail(sim_error(Errc::invalid, "open", path, "is a directory"));
    }
    return std::make_shared<SimFile>(disk_, place.node, mode != OpenMode::read);
  }
  if (mode == OpenMode::read || mode == OpenMode::write) {
    return fail(sim_error(Errc::not_found, "open", path, "no such file or directory"));
  }
  const Step step = disk_->begin_step("create", sim::canonical(path));
  if (step.apply) place.node = disk_->create(place, false);
  POLYLOG_TRY(step.result());
  return std::make_shared<SimFile>(disk_, place.node, true);
}

Result<FilePtr> SimFileSystem::open_direct(const std::string& path) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(node, disk_->find("open", path));
  if (node->directory) return fail(sim_error(Errc::invalid, "open", path, "is a directory"));
  return std::make_shared<SimFile>(disk_, node, true, true);
}

Result<FileInfo> SimFileSystem::info(const std::string& path) const {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(node, disk_->find("info", path));
  return info_of(*node);
}

Result<std::vector<std::string>> SimFileSystem::list(const std::string& path) const {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(node, find_directory(*disk_, "list", path));
  std::vector<std::string> names;
  names.reserve(node->names.size());
  for (const auto& [name, child] : node->names) names.push_back(name);
  return names;
}

Result<void> SimFileSystem::create_directory(const std::string& path) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(place, disk_->locate("mkdir", path));
  if (place.node != nullptr) {
    return fail(sim_error(Errc::exists, "mkdir", path, "exists already"));
  }
  const Step step = disk_->begin_step("mkdir", sim::canonical(path));
  if (step.apply) disk_->create(place, true);
  return step.result();
}

Result<void> SimFileSystem::rename(const std::string& from, const std::string& to) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(source, disk_->locate("rename", from));
  POLYLOG_ASSIGN(target, disk_->locate("rename", to));
  POLYLOG_TRY(check_rename(source, target, from + " to " + to));
  if (source.node == target.node) return {};
  const Step step = disk_->begin_step("rename", sim::canonical(from) + " to " + sim::canonical(to));
  if (step.apply) disk_->move(source, target);
  return step.result();
}

Result<void> SimFileSystem::remove(const std::string& path) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(place, disk_->locate("remove", path));
  if (place.node == nullptr) {
    return fail(sim_error(Errc::not_found, "remove", path, "no such file or directory"));
  }
  if (place.node->directory) {
    return fail(sim_error(Errc::invalid, "remove", path, "is a directory"));
  }
  const Step step = disk_->begin_step("remove", sim::canonical(path));
  if (step.apply) disk_->unlink(place);
  return step.result();
}

Result<void> SimFileSystem::remove_directory(const std::string& path) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(place, disk_->locate("rmdir", path));
  if (place.node == nullptr) {
    return fail(sim_error(Errc::not_found, "rmdir", path, "no such file or directory"));
  }
  if (!place.node->directory) {
    return fail(sim_error(Errc::invalid, "rmdir", path, "not a directory"));
  }
  if (place.directory == nullptr || !place.node->names.empty()) {
    return fail(sim_error(Errc::invalid, "rmdir", path, "directory not empty"));
  }
  const Step step = disk_->begin_step("rmdir", sim::canonical(path));
  if (step.apply) disk_->unlink(place);
  return step.result();
}

Result<void> SimFileSystem::sync_directory(const std::string& path) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(node, find_directory(*disk_, "sync_directory", path));
  return disk_->sync_names(node);
}

Result<void> SimFileSystem::set_modified(const std::string& path, Timestamp time) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(node, disk_->find("set_modified", path));
  return disk_->set_modified(node, time.value() * 1'000'000);
}

Result<std::unique_ptr<Lock>> SimFileSystem::lock(const std::string& path) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(place, disk_->locate("lock", path));
  if (place.node == nullptr) {
    const Step step = disk_->begin_step("create", sim::canonical(path));
    if (step.apply) place.node = disk_->create(place, false);
    POLYLOG_TRY(step.result());
  }
  if (place.node->directory) return fail(sim_error(Errc::invalid, "lock", path, "is a directory"));
  if (place.node->locked) return fail(sim_error(Errc::locked, "lock", path, "already held"));
  return std::make_unique<SimLock>(disk_, place.node);
}

Result<std::unique_ptr<Volume>> SimFileSystem::open_volume(const std::string& path) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSIGN(node, find_directory(*disk_, "open_volume", path));
  return std::make_unique<SimVolume>(disk_, node->path);
}

Result<std::uint64_t> SimFileSystem::free_bytes(const std::string& path) const {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_TRY(disk_->find("free_bytes", path));
  return disk_->capacity_bytes > disk_->used_bytes ? disk_->capacity_bytes - disk_->used_bytes : 0;
}

Result<std::uint64_t> SimFileSystem::total_bytes(const std::string& path) const {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_TRY(disk_->find("total_bytes", path));
  return disk_->capacity_bytes;
}

std::uint64_t SimFileSystem::steps() const {
  const std::lock_guard guard(disk_->mutex);
  return disk_->steps;
}

void SimFileSystem::crash_at(std::uint64_t step, bool applied) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSERT(step == 0 || step > disk_->steps);
  disk_->crash_step = step;
  disk_->crash_applied = applied;
}

void SimFileSystem::power_off() {
  const std::lock_guard guard(disk_->mutex);
  disk_->off = true;
}

bool SimFileSystem::powered_off() const {
  const std::lock_guard guard(disk_->mutex);
  return disk_->off;
}

void SimFileSystem::fail_step(std::uint64_t step, Fault fault) {
  const std::lock_guard guard(disk_->mutex);
  POLYLOG_ASSERT(step > disk_->steps && fault != Fault::read_eio);
  disk_->step_faults[step] = fault;
}

void SimFileSystem::fail_path(std::string part, Fault fault) {
  const std::lock_guard guard(disk_->mutex);
  disk_->path_faults.emplace_back(std::move(part), fault);
}

void SimFileSystem::clear_faults() {
  const std::lock_guard guard(disk_->mutex);
  disk_->step_faults.clear();
  disk_->path_faults.clear();
}

void SimFileSystem::set_capacity(std::uint64_t bytes) {
  const std::lock_guard guard(disk_->mutex);
  disk_->capacity_bytes = bytes;
}

void SimFileSystem::evict() {
  const std::lock_guard guard(disk_->mutex);
  for (const auto& [inode, node] : disk_->nodes) node->cold = true;
}

void SimFileSystem::set_tracing(bool on) {
  const std::lock_guard guard(disk_->mutex);
  disk_->tracing = on;
}

std::vector<std::string> SimFileSystem::trace() const {
  const std::lock_guard guard(disk_->mutex);
  return disk_->trace;
}

SimCounters SimFileSystem::counters(const std::string& path) const {
  const std::lock_guard guard(disk_->mutex);
  const auto found = disk_->counters.find(sim::canonical(path));
  return found == disk_->counters.end() ? SimCounters{} : found->second;
}

SimCounters SimFileSystem::totals() const {
  const std::lock_guard guard(disk_->mutex);
  return disk_->totals;
}

void SimFileSystem::corrupt(const std::string& path, std::uint64_t position, ByteView bytes) {
  const std::lock_guard guard(disk_->mutex);
  disk_->rot_bytes(path, position, bytes);
}

void SimFileSystem::flip_bit(const std::string& path, std::uint64_t position, unsigned bit) {
  const std::lock_guard guard(disk_->mutex);
  std::uint8_t byte = 0;
  POLYLOG_ASSERT(bit < 8 && disk_->content_of(path).read(position, MutableBytes(&byte, 1)) == 1);
  byte = static_cast<std::uint8_t>(byte ^ (1U << bit));
  disk_->rot_bytes(path, position, ByteView(&byte, 1));
}

void SimFileSystem::truncate_raw(const std::string& path, std::uint64_t size) {
  const std::lock_guard guard(disk_->mutex);
  disk_->rot_size(path, size);
}

void SimFileSystem::append_raw(const std::string& path, ByteView bytes) {
  const std::lock_guard guard(disk_->mutex);
  disk_->rot_append(path, bytes);
}

std::string SimFileSystem::dump_tree() const {
  const std::lock_guard guard(disk_->mutex);
  std::string text;
  std::vector<const Node*> open{disk_->root};
  while (!open.empty()) {
    const Node& node = *open.back();
    open.pop_back();
    text += node.path + (node.directory && node.path != "/" ? "/" : "") + " inode " +
            std::to_string(node.inode);
    if (!node.directory) {
      text += ", " + std::to_string(node.current.content.size()) + " bytes, " +
              std::to_string(node.durable.content.size()) + " durable";
    }
    if (!node.pending.empty()) text += ", " + std::to_string(node.pending.size()) + " unsynced";
    if (node.lossy) text += ", a sync failed";
    text += '\n';
    for (const auto& [name, child] : node.durable_names) {
      const auto now = node.names.find(name);
      if (now != node.names.end() && now->second == child) continue;
      text += "  durable here: " + name + " inode " + std::to_string(child->inode) + '\n';
    }
    for (auto at = node.names.rbegin(); at != node.names.rend(); ++at) {
      const auto durable = node.durable_names.find(at->first);
      if (durable == node.durable_names.end() || durable->second != at->second) {
        text += "  name not durable: " + at->first + '\n';
      }
      open.push_back(at->second);
    }
  }
  return text;
}

}  // namespace polylog::fs
