#include "cli/convert_progress.h"

#include <gtest/gtest.h>

namespace polylog::cli {
namespace {

TEST(ConvertProgress, says_how_far_it_is_and_how_long_it_will_take) {
  convert::Progress progress;
  progress.offsets_done = 600;
  progress.offsets_total = 1000;
  progress.bytes_done = 20 << 20;
  progress.partitions_done = 1;
  progress.partitions_total = 3;
  const std::string text = progress_text(progress, 4, 200);
  EXPECT_NE(text.find("copying: 1 of 3 partitions, 60 % of 1000 records"), text.npos) << text;
  EXPECT_NE(text.find("/s, about 4 s left"), text.npos) << text;
}

TEST(ConvertProgress, has_no_estimate_before_it_has_done_anything) {
  convert::Progress progress;
  progress.phase = convert::Progress::Phase::comparing;
  progress.offsets_total = 1000;
  progress.offsets_done = 200;
  progress.partitions_total = 1;
  const std::string text = progress_text(progress, 10, 200);
  EXPECT_EQ(text, "comparing: 0 of 1 partition, 20 % of 1000 records");
}

TEST(ConvertProgress, an_empty_directory_is_done_at_once) {
  EXPECT_NE(progress_text({}, 0, 0).find("100 %"), std::string::npos);
}

TEST(ConvertSummary, names_gaps_and_committed_offsets_only_where_there_are_any) {
  convert::Summary summary;
  summary.topics = 1;
  summary.partitions = 2;
  summary.records = 3;
  const std::string plain = summary_text(summary, "d", "kafka", 1);
  EXPECT_NE(plain.find("1 topic, 2 partitions, 3 records in the kafka layout"), plain.npos)
      << plain;
  summary.offsets_without_record = 4;
  summary.group_offsets = 5;
  const std::string whole = summary_text(summary, "d", "kafka", 1);
  EXPECT_NE(whole.find("4 offsets without one, 5 committed offsets"), whole.npos) << whole;
}

}  // namespace
}  // namespace polylog::cli
