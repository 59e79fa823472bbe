// SPDX-License-Identifier: Apache-2.0
// Asks the questions about better hardware that are worth it, and reads from them what limits.
#include "sim/explain/levers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/sorting.h"
#include "sim/base/text/words.h"
#include "sim/engine/placement.h"
#include "sim/engine/step/pipeline.h"
#include "sim/engine/step/step.h"

namespace orrery {
namespace {

constexpr double nudge = 1.02;

StepResult run(const Scenario& s) {
  return step(step_context(s), s.model, s.job, s.layout, s.stack);
}

std::vector<Counterfactual> questions(const Scenario& s) {
  std::vector<Counterfactual> all = {
      {.name = "15% faster matrix products", .edit = {.kernels = {{"products", 1.15}}}},
      {.name = "1.5 times faster attention", .edit = {.kernels = {{"attention", 1.5}}}},
      {.name = "twice the tensor cores", .edit = {.tensor_rate = 2}},
      {.name = "1.5 times the HBM bandwidth", .edit = {.memory_bandwidth = 1.5}},
      {.name = "twice the HBM capacity", .edit = {.memory_capacity = 2}, .needs_advice = true},
      {.name = "twice the bandwidth inside the scale-up domain", .edit = {.scale_up_bandwidth = 2}},
      {.name = "twice the scale-up domain", .edit = {.scale_up_domain = 2}, .needs_advice = true},
      {.name = "twice the network bandwidth", .edit = {.network_bandwidth = 2}},
      {.name = "a host twice as fast", .edit = {.host_speed = 2}},
      {.name = "CUDA graphs of the whole iteration", .edit = {.whole_graphs = true}},
  };
  const Device& device = s.cluster.device;
  if (device.power_limit.known() && device.idle_power.known())
    all.push_back(
        {.name = "20% more power", .edit = {.power_limit = device.power_limit.get() * 1.2}});
  return all;
}

std::string inapplicable(const Scenario& s, const WhatIf& edit) {
  const Fabric& fabric = s.cluster.fabric;
  if (edit.whole_graphs && s.stack.host.launch == LaunchMode::full_graph)
    return "the stack runs whole iterations as graphs already";
  if ((edit.scale_up_bandwidth != 1 || edit.scale_up_domain != 1) &&
      (fabric.scale_up.kind == ScaleUpKind::none || fabric.scale_up.domain <= 1))
    return "there is no scale-up domain";
  if (edit.scale_up_domain != 1 && fabric.scale_up.kind != ScaleUpKind::switched)
    return "a domain without switches does not grow without other wiring";
  if (edit.scale_up_domain != 1 && s.layout.gpus() <= fabric.scale_up.domain)
    return "the job fits in one scale-up domain";
  if (edit.network_bandwidth != 1 &&
      (fabric.scale_out.kind == ScaleOutKind::none || s.layout.gpus() <= fabric.scale_up.domain))
    return "nothing crosses the network";
  return {};
}

// The scenario with one thing changed, in `room`: to write over an old one is cheaper than to make
// a new one.
const Scenario& changed(const Scenario& s, const WhatIf& edit, Scenario& room) {
  room = s;
  change(room, edit);
  return room;
}

void answer(const Scenario& s, Seconds base, Scenario& room, Counterfactual& question) {
  question.step = base;
  question.note = inapplicable(s, question.edit);
  question.applies = question.note.empty();
  if (!question.applies) return;
  const Scenario& other = changed(s, question.edit, room);
  if (const auto reason = unplaceable_reason(other.layout, other.cluster.fabric)) {
    question.applies = false;
    question.note = *reason;
    return;
  }
  question.step = step_time(other);
  question.faster = base / question.step - 1;
  const std::vector<std::string> taken = premises(question.edit);
  if (!taken.empty()) question.note = taken.front();
  if (question.edit.kernels.empty()) return;
  WhatIf cooler = question.edit;
  cooler.kernel_energy = SpeedupEnergy::with_time;
  question.faster_at_most = base / step_time(changed(s, cooler, room)) - 1;
}

// A step without some of its time: that of the stage with most of the rest.
Counterfactual without(const StepResult& result, std::string name,
                       std::initializer_list<Label> labels) {
  Ticks longest;
  for (const StageBreakdown& stage : result.stages) {
    Ticks rest = stage.total();
    for (const Label label : labels) rest -= stage[label];
    longest = max(longest, rest);
  }
  Counterfactual c{.name = std::move(name), .step = to_seconds(longest)};
  const Seconds base = to_seconds(result.step);
  c.applies = longest < result.step;
  c.note = c.applies ? "At most this: the other times stay as they are." : "there is none";
  c.faster = base / c.step - 1;
  return c;
}

// Seconds of a step's phases on one stage.
struct Phases {
  double step = 0, forward = 0, backward = 0, gradients = 0, optimizer = 0, pipeline = 0, rest = 0;
};

struct Timed {
  StepResult result;
  StepPipeline pipeline;
};

Timed timed(const Scenario& s) {
  const StepContext context = step_context(s);
  return {step(context, s.model, s.job, s.layout, s.stack),
          step_pipeline(context, s.model, s.job, s.layout, s.stack)};
}

struct Passes {
  double forward = 0, backward = 0;
};

Passes passes(const Timed& t, std::size_t stage) {
  const PipelineShape& shape = t.pipeline.shape;
  const auto chunks = static_cast<std::size_t>(shape.chunks);
  const double count =
      static_cast<double>(microbatches_a_chunk(shape.schedule, shape.microbatches));
  Passes p;
  for (std::size_t c = 0; c < chunks; ++c) {
    const ChunkCost& cost = t.pipeline.costs.chunk[stage * chunks + c];
    p.forward += count * to_seconds(cost.forward).si();
    p.backward += count * to_seconds(cost.backward).si();
  }
  return p;
}

std::size_t busiest_stage(const Timed& t) {
  std::size_t busiest = 0;
  double longest = -1;
  for (std::size_t s = 0; s < t.result.stages.size(); ++s) {
    const Passes p = passes(t, s);
    if (p.forward + p.backward <= longest) continue;
    longest = p.forward + p.backward;
    busiest = s;
  }
  return busiest;
}

// Sharded parameters move beside passes, whose time has what of that shows.
Phases phases(const Timed& t, std::size_t stage, const Scenario& s) {
  const StageBreakdown& labels = t.result.stages[stage];
  const auto seconds = [&](Label label) { return to_seconds(labels[label]).si(); };
  const Passes own = passes(t, stage);
  Phases p{.step = to_seconds(t.result.step).si(),
           .forward = own.forward,
           .backward = own.backward,
           .gradients = s.layout.zero_stage == 3 ? 0.0 : seconds(Label::data_comm),
           .optimizer = seconds(Label::optimizer),
           .pipeline = seconds(Label::bubble) + seconds(Label::pipeline_comm)};
  p.rest = std::max(0.0, p.step - p.forward - p.backward - p.gradients - p.optimizer - p.pipeline);
  return p;
}

struct Named {
  const char* name;
  double Phases::*time;
};
constexpr Named phase_names[] = {
    {"step", &Phases::step},           {"forward", &Phases::forward},
    {"backward", &Phases::backward},   {"gradients", &Phases::gradients},
    {"optimizer", &Phases::optimizer}, {"pipeline", &Phases::pipeline},
    {"rest", &Phases::rest},
};

WhatIf more_of(Resource r, const Scenario& s) {
  switch (r) {
    case Resource::tensor_cores:
      return {.tensor_rate = nudge};
    case Resource::other_units:
      return {.unit_rate = nudge};
    case Resource::memory:
      return {.memory_bandwidth = nudge};
    case Resource::scale_up:
      return {.scale_up_bandwidth = nudge};
    case Resource::network:
      return {.network_bandwidth = nudge};
    case Resource::host:
      return {.host_speed = nudge};
    case Resource::power: {
      const Device& d = s.cluster.device;
      if (!d.power_limit.known() || !d.idle_power.known()) return {};
      if (d.power_limit.get() <= d.idle_power.get()) return {};
      return {.power_limit =
                  d.idle_power.get() + (d.power_limit.get() - d.idle_power.get()) * nudge};
    }
  }
  return {};
}

constexpr double least_share = 0.05;

std::optional<Resource> limit_of(const PhaseLimit& p) {
  const auto most = std::max_element(p.elasticity.begin(), p.elasticity.end());
  if (*most < least_share) return std::nullopt;
  const auto resource = static_cast<Resource>(most - p.elasticity.begin());
  const bool slowed = p.of(Resource::power) >= least_share;
  return resource == Resource::tensor_cores && slowed ? Resource::power : resource;
}

std::string sentence(const PhaseLimit& p) {
  std::vector<std::pair<double, Resource>> order;
  for (int r = 0; r < resource_count; ++r)
    order.push_back({p.elasticity[static_cast<std::size_t>(r)], static_cast<Resource>(r)});
  sort_stably(order, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> parts;
  for (const auto& [share, resource] : order)
    if (share >= least_share) parts.push_back(fmt::format("{} {:.2f}", to_text(resource), share));
  std::string name = p.phase;
  name.front() = static_cast<char>(name.front() - 'a' + 'A');
  std::string text = p.phase == "step"
                         ? std::string("The step")
                         : fmt::format("{} takes {:.1f}% of the step and", name, 100 * p.share);
  if (!p.limit)
    return text + " is made of latencies and of what other phases leave: no single resource.";
  return text + fmt::format(" is limited by {}; its time goes with: {}.", to_text(*p.limit),
                            joined(parts, ", "));
}

}  // namespace

std::string_view to_text(Resource r) {
  constexpr auto words = enum_names<Resource>({"tensor cores", "vector units and L2",
                                               "HBM bandwidth", "scale-up bandwidth",
                                               "network bandwidth", "the host", "the power limit"});
  return words[r];
}

std::vector<Counterfactual> counterfactuals(const Scenario& scenario) {
  const StepResult base = run(scenario);
  std::vector<Counterfactual> all = questions(scenario);
  Scenario room;
  for (Counterfactual& question : all) answer(scenario, to_seconds(base.step), room, question);
  all.push_back(without(base, "no pipeline bubble", {Label::bubble}));
  all.push_back(without(base, "all communication hidden",
                        {Label::tensor_comm, Label::context_comm, Label::expert_comm,
                         Label::data_comm, Label::pipeline_comm}));
  return all;
}

std::vector<PhaseLimit> phase_limits(const Scenario& scenario) {
  const Timed base = timed(scenario);
  const std::size_t stage = busiest_stage(base);
  const Phases before = phases(base, stage, scenario);
  std::vector<PhaseLimit> limits;
  for (const Named& named : phase_names) {
    const double time = before.*named.time;
    if (time <= 1e-6 * before.step) continue;
    limits.push_back({.phase = named.name, .time = Seconds(time), .share = time / before.step});
  }
  for (int r = 0; r < resource_count; ++r) {
    const WhatIf edit = more_of(static_cast<Resource>(r), scenario);
    if (edit == WhatIf{}) continue;
    const Scenario other = with(scenario, edit);
    const Phases after = phases(timed(other), stage, other);
    for (PhaseLimit& p : limits)
      for (const Named& named : phase_names)
        if (p.phase == named.name)
          p.elasticity[static_cast<std::size_t>(r)] =
              (before.*named.time - after.*named.time) / (before.*named.time) / (1 - 1 / nudge);
  }
  for (PhaseLimit& p : limits) {
    p.limit = limit_of(p);
    double sum = 0;
    for (const double e : p.elasticity) sum += e;
    p.fixed = 1 - sum;
    p.sentence = sentence(p);
  }
  return limits;
}

}  // namespace orrery
