#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "bytes/writer.h"
#include "storage/filelog/sidecar.h"

// Records of the sidecar file (docs/formats/sidecar.md), big-endian.
namespace polylog::storage {

namespace sidecar_type {
inline constexpr std::uint8_t begin_log = 1;
inline constexpr std::uint8_t round = 2;
inline constexpr std::uint8_t recovery_point = 3;
inline constexpr std::uint8_t sealed = 4;
inline constexpr std::uint8_t files_dropped = 5;
inline constexpr std::uint8_t end_log = 6;
inline constexpr std::uint8_t config = 7;
inline constexpr std::uint8_t mark = 8;
inline constexpr std::uint8_t cut = 9;
inline constexpr std::uint8_t clean_stop = 10;
inline constexpr std::uint8_t epoch = 11;
inline constexpr std::uint8_t epoch_start = 12;
inline constexpr std::uint8_t queue = 13;
}  // namespace sidecar_type

std::vector<std::uint8_t> encode_begin_log(std::uint32_t id, const Uuid& topic,
                                           std::string_view name);
std::vector<std::uint8_t> encode_end_log(std::uint32_t id);
std::vector<std::uint8_t> encode_round(std::uint32_t id, LogPosition durable,
                                       const std::vector<RoundFile>& files);
std::vector<std::uint8_t> encode_sealed(std::uint32_t id, std::int64_t base,
                                        const FileIdentity& identity);
std::vector<std::uint8_t> encode_files_dropped(std::uint32_t id, std::int64_t below_base);
std::vector<std::uint8_t> encode_recovery_point(std::uint32_t id, const RecoveryPoint& point);
std::vector<std::uint8_t> encode_config(std::uint32_t id, const LogConfig& config);
std::vector<std::uint8_t> encode_epoch(std::uint32_t id, LeaderEpoch announced,
                                       bool epochs_lost = false);
std::vector<std::uint8_t> encode_mark(const FileIdentity& identity);
std::vector<std::uint8_t> encode_cut(std::uint32_t id, std::int64_t base, std::uint64_t bytes,
                                     LogPosition end);
std::vector<std::uint8_t> encode_epoch_start(std::uint32_t id, const EpochList::Entry& entry);
std::vector<std::uint8_t> encode_queue(const TopicPartition& id, const QueueNote& note);

// Applies records to a state, in file order.
class SidecarDecoder {
 public:
  explicit SidecarDecoder(SidecarState& state) : state_(state) {}
  // False: not a record this version knows, or its fields don't fit.
  bool apply(std::uint8_t type, ByteView payload);
  // So many facts stood here and can't be read: what they may have taken back counts no more.
  void lost(std::uint32_t facts);

 private:
  LogNote* find(std::uint32_t id);
  bool apply_round(ByteView payload);
  bool apply_recovery_point(ByteView payload);
  bool apply_config(ByteView payload);
  bool apply_begin_log(ByteView payload);
  bool apply_epoch(ByteView payload);
  bool apply_small(std::uint8_t type, ByteView payload);
  bool apply_cut(ByteView payload);
  bool apply_epoch_start(ByteView payload);
  bool apply_queue(ByteView payload);

  SidecarState& state_;
  std::unordered_map<std::uint32_t, std::string> names_;
};

}  // namespace polylog::storage
