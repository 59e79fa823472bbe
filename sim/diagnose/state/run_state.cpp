// SPDX-License-Identifier: Apache-2.0
// Makes the state of a healthy run of what was predicted, and delays its ranks.
#include "sim/diagnose/state/run_state.h"

#include <algorithm>

#include "sim/outcome/simulate.h"
#include "workloads/operations/label.h"

namespace orrery {
namespace {

// A kernel of a collective that waits keeps processors from compute: NCCL's rings take 16 to 24 of
// an H200's 132, and products beside them were 15 to 20% slower (validation/faults).
constexpr double waiting_processors = 0.18;

// Products of the head in the time of head and loss: as its weights to those of the layers.
double head_products(const Scenario& s, double gemm_s, double loss_s) {
  const ParameterCount count = count_parameters(s.model);
  const auto head = static_cast<double>(s.model.hidden) * static_cast<double>(s.model.vocab);
  const double layers =
      static_cast<double>(count.active) - static_cast<double>(count.embedding + count.head);
  // Of a pipeline one stage has the head and others layers alone: half is judged.
  if (layers <= 0 || s.layout.pp > 1) return 0.5 * loss_s;
  return std::min(loss_s, gemm_s * head / layers);
}

RankState rank_of(const Scenario& s, const StageBreakdown& stage) {
  const auto seconds = [&](Label label) { return to_seconds(stage[label]).si(); };
  RankState rank;
  const double gemm = seconds(Label::gemm) + seconds(Label::expert);
  const double head = head_products(s, gemm, seconds(Label::loss));
  const double attention = seconds(Label::attention);
  const double rest = seconds(Label::elementwise) + seconds(Label::quantise);
  // What is computed again is of the kinds that the forward pass has, but for the head.
  const double forward = std::max(1e-12, gemm + attention + rest);
  const double again = 1 + seconds(Label::recompute) / forward;
  rank.products_s = gemm * again + head;
  rank.experts_s = seconds(Label::expert) * again;
  rank.attention_s = attention * again;
  rank.memory_bound_s = rest * again + seconds(Label::loss) - head;
  rank.optimizer_s = seconds(Label::optimizer);
  for (const LabelRow& row : label_table)
    if (is_communication(row.label)) rank.exposed_s += seconds(row.label);
  rank.idle_s = seconds(Label::host);
  rank.bubble_s = seconds(Label::bubble);
  rank.exchange_s = seconds(Label::pipeline_comm);
  return rank;
}

}  // namespace

void RunState::delay(std::size_t rank, double seconds) {
  step_s += seconds;
  // Two thirds of a step are backward; a host that is late once may be so before either.
  if (!meets_in_forward) ranks[rank].forward_s += seconds / 2;
  const double exposed_wait = profiled.exposed_wait;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (r == rank) continue;
    RankState& other = ranks[r];
    other.wait_s += seconds;
    other.exposed_s += exposed_wait * seconds;
    const double hidden = (1 - exposed_wait) * seconds;
    const double slower = 1 + waiting_processors * hidden / std::max(1e-9, other.compute_s());
    other.products_s *= slower;
    other.attention_s *= slower;
  }
}

void RunState::expose(double seconds) {
  for (RankState& r : ranks) r.exposed_s += seconds;
  lengthen(seconds);
}

namespace {

// Bytes of gradients in 16 bits: of a rank's whole part of the model, and of one of its tensors.
struct SentBytes {
  double model = 0, tensor = 0, layer = 0;
};

// Tensors of a layer, as most models have them: two norms, joined or single projections.
constexpr double tensors_of_layer = 8;

SentBytes sent_bytes(const Scenario& s) {
  const ParameterCount count = count_parameters(s.model);
  SentBytes out;
  out.model = 2 * static_cast<double>(count.total) /
              static_cast<double>(std::max<std::int64_t>(1, s.layout.tp * s.layout.pp));
  const auto layers = static_cast<double>(
      std::max<std::int64_t>(1, s.model.layer_count() / std::max<std::int64_t>(1, s.layout.pp)));
  out.layer = out.model / layers;
  out.tensor = out.layer / tensors_of_layer;
  return out;
}

}  // namespace

double expected_call_bytes(const Scenario& s) {
  const SentBytes sent = sent_bytes(s);
  if (s.layout.zero_stage == 3) return sent.layer;
  const double bucket = s.layout.bucket > Bytes{}       ? s.layout.bucket.si()
                        : s.stack.sharding.bucket.value ? s.stack.sharding.bucket.value->si()
                                                        : sent.layer;
  // A bucket closes after the tensor that passes its size; large ones pass it more often.
  return std::max(1.0, std::min(bucket + 2 * sent.tensor, sent.model));
}

RunState healthy_state(const Scenario& scenario, const Prediction& prediction, std::size_t ranks) {
  RunState state;
  state.healthy_s = state.step_s = prediction.step_time.si();
  const auto stage = static_cast<std::size_t>(prediction.bottleneck_stage);
  const RankState rank = rank_of(scenario, prediction.stages.at(stage));
  state.ranks.assign(std::max<std::size_t>(1, ranks), rank);
  state.layers = static_cast<std::size_t>(
      std::max<std::int64_t>(1, scenario.model.layer_count() / scenario.layout.pp));
  const SentBytes sent = sent_bytes(scenario);
  const double call = expected_call_bytes(scenario);
  state.tensor_bytes = sent.tensor / call;
  state.model_bytes = sent.model / call;
  const auto& clock = scenario.cluster.device.clock.value;
  state.clock_hz = clock ? clock->si() / std::max(1.0, prediction.throttle) : 0;
  state.alone = scenario.cluster.gpus == 1;
  // Hosts of one kind launched the same kernels in 4.7 to 8.3 microseconds each
  // (validation/faults).
  constexpr double hosts_differ = 0.15, host_bound = 0.05;
  if (rank.idle_s > host_bound * state.healthy_s) state.unknown.host = hosts_differ;
  state.trains = is_training(scenario.job.task);
  state.meets_in_forward = scenario.layout.zero_stage == 3 || scenario.layout.tp > 1 ||
                           scenario.layout.cp > 1 || scenario.layout.ep > 1;
  state.meets_in_optimizer = scenario.layout.zero_stage == 1 || scenario.layout.zero_stage == 2 ||
                             scenario.layout.tp > 1 || scenario.layout.pp > 1;
  return state;
}

}  // namespace orrery
