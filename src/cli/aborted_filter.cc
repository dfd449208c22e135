#include "cli/aborted_filter.h"

#include <algorithm>

#include "format/kafka/records.h"

namespace polylog::cli {

AbortedFilter::AbortedFilter(std::vector<Aborted> aborted) : aborted_(std::move(aborted)) {
  std::sort(aborted_.begin(), aborted_.end(),
            [](const Aborted& a, const Aborted& b) { return a.first_offset > b.first_offset; });
}

bool AbortedFilter::hides(const format::kafka::BatchHeader& header, ByteView batch) {
  while (!aborted_.empty() && aborted_.back().first_offset <= header.last_offset().value()) {
    aborting_.insert(aborted_.back().producer_id);
    aborted_.pop_back();
  }
  if (header.control()) {
    const auto control = format::kafka::parse_control(batch);
    if (control && control->type == format::kafka::ControlType::abort) {
      aborting_.erase(header.producer_id.value());
    }
    return true;
  }
  return header.transactional() && aborting_.contains(header.producer_id.value());
}

}  // namespace polylog::cli
