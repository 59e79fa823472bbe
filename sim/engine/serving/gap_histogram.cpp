// SPDX-License-Identifier: Apache-2.0
// Bins times by their leading eleven bits.
#include "sim/engine/serving/gap_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace orrery {
namespace {

constexpr int digits = 10;  // bits behind the leading one

std::size_t bin_of(std::int64_t ps) {
  const auto value = static_cast<std::uint64_t>(ps);
  const auto width = static_cast<int>(std::bit_width(value));
  if (width <= digits + 1) return static_cast<std::size_t>(value);
  const int shift = width - digits - 1;
  return (static_cast<std::size_t>(shift) << digits) + static_cast<std::size_t>(value >> shift);
}

// The first value of a bin.
std::int64_t start_of(std::size_t bin) {
  if (bin < (std::size_t{2} << digits)) return static_cast<std::int64_t>(bin);
  const std::size_t shift = (bin >> digits) - 1;
  return static_cast<std::int64_t>(
      ((bin & ((std::size_t{1} << digits) - 1)) | (std::size_t{1} << digits)) << shift);
}

double middle_of(std::size_t bin) {
  return 0.5 * static_cast<double>(start_of(bin) + start_of(bin + 1) - 1);
}

}  // namespace

void GapHistogram::add_series(Ticks gap, Ticks slope, std::int64_t steps, std::int64_t each) {
  if (steps <= 0 || each <= 0) return;
  const std::int64_t last = (gap + slope * (steps - 1)).ps;
  const std::size_t last_bin = bin_of(last);
  if (last_bin >= bins_.size()) bins_.resize(last_bin + 1);
  count_ += steps * each;
  sum_ += static_cast<__int128>(each) * (static_cast<__int128>(steps) * gap.ps +
                                         static_cast<__int128>(slope.ps) * steps * (steps - 1) / 2);
  largest_ = max(largest_, Ticks{last});
  for (std::int64_t done = 0; done < steps;) {
    const std::int64_t value = gap.ps + slope.ps * done;
    const std::size_t bin = bin_of(value);
    // As many as stay below the next bin.
    std::int64_t same = steps - done;
    if (bin < last_bin) same = std::min(same, (start_of(bin + 1) - 1 - value) / slope.ps + 1);
    bins_[bin] += same * each;
    done += same;
  }
}

GapHistogram& GapHistogram::operator+=(const GapHistogram& other) {
  bins_.resize(std::max(bins_.size(), other.bins_.size()));
  for (std::size_t i = 0; i < other.bins_.size(); ++i) bins_[i] += other.bins_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  largest_ = max(largest_, other.largest_);
  return *this;
}

Seconds GapHistogram::mean() const {
  if (count_ == 0) return {};
  return Seconds(static_cast<double>(sum_) / static_cast<double>(count_) * 1e-12);
}

Seconds GapHistogram::percentile(double percent) const {
  if (count_ == 0) return {};
  const auto rank =
      static_cast<std::int64_t>(std::ceil(percent / 100 * static_cast<double>(count_)));
  std::int64_t seen = 0;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    seen += bins_[bin];
    if (seen >= std::max<std::int64_t>(rank, 1))
      return Seconds(std::min(middle_of(bin), static_cast<double>(largest_.ps)) * 1e-12);
  }
  return to_seconds(largest_);
}

double GapHistogram::share_within(Seconds at_most) const {
  if (count_ == 0) return 1;
  std::int64_t within = 0;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin)
    if (middle_of(bin) * 1e-12 <= at_most.si()) within += bins_[bin];
  return static_cast<double>(within) / static_cast<double>(count_);
}

}  // namespace orrery
