#include "cli/aborted_filter.h"

#include <gtest/gtest.h>

#include "format/kafka/records.h"

namespace polylog::cli {
namespace {

using format::kafka::BatchBuilder;
using format::kafka::BatchOptions;

std::vector<std::uint8_t> data(std::int64_t producer, std::int64_t offset, bool transactional) {
  BatchOptions options;
  options.base_offset = Offset(offset);
  options.producer_id = ProducerId(producer);
  options.producer_epoch = 0;
  options.base_sequence = 0;
  options.transactional = transactional;
  BatchBuilder builder(options);
  Record record;
  record.value = as_bytes("v");
  EXPECT_TRUE(builder.add(record));
  return builder.finish().value();
}

std::vector<std::uint8_t> marker(std::int64_t producer, std::int64_t offset, bool commit) {
  format::kafka::Marker marker;
  marker.commit = commit;
  marker.offset = Offset(offset);
  marker.producer_id = ProducerId(producer);
  marker.producer_epoch = 0;
  marker.timestamp = Timestamp(0);
  return format::kafka::build_marker(marker);
}

bool hides(AbortedFilter& filter, const std::vector<std::uint8_t>& batch) {
  return filter.hides(format::kafka::decode_header(batch), batch);
}

TEST(AbortedFilter, hides_a_producers_data_from_its_abort_only) {
  AbortedFilter filter({{7, 10}, {7, 30}});
  EXPECT_FALSE(hides(filter, data(7, 5, true)));  // an earlier transaction, committed
  EXPECT_TRUE(hides(filter, data(7, 10, true)));
  EXPECT_FALSE(hides(filter, data(8, 11, true)));   // somebody else's
  EXPECT_FALSE(hides(filter, data(7, 12, false)));  // not in the transaction
  EXPECT_TRUE(hides(filter, marker(8, 13, false)));
  EXPECT_TRUE(hides(filter, data(7, 14, true)));
  EXPECT_TRUE(hides(filter, marker(7, 15, false)));
  EXPECT_FALSE(hides(filter, data(7, 20, true)));  // the next transaction, committed
  EXPECT_TRUE(hides(filter, marker(7, 21, true)));
  EXPECT_TRUE(hides(filter, data(7, 30, true)));
}

}  // namespace
}  // namespace polylog::cli
