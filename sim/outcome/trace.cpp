// SPDX-License-Identifier: Apache-2.0
// Writes a step as trace events.
#include "sim/outcome/trace.h"

#include <fmt/format.h>

#include "sim/engine/step/pipeline.h"
#include "sim/outcome/trace_events.h"

namespace orrery {
namespace {

std::string pass_name(const Pass& pass) {
  return fmt::format("{} {}.{}", to_text(pass.kind), pass.microbatch, pass.chunk);
}

std::string category(PassKind kind) { return kind == PassKind::forward ? "forward" : "backward"; }

}  // namespace

std::string trace_json(const Scenario& s, const Prediction& p) {
  const StepContext context = step_context(s.cluster);
  const StepPipeline pipeline = step_pipeline(context, s.model, s.job, s.layout, s.stack);
  const std::int64_t passes =
      3 * pipeline.shape.stages * pipeline.shape.chunks * pipeline.shape.microbatches;
  if (passes > 1'000'000)
    throw Error({.file = "--trace-out",
                 .path = "",
                 .found = fmt::format("{} passes", passes),
                 .expected = "at most a million: use a smaller global batch for a picture",
                 .nearest = ""});
  TraceEvents events;
  std::int64_t stage = 0;
  for (const auto& row : trace_pipeline(pipeline.shape, pipeline.costs)) {
    events.name_track(0, stage, fmt::format("stage {}", stage));
    Ticks last;
    for (const PassTime& t : row) {
      events.slice(pass_name(t.pass), category(t.pass.kind), 0, stage, t.start, t.end - t.start);
      last = max(last, t.end);
    }
    for (Label label : {Label::data_comm, Label::optimizer}) {
      const Ticks length = p.stages[static_cast<std::size_t>(stage)][label];
      // ZeRO-3 traffic is inside the passes already.
      if (length.ps == 0 || (label == Label::data_comm && s.layout.zero_stage == 3)) continue;
      events.slice(std::string(to_text(label)), "step end", 0, stage, last, length);
      last += length;
    }
    ++stage;
  }
  return events.text();
}

}  // namespace orrery
