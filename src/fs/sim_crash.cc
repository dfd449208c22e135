#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "fs/sim_disk.h"
#include "fs/sim_file_system.h"

// Turns the operations a disk has not synced into states it may be found in after a crash.
namespace polylog::fs {
namespace {

using sim::DataKind;
using sim::DataOp;
using sim::Disk;
using sim::Image;
using sim::NameOp;
using sim::Names;
using sim::Node;
using Mode = CrashChoice::Mode;

constexpr std::uint64_t sector_bytes = 512;

// splitmix64: decisions depend on the seed and the operation, not on the order of looking.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a + 0x9e3779b97f4a7c15U * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

struct Unsynced {
  std::uint64_t order = 0;
  std::uint64_t position = 0;
  std::uint64_t bytes = 0;  // of a write, else 0
};

std::vector<Unsynced> unsynced_of(const Disk& disk) {
  std::vector<Unsynced> all;
  for (const NameOp& op : disk.name_ops) all.push_back({op.order, 0, 0});
  for (const auto& [inode, node] : disk.nodes) {
    for (const DataOp& op : node->pending) {
      all.push_back({op.order, op.position, op.kind == DataKind::write ? op.bytes->size() : 0});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Unsynced& a, const Unsynced& b) { return a.order < b.order; });
  return all;
}

void extend(Image& image, std::uint64_t end) {
  if (end > image.content.size()) image.content.resize(end);
}

// Decides operation by operation, and carries the decision out on a file's image.
class Materialiser {
 public:
  Materialiser(const Disk& from, const CrashChoice& choice)
      : from_(from), choice_(choice), limit_(limit_of(from, choice)) {
    choose_names();
  }

  std::shared_ptr<Disk> run() {
    auto made = std::make_shared<Disk>(from_.clock, false);
    made->root = copy_node(*made, *from_.root);
    std::vector<std::pair<const Node*, Node*>> open{{from_.root, made->root}};
    while (!open.empty()) {
      const auto [old_directory, directory] = open.back();
      open.pop_back();
      for (const auto& [name, old_child] : names_of(*old_directory)) {
        Node* const child = copy_node(*made, *old_child);
        child->path = (directory == made->root ? "" : directory->path) + "/" + name;
        directory->names.emplace_hint(directory->names.end(), name, child);
        if (old_child->directory) open.emplace_back(old_child, child);
      }
      directory->durable_names = directory->names;
    }
    return made;
  }

 private:
  // The first operation that is not kept whole.
  static std::uint64_t limit_of(const Disk& from, const CrashChoice& choice) {
    if (choice.mode != Mode::prefix && choice.mode != Mode::zero_filled) return 0;
    const std::vector<Unsynced> all = unsynced_of(from);
    return choice.kept < all.size() ? all[choice.kept].order
                                    : std::numeric_limits<std::uint64_t>::max();
  }

  bool keeps_name(const NameOp& op) const {
    switch (choice_.mode) {
      case Mode::lose_all:
      case Mode::data_only: return false;
      case Mode::keep_all:
      case Mode::kill:
      case Mode::zero_filled:
      case Mode::names_only: return true;
      case Mode::prefix: return op.order < limit_;
      case Mode::subset: return mix(choice_.seed, op.order) % 8 < keep_in_eight();
    }
    return false;
  }

  void choose_names() {
    const std::vector<NameOp>& ops = from_.name_ops;
    std::vector<bool> chosen(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) chosen[i] = keeps_name(ops[i]);
    from_.close_over(chosen);
    const auto edit = [&](Node* directory) -> Names& {
      return edited_.try_emplace(directory, directory->durable_names).first->second;
    };
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (chosen[i]) ops[i].apply(edit);
    }
  }

  const Names& names_of(const Node& directory) const {
    const auto found = edited_.find(&directory);
    return found == edited_.end() ? directory.durable_names : found->second;
  }

  Node* copy_node(Disk& made, const Node& old) const {
    Node* const node = made.new_node(old.directory, old.inode);
    node->path = old.path;
    node->durable = old.durable;
    if (choice_.mode == Mode::keep_all) {
      node->durable = old.current;
    } else {
      for (const DataOp& op : old.pending) apply(op, node->durable);
    }
    node->current = node->durable;
    made.used_bytes += node->current.content.size();
    return node;
  }

  void apply(const DataOp& op, Image& image) const {
    switch (choice_.mode) {
      case Mode::lose_all:
      case Mode::names_only: return;
      case Mode::keep_all:
      case Mode::kill:
      case Mode::data_only: image.apply(op); return;
      case Mode::prefix:
        if (op.order < limit_) image.apply(op);
        if (op.order == limit_) apply_start(op, choice_.torn_bytes, image);
        return;
      case Mode::zero_filled:
        if (op.order < limit_ || op.kind != DataKind::write) {
          image.apply(op);
        } else {
          extend(image, op.position + op.bytes->size());
        }
        return;
      case Mode::subset: apply_some(op, image); return;
    }
  }

  static void apply_start(const DataOp& op, std::uint64_t bytes, Image& image) {
    if (op.kind != DataKind::write || bytes == 0) return;
    const std::uint64_t count = std::min<std::uint64_t>(bytes, op.bytes->size());
    image.content.write(op.position, ByteView(*op.bytes).first(static_cast<std::size_t>(count)));
    image.modified_ns = op.modified_ns;
  }

  // Of eight operations, how many to keep: from hardly any to nearly all, by seed.
  std::uint64_t keep_in_eight() const { return 1 + mix(choice_.seed, 0) % 7; }

  void apply_some(const DataOp& op, Image& image) const {
    const std::uint64_t dice = mix(choice_.seed, op.order);
    if (dice % 8 < keep_in_eight()) {
      image.apply(op);
      return;
    }
    if (op.kind != DataKind::write) return;
    const std::uint64_t fate = (dice >> 8) % 6;  // half of them leave nothing at all
    if (fate == 0) extend(image, op.position + op.bytes->size());
    if (fate == 1) apply_sectors(op, image, dice);
    if (fate == 2) apply_start(op, (dice >> 16) % op.bytes->size(), image);
  }

  void apply_sectors(const DataOp& op, Image& image, std::uint64_t dice) const {
    const ByteView bytes(*op.bytes);
    const std::uint64_t end = op.position + bytes.size();
    for (std::uint64_t at = op.position; at < end;) {
      const std::uint64_t next = std::min(end, (at / sector_bytes + 1) * sector_bytes);
      if (mix(dice, at) % 2 == 0) {
        image.content.write(at, bytes.subspan(static_cast<std::size_t>(at - op.position),
                                              static_cast<std::size_t>(next - at)));
      }
      at = next;
    }
    if ((dice >> 16) % 2 == 0) extend(image, end);
  }

  const Disk& from_;
  const CrashChoice& choice_;
  std::uint64_t limit_;
  std::unordered_map<const Node*, Names> edited_;
};

// Death of the process: the page cache and its debts live on.
std::shared_ptr<Disk> copy_whole(const Disk& from) {
  auto made = std::make_shared<Disk>(from.clock, false);
  std::unordered_map<const Node*, Node*> copies{{nullptr, nullptr}};
  for (const auto& [inode, old] : from.nodes) {
    Node* const node = made->new_node(old->directory, inode);
    node->current = old->current;
    node->durable = old->durable;
    node->pending = old->pending;
    node->lossy = old->lossy;
    node->path = old->path;
    node->linked = old->linked;
    node->cold = old->cold;
    copies.emplace(old.get(), node);
    if (node->linked) made->used_bytes += node->current.content.size();
  }
  for (const auto& [inode, old] : from.nodes) {
    Node* const node = copies.at(old.get());
    for (const auto& [name, child] : old->names) node->names[name] = copies.at(child);
    for (const auto& [name, child] : old->durable_names) {
      node->durable_names[name] = copies.at(child);
    }
  }
  made->name_ops = from.name_ops;
  for (NameOp& op : made->name_ops) {
    op.from_directory = copies.at(op.from_directory);
    op.to_directory = copies.at(op.to_directory);
    op.node = copies.at(op.node);
    op.emptied = copies.at(op.emptied);
  }
  made->root = copies.at(from.root);
  return made;
}

using Choices = std::vector<CrashChoice>;

Choices prefixes(std::uint64_t seed, const std::vector<Unsynced>& all, std::size_t count) {
  Choices choices;
  const std::size_t lengths = all.size() - 1;  // none and all are lose_all and keep_all
  const std::size_t taken = std::min(lengths, count);
  for (std::size_t i = 0; i < taken; ++i) {
    const std::size_t at = (mix(seed, 1) + i * lengths / taken) % lengths;
    choices.push_back({Mode::prefix, 0, at + 1, 0});
  }
  return choices;
}

void add_cuts(std::uint64_t seed, std::size_t kept, const Unsynced& write, Choices& choices) {
  std::vector<std::uint64_t> cuts{write.bytes / 2, write.bytes - 1, 1};
  const std::uint64_t to_sector = sector_bytes - write.position % sector_bytes;
  if (to_sector < write.bytes) {
    const std::uint64_t sectors = (write.bytes - to_sector - 1) / sector_bytes + 1;
    cuts.push_back(to_sector + sector_bytes * (mix(seed, kept) % sectors));
  }
  cuts.push_back(mix(seed, kept + 1) % write.bytes);
  for (const std::uint64_t cut : cuts) {
    const CrashChoice choice{Mode::prefix, 0, kept, cut};
    if (cut == 0 || cut >= write.bytes) continue;
    if (std::find(choices.begin(), choices.end(), choice) == choices.end()) {
      choices.push_back(choice);
    }
  }
}

Choices torn_writes(std::uint64_t seed, const std::vector<Unsynced>& all, std::size_t count) {
  Choices choices;
  bool last = true;
  for (std::size_t i = all.size(); i-- > 0 && choices.size() < count;) {
    if (all[i].bytes < 2) continue;
    // The last write always, at several cuts; of the earlier ones every second.
    if (last || mix(seed, i) % 2 == 0) add_cuts(seed, i, all[i], choices);
    last = false;
  }
  return choices;
}

Choices zero_fills(std::uint64_t seed, const std::vector<Unsynced>& all) {
  Choices choices;
  std::vector<std::size_t> lengths{all.size() - 1, 0, all.size() / 2};
  lengths.push_back(static_cast<std::size_t>(mix(seed, 2) % all.size()));
  for (const std::size_t kept : lengths) {
    const CrashChoice choice{Mode::zero_filled, 0, kept, 0};
    if (std::find(choices.begin(), choices.end(), choice) == choices.end()) {
      choices.push_back(choice);
    }
  }
  return choices;
}

}  // namespace

std::string CrashChoice::to_string() const {
  switch (mode) {
    case Mode::lose_all: return "lose_all";
    case Mode::keep_all: return "keep_all";
    case Mode::kill: return "kill";
    case Mode::prefix:
      return "prefix of " + std::to_string(kept) + ", " + std::to_string(torn_bytes) +
             " bytes of the next";
    case Mode::subset: return "subset by seed " + std::to_string(seed);
    case Mode::zero_filled: return "zero-filled after " + std::to_string(kept);
    case Mode::names_only: return "names_only";
    case Mode::data_only: return "data_only";
  }
  return "unknown";
}

std::size_t SimFileSystem::unsynced() const {
  const std::lock_guard guard(disk_->mutex);
  return unsynced_of(*disk_).size();
}

std::unique_ptr<SimFileSystem> SimFileSystem::crash_state(const CrashChoice& choice) const {
  const std::lock_guard guard(disk_->mutex);
  std::shared_ptr<Disk> made =
      choice.mode == Mode::kill ? copy_whole(*disk_) : Materialiser(*disk_, choice).run();
  made->ticks_ms = disk_->ticks_ms;
  made->next_inode = disk_->next_inode;
  made->next_order = disk_->next_order;
  made->capacity_bytes = disk_->capacity_bytes;
  made->nodes_after_collection = made->nodes.size();
  return std::unique_ptr<SimFileSystem>(new SimFileSystem(std::move(made)));
}

std::vector<CrashChoice> SimFileSystem::crash_choices(std::uint64_t seed, std::size_t count) const {
  const std::lock_guard guard(disk_->mutex);
  const std::vector<Unsynced> all = unsynced_of(*disk_);
  Choices choices{{Mode::lose_all, 0, 0, 0}, {Mode::keep_all, 0, 0, 0}};
  if (!all.empty()) {
    std::vector<Choices> families{
        torn_writes(seed, all, count),
        zero_fills(seed, all),
        {{Mode::names_only, 0, 0, 0}, {Mode::data_only, 0, 0, 0}, {Mode::kill, 0, 0, 0}},
        prefixes(seed, all, count),
    };
    // One of each family in turn, so that a small count still sees every kind; random subsets
    // take a quarter of the room and then all that is left.
    for (std::size_t round = 0; choices.size() < count; ++round) {
      for (const Choices& family : families) {
        if (round < family.size()) choices.push_back(family[round]);
      }
      choices.push_back({Mode::subset, mix(seed, 1000 + round), 0, 0});
    }
  }
  if (choices.size() > count) choices.resize(count);
  return choices;
}

}  // namespace polylog::fs
