// Adds up shares in a table by number, and counts equal sums together.
#include "sim/engine/link_loads.h"

#include <algorithm>
#include <unordered_map>

#include "sim/base/check.h"

namespace orrery {

std::size_t layer_of(const LinkName& link) {
  if (is_nic(link)) return 1;
  if (link.kind == LinkKind::site_out || link.kind == LinkKind::site_in) return 4;
  return 2 + std::min<std::size_t>(link.tier, 1);
}

LinkLoads::LinkLoads(const Router& router)
    : router_(router),
      shares_(static_cast<std::size_t>(router.links()), 0.0),
      kind_(shares_.size(), 0) {}

// A healthy fabric has few kinds of links.
std::uint8_t LinkLoads::kind_of(const LinkName& link) {
  const BundleSize size = router_.size(link);
  const Kind kind{
      .capacity = size.capacity, .links = static_cast<double>(size.links), .layer = layer_of(link)};
  auto at = std::find(kinds_.begin(), kinds_.end(), kind);
  if (at == kinds_.end()) at = kinds_.insert(at, kind);
  CHECK_THAT(kinds_.size() < 256, "a healthy fabric has few kinds of links");
  return static_cast<std::uint8_t>(at - kinds_.begin() + 1);
}

void LinkLoads::add(const std::vector<RouteLink>& route) {
  for (const RouteLink& r : route) {
    const auto link = static_cast<std::size_t>(router_.number(r.link));
    if (kind_[link] == 0) kind_[link] = kind_of(r.link);
    shares_[link] += r.share;  // multiples of 2^-30: exact
  }
}

void LinkLoads::take(double rate, double times, std::array<LoadCounts, 5>& by_layer) {
  std::vector<std::unordered_map<double, double>> counts(kinds_.size());  // of shares; summed below
  for (std::size_t link = 0; link < shares_.size(); ++link) {
    if (kind_[link] == 0) continue;
    counts[kind_[link] - 1U][shares_[link]] += 1;
    shares_[link] = 0;
    kind_[link] = 0;
  }
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const std::map<double, double> ordered(counts[k].begin(), counts[k].end());
    for (const auto& [share, links] : ordered)
      by_layer[kinds_[k].layer][share * rate / kinds_[k].capacity] +=
          links * times * kinds_[k].links;
  }
}

}  // namespace orrery
