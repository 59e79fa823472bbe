// SPDX-License-Identifier: Apache-2.0
// Adds up marks of hosts, leaf groups and pods, level by level.
#include "sim/engine/class_mark.h"

#include <algorithm>
#include <array>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr std::size_t most_levels = 8;

// The finaliser of splitmix64 (Steele et al., OOPSLA 2014): a bijection that spreads every bit.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The two halves never meet: both are computed at once.
ClassMark mixed(const ClassMark& sum, std::uint64_t level) {
  return {mix(sum.a + level), mix((sum.b ^ 0x2545f4914f6cdd1du) - level)};
}

void add(ClassMark& to, const ClassMark& part, std::uint64_t count) {
  to.a += part.a * count;
  to.b += part.b * count;
}

}  // namespace

ClassMarker::ClassMarker(const SlotShape& shape) {
  CHECK_THAT(shape.levels.size() < most_levels, "levels of switches above hosts");
  std::int32_t below = 1;
  for (const SlotLevel& level : shape.levels) {
    const auto units = static_cast<std::uint32_t>(level.reach / below);
    levels_.push_back({.units = units, .inverse = UINT64_MAX / units + 1});
    below = level.reach;
  }
}

// The open group of each level, in the order of the cluster.
class ClassMarker::Sum {
 public:
  explicit Sum(const std::vector<Level>& levels) : levels_(levels) {}

  // `count` neighbouring units of one mark, each behind all that were added.
  void add_units(std::size_t level, std::uint32_t first, std::uint32_t count,
                 const ClassMark& unit) {
    if (level == levels_.size()) {
      add(site_, unit, count);
      return;
    }
    const Level& l = levels_[level];
    for (std::uint32_t at = first, end = first + count; at < end;) {
      const std::uint32_t group = l.group(at);
      Open& open = open_[level];
      if (open.some && open.group != group) close(level);
      const std::uint32_t begin = group * l.units;
      if (at == begin && end - at >= l.units) {
        const std::uint32_t whole = l.group(end - at);
        ClassMark sum;
        add(sum, unit, l.units);
        add_units(level + 1, group, whole, mixed(sum, level));
        at += whole * l.units;
        continue;
      }
      const std::uint32_t here = std::min(end, begin + l.units) - at;
      open.some = true;
      open.group = group;
      add(open.sum, unit, here);
      at += here;
    }
  }
  ClassMark total() {
    for (std::size_t level = 0; level < levels_.size(); ++level)
      if (open_[level].some) close(level);
    return mixed(site_, most_levels);
  }

 private:
  struct Open {
    ClassMark sum;
    std::uint32_t group = 0;
    bool some = false;
  };
  void close(std::size_t level) {
    const Open open = open_[level];
    open_[level] = {};
    add_units(level + 1, open.group, 1, mixed(open.sum, level));
  }

  const std::vector<Level>& levels_;
  std::array<Open, most_levels> open_;
  ClassMark site_;
};

ClassMark ClassMarker::mark(const Grants& grants) const {
  const auto before = [](const HostGrant& a, const HostGrant& b) { return a.host < b.host; };
  if (!std::is_sorted(grants.begin(), grants.end(), before)) {
    Grants sorted = grants;
    std::sort(sorted.begin(), sorted.end(), before);
    return mark(sorted);
  }
  Sum sum(levels_);
  std::int32_t gpus = -1;
  ClassMark host;  // with so many
  for (const HostGrant& grant : grants) {
    if (grant.gpus != gpus) {
      gpus = grant.gpus;
      const auto own = static_cast<std::uint64_t>(gpus);
      host = mixed({own, own}, most_levels + 1);
    }
    sum.add_units(0, static_cast<std::uint32_t>(grant.host),
                  static_cast<std::uint32_t>(grant.hosts), host);
  }
  return sum.total();
}

}  // namespace orrery
