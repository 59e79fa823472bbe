// SPDX-License-Identifier: Apache-2.0
// Knows a small job on a small fabric on which a collective runs exactly as on a large one.
#include "sim/engine/flows/short_job.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/base/whole.h"

namespace orrery {
namespace {

constexpr std::int64_t enough = 6;  // equal parts in a row: ends, their neighbours, two inner ones

// Domains under one group of each tier but the last; empty where groups do not hold whole ones.
std::vector<std::int64_t> parts_of(const ClosShape& shape, std::int64_t domain) {
  std::vector<std::int64_t> parts;
  std::int64_t below = domain;
  for (std::size_t t = 0; t + 1 < shape.tiers.size(); ++t) {
    const std::int64_t reach = shape.tiers[t].reach;
    if (reach % below != 0) return {};
    parts.push_back(reach / domain);
    below = reach;
  }
  return parts;
}

ClosShape resized(ClosShape shape, const std::vector<std::int64_t>& parts, std::int64_t domains,
                  std::int64_t domain) {
  shape.accelerators = domains * domain;
  for (std::size_t t = 0; t < shape.tiers.size(); ++t) {
    ClosTier& tier = shape.tiers[t];
    tier.reach = t < parts.size() ? parts[t] * domain : shape.accelerators;
    tier.groups = ceil_div(shape.accelerators, tier.reach);
  }
  return shape;
}

// Flows whose highest layer is each: a ring (or a line) over `domains` with this step.
std::array<double, 5> layers_of(std::int64_t domains, std::int64_t step, bool closed,
                                const std::vector<std::int64_t>& parts) {
  const auto crossing = [&](std::int64_t part) {
    if (domains <= part) return INT64_C(0);
    const std::int64_t wraps = closed ? step : 0;
    if (step > part) return domains - step + wraps;
    // At every border of parts `step` flows go on, at the last one no more than there are domains.
    const std::int64_t borders = ceil_div(domains, part) - 1;
    const std::int64_t on = (borders - 1) * step + std::min(step, domains - borders * part);
    // The last `step` domains go back to the first, some perhaps in one part with them.
    return on + std::max<std::int64_t>(0, wraps - std::max<std::int64_t>(0, part + step - domains));
  };
  std::array<double, 5> counts{};
  std::int64_t above = closed ? domains : domains - step;
  for (std::size_t t = 0; t < parts.size() && t < 2; ++t) {
    counts[t + 1] = static_cast<double>(above - crossing(parts[t]));
    above = crossing(parts[t]);
  }
  counts[std::min<std::size_t>(parts.size(), 2) + 1] = static_cast<double>(above);
  return counts;
}

// Fewer equal parts at every level whose parts hold whole steps.
std::optional<ShortJob> shorten_ring(const Collective& c, const ClosShape& shape,
                                     const JobGround& job, const std::vector<std::int64_t>& parts) {
  const std::int64_t step = std::max<std::int64_t>(1, c.group.domain_step);
  const bool one_leaf = !shape.tiers.empty() && shape.tiers[0].switches == shape.rails;
  std::vector<std::int64_t> fewer;
  std::int64_t old_below = 1, below = 1, domains = 0, rest = job.domains();
  std::vector<std::int64_t> digit;
  for (std::size_t t = parts.size(); t-- > 0;) {  // domains in mixed radix, highest first
    digit.insert(digit.begin(), rest / parts[t]);
    rest %= parts[t];
  }
  digit.insert(digit.begin(), rest);
  for (std::size_t t = 0; t <= parts.size(); ++t) {
    const bool repeats = old_below % step == 0 && (t > 0 || one_leaf);
    const std::int64_t full = t < parts.size() ? parts[t] / old_below : digit[t];
    const std::int64_t kept = repeats ? std::min(full, enough) : full;
    const std::int64_t own =
        t < parts.size() ? std::min(digit[t], digit[t] == full ? kept : kept - 1) : kept;
    domains += (repeats ? std::max<std::int64_t>(0, own) : digit[t]) * below;
    if (t == parts.size()) break;
    old_below = parts[t];
    below *= kept;
    fewer.push_back(below);
  }
  if (domains >= job.domains() || domains % step != 0 || domains <= step) return std::nullopt;
  ShortJob out{.shape = resized(shape, fewer, domains, job.domain), .job = job, .collective = c};
  out.job.ranks = domains * job.ranks_per_domain;
  const bool closed = c.kind != CollectiveKind::send_receive;
  if (closed) out.collective.group.domains = domains / step;
  const auto large = layers_of(job.domains(), step, closed, parts);
  const auto small = layers_of(domains, step, closed, fewer);
  for (std::size_t i = 0; i < large.size(); ++i)
    out.layer_scale[i] = small[i] > 0 ? large[i] / small[i] : 1;
  out.layer_scale[0] = static_cast<double>(job.domains()) / static_cast<double>(domains);
  return out;
}

}  // namespace

std::optional<ShortJob> shorten(const Collective& c, CollectiveAlgorithm algorithm,
                                const ClosShape& shape, const JobGround& job) {
  if (job.scattered()) return std::nullopt;
  const std::vector<std::int64_t> parts = parts_of(shape, job.domain);
  if (shape.direct || shape.sites || shape.tiers.empty() ||
      parts.size() + 1 != shape.tiers.size() || job.ranks % job.ranks_per_domain != 0)
    return std::nullopt;
  const std::int64_t domains = job.domains();
  const bool line = c.kind == CollectiveKind::send_receive;
  const std::int64_t block = c.group.domains * std::max<std::int64_t>(1, c.group.domain_step);
  const std::int64_t period = std::lcm(block, parts.empty() ? 1 : parts.back());
  if (!line && period < domains && domains % period == 0) {
    ShortJob out{.shape = resized(shape, parts, period, job.domain), .job = job, .collective = c};
    out.job.ranks = period * job.ranks_per_domain;
    out.layer_scale.fill(static_cast<double>(domains) / static_cast<double>(period));
    return out;
  }
  const bool ring =
      algorithm == CollectiveAlgorithm::ring || algorithm == CollectiveAlgorithm::hierarchical;
  if ((ring && block == domains) || line) return shorten_ring(c, shape, job, parts);
  return std::nullopt;
}

}  // namespace orrery
