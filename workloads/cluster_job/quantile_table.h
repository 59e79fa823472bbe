// SPDX-License-Identifier: Apache-2.0
// Knows a distribution of numbers as a table of quantiles, with the mean of each piece between two.
#pragma once

#include <vector>

namespace orrery {

// The value to six significant digits. Tables are rounded, so that what a file says is what was
// computed, and what was computed is the same on machines whose logarithms differ in the last bit.
double six_digits(double value);

struct WeightedValue {
  double value = 0, weight = 1;
};

// Between two edges the quantile is two straight lines that meet at the piece's mean, in the one
// place where the piece has that mean: ((upper - mean) / (upper - lower) of its way). Edges and
// means are exact then, however heavy the tail, and a draw takes no logarithm.
class QuantileTable {
 public:
  QuantileTable() = default;  // empty: of nothing
  // n + 1 edges that do not fall; of each piece between two its share (0 or more, of their sum) and
  // its mean, within it. All else is a mistake of ours (CHECK).
  QuantileTable(std::vector<double> edges, std::vector<double> shares, std::vector<double> means);
  static QuantileTable constant(double value) { return {{value, value}, {1}, {value}}; }

  bool empty() const { return shares_.empty(); }
  const std::vector<double>& edges() const { return edges_; }
  const std::vector<double>& shares() const { return shares_; }  // to six digits, of their sum
  const std::vector<double>& means() const { return means_; }

  double at(double share) const;           // the value that `share` (0 to 1) of all do not exceed
  double share_up_to(double value) const;  // the reverse: of all, those that are at most that
  double mean() const;
  double least() const { return edges_.front(); }
  double largest() const { return edges_.back(); }

  friend bool operator==(const QuantileTable&, const QuantileTable&) = default;

 private:
  // Of a piece's width, up to its mean.
  double knee(std::size_t piece) const;

  std::vector<double> edges_, shares_, means_;
  std::vector<double> below_;  // of all, below each edge
};

// Of samples, at least one, with weights above 0: pieces of a twentieth of them, narrower towards
// both ends as long as there are enough for it; of few samples fewer. Its mean and largest value
// are theirs, its quantiles theirs at the edges.
QuantileTable quantiles_of(std::vector<WeightedValue> samples);

}  // namespace orrery
