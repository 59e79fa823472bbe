// Computes parameters, gradients and optimizer state under ZeRO, LoRA, offload and low precision.
#include "workloads/state_memory.h"

#include <algorithm>

#include "workloads/optimizer.h"

namespace orrery {
namespace {

// Ranks that share one copy of the dense and of the expert parameters.
struct Shards {
  double dense = 1, expert = 1;
};

Shards shards_of(const Layout& layout) {
  const std::int64_t dense = layout.shard_group > 0
                                 ? std::min(layout.shard_group, layout.dense_replicas())
                                 : layout.dense_replicas();
  const std::int64_t expert = layout.shard_group > 0
                                  ? std::min(layout.shard_group, layout.expert_replicas())
                                  : layout.expert_replicas();
  return {.dense = static_cast<double>(std::max<std::int64_t>(dense, 1)),
          .expert = static_cast<double>(std::max<std::int64_t>(expert, 1))};
}

// Bytes of `per_parameter` state, sharded or whole.
struct Counts {
  double dense = 0, expert = 0;
  double whole(double per_parameter) const { return per_parameter * (dense + expert); }
  double sharded(double per_parameter, const Shards& s) const {
    return per_parameter * (dense / s.dense + expert / s.expert);
  }
};

// Adapters of rank r on every linear layer: r (inputs + outputs), about 2 r / hidden of its
// weights.
Counts trainable_counts(const StageParameters& p, const Model& model, const Job& job) {
  if (job.task != Task::lora) return {.dense = p.dense, .expert = p.expert};
  const double share =
      std::min(1.0, 2.0 * static_cast<double>(job.lora_rank) / static_cast<double>(model.hidden));
  return {.dense = p.products * share, .expert = p.expert * share};
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
  const double products = static_cast<double>(all.mixer + all.ffn) / static_cast<double>(layout.tp);
  const double expert =
      static_cast<double>(all.experts) / static_cast<double>(layout.ep * layout.etp);
  const double local_experts =
      std::max(static_cast<double>(layer.ffn.experts) / static_cast<double>(layout.ep), 1.0);
  return {.dense = products + static_cast<double>(all.router + all.norms),
          .expert = expert,
          .products = products,
          .one_expert = expert / local_experts};
}

StageState stage_state(const StageParameters& p, const Model& model, const Job& job,
                       const Layout& layout, const Stack& stack, const MemoryTraits& traits) {
  const Shards shards = shards_of(layout);
  const int zero = layout.zero_stage;
  const bool lora = job.task == Task::lora;
  const double gradient = bytes_per_element(stack.gradient_storage);
  const OptimizerCost cost = optimizer_cost(layout.optimizer, gradient, model.hidden);
  const Counts all{.dense = p.dense, .expert = p.expert};
  const Counts trained = trainable_counts(p, model, job);
  const bool quantised = is_quantised(layout.precision);
  const bool quantised_primary = quantised && stack.parameter_gather_format == Format::fp8;

  StageState s;
  if (zero >= 3) {
    // The sharded parameter is the master itself where there is one (FSDP2 mixed precision).
    const double stored = !lora && cost.master_bytes > 0 ? cost.master_bytes : 2;
    s.parameters = all.sharded(stored, shards);
    s.gradients = trained.sharded(gradient, shards);
    s.optimizer = trained.sharded(cost.state_bytes + (lora ? cost.master_bytes : 0), shards);
  } else {
    const double state = cost.master_bytes + cost.state_bytes;
    // Weights that exist only in low precision keep their transpose in place of the bf16 copy.
    const double linear = p.products + p.expert;
    const double low = quantised_weight_bytes(layout.precision);
    s.parameters = all.whole(2) + (quantised_primary ? (low - 2) * linear : 0);
    s.gradients = zero >= 2 ? trained.sharded(gradient, shards) : trained.whole(gradient);
    s.optimizer = zero >= 1 ? trained.sharded(state, shards) : trained.whole(state);
    if (quantised && !quantised_primary && traits.cached_quantised_weights)
      s.quantised_copies = low * linear;
  }
  if (lora) s.parameters += trained.whole(2);
  if (traits.cached_weight_gradients && !lora) s.dummy_gradients = 2 * p.distinct;

  const bool replicated = shards.dense > 1 || (p.expert > 0 && shards.expert > 1);
  if (traits.bucket_copies && replicated) {
    s.buckets = trained.whole(2);
    if (zero == 1) s.update_gather = trained.whole(2) + trained.sharded(2, shards);
  } else if (replicated && zero >= 1 && stack.bucket.known()) {
    // Whole gradients of the bucket that fills and of the one that is being reduced.
    if (zero >= 2) s.buckets = std::min(2 * stack.bucket.get().si(), trained.whole(gradient));
  }
  if (zero >= 3 && replicated) {
    const double gather = bytes_per_element(stack.parameter_gather_format);
    // The layer at work and the prefetched one, the layer's gradient, and embedding and head, which
    // FSDP keeps whole from forward to backward.
    s.gathered = (2 * gather + 2 + bytes_per_element(stack.gradient_format)) * p.largest_layer +
                 2 * p.vocabulary;
    s.buckets = 0;
  }
  if (layout.offload_optimizer) offload(s.optimizer, 0, s.offloaded);
  if (layout.offload_weights) offload(s.parameters, 2 * 2 * p.largest_layer, s.offloaded);
  return s;
}

}  // namespace orrery
