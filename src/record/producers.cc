#include "record/producers.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"

namespace polylog {

std::int32_t sequence_plus(std::int32_t first, std::int32_t delta) {
  constexpr std::int64_t modulus = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
  return static_cast<std::int32_t>((std::int64_t{first} + delta) % modulus);
}

namespace {

ProducerState::Check refuse(ProducerState::Verdict verdict) {
  ProducerState::Check check;
  check.verdict = verdict;
  return check;
}

}  // namespace

ProducerState::Check ProducerState::check(const BatchInfo& batch) const {
  const ProducerStamp& stamp = batch.producer;
  if (stamp.id == no_producer) return {};
  const auto found = entries_.find(stamp.id);
  if (found == entries_.end()) return {};
  const Entry& entry = found->second;
  if (stamp.epoch == entry.epoch) {
    for (const BatchStamp& kept : entry.batches) {
      if (kept.first_sequence == stamp.first_sequence &&
          kept.last_sequence == stamp.last_sequence) {
        return {Verdict::duplicate,
                {kept.last - kept.offset_delta, kept.last + 1},
                kept.max_timestamp,
                kept.end};
      }
    }
  }
  if (stamp.epoch < entry.epoch) return refuse(Verdict::invalid_producer_epoch);
  if (stamp.epoch > entry.epoch) {
    if (stamp.first_sequence != 0 && entry.epoch != -1) {
      return refuse(Verdict::out_of_order_sequence);
    }
  } else {
    const std::int32_t last = entry.batches.empty() ? -1 : entry.batches.back().last_sequence;
    if (stamp.first_sequence != sequence_plus(last, 1)) {
      return refuse(Verdict::out_of_order_sequence);
    }
  }
  if (!batch.transactional && entry.transaction_first) {
    return refuse(Verdict::invalid_transaction_state);
  }
  return {};
}

ProducerState::Undo ProducerState::update(const BatchInfo& batch, LogPosition end) {
  const ProducerStamp& stamp = batch.producer;
  if (stamp.id == no_producer) return {};
  Undo undo{.id = stamp.id, .before = std::nullopt};
  const auto [found, inserted] = entries_.try_emplace(stamp.id);
  Entry& entry = found->second;
  if (!inserted) undo.before = entry;
  if (entry.epoch != stamp.epoch) {
    entry.batches.clear();
    entry.epoch = stamp.epoch;
  }
  // An empty batch left behind by compaction still carries the producer's last sequence.
  if (entry.batches.size() == batches_kept) entry.batches.erase(entry.batches.begin());
  entry.batches.push_back({stamp.first_sequence, stamp.last_sequence, batch.last,
                           static_cast<std::int32_t>(batch.last - batch.first),
                           batch.max_timestamp, end});
  entry.last_timestamp = batch.max_timestamp;
  if (batch.transactional && !entry.transaction_first) entry.transaction_first = batch.first;
  return undo;
}

std::optional<AbortedTransaction> ProducerState::end_transaction(const BatchInfo& marker,
                                                                 bool commit,
                                                                 std::int32_t coordinator_epoch) {
  Entry& entry = entries_[marker.producer.id];
  if (entry.epoch != marker.producer.epoch) {
    entry.batches.clear();
    entry.epoch = marker.producer.epoch;
  }
  entry.coordinator_epoch = coordinator_epoch;
  entry.last_timestamp = marker.max_timestamp;
  const std::optional<Offset> first = entry.transaction_first;
  entry.transaction_first.reset();
  if (!first || commit) return std::nullopt;
  const Offset stable = first_open().value_or(marker.last + 1);
  return AbortedTransaction{marker.producer.id, *first, marker.last, stable};
}

void ProducerState::restore(Undo undo) {
  if (undo.id == no_producer) return;
  if (undo.before) {
    entries_[undo.id] = std::move(*undo.before);
  } else {
    entries_.erase(undo.id);
  }
}

std::optional<Offset> ProducerState::first_open() const {
  std::optional<Offset> first;
  for (const auto& [id, entry] : entries_) {
    if (entry.transaction_first && (!first || *entry.transaction_first < *first)) {
      first = entry.transaction_first;
    }
  }
  return first;
}

void ProducerState::expire(Timestamp before) {
  std::erase_if(entries_, [&](const auto& item) {
    return !item.second.transaction_first && item.second.last_timestamp < before;
  });
}

void ProducerState::load(ProducerId id, Entry entry) { entries_[id] = std::move(entry); }

}  // namespace polylog
