// SPDX-License-Identifier: Apache-2.0
// Bounds and runs the steps of many layouts whose layers cost the same, priced once.
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/step/context.h"
#include "sim/engine/step/least.h"
#include "sim/engine/step/result.h"

namespace orrery {

// All that a layer's passes, and so all that a step prices but its stages and its end, depend on:
// the layout without schedule (but for its kind), chunks, stages' layers, ZeRO stage below 3,
// bucket, offload and how many layers full recompute runs again.
struct PricedPasses {
  Layout layout;
  LaunchMode launch = LaunchMode::eager;
  bool splits_backward = false, exchange_beside = false;
  double expert_exposed = 0;
  bool operator==(const PricedPasses&) const = default;
};
PricedPasses priced_passes(const Layout& layout, const Stack& stack, const Job& job);
// Whether they cost the same in both.
bool same_passes(const Layout& a, const Layout& b, const Stack& stack, const Job& job);

// real: the context's network. anywhere: collectives take no time but for those of tensor
// parallelism, whose ranks are neighbours wherever all others lie, and that take the least: `least`
// then holds for every rank order with tp innermost, ranks per domain and shard group.
enum class Links : std::uint8_t { real, anywhere };

// Of training. For one thread at a time. All arguments but `like` must outlive it.
class StepSeries {
 public:
  StepSeries(const StepContext& context, const Model& model, const Job& job, const Layout& like,
             const Stack& stack, Links links = Links::real);
  ~StepSeries();
  StepSeries(StepSeries&&) noexcept;

  // The same as orrery::step, to the bit (with real links). `layout` has the passes of `like`.
  StepResult step(const Layout& layout);
  // Each stage's passes one after the other between the earliest start that the stages before it
  // allow and what the stages before it have still to do when it ends, then what data parallelism
  // leaves visible at the least, and the optimizer. Closed form, a few microseconds
  // (bench_parts: least).
  StepLeast least(const Layout& layout);
  // The least of layouts that differ from `layout` in ZeRO stage below 3, bucket and offloaded
  // optimizer only: not much more work than for one. With `worth` it is first told what holds
  // whatever these are; where that is not worth more, it is the answer.
  StepLeast least(const Layout& layout, const std::vector<Layout>& endings,
                  const WorthMore& worth = {});
  // Of all layouts with these passes of which as many layers run again: all, none, or as many of
  // each class. Context-parallel traffic beside compute is left out.
  WholeModel whole_model(const Layout& layout);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery
