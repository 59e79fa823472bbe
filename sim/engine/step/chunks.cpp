// SPDX-License-Identifier: Apache-2.0
// Sums layers to passes, joins the passes that run beside each other, and remembers like chunks.
#include "sim/engine/step/chunks.h"

#include <algorithm>

#include "workloads/memory/memory.h"

namespace orrery {
namespace {

// The priced work of a chunk's passes; backward, or its halves where the schedule splits it.
struct ChunkPhases {
  PhaseTime forward, backward, input_gradient, weight_gradient;
};

// How long one pass of a chunk keeps the link to the host busy: weights stream in for every
// pass, activations go out forward and come back backward.
Seconds host_link_time(const StepCase& asked, const ChunkProgram& chunk) {
  const Layout& layout = asked.layout;
  double bytes = 0;
  if (layout.offload_weights)
    bytes += (chunk.parameters + chunk.expert_parameters) *
             bytes_per_element(asked.stack.sharding.parameter_gather_format);
  if (layout.offload_activations) {
    Layout only = layout;
    only.offload_weights = only.offload_optimizer = false;
    const StageMemory first = training_memory(asked.model, asked.job, only, asked.stack).front();
    bytes += first.offloaded.si() / static_cast<double>(std::max<std::int64_t>(1, first.in_flight));
  }
  return bytes > 0 ? Bytes(bytes) / asked.context.device.host_bandwidth : Seconds(0);
}

ChunkPhases chunk_phases(const StepCase& asked, const SpeedClass& priced,
                         const ChunkProgram& chunk) {
  ChunkPhases out;
  visit_parts(priced, chunk, [&](const LayerTime& t, double plain, double recomputed) {
    const double all = plain + recomputed;
    if (all == 0) return;
    out.forward.add(t.forward, all);
    out.backward.add(t.backward, all);
    out.input_gradient.add(t.input_gradient, all);
    out.weight_gradient.add(t.weight_gradient, all);
    if (recomputed == 0) return;
    out.backward.add(t.recompute, recomputed);
    out.input_gradient.add(t.recompute, recomputed);
  });
  if (asked.training())
    out.forward.side_host = out.backward.side_host = out.input_gradient.side_host =
        host_link_time(asked, chunk);
  return out;
}

// A backward's exchange runs under the forward of its partner and, since nothing waits for them,
// its own weight gradients; a forward's under the backward of its partner, but for the weight
// gradients that hide that one's exchange. Together they hide no more than both passes compute. For
// DualPipe, whose hidden share is that of its pairs: the share that a stack says of its own overlap
// was measured on whole steps and has this in it.
void cap_exchanges(const StepCase& asked, const SpeedClass& priced, const ChunkProgram& partner,
                   ChunkPhases& own) {
  if (!pairs_directions(asked.layout.schedule) || own.forward.hidden_by_passes <= Seconds(0))
    return;
  const ChunkPhases other = chunk_phases(asked, priced, partner);
  const Seconds spare = compute_time(other.forward) + compute_time(own.weight_gradient);
  cap_hidden_exchange(own.backward, spare);
  cap_hidden_exchange(own.input_gradient, spare);
  const Seconds taken = std::clamp(other.backward.beside_passes - compute_time(own.forward),
                                   Seconds(0), compute_time(other.weight_gradient));
  cap_hidden_exchange(own.forward, compute_time(other.backward) - taken);
}

// Ranks of a tensor-parallel group wait for each other in every layer, and so do those that gather
// its parameters.
HostPace host_pace(const StepCase& asked, const Placement& placement) {
  const std::int64_t gathering = asked.layout.zero_stage == 3 ? placement.shard.size : 1;
  return {.spread = asked.stack.host.spread.get(), .ranks = placement.tensor.size * gathering};
}

// Priced once for all steps on the same layers.
const ChunkTime& known_chunk(const StepCase& asked, const PricedLayers& layers,
                             const ChunkProgram& program, const ChunkProgram& partner,
                             std::size_t speed, KnownChunks& known) {
  const Layout& layout = asked.layout;
  const bool own = layout.offload_weights || layout.offload_activations;
  const auto at = std::find_if(known.begin(), known.end(), [&](const ChunkTime& c) {
    return !own && !c.only_its_own && c.dual == pairs_directions(layout.schedule) &&
           c.speed == speed && same_work(c.program, program) && same_work(c.partner, partner);
  });
  if (at != known.end()) return *at;
  ChunkTime time = time_chunk(asked, layers, program, partner, speed);
  time.dual = pairs_directions(layout.schedule);
  time.only_its_own = own;
  return known.emplace_back(std::move(time));
}

}  // namespace

bool same_work(const ChunkProgram& a, const ChunkProgram& b) {
  return a.embedding == b.embedding && a.head == b.head && a.modules == b.modules &&
         a.recomputes_modules == b.recomputes_modules && a.layers == b.layers &&
         a.recomputed == b.recomputed;
}

ChunkTime time_chunk(const StepCase& asked, const PricedLayers& layers, const ChunkProgram& chunk,
                     const ChunkProgram& partner, std::size_t speed, bool context_beside) {
  const SpeedClass& priced = layers.speeds[speed];
  ChunkTime out{.program = chunk, .partner = partner, .speed = speed};
  ChunkPhases phases = chunk_phases(asked, priced, chunk);
  cap_exchanges(asked, priced, partner, phases);
  const auto closed = [&](PhaseTime& phase) {
    const Seconds host = phase.host;
    if (!context_beside) phase.side_context = {};
    if (asked.runs_ahead()) phase.host = {};
    PassTicks pass =
        close_pass(std::move(phase), priced.device, asked.stack.communication.overlap_cost.get(),
                   host_pace(asked, layers.placement));
    pass.host = to_ticks(host);
    return pass;
  };
  out.scale_up_bytes = phases.forward.scale_up_bytes + phases.backward.scale_up_bytes;
  out.scale_out_bytes = phases.forward.scale_out_bytes + phases.backward.scale_out_bytes;
  out.forward = closed(phases.forward);
  if (!asked.training()) return out;
  if (splits_backward(asked.layout.schedule)) {
    out.input_gradient = closed(phases.input_gradient);
    out.weight_gradient = closed(phases.weight_gradient);
  } else {
    out.backward = closed(phases.backward);
  }
  return out;
}

PricedChunks::PricedChunks(const StepCase& asked, const PricedLayers& layers,
                           const std::vector<ChunkProgram>& programs, KnownChunks& known)
    : per_stage_(asked.chunks_per_stage()) {
  const Layout& layout = asked.layout;
  const bool dual = per_stage_ != layout.vpp;
  // DualPipe's second chunk is the one of the mirrored position.
  const auto program_at = [&](std::int64_t stage, std::int64_t chunk) -> const ChunkProgram& {
    const std::int64_t position =
        dual ? (chunk == 0 ? stage : layout.pp - 1 - stage) : stage * layout.vpp + chunk;
    return programs[static_cast<std::size_t>(position)];
  };
  // Whose passes run beside this one's: those of the other direction, or the other half of a V;
  // interleaved chunks meet all others of their stage, which are like them.
  const bool pairs = dual || is_v_shaped(layout.schedule);
  for (std::int64_t at = 0; at < layout.pp * per_stage_; ++at) {
    const std::int64_t stage = at / per_stage_, chunk = at % per_stage_;
    const ChunkProgram& program = program_at(stage, chunk);
    const ChunkProgram& partner = program_at(stage, pairs ? 1 - chunk : chunk);
    const std::size_t speed = layers.speed_of_stage[static_cast<std::size_t>(stage)];
    std::size_t i = 0;
    while (i < distinct_.size() &&
           !(distinct_[i]->speed == speed && same_work(distinct_[i]->program, program) &&
             same_work(distinct_[i]->partner, partner)))
      ++i;
    if (i == distinct_.size())
      distinct_.push_back(&known_chunk(asked, layers, program, partner, speed, known));
    index_.push_back(i);
  }
}

bool PricedChunks::alike(std::int64_t stage, std::int64_t other) const {
  const auto chunks = [&](std::int64_t of) {
    return index_.begin() + static_cast<std::ptrdiff_t>(of * per_stage_);
  };
  return std::equal(chunks(stage), chunks(stage + 1), chunks(other));
}

double PricedChunks::trained(std::int64_t stage) const {
  double sum = 0;
  for (std::int64_t c = 0; c < per_stage_; ++c) sum += at(stage, c).program.trained;
  return sum;
}

double PricedChunks::trained_experts(std::int64_t stage) const {
  double sum = 0;
  for (std::int64_t c = 0; c < per_stage_; ++c) sum += at(stage, c).program.trained_experts;
  return sum;
}

}  // namespace orrery
