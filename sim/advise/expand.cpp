// Splits parts of the grid, bounds what comes out, and runs single layouts.
#include "sim/advise/expand.h"

#include <algorithm>
#include <array>
#include <limits>

#include "sim/engine/memory_fit.h"
#include "sim/engine/placement.h"
#include "sim/engine/step_series.h"

namespace orrery {
namespace {

Bytes peak_memory(const SearchGround& ground, const Place& place, const Layout& layout) {
  return memory_fit(ground.model, ground.job, layout, ground.recipe(place).stack, ground.device)
      .peak;
}

bool shards_all(const ShardOption& shard) { return shard.zero_stages.front() == 3; }

// Shard options whose passes are alike without a network: those of ZeRO-3, or the others.
std::vector<std::int32_t> shards_like(const Family& family, std::int32_t first) {
  std::vector<std::int32_t> all;
  for (std::int32_t i = 0; i < choices(family.shards); ++i)
    if (shards_all(choice(family.shards, i)) == shards_all(choice(family.shards, first)))
      all.push_back(i);
  return all;
}

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
  // On the accelerator: what a host cannot hold, it may hold a part of.
  bool fits_alone(const Layout& layout) const {
    return accelerator_fits(ground_.model, ground_.job, layout, recipe_.stack, ground_.device);
  }
  Bytes peak_of(const Layout& layout) const { return peak_memory(ground_, part_.place, layout); }
  // With all that saves memory: most shards, small buckets, everything offloaded.
  Bytes frugal_peak(GridPoint p) const {
    const ShardOption& shard = choice(family_.shards, p.shard);
    p.zero = choices(shard.zero_stages) - 1;
    p.bucket = choices(shard.buckets) > 1 ? 1 : 0;
    p.offload = choices(family_.offloads) - 1;
    return peak_of(family_.layout(p));
  }
  Bytes least_peak() const;
  bool all_too_large() const;
  Bytes least_static() const;
  Seconds floor_of(GridPoint p) const;
  Seconds least_of_pipelines(GridPoint p, const RecomputeOption& again, Links links) const;
  // The least of all pipelines, whatever the place of ranks.
  void bound_by_work(const RecomputeOption& again, Part& part) const;
  void bound_by_pipelines(const RecomputeOption& again, Part& part) const;
  void bound_by_places(Part& part) const;
  // All that the passes of a layout depend on of its place: groups, and ranks of a domain.
  using PlaceOfPasses = std::pair<std::array<GroupShape, 12>, std::int64_t>;
  PlaceOfPasses place_of_passes(const Layout& layout, bool shards) const;
  StepSeries series(const Layout& layout, Links links) const {
    return StepSeries(ground_.context, ground_.model, ground_.job, layout, recipe_.stack, links);
  }
  void raise(Part& part, const StepLeast& least) const;
  void raise(Part& part, Seconds time) const;
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
  const Recipe& recipe_;
  const GridPoint& point_;
  Expansion out_;
};

void Expander::raise(Part& part, const StepLeast& least) const {
  part.time = std::max(part.time, least.time);
  part.energy =
      std::max(part.energy, least.energy_per_gpu * static_cast<double>(family_.base.gpus()));
  part.least = score(ground_, part.time, part.energy);
}

// Parameters, gradients and optimizer states lie somewhere: the fullest stage has the mean at
// least, however layers are divided.
Bytes Expander::least_static() const {
  Bytes least(std::numeric_limits<double>::infinity());
  for (std::int32_t shard = 0; shard < choices(family_.shards); ++shard) {
    GridPoint p;
    p.shard = shard;
    p.zero = choices(choice(family_.shards, shard).zero_stages) - 1;
    p.offload = choices(family_.offloads) - 1;
    const auto stages =
        training_memory(ground_.model, ground_.job, family_.layout(p), recipe_.stack);
    Bytes sum;
    for (const StageMemory& s : stages)
      sum += s[MemoryCategory::parameters] + s[MemoryCategory::gradients] +
             s[MemoryCategory::optimizer];
    least = std::min(least, sum / static_cast<double>(stages.size()));
  }
  return least;
}

void Expander::split_sizes() {
  const Bytes memory = least_static();
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
    Seconds time(std::numeric_limits<double>::infinity());
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
         recipe_.stack.step_overhead.get();
}

// Of all pipelines the least, at the point's place of ranks or, without links, at any.
Seconds Expander::least_of_pipelines(GridPoint p, const RecomputeOption& again, Links links) const {
  p.zero = choices(choice(family_.shards, p.shard).zero_stages) - 1;
  std::vector<std::pair<Layout, WholeModel>> classes;
  Seconds least(std::numeric_limits<double>::infinity());
  for (p.pipeline = 0; p.pipeline < choices(micro_batch().pipelines); ++p.pipeline) {
    Layout layout = family_.layout(p);
    layout.set(again.choice);
    layout.recompute_layers = 0;
    auto at = std::find_if(classes.begin(), classes.end(), [&](const auto& c) {
      return same_passes(c.first, layout, recipe_.stack, ground_.job);
    });
    if (at == classes.end()) {
      // What directions hide of each other does not add up over layers.
      const Links known = pairs_directions(layout.schedule) ? Links::anywhere : links;
      classes.emplace_back(layout, series(layout, known).whole_model(layout));
      at = classes.end() - 1;
    }
    least = std::min(least,
                     at->second.least(layout, ground_.job, ground_.model, recipe_.stack.partition));
  }
  return least;
}

void Expander::raise(Part& part, Seconds time) const {
  raise(part, {.time = time, .energy_per_gpu = ground_.context.device.idle_power * time});
}

// Energy does not add up over passes as time does, so that it needs every pipeline's own.
void Expander::bound_by_work(const RecomputeOption& again, Part& part) const {
  if (cutoff_.by_energy || ground_.objective == Objective::energy)
    bound_by_pipelines(again, part);
  else
    raise(part, least_of_pipelines(part.place.point, again, Links::anywhere));
}

// With the collectives of every place that ranks may have, until one of them leaves hope.
void Expander::bound_by_places(Part& part) const {
  std::vector<PlaceOfPasses> known;
  Seconds least(std::numeric_limits<double>::infinity());
  GridPoint p = part.place.point;
  for (const std::int32_t shard : shards_like(family_, point_.shard)) {
    p.shard = shard;
    const ShardOption& option = choice(family_.shards, shard);
    for (p.rank = 0; p.rank < choices(option.ranks); ++p.rank) {
      const PlaceOfPasses place = place_of_passes(family_.layout(p), shards_all(option));
      if (std::find(known.begin(), known.end(), place) != known.end()) continue;
      known.push_back(place);
      least = std::min(least, least_of_pipelines(p, {}, Links::real));
      Part here = part;
      raise(here, least);
      if (!cutoff_.rules_out(here)) return;
    }
  }
  raise(part, least);
}

Expander::PlaceOfPasses Expander::place_of_passes(const Layout& layout, bool shards) const {
  const Placement p = place(layout, ground_.context.fabric);
  PlaceOfPasses of{
      {p.tensor, p.context, p.context_heads, p.context_rings, p.expert, p.expert_tensor, p.data,
       p.data_context, p.shard, p.shard_replica, p.expert_shard, p.expert_shard_replica},
      p.ranks_per_domain};
  if (!shards) std::fill(of.first.begin() + 6, of.first.end(), GroupShape{});
  return of;
}

void Expander::bound_by_pipelines(const RecomputeOption& again, Part& part) const {
  GridPoint p = part.place.point;
  p.zero = choices(choice(family_.shards, p.shard).zero_stages) - 1;
  std::vector<std::pair<Layout, StepSeries>> classes;
  StepLeast least{.time = Seconds(std::numeric_limits<double>::infinity()),
                  .energy_per_gpu = Joules(std::numeric_limits<double>::infinity())};
  for (p.pipeline = 0; p.pipeline < choices(micro_batch().pipelines); ++p.pipeline) {
    Layout layout = family_.layout(p);
    layout.set(again.choice);
    layout.recompute_layers = again.layers;
    auto at = std::find_if(classes.begin(), classes.end(), [&](const auto& c) {
      return same_passes(c.first, layout, recipe_.stack, ground_.job);
    });
    if (at == classes.end()) {
      classes.emplace_back(layout, series(layout, Links::anywhere));
      at = classes.end() - 1;
    }
    const StepLeast one = at->second.least(layout);
    least.time = std::min(least.time, one.time);
    least.energy_per_gpu = std::min(least.energy_per_gpu, one.energy_per_gpu);
  }
  raise(part, least);
}

// Running something again only adds to a step.
void Expander::split_work() {
  Part bounded = part_;
  bound_by_work({}, bounded);
  if (!cutoff_.rules_out(bounded)) bound_by_places(bounded);
  GridPoint p = point_;
  for (p.recompute = 0; p.recompute < choices(family_.recomputes); ++p.recompute) {
    Part part = bounded;
    part.level = Level::recompute;
    part.place.point = p;
    part.leaves = leaves_of_recompute(family_, p);
    keep(part);
  }
}

// Whether no schedule, sharding or offload makes it fit.
bool Expander::all_too_large() const {
  GridPoint p = point_;
  for (const std::int32_t shard : shards_like(family_, point_.shard)) {
    p.shard = shard;
    const ShardOption& option = choice(family_.shards, shard);
    p.zero = choices(option.zero_stages) - 1;
    // Of buckets that can be chosen the smallest.
    p.bucket = choices(option.buckets) > 1 ? 1 : 0;
    const auto& pipelines = micro_batch().pipelines;
    const bool plain = pipelines.front().vpp == 1;
    for (p.pipeline = 0; p.pipeline < choices(pipelines); ++p.pipeline) {
      // Interleaving holds more microbatches than 1F1B, on stages that 1F1B has as well.
      if (plain && choice(pipelines, p.pipeline).schedule == Schedule::interleaved) continue;
      for (const std::int32_t offload : {choices(family_.offloads) - 1, 0}) {
        p.offload = offload;
        if (fits_alone(family_.layout(p))) return false;
      }
    }
  }
  return true;
}

// For fronts of memory, where parts that need less than any point so far must stay.
Bytes Expander::least_peak() const {
  Bytes least(std::numeric_limits<double>::infinity());
  GridPoint p = point_;
  for (const std::int32_t shard : shards_like(family_, point_.shard)) {
    p.shard = shard;
    for (p.pipeline = 0; p.pipeline < choices(micro_batch().pipelines); ++p.pipeline)
      least = std::min(least, frugal_peak(p));
  }
  return least;
}

void Expander::split_recompute() {
  Part bounded = part_;
  const RecomputeOption& again = choice(family_.recomputes, point_.recompute);
  if (again.choice.recompute != Recompute::none && again.layers == 0) bound_by_work(again, bounded);
  if (cutoff_.rules_out(bounded)) {
    out_.pruned += part_.leaves;
    return;
  }
  if (all_too_large()) {
    out_.rejected += part_.leaves;
    return;
  }
  if (cutoff_.front) bounded.memory = std::max(bounded.memory, least_peak());
  GridPoint p = point_;
  for (const std::int32_t shard : shards_like(family_, point_.shard)) {
    p.shard = shard;
    const ShardOption& option = choice(family_.shards, shard);
    for (p.rank = 0; p.rank < choices(option.ranks); ++p.rank) {
      Part part = bounded;
      part.level = Level::ranks;
      part.place.point = p;
      part.leaves = family_.leaves_below(micro_batch(), option) / choices(option.ranks);
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
    if (at == classes.end()) {
      classes.push_back({.like = layout, .series = series(layout, Links::real), .whole = {}});
      at = classes.end() - 1;
      if (!pairs_directions(layout.schedule)) at->whole = at->series.whole_model(layout);
    }
    const Shape shape = shape_of(layout);
    if (cutoff_.front) part.memory = std::max(part.memory, frugal_peak(p));
    raise(part, at->whole.least(layout, ground_.job, ground_.model, recipe_.stack.partition));
    if (!cutoff_.rules_out(part, shape)) raise_by_stages(at->series, layout, shape, part);
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

double score(const SearchGround& ground, Seconds time, Joules energy) {
  // The price of an accelerator-hour is the same for every layout: only its hours count.
  if (ground.objective != Objective::energy) return time.si();
  return (energy + ground.host_power * time).si() / tokens_per_step(ground.job, 1);
}

Found found_of(const SearchGround& ground, const Place& place, const Layout& layout,
               const StepResult& run) {
  const double gpus = static_cast<double>(layout.gpus());
  Found found{.candidate = {.layout = layout,
                            .step_time = to_seconds(run.step),
                            .energy_per_step = run.energy_per_gpu * gpus,
                            .peak_memory = peak_memory(ground, place, layout)},
              .place = place};
  found.candidate.tokens_per_second_per_gpu =
      tokens_per_step(ground.job, 1) / found.candidate.step_time.si() / gpus;
  found.score = score(ground, found.candidate.step_time, found.candidate.energy_per_step);
  return found;
}

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
