// SPDX-License-Identifier: Apache-2.0
// Chooses the rows that are priced, and tabulates what a group of unlike ranks shares.
#include "sim/engine/prices/row_tables.h"

namespace orrery {
namespace {

// Nodes of rows: every one while few rows decide, then less than a fifth apart. Where a row more is
// a tile of products more, both sides of the step are nodes.
std::vector<std::int64_t> row_nodes() {
  std::vector<std::int64_t> nodes;
  for (std::int64_t n = 1; n <= 16; ++n) nodes.push_back(n);
  const std::int64_t most = std::int64_t{1} << 20;
  for (std::int64_t n = 24; n <= most; n += std::max<std::int64_t>(8, n / 6 / 8 * 8))
    nodes.push_back(n);
  constexpr std::int64_t tile = 128, tiled = 4096;
  for (std::int64_t n = tile; n <= tiled; n += tile) nodes.insert(nodes.end(), {n, n + 1});
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// Rows of all of `ranks`: those where each has as many as a node, and fewer than one for each.
std::vector<std::int64_t> group_nodes(std::int64_t ranks) {
  std::vector<std::int64_t> nodes;
  for (const std::int64_t n : rows_priced())
    if (n < ranks) nodes.push_back(n);
  for (const std::int64_t n : rows_priced()) nodes.push_back(n * ranks);
  return nodes;
}

}  // namespace

const std::vector<std::int64_t>& rows_priced() {
  static const std::vector<std::int64_t> nodes = row_nodes();
  return nodes;
}

UnevenRanks::UnevenRanks(const Segments& segments, std::recursive_mutex& mutex, std::int64_t ranks)
    : segments_(segments), mutex_(mutex), ranks_(ranks), all_priced_(group_nodes(ranks)) {}

double UnevenRanks::exchange(std::int64_t largest) {
  const std::vector<std::int64_t>& nodes = rows_priced();
  return interpolated(nodes, static_cast<double>(largest), [&](std::size_t i) {
    return remembered(mutex_, exchanges_, nodes[i],
                      [&](std::int64_t n) { return segments_.exchange_seconds(n); });
  });
}

double UnevenRanks::experts(std::int64_t all) {
  return interpolated(all_priced_, static_cast<double>(all), [&](std::size_t i) {
    return remembered(mutex_, experts_, all_priced_[i],
                      [&](std::int64_t n) { return segments_.expert_seconds(n); });
  });
}

double UnevenRanks::seconds(std::int64_t own, const GroupRows& group) {
  return (exchange(group.largest) - exchange(own)) + (experts(group.all) - experts(own * ranks_));
}

}  // namespace orrery
