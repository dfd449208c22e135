#include <algorithm>
#include <cstdint>

#include "base/assert.h"
#include "format/kafka/checkpoint.h"
#include "format/kafka/index.h"
#include "format/kafka/names.h"
#include "format/kafka/snapshot.h"

// The small files and the names beside the `.log`: what parses must come out the same when it is
// written and parsed again.

using namespace polylog;
using namespace polylog::format::kafka;

namespace {

void texts(std::string_view text) {
  if (const auto epochs = parse_epoch_checkpoint(text)) {
    const auto again = parse_epoch_checkpoint(format_epoch_checkpoint(*epochs));
    POLYLOG_ASSERT(again && *again == *epochs);
  }
  if (const auto offsets = parse_offset_checkpoint(text)) {
    const auto again = parse_offset_checkpoint(format_offset_checkpoint(*offsets));
    POLYLOG_ASSERT(again && *again == *offsets);
  }
  if (const auto id = parse_partition_metadata(text)) {
    POLYLOG_ASSERT(parse_partition_metadata(format_partition_metadata(*id)).value() == *id);
  }
  if (const auto properties = parse_meta_properties(text)) {
    const auto again = parse_meta_properties(format_meta_properties(*properties));
    POLYLOG_ASSERT(again && again->node_id == properties->node_id);
    POLYLOG_ASSERT(again->cluster_id == properties->cluster_id);
  }
  if (const auto epoch = parse_clean_shutdown(text)) {
    POLYLOG_ASSERT(parse_clean_shutdown(format_clean_shutdown(*epoch)).value() == *epoch);
  }
}

void names(std::string_view name) {
  if (const auto file = parse_segment_file_name(name); file && *file) {
    POLYLOG_ASSERT(segment_file_name((*file)->offset, (*file)->file, (*file)->stage) == name);
  }
  const auto directory = parse_partition_directory(name);
  if (directory && directory->stage == DirectoryStage::live) {
    POLYLOG_ASSERT(partition_directory_name(directory->id) == name);
  }
}

void binaries(ByteView bytes) {
  if (const auto producers = decode_snapshot(bytes)) {
    const auto again = decode_snapshot(encode_snapshot(*producers));
    POLYLOG_ASSERT(again && again->entries().size() == producers->entries().size());
  }
  if (bytes.size() >= OffsetIndexEntry::bytes) {
    const auto again = encode(decode_offset_index_entry(bytes));
    POLYLOG_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
  }
  if (bytes.size() >= TimeIndexEntry::bytes) {
    const auto again = encode(decode_time_index_entry(bytes));
    POLYLOG_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
  }
  if (bytes.size() >= transaction_index_entry_bytes) {
    if (const auto entry = decode_transaction_index_entry(bytes)) {
      const auto again = encode(*entry);
      POLYLOG_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes(data, size);
  texts(as_text(bytes));
  names(as_text(bytes));
  binaries(bytes);
  return 0;
}
