// SPDX-License-Identifier: Apache-2.0
// Runs one step: prices every distinct pass once, runs the pipeline, adds what data parallelism
// leaves visible and the optimizer.
#include "sim/engine/step/step.h"

#include <algorithm>
#include <optional>

#include "sim/engine/step/network_use.h"
#include "sim/engine/step/pipeline.h"
#include "sim/engine/step/tail.h"
#include "workloads/operations/inference.h"
#include "workloads/operations/training.h"

namespace orrery {

StepProgram lower_step(const Model& model, const Job& job, const Layout& layout,
                       const Stack& stack) {
  return is_training(job.task) ? lower_training(model, job, layout, stack)
                               : lower_inference(model, job, layout, stack);
}

namespace {

// Runs the schedule for `each` microbatches at a time (0: all), rounded up to whole rounds of the
// stages. A run starts when the one before has ended: its first stage has the last pass. Schedules
// that need two microbatches a stage take what is left over, where it is less, into the last run.
PipelineRun run_by_batches(const StepPipeline& p, std::int64_t each) {
  const bool two_a_stage = holds_two_chunks(p.shape.schedule);
  const std::int64_t round = (two_a_stage ? 2 : 1) * p.shape.stages;
  const std::int64_t batch = (each + round - 1) / round * round;
  const std::int64_t all = p.shape.microbatches;
  if (each <= 0 || batch >= all) return run_pipeline(p.shape, p.costs);
  std::int64_t full = all / batch, rest = all % batch;
  if (two_a_stage && rest > 0 && rest < round) {
    --full;
    rest += batch;
  }
  if (full == 0) return run_pipeline(p.shape, p.costs);
  PipelineShape shape = p.shape;
  shape.microbatches = batch;
  PipelineRun sum = run_pipeline(shape, p.costs);
  const PipelineRun whole = sum;
  // `times` more of one run, the last of which says when passes end.
  const auto append = [&sum](const PipelineRun& run, std::int64_t times) {
    const Ticks start = sum.end + run.end * (times - 1);
    for (std::size_t s = 0; s < sum.stages.size(); ++s) {
      StageRun& to = sum.stages[s];
      const StageRun& from = run.stages[s];
      to.end = start + from.end;
      to.busy += from.busy * times;
      to.blocked += from.blocked * times;
      for (std::size_t c = 0; c < to.last_backward.size(); ++c) {
        to.last_backward[c] = start + from.last_backward[c];
        to.last_backward_start[c] = start + from.last_backward_start[c];
      }
    }
    sum.end = start + run.end;
    sum.passes_run += run.passes_run;
    sum.passes_skipped += run.passes_skipped + (times - 1) * run.passes_run;
  };
  if (full > 1) append(whole, full - 1);
  shape.microbatches = rest;
  if (rest > 0) append(run_pipeline(shape, p.costs), 1);
  return sum;
}

// What a stage's host takes to dispatch its passes.
Ticks dispatch_time(const PricedStep& step, const StepPipeline& p, std::int64_t stage) {
  Ticks host;
  for (std::int64_t c = 0; c < p.shape.chunks; ++c) {
    const ChunkTime& t = step.chunks.at(stage, c);
    const Ticks both =
        t.forward.host + t.backward.host + t.input_gradient.host + t.weight_gradient.host;
    host += both * microbatches_a_chunk(step.asked.layout.schedule, p.shape.microbatches);
  }
  return host;
}

// How much longer a host that ran ahead, and was caught up with, lets a stage's last pass take.
Ticks paced_by_host(const PricedStep& step, const StepPipeline& p, std::int64_t stage,
                    const StageRun& run) {
  const Ticks most = most_paced_by_host(step, stage);
  if (most == Ticks{}) return {};
  return max(Ticks{}, std::min(most, dispatch_time(step, p, stage) - run.end));
}

// When hosts let each stage end its last pass. Those that run ahead dispatch their own passes one
// after the other from the start, and a last backward waits for that of the stage after it.
std::vector<Ticks> host_ends(const PricedStep& step, const StepPipeline& p, const PipelineRun& run,
                             const std::vector<Tail>& tails) {
  const Layout& layout = step.asked.layout;
  std::vector<Ticks> ends;
  for (const StageRun& stage : run.stages) ends.push_back(stage.end);
  const bool ahead = step.asked.runs_ahead();
  const auto calls = [](const Tail& tail) { return tail.host > Ticks{}; };
  if (!ahead && std::none_of(tails.begin(), tails.end(), calls)) return ends;
  for (std::int64_t s = layout.pp - 1; s >= 0; --s) {
    const auto i = static_cast<std::size_t>(s);
    const ChunkCost& own = p.costs.chunk[i * static_cast<std::size_t>(p.shape.chunks)];
    // Gradients' calls stand between a last backward's layers. A host that did not run ahead
    // dispatches those as well meanwhile.
    const ChunkTime& t = step.chunks.at(s, 0);
    const Ticks passes = t.backward.host + t.input_gradient.host + t.weight_gradient.host;
    const Ticks last = tails[i].host + (ahead ? Ticks{} : passes);
    const Ticks late = max(Ticks{}, last - own.backward);
    ends[i] = max(ends[i] + late, dispatch_time(step, p, s) + tails[i].host);
    if (s + 1 == layout.pp || splits_backward(layout.schedule)) continue;
    const ChunkCost& next = p.costs.chunk[(i + 1) * static_cast<std::size_t>(p.shape.chunks)];
    ends[i] = max(ends[i], ends[i + 1] + next.send_backward + own.backward + late);
  }
  return ends;
}

}  // namespace

StepResult run_training(const PricedStep& step) {
  const Layout& layout = step.asked.layout;
  const StepPipeline p = step_pipeline(step);
  const PipelineRun run = run_by_batches(p, step.asked.stack.communication.schedule_microbatches);
  StepResult result;
  StageTails tail(step, ending_of(layout));
  std::vector<Tail> tails;
  for (std::int64_t s = 0; s < layout.pp; ++s) {
    const StageRun& stage = run.stages[static_cast<std::size_t>(s)];
    tails.push_back(tail.of(s, stage, paced_by_host(step, p, s, stage)));
  }
  const std::vector<Ticks> ends = host_ends(step, p, run, tails);
  for (std::size_t s = 0; s < tails.size(); ++s)
    result.step = max(result.step, ends[s] + tails[s].total());
  const bool split = splits_backward(layout.schedule);
  const std::int64_t per_chunk = microbatches_a_chunk(layout.schedule, p.shape.microbatches);
  Joules energy;
  double burst = 0, sustained = 0;
  std::int64_t sends_most = 0;
  for (std::int64_t s = 0; s < layout.pp; ++s) {
    StageBreakdown stage;
    Bytes up, out;
    for (std::int64_t c = 0; c < p.shape.chunks; ++c) {
      const ChunkTime& t = step.chunks.at(s, c);
      stage[Label::pipeline_comm] +=
          p.hidden[static_cast<std::size_t>(s * p.shape.chunks + c)] * per_chunk;
      const auto count = [&](const PassTicks& pass) {
        for (std::size_t l = 0; l < stage.label.size(); ++l)
          stage.label[l] += pass.label[l] * per_chunk;
        energy += pass.energy * static_cast<double>(per_chunk);
        const double seconds = to_seconds(pass.total).si() * static_cast<double>(per_chunk);
        sustained += seconds;
        burst += seconds / pass.throttle;
      };
      count(t.forward);
      if (split) {
        count(t.input_gradient);
        count(t.weight_gradient);
      } else {
        count(t.backward);
      }
      up += t.scale_up_bytes * static_cast<double>(per_chunk);
      out += t.scale_out_bytes * static_cast<double>(per_chunk);
      // Each pass hands its result on, but for the ends of the pipeline.
      const bool turns = is_v_shaped(layout.schedule) && s + 1 == layout.pp;
      const double ways = turns ? 1 : (t.program.head ? 0 : 1) + (t.program.embedding ? 0 : 1);
      if (layout.pp > 1)
        (step.layers.placement.pipeline.tier == 0 ? up : out) +=
            ways * step.layers.program->send_bytes * static_cast<double>(per_chunk);
    }
    const auto i = static_cast<std::size_t>(s);
    stage[Label::pipeline_comm] += run.stages[i].blocked;
    stage[Label::data_comm] += tails[i].data;
    stage[Label::optimizer] += tails[i].optimizer;
    stage[Label::host] += tails[i].overhead + (ends[i] - run.stages[i].end);
    stage[Label::bubble] += result.step - stage.total();
    const Bytes outside = out + tails[i].scale_out_bytes;
    if (outside > result.scale_out_bytes) sends_most = s;
    result.scale_up_bytes = std::max(result.scale_up_bytes, up + tails[i].scale_up_bytes);
    result.scale_out_bytes = std::max(result.scale_out_bytes, outside);
    result.stages.push_back(stage);
  }
  result.network = network_use(step, sends_most);
  result.throttle = burst > 0 ? sustained / burst : 1;
  result.energy_per_gpu = energy / static_cast<double>(layout.pp) +
                          step.asked.context.device.idle_power * to_seconds(result.step);
  return result;
}

StepResult run_inference(const PricedStep& step) {
  const StepPipeline p = step_pipeline(step);
  const std::int64_t stages = step.asked.layout.pp;
  StepResult result;
  Joules energy;
  for (const ChunkCost& chunk : p.costs.chunk) result.step += chunk.forward + chunk.send_forward;
  for (std::int64_t s = 0; s < stages; ++s) {
    const ChunkTime& t = step.chunks.at(s, 0);
    StageBreakdown stage;
    stage.label = t.forward.label;
    stage[Label::pipeline_comm] += p.costs.chunk[static_cast<std::size_t>(s)].send_forward;
    stage[Label::bubble] += result.step - stage.total();
    result.stages.push_back(stage);
    energy += t.forward.energy;
    result.throttle = std::max(result.throttle, t.forward.throttle);
    result.scale_up_bytes = std::max(result.scale_up_bytes, t.scale_up_bytes);
    result.scale_out_bytes = std::max(result.scale_out_bytes, t.scale_out_bytes);
  }
  result.network = network_use(step, 0);
  result.energy_per_gpu = energy / static_cast<double>(stages) +
                          step.asked.context.device.idle_power * to_seconds(result.step);
  return result;
}

namespace {

StepResult step_where_it_is(const StepCase& asked) {
  const PricedLayers layers = price_layers(asked);
  KnownChunks known;
  const PricedStep priced{asked, layers,
                          PricedChunks(asked, layers, layers.program->chunks, known)};
  return asked.training() ? run_training(priced) : run_inference(priced);
}

}  // namespace

StepResult step(const StepContext& context, const Model& model, const Job& job,
                const Layout& layout, const Stack& stack) {
  if (!context.scattered()) return step_where_it_is({context, model, job, layout, stack});
  StepContext there = context;
  std::optional<StepProgram> program;
  if (there.program == nullptr)
    there.program = &program.emplace(lower_step(model, job, layout, stack));
  const StepResult least = step_where_it_is({contiguous_context(there), model, job, layout, stack});
  return scattered_step(there, model, job, layout, stack, least);
}

StepResult scattered_step(const StepContext& context, const Model& model, const Job& job,
                          const Layout& layout, const Stack& stack, const StepResult& contiguous) {
  StepResult found = step_where_it_is({context, model, job, layout, stack});
  return found.step < contiguous.step ? contiguous : found;
}

}  // namespace orrery
