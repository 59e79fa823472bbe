// SPDX-License-Identifier: Apache-2.0
// Says what a program offers: what holds where a run leaves a setting blank, and what it lets
// choose.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "workloads/layout/layout.h"

namespace orrery {

// What a run's description leaves blank.
struct StackDefaults {
  RecomputeChoice recompute;
  bool recompute_known = false;  // that is the recipe's; else it is the least that a run may do
  int zero_stage = 1;
  bool sequence_parallel = true;
  bool mtp = false;  // the model's MTP modules are trained
  double attention_dropout = 0, hidden_dropout = 0;
  Schedule schedule = Schedule::one_f_one_b;
  bool interleaved = false;  // pipelines run one layer a chunk where vpp is left out
  Optimizer optimizer = Optimizer::adam_fp32;
  ContextKind context = ContextKind::ring;
  PrecisionRecipe fp8 = PrecisionRecipe::fp8_delayed;  // what plain "fp8" means here
};

// Ways in which a program splits a job's model or its sequences.
enum class Split : std::uint8_t { none, tp, pp, cp, ep };

// What a program lets its user choose, which a search tries. Empty: everything that a layout can
// say. A run may name another value.
struct StackChoices {
  std::vector<Split> splits;  // none: it has data-parallel ranks alone
  std::vector<PrecisionRecipe> precisions;
  std::vector<Optimizer> optimizers;
  std::vector<Schedule> schedules;
  std::vector<int> zero_stages;
  std::vector<RecomputeModule> recompute_modules;
  std::vector<RankOrder> rank_orders;
  std::vector<ContextKind> contexts;
  std::vector<Recompute> recomputes;
  std::vector<bool> sequence_parallel;  // beside tensor parallelism
  std::vector<bool> split_experts;      // over tensor ranks (etp is tp), or not (etp is 1)
  bool offload_weights = true, offload_optimizer = true, offload_activations = true;
  bool offload_any_optimizer = true;  // else the states of Adam alone
  bool uneven_stages = true;          // layers of the first and the last stage
  bool uneven_chunks = true;   // layers of inner stages too, and of stages with several chunks
  bool hybrid_chunks = true;   // models with state-space layers: several chunks, uneven stages
  bool recompute_part = true;  // full recompute of some of a stage's layers
  bool bucket_size = true;
  int pipeline_zero_stage = 3;        // the highest with pp above 1
  bool offload_whole_weights = true;  // weights in host memory below ZeRO-3 too
  bool offload_part = false;          // any share of the optimizer's states, not only all of them
  bool offload_activations_alone = false;  // activations: neither pipelines nor recompute beside
  template <class T>
  static bool allows(const std::vector<T>& list, const T& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  }
};

}  // namespace orrery
