#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "bytes/slice.h"

// Which records damage at one byte of a store's file may cost, by the layout's own units.
namespace polylog::crash {

struct DamagedUnit {
  TopicPartition id;
  OffsetRange offsets;
};

// Each takes a whole file as it was before the damage, its path, and the damaged byte. Nothing: no
// record suffers.
//
// Kafka: the batch. Where its header is what is damaged, and with it what tells where the next one
// begins, all that follow in the file up to the next 64 KiB block, whose first frame the sidecar
// knows. So in the segment layout, frame by frame.
std::optional<DamagedUnit> unit_of_kafka_log(ByteView file, const std::string& path,
                                             std::uint64_t position);
std::optional<DamagedUnit> unit_of_segment(ByteView file, const std::string& path,
                                           std::uint64_t position);
// A commit log file: the record.
std::optional<DamagedUnit> unit_of_commit_log(ByteView file, const std::string& path,
                                              std::uint64_t position);

}  // namespace polylog::crash
