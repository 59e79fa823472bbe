// SPDX-License-Identifier: Apache-2.0
// Writes a step as trace events.
#include "sim/outcome/trace.h"

#include <fmt/format.h>

#include "sim/base/json/tree.h"
#include "sim/engine/step/pipeline.h"

namespace orrery {
namespace {

std::string pass_name(const Pass& pass) {
  switch (pass.kind) {
    case PassKind::forward:
      return fmt::format("forward {}.{}", pass.microbatch, pass.chunk);
    case PassKind::backward:
      return fmt::format("backward {}.{}", pass.microbatch, pass.chunk);
    case PassKind::input_gradient:
      return fmt::format("input gradient {}.{}", pass.microbatch, pass.chunk);
    case PassKind::weight_gradient:
      return fmt::format("weight gradient {}.{}", pass.microbatch, pass.chunk);
  }
  return "";
}

std::string category(PassKind kind) { return kind == PassKind::forward ? "forward" : "backward"; }

// Trace times are microseconds.
double microseconds_of(Ticks t) { return static_cast<double>(t.ps) * 1e-6; }

Json event(const std::string& name, const std::string& kind, std::size_t stage, Ticks start,
           Ticks length) {
  return {{"name", name},
          {"cat", kind},
          {"ph", "X"},
          {"pid", 0},
          {"tid", stage},
          {"ts", microseconds_of(start)},
          {"dur", microseconds_of(length)}};
}

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
  Json events = Json::array();
  std::size_t stage = 0;
  for (const auto& row : trace_pipeline(pipeline.shape, pipeline.costs)) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 0},
                      {"tid", stage},
                      {"args", {{"name", fmt::format("stage {}", stage)}}}});
    Ticks last;
    for (const PassTime& t : row) {
      events.push_back(
          event(pass_name(t.pass), category(t.pass.kind), stage, t.start, t.end - t.start));
      last = max(last, t.end);
    }
    for (Label label : {Label::data_comm, Label::optimizer}) {
      const Ticks length = p.stages[stage][label];
      // ZeRO-3 traffic is inside the passes already.
      if (length.ps == 0 || (label == Label::data_comm && s.layout.zero_stage == 3)) continue;
      events.push_back(event(std::string(to_text(label)), "step end", stage, last, length));
      last += length;
    }
    ++stage;
  }
  const Json out = {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
  return out.dump() + "\n";
}

}  // namespace orrery
