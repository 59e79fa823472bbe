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

// Traffic of quantising one bf16 element, for one use or for both (as is and transposed): read 2 B
// and write the copies; current scaling reads once more for the maximum; block scales add 1/32 B
// per copy (MX) or 4 B per 128 (blockwise); NVFP4 reads twice (maximum, Hadamard transform).
double LayerOperations::quantise_bytes(bool both) const {
  const double copies = both ? 2 : 1;
  switch (layout_.precision) {
    case PrecisionRecipe::bf16:
    case PrecisionRecipe::fp16:
      return 0;
    case PrecisionRecipe::fp8_delayed:
      return 2 + copies;
    case PrecisionRecipe::fp8_current:
      return 4 + copies;
    case PrecisionRecipe::fp8_blockwise:
      return 2 + copies * (1 + 4.0 / 128);
    case PrecisionRecipe::mxfp8:
      return 2 + copies * (1 + 1.0 / 32);
    case PrecisionRecipe::nvfp4:
      return 4 + copies * (0.5 + 1.0 / 16);
  }
  return 0;
}

double LayerOperations::gathered_bytes() const {
  return layout_.precision == PrecisionRecipe::fp8_blockwise ? 2
                                                             : bytes_per_element(linear_format());
}

// Adapters leave no weight gradient, which alone reads the second copy. One copy of per-tensor
// scales serves both uses where products read either layout; where they do not, what is gathered is
// transposed after it (transpose_copy).
void LayerOperations::quantise(Segment& s, double elements, bool gathered) const {
  const bool second = job_.task != Task::lora && shape_.training;
  const bool both = second && (!per_tensor() || (stack_.transposed_copies && !gathered));
  quantise_traffic(s, elements, quantise_bytes(both));
}

void LayerOperations::transpose_copy(Segment& s, double elements) const {
  if (per_tensor() && stack_.transposed_copies) quantise_traffic(s, elements, 2);
}

void LayerOperations::quantise_traffic(Segment& s, double elements, double per_element) const {
  const double bytes = per_element * stack_.quantise_passes.get();
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
  o.kernel = {.work = {.kind = kind,
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
  const double moved = elements * stack_.accumulate_passes.get();
  Operation o{.label = label, .count = (microbatches - 1) / microbatches};
  o.kernel = {.work = {.kind = WorkKind::elementwise,
                       .bytes_read = moved * (2 + kept),
                       .bytes_written = moved * kept},
              .library = Library::fused};
  s.operations.push_back(o);
}

void LayerOperations::forward_linear(Segment& s, const Linear& l, Label label) const {
  const Format format = l.quantised ? linear_format() : plain_format();
  if (l.quantised)
    quantise(s, static_cast<double>((l.gathered ? shape_.norm_tokens : l.m) * l.k), l.gathered);
  Operation o{.label = label};
  o.kernel = {.work = {.kind = WorkKind::gemm,
                       .input = format,
                       .output = Format::bf16,
                       .m = l.m,
                       .n = l.n,
                       .k = l.k},
              .library = stack_.gemm};
  s.operations.push_back(o);
  if (l.quantised)
    adapter(s, 2.0 * static_cast<double>(l.m * (l.k + l.n)), 2.0 * static_cast<double>(l.m * l.n));
}

// The kernels of a linear layer's adapter: its products are thin, their cost is traffic. Forward
// reads the input and adds to the output; backward reads the output's gradient for each factor and
// the input, and adds to the input's gradient.
void LayerOperations::adapter(Segment& s, double read, double written) const {
  const double passes = stack_.adapter_passes.get();
  if (job_.task != Task::lora || passes <= 0) return;
  Operation o{.label = Label::elementwise};
  o.kernel = {.work = {.kind = WorkKind::elementwise,
                       .bytes_read = read * passes,
                       .bytes_written = written * passes},
              .library = stack_.stream_library()};
  s.operations.push_back(o);
}

void LayerOperations::backward_linear(LayerProgram& p, const Linear& l, Label label,
                                      bool frozen) const {
  const Format format = l.quantised ? linear_format() : plain_format();
  if (l.quantised)
    quantise(p.input_gradient, static_cast<double>((l.scattered ? shape_.norm_tokens : l.m) * l.n),
             l.scattered);
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
  if (l.quantised)
    adapter(p.input_gradient, 2.0 * static_cast<double>(l.m * (2 * l.n + 2 * l.k)),
            2.0 * static_cast<double>(l.m * l.k));
  if (frozen) return;
  if (l.quantised && l.gathered) transpose_copy(p.weight_gradient, static_cast<double>(l.m * l.k));
  if (l.quantised && l.scattered) transpose_copy(p.weight_gradient, static_cast<double>(l.m * l.n));
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
// again for the weight gradient; without it the input gradient is all-reduced (Megatron's f). What
// is gathered for quantised products moves as they read it.
void LayerOperations::tensor_enter(LayerProgram& p, bool quantised) const {
  if (layout_.tp == 1) return;
  const double elements = static_cast<double>(shape_.tokens * model_.hidden);
  const double bytes = 2 * elements, gathered = (quantised ? gathered_bytes() : 2) * elements;
  const double exposed = shape_.training ? stack_.tensor_exposed.get() : 1.0;
  if (shape_.sequence_parallel) {
    collective(p.forward, CollectiveKind::all_gather, GroupKind::tensor, gathered,
               Label::tensor_comm, exposed);
    if (job_.task != Task::lora)
      collective(p.input_gradient, CollectiveKind::all_gather, GroupKind::tensor, gathered,
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
    collective(p.input_gradient, CollectiveKind::all_gather, GroupKind::tensor,
               bytes * gathered_bytes() / 2, Label::tensor_comm, exposed);
  } else {
    collective(p.forward, CollectiveKind::all_reduce, GroupKind::tensor, bytes, Label::tensor_comm,
               exposed);
  }
}

// Selective recompute of a part: what its forward did since operation `from` runs again before the
// gradients need it.
void LayerOperations::rerun(LayerProgram& p, RecomputeModule module, std::size_t from) const {
  const bool inside = module == RecomputeModule::moe_act ||
                      module == RecomputeModule::shared_experts;  // of an expert layer
  if (inside && layout_.recomputes(RecomputeModule::moe)) return;
  if (!shape_.training || !layout_.recomputes(module)) return;
  const auto count = p.forward.operations.size();
  for (std::size_t i = from; i < count; ++i) {
    p.input_gradient.operations.push_back(p.forward.operations[i]);
    Operation& again = p.input_gradient.operations.back();
    if (again.kind == OperationKind::kernel) again.label = Label::recompute;
  }
}

// Each norm with the residual addition after it, one kernel per operation: norm 2 + 2 B, addition
// 4 + 2 B forward; norm backward 4 + 2 B, addition of the residual's gradient 4 + 2 B.
void LayerOperations::norms(LayerProgram& p, int count) const {
  const double rows = static_cast<double>(shape_.norm_tokens * model_.hidden);
  for (int i = 0; i < count; ++i) {
    const std::size_t norm = p.forward.operations.size();
    stream(p.forward, WorkKind::norm, 2 * rows, 2 * rows, Label::elementwise);
    rerun(p, RecomputeModule::layernorm, norm);
    stream(p.forward, WorkKind::elementwise, 4 * rows, 2 * rows, Label::elementwise);
    stream(p.input_gradient, WorkKind::norm, 4 * rows, 2 * rows, Label::elementwise);
    stream(p.input_gradient, WorkKind::elementwise, 4 * rows, 2 * rows, Label::elementwise);
  }
}

void LayerOperations::dense_ffn(LayerProgram& p, std::int64_t width, Activation activation) const {
  const bool gated = is_gated(activation);
  const bool frozen = job_.task == Task::lora;
  const std::int64_t inner = std::max<std::int64_t>(1, width / layout_.tp);
  const bool split_rows = shape_.sequence_parallel;
  const Linear up{
      .m = shape_.tokens, .n = (gated ? 2 : 1) * inner, .k = model_.hidden, .gathered = split_rows};
  const Linear down{.m = shape_.tokens, .n = model_.hidden, .k = inner, .scattered = split_rows};
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
  double collectives = 0;
  for (const Operation& o : s.operations)
    if (o.kind == OperationKind::collective) collectives += o.count;
  return stack_.dispatch.get().si() *
         (operations + collectives * stack_.operations.collective.get());
}

// A fused softmax needs batch * heads divisible by 4; without it eager kernels run.
bool LayerOperations::softmax_falls_back(const Mixer& mixer) const {
  return mixer.kind == MixerKind::attention && shape_.training &&
         stack_.softmax_fallback.get().si() > 0 &&
         (layout_.micro_batch * mixer.heads / layout_.tp) % 4 != 0;
}

void LayerOperations::host(LayerProgram& p, const LayerClass& layer) const {
  const HostOperations& ops = stack_.operations;
  const bool moe = layer.ffn.kind == FfnKind::moe;
  double forward = ops.layer_forward.get(), backward = ops.layer_backward.get();
  if (stack_.launch != LaunchMode::eager) forward = backward = 0;
  double moe_forward = 0, moe_backward = 0;
  if (moe && stack_.launch != LaunchMode::full_graph) {
    const auto local =
        static_cast<double>(std::max<std::int64_t>(1, layer.ffn.experts / layout_.ep));
    moe_forward = ops.moe_forward.get() + local * ops.expert_forward.get();
    moe_backward = ops.moe_backward.get() + local * ops.expert_backward.get();
  }
  forward += moe_forward;
  backward += moe_backward;
  const double fallback =
      softmax_falls_back(layer.mixer) ? stack_.softmax_fallback.get().si() : 0.0;
  p.forward.host_seconds = host_seconds(forward, p.forward) + fallback / 3;
  p.input_gradient.host_seconds = host_seconds(backward / 2, p.input_gradient) + fallback / 3;
  p.weight_gradient.host_seconds = host_seconds(backward / 2, p.weight_gradient);
  // The host reads the experts' token counts: the stream drains and refills, forward and backward
  // alike, and for a while the device runs out of what the host gives it.
  const double sync = (stack_.layer_sync.get() + (moe ? stack_.moe_sync.get() : Seconds(0))).si();
  const double late = stack_.sync_exposed.get() * stack_.dispatch.get().si();
  for (Segment* s : {&p.forward, &p.input_gradient, &p.weight_gradient}) {
    const double behind = late * (s == &p.forward ? moe_forward : moe_backward);
    wait(*s, s == &p.weight_gradient ? 0 : sync / 2 + behind);
  }
}

// The device waits for the host, for all of its time where launches block.
void LayerOperations::wait(Segment& s, double seconds) const {
  if (stack_.blocking_launches) seconds += s.host_seconds;
  if (!shape_.training || seconds <= 0) return;
  Operation o{.kind = OperationKind::host_wait, .label = Label::host};
  o.seconds = seconds;
  s.operations.push_back(o);
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
  if (stack_.recompute_stops_early) end_at_last_product(p.recompute);
}

// Leaves out the last product of a layer, whose result backward does not need, with what sends that
// result on: the sum over tp, or the way back from the experts.
void LayerOperations::end_at_last_product(Segment& s) const {
  std::vector<Operation>& all = s.operations;
  const auto is_product = [](const Operation& o) {
    return o.kind == OperationKind::kernel &&
           (o.kernel.work.kind == WorkKind::gemm || o.kernel.work.kind == WorkKind::grouped_gemm);
  };
  const auto last = std::find_if(all.rbegin(), all.rend(), is_product);
  if (last == all.rend()) return;
  const auto at = static_cast<std::size_t>(all.rend() - last) - 1;
  const bool experts = all[at].kernel.work.kind == WorkKind::grouped_gemm;
  const auto sends = [&](const Operation& o) {
    return o.kind == OperationKind::collective &&
           (experts ? o.group == GroupKind::expert && o.exchange.phase == ExchangePhase::combine
                    : o.group == GroupKind::tensor && &o > &all[at]);
  };
  std::vector<Operation> kept;
  for (const Operation& o : all)
    if (&o != &all[at] && !sends(o)) kept.push_back(o);
  all = std::move(kept);
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
  const std::size_t ffn = p.forward.operations.size();
  if (layer.ffn.kind == FfnKind::dense) {
    dense_ffn(p, layer.ffn.width, layer.ffn.activation);
    rerun(p, RecomputeModule::mlp, ffn);
  }
  if (layer.ffn.kind == FfnKind::moe) {
    experts(p, layer.ffn);
    rerun(p, RecomputeModule::moe, ffn);
  }
  small_kernels(p);
  host(p, layer);
  if (shape_.training) add_recompute(p);
  const bool selective = layout_.recomputes(RecomputeModule::core_attn) &&
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
    if (stack_.splits_vocabulary) tensor_enter(p, false);
    const double head = stack_.launch == LaunchMode::full_graph ? 0 : stack_.operations.head.get();
    p.forward.host_seconds = host_seconds(head, p.forward);
    p.input_gradient.host_seconds = host_seconds(head / 2, p.input_gradient);
    p.weight_gradient.host_seconds = host_seconds(head / 2, p.weight_gradient);
    wait(p.forward, stack_.layer_sync.get().si() / 2);
    wait(p.input_gradient, stack_.layer_sync.get().si() / 2);
    wait(p.weight_gradient, 0);
    append(p.backward, p.input_gradient);
    append(p.backward, p.weight_gradient);
  } else {
    p.input_gradient = {};
  }
  return p;
}

}  // namespace orrery
