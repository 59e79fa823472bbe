// SPDX-License-Identifier: Apache-2.0
// Bounds steps: stage by stage with what comes before, after and beside, or evenly over all stages.
#include "sim/engine/step/least.h"

#include <algorithm>
#include <array>

#include "sim/engine/step/pipeline.h"
#include "sim/engine/step/tail.h"

namespace orrery {
namespace {

// Time on a stage before its first pass: the first forwards of the stages before it.
std::vector<Ticks> fills(const StepPipeline& p, std::int64_t chunk, bool upwards) {
  const auto pp = static_cast<std::size_t>(p.shape.stages);
  std::vector<Ticks> out(pp);
  Ticks sum;
  for (std::size_t i = 0; i < pp; ++i) {
    const std::size_t s = upwards ? pp - 1 - i : i;
    out[s] = sum;
    const ChunkCost& c =
        p.costs
            .chunk[s * static_cast<std::size_t>(p.shape.chunks) + static_cast<std::size_t>(chunk)];
    sum += c.forward + c.send_forward;
  }
  return out;
}

// Time from the end of a stage's last input gradient to the end of the last of those that wait for
// it on the stages before.
std::vector<Ticks> drains(const StepPipeline& p, std::int64_t chunk, bool upwards, bool split) {
  const auto pp = static_cast<std::size_t>(p.shape.stages);
  const auto at = [&](std::size_t s) -> const ChunkCost& {
    return p.costs
        .chunk[s * static_cast<std::size_t>(p.shape.chunks) + static_cast<std::size_t>(chunk)];
  };
  std::vector<Ticks> out(pp);
  Ticks sum;
  for (std::size_t i = 1; i < pp; ++i) {
    const std::size_t s = upwards ? pp - 1 - i : i, before = upwards ? s + 1 : s - 1;
    sum += at(s).send_backward + (split ? at(before).input_gradient : at(before).backward);
    out[s] = sum;
  }
  return out;
}

// What comes before a stage's tail at the least.
struct LeastStage {
  Ticks passes;  // from the step's start to the end of the stage's passes
  Ticks chain;   // to the end of the last pass of stage 0; 0: not bounded so
  StageRun last;
};
struct LeastPasses {
  std::vector<LeastStage> stages;
  Joules energy;  // of a GPU above idle, mean over stages
};

// The time of each stage's passes, what comes before the first and after the last.
LeastPasses least_passes(const PricedStep& step) {
  const Layout& layout = step.asked.layout;
  const StepPipeline p = step_pipeline(step);
  LeastPasses out;
  const auto chunks = static_cast<std::size_t>(p.shape.chunks);
  const bool split = splits_backward(layout.schedule);
  const bool dual = enters_at_both_ends(layout.schedule);
  const std::int64_t each = microbatches_a_chunk(layout.schedule, p.shape.microbatches);
  const std::vector<Ticks> fill = fills(p, 0, false), drain = drains(p, 0, false, split);
  const std::vector<Ticks> fill_up = dual ? fills(p, 1, true) : std::vector<Ticks>{};
  out.stages.resize(static_cast<std::size_t>(layout.pp));
  for (std::size_t s = 0; s < out.stages.size(); ++s) {
    Ticks busy, ahead;  // of it: all but weight gradients
    LeastStage& stage = out.stages[s];
    stage.last.last_backward_start.reserve(chunks);
    stage.last.last_backward.reserve(chunks);
    for (std::size_t c = 0; c < chunks; ++c) {
      const ChunkCost& cost = p.costs.chunk[s * chunks + c];
      const ChunkTime& time =
          step.chunks.at(static_cast<std::int64_t>(s), static_cast<std::int64_t>(c));
      busy += (cost.forward + cost.backward) * each;
      ahead += (cost.forward + (split ? cost.input_gradient : cost.backward)) * each;
      stage.last.last_backward_start.push_back({});
      stage.last.last_backward.push_back(cost.backward);
      out.energy +=
          static_cast<double>(each) * (time.forward.energy + time.backward.energy +
                                       time.input_gradient.energy + time.weight_gradient.energy);
    }
    const Ticks start = dual ? std::min(fill[s], fill_up[s]) : fill[s];
    stage.passes = start + busy;
    if (!dual) stage.chain = start + ahead + drain[s];
  }
  out.energy = out.energy / static_cast<double>(layout.pp);
  return out;
}

// Of parameters that all their replicas share, with the memory's whole bandwidth.
Seconds update_at_full_rate(const StepCase& asked, const StepProgram& program, double parameters,
                            double expert_parameters) {
  const double owned = parameters / static_cast<double>(asked.layout.dense_replicas()) +
                       expert_parameters / static_cast<double>(asked.layout.expert_replicas());
  return Bytes(owned * program.optimizer_bytes_per_parameter) /
         asked.context.device.memory_bandwidth;
}

// The step when each stage has what `tail_of` says after its passes; where that is `enough` or
// more, at least that much of it.
template <class TailOf>
StepLeast with_tails(const PricedStep& step, const LeastPasses& passes, TailOf&& tail_of,
                     Seconds enough) {
  const std::vector<LeastStage>& stages = passes.stages;
  Ticks longest, first_tail, own_tail;
  for (std::size_t s = 0; s < stages.size() && to_seconds(longest) < enough; ++s) {
    const auto stage = static_cast<std::int64_t>(s);
    // Inner stages with the same chunks end alike.
    const bool as_before = s > 1 && s + 1 < stages.size() && step.chunks.alike(stage, stage - 1);
    if (!as_before) own_tail = tail_of(stage);
    if (s == 0) first_tail = own_tail;
    longest = std::max(longest, stages[s].passes + own_tail);
    longest = std::max(longest, stages[s].chain + first_tail);
  }
  const Seconds time = to_seconds(longest);
  return {time, passes.energy + step.asked.context.device.idle_power * time};
}

// Forward and backward, or forward, input and weight gradient, without the traffic beside.
std::array<PassTicks, 3> passes_of(const StepCase& asked, const PricedLayers& layers,
                                   const ChunkProgram& chunk) {
  const ChunkTime t = time_chunk(asked, layers, chunk, chunk, 0, false);
  if (splits_backward(asked.layout.schedule))
    return {t.forward, t.input_gradient, t.weight_gradient};
  return {t.forward, t.backward, PassTicks{}};
}

LightestLayer lightest_layer(const StepCase& asked, const PricedLayers& layers,
                             const ChunkProgram& like) {
  ChunkProgram one = like;
  one.embedding = one.head = false;
  one.modules = 0;
  constexpr Seconds never(infinite);
  LightestLayer least{never, never};
  for (std::size_t i = 0; i < like.layers.size(); ++i) {
    std::fill(one.layers.begin(), one.layers.end(), 0);
    std::fill(one.recomputed.begin(), one.recomputed.end(), 0);
    one.layers[i] = 1;
    const auto of = passes_of(asked, layers, one);
    const Seconds passes = to_seconds(of[0].total + of[1].total);
    least.passes = std::min(least.passes, passes);
    least.waits = std::min(
        least.waits, splits_backward(asked.layout.schedule) ? to_seconds(of[0].total) : passes);
  }
  return least;
}

// All chunks of a model as one.
ChunkProgram joined_chunk(const std::vector<ChunkProgram>& chunks) {
  ChunkProgram all = chunks.front();
  all.embedding = all.head = true;
  all.parameters = all.expert_parameters = all.modules = 0;
  all.trained = all.trained_experts = 0;
  std::fill(all.layers.begin(), all.layers.end(), 0);
  std::fill(all.recomputed.begin(), all.recomputed.end(), 0);
  for (const ChunkProgram& chunk : chunks) {
    for (std::size_t i = 0; i < all.layers.size(); ++i) {
      all.layers[i] += chunk.layers[i];
      all.recomputed[i] += chunk.recomputed[i];
    }
    all.modules += chunk.modules;
    all.recomputes_modules = all.recomputes_modules || chunk.recomputes_modules;
    all.parameters += chunk.parameters;
    all.expert_parameters += chunk.expert_parameters;
    all.trained += chunk.trained;
    all.trained_experts += chunk.trained_experts;
  }
  return all;
}

// Priced once for all layouts that run as many layers of each class again.
const WholePasses& known_passes(const StepCase& asked, const PricedLayers& layers,
                                const ChunkProgram& all, KnownWholes& known) {
  const bool dual = pairs_directions(asked.layout.schedule);
  const auto at = std::find_if(known.passes.begin(), known.passes.end(), [&](const WholePasses& p) {
    return p.dual == dual && same_work(p.all, all);
  });
  if (at != known.passes.end()) return *at;
  WholePasses found{.all = all, .dual = dual, .time = {}, .energy = {}};
  for (const PassTicks& pass : passes_of(asked, layers, all)) {
    found.time += to_seconds(pass.total);
    found.energy += pass.energy;
  }
  return known.passes.emplace_back(std::move(found));
}

// Layers that a chunk at this position of the model's order holds, where all are known without
// their cost.
std::int64_t layers_at(const Layout& layout, std::int64_t layers, std::int64_t position) {
  if (!layout.stage_layers.empty()) return layout.stage_layers[static_cast<std::size_t>(position)];
  const std::int64_t count = layout.pp * layout.vpp;
  return layers / count + (position < layers % count ? 1 : 0);
}

// The layers that pass on the busiest stage, with the first chunks of `thinnest` layers before its
// first and after its last pass.
Seconds busiest_chain(const LightestLayer& lightest, const Layout& layout, std::int64_t layers,
                      double thinnest, double microbatches) {
  Seconds most(0);
  for (std::int64_t s = 0; s < layout.pp; ++s) {
    std::int64_t own = 0;
    for (std::int64_t chunk = 0; chunk < layout.vpp; ++chunk)
      own += layers_at(layout, layers, layout.position(s, chunk));
    most = std::max(most, lightest.passes * (static_cast<double>(own) * microbatches) +
                              lightest.waits * (thinnest * static_cast<double>(s)));
  }
  return most;
}

}  // namespace

StepLeast least_step(const PricedStep& step, const std::vector<Layout>& endings,
                     const WorthMore& worth) {
  constexpr Seconds never(infinite);
  const LeastPasses passes = least_passes(step);
  if (endings.empty() || worth) {
    const auto no_traffic = [&](std::int64_t stage) {
      return to_ticks(step.asked.stack.host.step_overhead.get() +
                      update_at_full_rate(step.asked, *step.layers.program,
                                          step.chunks.trained(stage),
                                          step.chunks.trained_experts(stage)));
    };
    const StepLeast any = with_tails(step, passes, no_traffic, never);
    if (endings.empty() || !worth(any)) return any;
  }
  StepLeast least{.time = never, .energy_per_gpu = Joules(0)};
  for (const Layout& end : endings) {
    StageTails tails(step, ending_of(end));
    const auto tail = [&](std::int64_t stage) {
      return tails
          .of(stage, passes.stages[static_cast<std::size_t>(stage)].last,
              most_paced_by_host(step, stage))
          .total();
    };
    const StepLeast one = with_tails(step, passes, tail, least.time);
    if (one.time < least.time) least = one;
  }
  return least;
}

// One pass through all layers closes no later than the passes of its parts one after the other.
WholeModel whole_model(const StepCase& asked, const PricedLayers& layers,
                       const std::vector<ChunkProgram>& chunks, KnownWholes& known) {
  const ChunkProgram all = joined_chunk(chunks);
  const WholePasses& passes = known_passes(asked, layers, all, known);
  WholeModel out{.time = passes.time, .energy = passes.energy};
  if (!known.lightest) known.lightest = lightest_layer(asked, layers, all);
  const LightestLayer& lightest = *known.lightest;
  out.lightest = {std::min(out.time, lightest.passes), std::min(out.time, lightest.waits)};
  out.update = update_at_full_rate(asked, *layers.program, all.trained, all.trained_experts);
  out.overhead = asked.stack.host.step_overhead.get();
  return out;
}

Seconds WholeModel::least(const Layout& layout, const Job& job, const Model& model,
                          Partition partition) const {
  const auto pp = static_cast<double>(layout.pp);
  const auto microbatches = static_cast<double>(layout.microbatches(job));
  const bool counted = !enters_at_both_ends(layout.schedule) &&
                       (!layout.stage_layers.empty() || partition == Partition::even);
  const std::int64_t layers = model.layer_count();
  std::int64_t thinnest = counted && layout.pp > 1 ? layers : 0;  // of a stage's first chunk
  for (std::int64_t s = 0; s < layout.pp && thinnest > 0; ++s)
    thinnest = std::min(thinnest, layers_at(layout, layers, s));
  const auto first = static_cast<double>(thinnest);
  // The slowest stage takes as long as the mean stage at least. Before its first and after its last
  // pass a stage waits for the first chunks of those before it.
  const Seconds mean =
      (time * microbatches + update) / pp + lightest.waits * (first * (pp - 1) / 2);
  // Layers that are all alike take in proportion to their number, but for rounding.
  if (!counted || model.classes.size() != 1) return mean + overhead;
  constexpr double rounding = 1 - 1e-9;
  const Seconds busiest = busiest_chain(lightest, layout, layers, first, microbatches) * rounding;
  return std::max(mean, busiest) + overhead;
}

}  // namespace orrery
