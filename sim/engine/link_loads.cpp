// SPDX-License-Identifier: Apache-2.0
// Adds up shares in a table by number, and counts equal sums together.
#include "sim/engine/link_loads.h"

#include <algorithm>
#include <new>
#include <unordered_map>

#include "sim/base/check.h"

namespace orrery {

std::size_t layer_of(const LinkName& link) {
  if (is_nic(link)) return 1;
  if (link.kind == LinkKind::site_out || link.kind == LinkKind::site_in) return 4;
  return 2 + std::min<std::size_t>(link.tier, 1);
}

namespace {

// Shares are multiples of 2^-30 (exact_share), so that whole numbers of it add up exactly.
constexpr double share_unit = 1 << 30;

template <class T>
T* zeros(std::size_t count) {
  auto* table = static_cast<T*>(std::calloc(std::max<std::size_t>(1, count), sizeof(T)));
  if (table == nullptr) throw std::bad_alloc();
  return table;
}

}  // namespace

LinkLoads::LinkLoads(const Router& router, bool alike)
    : router_(router),
      alike_(alike),
      links_(static_cast<std::size_t>(router.links())),
      shares_(zeros<std::uint64_t>(links_), &std::free),
      kind_(zeros<std::uint8_t>(links_), &std::free) {}

// A healthy fabric has few kinds of links.
std::uint8_t LinkLoads::kind_of(const LinkName& link) {
  std::uint8_t& of_layer = of_layer_[layer_of(link)];
  if (alike_ && of_layer != 0) return of_layer;
  const BundleSize size = router_.size(link);
  const Kind kind{
      .capacity = size.capacity, .links = static_cast<double>(size.links), .layer = layer_of(link)};
  auto at = std::find(kinds_.begin(), kinds_.end(), kind);
  if (at == kinds_.end()) at = kinds_.insert(at, kind);
  CHECK_THAT(kinds_.size() < 256, "a healthy fabric has few kinds of links");
  return of_layer = static_cast<std::uint8_t>(at - kinds_.begin() + 1);
}

void LinkLoads::add(const std::vector<RouteLink>& route) {
  for (const RouteLink& r : route) {
    const auto link = static_cast<std::size_t>(router_.number(r.link));
    const auto share = static_cast<std::uint64_t>(r.share * share_unit);
    const bool first = (shares_[link] += share) == share;
    if (first) kind_[link] = kind_of(r.link);
  }
}

void LinkLoads::take(double rate, double times, std::array<LoadCounts, 5>& by_layer) {
  std::vector<std::unordered_map<std::uint64_t, double>> counts(kinds_.size());  // summed below
  for (std::size_t link = 0; link < links_; ++link) {
    if (kind_[link] == 0) continue;
    counts[kind_[link] - 1U][shares_[link]] += 1;
    shares_[link] = 0;
    kind_[link] = 0;
  }
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const std::map<std::uint64_t, double> ordered(counts[k].begin(), counts[k].end());
    for (const auto& [share, links] : ordered)
      by_layer[kinds_[k].layer][static_cast<double>(share) / share_unit * rate /
                                kinds_[k].capacity] += links * times * kinds_[k].links;
  }
}

}  // namespace orrery
