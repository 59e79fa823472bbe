// SPDX-License-Identifier: Apache-2.0
// Splits and joins spans.
#include "sim/engine/slurm/slurm_plan.h"

#include <algorithm>

namespace orrery {

SlurmPlan::SlurmPlan(std::int64_t begin, std::int64_t end, std::int32_t hosts)
    : words_(words_for(hosts)), edges_{begin, end}, reserved_(words_, 0), frees_{0} {}

std::size_t SlurmPlan::index_of(std::int64_t time) const {
  const auto after = std::upper_bound(edges_.begin(), edges_.end(), time);
  return static_cast<std::size_t>(after - edges_.begin()) - 1;
}

std::optional<std::int64_t> SlurmPlan::bar(std::int64_t start, std::int64_t end,
                                           HostWords& barred) const {
  std::fill(barred.begin(), barred.end(), 0);
  std::optional<std::int64_t> later;
  for (std::size_t i = index_of(start); i < frees_.size(); ++i) {
    if (!later && frees_[i] != 0) later = edges_[i + 1];
    if (edges_[i] > end) break;  // the one behind has told what it frees
    const HostWordsView here = span(i);
    for (std::size_t w = 0; w < words_; ++w) barred[w] |= here[w];
  }
  return later;
}

bool SlurmPlan::is_free(const SlurmPlace& place, std::int64_t begin, std::int64_t end) const {
  for (std::size_t i = 0; i < frees_.size(); ++i)
    if (edges_[i + 1] > begin && edges_[i] < end && place.has(span(i))) return false;
  return true;
}

// The span that begins at the edge; behind the last one: none.
std::size_t SlurmPlan::split(std::int64_t edge) {
  const auto at = std::lower_bound(edges_.begin(), edges_.end(), edge);
  const auto index = static_cast<std::size_t>(at - edges_.begin());
  if (at == edges_.end()) return frees_.size();
  if (*at == edge) return index;
  const std::vector<std::uint64_t> before(span(index - 1).begin(), span(index - 1).end());
  reserved_.insert(reserved_.begin() + static_cast<std::ptrdiff_t>(index * words_), before.begin(),
                   before.end());
  frees_.insert(frees_.begin() + static_cast<std::ptrdiff_t>(index), frees_[index - 1]);
  frees_[index - 1] = 0;
  edges_.insert(at, edge);
  return index;
}

// Makes one of spans from..to that are equal to the one before, and looks again at what they free.
void SlurmPlan::join(std::size_t from, std::size_t to) {
  for (std::size_t i = std::min(to, frees_.size() - 1); i > 0 && i >= from; --i) {
    const HostWordsView before = span(i - 1), here = span(i);
    bool frees = false;
    for (std::size_t w = 0; w < words_; ++w) frees = frees || (before[w] & ~here[w]) != 0;
    frees_[i - 1] = frees ? 1 : 0;
    if (!std::equal(before.begin(), before.end(), here.begin())) continue;
    frees_[i - 1] = frees_[i];
    const auto at = static_cast<std::ptrdiff_t>(i);
    const auto word = static_cast<std::ptrdiff_t>(i * words_);
    edges_.erase(edges_.begin() + at);
    frees_.erase(frees_.begin() + at);
    reserved_.erase(reserved_.begin() + word,
                    reserved_.begin() + word + static_cast<std::ptrdiff_t>(words_));
  }
}

void SlurmPlan::reserve(const SlurmPlace& place, std::int64_t begin, std::int64_t end) {
  begin = std::max(begin, edges_.front());
  if (end <= begin) return;
  const std::size_t from = split(begin);
  const std::size_t to = split(end);
  for (std::size_t i = from; i < to; ++i) {
    const std::span<std::uint64_t> here(&reserved_[i * words_], words_);
    for (const std::int32_t host : place.hosts) add_host(here, host);
    if (place.rest_host) add_host(here, *place.rest_host);
  }
  join(from, to);
}

}  // namespace orrery
