// SPDX-License-Identifier: Apache-2.0
// Adds up shares in a table by number, and counts equal sums together.
#include "sim/engine/traffic/link_loads.h"

#include <algorithm>
#include <new>
#include <unordered_map>

#include "sim/base/errors/check.h"

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

LinkLoads::LinkLoads(const Router& router)
    : router_(router),
      links_(static_cast<std::size_t>(router.links())),
      shares_(zeros<std::uint64_t>(links_), &std::free),
      kind_(zeros<std::uint8_t>(links_), &std::free) {}

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

TrunkLoads::TrunkLoads(const Router& router)
    : router_(router), trunks_(router.trunks()), counts_(nullptr, &std::free) {
  if (trunks_.empty()) return;
  counts_.reset(
      zeros<std::uint32_t>(static_cast<std::size_t>(trunks_.back().end - trunks_.front().begin)));
}

int TrunkLoads::add(std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t end) {
  const int layer = router_.count_hashed(from, to, first, end, counts_.get());
  if (layer < 4) return layer;
  const auto flows = static_cast<double>(end - first);
  sites_[{.kind = LinkKind::site_out, .group = router_.site_of(from)}] += flows;
  sites_[{.kind = LinkKind::site_in, .group = router_.site_of(to)}] += flows;
  return layer;
}

void TrunkLoads::count(double rate, std::array<LoadCounts, 5>& by_layer) const {
  const auto put = [&](const LinkName& link, double flows, double links) {
    const BundleSize size = router_.size(link);
    by_layer[layer_of(link)][flows * rate / size.capacity] +=
        links * static_cast<double>(size.links);
  };
  for (const Router::Trunks& all : trunks_) {
    std::vector<double> links;  // by how many queue pairs take them
    const std::int64_t least = trunks_.front().begin;
    for (std::int64_t i = all.begin - least; i < all.end - least; ++i) {
      const std::uint32_t pairs = counts_[static_cast<std::size_t>(i)];
      if (pairs >= links.size()) links.resize(pairs + 1);
      links[pairs] += 1;
    }
    for (std::size_t pairs = 1; pairs < links.size(); ++pairs)
      if (links[pairs] > 0) put(all.any, static_cast<double>(pairs) * all.share, links[pairs]);
  }
  for (const auto& [link, flows] : sites_) put(link, flows, 1);
}

}  // namespace orrery
