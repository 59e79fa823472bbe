// SPDX-License-Identifier: Apache-2.0
// Knows the rings, trees and pairings of collectives between scale-up domains.
#include "sim/engine/collectives/domain_edges.h"

#include <algorithm>
#include <bit>

#include "sim/base/errors/check.h"
#include "sim/base/random.h"

namespace orrery {
namespace {

void ring(const DomainGroup& m, std::vector<DomainEdge>& out) {
  if (m.count < 2) return;
  for (std::int64_t j = 0; j < m.count; ++j)
    out.push_back({.from = m.at(j), .to = m.at((j + 1) % m.count)});
}

// The second tree makes leaves of the first one's inner nodes.
std::int64_t second_tree(std::int64_t node, std::int64_t nodes) {
  return nodes % 2 == 0 ? nodes - 1 - node : (node + 1) % nodes;
}

void tree(const DomainGroup& m, double copies, std::vector<DomainEdge>& out) {
  for (std::int64_t v = 1; v < m.count; ++v) {
    const std::int64_t parent = tree_parent(v, m.count);
    for (const bool second : {false, true}) {
      const std::int64_t a = second ? second_tree(v, m.count) : v;
      const std::int64_t b = second ? second_tree(parent, m.count) : parent;
      out.push_back({.from = m.at(a), .to = m.at(b), .share = 1 / copies});
      out.push_back({.from = m.at(b), .to = m.at(a), .share = 1 / copies});
    }
  }
}

void pat(const DomainGroup& m, std::vector<DomainEdge>& out) {
  for (std::int64_t distance = 1; distance < m.count; distance *= 2) {
    const std::int64_t blocks = std::min(distance, m.count - distance);
    const double share = static_cast<double>(blocks) / static_cast<double>(m.count - 1);
    for (std::int64_t j = 0; j < m.count; ++j)
      out.push_back({.from = m.at(j), .to = m.at((j + distance) % m.count), .share = share});
  }
}

void pairs(const DomainGroup& m, const EdgeOptions& options, std::vector<DomainEdge>& out) {
  std::vector<std::int64_t> shifts;
  for (std::int64_t s = 1; s < m.count; ++s) shifts.push_back(s);
  const auto most = static_cast<std::size_t>(options.most_peers);
  if (most > 0 && shifts.size() > most) {
    RandomStream random(options.seed, 0);
    for (std::size_t i = 0; i < most; ++i)
      std::swap(shifts[i], shifts[i + random.below(shifts.size() - i)]);
    shifts.resize(most);
    std::sort(shifts.begin(), shifts.end());
  }
  const double share = 1 / static_cast<double>(std::max<std::size_t>(1, shifts.size()));
  for (const std::int64_t s : shifts)
    for (std::int64_t j = 0; j < m.count; ++j)
      out.push_back({.from = m.at(j), .to = m.at((j + s) % m.count), .share = share});
}

}  // namespace

std::int64_t tree_parent(std::int64_t node, std::int64_t nodes) {
  if (node <= 0) return -1;
  const std::int64_t bit = node & -node;
  const std::int64_t above = (node ^ bit) | (bit << 1);
  return above < nodes ? above : node ^ bit;
}

double double_tree_copies(std::int64_t nodes) {
  return static_cast<double>(std::clamp<std::int64_t>(nodes, 1, 4));
}

std::vector<DomainGroup> domain_groups(const GroupShape& group, std::int64_t domains) {
  std::vector<DomainGroup> groups;
  const std::int64_t step = std::max<std::int64_t>(1, group.domain_step);
  const std::int64_t block = group.domains * step;
  for (std::int64_t start = 0; start < domains; start += block)
    for (std::int64_t offset = 0; offset < step && start + offset < domains; ++offset) {
      const std::int64_t there = (domains - start - offset + step - 1) / step;
      groups.push_back(
          {.first = start + offset, .step = step, .count = std::min(group.domains, there)});
    }
  return groups;
}

std::vector<DomainEdge> domain_edges(CollectiveKind kind, CollectiveAlgorithm algorithm,
                                     const GroupShape& group, std::int64_t domains,
                                     const EdgeOptions& options) {
  std::vector<DomainEdge> out;
  if (group.domains < 2) return out;
  if (kind == CollectiveKind::send_receive) {
    const std::int64_t step = std::max<std::int64_t>(1, group.domain_step);
    for (std::int64_t x = 0; x + step < domains; ++x) out.push_back({.from = x, .to = x + step});
    return out;
  }
  const double copies = double_tree_copies(group.domains);
  for (const DomainGroup& m : domain_groups(group, domains)) {
    switch (algorithm) {
      case CollectiveAlgorithm::ring:
      case CollectiveAlgorithm::hierarchical:
        ring(m, out);
        break;
      case CollectiveAlgorithm::tree:
      case CollectiveAlgorithm::nvls_tree:
        tree(m, copies, out);
        break;
      case CollectiveAlgorithm::pat:
        pat(m, out);
        break;
      case CollectiveAlgorithm::direct:
      case CollectiveAlgorithm::deepep:
        pairs(m, options, out);
        break;
      case CollectiveAlgorithm::collnet:
      case CollectiveAlgorithm::nvls:
      case CollectiveAlgorithm::custom_all_reduce:
        break;
    }
  }
  return out;
}

}  // namespace orrery
