// SPDX-License-Identifier: Apache-2.0
// Counts blocks, shares units of text between requests, and evicts them.
//
// The order of eviction is that of vLLM's free queue (vllm/v1/core/kv_cache_manager.py and
// block_pool.py: blocks return from the end of a request) and of SGLang's leaves
// (srt/mem_cache/radix_cache.py): a unit is held by all who hold one behind it, and is released
// after it, so that it is never evicted before it.
#include "sim/engine/serving/block_pool.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {

namespace {
constexpr std::uint32_t none = UnitMap::none;
}  // namespace

BlockPool::BlockPool(const PoolShape& shape) : shape_(shape), free_(shape.blocks) {
  CHECK_THAT(shape.tier_units.size() < most_tiers, "more tiers than a pool has");
}

void BlockPool::append(std::uint32_t node, std::size_t tier) {
  List& list = lists_[tier];
  Node& n = nodes_[node];
  n.tier = static_cast<std::uint32_t>(tier);
  n.before = list.last;
  n.behind = none;
  (list.last == none ? list.first : nodes_[list.last].behind) = node;
  list.last = node;
  ++list.size;
}

void BlockPool::unlink(std::uint32_t node) {
  Node& n = nodes_[node];
  List& list = lists_[n.tier];
  (n.before == none ? list.first : nodes_[n.before].behind) = n.behind;
  (n.behind == none ? list.last : nodes_[n.behind].before) = n.before;
  n.before = n.behind = none;
  --list.size;
}

std::uint32_t BlockPool::new_node(std::uint32_t unit) {
  std::uint32_t node;
  if (spare_.empty()) {
    node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    node = spare_.back();
    spare_.pop_back();
  }
  nodes_[node] = {.unit = unit};
  map_.insert(unit, node);
  return node;
}

void BlockPool::forget(std::uint32_t node) {
  map_.erase(nodes_[node].unit);
  nodes_[node].unit = none;
  spare_.push_back(node);
}

void BlockPool::evict_one() {
  std::uint32_t node = lists_[0].first;
  CHECK_THAT(node != none, "nothing is cached that could be evicted");
  unlink(node);
  --idle_units_;
  free_ += shape_.unit_blocks;
  // Down the tiers: each full one passes on what it used least recently.
  for (std::size_t tier = 1; tier <= shape_.tier_units.size(); ++tier) {
    if (shape_.tier_units[tier - 1] == 0) continue;
    append(node, tier);
    if (lists_[tier].size <= shape_.tier_units[tier - 1]) return;
    node = lists_[tier].first;
    unlink(node);
  }
  forget(node);
}

void BlockPool::make_free(std::int64_t blocks) {
  CHECK_THAT(blocks <= available(), "more blocks are taken than there are");
  while (free_ < blocks) evict_one();
}

void BlockPool::take(std::int64_t blocks) {
  make_free(blocks);
  free_ -= blocks;
  private_ += blocks;
}

void BlockPool::give_back(std::int64_t blocks) {
  CHECK_THAT(blocks <= private_, "more blocks come back than were taken");
  private_ -= blocks;
  free_ += blocks;
}

PoolMatch BlockPool::match(std::span<const std::uint32_t> text) const {
  PoolMatch match;
  if (shape_.unit_blocks == 0) return match;
  for (const std::uint32_t unit : text) {
    const std::uint32_t node = map_.find(unit);
    if (node == none) break;
    const Node& n = nodes_[node];
    ++match.units;
    ++match.in_tier[n.tier];
    if (n.tier == 0 && n.references == 0) ++match.idle;
  }
  return match;
}

void BlockPool::hold(std::span<const std::uint32_t> units) {
  // Those in memory first: making room for the others could evict them.
  for (const std::uint32_t unit : units) {
    const std::uint32_t node = map_.find(unit);
    if (nodes_[node].tier > 0) {
      unlink(node);  // in transit: no tier may pass it on
      continue;
    }
    if (nodes_[node].references++ > 0) continue;
    unlink(node);
    --idle_units_;
    ++held_units_;
  }
  for (const std::uint32_t unit : units) {
    Node& n = nodes_[map_.find(unit)];
    if (n.tier == 0) continue;
    make_free(shape_.unit_blocks);
    free_ -= shape_.unit_blocks;
    n.tier = 0;
    n.references = 1;
    ++held_units_;
  }
}

void BlockPool::keep(std::uint32_t unit) {
  std::uint32_t node = map_.find(unit);
  CHECK_THAT(private_ >= shape_.unit_blocks, "a unit is kept that nobody computed");
  private_ -= shape_.unit_blocks;
  if (node == none) {
    node = new_node(unit);
    nodes_[node].references = 1;
    ++held_units_;
    return;
  }
  Node& n = nodes_[node];
  if (n.tier > 0) {  // a copy lies below; the one that was computed takes its place
    unlink(node);
    n.tier = 0;
    n.references = 1;
    ++held_units_;
    return;
  }
  free_ += shape_.unit_blocks;
  if (n.references++ > 0) return;
  unlink(node);
  --idle_units_;
  ++held_units_;
}

void BlockPool::release(std::span<const std::uint32_t> units) {
  for (std::size_t i = units.size(); i-- > 0;) {
    const std::uint32_t node = map_.find(units[i]);
    CHECK_THAT(node != none && nodes_[node].references > 0, "a unit is released that none holds");
    if (--nodes_[node].references > 0) continue;
    append(node, 0);
    --held_units_;
    ++idle_units_;
  }
}

bool BlockPool::consistent() const {
  std::int64_t held = 0, idle = 0;
  std::array<std::int64_t, most_tiers> listed{};
  for (const Node& n : nodes_) {
    if (n.unit == none) continue;
    if (n.references < 0 || (n.tier > 0 && n.references > 0)) return false;
    held += n.references > 0 ? 1 : 0;
    idle += n.tier == 0 && n.references == 0 ? 1 : 0;
    if (n.references == 0) ++listed[n.tier];
  }
  for (std::size_t tier = 0; tier < most_tiers; ++tier) {
    if (listed[tier] != lists_[tier].size) return false;
    if (tier > 0 && tier <= shape_.tier_units.size() && listed[tier] > shape_.tier_units[tier - 1])
      return false;
  }
  return held == held_units_ && idle == idle_units_ && free_ >= 0 && private_ >= 0 &&
         free_ + used() + cached() == shape_.blocks;
}

}  // namespace orrery
