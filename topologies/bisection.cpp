// SPDX-License-Identifier: Apache-2.0
// Computes a least cut from equal subtrees without visiting them.
#include "topologies/bisection.h"

#include <algorithm>
#include <array>

#include "sim/base/errors/check.h"
#include "sim/base/units/units.h"

namespace orrery {
namespace {

// Costs inside a subtree when its top node lies on the side of the first (0) or of the last (1).
using Sides = std::array<double, 2>;

class Tree {
 public:
  Tree(double nic, const std::vector<CutLevel>& levels) : nic_(nic), levels_(levels) {}

  // Capacity that frees a subtree of `size` accelerators, all on one side, from what is above.
  double separate(std::size_t level, std::int64_t size) const {
    if (size == 0) return 0;
    if (level == 0) return nic_;
    return std::min(levels_[level - 1].up, below(level, size));
  }

  // Of the node of `level` over `size` accelerators of which `first` are on the first side.
  Sides inside(std::size_t level, std::int64_t size, std::int64_t first) const {
    if (level == 0) return {0, 0};
    const std::int64_t child = child_size(level);
    const std::int64_t left = first / child, straddles = first % child;
    Sides cost = {0, 0};
    cost[1] += static_cast<double>(left) * separate(level - 1, child);
    std::int64_t rest = size - left * child;
    if (straddles != 0) {
      const std::int64_t own = std::min(child, rest);
      const Sides split = inside(level - 1, own, straddles);
      const double links = level == 1 ? nic_ : levels_[level - 2].up;
      cost[0] += std::min(split[0], split[1] + links);
      cost[1] += std::min(split[1], split[0] + links);
      rest -= own;
    }
    cost[0] += static_cast<double>(rest / child) * separate(level - 1, child) +
               separate(level - 1, rest % child);
    return cost;
  }

 private:
  std::int64_t child_size(std::size_t level) const {
    return level == 1 ? 1 : levels_[level - 2].reach;
  }
  double below(std::size_t level, std::int64_t size) const {
    const std::int64_t child = child_size(level);
    return static_cast<double>(size / child) * separate(level - 1, child) +
           separate(level - 1, size % child);
  }

  double nic_;
  const std::vector<CutLevel>& levels_;
};

}  // namespace

double least_cut(double nic, const std::vector<CutLevel>& levels, std::int64_t accelerators,
                 std::int64_t first, double pairwise) {
  CHECK_THAT(first >= 0 && first <= accelerators, "halves of what is there");
  if (first == 0 || first == accelerators) return 0;
  const Tree tree(nic, levels);
  const std::size_t top = levels.size();
  if (!(pairwise > 0)) {
    // The root is one more level without links of its own.
    std::vector<CutLevel> rooted = levels;
    rooted.push_back({.reach = accelerators});
    const Sides cost = Tree(nic, rooted).inside(rooted.size(), accelerators, first);
    return std::min(cost[0], cost[1]);
  }
  CHECK_THAT(top > 0, "pairs of what");
  const std::int64_t size = levels.back().reach;
  const std::int64_t left = first / size, straddles = first % size;
  std::int64_t rest = accelerators - left * size;
  Sides split = {0, 0};
  const bool has_split = straddles != 0;
  if (has_split) {
    split = tree.inside(top, std::min(size, rest), straddles);
    rest -= std::min(size, rest);
  }
  const std::int64_t right = (rest + size - 1) / size;
  // Moving the tops of whole groups to the other side, one costs as the next while the pairs cut
  // fall quadratically: all of a side move or none.
  const double move_left = static_cast<double>(left) * tree.separate(top, size);
  const double move_right =
      static_cast<double>(rest / size) * tree.separate(top, size) + tree.separate(top, rest % size);
  double least = infinite;
  for (const int side : {0, 1}) {
    for (const bool flip_left : {false, true}) {
      for (const bool flip_right : {false, true}) {
        std::int64_t on_first = (flip_left ? 0 : left) + (flip_right ? right : 0);
        std::int64_t on_last = (flip_left ? left : 0) + (flip_right ? 0 : right);
        if (has_split) ++(side == 0 ? on_first : on_last);
        const double cost = (flip_left ? move_left : 0) + (flip_right ? move_right : 0) +
                            (has_split ? split[static_cast<std::size_t>(side)] : 0) +
                            static_cast<double>(on_first) * static_cast<double>(on_last) * pairwise;
        least = std::min(least, cost);
      }
    }
  }
  return least;
}

}  // namespace orrery
