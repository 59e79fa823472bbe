// SPDX-License-Identifier: Apache-2.0
// Lays the passes of a pipeline out in time.
#include "sim/outcome/timeline.h"

#include <algorithm>

#include "sim/engine/step/pipeline.h"

namespace orrery {
namespace {

constexpr std::int64_t most_passes = 3000;  // of a picture
// Beyond these the steady state only repeats itself.
constexpr std::int64_t most_groups = 4;  // of as many microbatches as there are stages

// As many microbatches as a picture shows well; whole groups of stages where some are left out. 0:
// too few to show the schedule.
std::int64_t drawn_microbatches(const PipelineShape& shape) {
  const std::int64_t a_microbatch = 3 * shape.stages * chunks_per_stage(shape);
  std::int64_t count =
      std::min({shape.microbatches, most_groups * shape.stages, most_passes / a_microbatch});
  if (count < shape.microbatches && count > shape.stages) count -= count % shape.stages;
  for (; count > 0; --count) {
    PipelineShape shorter = shape;
    shorter.microbatches = count;
    if (!invalid_shape(shorter)) return count;
  }
  return 0;
}

// Share of the stages' time without a pass, until the last pass of all.
double idle_share(const PipelineRun& run) {
  double busy = 0;
  for (const StageRun& stage : run.stages) busy += to_seconds(stage.busy).si();
  return 1 - busy / (static_cast<double>(run.stages.size()) * to_seconds(run.end).si());
}

}  // namespace

std::optional<Timeline> step_timeline(const Scenario& s) {
  if (!is_training(s.job.task) || s.layout.pp == 1) return std::nullopt;
  StepPipeline pipeline = step_pipeline(step_context(s.cluster), s.model, s.job, s.layout, s.stack);
  Timeline timeline{.microbatches = drawn_microbatches(pipeline.shape),
                    .of = pipeline.shape.microbatches,
                    .idle = idle_share(run_pipeline(pipeline.shape, pipeline.costs))};
  if (timeline.microbatches == 0) return std::nullopt;
  pipeline.shape.microbatches = timeline.microbatches;
  std::int64_t stage = 0;
  for (const auto& row : trace_pipeline(pipeline.shape, pipeline.costs)) {
    for (const PassTime& t : row) {
      const Seconds start = to_seconds(t.start), end = to_seconds(t.end);
      timeline.end = std::max(timeline.end, end);
      timeline.passes.push_back({stage, t.pass, start, end});
    }
    ++stage;
  }
  return timeline;
}

}  // namespace orrery
