// Prices a layout of one stage in place of all that differ in what does not count.
#include "sim/advise/pass_floors.h"

#include <bit>

#include "workloads/optimizer.h"

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

// Of a layout all that its passes depend on but for the optimizer: what same_passes compares.
std::vector<std::int64_t> passes_of(const Layout& l, Links links, const Job& job,
                                    const Stack& stack) {
  std::vector<std::int64_t> key = {l.tp,
                                   l.pp,
                                   l.dp,
                                   l.cp,
                                   l.ep,
                                   l.etp,
                                   l.micro_batch,
                                   l.zero_stage < 3 ? 1 : 3,
                                   l.shard_group,
                                   static_cast<std::int64_t>(l.recompute),
                                   static_cast<std::int64_t>(l.precision),
                                   static_cast<std::int64_t>(l.context),
                                   l.context_inner,
                                   l.per_domain,
                                   static_cast<std::int64_t>(links),
                                   static_cast<std::int64_t>(launch_mode(stack, l))};
  for (const bool flag :
       {l.sequence_parallel, splits_backward(l.schedule), exchange_beside_passes(stack, l)})
    key.push_back(flag ? 1 : 0);
  for (int i = 0; i < recompute_module_count; ++i)
    key.push_back(l.recomputes(static_cast<RecomputeModule>(i)) ? 1 : 0);
  for (const Parallel axis : l.rank_order.axes()) key.push_back(static_cast<std::int64_t>(axis));
  key.push_back(std::bit_cast<std::int64_t>(
      expert_exposed(stack, l, static_cast<double>(l.microbatches(job)))));
  return key;
}

}  // namespace

// Two threads that find the same at once find the same value.
template <class Value, class Find>
Value PassFloors::known(std::mutex& mutex, std::map<Key, Value>& map, const Key& key, Find&& find) {
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
  return known(mutex_, times_, passes_of(one, Links::anywhere, whole, stack), [&] {
    return StepSeries(context, model, whole, one, stack, Links::anywhere).whole_model(one).time;
  });
}

WholeModel PassFloors::whole(const Layout& layout, Links links, const Model& model, const Job& job,
                             const Stack& stack,
                             const std::function<WholeModel(const Layout&)>& price) const {
  Layout plain = layout;
  plain.optimizer = Layout().optimizer;
  WholeModel found =
      known(mutex_, wholes_, passes_of(plain, links, job, stack), [&] { return price(plain); });
  const auto traffic = [&](const Layout& l) {
    return optimizer_cost(l, stack, model.hidden).traffic_bytes;
  };
  if (layout.optimizer != plain.optimizer) found.update *= traffic(layout) / traffic(plain);
  return found;
}

}  // namespace orrery
