// SPDX-License-Identifier: Apache-2.0
// Computes what layers keep for backward, by formula.
#include "workloads/memory/activation_memory.h"

#include <algorithm>
#include <utility>

#include "workloads/parameters/adapters.h"
#include "workloads/parameters/weight_split.h"
#include "workloads/stack/operation_recompute.h"

namespace orrery {
namespace {

// Sizes shared by all parts of a layer.
struct Sizes {
  double tokens = 0;       // of a microbatch on this rank
  double norm_tokens = 0;  // where sequence parallelism splits them
  double hidden = 0, tp = 1;
  double input = 2;  // bytes kept per element of a linear layer's input
  bool quantised = false, sequence_parallel = false;
  bool compact = false;       // StackMemory::compact_activations
  bool drops_hidden = false;  // masks of a byte of what is added to the residual are kept
  // What selective recompute makes again: cheap parts (stacks whose "selective" means these), the
  // attention core, the norms before the mixer and the feed-forward, latent attention's
  // up-projections, a dense feed-forward, expert layers, the experts' activation, shared experts.
  bool drop_cheap = false, drop_core = false, drop_mixer_norm = false, drop_ffn_norm = false;
  bool drop_up = false, drop_mlp = false, drop_moe = false, drop_act = false, drop_shared = false;
};

Sizes sizes_of(const Model& model, const LayerClass& layer, const Job& job, const Layout& layout,
               const Stack& stack, const MemoryTraits& traits) {
  Sizes s;
  s.tokens =
      static_cast<double>(layout.micro_batch * job.sequence) / static_cast<double>(layout.cp);
  s.tp = static_cast<double>(layout.tp);
  s.sequence_parallel = layout.sequence_parallel && layout.tp > 1;
  s.norm_tokens = s.sequence_parallel ? s.tokens / s.tp : s.tokens;
  s.hidden = static_cast<double>(model.hidden);
  s.quantised = is_quantised(layout.precision) && !stack.memory.inputs_in_16_bits;
  s.input = s.quantised ? saved_input_bytes(layout.precision) : 2;
  s.compact = s.quantised && stack.memory.compact_activations;
  s.drops_hidden = traits.dropout || job.hidden_dropout > 0;
  using enum RecomputeModule;
  const bool core = layout.recomputes(core_attn) && !recomputes_by_operation(layout, stack);
  s.drop_core = core && stack.recompute.selects_attention;
  s.drop_cheap = core && !stack.recompute.selects_attention;
  const NormModules norms = norm_modules(stack, layout, layer);
  s.drop_mixer_norm = s.drop_cheap || (layout.recomputes(layernorm) && norms.mixer);
  s.drop_ffn_norm = s.drop_cheap || (layout.recomputes(layernorm) && norms.ffn);
  s.drop_up = s.drop_cheap || layout.recomputes(mla_up_proj);
  s.drop_mlp = layout.recomputes(mlp);
  s.drop_moe = layout.recomputes(moe);
  s.drop_act = s.drop_cheap || layout.recomputes(moe_act);
  s.drop_shared = layout.recomputes(shared_experts);
  return s;
}

// Output of a norm as a linear layer's input.
double norm_output(const Sizes& s, bool dropped) {
  return dropped ? 0 : s.input * s.hidden * s.norm_tokens;
}

// Attention's output: for its own backward and, quantised, as its projection's input.
double output_bytes(const Sizes& s) {
  if (s.compact) return 1.5;
  return s.quantised ? 2 + s.input : 2;
}

// Scores of unfused attention: softmax 2, dropout mask 1, dropped scores 2 (Korthikanti: 5 a s^2
// b).
double score_count(const Sizes& s, const Mixer& m, const Job& job) {
  return static_cast<double>(m.heads) * s.tokens * static_cast<double>(job.sequence) / s.tp;
}

struct Part {
  double kept = 0, transient = 0, exchange = 0;
};

// Bytes beside `queries` and `keys` (with values) of a rank while they are exchanged.
double context_exchange(const Layout& layout, double queries, double keys) {
  double bytes = 0;
  // As they leave and as they arrive.
  if (layout.context_heads() > 1) bytes += 2 * (queries + keys);
  // Gathered: all ranks' keys and values, and their gradients. Ring: the next ones of both,
  // double-buffered.
  if (layout.context_rings() > 1)
    bytes += layout.context == ContextKind::all_gather ? 2 * keys * static_cast<double>(layout.cp)
                                                       : 4 * keys;
  return bytes;
}

// Queries, keys and values; after rotary embedding queries and keys exist twice, because the values
// are a view that keeps the projection's output alive.
Part attention_part(const Model& model, const Mixer& m, const Sizes& s, const Job& job,
                    const Layout& layout, const Stack& stack, const MemoryTraits& traits) {
  const double heads = static_cast<double>(m.heads) / s.tp;
  const double kv_heads = std::max(static_cast<double>(m.kv_heads) / s.tp, 1.0);
  const double qk = static_cast<double>(m.qk_dim), v = static_cast<double>(m.v_dim);
  const double projected = heads * qk + kv_heads * (qk + v);
  const double out = heads * v;
  double per_token = 2 * projected + output_bytes(s) * out;
  if (model.position == PositionKind::rotary) per_token += 2 * (heads + kv_heads) * qk;
  if (traits.contiguous_attention) per_token += 2 * out;
  Part p{.kept = norm_output(s, s.drop_mixer_norm) + per_token * s.tokens};
  p.transient = (2 * projected + 2 * out + 2 * s.hidden) * s.tokens;
  if (stack.kernels.attention == Library::unfused_attention) {
    const double scores = score_count(s, m, job);
    (s.drop_core ? p.transient : p.kept) += (traits.dropout ? 5 : 2) * scores;
    p.transient += 4 * scores;  // their gradient before and after the softmax
  } else if (!s.drop_core) {
    p.kept += 4 * heads * s.tokens;  // log-sum-exp of each row
  }
  if (s.drops_hidden) p.kept += s.hidden * s.norm_tokens;
  p.exchange =
      context_exchange(layout, 2 * heads * qk * s.tokens, 2 * kv_heads * (qk + v) * s.tokens);
  return p;
}

// DeepSeek-V2's latent attention: down-projections and their norms are not split over tp. Queries,
// keys and values are contiguous copies, joined of their rotary and other parts; the
// up-projections' outputs are freed.
Part mla_part(const Mixer& m, const Sizes& s, const Layout& layout) {
  const double heads = static_cast<double>(m.heads) / s.tp;
  const double qk = static_cast<double>(m.qk_dim), v = static_cast<double>(m.v_dim);
  const double nope = qk - static_cast<double>(m.rope_dim);
  const double q_lora = static_cast<double>(m.q_lora), kv_lora = static_cast<double>(m.kv_lora);
  // The norms of the latents are recomputed with the up-projections.
  const double latents = 2 * (q_lora + kv_lora + static_cast<double>(m.rope_dim)) +
                         (s.drop_up ? 0 : s.input * (q_lora + kv_lora));
  const double up = 2 * heads * qk + 2 * heads * (nope + v);
  const double joined = 2 * heads * (2 * qk + v);
  const double out = heads * v * output_bytes(s);
  Part p;
  p.kept =
      norm_output(s, s.drop_mixer_norm) + latents * s.norm_tokens + (out + 4 * heads) * s.tokens;
  if (!s.drop_up) p.kept += joined * s.tokens;  // recomputed from the latents otherwise
  p.transient = (up + joined + 2 * heads * v + 2 * s.hidden) * s.tokens;
  p.exchange = context_exchange(layout, 2 * heads * qk * s.tokens, 2 * heads * (qk + v) * s.tokens);
  return p;
}

// Mamba-2: projection, convolution, states of each chunk of 256 tokens, gated output.
Part mamba_part(const Mixer& m, const Sizes& s, const Layout& layout) {
  constexpr double chunk = 256;
  const double inner = static_cast<double>(m.inner) / s.tp;
  const double states = 2 * static_cast<double>(m.groups * m.state) / s.tp;
  const double projected = 2 * inner + states + static_cast<double>(m.heads) / s.tp;
  const double per_token = 2 * projected + 2 * (inner + states) + 2 * inner + s.input * inner +
                           4 * inner * static_cast<double>(m.state) / chunk;
  return {.kept = norm_output(s, s.drop_mixer_norm) + per_token * s.tokens,
          .transient = (2 * projected + 2 * (inner + states) + 2 * s.hidden) * s.tokens,
          .exchange = layout.cp > 1 ? 2 * 2 * projected * s.tokens : 0};  // rows traded for heads
}

Part mixer_part(const Model& model, const Mixer& m, const Sizes& s, const Job& job,
                const Layout& layout, const Stack& stack, const MemoryTraits& traits) {
  switch (m.kind) {
    case MixerKind::attention:
      return attention_part(model, m, s, job, layout, stack, traits);
    case MixerKind::mla:
      return mla_part(m, s, layout);
    case MixerKind::mamba2:
      return mamba_part(m, s, layout);
    case MixerKind::gated_delta:  // served only
    case MixerKind::none:
      return {};
  }
  return {};
}

// Bytes per row and unit of width between the two products: their first output, in few bits where
// a compact stack makes the second input again, and that input.
double ffn_row_bytes(Activation activation, const Sizes& s, bool drops_input, bool unfused) {
  const bool gated = is_gated(activation);
  double bytes = (gated ? 2 : 1) * (s.compact && drops_input ? s.input : 2);
  if (!drops_input) bytes += s.input;
  if (gated && unfused) bytes += 2;
  return bytes;
}

// `again`: all of it is recomputed from its input, which is then kept in 16 bits. A compact stack
// makes the activations of shared experts and dense layers again with those of the experts.
Part dense_part(double width, const Ffn& ffn, const Sizes& s, const MemoryTraits& traits,
                bool again) {
  const bool drops_input = s.drop_cheap || (s.compact && s.drop_act);
  const double gate = is_gated(ffn.activation) ? 2 : 1;
  const double inner = ffn_row_bytes(ffn.activation, s, drops_input, traits.unfused_activation) *
                       width / s.tp * s.tokens;
  Part p;
  const double input = s.drop_ffn_norm ? 0 : 2 * s.hidden * s.norm_tokens;
  p.kept = again ? input : norm_output(s, s.drop_ffn_norm) + inner;
  if (s.drops_hidden) p.kept += s.hidden * s.norm_tokens;
  p.transient = (2 * (1 + gate) * width / s.tp + 2 * s.hidden) * s.tokens + (again ? inner : 0);
  return p;
}

// Each rank routes its part of the sequence to topk experts and works on as many rows as it sends,
// times the imbalance; expert tensor parallelism gathers the rows of its group.
Part expert_part(const Ffn& ffn, const Sizes& s, const Job& job, const Layout& layout,
                 const MemoryTraits& traits) {
  const double etp = static_cast<double>(layout.etp);
  const double sent = s.tokens / s.tp * static_cast<double>(ffn.topk);
  const double rows = sent * etp * job.expert_imbalance;
  const double hidden = ffn.latent > 0 ? static_cast<double>(ffn.latent) : s.hidden;
  const double width = static_cast<double>(ffn.width) / etp;
  const double gate = is_gated(ffn.activation) ? 2 : 1;
  Part p;
  // Expert layers of compiled stacks run eagerly: the activation is not fused there either.
  const bool unfused = traits.unfused_activation || traits.contiguous_attention;
  p.kept =
      (s.input * hidden + ffn_row_bytes(ffn.activation, s, s.drop_act, unfused) * width) * rows;
  // Weights applied after the experts need their outputs; fused stacks apply them inside.
  if (unfused) p.kept += 2 * hidden * rows;
  p.kept +=
      3 * 4 * static_cast<double>(ffn.experts) * s.norm_tokens;  // router: fp32 logits, scores
  // What experts' latent rows are projected back from.
  if (ffn.latent > 0) p.kept += s.input * hidden * s.tokens / s.tp;
  p.transient = (2 * (1 + gate) * width + 2 * hidden) * rows;
  if (s.drop_act) p.transient += 2 * width * rows;
  if (s.drop_moe) p.transient += std::exchange(p.kept, 0);
  p.exchange = 2 * hidden * (rows + sent);
  return p;
}

// A stack without gradient fusion makes a gradient in bf16 before it is accumulated.
double largest_weight(const Model& model, const LayerClass& layer, const Layout& layout) {
  const double gate = is_gated(layer.ffn.activation) ? 2 : 1;
  const double width = static_cast<double>(layer.ffn.width * model.hidden);
  switch (layer.ffn.kind) {
    case FfnKind::dense:
      return 2 * gate * width / static_cast<double>(layout.tp);
    case FfnKind::moe:
      return 2 * gate * width * static_cast<double>(layer.ffn.experts) /
             static_cast<double>(layout.ep * layout.etp);
    case FfnKind::none:
      return 0;
  }
  return 0;
}

// What recompute by operation keeps: the layer's input, outputs of products, attention's with the
// log-sum-exp of its rows, sums over tp, what experts were sent and sent back. All else is there
// while the layer's backward is at work.
void keep_by_operation(LayerActivations& a, const Model& model, const LayerClass& layer,
                       const Layout& layout, const Job& job, const Sizes& s) {
  const double all = a.kept();
  const Mixer& m = layer.mixer;
  double mixer = 0, ffn = 0, summed = 0;
  bool mixes = m.kind != MixerKind::none;  // up to the product whose result is summed over tp
  for (const SeparateProduct& p : separate_products(model, layer, layout)) {
    if (p.needed && p.reduced && s.sequence_parallel)
      summed += 2 * s.hidden * s.norm_tokens;
    else if (p.needed && p.kept)
      (mixes ? mixer : ffn) += 2 * static_cast<double>(p.outputs) * s.tokens;
    mixes = mixes && !p.reduced;
  }
  const bool attends = m.kind == MixerKind::attention || m.kind == MixerKind::mla;
  const double heads = static_cast<double>(m.heads) / s.tp;
  a.attention = mixer;
  if (attends) a.attention += heads * (2 * static_cast<double>(m.v_dim) + 4) * s.tokens;
  a.ffn = ffn;
  a.norm = a.checkpoint + summed;
  a.expert = 0;
  if (layer.ffn.kind == FfnKind::moe && layout.ep > 1) {
    const double sent = s.tokens / s.tp * static_cast<double>(layer.ffn.topk);
    const double arrived = sent * static_cast<double>(layout.etp) * job.expert_imbalance;
    a.expert = 2 * s.hidden * (sent + arrived);
  }
  a.transient += std::max(0.0, all - a.kept());
}

}  // namespace

LayerActivations layer_activations(const Model& model, const LayerClass& layer, const Job& job,
                                   const Layout& layout, const Stack& stack,
                                   const MemoryTraits& traits) {
  const Sizes s = sizes_of(model, layer, job, layout, stack, traits);
  const Part mixer = mixer_part(model, layer.mixer, s, job, layout, stack, traits);
  LayerActivations a;
  a.attention = mixer.kept + adapter_activations(model, layer, job, layout, stack);
  a.transient = mixer.transient;
  a.exchange = mixer.exchange;
  if (layer.ffn.kind == FfnKind::dense) {
    const Part ffn =
        dense_part(static_cast<double>(layer.ffn.width), layer.ffn, s, traits, s.drop_mlp);
    a.ffn = ffn.kept;
    a.transient = std::max(a.transient, ffn.transient);
  } else if (layer.ffn.kind == FfnKind::moe) {
    const Part experts = expert_part(layer.ffn, s, job, layout, traits);
    const Part shared = dense_part(static_cast<double>(layer.ffn.shared_width), layer.ffn, s,
                                   traits, s.drop_shared || s.drop_moe);
    a.expert = experts.kept;
    a.ffn = shared.kept;  // the norm's output, and the shared experts where there are any
    a.transient = std::max({a.transient, experts.transient, shared.transient});
    a.exchange = std::max(a.exchange, experts.exchange);
  }
  // Sequence parallelism gathers the input again in backward.
  if (s.sequence_parallel) a.transient += 2 * s.hidden * s.tokens;
  if (!traits.cached_weight_gradients && job.task != Task::lora)
    a.transient += largest_weight(model, layer, layout);
  a.norm = static_cast<double>(layer.norms) * 2 * s.hidden * s.norm_tokens;
  a.checkpoint = 2 * s.hidden * s.norm_tokens;
  if (recomputes_by_operation(layout, stack)) keep_by_operation(a, model, layer, layout, job, s);
  return a;
}

HeadActivations head_activations(const Model& model, const Job& job, const Layout& layout,
                                 const Stack& stack, const MemoryTraits& traits) {
  const double tokens =
      static_cast<double>(layout.micro_batch * job.sequence) / static_cast<double>(layout.cp);
  const double tp = static_cast<double>(layout.tp);
  const double hidden = static_cast<double>(model.hidden);
  const double logits = tokens * static_cast<double>(local_vocabulary(model, stack, layout));
  const double norm_tokens = layout.sequence_parallel && layout.tp > 1 ? tokens / tp : tokens;
  // The head's weight gradient meets the bf16 gradient of the logits.
  const double weight =
      job.task == Task::lora ? 0.0 : 2 * vocabulary_parameters(model, stack, layout);
  return {.norm = 4 * hidden * norm_tokens,
          .outputs = traits.keeps_outputs && layout.pp > 1 ? 2 * logits : 0.0,
          .saved = traits.loss_saved * logits,
          .peak = std::max(traits.loss_peak * logits, 2 * logits + weight)};
}

}  // namespace orrery
