// SPDX-License-Identifier: Apache-2.0
// Splits parts of the grid, bounds what comes out, and runs single layouts.
#include "sim/advise/search/expand.h"

#include <algorithm>
#include <array>

#include "sim/advise/search/memory_floor.h"
#include "sim/advise/search/needless_recompute.h"
#include "sim/advise/search/pipeline_floor.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/step/series.h"

namespace orrery {
namespace {

std::int64_t leaves_of_recompute(const Family& f, const GridPoint& p) {
  std::int64_t sum = 0;
  for (const std::int32_t shard : shards_like(f, p.shard))
    sum += f.leaves_below(choice(f.micro_batches, p.micro_batch), choice(f.shards, shard));
  return sum;
}

// One part's expansion.
class Expander {
 public:
  Expander(const SearchGround& ground, const Part& part, const Cutoff& cutoff)
      : ground_(ground),
        part_(part),
        cutoff_(cutoff),
        family_(ground.family(part.place)),
        recipe_(ground.recipe(part.place)),
        point_(part.place.point) {}

  Expansion run() {
    switch (part_.level) {
      case Level::family:
        split_sizes();
        break;
      case Level::work:
        split_work();
        break;
      case Level::recompute:
        split_recompute();
        break;
      case Level::ranks:
        split_ranks();
        break;
      case Level::pipeline:
        run_layouts();
        break;
    }
    return std::move(out_);
  }

 private:
  void split_sizes();
  void split_work();
  void split_recompute();
  void split_ranks();
  void run_layouts();
  bool run_layout(StepSeries& series, const GridPoint& point);
  const MicroBatchOption& micro_batch() const {
    return choice(family_.micro_batches, point_.micro_batch);
  }
  bool fits(const Layout& layout) const {
    return memory_fits(ground_.model, ground_.job, layout, recipe_.stack, ground_.device);
  }
  Bytes peak_of(const Layout& layout) const { return peak_memory(ground_, recipe_, layout); }
  // With all that saves memory: most shards, small buckets, everything offloaded.
  Bytes frugal_peak(GridPoint p) const {
    const ShardOption& shard = choice(family_.shards, p.shard);
    p.zero = choices(shard.zero_stages) - 1;
    p.bucket = choices(shard.buckets) > 1 ? 1 : 0;
    p.offload = choices(family_.offloads) - 1;
    return peak_of(family_.layout(p));
  }
  Bytes least_peak() const;
  bool runs_needlessly(const GridPoint& p) const;
  bool all_run_needlessly(GridPoint p) const;
  bool bounds_energy() const { return cutoff_.by_energy || ground_.objective == Objective::energy; }
  Seconds floor_of(GridPoint p) const;
  // The least of all pipelines, whatever the place of ranks.
  void bound_by_work(PipelineFloor& floor, const RecomputeOption& again, Part& part) const;
  void bound_by_places(PipelineFloor& floor, Part& part) const;
  std::optional<Part> too_many_layers(PipelineFloor& floor, const Part& bounded) const;
  Seconds time_at_place(PipelineFloor& floor, const GridPoint& p, Part part) const;
  StepSeries series(const Layout& layout, Links links) const {
    return StepSeries(ground_.context, ground_.model, ground_.job, layout, recipe_.stack, links);
  }
  void raise(Part& part, const StepLeast& least) const;
  void raise(Part& part, Seconds time) const;
  void raise(Part& part, const Part& by) const;  // that does a part of what it does
  void raise_by_stages(StepSeries& series, const Layout& layout, const Shape& shape,
                       Part& part) const;
  void keep(const Part& part, const std::optional<Shape>& shape = {}) {
    if (cutoff_.rules_out(part, shape))
      out_.pruned += part.leaves;
    else
      out_.parts.push_back(part);
  }

  const SearchGround& ground_;
  const Part& part_;
  const Cutoff& cutoff_;
  const Family& family_;
  const NumericRecipe& recipe_;
  const GridPoint& point_;
  Expansion out_;
};

void Expander::raise(Part& part, const StepLeast& least) const {
  part.time = std::max(part.time, least.time);
  part.energy =
      std::max(part.energy, least.energy_per_gpu * static_cast<double>(family_.base.gpus()));
  part.least = score(ground_, part.time, part.energy);
}

void Expander::split_sizes() {
  const Bytes memory = least_static(ground_, part_.place);
  if (memory > ground_.device.memory_capacity) {
    out_.rejected += part_.leaves;
    return;
  }
  const StepBound& bound = ground_.bounds[static_cast<std::size_t>(part_.place.recipe)];
  GridPoint p;
  for (p.micro_batch = 0; p.micro_batch < choices(family_.micro_batches); ++p.micro_batch) {
    const MicroBatchOption& micro = choice(family_.micro_batches, p.micro_batch);
    Layout layout = family_.base;
    layout.micro_batch = micro.size;
    Seconds time(infinite);
    for (const PipelineOption& pipeline : micro.pipelines) {
      layout.schedule = pipeline.schedule;
      time = std::min(time, bound(layout));
    }
    for (p.sequence_parallel = 0; p.sequence_parallel < choices(family_.sequence_parallel);
         ++p.sequence_parallel)
      for (p.exchange = 0; p.exchange < choices(family_.exchanges); ++p.exchange)
        for (p.shard = 0; p.shard < choices(family_.shards); ++p.shard) {
          if (shards_like(family_, p.shard).front() != p.shard) continue;
          Part part{.memory = memory,
                    .level = Level::work,
                    .place = {part_.place.recipe, part_.place.family, p},
                    .leaves = leaves_of_recompute(family_, p) * choices(family_.recomputes)};
          raise(part, std::max(time, floor_of(p)));
          keep(part);
        }
  }
}

// What the passes of all microbatches take on the mean stage, priced for all families of the same
// sizes together. Halves of a backward and paired directions have prices of their own.
Seconds Expander::floor_of(GridPoint p) const {
  const std::vector<PipelineOption>& pipelines =
      choice(family_.micro_batches, p.micro_batch).pipelines;
  const bool apart = std::any_of(pipelines.begin(), pipelines.end(), [](const PipelineOption& o) {
    return splits_backward(o.schedule) || pairs_directions(o.schedule);
  });
  if (apart || ground_.floors == nullptr) return Seconds(0);
  p.zero = choices(choice(family_.shards, p.shard).zero_stages) - 1;
  const Layout layout = family_.layout(p);
  const Seconds pass =
      ground_.floors->of(ground_.context, ground_.model, ground_.job, recipe_.stack, layout);
  return pass * static_cast<double>(layout.microbatches(ground_.job)) /
             static_cast<double>(layout.pp) +
         recipe_.stack.host.step_overhead.get();
}

void Expander::raise(Part& part, const Part& by) const {
  raise(part,
        {.time = by.time, .energy_per_gpu = by.energy / static_cast<double>(family_.base.gpus())});
}

void Expander::raise(Part& part, Seconds time) const {
  raise(part, {.time = time, .energy_per_gpu = ground_.context.device.idle_power * time});
}

// Energy does not add up over passes as time does, so that it needs every pipeline's own.
void Expander::bound_by_work(PipelineFloor& floor, const RecomputeOption& again, Part& part) const {
  if (bounds_energy())
    raise(part, floor.with_energy(part.place.point, again));
  else
    raise(part, floor.time(part.place.point, again, Links::anywhere));
}

// With the collectives of every place that ranks may have, until one of them leaves hope.
void Expander::bound_by_places(PipelineFloor& floor, Part& part) const {
  std::vector<PlaceOfPasses> known;
  Seconds least(infinite);
  GridPoint p = part.place.point;
  for (const std::int32_t shard : shards_like(family_, point_.shard)) {
    p.shard = shard;
    const ShardOption& option = choice(family_.shards, shard);
    for (p.rank = 0; p.rank < choices(option.ranks); ++p.rank) {
      const PlaceOfPasses place = floor.place_of_passes(p);
      if (std::find(known.begin(), known.end(), place) != known.end()) continue;
      known.push_back(place);
      least = std::min(least, floor.time(p, {}, Links::real));
      Part here = part;
      raise(here, least);
      if (!cutoff_.rules_out(here)) return;
    }
  }
  raise(part, least);
}

// Of full recompute the fewest layers that are ruled out; none where all layers leave hope. Layers
// are priced once for all numbers of them.
std::optional<Part> Expander::too_many_layers(PipelineFloor& floor, const Part& bounded) const {
  std::optional<Part> found;
  const auto leaves_hope = [&](std::int32_t recompute) {
    Part part = bounded;
    part.place.point.recompute = recompute;
    bound_by_work(floor, choice(family_.recomputes, recompute), part);
    if (!cutoff_.rules_out(part)) return true;
    found = part;
    return false;
  };
  std::vector<std::int32_t> fewer;  // than all, ascending as in the grid
  for (std::int32_t i = 0; i < choices(family_.recomputes); ++i) {
    const RecomputeOption& again = choice(family_.recomputes, i);
    if (again.choice.recompute != Recompute::full) continue;
    if (again.layers > 0)
      fewer.push_back(i);
    else if (leaves_hope(i))
      return std::nullopt;
  }
  static_cast<void>(std::partition_point(fewer.begin(), fewer.end(), leaves_hope));
  return found;
}

// Running something again only adds to a step.
void Expander::split_work() {
  Part bounded = part_;
  PipelineFloor floor(ground_, part_.place);
  bound_by_work(floor, {}, bounded);
  if (!cutoff_.rules_out(bounded)) bound_by_places(floor, bounded);
  std::optional<Part> too_many;
  if (!cutoff_.rules_out(bounded)) too_many = too_many_layers(floor, bounded);
  for (std::int32_t recompute = 0; recompute < choices(family_.recomputes); ++recompute) {
    Part part = bounded;
    part.level = Level::recompute;
    part.place.point.recompute = recompute;
    part.leaves = leaves_of_recompute(family_, part.place.point);
    if (too_many && (too_many->place.point.recompute == recompute ||
                     floor.adds_to(too_many->place.point, part.place.point)))
      raise(part, *too_many);
    keep(part);
  }
}

bool Expander::runs_needlessly(const GridPoint& p) const {
  return cutoff_.prune && !cutoff_.front && !cutoff_.variants &&
         recomputes_needlessly(ground_, {part_.place.recipe, part_.place.family, p});
}

bool Expander::all_run_needlessly(GridPoint p) const {
  if (p.recompute == 0) return false;
  for (const std::int32_t shard : shards_like(family_, point_.shard)) {
    p.shard = shard;
    for (p.pipeline = choices(micro_batch().pipelines); p.pipeline-- > 0;)
      if (!runs_needlessly(p)) return false;
  }
  return true;
}

// For fronts of memory, where parts that need less than any point so far must stay.
Bytes Expander::least_peak() const {
  Bytes least(infinite);
  GridPoint p = point_;
  for (const std::int32_t shard : shards_like(family_, point_.shard)) {
    p.shard = shard;
    for (p.pipeline = 0; p.pipeline < choices(micro_batch().pipelines); ++p.pipeline)
      least = std::min(least, frugal_peak(p));
  }
  return least;
}

// With the collectives of the point's place; first what all choices of recompute share.
Seconds Expander::time_at_place(PipelineFloor& floor, const GridPoint& p, Part part) const {
  const RecomputeOption& again = choice(family_.recomputes, p.recompute);
  const Seconds bare = floor.time(p, {}, Links::real);
  raise(part, bare);
  if (again.choice.recompute == Recompute::none || cutoff_.rules_out(part)) return bare;
  return floor.time(p, again, Links::real);
}

void Expander::split_recompute() {
  if (all_run_needlessly(point_)) {
    out_.pruned += part_.leaves;
    return;
  }
  if (all_too_large(ground_, part_.place)) {
    out_.rejected += part_.leaves;
    return;
  }
  Part bounded = part_;
  PipelineFloor floor(ground_, part_.place);
  const RecomputeOption& again = choice(family_.recomputes, point_.recompute);
  if (bounds_energy() && again.choice.recompute == Recompute::selective)
    bound_by_work(floor, again, bounded);
  if (cutoff_.front) bounded.memory = std::max(bounded.memory, least_peak());
  std::vector<std::pair<PlaceOfPasses, Seconds>> known;
  GridPoint p = point_;
  for (const std::int32_t shard : shards_like(family_, point_.shard)) {
    p.shard = shard;
    const ShardOption& option = choice(family_.shards, shard);
    for (p.rank = 0; p.rank < choices(option.ranks); ++p.rank) {
      Part part = bounded;
      part.level = Level::ranks;
      part.place.point = p;
      part.leaves = family_.leaves_below(micro_batch(), option) / choices(option.ranks);
      if (!cutoff_.rules_out(part)) {
        const PlaceOfPasses place = floor.place_of_passes(p);
        auto at = std::find_if(known.begin(), known.end(),
                               [&](const auto& one) { return one.first == place; });
        if (at == known.end()) at = known.insert(at, {place, time_at_place(floor, p, part)});
        raise(part, at->second);
      }
      keep(part);
    }
  }
}

void Expander::split_ranks() {
  GridPoint p = point_;
  struct Class {
    Layout like;
    StepSeries series;
    WholeModel whole;
  };
  std::vector<Class> classes;
  for (p.pipeline = 0; p.pipeline < choices(micro_batch().pipelines); ++p.pipeline) {
    Part part = part_;
    part.level = Level::pipeline;
    part.place.point = p;
    part.leaves = part_.leaves / choices(micro_batch().pipelines);
    const Layout layout = family_.layout(p);
    auto at = std::find_if(classes.begin(), classes.end(), [&](const Class& c) {
      return same_passes(c.like, layout, recipe_.stack, ground_.job);
    });
    const bool met = at != classes.end();
    if (!met) {
      classes.push_back({.like = layout, .series = series(layout, Links::real), .whole = {}});
      at = classes.end() - 1;
    }
    if ((!met || layout.recompute_layers > 0) && !pairs_directions(layout.schedule))
      at->whole = at->series.whole_model(layout);
    const Shape shape = shape_of(layout);
    if (cutoff_.front) part.memory = std::max(part.memory, frugal_peak(p));
    raise(part,
          at->whole.least(layout, ground_.job, ground_.model, recipe_.stack.sharding.partition));
    if (!cutoff_.rules_out(part, shape)) {
      if (runs_needlessly(p)) {
        out_.pruned += part.leaves;
        continue;
      }
      raise_by_stages(at->series, layout, shape, part);
    }
    keep(part, shape);
  }
}

// Stage by stage, first whatever ends the step.
void Expander::raise_by_stages(StepSeries& series, const Layout& layout, const Shape& shape,
                               Part& part) const {
  const ShardOption& option = choice(family_.shards, point_.shard);
  std::vector<Layout> endings;
  GridPoint leaf = part.place.point;
  for (leaf.zero = 0; leaf.zero < choices(option.zero_stages); ++leaf.zero)
    for (leaf.bucket = 0; leaf.bucket < choices(option.buckets); ++leaf.bucket)
      endings.push_back(family_.layout(leaf));
  raise(part, series.least(layout, endings, [&](const StepLeast& least) {
    Part first = part;
    raise(first, least);
    return !cutoff_.rules_out(first, shape);
  }));
}

// Returns whether it fits.
bool Expander::run_layout(StepSeries& series, const GridPoint& point) {
  const Layout layout = family_.layout(point);
  if (!fits(layout)) {
    ++out_.rejected;
    return false;
  }
  Part leaf = part_;
  leaf.place.point = point;
  if (cutoff_.front) leaf.memory = peak_of(layout);
  raise(leaf, series.least(layout));
  if (cutoff_.rules_out(leaf, shape_of(layout))) {
    ++out_.pruned;
    return true;
  }
  out_.found.push_back(found_of(ground_, leaf.place, layout, series.step(layout)));
  return true;
}

void Expander::run_layouts() {
  const ShardOption& option = choice(family_.shards, point_.shard);
  StepSeries series(ground_.context, ground_.model, ground_.job, family_.layout(point_),
                    recipe_.stack);
  // What fits as it is gains nothing from offloading but memory.
  const bool only_speed = !cutoff_.front && !cutoff_.variants && cutoff_.prune;
  GridPoint p = point_;
  for (p.zero = 0; p.zero < choices(option.zero_stages); ++p.zero)
    for (p.bucket = 0; p.bucket < choices(option.buckets); ++p.bucket)
      for (p.offload = 0; p.offload < choices(family_.offloads); ++p.offload)
        if (run_layout(series, p) && p.offload == 0 && only_speed) {
          out_.pruned += choices(family_.offloads) - 1;
          break;
        }
}

}  // namespace

bool Cutoff::rules_out(const Part& part, const std::optional<Shape>& shape) const {
  if (!prune || !incumbents.hopeless(part.least, part.place, shape)) return false;
  return !front || front->covers(part.time, part.energy, part.memory, part.place);
}

std::vector<Part> whole_grid(const SearchGround& ground) {
  std::vector<Part> parts;
  for (std::size_t r = 0; r < ground.spaces.size(); ++r) {
    const std::vector<Family>& families = ground.spaces[r].families();
    for (std::size_t f = 0; f < families.size(); ++f)
      parts.push_back({.level = Level::family,
                       .place = {static_cast<std::int32_t>(r), static_cast<std::int32_t>(f), {}},
                       .leaves = families[f].leaves()});
  }
  return parts;
}

Expansion expand(const SearchGround& ground, const Part& part, const Cutoff& cutoff) {
  return Expander(ground, part, cutoff).run();
}

}  // namespace orrery
