// SPDX-License-Identifier: Apache-2.0
// Prices every distinct layer and pass of a step once.
#include <algorithm>
#include <cmath>

#include "hw_models/boards.h"
#include "sim/engine/network/ideal_network.h"
#include "sim/engine/step/run.h"
#include "sim/engine/step/step.h"
#include "workloads/operations/inference.h"

namespace orrery {

TrainingProgram lower_step(const Model& model, const Job& job, const Layout& layout,
                           const Stack& stack) {
  return is_training(job.task) ? lower_training(model, job, layout, stack)
                               : lower_inference(model, job, layout, stack);
}

PassPrices open_prices(const StepContext& context, const Model& model, const Job& job,
                       const Layout& layout, const Stack& stack, std::unique_ptr<Network> network) {
  // A program that was lowered before belongs to the caller.
  std::shared_ptr<const TrainingProgram> program(std::shared_ptr<void>(), context.program);
  if (context.program == nullptr)
    program = std::make_shared<const TrainingProgram>(lower_step(model, job, layout, stack));
  PassPrices prices{.placement = place(layout, context.fabric),
                    .program = std::move(program),
                    .network = std::move(network)};
  if (prices.network) return prices;
  if (context.network == NetworkMode::flow) {
    const JobGround ground{.ranks = layout.gpus(),
                           .ranks_per_domain = prices.placement.ranks_per_domain,
                           .domain = context.fabric.scale_up.domain,
                           .stages = layout.pp};
    auto flow = std::make_unique<FlowNetwork>(context.fabric, context.collective_costs, ground,
                                              context.conditions);
    prices.flow = flow.get();
    prices.network = std::move(flow);
  } else {
    prices.network =
        std::make_unique<IdealNetwork>(context.fabric, context.collective_costs, context.loaded);
  }
  return prices;
}

StepRun::StepRun(const StepContext& context, const Model& model, const Job& job,
                 const Layout& layout, const Stack& stack, PassPrices* shared,
                 std::unique_ptr<PassPrices> own)
    : context_(context),
      model_(model),
      job_(job),
      layout_(layout),
      ending_(ending_of(layout)),
      stack_(stack),
      own_(std::move(own)),
      prices_(own_ ? *own_ : *shared),
      placement_(prices_.placement),
      network_(prices_.network.get()),
      program_(*prices_.program),
      flow_(prices_.flow),
      speeds_(prices_.speeds),
      chunks_(own_ ? own_->program->chunks : lower_chunks(model, job, layout, stack)) {
  if (prices_.speeds.empty()) price_layers();
}

StepRun::StepRun(const StepContext& context, const Model& model, const Job& job,
                 const Layout& layout, const Stack& stack)
    : StepRun(context, model, job, layout, stack, nullptr,
              std::make_unique<PassPrices>(open_prices(context, model, job, layout, stack))) {}

StepRun::StepRun(const StepContext& context, const Model& model, const Job& job,
                 const Layout& layout, const Stack& stack, PassPrices& prices)
    : StepRun(context, model, job, layout, stack, &prices, nullptr) {}

LayerTime StepRun::price_layer(const LayerProgram& layer, const PriceContext& prices) const {
  LayerTime t{.forward = price_segment(layer.forward, prices),
              .backward = price_segment(layer.backward, prices)};
  const bool split = splits_backward(layout_.schedule);
  if (split) t.input_gradient = price_segment(layer.input_gradient, prices);
  if (split || (is_training(job_.task) && exchange_beside_passes(stack_, layout_)))
    t.weight_gradient = price_segment(layer.weight_gradient, prices);
  if (layout_.recompute == Recompute::full) t.recompute = price_segment(layer.recompute, prices);
  return t;
}

// The slowest host of the job holds all others up; what crosses the network does not wait for it.
DebugCalls StepRun::debug_calls() const {
  const double hosts = std::ceil(static_cast<double>(layout_.gpus()) /
                                 static_cast<double>(placement_.ranks_per_domain));
  const double any_slow =
      1 - std::pow(1 - std::clamp(stack_.debug.slow_hosts.get(), 0.0, 1.0), hosts);
  const double slower = 1 + stack_.debug.slow_cost.get() * any_slow;
  return {.per_rank = slower * stack_.debug.per_rank.get().si(),
          .per_remote_rank =
              stack_.debug.per_rank.get().si() + stack_.debug.per_remote_rank.get().si()};
}

PriceContext StepRun::price_context(const SpeedClass& speed) {
  const double gap = launch_mode(stack_, layout_) == LaunchMode::eager
                         ? std::max(0.0, context_.calibration.launch_latency.get().si() -
                                             context_.calibration.graph_latency.get().si())
                         : 0.0;
  return {.step = context_,
          .device = speed.device,
          .placement = placement_,
          .network = *network_,
          .flow = flow_,
          .stage = speed.stage,
          .kernel_gap = gap,
          .kernel_age = std::max(1.0, stack_.kernel_age.get()),
          .debug = debug_calls()};
}

// Of the slowest accelerator of every stage; all others of the stage wait for it. Which healthy
// board is slowest nobody knows beforehand: every stage is as fast as the one that holds it, since
// a pipeline in its steady state runs at its slowest stage's pace.
std::vector<double> StepRun::stage_speeds() const {
  const double slowest = slowest_board(context_.device.board_spread, layout_.gpus());
  std::vector<double> speeds(static_cast<std::size_t>(layout_.pp), slowest);
  const std::int64_t domain = context_.fabric.scale_up.domain;
  const std::int64_t used = placement_.ranks_per_domain;
  for (const SlowGpu& slow : context_.conditions.slow_gpus) {
    const std::int64_t rank = slow.gpu / domain * used + slow.gpu % domain;
    if (slow.gpu % domain >= used || rank >= layout_.gpus()) continue;  // a spare
    const std::int64_t stage = rank / layout_.stride(Parallel::pp) % layout_.pp;
    double& speed = speeds[static_cast<std::size_t>(stage)];
    speed = std::min(speed, slowest * slow.speed);
  }
  return speeds;
}

bool StepRun::stages_differ() const {
  const Conditions& c = context_.conditions;
  return flow_ && !(c.faults.empty() && c.scale_up_faults.empty() && c.background.empty());
}

void StepRun::price_layers() {
  prices_.stage_speeds = stage_speeds();
  const std::vector<double>& speeds = prices_.stage_speeds;
  for (std::int64_t stage = 0; stage < layout_.pp; ++stage) {
    const double speed = speeds[static_cast<std::size_t>(stage)];
    const std::int64_t priced_as = stages_differ() ? stage : 0;
    if (std::any_of(speeds_.begin(), speeds_.end(),
                    [&](const SpeedClass& s) { return s.speed == speed && s.stage == priced_as; }))
      continue;
    SpeedClass s{.speed = speed, .stage = priced_as, .device = context_.device};
    if (speed != 1) scale_clock(s.device, speed);
    const PriceContext prices = price_context(s);
    for (const LayerProgram& layer : program_.classes)
      s.classes.push_back(price_layer(layer, prices));
    s.embedding = price_layer(program_.embedding, prices);
    s.head = price_layer(program_.head, prices);
    s.module = price_layer(program_.module, prices);
    prices_.speeds.push_back(std::move(s));
  }
}

StepRun::ChunkPhases StepRun::chunk_phases(const ChunkProgram& chunk, std::size_t speed) const {
  ChunkPhases out;
  const SpeedClass& priced = speeds_[speed];
  const auto add = [&](const LayerTime& t, double plain, double recomputed) {
    const double all = plain + recomputed;
    if (all == 0) return;
    out.forward.add(t.forward, all);
    out.backward.add(t.backward, all);
    out.input_gradient.add(t.input_gradient, all);
    out.weight_gradient.add(t.weight_gradient, all);
    if (recomputed == 0) return;
    out.backward.add(t.recompute, recomputed);
    out.input_gradient.add(t.recompute, recomputed);
  };
  for (std::size_t i = 0; i < priced.classes.size(); ++i)
    add(priced.classes[i], chunk.layers[i], chunk.recomputed[i]);
  if (chunk.embedding) add(priced.embedding, 1, 0);
  if (chunk.head) add(priced.head, 1 + chunk.modules, 0);
  const double again = chunk.recomputes_modules ? chunk.modules : 0;
  add(priced.module, chunk.modules - again, again);
  if (is_training(job_.task))
    out.forward.side_host = out.backward.side_host = out.input_gradient.side_host =
        host_link_seconds(chunk);
  return out;
}

// A backward's exchange runs under the forward of its partner and, since nothing waits for them,
// its own weight gradients; a forward's under the backward of its partner, but for the weight
// gradients that hide that one's exchange. Together they hide no more than both passes compute. For
// DualPipe, whose hidden share is that of its pairs: the share that a stack says of its own overlap
// was measured on whole steps and has this in it.
void StepRun::cap_exchanges(ChunkPhases& own, const ChunkProgram& partner,
                            std::size_t speed) const {
  if (!pairs_directions(layout_.schedule) || own.forward.hidden_by_passes <= 0) return;
  const ChunkPhases other = chunk_phases(partner, speed);
  const double spare = compute_seconds(other.forward) + compute_seconds(own.weight_gradient);
  cap_hidden_exchange(own.backward, spare);
  cap_hidden_exchange(own.input_gradient, spare);
  const double taken = std::clamp(other.backward.beside_passes - compute_seconds(own.forward), 0.0,
                                  compute_seconds(other.weight_gradient));
  cap_hidden_exchange(own.forward, compute_seconds(other.backward) - taken);
}

ChunkTime StepRun::time_chunk(const ChunkProgram& chunk, const ChunkProgram& partner,
                              std::size_t speed, bool context_beside) const {
  ChunkTime out{.program = chunk, .partner = partner, .speed = speed};
  ChunkPhases phases = chunk_phases(chunk, speed);
  cap_exchanges(phases, partner, speed);
  const auto closed = [&](PhaseTime& phase) {
    const double host = phase.host;
    if (!context_beside) phase.side_context = 0;
    if (runs_ahead()) phase.host = 0;
    PassTicks pass = close_pass(phase, speeds_[speed].device, stack_.overlap_cost.get());
    if (runs_ahead()) pass.host = to_ticks(Seconds(host));
    return pass;
  };
  out.scale_up_bytes = phases.forward.scale_up_bytes + phases.backward.scale_up_bytes;
  out.scale_out_bytes = phases.forward.scale_out_bytes + phases.backward.scale_out_bytes;
  out.forward = closed(phases.forward);
  if (!is_training(job_.task)) return out;
  if (splits_backward(layout_.schedule)) {
    out.input_gradient = closed(phases.input_gradient);
    out.weight_gradient = closed(phases.weight_gradient);
  } else {
    out.backward = closed(phases.backward);
  }
  return out;
}

namespace {
bool same(const ChunkProgram& a, const ChunkProgram& b) {
  return a.embedding == b.embedding && a.head == b.head && a.modules == b.modules &&
         a.recomputes_modules == b.recomputes_modules && a.layers == b.layers &&
         a.recomputed == b.recomputed;
}
}  // namespace

void StepRun::price_chunks() {
  if (!chunk_index_.empty()) return;
  const std::vector<double>& speeds = prices_.stage_speeds;
  const std::int64_t chunks = chunks_per_stage();
  const bool dual = chunks != layout_.vpp;
  // DualPipe's second chunk is the one of the mirrored position.
  const auto program_at = [&](std::int64_t stage, std::int64_t chunk) -> const ChunkProgram& {
    const std::int64_t position =
        dual ? (chunk == 0 ? stage : layout_.pp - 1 - stage) : stage * layout_.vpp + chunk;
    return chunks_[static_cast<std::size_t>(position)];
  };
  // Whose passes run beside this one's: those of the other direction, or the other half of a V;
  // interleaved chunks meet all others of their stage, which are like them.
  const bool pairs = dual || is_v_shaped(layout_.schedule);
  for (std::int64_t at = 0; at < layout_.pp * chunks; ++at) {
    const std::int64_t stage = at / chunks, chunk = at % chunks;
    const ChunkProgram& program = program_at(stage, chunk);
    const ChunkProgram& partner = program_at(stage, pairs ? 1 - chunk : chunk);
    std::size_t speed = 0;
    while (speeds_[speed].speed != speeds[static_cast<std::size_t>(stage)] ||
           (stages_differ() && speeds_[speed].stage != stage))
      ++speed;
    std::size_t i = 0;
    while (i < distinct_.size() &&
           !(distinct_[i]->speed == speed && same(distinct_[i]->program, program) &&
             same(distinct_[i]->partner, partner)))
      ++i;
    if (i == distinct_.size()) distinct_.push_back(&known_chunk(program, partner, speed));
    chunk_index_.push_back(i);
  }
}

const ChunkTime& StepRun::known_chunk(const ChunkProgram& program, const ChunkProgram& partner,
                                      std::size_t speed) {
  const bool own = layout_.offload_weights || layout_.offload_activations;
  const auto known =
      std::find_if(prices_.chunks.begin(), prices_.chunks.end(), [&](const ChunkTime& c) {
        return !own && !c.only_its_own && c.dual == pairs_directions(layout_.schedule) &&
               c.speed == speed && same(c.program, program) && same(c.partner, partner);
      });
  if (known != prices_.chunks.end()) return *known;
  ChunkTime time = time_chunk(program, partner, speed);
  time.dual = pairs_directions(layout_.schedule);
  time.only_its_own = own;
  return prices_.chunks.emplace_back(std::move(time));
}

const ChunkTime& StepRun::chunk_time(std::int64_t stage, std::int64_t chunk) const {
  return *distinct_[chunk_index_[static_cast<std::size_t>(stage * chunks_per_stage() + chunk)]];
}

std::optional<Collective> StepRun::send(double bytes) const {
  if (layout_.pp == 1) return std::nullopt;
  const bool inside = placement_.pipeline.tier == 0;
  const std::int64_t per_stage = layout_.stride(Parallel::pp);
  const GroupShape pair{
      .size = 2,
      .per_domain = inside ? 2 : 1,
      .domains = inside ? 1 : 2,
      .span = per_stage + 1,
      .sharing = inside ? 1 : placement_.ranks_per_domain,
      .domain_step = std::max<std::int64_t>(1, per_stage / placement_.ranks_per_domain)};
  return Collective{.kind = CollectiveKind::send_receive, .group = pair, .bytes = Bytes(bytes)};
}

Ticks StepRun::send_time(std::int64_t stage, double bytes) {
  const auto message = send(bytes);
  if (!message) return {};
  return to_ticks(network_->price(*message, stage).time +
                  Seconds(debug_calls().of(message->group)));
}

StepPipeline StepRun::pipeline() {
  price_chunks();
  StepPipeline p;
  const bool training = is_training(job_.task);
  p.shape = {.schedule = training ? layout_.schedule : Schedule::one_f_one_b,
             .stages = layout_.pp,
             .chunks = chunks_per_stage(),
             .microbatches = training ? layout_.microbatches(job_) : 1};
  const bool block =
      layout_.vpp == 1 ? stack_.pipeline_sends_block : stack_.interleaved_sends_block;
  p.costs.sends_block = block && !splits_backward(layout_.schedule);
  for (std::int64_t stage = 0; stage < layout_.pp; ++stage) {
    // A message goes over the link to the next stage, its gradient comes back over the same one.
    const double returned = training ? program_.gradient_send_bytes : program_.send_bytes;
    const Ticks send = send_time(stage, program_.send_bytes);
    const Ticks back = send_time(std::max<std::int64_t>(0, stage - 1), returned);
    for (std::int64_t chunk = 0; chunk < p.shape.chunks; ++chunk) {
      const ChunkTime& t = chunk_time(stage, chunk);
      const bool returns = chunk == 1 && is_v_shaped(p.shape.schedule);
      const Ticks gradients = splits_backward(layout_.schedule)
                                  ? t.input_gradient.total + t.weight_gradient.total
                                  : t.backward.total;
      p.costs.chunk.push_back({.forward = t.forward.total,
                               .backward = gradients,
                               .input_gradient = t.input_gradient.total,
                               .weight_gradient = t.weight_gradient.total,
                               .send_forward = t.program.head ? Ticks{}
                                               : returns      ? back
                                                              : send,
                               .send_backward = t.program.embedding ? Ticks{}
                                                : returns           ? send
                                                                    : back});
    }
  }
  return p;
}

}  // namespace orrery
