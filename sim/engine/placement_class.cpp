// SPDX-License-Identifier: Apache-2.0
// Sorts a placement into its tree of counts, run by run of equal hosts, and lays such a tree out.
#include "sim/engine/placement_class.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <limits>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

using Numbers = boost::container::small_vector<std::int32_t, 128>;

// Neighbouring units of one level with equal trees; the trees are numbers [tree, tree + length).
struct UnitRun {
  std::int64_t first = 0, count = 1;
  std::int64_t gpus = 0;  // of one unit
  std::uint32_t tree = 0, length = 0;
  bool packed = true;  // a unit's parts are full but for the last, which is packed
};
using UnitRuns = boost::container::small_vector<UnitRun, 8>;

class TreeOfCounts {
 public:
  explicit TreeOfCounts(const Grants& grants);
  // Puts units together, `ratio` in a group; `full`: accelerators of a unit.
  void group(std::int64_t ratio, std::int64_t full);
  PlacementClass result() const;

 private:
  std::uint32_t end() const { return static_cast<std::uint32_t>(numbers_.size()); }
  bool same_tree(const UnitRun& a, const UnitRun& b) const;
  bool larger(const UnitRun& a, const UnitRun& b) const;
  void add_part(const UnitRun& unit, std::int64_t count);
  UnitRun close(std::int64_t full);

  Numbers numbers_;
  UnitRuns runs_;   // of the level at hand, in the order of the cluster
  UnitRuns parts_;  // of the group at hand: units of one kind that are not all next to each other
};

TreeOfCounts::TreeOfCounts(const Grants& grants) {
  for (const HostGrant& g : grants) {
    runs_.push_back(
        {.first = g.host, .count = g.hosts, .gpus = g.gpus, .tree = end(), .length = 1});
    numbers_.push_back(g.gpus);
  }
  const auto before = [](const UnitRun& a, const UnitRun& b) { return a.first < b.first; };
  if (!std::is_sorted(runs_.begin(), runs_.end(), before))
    std::sort(runs_.begin(), runs_.end(), before);
  for (std::size_t i = 1; i < runs_.size(); ++i)
    CHECK_THAT(runs_[i - 1].first + runs_[i - 1].count <= runs_[i].first, "a host in two grants");
}

bool TreeOfCounts::same_tree(const UnitRun& a, const UnitRun& b) const {
  return a.gpus == b.gpus && a.length == b.length &&
         std::equal(numbers_.begin() + a.tree, numbers_.begin() + a.tree + a.length,
                    numbers_.begin() + b.tree);
}

// Of as many accelerators the one in fewer kinds of parts goes first.
bool TreeOfCounts::larger(const UnitRun& a, const UnitRun& b) const {
  if (a.gpus != b.gpus) return a.gpus > b.gpus;
  return std::lexicographical_compare(
      numbers_.begin() + a.tree, numbers_.begin() + a.tree + a.length, numbers_.begin() + b.tree,
      numbers_.begin() + b.tree + b.length);
}

void TreeOfCounts::add_part(const UnitRun& unit, std::int64_t count) {
  if (!parts_.empty() && same_tree(parts_.back(), unit)) {
    parts_.back().count += count;
    return;
  }
  parts_.push_back(unit);
  parts_.back().count = count;
}

// The group of the parts at hand as one unit.
UnitRun TreeOfCounts::close(std::int64_t full) {
  if (parts_.size() > 1) {
    std::sort(parts_.begin(), parts_.end(),
              [&](const UnitRun& a, const UnitRun& b) { return larger(a, b); });
    std::size_t kinds = 0;
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      if (same_tree(parts_[kinds], parts_[i]))
        parts_[kinds].count += parts_[i].count;
      else
        parts_[++kinds] = parts_[i];
    }
    parts_.resize(kinds + 1);
  }
  UnitRun group{.tree = end()};
  numbers_.push_back(static_cast<std::int32_t>(parts_.size()));
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const UnitRun& part = parts_[i];
    group.gpus += part.count * part.gpus;
    const bool last = i + 1 == parts_.size() && part.count == 1 && part.packed;
    group.packed &= part.gpus == full || last;
    numbers_.push_back(static_cast<std::int32_t>(part.count));
    for (std::uint32_t j = 0; j < part.length; ++j) {
      const std::int32_t number = numbers_[part.tree + j];
      numbers_.push_back(number);
    }
  }
  group.length = end() - group.tree;
  parts_.clear();
  return group;
}

void TreeOfCounts::group(std::int64_t ratio, std::int64_t full) {
  UnitRuns groups;
  std::int64_t open = -1;  // the group that parts_ belong to
  const auto finish = [&](std::int64_t first, std::int64_t count) {
    groups.push_back(close(full));
    groups.back().first = first;
    groups.back().count = count;
  };
  for (const UnitRun& run : runs_) {
    std::int64_t at = run.first;
    const std::int64_t end = run.first + run.count;
    while (at < end) {
      const std::int64_t here = at / ratio;
      if (here != open && !parts_.empty()) finish(open, 1);
      open = here;
      const std::int64_t whole = at % ratio == 0 ? (end - at) / ratio : 0;
      const std::int64_t next = whole > 0 ? at + whole * ratio : std::min(end, (here + 1) * ratio);
      add_part(run, whole > 0 ? ratio : next - at);
      if (whole > 0) finish(here, whole);
      at = next;
    }
  }
  if (!parts_.empty()) finish(open, 1);
  runs_ = std::move(groups);
}

PlacementClass TreeOfCounts::result() const {
  if (runs_.empty()) return {.key = {0}};
  const UnitRun& site = runs_.front();
  return {.key = {numbers_.begin() + site.tree, numbers_.begin() + site.tree + site.length},
          .gpus = site.gpus,
          .contiguous = site.packed};
}

// Lays trees out group by group, largest first.
class TreeLaying {
 public:
  TreeLaying(const PlacementClass& placed, const SlotShape& shape)
      : key_(placed.key), shape_(shape) {
    lay(0, shape.levels.size() + 1, 0);
  }
  std::vector<RankBlock> take() { return std::move(blocks_); }

 private:
  // The tree at `at` of the key, of a unit `height` levels above hosts, from a host on. Returns
  // where the next tree is.
  std::size_t lay(std::size_t at, std::size_t height, std::int64_t host) {
    if (height == 0) {
      add(host * shape_.gpus_per_host, key_[at]);
      return at + 1;
    }
    const std::int64_t reach = height == 1 ? 1 : shape_.levels[height - 2].reach;  // of a part
    const std::int32_t kinds = key_[at++];
    for (std::int32_t kind = 0; kind < kinds; ++kind) {
      const std::int32_t count = key_[at++];
      std::size_t next = at;
      for (std::int32_t i = 0; i < count; ++i, host += reach) next = lay(at, height - 1, host);
      at = next;
    }
    return at;
  }
  void add(std::int64_t accelerator, std::int64_t ranks) {
    if (!blocks_.empty() && blocks_.back().accelerator + blocks_.back().ranks == accelerator)
      blocks_.back().ranks += ranks;
    else
      blocks_.push_back({.accelerator = accelerator, .ranks = ranks});
  }

  const std::vector<std::int32_t>& key_;
  const SlotShape& shape_;
  std::vector<RankBlock> blocks_;
};

}  // namespace

PlacementClass placement_class(const Grants& grants, const SlotShape& shape) {
  TreeOfCounts tree(grants);
  std::int64_t below = 1;
  for (const SlotLevel& level : shape.levels) {
    tree.group(level.reach / below, below * shape.gpus_per_host);
    below = level.reach;
  }
  tree.group(std::numeric_limits<std::int64_t>::max(), below * shape.gpus_per_host);
  return tree.result();
}

ScatteredRanks canonical_ranks(const PlacementClass& placed, const SlotShape& shape) {
  if (placed.contiguous) return {};
  return {.blocks = TreeLaying(placed, shape).take(), .cluster = shape.gpus()};
}

}  // namespace orrery
