// SPDX-License-Identifier: Apache-2.0
// Knows when every stage of a pipeline runs: exact in picoseconds, with the steady state
// multiplied.
#pragma once

#include <vector>

#include "sim/base/units/ticks.h"
#include "workloads/layout/pipeline.h"

namespace orrery {

// Times of one pass of one chunk, by pipeline position. `backward` holds input and weight
// gradients; split schedules use input_gradient and weight_gradient. `send_forward` is the transfer
// of the chunk's output to the next position, `send_backward` of its input gradient to the previous
// one (0 at the ends; also between the last stage of chunk c and the first of chunk c + 1).
struct ChunkCost {
  Ticks forward, backward, input_gradient, weight_gradient;
  Ticks send_forward, send_backward;
};

struct PipelineCosts {
  // [stage * chunks + chunk], with chunks_per_stage(shape) chunks. In a V, chunk 1 sends its output
  // to the stage before and its input gradient to the stage after. dual_pipe: chunk 1 of a stage is
  // position stages - 1 - stage of the other direction; without a second chunk (size = stages) it
  // costs what that position costs in the first direction.
  std::vector<ChunkCost> chunk;
  bool sends_block = false;  // the sender's compute stream waits for its transfer
  // dual_pipe and dual_pipe_v: time of a forward of chunk c run together with a backward of the
  // other chunk, at [stage * 2 + c]; empty: one after the other. Both start when both inputs are
  // there and end together.
  std::vector<Ticks> paired;
};

// The same costs with all that `costs` may leave out: both chunks and the paired times of
// dual_pipe, and no sends at the ends. Aborts when sizes do not fit the shape.
PipelineCosts complete_costs(const PipelineShape& shape, const PipelineCosts& costs);

// What one stage did. first start is at or after 0; idle = end - sum of busy passes - blocked.
struct StageRun {
  Ticks end;                               // of its last pass
  Ticks busy;                              // in passes
  Ticks blocked;                           // in blocking sends before `end`
  std::vector<Ticks> first_forward;        // per chunk: start of its first forward
  std::vector<Ticks> last_backward;        // per chunk: end of its last backward or weight gradient
  std::vector<Ticks> last_backward_start;  // per chunk: start of that pass
};

struct PipelineRun {
  std::vector<StageRun> stages;
  Ticks end;                        // of the last pass of all
  std::int64_t passes_run = 0;      // evaluated one by one
  std::int64_t passes_skipped = 0;  // multiplied by the period
};

// Evaluates the schedule: a pass starts when its stage is free and its input has arrived. Steady
// states are detected (sim/engine/pipeline/steady_state.h) and multiplied; `collapse` false runs
// every pass: the result is the same to the picosecond. Memory does not grow with the microbatches.
// Error when the end could pass 106 days; a shape that is invalid_shape aborts.
PipelineRun run_pipeline(const PipelineShape& shape, const PipelineCosts& costs,
                         bool collapse = true);

// Start and end of every pass, uncollapsed, for traces. [stage][index in stage_order]. Driven by an
// EventQueue over stage_order and shares no code with run_pipeline, which it checks.
struct PassTime {
  Pass pass;
  Ticks start, end;
};
std::vector<std::vector<PassTime>> trace_pipeline(const PipelineShape& shape,
                                                  const PipelineCosts& costs);

}  // namespace orrery
