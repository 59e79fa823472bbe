// SPDX-License-Identifier: Apache-2.0
// Lists round counts of accelerators, and whole scale-up domains between them.
#include "sim/advise/counts_to_try.h"

#include <algorithm>
#include <bit>

namespace orrery {

std::vector<std::int64_t> plan_counts(const Fabric& fabric, std::int64_t low, std::int64_t high,
                                      int parts) {
  // A torus is joined as a whole: blocks of 64 are what is rented and replaced.
  const std::int64_t domain = fabric.scale_up.kind == ScaleUpKind::torus
                                  ? std::min<std::int64_t>(fabric.scale_up.domain, 64)
                                  : fabric.scale_up.domain;
  std::vector<std::int64_t> bases = {
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(domain)))};
  if (bases.front() != domain) bases.push_back(domain);
  std::vector<std::int64_t> counts;
  for (const std::int64_t base : bases)
    for (std::int64_t size = 1; base * size <= high; size *= 2)
      for (int part = 0; part < parts; ++part) {
        if (size * part % parts != 0) continue;
        const std::int64_t gpus = base * (size + size * part / parts);
        if (gpus >= low && gpus <= high) counts.push_back(gpus);
      }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.empty() && low <= high) counts.push_back(high);
  return counts;
}

}  // namespace orrery
