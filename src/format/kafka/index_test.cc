#include "format/kafka/index.h"

#include <gtest/gtest.h>

#include "bytes/endian.h"
#include "format/kafka/golden_vectors.h"

namespace polylog::format::kafka {
namespace {

using Bytes = std::vector<std::uint8_t>;
using golden::from_hex;

template <std::size_t N>
Bytes vector_of(const std::array<std::uint8_t, N>& bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST(OffsetIndex, entry_is_the_published_vector) {
  const Bytes bytes = from_hex("0000002c 00000000");
  EXPECT_EQ(vector_of(encode(OffsetIndexEntry{44, 0})), bytes);
  EXPECT_EQ(decode_offset_index_entry(bytes), (OffsetIndexEntry{44, 0}));
  EXPECT_EQ(decode_offset_index_entry(from_hex("7fffffff 00010203")),
            (OffsetIndexEntry{2147483647, 0x10203}));
}

TEST(TimeIndex, entry_is_the_published_vector) {
  const Bytes bytes = from_hex("0000018bcfe56805 0000002c");
  EXPECT_EQ(vector_of(encode(TimeIndexEntry{golden::t0 + 5, 44})), bytes);
  EXPECT_EQ(decode_time_index_entry(bytes), (TimeIndexEntry{golden::t0 + 5, 44}));
}

TEST(TransactionIndex, entry_is_the_published_vector) {
  const Bytes bytes =
      from_hex("00000000000000000fa0000000000000002a000000000000002d000000000000002e");
  const AbortedTransaction entry{ProducerId(4000), Offset(42), Offset(45), Offset(46)};
  EXPECT_EQ(vector_of(encode(entry)), bytes);
  EXPECT_EQ(decode_transaction_index_entry(bytes).value(), entry);
}

TEST(TransactionIndex, other_versions_and_impossible_numbers_are_refused) {
  const AbortedTransaction entry{ProducerId(4000), Offset(42), Offset(45), Offset(46)};
  Bytes bytes = vector_of(encode(entry));
  bytes[1] = 1;
  EXPECT_EQ(decode_transaction_index_entry(bytes).error().code, Errc::unsupported);
  for (const std::size_t field : {1U, 2U, 3U, 4U}) {
    Bytes negative = vector_of(encode(entry));
    store_big<std::int64_t>(negative.data() + transaction_index_fields[field].at, -1);
    EXPECT_EQ(decode_transaction_index_entry(negative).error().code, Errc::corrupt) << field;
  }
  EXPECT_EQ(decode_transaction_index_entry(
                encode(AbortedTransaction{ProducerId(1), Offset(9), Offset(8), Offset(9)}))
                .error()
                .code,
            Errc::corrupt);
}

}  // namespace
}  // namespace polylog::format::kafka
