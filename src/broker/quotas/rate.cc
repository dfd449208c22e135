#include "broker/quotas/rate.h"

#include <algorithm>
#include <cmath>

namespace polylog::broker::quotas {
namespace {

constexpr std::int64_t wait_ms_max = INT32_MAX;  // what a response can say

std::int64_t whole_ms(double ms) {
  if (!(ms > 0)) return 0;
  return ms >= static_cast<double>(wait_ms_max) ? wait_ms_max
                                                : static_cast<std::int64_t>(std::llround(ms));
}

}  // namespace

void SampledRate::forget_old(std::int64_t now_ms, const Windows& windows) {
  std::erase_if(samples_, [&](const Sample& sample) {
    return now_ms - sample.start_ms >= windows.span_ms();
  });
}

void SampledRate::record(double amount, std::int64_t now_ms, const Windows& windows) {
  forget_old(now_ms, windows);
  if (samples_.empty() || now_ms - samples_.back().start_ms >= windows.window_ms) {
    samples_.push_back({now_ms, 0});
  }
  samples_.back().sum += amount;
}

std::int64_t SampledRate::averaged_ms(std::int64_t now_ms, const Windows& windows) const {
  std::int64_t elapsed_ms = samples_.empty() ? 0 : now_ms - samples_.front().start_ms;
  const std::int64_t full = elapsed_ms / windows.window_ms;
  const std::int64_t full_min = windows.count - 1;
  if (full < full_min) elapsed_ms += (full_min - full) * windows.window_ms;
  return std::max<std::int64_t>(elapsed_ms, 1);
}

double SampledRate::per_second(std::int64_t now_ms, const Windows& windows) {
  forget_old(now_ms, windows);
  double sum = 0;
  for (const Sample& sample : samples_) sum += sample.sum;
  return sum * 1000 / static_cast<double>(averaged_ms(now_ms, windows));
}

std::int64_t SampledRate::wait_ms(double limit, std::int64_t now_ms, const Windows& windows) {
  const double over = per_second(now_ms, windows) - limit;
  if (over <= 0) return 0;
  return whole_ms(over / limit * static_cast<double>(averaged_ms(now_ms, windows)));
}

bool SampledRate::empty(std::int64_t now_ms, const Windows& windows) {
  forget_old(now_ms, windows);
  return std::none_of(samples_.begin(), samples_.end(),
                      [](const Sample& sample) { return sample.sum > 0; });
}

void TokenBucket::refill(double per_second, std::int64_t now_ms, const Windows& windows) {
  const double full = static_cast<double>(windows.span_ms()) / 1000 * per_second;
  const double back = static_cast<double>(now_ms - updated_ms_) / 1000 * per_second;
  tokens_ = fresh_ ? full : std::min(full, tokens_ + back);
  fresh_ = false;
  updated_ms_ = now_ms;
}

void TokenBucket::take(double tokens, double per_second, std::int64_t now_ms,
                       const Windows& windows) {
  refill(per_second, now_ms, windows);
  tokens_ -= tokens;
}

std::int64_t TokenBucket::wait_ms(double per_second, std::int64_t now_ms, const Windows& windows) {
  refill(per_second, now_ms, windows);
  return tokens_ >= 0 ? 0 : std::max<std::int64_t>(whole_ms(-tokens_ / per_second * 1000), 1);
}

}  // namespace polylog::broker::quotas
