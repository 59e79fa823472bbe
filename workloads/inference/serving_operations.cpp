// SPDX-License-Identifier: Apache-2.0
// Lowers layers of a served model to operations: products, norms, attention over histories, head.
#include "workloads/inference/serving_operations.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernel_shapes.h"
#include "workloads/inference/weight_format.h"
#include "workloads/layout/checkpoint.h"

namespace orrery {
namespace {

// Bytes of quantising an element of activations from 16 bits for a product: read, written.
double quantised_bytes(Format format) {
  return format == Format::fp4 ? 0.5 + 1.0 / 16 : 1 + 4.0 / 128;
}

}  // namespace

ServingOperations ServingOperations::of(ModelPart part) const {
  ServingOperations other = *this;
  other.precision_ = part_precision(model_, layout_.precision, part);
  return other;
}

std::int64_t ServingOperations::split(std::int64_t n) const {
  return std::max<std::int64_t>(1, n / layout_.tp);
}

void ServingOperations::stream(Segment& s, Label label, WorkKind kind, double read, double written,
                               std::int64_t blocks) const {
  Operation o{.label = label};
  o.work = Kernel{.work = {.kind = kind, .m = blocks, .bytes_read = read, .bytes_written = written},
                  .library = stack_.kernels.stream_library()};
  s.operations.push_back(o);
}

// Operations of the fp32 units, beside what they read and write.
void ServingOperations::vector_work(Segment& s, Label label, double operations, double read,
                                    double written) const {
  Operation o{.label = label};
  o.work = Kernel{.work = {.kind = WorkKind::elementwise,
                           .bytes_read = read,
                           .bytes_written = written,
                           .vector_flop = operations},
                  .library = stack_.kernels.memory_bound};
  s.operations.push_back(o);
}

// Tables of quantised products hold the time of quantising their input; curves have it apart.
void ServingOperations::product(Segment& s, Label label, std::int64_t m, std::int64_t n,
                                std::int64_t k, bool quantised) const {
  const WeightFormat weights = quantised ? weight_format(precision_, stack_) : WeightFormat{};
  const Format format = weights.operands;
  const bool small = weights.quantises();
  // Products in 16 bits are cuBLAS's, but for a stack whose library is of those.
  const bool own = small || stack_.kernels.gemm == Library::vllm_linear;
  const Library library = weights.library.value_or(own ? stack_.kernels.gemm : Library::cublas);
  if (small) quantise(s, converted_elements(m, k), format, library, m);
  Operation o{.label = label};
  o.work = Kernel{.work = {.kind = WorkKind::gemm,
                           .input = format,
                           .output = Format::bf16,
                           .m = m,
                           .n = n,
                           .k = k,
                           .stored_bits = weights.stored_bits},
                  .library = library};
  s.operations.push_back(o);
}

// Reads `elements` in 16 bits and writes them in `format`.
void ServingOperations::quantise(Segment& s, double elements, Format format, Library library,
                                 std::int64_t rows) const {
  Operation o{.label = Label::quantise};
  o.work = Kernel{.work = {.kind = WorkKind::quantise,
                           .input = format,
                           .m = rows,
                           .bytes_read = 2 * elements,
                           .bytes_written = quantised_bytes(format) * elements},
                  .library = library};
  s.operations.push_back(o);
}

// One product for each of `groups` heads or groups of them.
void ServingOperations::batched_product(Segment& s, std::int64_t m, std::int64_t n, std::int64_t k,
                                        std::int64_t groups, Format format, Library library) const {
  Operation o{.label = Label::gemm};
  o.work = Kernel{
      .work = {.kind = WorkKind::gemm, .input = format, .m = m, .n = n, .k = k, .groups = groups},
      .library = library};
  s.operations.push_back(o);
}

// The same of absorbed latents: a stack may have them in 8 bits.
void ServingOperations::absorbed_product(Segment& s, std::int64_t m, std::int64_t n, std::int64_t k,
                                         std::int64_t heads) const {
  const std::optional<Library> own = stack_.serving.kernels.absorbed_gemm;
  if (!own) return batched_product(s, m, n, k, heads);
  quantise(s, static_cast<double>(m * k * heads), Format::fp8, *own);
  batched_product(s, m, n, k, heads, Format::fp8, *own);
}

// `work` has sequences, heads and lengths. All heads of latent attention share one key.
void ServingOperations::decode_attention(Segment& s, const Mixer& mixer, Work work) const {
  const bool latent = mixer.kind == MixerKind::mla;
  work.kind = WorkKind::attention_decode;
  work.input = layout_.cache == Format::bf16 ? Format::bf16 : Format::fp8;
  // Keys and values of 4 bits have a scale byte for each 16 and are multiplied in 8.
  if (layout_.cache == Format::fp4) work.stored_bits = 4.5;
  work.kv_heads = latent ? 1 : split(mixer.kv_heads);
  work.qk_dim = latent ? mixer.kv_lora + mixer.rope_dim : mixer.qk_dim;
  work.v_dim = latent ? mixer.kv_lora : mixer.v_dim;
  work.causal = true;
  const Library plain = stack_.kernels.attention;
  Operation o{.label = Label::attention};
  o.work = Kernel{.work = work,
                  .library = latent ? stack_.kernels.latent_attention.value_or(plain) : plain};
  s.operations.push_back(o);
}

// Of one prompt; `work` has heads, lengths and widths.
void ServingOperations::prefill_attention(Segment& s, Work work) const {
  prefill_attention(s, work, kernels().prefill_attention.value_or(stack_.kernels.attention));
}

void ServingOperations::prefill_attention(Segment& s, Work work, Library library) const {
  work.kind = WorkKind::attention_forward;
  work.batch = 1;
  work.causal = true;
  s.operations.push_back(
      {.label = Label::attention, .work = Kernel{.work = work, .library = library}});
}

// Ranks that split a layer's width add up what each made of all rows.
void ServingOperations::all_reduce(Segment& s, std::int64_t rows) const {
  if (layout_.tp == 1) return;
  CollectiveOperation c{
      .kind = CollectiveKind::all_reduce,
      .library = stack_.communication.inference_all_reduce.value_or(CollectiveLibrary::nccl),
      .group = GroupKind::tensor,
      .bytes = Bytes(2.0 * static_cast<double>(rows * model_.hidden))};
  s.operations.push_back({.label = Label::tensor_comm, .work = c});
}

void ServingOperations::small_kernels(Segment& s, std::int64_t number) const {
  for (; number > 0; --number) stream(s, Label::elementwise, WorkKind::elementwise, 0, 0);
}

// Queries, keys and values; the rotary part writes keys and values to the cache as well.
void ServingOperations::mixer_rows(Segment& s, const Mixer& mixer, std::int64_t rows) const {
  if (mixer.kind == MixerKind::mla) return latent_rows(s, mixer, rows);
  if (mixer.kind == MixerKind::mamba2) return scan_rows(s, mixer, rows);
  if (mixer.kind == MixerKind::gated_delta) return delta_rows(s, mixer, rows);
  const std::int64_t heads = split(mixer.heads), kv_heads = split(mixer.kv_heads);
  const std::int64_t keys = kv_heads * (mixer.qk_dim + mixer.v_dim);
  const std::int64_t gates = mixer.out_gate ? heads * mixer.v_dim : 0;
  product(s, Label::gemm, rows, heads * mixer.qk_dim + keys + gates, model_.hidden, true);
  const double rotated = 2.0 * static_cast<double>(rows * (heads + kv_heads) * mixer.qk_dim);
  const double cached = bytes_per_element(layout_.cache) * static_cast<double>(rows * keys);
  stream(s, Label::elementwise, WorkKind::rotary, rotated + cached, rotated + cached);
  if (mixer.qk_norm && !stack_.serving.kernels.fused_qk_norm)
    stream(s, Label::elementwise, WorkKind::norm, rotated, rotated);
  const double gated = 2.0 * static_cast<double>(rows * gates);
  if (gates > 0) stream(s, Label::elementwise, WorkKind::elementwise, 2 * gated, gated);
  of(ModelPart::attention_output)
      .product(s, Label::gemm, rows, model_.hidden, heads * mixer.v_dim, true);
}

// Latent attention, absorbed: queries go to the latent's width and results come back from it by
// products whose weights are those of the up-projection.
void ServingOperations::latent_rows(Segment& s, const Mixer& m, std::int64_t rows) const {
  const std::int64_t heads = split(m.heads), nope = m.qk_dim - m.rope_dim;
  const std::int64_t latent = m.kv_lora + m.rope_dim;
  if (m.q_lora > 0) {
    product(s, Label::gemm, rows, m.q_lora + latent, model_.hidden, true);
    product(s, Label::gemm, rows, heads * m.qk_dim, m.q_lora, true);
  } else {
    product(s, Label::gemm, rows, heads * m.qk_dim, model_.hidden, true);
    product(s, Label::gemm, rows, latent, model_.hidden, true);
  }
  const double lora = 2.0 * static_cast<double>(rows * (m.q_lora + m.kv_lora));
  stream(s, Label::elementwise, WorkKind::norm, lora, lora);
  const double rotated = 2.0 * static_cast<double>(rows * (heads + 1) * m.rope_dim);
  const double cached = bytes_per_element(layout_.cache) * static_cast<double>(rows * latent);
  stream(s, Label::elementwise, WorkKind::rotary, rotated + cached, rotated + cached);
  if (m.index_heads > 0) index_rows(s, m, rows);
  if (m.compress > 0) compress_rows(s, m, rows);
  if (m.out_groups > 0) return project_groups(s, m, rows);
  for (const auto& [n, k] : {std::pair(m.kv_lora, nope), std::pair(m.v_dim, m.kv_lora)})
    absorbed_product(s, rows, n, k, heads);
  of(ModelPart::attention_output)
      .product(s, Label::gemm, rows, model_.hidden, heads * m.v_dim, true);
}

// Mamba-2: projections and the convolution. States are attention's part.
void ServingOperations::scan_rows(Segment& s, const Mixer& m, std::int64_t rows) const {
  const std::int64_t inner = split(m.inner), states = split(2 * m.groups * m.state);
  product(s, Label::gemm, rows, 2 * inner + states + split(m.heads), model_.hidden, true);
  const double mixed = 2.0 * static_cast<double>(rows * (inner + states));
  stream(s, Label::elementwise, WorkKind::elementwise, mixed, mixed);
  const double gated = 2.0 * static_cast<double>(rows * inner);
  stream(s, Label::elementwise, WorkKind::norm, 2 * gated, gated);
  product(s, Label::gemm, rows, model_.hidden, inner, true);
}

void ServingOperations::scan_prefill(Segment& s, const Mixer& m, std::int64_t tokens) const {
  const ScanPass& cost = stack_.kernels.scan.forward;
  const auto inner = static_cast<double>(split(m.inner)), state = static_cast<double>(m.state);
  const double states = 4 * inner * state;
  vector_work(s, Label::attention,
              static_cast<double>(tokens) * inner * (cost.channel.get() + cost.state.get() * state),
              states, states);
}

// States in fp32 are read and written.
void ServingOperations::state_decode(Segment& s, const Mixer& m, std::int64_t sequences) const {
  const double bytes = 4.0 * static_cast<double>(sequences * split(m.inner) * m.state);
  stream(s, Label::attention, WorkKind::elementwise, bytes, bytes);
}

void ServingOperations::feed_forward(Segment& s, std::int64_t width, Activation activation,
                                     std::int64_t rows, bool reduced) const {
  const std::int64_t inner = split(width), gate = is_gated(activation) ? 2 : 1;
  product(s, Label::gemm, rows, gate * inner, model_.hidden, true);
  const double outputs = 2.0 * static_cast<double>(rows * inner);
  stream(s, Label::elementwise, WorkKind::elementwise, static_cast<double>(gate) * outputs,
         outputs);
  product(s, Label::gemm, rows, model_.hidden, inner, true);
  if (reduced) all_reduce(s, rows);
}

// A norm adds what the layer before it made to the residual. Where an all-reduce stands before it,
// as before two of a layer, that kernel may do both.
void ServingOperations::norms(Segment& s, const LayerClass& layer, std::int64_t rows) const {
  const ServingKernels& kernels = stack_.serving.kernels;
  const double width = 2.0 * static_cast<double>(rows * model_.hidden);
  const bool bare =
      kernels.head_norms_unfused && layer.mixer.qk_norm && layer.ffn.kind == FfnKind::dense;
  const bool fused = layout_.tp > 1 && !bare && fuses_norm(stack_.serving, layout_.tp, width);
  const bool apart = kernels.adds_apart && model_.norm == NormKind::layer_norm;
  const double moved = apart ? width : 2 * width;
  const int norms = model_.parallel_block ? 1 : layer.norms;
  for (int i = fused ? std::min(2, norms) : 0; i < norms; ++i) {
    stream(s, Label::elementwise, WorkKind::norm, moved, moved, rows);
    if (apart) stream(s, Label::elementwise, WorkKind::elementwise, 2 * width, width);
  }
  for (const bool biased : {layer.mixer.out_bias, layer.ffn.bias})
    if (kernels.adds_apart && biased)
      stream(s, Label::elementwise, WorkKind::elementwise, width, width);
}

Segment ServingOperations::layer(const LayerClass& layer, std::int64_t rows) const {
  return this->layer(layer, rows, even(rows));
}

Segment ServingOperations::layer(const LayerClass& layer, std::int64_t rows,
                                 const GroupRows& group) const {
  Segment s;
  norms(s, layer, rows);
  const SmallKernels& small = stack_.serving.kernels.small;
  if (layer.mixer.kind != MixerKind::none)
    small_kernels(s, layer.mixer.kind == MixerKind::mla ? small.latent : small.attention);
  if (layer.ffn.kind == FfnKind::moe && layer.ffn.shared_width > 0) small_kernels(s, small.shared);
  if (layer.mixer.kind != MixerKind::none) {
    of(keeps_states(layer.mixer) ? ModelPart::state_mixer : ModelPart::attention)
        .mixer_rows(s, layer.mixer, rows);
    if (!model_.parallel_block) all_reduce(s, rows);
  }
  if (layer.ffn.kind == FfnKind::dense)
    of(ModelPart::dense).feed_forward(s, layer.ffn.width, layer.ffn.activation, rows, true);
  if (layer.ffn.kind == FfnKind::moe) experts(s, layer.ffn, rows, group);
  return s;
}

Segment ServingOperations::embedding(std::int64_t rows) const {
  Segment s;
  const double bytes = 2.0 * static_cast<double>(rows * model_.hidden);
  stream(s, Label::loss, WorkKind::embedding, bytes, bytes, rows);
  all_reduce(s, rows);
  return s;
}

// Logits in 16 bits are gathered, made 32 bits wide and sampled from: a cast, a softmax or argmax.
Segment ServingOperations::head(std::int64_t sampled) const {
  Segment s;
  if (sampled == 0) return s;
  product(s, Label::loss, sampled, split(model_.vocab), model_.hidden, false);
  const double logits = static_cast<double>(sampled * model_.vocab);
  if (layout_.tp > 1) {
    CollectiveOperation c{.kind = CollectiveKind::all_gather, .bytes = Bytes(2 * logits)};
    s.operations.push_back({.label = Label::tensor_comm, .work = c});
  }
  const bool greedy = stack_.serving.kernels.greedy;
  stream(s, Label::loss, WorkKind::softmax, (greedy ? 2 : 6) * logits, greedy ? 0 : 4 * logits,
         sampled);
  return s;
}

Segment ServingOperations::joined(const std::vector<JoinedInput>& inputs, std::int64_t rows,
                                  bool first) const {
  Segment s;
  for (const JoinedInput& input : inputs) {
    if (input.first_only && !first) continue;
    const double bytes = 2.0 * static_cast<double>(rows * input.inner);
    stream(s, Label::elementwise, WorkKind::norm, bytes, bytes, rows);
    product(s, Label::gemm, rows, input.split ? split(input.columns) : input.columns, input.inner,
            false);
  }
  return s;
}

Segment ServingOperations::decode(const Mixer& mixer, std::int64_t sequences, std::int64_t rows,
                                  std::int64_t history) const {
  Segment s;
  if (mixer.kind == MixerKind::none || sequences == 0) return s;
  if (keeps_states(mixer)) {
    state_decode(s, mixer, sequences);
  } else if (is_served_only(mixer)) {
    sparse_decode(s, mixer, sequences, rows, history);
  } else {
    decode_attention(s, mixer,
                     {.batch = sequences,
                      .heads = split(mixer.heads),
                      .q_length = rows,
                      .kv_length = mixer.window > 0 ? std::min(history, mixer.window) : history});
  }
  return s;
}

// Whether a prompt of so many tokens is attended to as if there were no indexer.
bool ServingOperations::attends_plainly(const Mixer& m, std::int64_t tokens) const {
  return kernels().short_prompts_plain && m.index_heads > 0 && m.compress == 0 &&
         tokens <= m.index_topk;
}

// Keys and values of a latent history are made anew for the part of a prompt that attends to it.
Segment ServingOperations::prefill(const Mixer& mixer, std::int64_t start,
                                   std::int64_t tokens) const {
  Segment s;
  if (mixer.kind == MixerKind::none || tokens == 0) return s;
  if (mixer.kind == MixerKind::gated_delta) {
    delta_prefill(s, mixer, tokens);
    return s;
  }
  if (is_served_only(mixer) && !attends_plainly(mixer, start + tokens)) {
    sparse_prefill(s, mixer, start, tokens);
    return s;
  }
  if (mixer.kind == MixerKind::mamba2) {
    scan_prefill(s, mixer, tokens);
    return s;
  }
  const bool latent = mixer.kind == MixerKind::mla;
  const std::int64_t heads = split(mixer.heads);
  if (latent && start > 0)
    of(ModelPart::attention)
        .product(s, Label::attention, start, heads * (mixer.qk_dim - mixer.rope_dim + mixer.v_dim),
                 mixer.kv_lora, true);
  prefill_attention(s, {.heads = heads,
                        .kv_heads = latent ? heads : split(mixer.kv_heads),
                        .q_length = tokens,
                        .kv_length = start + tokens,
                        .qk_dim = mixer.qk_dim,
                        .v_dim = mixer.v_dim,
                        .window = mixer.window});
  return s;
}

}  // namespace orrery
