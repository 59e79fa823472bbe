// SPDX-License-Identifier: Apache-2.0
// Builds the operations of attention in its variants, MLA among them.
#include <algorithm>

#include "workloads/operations/layer_operations.h"

namespace orrery {
namespace {

// Of the random numbers of all scores.
double dropout_operations(const Kernel& kernel, const StackDropout& dropout) {
  const bool flash = kernel.library == Library::flash2;
  const bool forward = kernel.work.kind == WorkKind::attention_forward;
  const auto& each = forward ? (flash ? dropout.flash_forward : dropout.score_forward)
                             : (flash ? dropout.flash_backward : dropout.score_backward);
  return visible_scores(kernel.work) * each.get();
}

}  // namespace

void LayerOperations::attention(LayerProgram& p, const Mixer& mixer) const {
  const bool frozen = job_.task == Task::lora;
  const std::int64_t t = shape_.tokens, h = model_.hidden;
  const std::int64_t heads = split(mixer.heads, layout_.tp);
  const std::int64_t kv_heads = split(mixer.kv_heads, layout_.tp);
  const bool split_rows = shape_.sequence_parallel;
  const Linear out{.m = t,
                   .n = h,
                   .k = heads * mixer.v_dim,
                   .scattered = split_rows,
                   .adapter = adapter(Adapter::rows)};
  std::vector<Linear> in;
  const Adapter latent = adapter(Adapter::whole, AdapterSites::query_key_value);
  tensor_enter(p);
  if (mixer.kind == MixerKind::mla) {
    const std::int64_t nope = mixer.qk_dim - mixer.rope_dim;
    if (mixer.q_lora > 0) {
      in.push_back({.m = t, .n = mixer.q_lora, .k = h, .adapter = latent});
      in.push_back({.m = t, .n = heads * mixer.qk_dim, .k = mixer.q_lora});
    } else {
      in.push_back({.m = t, .n = heads * mixer.qk_dim, .k = h});
    }
    in.push_back({.m = t, .n = mixer.kv_lora + mixer.rope_dim, .k = h, .adapter = latent});
    in.push_back({.m = t, .n = heads * (nope + mixer.v_dim), .k = mixer.kv_lora});
  } else {
    in.push_back(
        {.m = t, .n = heads * mixer.qk_dim + kv_heads * (mixer.qk_dim + mixer.v_dim), .k = h});
  }
  for (Linear& l : in) {
    l.gathered = split_rows && l.k == h;
    if (l.adapter == Adapter::none)
      l.adapter = adapter(Adapter::columns, AdapterSites::query_key_value);
    const std::size_t product = p.forward.operations.size();
    forward_linear(p.forward, l, Label::gemm);
    // Up-projections read a latent, not the hidden states.
    if (mixer.kind == MixerKind::mla && l.k != h) rerun(p, RecomputeModule::mla_up_proj, product);
  }
  const std::size_t rotation = p.forward.operations.size();
  const double rotated = static_cast<double>(t * (heads + kv_heads) * mixer.qk_dim);
  if (model_.position == PositionKind::rotary) {
    stream(p.forward, WorkKind::rotary, 2 * rotated, 2 * rotated, Label::elementwise);
    if (mixer.kind == MixerKind::mla) rerun(p, RecomputeModule::mla_up_proj, rotation);
    stream(p.input_gradient, WorkKind::rotary, 2 * rotated, 2 * rotated, Label::elementwise);
  }
  if (shape_.decode && mixer.kind == MixerKind::attention) {
    // The new keys, and then the new values, join those in the cache.
    Operation append{.label = Label::attention, .count = 2};
    const double half = static_cast<double>(t * kv_heads * (mixer.qk_dim + mixer.v_dim));
    append.work =
        Kernel{.work = {.kind = WorkKind::copy, .bytes_read = half, .bytes_written = half},
               .library = stack_.kernels.stream_library()};
    p.forward.operations.push_back(append);
  }
  context_exchange(p, mixer);
  attention_core(p, mixer);
  forward_linear(p.forward, out, Label::gemm);
  backward_linear(p, out, Label::gemm, frozen);
  for (const Linear& l : in) backward_linear(p, l, Label::gemm, frozen);
  tensor_leave(p);
}

void LayerOperations::attention_core(LayerProgram& p, const Mixer& mixer) const {
  Work work{.kind = WorkKind::attention_forward,
            .input = stack_.kernels.attention_format == Format::bf16
                         ? plain_format()
                         : stack_.kernels.attention_format,
            .output = Format::bf16};
  work.batch = shape_.sequences;
  const std::int64_t ways = layout_.tp * layout_.context_heads();
  work.heads = split(mixer.heads, ways);
  work.kv_heads = split(mixer.kind == MixerKind::mla ? mixer.heads : mixer.kv_heads, ways);
  work.q_length = shape_.q_length;
  work.kv_length = shape_.kv_length;
  work.qk_dim = mixer.qk_dim;
  work.v_dim = mixer.v_dim;
  work.window = mixer.window;
  work.causal = shape_.causal;
  if (shape_.decode) {
    work.kind = WorkKind::attention_decode;
    if (mixer.window > 0) work.kv_length = std::min(work.kv_length, mixer.window);
    if (mixer.kind == MixerKind::mla) {
      // Decoding absorbs the up-projections: all heads attend over one latent of kv_lora + rope.
      work.kv_heads = 1;
      work.qk_dim = mixer.kv_lora + mixer.rope_dim;
      work.v_dim = mixer.kv_lora;
    }
  }
  const bool latent = shape_.decode && mixer.kind == MixerKind::mla;
  Kernel kernel{.work = work,
                .library = latent
                               ? stack_.kernels.latent_attention.value_or(stack_.kernels.attention)
                               : stack_.kernels.attention};
  const bool drops = shape_.training && job_.attention_dropout > 0;
  if (drops) kernel.work.vector_flop = dropout_operations(kernel, stack_.dropout);
  p.forward.operations.push_back({.label = Label::attention, .work = kernel});
  if (!shape_.training) return;
  kernel.work.kind = WorkKind::attention_backward;
  if (drops) kernel.work.vector_flop = dropout_operations(kernel, stack_.dropout);
  p.input_gradient.operations.push_back({.label = Label::attention, .work = kernel});
  if (!softmax_falls_back(mixer)) return;
  // Eager softmax in fp32: a cast, the scale, the mask, the softmax and a cast back pass over every
  // score, 20 B read and 18 B written, against the fused kernel's 2 B each way. Backward alike.
  const double scores = static_cast<double>(work.batch * work.heads * work.q_length) *
                        static_cast<double>(work.kv_length);
  Operation softmax{.label = Label::attention};
  softmax.work = Kernel{
      .work = {.kind = WorkKind::softmax, .bytes_read = 18 * scores, .bytes_written = 16 * scores},
      .library = stack_.kernels.stream_library()};
  p.forward.operations.push_back(softmax);
  p.input_gradient.operations.push_back(softmax);
}

}  // namespace orrery
