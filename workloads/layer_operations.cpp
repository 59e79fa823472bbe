// Builds the operations of layers: linear layers, norms, tensor-parallel traffic, host time.
#include "workloads/layer_operations.h"

#include <algorithm>

namespace orrery {
namespace {

RankShape rank_shape(const Job& job, const Layout& layout) {
  RankShape r;
  r.training = is_training(job.task);
  if (job.task == Task::decode) {
    r.decode = true;
    r.sequences = job.batch;
    r.q_length = 1;
    r.kv_length = std::max<std::int64_t>(1, job.context);
    r.causal = false;
    r.tokens = job.batch;
  } else {
    const std::int64_t sequences = r.training ? layout.micro_batch : job.batch;
    r.tokens = sequences * job.sequence / layout.cp;
    r.sequences = sequences;
    r.q_length = r.kv_length = job.sequence;
    if (job.mean_document > 0 && job.mean_document < job.sequence) {
      // Packed samples attend inside their document only.
      r.sequences = sequences * std::max<std::int64_t>(1, job.sequence / job.mean_document);
      r.q_length = r.kv_length = job.mean_document;
    }
    if (layout.cp > 1) {
      // Balanced context parallelism gives each rank the same share of the causal triangle: its
      // rows see half of all keys on average.
      r.q_length = std::max<std::int64_t>(1, r.q_length / layout.cp);
      r.kv_length = std::max<std::int64_t>(1, r.kv_length / 2);
      r.causal = false;
    }
  }
  r.sequence_parallel = layout.sequence_parallel && layout.tp > 1 && r.training;
  r.norm_tokens = r.sequence_parallel ? std::max<std::int64_t>(1, r.tokens / layout.tp) : r.tokens;
  return r;
}

}  // namespace

LayerOperations::LayerOperations(const Model& model, const Job& job, const Layout& layout,
                                 const Stack& stack)
    : model_(model), job_(job), layout_(layout), stack_(stack), shape_(rank_shape(job, layout)) {}

Format LayerOperations::linear_format() const { return orrery::linear_format(layout_.precision); }

Format LayerOperations::plain_format() const {
  return layout_.precision == PrecisionRecipe::fp16 ? Format::fp16 : Format::bf16;
}

// Traffic of quantising one bf16 element for both of its uses (as is and transposed): read 2 B and
// write the two copies; current scaling reads once more for the maximum; block scales add 1/32 B
// per copy (MX) or 4 B per 128 (blockwise); NVFP4 reads twice (maximum, Hadamard transform).
double LayerOperations::quantise_bytes() const {
  switch (layout_.precision) {
    case PrecisionRecipe::bf16:
    case PrecisionRecipe::fp16:
      return 0;
    case PrecisionRecipe::fp8_delayed:
      return 4;
    case PrecisionRecipe::fp8_current:
      return 6;
    case PrecisionRecipe::fp8_blockwise:
      return 4 + 8.0 / 128;
    case PrecisionRecipe::mxfp8:
      return 4 + 2.0 / 32;
    case PrecisionRecipe::nvfp4:
      return 5 + 2.0 / 16;
  }
  return 0;
}

void LayerOperations::quantise(Segment& s, double elements) const {
  const double bytes = quantise_bytes() * stack_.quantise_passes.get();
  if (bytes <= 0) return;
  Operation o{.label = Label::quantise};
  o.kernel = {.work = {.kind = WorkKind::quantise,
                       .bytes_read = elements * bytes / 2,
                       .bytes_written = elements * bytes / 2},
              .library = stack_.stream_library()};
  s.operations.push_back(o);
}

void LayerOperations::stream(Segment& s, WorkKind kind, double read, double written,
                             Label label) const {
  const double passes = stack_.elementwise_passes.get();
  Operation o{.label = label};
  o.kernel = {
      .work = {.kind = kind,
               .m = kind == WorkKind::norm ? shape_.tokens : 0,  // a block for each row
               .bytes_read = read * passes,
               .bytes_written = written * passes},
      .library = stack_.stream_library()};
  s.operations.push_back(o);
}

// A gradient of `elements` is added to that of the microbatches before it by a kernel of its own
// where products do not do so themselves. The first microbatch of a step has nothing to add to.
void LayerOperations::accumulate(Segment& s, double elements, Label label) const {
  const auto microbatches = static_cast<double>(layout_.microbatches(job_));
  const bool sharded = layout_.zero_stage == 3 && layout_.dense_replicas() > 1;
  if (stack_.fused_gradient_accumulation || sharded || microbatches <= 1) return;
  const double kept = bytes_per_element(stack_.gradient_storage);
  Operation o{.label = label, .count = (microbatches - 1) / microbatches};
  o.kernel = {.work = {.kind = WorkKind::elementwise,
                       .bytes_read = elements * (2 + kept),
                       .bytes_written = elements * kept},
              .library = Library::fused};
  s.operations.push_back(o);
}

void LayerOperations::forward_linear(Segment& s, const Linear& l, Label label) const {
  const Format format = l.quantised ? linear_format() : plain_format();
  if (l.quantised) quantise(s, static_cast<double>(l.m * l.k));
  Operation o{.label = label};
  o.kernel = {.work = {.kind = WorkKind::gemm,
                       .input = format,
                       .output = Format::bf16,
                       .m = l.m,
                       .n = l.n,
                       .k = l.k},
              .library = stack_.gemm};
  s.operations.push_back(o);
}

void LayerOperations::backward_linear(LayerProgram& p, const Linear& l, Label label,
                                      bool frozen) const {
  const Format format = l.quantised ? linear_format() : plain_format();
  if (l.quantised) quantise(p.input_gradient, static_cast<double>(l.m * l.n));
  Operation dgrad{.label = label};
  dgrad.kernel = {.work = {.kind = WorkKind::gemm,
                           .input = format,
                           .output = Format::bf16,
                           .role = GemmRole::input_gradient,
                           .m = l.m,
                           .n = l.k,
                           .k = l.n},
                  .library = stack_.gemm};
  p.input_gradient.operations.push_back(dgrad);
  if (frozen) return;
  Operation wgrad{.label = label};
  wgrad.kernel = {.work = {.kind = WorkKind::gemm,
                           .input = format,
                           .output = Format::bf16,
                           .role = GemmRole::weight_gradient,
                           .accumulate_fp32 = accumulates_fp32(),
                           .m = l.n,
                           .n = l.k,
                           .k = l.m},
                  .library = stack_.gemm};
  p.weight_gradient.operations.push_back(wgrad);
  accumulate(p.weight_gradient, static_cast<double>(l.n * l.k), label);
}

void LayerOperations::collective(Segment& s, CollectiveKind kind, GroupKind group, double bytes,
                                 Label label, double exposed) const {
  Operation o{.kind = OperationKind::collective, .label = label};
  o.collective = kind;
  o.group = group;
  o.bytes = bytes;
  o.exposed = exposed;
  s.operations.push_back(o);
}

// Before a column-parallel layer: with sequence parallelism the rows are gathered, and gathered
// again for the weight gradient; without it the input gradient is all-reduced (Megatron's f).
void LayerOperations::tensor_enter(LayerProgram& p) const {
  if (layout_.tp == 1) return;
  const double bytes = 2.0 * static_cast<double>(shape_.tokens * model_.hidden);
  const double exposed = shape_.training ? stack_.tensor_exposed.get() : 1.0;
  if (shape_.sequence_parallel) {
    collective(p.forward, CollectiveKind::all_gather, GroupKind::tensor, bytes, Label::tensor_comm,
               exposed);
    collective(p.input_gradient, CollectiveKind::all_gather, GroupKind::tensor, bytes,
               Label::tensor_comm, exposed);
    collective(p.input_gradient, CollectiveKind::reduce_scatter, GroupKind::tensor, bytes,
               Label::tensor_comm, exposed);
  } else if (shape_.training) {
    collective(p.input_gradient, CollectiveKind::all_reduce, GroupKind::tensor, bytes,
               Label::tensor_comm, exposed);
  }
}

// After a row-parallel layer (Megatron's g).
void LayerOperations::tensor_leave(LayerProgram& p) const {
  if (layout_.tp == 1) return;
  const double bytes = 2.0 * static_cast<double>(shape_.tokens * model_.hidden);
  const double exposed = shape_.training ? stack_.tensor_exposed.get() : 1.0;
  if (shape_.sequence_parallel) {
    collective(p.forward, CollectiveKind::reduce_scatter, GroupKind::tensor, bytes,
               Label::tensor_comm, exposed);
    collective(p.input_gradient, CollectiveKind::all_gather, GroupKind::tensor, bytes,
               Label::tensor_comm, exposed);
  } else {
    collective(p.forward, CollectiveKind::all_reduce, GroupKind::tensor, bytes, Label::tensor_comm,
               exposed);
  }
}

// Each norm with the residual addition after it, one kernel per operation: norm 2 + 2 B, addition
// 4 + 2 B forward; norm backward 4 + 2 B, addition of the residual's gradient 4 + 2 B.
void LayerOperations::norms(LayerProgram& p, int count) const {
  const double rows = static_cast<double>(shape_.norm_tokens * model_.hidden);
  for (int i = 0; i < count; ++i) {
    stream(p.forward, WorkKind::norm, 2 * rows, 2 * rows, Label::elementwise);
    stream(p.forward, WorkKind::elementwise, 4 * rows, 2 * rows, Label::elementwise);
    stream(p.input_gradient, WorkKind::norm, 4 * rows, 2 * rows, Label::elementwise);
    stream(p.input_gradient, WorkKind::elementwise, 4 * rows, 2 * rows, Label::elementwise);
  }
}

void LayerOperations::dense_ffn(LayerProgram& p, std::int64_t width, Activation activation) const {
  const bool gated = is_gated(activation);
  const bool frozen = job_.task == Task::lora;
  const std::int64_t inner = std::max<std::int64_t>(1, width / layout_.tp);
  const Linear up{.m = shape_.tokens, .n = (gated ? 2 : 1) * inner, .k = model_.hidden};
  const Linear down{.m = shape_.tokens, .n = model_.hidden, .k = inner};
  const double elements = static_cast<double>(shape_.tokens * inner);
  tensor_enter(p);
  forward_linear(p.forward, up, Label::gemm);
  stream(p.forward, WorkKind::elementwise, (gated ? 4 : 2) * elements, 2 * elements,
         Label::elementwise);
  forward_linear(p.forward, down, Label::gemm);
  backward_linear(p, down, Label::gemm, frozen);
  stream(p.input_gradient, WorkKind::elementwise, (gated ? 6 : 4) * elements,
         (gated ? 4 : 2) * elements, Label::elementwise);
  backward_linear(p, up, Label::gemm, frozen);
  tensor_leave(p);
}

double LayerOperations::host_seconds(double operations, const Segment& s) const {
  double collectives = 0, debug = 0;
  for (const Operation& o : s.operations) {
    if (o.kind != OperationKind::collective) continue;
    collectives += o.count;
    const std::int64_t ranks = o.group == GroupKind::expert    ? layout_.ep
                               : o.group == GroupKind::context ? layout_.cp
                                                               : layout_.tp;
    debug += o.count * static_cast<double>(ranks) * stack_.debug_per_rank.get().si();
  }
  return stack_.dispatch.get().si() *
             (operations + collectives * stack_.operations.collective.get()) +
         debug;
}

void LayerOperations::host(LayerProgram& p, const LayerClass& layer) const {
  const HostOperations& ops = stack_.operations;
  const bool moe = layer.ffn.kind == FfnKind::moe;
  double forward = ops.layer_forward.get(), backward = ops.layer_backward.get();
  if (stack_.launch != LaunchMode::eager) forward = backward = 0;
  if (moe && stack_.launch != LaunchMode::full_graph) {
    forward += ops.moe_forward.get();
    backward += ops.moe_backward.get();
  }
  // A fused softmax needs batch * heads divisible by 4; without it eager kernels run.
  double fallback = 0;
  if (layer.mixer.kind == MixerKind::attention && shape_.training &&
      (layout_.micro_batch * layer.mixer.heads / layout_.tp) % 4 != 0)
    fallback = stack_.softmax_fallback.get().si();
  p.forward.host_seconds = host_seconds(forward, p.forward) + fallback / 3;
  p.input_gradient.host_seconds = host_seconds(backward / 2, p.input_gradient) + fallback / 3;
  p.weight_gradient.host_seconds = host_seconds(backward / 2, p.weight_gradient);
  if (moe && shape_.training && stack_.moe_sync.get().si() > 0) {
    // The host reads token counts: the stream drains and refills, forward and backward alike.
    Operation wait{.kind = OperationKind::host_wait, .label = Label::host};
    wait.seconds = stack_.moe_sync.get().si() / 2;
    p.forward.operations.push_back(wait);
    p.input_gradient.operations.push_back(wait);
  }
}

// What a framework launches besides: each costs its start. The traffic of one is a page of memory.
void LayerOperations::small_kernels(LayerProgram& p) const {
  constexpr double page = 4096;
  const auto add = [&](Segment& s, double count) {
    if (count <= 0) return;
    Operation o{.label = Label::elementwise, .count = count};
    o.kernel = {.work = {.kind = WorkKind::elementwise, .bytes_read = page, .bytes_written = page},
                .library = stack_.stream_library()};
    s.operations.push_back(o);
  };
  add(p.forward, stack_.small_kernels_forward.get());
  add(p.input_gradient, stack_.small_kernels_backward.get());
}

// What a recomputed layer runs again before its backward; `selective` repeats attention's core
// only.
void LayerOperations::add_recompute(LayerProgram& p) const {
  p.recompute.host_seconds = p.forward.host_seconds;
  for (const Operation& o : p.forward.operations) {
    p.recompute.operations.push_back(o);
    if (o.kind == OperationKind::kernel) p.recompute.operations.back().label = Label::recompute;
  }
}

namespace {
void append(Segment& to, const Segment& from) {
  to.operations.insert(to.operations.end(), from.operations.begin(), from.operations.end());
  to.host_seconds += from.host_seconds;
}
}  // namespace

LayerProgram LayerOperations::layer(const LayerClass& layer) const {
  LayerProgram p;
  const int core_norms = model_.parallel_block ? 1 : layer.norms;
  norms(p, core_norms);
  switch (layer.mixer.kind) {
    case MixerKind::attention:
    case MixerKind::mla:
      attention(p, layer.mixer);
      break;
    case MixerKind::mamba2:
      mamba(p, layer.mixer);
      break;
    case MixerKind::none:
      break;
  }
  if (layer.ffn.kind == FfnKind::dense) dense_ffn(p, layer.ffn.width, layer.ffn.activation);
  if (layer.ffn.kind == FfnKind::moe) experts(p, layer.ffn);
  small_kernels(p);
  host(p, layer);
  if (shape_.training) add_recompute(p);
  const bool selective = layout_.recompute == Recompute::selective &&
                         stack_.attention_recompute_selective &&
                         layer.mixer.kind != MixerKind::none;
  if (selective)
    for (const Operation& o : p.recompute.operations)
      if (o.kernel.work.kind == WorkKind::attention_forward && o.kind == OperationKind::kernel)
        p.input_gradient.operations.push_back(o);
  append(p.backward, p.input_gradient);
  append(p.backward, p.weight_gradient);
  if (!shape_.training) p.backward = p.input_gradient = p.weight_gradient = {};
  return p;
}

LayerProgram LayerOperations::embedding() const {
  LayerProgram p;
  const double rows = 2.0 * static_cast<double>(shape_.tokens * model_.hidden);
  stream(p.forward, WorkKind::embedding, rows, rows, Label::elementwise);
  if (!shape_.training) return p;
  // The gradient is a whole table, empty but for the words of the microbatch.
  const std::int64_t ways = stack_.splits_vocabulary ? layout_.tp : 1;
  const double table = static_cast<double>(model_.vocab * model_.hidden / ways);
  const bool frozen = job_.task == Task::lora;
  stream(p.backward, WorkKind::embedding, 2 * rows, rows + (frozen ? 0 : 2 * table),
         Label::elementwise);
  if (!frozen) accumulate(p.backward, table, Label::elementwise);
  p.weight_gradient = p.backward;
  return p;
}

LayerProgram LayerOperations::head() const {
  LayerProgram p;
  const std::int64_t ways = stack_.splits_vocabulary ? layout_.tp : 1;
  const std::int64_t vocab = std::max<std::int64_t>(1, model_.vocab / ways);
  const bool one_position = !shape_.training && !shape_.decode;
  const std::int64_t rows = one_position ? shape_.sequences : shape_.tokens;
  norms(p, 1);
  const Linear linear{.m = rows, .n = vocab, .k = model_.hidden, .quantised = false};
  forward_linear(p.forward, linear, Label::loss);
  if (shape_.training) {
    const double logits = static_cast<double>(rows * vocab);
    const double bytes = stack_.loss_bytes_per_logit.get() * logits;
    Operation loss{.label = Label::loss};
    loss.kernel = {.work = {.kind = WorkKind::cross_entropy,
                            .bytes_read = bytes * 0.3,
                            .bytes_written = bytes * 0.2},
                   .library = stack_.stream_library()};
    p.forward.operations.push_back(loss);
    p.input_gradient.operations.push_back(loss);
    backward_linear(p, linear, Label::loss, job_.task == Task::lora);
    if (stack_.splits_vocabulary) tensor_enter(p);
    const double head = stack_.launch == LaunchMode::full_graph ? 0 : stack_.operations.head.get();
    p.forward.host_seconds = host_seconds(head, p.forward);
    p.input_gradient.host_seconds = host_seconds(head / 2, p.input_gradient);
    p.weight_gradient.host_seconds = host_seconds(head / 2, p.weight_gradient);
    append(p.backward, p.input_gradient);
    append(p.backward, p.weight_gradient);
  } else {
    p.input_gradient = {};
  }
  return p;
}

}  // namespace orrery
