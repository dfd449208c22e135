#pragma once

#include "broker/partition.h"
#include "server/kafka/errors.h"

namespace polylog::server::kafka {

// Whether a client acts under the leader epoch of now (Kafka wire protocol, "Epoch checks"); -1
// is not checked.
inline ErrorCode check_epoch(const broker::Partition& partition, std::int32_t client_epoch) {
  const std::int32_t current = partition.epoch().value();
  if (client_epoch < 0 || client_epoch == current) return ErrorCode::none;
  return client_epoch < current ? ErrorCode::fenced_leader_epoch
                                : ErrorCode::unknown_leader_epoch;
}

// Where an epoch ends, in offsets of the partition; (-1, -1) when that is not known.
struct EpochOffset {
  LeaderEpoch epoch = no_epoch;
  Offset end{-1};
};
inline EpochOffset end_of_epoch(const broker::Partition& partition, LeaderEpoch epoch) {
  const EpochEnd end = partition.end_of_epoch(epoch);
  if (end.epoch == no_epoch) return {};
  return {end.epoch, Offset(end.end.value())};
}

}  // namespace polylog::server::kafka
