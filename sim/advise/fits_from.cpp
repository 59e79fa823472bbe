// SPDX-License-Identifier: Apache-2.0
// Searches upwards for the first count on which a layout fits.
#include "sim/advise/fits_from.h"

#include <vector>

#include "sim/advise/counts_to_try.h"

namespace orrery {
namespace {

// Parts of a scale-up domain come before whole ones.
std::vector<std::int64_t> octaves(const Fabric& fabric, std::int64_t above) {
  std::vector<std::int64_t> counts;
  for (std::int64_t part = 1; part < fabric.scale_up.domain; part *= 2)
    if (part > above) counts.push_back(part);
  for (const std::int64_t count : plan_counts(fabric, above + 1, plan_most_gpus, 1))
    if (counts.empty() || count > counts.back()) counts.push_back(count);
  return counts;
}

bool fits_on(Question question, const AdviseOptions& options, std::int64_t gpus) {
  question.cluster.gpus = gpus;
  try {
    return any_fit(question, options);
  } catch (const Error&) {  // sizes that the wiring does not reach
    return false;
  }
}

}  // namespace

std::optional<std::int64_t> fits_from(const Question& question, const AdviseOptions& options,
                                      StopPoint& stop) {
  const Fabric& fabric = question.cluster.fabric;
  std::int64_t too_few = question.cluster.gpus;
  for (const std::int64_t count : octaves(fabric, too_few)) {
    if (stop.reached()) return std::nullopt;
    const bool fits = fits_on(question, options, count);
    if (stop.reached()) return std::nullopt;
    if (!fits) {
      too_few = count;
      continue;
    }
    if (count <= fabric.scale_up.domain) return count;
    for (const std::int64_t between : plan_counts(fabric, too_few + 1, count - 1, 8)) {
      if (stop.reached()) break;
      const bool fewer = fits_on(question, options, between);
      if (stop.reached()) break;
      if (fewer) return between;
    }
    return count;
  }
  return std::nullopt;
}

}  // namespace orrery
