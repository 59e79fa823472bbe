// SPDX-License-Identifier: Apache-2.0
// Prices each kind of layer once, and takes the least of the pipelines that hold it.
#include "sim/advise/search/pipeline_floor.h"

#include <algorithm>

#include "sim/advise/search/needless_recompute.h"
#include "sim/engine/placement.h"

namespace orrery {

Layout PipelineFloor::layout_at(const GridPoint& p, const RecomputeOption& again) const {
  Layout layout = family_.layout(p);
  layout.set(again.choice);
  layout.recompute_layers = again.layers;
  return layout;
}

PipelineFloor::Class& PipelineFloor::class_of(const Layout& layout, Links links) {
  const auto at = std::find_if(classes_.begin(), classes_.end(), [&](const Class& c) {
    return c.links == links && same_passes(c.like, layout, stack_, ground_.job);
  });
  if (at != classes_.end()) return *at;
  // Points with other passes do not come again.
  if (!classes_.empty() && classes_.back().like.recompute_choice() != layout.recompute_choice())
    classes_.clear();
  classes_.push_back({.like = layout, .links = links, .series = {}, .whole = {}});
  return classes_.back();
}

StepSeries& PipelineFloor::series_of(Class& of) {
  if (!of.series)
    of.series.emplace(ground_.context, ground_.model, ground_.job, of.like, stack_, of.links);
  return *of.series;
}

// Where only some layers run again, each pipeline has its own number of them.
WholeModel PipelineFloor::whole_of(Class& of, const Layout& layout) {
  if (layout.recompute_layers > 0) return series_of(of).whole_model(layout);
  if (of.whole) return *of.whole;
  if (ground_.floors == nullptr)
    of.whole = series_of(of).whole_model(layout);
  else
    of.whole = ground_.floors->whole(
        layout, of.links, ground_.model, ground_.job, stack_, [&](const Layout& plain) {
          return StepSeries(ground_.context, ground_.model, ground_.job, plain, stack_, of.links)
              .whole_model(plain);
        });
  return *of.whole;
}

Seconds PipelineFloor::time(GridPoint p, const RecomputeOption& again, Links links) {
  p.zero = choices(choice(family_.shards, p.shard).zero_stages) - 1;
  Seconds least(infinite);
  for (p.pipeline = 0; p.pipeline < choices(pipelines()); ++p.pipeline) {
    const Layout layout = layout_at(p, again);
    // What directions hide of each other does not add up over layers.
    Class& of = class_of(layout, pairs_directions(layout.schedule) ? Links::anywhere : links);
    least = std::min(
        least,
        whole_of(of, layout).least(layout, ground_.job, ground_.model, stack_.sharding.partition));
  }
  return least;
}

StepLeast PipelineFloor::with_energy(GridPoint p, const RecomputeOption& again) {
  p.zero = choices(choice(family_.shards, p.shard).zero_stages) - 1;
  StepLeast least{.time = Seconds(infinite), .energy_per_gpu = Joules(infinite)};
  for (p.pipeline = 0; p.pipeline < choices(pipelines()); ++p.pipeline) {
    const Layout layout = layout_at(p, again);
    // Whatever ends the step: another bucket may leave less of the gradients to be seen.
    const StepLeast one = series_of(class_of(layout, Links::anywhere)).least(layout, {});
    least.time = std::min(least.time, one.time);
    least.energy_per_gpu = std::min(least.energy_per_gpu, one.energy_per_gpu);
  }
  return least;
}

// Groups of data parallelism count where passes gather weights.
PlaceOfPasses PipelineFloor::place_of_passes(const GridPoint& point) const {
  const Placement p = place(family_.layout(point), ground_.context.fabric);
  PlaceOfPasses of{
      {p.tensor, p.context, p.context_heads, p.context_rings, p.expert, p.expert_tensor, p.data,
       p.data_context, p.shard, p.shard_replica, p.expert_shard, p.expert_shard_replica},
      p.ranks_per_domain};
  if (!shards_all(choice(family_.shards, point.shard)))
    std::fill(of.first.begin() + 6, of.first.end(), GroupShape{});
  return of;
}

bool PipelineFloor::adds_to(GridPoint less, GridPoint more) const {
  if (!repeats_more(choice(family_.recomputes, more.recompute),
                    choice(family_.recomputes, less.recompute)))
    return false;
  for (less.pipeline = 0; less.pipeline < choices(pipelines()); ++less.pipeline) {
    more.pipeline = less.pipeline;
    if (!runs_alike(stack_, family_.layout(less), family_.layout(more))) return false;
  }
  return true;
}

}  // namespace orrery
