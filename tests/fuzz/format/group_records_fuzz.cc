#include "format/kafka/group_records.h"

#include <cstdint>
#include <vector>

#include "base/assert.h"

// The first byte chooses the decoder. What reads must read the same again after it was written.

using namespace polylog;
using namespace polylog::format::kafka;

namespace {

template <typename T, typename Encode, typename Decode>
void check(const Result<T>& read, Encode encode, Decode decode) {
  if (!read) return;
  const Result<std::vector<std::uint8_t>> written = encode(*read);
  // A later version's compact texts may be longer than ours can be.
  if (!written) return;
  const Result<T> again = decode(ByteView(*written));
  POLYLOG_ASSERT(again && *again == *read);
}

// What version 1 has no room for.
OffsetCommit without_extras(OffsetCommit offset) {
  if (offset.expires) {
    offset.leader_epoch = no_epoch;
    offset.topic_id = Uuid();
  }
  return offset;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView bytes(data + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      check(decode_offset_commit_key(bytes), encode_offset_commit_key, decode_offset_commit_key);
      break;
    case 1:
      check(decode_offset_commit(bytes).map(without_extras), encode_offset_commit,
            decode_offset_commit);
      break;
    case 2:
      check(
          decode_group_metadata_key(bytes),
          [](const std::string& group) { return encode_group_metadata_key(group); },
          decode_group_metadata_key);
      break;
    case 3:
      check(decode_group_metadata(bytes), encode_group_metadata, decode_group_metadata);
      break;
    default: subscribed_topics(bytes); break;
  }
  return 0;
}
