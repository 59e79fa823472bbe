// SPDX-License-Identifier: Apache-2.0
// Knows which combinations of decisions can run, and says why the others cannot.
#include "workloads/layout/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

using Reason = std::optional<std::string>;

// Whether a divides b. The search calls this dozens of times a layout: most divisors are powers of
// two, and a mask costs a tenth of a division.
constexpr bool divides(std::int64_t a, std::int64_t b) {
  return (a & (a - 1)) == 0 ? (b & (a - 1)) == 0 : b % a == 0;
}

Reason range_reason(const Layout& l) {
  if (l.tp < 1 || l.pp < 1 || l.vpp < 1 || l.dp < 1 || l.cp < 1 || l.ep < 1 || l.etp < 1 ||
      l.micro_batch < 1) {
    return fmt::format(
        "tp {}, pp {}, vpp {}, dp {}, cp {}, ep {}, etp {} and micro_batch {} must be at least 1",
        l.tp, l.pp, l.vpp, l.dp, l.cp, l.ep, l.etp, l.micro_batch);
  }
  const double ranks = static_cast<double>(l.tp) * static_cast<double>(l.pp) *
                       static_cast<double>(l.dp) * static_cast<double>(l.cp);
  const double folded = static_cast<double>(l.ep) * static_cast<double>(l.etp);
  const double stages = static_cast<double>(l.pp) * static_cast<double>(l.vpp);
  const double samples = static_cast<double>(l.micro_batch) * static_cast<double>(l.dp);
  if (ranks > 1e12 || folded > 1e12 || stages > 1e12 || samples > 1e12) {
    return fmt::format("the layout is for {:.3g} GPUs, which is beyond what can be counted", ranks);
  }
  return std::nullopt;
}

Reason group_reason(const Layout& l, const Model& model, std::int64_t gpus) {
  if (gpus != 0 && l.gpus() != gpus) {
    return fmt::format("tp {} x pp {} x dp {} x cp {} is {} GPUs, not {}", l.tp, l.pp, l.dp, l.cp,
                       l.gpus(), gpus);
  }
  if (l.ep == 1 && l.etp == 1) return std::nullopt;
  if (!model.has_experts()) {
    return fmt::format("ep {} and etp {} need experts, and {} has none", l.ep, l.etp, model.name);
  }
  const std::int64_t replica = l.dp * l.cp * l.tp;
  if (!divides(l.ep * l.etp, replica)) {
    return fmt::format("ep {} x etp {} does not divide dp {} x cp {} x tp {} = {}", l.ep, l.etp,
                       l.dp, l.cp, l.tp, replica);
  }
  return std::nullopt;
}

// Ranks that trade rows for heads need whole heads, of keys and values too (Transformer Engine).
// State-space layers do so however attention exchanges.
Reason head_exchange_reason(const Layout& l, const Mixer& m) {
  const bool states = m.kind == MixerKind::mamba2;
  const std::int64_t ways = states ? l.cp : l.context_heads();
  if (ways == 1) return std::nullopt;
  const auto wrong = [&](std::int64_t heads, std::string_view what) {
    return fmt::format("an all-to-all over {} context-parallel ranks does not divide {} {} a rank",
                       ways, heads, what);
  };
  const std::int64_t heads = m.heads / l.tp;
  if (!divides(ways, heads)) return wrong(heads, "heads");
  const std::int64_t kv_heads = m.kind == MixerKind::attention ? m.kv_heads / l.tp : heads;
  if (!divides(ways, kv_heads) || kv_heads == 0)
    return wrong(std::max<std::int64_t>(kv_heads, 1), "key-value heads");
  return std::nullopt;
}

Reason mixer_reason(const Layout& l, const Mixer& m) {
  if (m.kind == MixerKind::none) return std::nullopt;
  // Their kernels of training were not measured, nor what they keep for backward.
  if (is_served_only(m))
    return fmt::format("layers of {} are served (orrery serve), and not trained here",
                       m.kind == MixerKind::gated_delta ? "gated delta nets"
                       : m.compress > 0                 ? "compressed attention"
                                                        : "sparse attention with an indexer");
  if (!divides(l.tp, m.heads)) return fmt::format("tp {} does not divide {} heads", l.tp, m.heads);
  // With fewer key-value heads (or state groups) than ranks, ranks hold copies of them.
  if (m.kind == MixerKind::attention && !divides(l.tp, m.kv_heads) && !divides(m.kv_heads, l.tp)) {
    return fmt::format("tp {} and {} key-value heads do not divide one another", l.tp, m.kv_heads);
  }
  if (m.kind == MixerKind::mamba2 && !divides(l.tp, m.groups) && !divides(m.groups, l.tp)) {
    return fmt::format("tp {} and {} state groups do not divide one another", l.tp, m.groups);
  }
  return head_exchange_reason(l, m);
}

Reason ffn_reason(const Layout& l, const Ffn& f) {
  if (f.kind == FfnKind::none) return std::nullopt;
  if (f.kind == FfnKind::dense) {
    if (divides(l.tp, f.width)) return std::nullopt;
    return fmt::format("tp {} does not divide the feed-forward width {}", l.tp, f.width);
  }
  if (!divides(l.tp, f.shared_width)) {
    return fmt::format("tp {} does not divide the shared experts' width {}", l.tp, f.shared_width);
  }
  if (l.redundant_experts > f.experts * (l.ep - 1))
    return fmt::format("{} copies of {} experts are more than one of each on {} ranks",
                       l.redundant_experts, f.experts, l.ep);
  if (!divides(l.ep, f.experts + l.redundant_experts)) {
    const std::string copies =
        l.redundant_experts > 0 ? fmt::format(" and {} copies", l.redundant_experts) : "";
    return fmt::format(
        "ep {} does not divide {} experts{}; an inference step may hold {} copies of busy ones "
        "(expert_replicas)",
        l.ep, f.experts, copies, (l.ep - f.experts % l.ep) % l.ep);
  }
  if (!divides(l.etp, f.width)) {
    return fmt::format("etp {} does not divide the expert width {}", l.etp, f.width);
  }
  return std::nullopt;
}

// Every dimension of a product on one rank must be a multiple of what the number format needs.
Reason precision_reason(const Layout& l, const Model& model, const LayerClass& layer) {
  const std::int64_t multiple = dimension_multiple(l.precision);
  if (multiple == 1) return std::nullopt;
  const auto wrong = [&](std::string_view what, std::int64_t size) {
    return fmt::format("{} needs multiples of {}, and {} is {}", to_text(l.precision), multiple,
                       what, size);
  };
  if (!divides(multiple, model.hidden)) return wrong("the hidden size", model.hidden);
  const Mixer& m = layer.mixer;
  if (m.kind != MixerKind::none) {
    const std::int64_t width = m.heads / l.tp * m.v_dim;
    if (!divides(multiple, width)) return wrong("the heads' width on a rank", width);
  }
  const Ffn& f = layer.ffn;
  if (f.kind != FfnKind::none) {
    const std::int64_t width = f.width / (f.kind == FfnKind::moe ? l.etp : l.tp);
    if (!divides(multiple, width)) return wrong("the feed-forward width on a rank", width);
  }
  return std::nullopt;
}

Reason model_reason(const Layout& l, const Model& model) {
  for (const LayerClass& layer : model.classes) {
    if (Reason reason = mixer_reason(l, layer.mixer)) return reason;
    if (Reason reason = ffn_reason(l, layer.ffn)) return reason;
    if (Reason reason = precision_reason(l, model, layer)) return reason;
  }
  return std::nullopt;
}

Reason sequence_reason(const Layout& l, const Job& job) {
  if (job.task == Task::decode) {
    if (l.cp > 1) return fmt::format("cp {} splits a sequence, and decode has one token", l.cp);
    return std::nullopt;
  }
  if (job.sequence < 1) return fmt::format("a sequence of {} tokens", job.sequence);
  // Causal attention is balanced by giving each rank one early and one late chunk.
  if (l.cp > 1 && !divides(2 * l.cp, job.sequence)) {
    return fmt::format("2 x cp {} does not divide the sequence of {} tokens", l.cp, job.sequence);
  }
  if (l.tp > 1 && l.sequence_parallel && is_training(job.task) &&
      !divides(l.tp, job.sequence / l.cp)) {
    return fmt::format("tp {} with sequence parallelism does not divide {} tokens", l.tp,
                       job.sequence / l.cp);
  }
  return std::nullopt;
}

Reason context_reason(const Layout& l) {
  if (l.cp == 1) return std::nullopt;
  if (l.context != ContextKind::hierarchical) {
    if (l.context_inner == 0) return std::nullopt;
    return fmt::format("context_inner {} needs hierarchical context parallelism, not {}",
                       l.context_inner, to_text(l.context));
  }
  if (l.context_inner > 1 && l.context_inner < l.cp && divides(l.context_inner, l.cp))
    return std::nullopt;
  return fmt::format(
      "hierarchical context parallelism needs a context_inner between 1 and cp {} that divides it, "
      "not {}",
      l.cp, l.context_inner);
}

Reason stage_reason(const Layout& l, const Model& model, Partition partition) {
  const std::int64_t positions = l.pp * l.vpp, layers = model.layer_count();
  if (l.stage_layers.empty()) {
    // Embedding and head can be blocks of their own beside the layers.
    if (positions <= layers + 2 || partition == Partition::by_cost) return std::nullopt;
    return fmt::format("pp {} x vpp {} is {} pipeline positions for {} layers", l.pp, l.vpp,
                       positions, layers);
  }
  if (static_cast<std::int64_t>(l.stage_layers.size()) != positions) {
    return fmt::format("stage_layers has {} entries, and pp {} x vpp {} is {}",
                       l.stage_layers.size(), l.pp, l.vpp, positions);
  }
  std::int64_t sum = 0;
  for (std::int64_t n : l.stage_layers) {
    if (n < 0 || n > layers) return fmt::format("stage_layers has an entry of {} layers", n);
    sum += n;
  }
  if (sum == layers) return std::nullopt;
  return fmt::format("stage_layers adds up to {} of {} layers", sum, layers);
}

Reason inference_reason(const Layout& l, const Job& job) {
  if (l.vpp > 1) return fmt::format("vpp {} has no use in an inference step", l.vpp);
  if (job.batch < 1) return fmt::format("a batch of {} sequences", job.batch);
  if (job.task == Task::decode && job.context < 0) {
    return fmt::format("a context of {} tokens", job.context);
  }
  return std::nullopt;
}

Reason schedule_reason(const Layout& l, std::int64_t microbatches) {
  if (is_v_shaped(l.schedule)) {
    if (l.pp > 1 && l.vpp == 2 && microbatches >= 2 * l.pp) return std::nullopt;
    return fmt::format(
        "{} needs pp above 1, vpp 2 and at least 2 x pp microbatches, not pp {}, vpp {} and {} "
        "microbatches",
        to_text(l.schedule), l.pp, l.vpp, microbatches);
  }
  const std::string_view name = to_text(l.schedule);
  if (loops_over_chunks(l.schedule)) {
    if (l.vpp < 2 || l.pp < 2)
      return fmt::format("the {} schedule needs pp and vpp above 1, not {} and {}", name, l.pp,
                         l.vpp);
    if (divides(l.pp, microbatches)) return std::nullopt;
    return fmt::format("the {} schedule needs pp {} to divide {} microbatches", name, l.pp,
                       microbatches);
  }
  if (l.vpp > 1) return fmt::format("vpp {} needs the interleaved schedule, not {}", l.vpp, name);
  if (traits(l.schedule).chunks == StageChunks::copies) {
    if (l.pp % 2 == 0 && microbatches % 2 == 0 && microbatches >= 2 * l.pp) return std::nullopt;
    return fmt::format(
        "{} needs an even pp and an even number of at least 2 x pp microbatches, not pp {} and {} "
        "microbatches",
        name, l.pp, microbatches);
  }
  if (splits_backward(l.schedule) && l.pp == 1)
    return fmt::format("the {} schedule needs pp above 1", name);
  return std::nullopt;
}

Reason sharding_reason(const Layout& l) {
  if (!(l.bucket >= Bytes(0) && l.bucket.si() < 1e15))
    return fmt::format("a gradient bucket of {}", to_text(l.bucket));
  if (l.zero_stage < 0 || l.zero_stage > 3)
    return fmt::format("zero {} is not 0 to 3", l.zero_stage);
  if (l.shard_group == 0) return std::nullopt;
  if (l.shard_group < 0 || l.zero_stage == 0) {
    return fmt::format(
        "shard_group {} with zero {}: sharding needs a group above 0 and zero 1 to 3",
        l.shard_group, l.zero_stage);
  }
  if (divides(l.shard_group, l.dp * l.cp)) return std::nullopt;
  return fmt::format("shard_group {} does not divide dp {} x cp {}", l.shard_group, l.dp, l.cp);
}

Reason training_reason(const Layout& l, const Model& model, const Job& job) {
  if (l.redundant_experts > 0)
    return fmt::format("expert_replicas {} are of inference: a training step updates one of each",
                       l.redundant_experts);
  const std::int64_t microbatches = l.microbatches(job);
  if (microbatches == 0) {
    return fmt::format("micro_batch {} x dp {} does not divide the global batch of {}",
                       l.micro_batch, l.dp, job.global_batch);
  }
  if (Reason reason = schedule_reason(l, microbatches)) return reason;
  if (Reason reason = sharding_reason(l)) return reason;
  if (l.recompute_layers < 0 || l.recompute_layers > model.layer_count()) {
    return fmt::format("recompute_layers {} of {} layers", l.recompute_layers, model.layer_count());
  }
  if (l.recompute_layers > 0 && l.recompute != Recompute::full) {
    return fmt::format("recompute_layers {} needs recompute full, not {}", l.recompute_layers,
                       to_text(l.recompute));
  }
  return std::nullopt;
}

}  // namespace

std::int64_t dimension_multiple(PrecisionRecipe precision) {
  switch (precision) {
    case PrecisionRecipe::bf16:
    case PrecisionRecipe::fp16:
      return 1;
    case PrecisionRecipe::fp8_delayed:
    case PrecisionRecipe::fp8_current:
    case PrecisionRecipe::fp8_blockwise:
    case PrecisionRecipe::nvfp4:
      return 16;
    case PrecisionRecipe::mxfp8:
    case PrecisionRecipe::mxfp4:
      return 32;
    case PrecisionRecipe::int4:
    case PrecisionRecipe::int8:
      return 1;
  }
  return 1;
}

std::int64_t Layout::microbatches(const Job& job) const {
  if (!is_training(job.task)) return 1;
  const std::int64_t at_once = micro_batch * dp;
  if (job.global_batch < at_once || !divides(at_once, job.global_batch)) return 0;
  return job.global_batch / at_once;
}

std::int64_t local_experts(const Ffn& ffn, const Layout& layout) {
  return std::max<std::int64_t>(1, (ffn.experts + layout.redundant_experts) / layout.ep);
}

std::optional<std::string> invalid_reason(const Layout& layout, const Model& model, const Job& job,
                                          std::int64_t gpus, Partition partition) {
  if (Reason reason = range_reason(layout)) return reason;
  if (Reason reason = group_reason(layout, model, gpus)) return reason;
  if (Reason reason = context_reason(layout)) return reason;
  if (Reason reason = model_reason(layout, model)) return reason;
  if (Reason reason = sequence_reason(layout, job)) return reason;
  if (Reason reason = stage_reason(layout, model, partition)) return reason;
  return is_training(job.task) ? training_reason(layout, model, job)
                               : inference_reason(layout, job);
}

Format linear_format(PrecisionRecipe recipe) {
  switch (recipe) {
    case PrecisionRecipe::bf16:
    case PrecisionRecipe::mxfp4:
    case PrecisionRecipe::int4:
    case PrecisionRecipe::int8:
      return Format::bf16;
    case PrecisionRecipe::fp16:
      return Format::fp16;
    case PrecisionRecipe::fp8_delayed:
    case PrecisionRecipe::fp8_current:
    case PrecisionRecipe::fp8_blockwise:
    case PrecisionRecipe::mxfp8:
      return Format::fp8;
    case PrecisionRecipe::nvfp4:
      return Format::fp4;
  }
  return Format::bf16;
}

}  // namespace orrery
