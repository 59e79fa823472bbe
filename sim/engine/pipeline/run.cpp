// SPDX-License-Identifier: Apache-2.0
// Knows when every stage of a pipeline runs: exact in picoseconds, with the steady state
// multiplied.
#include "sim/engine/pipeline/run.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/whole.h"
#include "sim/engine/pipeline/dual.h"
#include "sim/engine/pipeline/folded.h"
#include "sim/engine/pipeline/levels.h"

namespace orrery {
namespace {

// No path through the schedule has more than one forward and one backward of the slowest position
// for each (microbatch, chunk) and for each place that the pipeline takes to fill and to drain.
void check_span(const PipelineShape& shape, const PipelineCosts& costs) {
  ChunkCost most;
  for (const ChunkCost& cost : costs.chunk) {
    most.forward = max(most.forward, cost.forward + cost.send_forward);
    most.backward = max(most.backward, max(cost.backward, cost.input_gradient) +
                                           cost.weight_gradient + cost.send_backward);
  }
  for (const Ticks& pair : costs.paired) most.forward = max(most.forward, pair);
  const double one = static_cast<double>(most.forward.ps) + static_cast<double>(most.backward.ps);
  const double places = static_cast<double>(chunks_per_stage(shape)) *
                        static_cast<double>(shape.microbatches + 4 * shape.stages);
  if (one * places < 9.2e18) return;
  throw Error(
      {.file = "",
       .path = "pipeline",
       .found = fmt::format("{} microbatches of up to {:.3g} s", shape.microbatches, one * 1e-12),
       .expected = "a step that ends within 106 days",
       .nearest = ""});
}

// One stage runs its passes back to back; every schedule but the last pass is alike.
void run_single(const PipelineShape& shape, const PipelineCosts& costs, StageRun& stage) {
  const ChunkCost& cost = costs.chunk[0];
  stage.first_forward[0] = {};
  stage.end = stage.last_backward[0] = stage.busy;
  const Ticks last = splits_backward(shape.schedule) ? cost.weight_gradient : cost.backward;
  stage.last_backward_start[0] = stage.end - last;
}

void count(const PipelineShape& shape, const PipelineCosts& costs, PipelineRun& result) {
  const bool split = splits_backward(shape.schedule);
  for (std::int64_t s = 0; s < shape.stages; ++s) {
    StageRun& stage = result.stages[at(s)];
    Ticks blocked;
    for (std::int64_t c = 0; c < shape.chunks; ++c) {
      const ChunkCost& cost = costs.chunk[at(s * shape.chunks + c)];
      stage.busy +=
          (cost.forward + (split ? cost.input_gradient + cost.weight_gradient : cost.backward)) *
          shape.microbatches;
      blocked += (cost.send_forward + cost.send_backward) * shape.microbatches;
    }
    // The last pass of a stage is a backward, and its send lies after the end, unless it is a
    // weight gradient.
    if (!split) blocked -= costs.chunk[at(s * shape.chunks)].send_backward;
    if (costs.sends_block) stage.blocked = blocked;
  }
  result.passes_run = (split ? 3 : 2) * shape.stages * shape.chunks * shape.microbatches;
}

}  // namespace

PipelineCosts complete_costs(const PipelineShape& shape, const PipelineCosts& costs) {
  const bool dual = enters_at_both_ends(shape.schedule);
  const bool folded = is_v_shaped(shape.schedule);
  const std::int64_t chunks = chunks_per_stage(shape);
  PipelineCosts full{.chunk = {}, .sends_block = costs.sends_block, .paired = costs.paired};
  if (dual && costs.chunk.size() == at(shape.stages)) {
    for (std::int64_t s = 0; s < shape.stages; ++s) {
      full.chunk.push_back(costs.chunk[at(s)]);
      full.chunk.push_back(costs.chunk[at(shape.stages - 1 - s)]);
    }
  } else {
    full.chunk = costs.chunk;
  }
  CHECK_THAT(full.chunk.size() == at(shape.stages * chunks), "one cost for every stage and chunk");
  full.chunk[0].send_backward = {};
  if (!dual && !folded) {
    full.chunk.back().send_forward = {};
    return full;
  }
  // The last stage of a V hands its work to itself, which costs nothing either.
  full.chunk[1].send_forward = {};
  full.chunk[at(shape.stages * 2 - 2)].send_forward = {};
  full.chunk[at(shape.stages * 2 - 1)].send_backward = {};
  if (shape.schedule == Schedule::zero_bubble_v) return full;
  for (std::size_t i = full.paired.size(); i < full.chunk.size() && costs.paired.empty(); ++i)
    full.paired.push_back(full.chunk[i].forward + full.chunk[i ^ 1].backward);
  CHECK_THAT(full.paired.size() == full.chunk.size(), "one paired time for every stage and chunk");
  return full;
}

namespace {

// DualPipeV is half of a DualPipe over twice the stages whose two halves are alike: both do the
// same at the same time, so that what crosses the middle is what a stage hands to itself.
std::int64_t run_unfolded(const PipelineShape& shape, const PipelineCosts& costs, bool collapse,
                          PipelineRun& result) {
  const PipelineShape whole{Schedule::dual_pipe, 2 * shape.stages, 1, 2 * shape.microbatches};
  PipelineCosts both{.chunk = {}, .sends_block = costs.sends_block, .paired = {}};
  for (std::int64_t s = 0; s < whole.stages; ++s) {
    const bool mirrored = s >= shape.stages;
    for (std::int64_t c = 0; c < 2; ++c) {
      const std::size_t of = mirrored ? at((whole.stages - 1 - s) * 2 + 1 - c) : at(s * 2 + c);
      both.chunk.push_back(costs.chunk[of]);
      both.paired.push_back(costs.paired[of]);
    }
  }
  std::vector<StageRun> stages(at(whole.stages), result.stages.front());
  const std::int64_t skipped = DualPipeRun(whole, both).run(collapse, stages, result.passes_run);
  for (std::size_t s = 0; s < result.stages.size(); ++s) result.stages[s] = stages[s];
  result.passes_run /= 2;
  return skipped / 2;
}

}  // namespace

PipelineRun run_pipeline(const PipelineShape& shape, const PipelineCosts& costs, bool collapse) {
  CHECK_THAT(!invalid_shape(shape), *invalid_shape(shape));
  const PipelineCosts full = complete_costs(shape, costs);
  check_span(shape, full);
  PipelineRun result;
  result.stages.resize(at(shape.stages));
  for (StageRun& stage : result.stages) {
    stage.first_forward.resize(at(chunks_per_stage(shape)));
    stage.last_backward.resize(at(chunks_per_stage(shape)));
    stage.last_backward_start.resize(at(chunks_per_stage(shape)));
  }
  if (shape.schedule == Schedule::dual_pipe) {
    result.passes_skipped =
        DualPipeRun(shape, full).run(collapse, result.stages, result.passes_run);
  } else if (shape.schedule == Schedule::dual_pipe_v) {
    result.passes_skipped = run_unfolded(shape, full, collapse, result);
  } else if (shape.schedule == Schedule::zero_bubble_v) {
    count(shape, full, result);
    result.passes_skipped = FoldedRun(shape, full).run(collapse, result.stages);
  } else {
    count(shape, full, result);
    if (shape.stages == 1 && shape.chunks == 1 && collapse) {
      run_single(shape, full, result.stages[0]);
      result.passes_skipped = result.passes_run;
    } else {
      result.passes_skipped = PipelineLevels(shape, full).run(collapse, result.stages);
    }
  }
  result.passes_run -= result.passes_skipped;
  for (const StageRun& stage : result.stages) result.end = max(result.end, stage.end);
  return result;
}

}  // namespace orrery
