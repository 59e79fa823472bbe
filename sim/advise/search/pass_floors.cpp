// SPDX-License-Identifier: Apache-2.0
// Prices a layout of one stage in place of all that differ in what does not count.
#include "sim/advise/search/pass_floors.h"

#include "workloads/parameters/optimizer.h"

namespace orrery {
namespace {

// One stage, neighbours as near as they can be, nothing that runs again or moves.
Layout canonical(const Layout& layout) {
  Layout one;
  one.tp = layout.tp;
  one.cp = layout.cp;
  one.ep = layout.ep;
  one.etp = layout.etp;
  one.dp = layout.dp * layout.pp;
  one.micro_batch = layout.micro_batch;
  one.precision = layout.precision;
  one.sequence_parallel = layout.sequence_parallel;
  one.context = layout.context;
  one.context_inner = layout.context_inner;
  one.zero_stage = layout.zero_stage < 3 ? 1 : 3;
  return one;
}

}  // namespace

std::size_t PassFloors::Hash::operator()(const Key& key) const {
  const Layout& l = key.passes.layout;
  std::uint64_t hash = static_cast<std::uint64_t>(key.links);
  for (const std::int64_t size :
       {l.tp, l.pp, l.cp, l.ep, l.etp, l.micro_batch, l.shard_group, std::int64_t{l.zero_stage},
        static_cast<std::int64_t>(l.recompute), static_cast<std::int64_t>(l.precision)})
    hash = hash * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(size);
  for (const Parallel axis : l.rank_order.axes())
    hash = hash * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(axis);
  return hash ^ (hash >> 32U);
}

// Two threads that find the same at once find the same value.
template <class Value, class Find>
Value PassFloors::known(std::mutex& mutex, Known<Value>& map, const Key& key, Find&& find) {
  {
    const std::lock_guard lock(mutex);
    const auto at = map.find(key);
    if (at != map.end()) return at->second;
  }
  const Value value = find();
  const std::lock_guard lock(mutex);
  map.emplace(key, value);
  return value;
}

Seconds PassFloors::of(const StepContext& context, const Model& model, const Job& job,
                       const Stack& stack, const Layout& layout) const {
  const Layout one = canonical(layout);
  Job whole = job;
  whole.global_batch = one.micro_batch * one.dp;
  return known(mutex_, times_, {priced_passes(one, stack, whole), Links::anywhere}, [&] {
    return StepSeries(context, model, whole, one, stack, Links::anywhere).whole_model(one).time;
  });
}

WholeModel PassFloors::whole(const Layout& layout, Links links, const Model& model, const Job& job,
                             const Stack& stack,
                             const std::function<WholeModel(const Layout&)>& price) const {
  Layout plain = layout;
  plain.optimizer = Layout().optimizer;
  WholeModel found = known(mutex_, wholes_, {priced_passes(plain, stack, job), links},
                           [&] { return price(plain); });
  const auto traffic = [&](const Layout& l) {
    return optimizer_cost(l, stack, model.hidden).traffic_bytes;
  };
  if (layout.optimizer != plain.optimizer) found.update *= traffic(layout) / traffic(plain);
  return found;
}

}  // namespace orrery
