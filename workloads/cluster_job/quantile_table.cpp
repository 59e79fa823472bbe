// SPDX-License-Identifier: Apache-2.0
// Makes tables of quantiles of samples, and looks values up in them.
#include "workloads/cluster_job/quantile_table.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// Shares at which pieces of so many samples end, but for 1: every twentieth, and halves of what is
// left of the ends down to `least_of_piece` samples. The middle is one of them.
std::vector<double> piece_ends(std::size_t samples) {
  constexpr std::size_t least_of_piece = 8, most_steps = 10;
  constexpr double shortest_front = 0.01;
  if (samples < 2) return {};
  const std::size_t steps = 2 * std::clamp(samples / least_of_piece, std::size_t{1}, most_steps);
  const double step = 1 / static_cast<double>(steps), n = static_cast<double>(samples);
  std::vector<double> ends;
  for (double front = step / 2; front >= shortest_front && front * n >= least_of_piece; front /= 2)
    ends.insert(ends.begin(), front);
  for (std::size_t i = 1; i < steps; ++i) ends.push_back(static_cast<double>(i) * step);
  for (double back = step / 2; back * n >= least_of_piece; back /= 2) ends.push_back(1 - back);
  return ends;
}

}  // namespace

double six_digits(double value) {
  constexpr int digits_behind_the_first = 5;
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value,
                                 std::chars_format::scientific, digits_behind_the_first);
  double rounded = value;
  std::from_chars(std::begin(text), end.ptr, rounded);
  return rounded;
}

QuantileTable::QuantileTable(std::vector<double> edges, std::vector<double> shares,
                             std::vector<double> means)
    : edges_(std::move(edges)), shares_(std::move(shares)), means_(std::move(means)) {
  CHECK_THAT(
      !shares_.empty() && edges_.size() == shares_.size() + 1 && means_.size() == shares_.size(),
      "a table has a share and a mean between two edges");
  for (std::vector<double>* list : {&edges_, &shares_, &means_})
    for (double& value : *list) value = six_digits(value);
  const double sum = std::accumulate(shares_.begin(), shares_.end(), 0.0);
  CHECK_THAT(sum > 0, "a table has pieces");
  double below = 0;
  below_.push_back(0);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    CHECK_THAT(shares_[i] >= 0 && edges_[i] <= means_[i] && means_[i] <= edges_[i + 1],
               "the mean of a piece lies in it");
    below += shares_[i];
    below_.push_back(below / sum);
  }
  below_.back() = 1;
}

double QuantileTable::knee(std::size_t piece) const {
  const double width = edges_[piece + 1] - edges_[piece];
  return width > 0 ? (edges_[piece + 1] - means_[piece]) / width : 1;
}

double QuantileTable::at(double share) const {
  const auto above = std::upper_bound(below_.begin() + 1, below_.end() - 1, share);
  const auto piece = static_cast<std::size_t>(above - below_.begin()) - 1;
  const double all = below_[piece + 1] - below_[piece];
  if (all <= 0) return edges_[piece];
  const double way = std::min((share - below_[piece]) / all, 1.0), turn = knee(piece);
  if (way < turn) return edges_[piece] + (means_[piece] - edges_[piece]) * way / turn;
  if (turn >= 1) return means_[piece];
  return means_[piece] + (edges_[piece + 1] - means_[piece]) * (way - turn) / (1 - turn);
}

double QuantileTable::share_up_to(double value) const {
  if (value < edges_.front()) return 0;
  if (value >= edges_.back()) return 1;
  const auto above = std::upper_bound(edges_.begin(), edges_.end(), value);
  const auto piece = static_cast<std::size_t>(above - edges_.begin()) - 1;
  const double low = edges_[piece], mean = means_[piece], high = edges_[piece + 1],
               turn = knee(piece);
  const double way = value < mean  ? turn * (value - low) / (mean - low)
                     : high > mean ? turn + (1 - turn) * (value - mean) / (high - mean)
                                   : 1;
  return below_[piece] + way * (below_[piece + 1] - below_[piece]);
}

double QuantileTable::mean() const {
  double sum = 0;
  for (std::size_t i = 0; i < means_.size(); ++i) sum += (below_[i + 1] - below_[i]) * means_[i];
  return sum;
}

QuantileTable quantiles_of(std::vector<WeightedValue> samples) {
  CHECK_THAT(!samples.empty(), "a table is of samples");
  std::sort(samples.begin(), samples.end(), [](const WeightedValue& a, const WeightedValue& b) {
    return a.value != b.value ? a.value < b.value : a.weight < b.weight;
  });
  double all = 0;
  for (const WeightedValue& s : samples) all += s.weight;
  std::vector<double> edges, shares, means, ends = piece_ends(samples.size());
  ends.push_back(2);  // the last one ends with the samples
  double passed = 0;
  for (std::size_t i = 0, end = 0; i < samples.size(); ++end) {
    double share = 0, sum = 0;
    const std::size_t first = i;
    for (; i < samples.size() && passed < ends[end] * all; ++i) {
      passed += samples[i].weight;
      share += samples[i].weight;
      sum += samples[i].weight * samples[i].value;
    }
    if (i == first) continue;  // heavier samples may pass several ends
    const double high = i < samples.size() ? samples[i].value : samples.back().value;
    edges.push_back(samples[first].value);
    shares.push_back(share / all);
    means.push_back(std::clamp(sum / share, samples[first].value, high));
  }
  edges.push_back(samples.back().value);
  return {std::move(edges), std::move(shares), std::move(means)};
}

}  // namespace orrery
