// SPDX-License-Identifier: Apache-2.0
// Knows how flows add up on the links of a fabric, and how many links carry the same.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "topologies/routing/routing.h"

namespace orrery {

// Links by what they carry over what they can: links that carry nothing are left out.
using LoadCounts = std::map<double, double>;

inline bool is_nic(const LinkName& link) {
  return link.kind == LinkKind::nic_out || link.kind == LinkKind::nic_in;
}
// 1 NIC, 2 leaf-spine, 3 spine-core or between groups, 4 between sites.
std::size_t layer_of(const LinkName& link);

// By the numbers of links: of many that a shape could have most are never touched, and memory that
// is not touched costs nothing.
template <class T>
using Table = std::unique_ptr<T[], decltype(&std::free)>;

// Sums of shares, which are exact in any order, by the numbers of links.
class LinkLoads {
 public:
  // The router must outlive it.
  explicit LinkLoads(const Router& router);
  void add(const std::vector<RouteLink>& route);
  // Counts every loaded link `times` times by its load when a share of 1 is `rate`, by layer, and
  // forgets it.
  void take(double rate, double times, std::array<LoadCounts, 5>& by_layer);

 private:
  struct Kind {  // of links with one capacity, one layer and as many links to a bundle
    double capacity = 0, links = 1;
    std::size_t layer = 0;
    bool operator==(const Kind&) const = default;
  };
  std::uint8_t kind_of(const LinkName& link);

  const Router& router_;
  std::size_t links_;
  Table<std::uint64_t> shares_;  // of 2^-30
  Table<std::uint8_t> kind_;     // of a loaded link, counted from 1
  std::vector<Kind> kinds_;
};

// What hashed flows of one queue pair a port put on the links between switches and between sites of
// a healthy fabric: counts, by number. The router must outlive it.
class TrunkLoads {
 public:
  explicit TrunkLoads(const Router& router);
  // Flows with labels `first` to `end` - 1; returns Router::count_hashed().
  int add(std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t end);
  // Counts every loaded link by its load when a share of 1 is `rate`, by layer.
  void count(double rate, std::array<LoadCounts, 5>& by_layer) const;

 private:
  const Router& router_;
  std::vector<Router::Trunks> trunks_;
  Table<std::uint32_t> counts_;
  std::map<LinkName, double> sites_;  // whole flows
};

}  // namespace orrery
