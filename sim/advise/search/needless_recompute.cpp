// SPDX-License-Identifier: Apache-2.0
// Holds each choice of recompute against those that run a part of it.
#include "sim/advise/search/needless_recompute.h"

#include "sim/engine/memory_fit.h"

namespace orrery {
namespace {

bool is_part(RecomputeModules part, RecomputeModules whole) {
  for (int i = 0; i < recompute_module_count; ++i) {
    const auto module = static_cast<RecomputeModule>(i);
    if (part.has(module) && !whole.has(module)) return false;
  }
  return true;
}

// Nothing, or one layer or module less, which stands for all that run less still: what fits with
// them fits with it.
bool stands_for_less(const RecomputeOption& less, const RecomputeOption& more) {
  if (!repeats_more(more, less)) return false;
  if (less.choice.recompute == Recompute::none) return true;
  if (less.choice.recompute == Recompute::full) return less.layers + 1 == more.layers;
  int apart = 0;
  for (int i = 0; i < recompute_module_count; ++i) {
    const auto module = static_cast<RecomputeModule>(i);
    apart += more.choice.modules.has(module) != less.choice.modules.has(module) ? 1 : 0;
  }
  return apart == 1;
}

bool fits_wherever(const SearchGround& ground, const Place& place, GridPoint less, GridPoint more) {
  const Family& family = ground.family(place);
  const Stack& stack = ground.recipe(place).stack;
  const ShardOption& option = choice(family.shards, less.shard);
  const std::int32_t last_bucket = choices(option.buckets) - 1;
  const auto fits = [&](std::int32_t bucket) {
    less.bucket = bucket;
    return memory_fits(ground.model, ground.job, family.layout(less), stack, ground.device);
  };
  more.bucket = last_bucket > 0 ? 1 : 0;  // the smallest that can be chosen
  more.offload = choices(family.offloads) - 1;
  // Mostly it fits with all or with none: the most frugal point tells.
  less.zero = choices(option.zero_stages) - 1;
  if (!fits(more.bucket)) return false;
  for (less.zero = 0; less.zero < choices(option.zero_stages); ++less.zero) {
    if (fits(0) && (last_bucket == 0 || fits(last_bucket))) continue;
    more.zero = less.zero;
    if (accelerator_fits(ground.model, ground.job, family.layout(more), stack, ground.device))
      return false;
  }
  return true;
}

}  // namespace

bool repeats_more(const RecomputeOption& more, const RecomputeOption& less) {
  const Recompute kind = less.choice.recompute;
  if (kind == Recompute::none) return more.choice.recompute != Recompute::none;
  if (kind != more.choice.recompute) return false;
  if (kind == Recompute::full)
    return less.layers > 0 && (more.layers == 0 || more.layers > less.layers);
  return is_part(less.choice.modules, more.choice.modules) &&
         !(less.choice.modules == more.choice.modules);
}

bool runs_alike(const Stack& stack, const Layout& a, const Layout& b) {
  return launch_mode(stack, a) == launch_mode(stack, b) &&
         exchange_beside_passes(stack, a) == exchange_beside_passes(stack, b);
}

bool recomputes_needlessly(const SearchGround& ground, const Place& place) {
  const Family& family = ground.family(place);
  const Stack& stack = ground.recipe(place).stack;
  const GridPoint& p = place.point;
  const RecomputeOption& more = choice(family.recomputes, p.recompute);
  const Layout layout = family.layout(p);
  GridPoint less = p;
  for (less.recompute = 0; less.recompute < p.recompute; ++less.recompute)
    if (stands_for_less(choice(family.recomputes, less.recompute), more) &&
        runs_alike(stack, family.layout(less), layout) && fits_wherever(ground, place, less, p))
      return true;
  return false;
}

}  // namespace orrery
