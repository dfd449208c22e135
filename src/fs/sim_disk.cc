#include "fs/sim_disk.h"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace polylog::fs::sim {

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (start < path.size()) {
    const std::size_t slash = std::min(path.find('/', start), path.size());
    std::string part = path.substr(start, slash - start);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(std::move(part));
    }
    start = slash + 1;
  }
  return parts;
}

std::string canonical(const std::string& path) {
  std::string text;
  for (const std::string& part : parts_of(path)) text += "/" + part;
  return text.empty() ? "/" : text;
}

Error sim_error(Errc code, std::string_view call, const std::string& path, std::string_view what) {
  std::string context(call);
  context += ' ';
  context += path;
  context += ": ";
  context += what;
  return {code, std::move(context)};
}

void Image::apply(const DataOp& op) {
  switch (op.kind) {
    case DataKind::write: content.write(op.position, *op.bytes); break;
    case DataKind::truncate: content.resize(op.position); break;
    case DataKind::set_modified: break;
  }
  modified_ns = op.modified_ns;
}

void Node::sync() {
  if (pending.empty()) return;
  if (!lossy) {
    durable = current;
  } else {
    for (const DataOp& op : pending) {
      if (!op.dropped) durable.apply(op);
    }
  }
  pending.clear();
}

void Node::drop_pending() {
  for (DataOp& op : pending) {
    op.dropped = true;
    lossy = true;
  }
}

Disk::Disk(const Clock* the_clock, bool with_root) : clock(the_clock) {
  if (!with_root) return;
  root = new_node(true);
  root->path = "/";
}

Node* Disk::new_node(bool directory) { return new_node(directory, next_inode++); }

Node* Disk::new_node(bool directory, std::uint64_t inode) {
  auto node = std::make_unique<Node>();
  node->inode = inode;
  node->directory = directory;
  Node* const raw = node.get();
  nodes.emplace(inode, std::move(node));
  return raw;
}

Result<Place> Disk::locate(std::string_view call, const std::string& path) {
  POLYLOG_TRY(check_power(call, path));
  std::vector<std::string> parts = parts_of(path);
  Place place;
  place.node = root;
  for (std::string& part : parts) {
    if (place.node == nullptr) {
      return fail(sim_error(Errc::not_found, call, path, "no such file or directory"));
    }
    if (!place.node->directory) {
      return fail(sim_error(Errc::invalid, call, path, "not a directory"));
    }
    place.directory = place.node;
    const auto found = place.directory->names.find(part);
    place.node = found == place.directory->names.end() ? nullptr : found->second;
    place.name = std::move(part);
  }
  return place;
}

Result<Node*> Disk::find(std::string_view call, const std::string& path) {
  POLYLOG_ASSIGN(place, locate(call, path));
  if (place.node == nullptr) {
    return fail(sim_error(Errc::not_found, call, path, "no such file or directory"));
  }
  return place.node;
}

std::int64_t Disk::now_ns() {
  return (clock != nullptr ? clock->now().value() : ++ticks_ms) * 1'000'000;
}

Result<void> Disk::check_power(std::string_view call, const std::string& path) const {
  if (off) return fail(sim_error(Errc::io, call, path, "power is off"));
  return {};
}

std::optional<Fault> Disk::path_fault(const std::string& path) const {
  for (const auto& [part, fault] : path_faults) {
    if (path.find(part) != std::string::npos) return fault;
  }
  return std::nullopt;
}

Step Disk::begin_step(std::string_view call, const std::string& path) {
  ++steps;
  if (tracing) trace.push_back(std::to_string(steps) + " " + std::string(call) + " " + path);
  Step step;
  if (steps == crash_step) {
    off = true;
    step.apply = crash_applied;
    step.error = sim_error(Errc::io, call, path, "power is off");
    return step;
  }
  step.fault = path_fault(path);
  if (step.fault == Fault::read_eio) step.fault.reset();
  if (const auto found = step_faults.find(steps); found != step_faults.end()) {
    step.fault = found->second;
  }
  if (step.fault) {
    step.apply = false;
    step.error = *step.fault == Fault::eio
                     ? sim_error(Errc::io, call, path, "simulated device error")
                     : sim_error(Errc::no_space, call, path, "simulated full disk");
  }
  return step;
}

Node* Disk::create(const Place& place, bool directory) {
  Node* const node = new_node(directory);
  node->path =
      place.directory->path == "/" ? "/" + place.name : place.directory->path + "/" + place.name;
  node->current.modified_ns = node->durable.modified_ns = now_ns();
  place.directory->names[place.name] = node;
  NameOp op;
  op.order = next_order++;
  op.to_directory = place.directory;
  op.to = place.name;
  op.node = node;
  name_ops.push_back(std::move(op));
  return node;
}

void Disk::unlink(const Place& place) {
  NameOp op;
  op.order = next_order++;
  op.from_directory = place.directory;
  op.from = place.name;
  op.node = place.node;
  if (place.node->directory) op.emptied = place.node;
  name_ops.push_back(std::move(op));
  place.directory->names.erase(place.name);
  detach(place.node);
  collect_garbage();
}

void Disk::move(const Place& from, const Place& to) {
  NameOp op;
  op.order = next_order++;
  op.from_directory = from.directory;
  op.from = from.name;
  op.to_directory = to.directory;
  op.to = to.name;
  op.node = from.node;
  if (to.node != nullptr && to.node->directory) op.emptied = to.node;
  name_ops.push_back(std::move(op));
  from.directory->names.erase(from.name);
  to.directory->names[to.name] = from.node;
  if (to.node != nullptr) detach(to.node);

  std::vector<std::pair<Node*, std::string>> renamed;
  renamed.emplace_back(from.node, (to.directory == root ? "" : to.directory->path) + "/" + to.name);
  while (!renamed.empty()) {
    auto [node, path] = std::move(renamed.back());
    renamed.pop_back();
    for (const auto& [name, child] : node->names) renamed.emplace_back(child, path + "/" + name);
    node->path = std::move(path);
  }
  collect_garbage();
}

void Disk::detach(Node* node) {
  node->linked = false;
  release(node);
}

void Disk::close(Node* node) {
  POLYLOG_ASSERT(node->handles > 0);
  --node->handles;
  release(node);
  collect_garbage();
}

void Disk::release(const Node* node) {
  if (!node->linked && node->handles == 0) used_bytes -= node->current.content.size();
}

void Disk::resized(std::uint64_t before, std::uint64_t after) {
  used_bytes += after;
  used_bytes -= before;
}

void Disk::record(Node* node, DataOp op) {
  op.order = next_order++;
  const std::uint64_t before = node->current.content.size();
  node->current.apply(op);
  resized(before, node->current.content.size());
  node->pending.push_back(std::move(op));
}

Result<void> Disk::write(Node* node, std::uint64_t position, std::vector<std::uint8_t> bytes) {
  if (position > Content::size_max || bytes.size() > Content::size_max - position) {
    return fail(sim_error(Errc::too_large, "write", node->path, "beyond the simulated file size"));
  }
  Step step = begin_step("write", node->path);
  if (step.fault == Fault::short_write) {
    bytes.resize(bytes.size() / 2);
    step.apply = true;
  }
  if (!step.apply) return step.result();
  const std::uint64_t size = node->current.content.size();
  const std::uint64_t room = capacity_bytes > used_bytes ? capacity_bytes - used_bytes : 0;
  const std::uint64_t end_max = std::max(size, size + room);
  if (position + bytes.size() > end_max) {
    bytes.resize(position >= end_max ? 0 : static_cast<std::size_t>(end_max - position));
    if (!step.error) step.error = sim_error(Errc::no_space, "write", node->path, "disk is full");
  }
  if (bytes.empty()) return step.result();
  SimCounters& counted = counters[node->path];
  counted.bytes_written += bytes.size();
  totals.bytes_written += bytes.size();
  DataOp op;
  op.kind = DataKind::write;
  op.position = position;
  op.bytes = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  op.modified_ns = now_ns();
  record(node, std::move(op));
  return step.result();
}

Result<void> Disk::truncate(Node* node, std::uint64_t size) {
  if (size > Content::size_max) {
    return fail(
        sim_error(Errc::too_large, "truncate", node->path, "beyond the simulated file size"));
  }
  const Step step = begin_step("truncate", node->path);
  if (!step.apply) return step.result();
  const std::uint64_t before = node->current.content.size();
  const std::uint64_t room = capacity_bytes > used_bytes ? capacity_bytes - used_bytes : 0;
  if (size > before && size - before > room) {
    return fail(sim_error(Errc::no_space, "truncate", node->path, "disk is full"));
  }
  DataOp op;
  op.kind = DataKind::truncate;
  op.position = size;
  op.modified_ns = now_ns();
  record(node, std::move(op));
  return step.result();
}

Result<void> Disk::set_modified(Node* node, std::int64_t modified_ns) {
  const Step step = begin_step("set_modified", node->path);
  if (step.apply) {
    DataOp op;
    op.kind = DataKind::set_modified;
    op.modified_ns = modified_ns;
    record(node, std::move(op));
  }
  return step.result();
}

void Disk::count_synced(const Node* node) {
  std::uint64_t bytes = 0;
  for (const DataOp& op : node->pending) {
    if (op.kind == DataKind::write && !op.dropped) bytes += op.bytes->size();
  }
  if (bytes == 0) return;
  counters[node->path].bytes_synced += bytes;
  totals.bytes_synced += bytes;
}

Result<void> Disk::sync_file(Node* node) {
  const Step step = begin_step("sync", node->path);
  if (step.apply) {
    count_synced(node);
    ++counters[node->path].syncs;
    ++totals.syncs;
    node->sync();
  } else if (step.fault) {
    node->drop_pending();
  }
  return step.result();
}

void Disk::settle(const std::vector<bool>& chosen) {
  const auto durable = [](Node* directory) -> Names& { return directory->durable_names; };
  std::vector<NameOp> left;
  for (std::size_t i = 0; i < name_ops.size(); ++i) {
    if (chosen[i]) {
      name_ops[i].apply(durable);
    } else {
      left.push_back(std::move(name_ops[i]));
    }
  }
  name_ops = std::move(left);
  collect_garbage();
}

Result<void> Disk::sync_names(Node* directory) {
  const Step step = begin_step("sync_directory", directory->path);
  if (step.apply) {
    std::vector<bool> chosen(name_ops.size());
    for (std::size_t i = 0; i < name_ops.size(); ++i) {
      chosen[i] = !name_ops[i].dropped && name_ops[i].touches(directory);
    }
    close_over(chosen);
    settle(chosen);
    ++counters[directory->path].syncs;
    ++totals.syncs;
  } else if (step.fault) {
    for (NameOp& op : name_ops) op.dropped = op.dropped || op.touches(directory);
  }
  return step.result();
}

Result<void> Disk::sync_everything(const std::string& path) {
  Step step = begin_step("sync_volume", path);
  if (step.apply && !step.error) {
    for (const auto& [inode, node] : nodes) {
      const std::optional<Fault> fault =
          node->pending.empty() ? std::nullopt : path_fault(node->path);
      if (!fault || *fault == Fault::read_eio) continue;
      step = {false, fault,
              sim_error(*fault == Fault::eio ? Errc::io : Errc::no_space, "sync_volume", path,
                        "simulated failure of " + node->path)};
      break;
    }
  }
  if (step.apply) {
    for (const auto& [inode, node] : nodes) {
      count_synced(node.get());
      node->sync();
    }
    std::vector<bool> chosen(name_ops.size());
    for (std::size_t i = 0; i < name_ops.size(); ++i) chosen[i] = !name_ops[i].dropped;
    close_over(chosen);
    settle(chosen);
    ++counters[path].syncs;
    ++totals.syncs;
  } else if (step.fault) {
    for (const auto& [inode, node] : nodes) node->drop_pending();
    for (NameOp& op : name_ops) op.dropped = true;
  }
  return step.result();
}

void Disk::close_over(std::vector<bool>& chosen) const {
  std::set<std::pair<const Node*, std::string_view>> names;
  std::unordered_set<const Node*> emptied;    // whatever left them must have left
  std::unordered_set<const Node*> reachable;  // new directories that took something in
  for (std::size_t i = name_ops.size(); i-- > 0;) {
    const NameOp& op = name_ops[i];
    const bool leads_to_needed = op.to_directory != nullptr && reachable.contains(op.node);
    const bool needed =
        names.contains({op.from_directory, op.from}) || names.contains({op.to_directory, op.to}) ||
        emptied.contains(op.from_directory) || emptied.contains(op.to_directory) || leads_to_needed;
    if (needed) chosen[i] = true;
    if (!chosen[i]) continue;
    if (op.from_directory != nullptr) names.insert({op.from_directory, op.from});
    if (op.to_directory != nullptr) names.insert({op.to_directory, op.to});
    if (op.emptied != nullptr) emptied.insert(op.emptied);
    const bool moved = op.from_directory != nullptr && op.to_directory != nullptr &&
                       op.from_directory != op.to_directory;
    if (moved || leads_to_needed) reachable.insert(op.to_directory);
  }
}

void Disk::collect_garbage() {
  if (nodes.size() < 2 * nodes_after_collection + 64) return;
  std::unordered_set<const Node*> used;
  std::vector<const Node*> open{root};
  for (const NameOp& op : name_ops) {
    open.insert(open.end(), {op.from_directory, op.to_directory, op.node, op.emptied});
  }
  for (const auto& [inode, node] : nodes) {
    if (node->handles > 0) open.push_back(node.get());
  }
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (node == nullptr || !used.insert(node).second) continue;
    for (const auto& [name, child] : node->names) open.push_back(child);
    for (const auto& [name, child] : node->durable_names) open.push_back(child);
  }
  std::erase_if(nodes, [&](const auto& entry) { return !used.contains(entry.second.get()); });
  nodes_after_collection = nodes.size();
}

void Disk::rot_bytes(const std::string& path, std::uint64_t position, ByteView bytes) {
  const Result<Node*> node = find("corrupt", path);
  POLYLOG_ASSERT(node.has_value());
  Content& current = (*node)->current.content;
  Content& durable = (*node)->durable.content;
  POLYLOG_ASSERT(position <= current.size() && bytes.size() <= current.size() - position);
  current.write(position, bytes);
  if (position >= durable.size()) return;
  const std::uint64_t covered = std::min<std::uint64_t>(bytes.size(), durable.size() - position);
  durable.write(position, bytes.first(static_cast<std::size_t>(covered)));
}

void Disk::rot_size(const std::string& path, std::uint64_t size) {
  const Result<Node*> node = find("truncate_raw", path);
  POLYLOG_ASSERT(node.has_value());
  const std::uint64_t before = (*node)->current.content.size();
  (*node)->current.content.resize(size);
  if ((*node)->pending.empty() || size < (*node)->durable.content.size()) {
    (*node)->durable.content.resize(size);
  }
  resized(before, size);
}

void Disk::rot_append(const std::string& path, ByteView bytes) {
  const Result<Node*> node = find("append_raw", path);
  POLYLOG_ASSERT(node.has_value());
  for (Image* image : {&(*node)->current, &(*node)->durable}) {
    image->content.write(image->content.size(), bytes);
  }
  resized(0, bytes.size());
}

Content Disk::content_of(const std::string& path) {
  const Result<Node*> node = find("corrupt", path);
  POLYLOG_ASSERT(node.has_value());
  return (*node)->current.content;
}

}  // namespace polylog::fs::sim
