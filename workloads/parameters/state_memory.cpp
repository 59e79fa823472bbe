// SPDX-License-Identifier: Apache-2.0
// Computes parameters, gradients and optimizer state under ZeRO, LoRA, offload and low precision.
#include "workloads/parameters/state_memory.h"

#include <algorithm>

#include "workloads/parameters/adapters.h"
#include "workloads/parameters/optimizer.h"
#include "workloads/parameters/weight_split.h"

namespace orrery {
namespace {

// Ranks that share one copy of the dense and of the expert parameters.
struct Shards {
  double dense = 1, expert = 1;
};

Shards shards_of(const Layout& layout) {
  const ShardWays ways = shard_ways(layout);
  return {.dense = static_cast<double>(ways.dense), .expert = static_cast<double>(ways.expert)};
}

// Bytes of `per_parameter` state, sharded or whole.
struct Counts {
  double dense = 0, expert = 0;
  double whole(double per_parameter) const { return per_parameter * (dense + expert); }
  double sharded(double per_parameter, const Shards& s) const {
    return per_parameter * (dense / s.dense + expert / s.expert);
  }
};

Counts trainable_counts(const StageParameters& p, const Job& job) {
  if (job.task == Task::lora) return {.dense = p.adapters};
  return {.dense = p.dense, .expert = p.expert};
}

// Those that other ranks hold too.
double replicated(const Counts& counts, const Shards& s) {
  return (s.dense > 1 ? counts.dense : 0) + (s.expert > 1 ? counts.expert : 0);
}

// What ZeRO-3 holds whole while passes run.
struct Whole {
  double parameters = 0, gradients = 0;
  double at_loss = 0;  // parameters, when all layers' forwards are over
  double sums = 0;     // gradients of earlier microbatches, beyond the shards'
};

// Parameters of the layer at work and of the next one, which is gathered meanwhile; the layer's own
// gradient and the reduction's input, which FSDP keeps until the next layer's reduction; embedding
// and head, FSDP's root unit, which is not freed between forward and backward and is all that is
// whole at the loss. What FSDP gathers lies beside the shards. DeepSpeed gathers one weight at a
// time, as many ahead as 10^9 live parameters allow (stage3_max_live_parameters, its default), and
// reduces a weight's gradient as soon as it is there.
Whole gathered_whole(const StageParameters& p, const Counts& all, const Counts& trained,
                     const Shards& shards, const Model& model, const Layout& layout,
                     const Stack& stack, std::int64_t microbatches) {
  const double gather = bytes_per_element(stack.sharding.parameter_gather_format);
  const double reduced = bytes_per_element(stack.sharding.gradient_format);
  constexpr double own = 2;  // gradients are computed in 16 bits
  // Experts that no other rank holds are whole as they lie.
  const double layer = shards.expert > 1 ? p.largest_layer : p.largest_dense;
  if (stack.sharding.shard_storage == ShardStorage::bucketed) {
    const double live = std::max(p.largest_weight, std::min(1e9, 2 * layer));
    return {.parameters = gather * live,
            .gradients = (own + reduced) * p.largest_weight,
            .at_loss = gather * live};
  }
  const auto beyond_shards = [&](const Counts& counts, double per_parameter) {
    return counts.whole(per_parameter) - counts.sharded(per_parameter, shards);
  };
  Whole whole{.parameters = 2 * gather * layer + gather * p.vocabulary,
              .gradients = (own + reduced) * layer,
              .at_loss = gather * p.vocabulary};
  if (!stack.sharding.reshard_after_forward ||
      (layout.pp > 1 && gathers_once(layout, stack, microbatches)))
    whole.parameters = whole.at_loss = gather * replicated(all, shards);
  // Unsharded sums of the microbatches, in the format of the reduction.
  if (accumulates_whole(layout, stack, microbatches)) {
    whole.sums = beyond_shards(trained, reduced);
  } else if (trained.dense == all.dense) {
    // The root unit is reduced last: the head's gradient waits for the embedding's.
    const bool two_tables = layout.pp == 1 && !model.tied_embeddings;
    whole.gradients += own * p.vocabulary / (two_tables ? 2 : 1);
  }
  return whole;
}

// ZeRO-3. The sharded parameter is the master itself, or one in 16 bits beside it.
void shard_everything(const Counts& all, const Counts& trained, const Shards& shards,
                      const OptimizerCost& cost, bool master, const Stack& stack, StageState& s) {
  const double gradient = bytes_per_element(stack.sharding.gradient_storage);
  const double stored = master ? cost.master_bytes : 2;
  s.parameters = all.sharded(stored, shards);
  // FSDP2's shard has a gradient of its own format at most; other programs' lie in buffers.
  const double kept = stack.memory.gathers_16_bit_shard ? gradient : std::min(gradient, stored);
  s.gradients = trained.sharded(kept, shards);
  s.optimizer = trained.sharded(cost.state_bytes + (master ? 0 : cost.master_bytes), shards);
}

void offload(double& bytes, double kept, double& host) {
  const double moved = std::max(bytes - kept, 0.0);
  bytes -= moved;
  host += moved;
}

}  // namespace

LocalParameters local_parameters(const Model& model, const LayerClass& layer,
                                 const Layout& layout) {
  const LayerParameters all = layer_parameters(model, layer);
  // Every rank of tensor parallelism has whole projections to and from experts' latent width, and
  // runs them on its own rows (Megatron-Core: moe_layer.py, parallel_mode "duplicated").
  const double latent =
      layer.ffn.kind == FfnKind::moe ? static_cast<double>(2 * model.hidden * layer.ffn.latent) : 0;
  const double products =
      (static_cast<double>(all.mixer + all.ffn) - latent) / static_cast<double>(layout.tp) + latent;
  const double one_of_each =
      static_cast<double>(all.experts) / static_cast<double>(layout.ep * layout.etp);
  const auto experts = static_cast<double>(layer.ffn.experts);
  const auto held = experts + static_cast<double>(layout.redundant_experts);
  const double expert =
      layout.redundant_experts > 0 && experts > 0 ? one_of_each * (held / experts) : one_of_each;
  const double local_experts = std::max(held / static_cast<double>(layout.ep), 1.0);
  const double gate = is_gated(layer.ffn.activation) ? 2 : 1;
  const double one_ffn = layer.ffn.kind == FfnKind::moe
                             ? expert / local_experts
                             : static_cast<double>(all.ffn) / static_cast<double>(layout.tp);
  return {.dense = products + static_cast<double>(all.router + all.norms),
          .expert = expert,
          .products = products,
          .one_expert = expert / local_experts,
          .largest_weight = one_ffn * gate / (gate + 1)};
}

LocalParameters local_parameters(const Model& model, const LayerClass& layer, const Job& job,
                                 const Layout& layout, const Stack& stack) {
  LocalParameters local = local_parameters(model, layer, layout);
  local.adapters = adapter_parameters(model, layer, job, layout, stack);
  return local;
}

LocalParameters module_parameters(const Model& model, const Layout& layout) {
  const auto hidden = static_cast<double>(model.hidden);
  const double projection = 2 * hidden * hidden / static_cast<double>(layout.tp);
  return {.dense = projection + 3 * hidden, .products = projection, .largest_weight = projection};
}

StageState stage_state(const StageParameters& p, const Model& model, const Job& job,
                       const Layout& layout, const Stack& stack, const MemoryTraits& traits) {
  const Shards shards = shards_of(layout);
  const int zero = layout.zero_stage;
  const bool lora = job.task == Task::lora;
  const double gradient = bytes_per_element(stack.sharding.gradient_storage);
  const OptimizerCost cost = optimizer_cost(layout, stack, model.hidden);
  const Counts all{p.dense, p.expert}, trained = trainable_counts(p, job);
  const bool quantised = is_quantised(layout.precision);
  const bool quantised_primary = quantised && stack.sharding.parameter_gather_format == Format::fp8;

  StageState s;
  if (zero >= 3) {
    const bool master = shards_master(layout, stack) && !lora;
    shard_everything(all, trained, shards, cost, master, stack, s);
  } else {
    const double state = cost.master_bytes + cost.state_bytes;
    // Weights that exist only in low precision keep their transpose in place of the bf16 copy.
    const double linear = p.products + p.expert;
    // One copy of per-tensor scales serves both uses where products read either layout.
    const bool per_tensor = layout.precision == PrecisionRecipe::fp8_delayed ||
                            layout.precision == PrecisionRecipe::fp8_current;
    const double low = quantised_weight_bytes(layout.precision) /
                       (per_tensor && !stack.kernels.transposed_copies ? 2 : 1);
    s.parameters = all.whole(2) + (quantised_primary && !lora ? (low - 2) * linear : 0);
    s.gradients = zero >= 2 ? trained.sharded(gradient, shards) : trained.whole(gradient);
    s.optimizer = zero >= 1 ? trained.sharded(state, shards) : trained.whole(state);
    if (quantised && lora) {
      // Frozen weights are stored in the recipe's format, once: a layer's transposes live while its
      // backward runs (MLPerf's LoRA of 70B parameters ran whole on one H200 of 141 GB).
      const double once = saved_input_bytes(layout.precision);
      s.parameters -= (2 - once) * linear;
      s.quantised_copies = once * p.largest_layer;
    } else if (quantised && !quantised_primary && traits.cached_quantised_weights) {
      s.quantised_copies = low * linear;
    }
  }
  if (lora) s.parameters += trained.whole(2);
  if (traits.cached_weight_gradients && !lora) s.dummy_gradients = 2 * p.distinct;

  const bool has_replicas = shards.dense > 1 || (p.expert > 0 && shards.expert > 1);
  const std::int64_t microbatches = std::max<std::int64_t>(layout.microbatches(job), 1);
  // DDP's buckets are the last microbatch's gradients only: autograd puts those of others into new
  // tensors, since the update frees what pointed into buckets (torch/nn/parallel/distributed.py).
  if (stack.memory.gradient_sums_beside_buckets && zero <= 1 && microbatches > 1)
    s.sums = gradient * replicated(trained, shards);
  if (traits.bucket_copies && has_replicas) {
    s.buckets = trained.whole(2);
    if (zero == 1) s.update_gather = trained.whole(2) + trained.sharded(2, shards);
  } else if (has_replicas && zero >= 2 &&
             (layout.bucket > Bytes(0) || stack.sharding.bucket.known())) {
    // Whole gradients of the bucket that fills and of the one that is being reduced.
    const Bytes bucket = layout.bucket > Bytes(0) ? layout.bucket : stack.sharding.bucket.get();
    s.buckets = std::min(2 * bucket.si(), trained.whole(gradient));
  }
  if (zero >= 3 && has_replicas) {
    const Whole whole = gathered_whole(p, all, trained, shards, model, layout, stack, microbatches);
    s.gathered = whole.parameters + whole.gradients;
    s.gathered_at_loss = whole.at_loss;
    s.sums = whole.sums;
    s.buckets = 0;
  }
  if (layout.offload_optimizer)
    offload(s.optimizer, (1 - layout.optimizer_offload_fraction) * s.optimizer, s.offloaded);
  if (layout.offload_weights) offload(s.parameters, 2 * 2 * p.largest_layer, s.offloaded);
  return s;
}

}  // namespace orrery
