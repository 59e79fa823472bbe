// SPDX-License-Identifier: Apache-2.0
// Places and lowers a layout, and prices each of its layers.
#include "sim/engine/step/layers.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hw_models/boards.h"
#include "sim/engine/network/flow_memory.h"
#include "sim/engine/network/ideal_network.h"
#include "sim/engine/step/step.h"

namespace orrery {
namespace {

// The slowest host of the job holds all others up; what crosses the network does not wait for it.
DebugCalls debug_calls(const StepCase& asked, const Placement& placement) {
  const DebugWrappers& debug = asked.stack.host.debug;
  const auto hosts = static_cast<double>(placement.domains);
  const double any_slow = 1 - std::pow(1 - std::clamp(debug.slow_hosts.get(), 0.0, 1.0), hosts);
  const double slower = 1 + debug.slow_cost.get() * any_slow;
  return {.per_rank = slower * debug.per_rank.get(),
          .per_remote_rank = debug.per_rank.get() + debug.per_remote_rank.get()};
}

Placement placement_of(const StepCase& asked) {
  const StepContext& context = asked.context;
  return context.scattered() ? place(asked.layout, context.fabric, *context.ranks)
                             : place(asked.layout, context.fabric);
}

// Flows know no domain with fewer ranks than others: where a scattered job fills its domains
// unevenly, each is taken to be as full as the fullest, on its first accelerators, as if the job
// had more ranks.
JobGround job_ground(const StepCase& asked, const Placement& placement) {
  const StepContext& context = asked.context;
  JobGround ground{.ranks = asked.layout.gpus(),
                   .ranks_per_domain = placement.ranks_per_domain,
                   .domain = context.fabric.scale_up.domain,
                   .stages = asked.layout.pp};
  if (!context.scattered()) return ground;
  if (ground.domains() != placement.domains)
    ground.ranks = placement.domains * placement.ranks_per_domain;
  for (const DomainRanks& d : domains_of(*context.ranks, ground.domain))
    ground.domain_at.push_back(d.domain);
  ground.cluster = context.ranks->cluster;
  return ground;
}

// Layers placed and lowered, with nothing priced.
PricedLayers open_layers(const StepCase& asked, std::unique_ptr<Network> network) {
  const StepContext& context = asked.context;
  // A program that was lowered before belongs to the caller.
  std::shared_ptr<const StepProgram> program(std::shared_ptr<void>(), context.program);
  if (context.program == nullptr)
    program = std::make_shared<const StepProgram>(
        lower_step(asked.model, asked.job, asked.layout, asked.stack));
  PricedLayers layers{.placement = placement_of(asked),
                      .program = std::move(program),
                      .network = std::move(network)};
  layers.debug = debug_calls(asked, layers.placement);
  if (layers.network) return layers;
  if (context.network == NetworkMode::flow) {
    const FlowOptions options{.ends_only = context.flows != nullptr};
    auto flow = std::make_unique<FlowNetwork>(context.fabric, context.collective_costs,
                                              job_ground(asked, layers.placement),
                                              context.conditions, options, context.flows);
    layers.flow = flow.get();
    layers.network = std::move(flow);
  } else if (context.scattered()) {
    const JobGround ground = job_ground(asked, layers.placement);
    LaidFlows* laid = nullptr;
    if (context.flows != nullptr)
      laid = &context.flows->place(context.fabric, ground, context.conditions.seed,
                                   {.spread_hashed = true, .ends_only = true});
    layers.network = std::make_unique<IdealNetwork>(context.fabric, context.collective_costs,
                                                    context.loaded, ground, laid);
  } else {
    layers.network =
        std::make_unique<IdealNetwork>(context.fabric, context.collective_costs, context.loaded);
  }
  return layers;
}

LayerTime price_layer(const StepCase& asked, const LayerProgram& layer,
                      const PriceContext& prices) {
  const Layout& layout = asked.layout;
  LayerTime t{.forward = price_segment(layer.forward, prices),
              .backward = price_segment(layer.backward, prices)};
  const bool split = splits_backward(layout.schedule);
  if (split) t.input_gradient = price_segment(layer.input_gradient, prices);
  if (split || (asked.training() && exchange_beside_passes(asked.stack, layout)))
    t.weight_gradient = price_segment(layer.weight_gradient, prices);
  if (layout.recompute == Recompute::full) t.recompute = price_segment(layer.recompute, prices);
  return t;
}

// The rank on an accelerator; nullopt for a spare or somebody else's.
std::optional<std::int64_t> rank_on(const StepCase& asked, const Placement& placement,
                                    std::int64_t gpu) {
  const StepContext& context = asked.context;
  if (context.scattered()) return context.ranks->rank_on(gpu);
  const std::int64_t domain = context.fabric.scale_up.domain, used = placement.ranks_per_domain;
  const std::int64_t rank = gpu / domain * used + gpu % domain;
  if (gpu % domain >= used || rank >= asked.layout.gpus()) return std::nullopt;
  return rank;
}

// Of the slowest accelerator of every stage; all others of the stage wait for it. Which healthy
// board is slowest nobody knows beforehand: every stage is as fast as the one that holds it, since
// a pipeline in its steady state runs at its slowest stage's pace.
std::vector<double> stage_speeds(const StepCase& asked, const Placement& placement) {
  const Layout& layout = asked.layout;
  const double slowest = slowest_board(asked.context.device.board_spread, layout.gpus());
  std::vector<double> speeds(static_cast<std::size_t>(layout.pp), slowest);
  for (const SlowGpu& slow : asked.context.conditions.slow_gpus) {
    const std::optional<std::int64_t> rank = rank_on(asked, placement, slow.gpu);
    if (!rank) continue;
    const std::int64_t stage = *rank / layout.stride(Parallel::pp) % layout.pp;
    double& speed = speeds[static_cast<std::size_t>(stage)];
    speed = std::min(speed, slowest * slow.speed);
  }
  return speeds;
}

// Faults and others' traffic tell stages apart.
bool stages_differ(const StepContext& context, const PricedLayers& layers) {
  return layers.flow && !context.conditions.healthy_network();
}

}  // namespace

PriceContext price_context(const StepCase& asked, const PricedLayers& layers,
                           const SpeedClass& speed) {
  const bool eager = launch_mode(asked.stack, asked.layout) == LaunchMode::eager;
  return {.step = asked.context,
          .device = speed.device,
          .placement = layers.placement,
          .network = *layers.network,
          .flow = layers.flow,
          .stage = speed.stage,
          .kernel_gap = asked.context.calibration.kernel_gap(!eager),
          .kernel_age = std::max(1.0, asked.stack.kernels.kernel_age.get()),
          .debug = layers.debug};
}

PricedLayers price_layers(const StepCase& asked, std::unique_ptr<Network> network) {
  PricedLayers layers = open_layers(asked, std::move(network));
  const StepProgram& program = *layers.program;
  const std::vector<double> speeds = stage_speeds(asked, layers.placement);
  const bool differ = stages_differ(asked.context, layers);
  for (std::size_t stage = 0; stage < speeds.size(); ++stage) {
    const double speed = speeds[stage];
    const std::int64_t priced_as = differ ? static_cast<std::int64_t>(stage) : 0;
    const auto known =
        std::find_if(layers.speeds.begin(), layers.speeds.end(),
                     [&](const SpeedClass& s) { return s.speed == speed && s.stage == priced_as; });
    layers.speed_of_stage.push_back(static_cast<std::size_t>(known - layers.speeds.begin()));
    if (known != layers.speeds.end()) continue;
    SpeedClass s{.speed = speed, .stage = priced_as, .device = asked.context.device};
    if (speed != 1) scale_clock(s.device, speed);
    const PriceContext prices = price_context(asked, layers, s);
    for (const LayerProgram& layer : program.classes)
      s.classes.push_back(price_layer(asked, layer, prices));
    s.embedding = price_layer(asked, program.embedding, prices);
    s.head = price_layer(asked, program.head, prices);
    s.module = price_layer(asked, program.module, prices);
    layers.speeds.push_back(std::move(s));
  }
  return layers;
}

}  // namespace orrery
