// SPDX-License-Identifier: Apache-2.0
// Splits and joins spans.
#include "sim/engine/slurm/slurm_plan.h"

#include <algorithm>

namespace orrery {

SlurmPlan::SlurmPlan(std::int64_t begin, std::int64_t end, std::int32_t hosts)
    : edges_{begin, end}, reserved_{HostFlags(static_cast<std::size_t>(hosts), 0)} {}

SlurmPlan::Barred SlurmPlan::barred(std::int64_t start, std::int64_t end) const {
  Barred out{HostFlags(reserved_.front().size(), 0), std::nullopt};
  const auto after = std::upper_bound(edges_.begin(), edges_.end(), start);
  for (auto i = static_cast<std::size_t>(after - edges_.begin()) - 1; i < reserved_.size(); ++i) {
    const HostFlags& here = reserved_[i];
    if (!out.later && i + 1 < reserved_.size()) {
      const HostFlags& next = reserved_[i + 1];
      for (std::size_t h = 0; h < here.size() && !out.later; ++h)
        if (here[h] != 0 && next[h] == 0) out.later = edges_[i + 1];
    }
    if (edges_[i] > end) break;
    for (std::size_t h = 0; h < here.size(); ++h) out.hosts[h] |= here[h];
  }
  return out;
}

bool SlurmPlan::is_free(const std::vector<std::int32_t>& hosts, std::int64_t begin,
                        std::int64_t end) const {
  for (std::size_t i = 0; i < reserved_.size(); ++i) {
    if (edges_[i + 1] <= begin || edges_[i] >= end) continue;
    for (const std::int32_t host : hosts)
      if (reserved_[i][static_cast<std::size_t>(host)] != 0) return false;
  }
  return true;
}

void SlurmPlan::split(std::int64_t edge) {
  const auto at = std::lower_bound(edges_.begin(), edges_.end(), edge);
  if (at == edges_.end() || *at == edge) return;
  const auto index = at - edges_.begin();
  reserved_.insert(reserved_.begin() + index, reserved_[static_cast<std::size_t>(index) - 1]);
  edges_.insert(at, edge);
}

void SlurmPlan::reserve(const std::vector<std::int32_t>& hosts, std::int64_t begin,
                        std::int64_t end) {
  begin = std::max(begin, edges_.front());
  split(begin);
  split(end);
  for (std::size_t i = 0; i < reserved_.size(); ++i)
    if (edges_[i] >= begin && edges_[i] < end)
      for (const std::int32_t host : hosts) reserved_[i][static_cast<std::size_t>(host)] = 1;
  for (std::size_t i = reserved_.size(); i-- > 1;) {
    if (reserved_[i] != reserved_[i - 1]) continue;
    edges_.erase(edges_.begin() + static_cast<std::ptrdiff_t>(i));
    reserved_.erase(reserved_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace orrery
