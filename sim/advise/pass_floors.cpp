// Prices a layout of one stage in place of all that differ in what does not count.
#include "sim/advise/pass_floors.h"

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

Seconds PassFloors::of(const StepContext& context, const Model& model, const Job& job,
                       const Stack& stack, const Layout& layout) const {
  const Layout one = canonical(layout);
  const Key key = {one.tp,
                   one.cp,
                   one.ep,
                   one.etp,
                   one.dp,
                   one.micro_batch,
                   static_cast<std::int64_t>(one.precision),
                   one.sequence_parallel ? 1 : 0,
                   4 * one.context_inner + static_cast<std::int64_t>(one.context),
                   one.zero_stage};
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
  }
  Job whole = job;
  whole.global_batch = one.micro_batch * one.dp;
  const Seconds time =
      StepSeries(context, model, whole, one, stack, Links::anywhere).whole_model(one).time;
  const std::lock_guard lock(mutex_);
  known_.emplace(key, time);
  return time;
}

}  // namespace orrery
