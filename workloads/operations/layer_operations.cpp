// SPDX-License-Identifier: Apache-2.0
// Builds whole layers of their parts: norms, dense FFNs, embedding and head.
#include "workloads/operations/layer_operations.h"

#include <algorithm>

#include "workloads/parameters/weight_split.h"
#include "workloads/stack/operation_recompute.h"

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
    if (layout.context_rings() > 1) {
      // Balanced context parallelism gives each rank the same share of the causal triangle: its
      // rows see half of all keys on average.
      r.q_length = std::max<std::int64_t>(1, r.q_length / layout.context_rings());
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

void LayerOperations::stream(Segment& s, WorkKind kind, double read, double written,
                             Label label) const {
  const double passes = stack_.kernels.elementwise_passes.get();
  Operation o{.label = label};
  o.work = Kernel{.work = {.kind = kind,
                           .m = kind == WorkKind::norm ? shape_.tokens : 0,  // a block for each row
                           .bytes_read = read * passes,
                           .bytes_written = written * passes},
                  .library = stack_.kernels.stream_library()};
  s.operations.push_back(o);
}

// Each norm with the residual addition after it, one kernel per operation: norm 2 + 2 B, addition
// 4 + 2 B forward; norm backward 4 + 2 B, addition of the residual's gradient 4 + 2 B. `modules` of
// them can run again alone. Dropout before the addition keeps a mask.
void LayerOperations::norms(LayerProgram& p, int count, int modules) const {
  const double rows = static_cast<double>(shape_.norm_tokens * model_.hidden);
  // Bytes of dropout were measured; those of the plain kernels are counted, times passes.
  const bool drops = shape_.training && job_.hidden_dropout > 0;
  const double share = drops ? 1 / stack_.kernels.elementwise_passes.get() : 0;
  const double forward = share * stack_.dropout.hidden_forward.get();
  const double backward = share * stack_.dropout.hidden_backward.get();
  for (int i = 0; i < count; ++i) {
    const std::size_t norm = p.forward.operations.size();
    stream(p.forward, WorkKind::norm, 2 * rows, 2 * rows, Label::elementwise);
    if (i < modules) rerun(p, RecomputeModule::layernorm, norm);
    stream(p.forward, WorkKind::elementwise, 4 * rows, (2 + forward) * rows, Label::elementwise);
    stream(p.input_gradient, WorkKind::norm, 4 * rows, 2 * rows, Label::elementwise);
    stream(p.input_gradient, WorkKind::elementwise, (4 + backward) * rows, 2 * rows,
           Label::elementwise);
  }
}

void LayerOperations::dense_ffn(LayerProgram& p, std::int64_t width, Activation activation) const {
  const bool gated = is_gated(activation);
  const bool frozen = job_.task == Task::lora;
  const std::int64_t inner = std::max<std::int64_t>(1, width / layout_.tp);
  const bool split_rows = shape_.sequence_parallel;
  const Linear up{.m = shape_.tokens,
                  .n = (gated ? 2 : 1) * inner,
                  .k = model_.hidden,
                  .gathered = split_rows,
                  .adapter = adapter(Adapter::columns)};
  const Linear down{.m = shape_.tokens,
                    .n = model_.hidden,
                    .k = inner,
                    .scattered = split_rows,
                    .adapter = adapter(Adapter::rows)};
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

void LayerOperations::append(Segment& to, const Segment& from) {
  to.operations.insert(to.operations.end(), from.operations.begin(), from.operations.end());
  to.host_time += from.host_time;
}

LayerProgram LayerOperations::layer(const LayerClass& layer) const {
  LayerProgram p;
  const int core_norms = model_.parallel_block ? 1 : layer.norms;
  const NormModules own = norm_modules(stack_, layout_, layer);
  const int others = stack_.kernels.fused_norms ? 0 : std::max(0, core_norms - 2);
  norms(p, core_norms, (own.mixer ? 1 : 0) + (own.ffn ? 1 : 0) + others);
  switch (layer.mixer.kind) {
    case MixerKind::attention:
    case MixerKind::mla:
      attention(p, layer.mixer);
      break;
    case MixerKind::mamba2:
      mamba(p, layer.mixer);
      break;
    case MixerKind::gated_delta:  // served only
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
  const bool by_operation = shape_.training && recomputes_by_operation(layout_, stack_);
  if (by_operation) rerun_operations(p, layer);
  const bool selective = layout_.recomputes(RecomputeModule::core_attn) && !by_operation &&
                         stack_.recompute.selects_attention && layer.mixer.kind != MixerKind::none;
  if (selective)
    for (const Operation& o : p.recompute.operations)
      if (const Kernel* kernel = o.kernel();
          kernel && kernel->work.kind == WorkKind::attention_forward)
        p.input_gradient.operations.push_back(o);
  append(p.backward, p.input_gradient);
  append(p.backward, p.weight_gradient);
  if (!shape_.training) p.backward = p.input_gradient = p.weight_gradient = {};
  return p;
}

// The table's gradient comes from no product that could add to what is there: where others add to
// the gradient buffer themselves, a kernel adds it (Megatron-Core's hook: main_grad.add_).
// Embedding and head of one table have a gradient each, which autograd adds up.
void LayerOperations::add_table_gradient(Segment& s, double elements) const {
  const double kept = bytes_per_element(stack_.sharding.gradient_storage);
  const auto add = [&](double other) {
    Operation o{.label = Label::elementwise};
    o.work = Kernel{.work = {.kind = WorkKind::elementwise,
                             .bytes_read = elements * (2 + other),
                             .bytes_written = elements * other},
                    .library = Library::fused};
    s.operations.push_back(o);
  };
  if (stack_.kernels.fused_gradient_accumulation) {
    add(kept);
    return;
  }
  if (model_.tied_embeddings && layout_.pp == 1) add(2);
  accumulate(s, elements, Label::elementwise);
}

LayerProgram LayerOperations::embedding() const {
  LayerProgram p;
  const double rows = 2.0 * static_cast<double>(shape_.tokens * model_.hidden);
  stream(p.forward, WorkKind::embedding, rows, rows, Label::elementwise);
  if (!shape_.training) return p;
  // The gradient is a whole table, empty but for the words of the microbatch.
  const double table = vocabulary_parameters(model_, stack_, layout_);
  const bool frozen = job_.task == Task::lora;
  stream(p.backward, WorkKind::embedding, 2 * rows, rows + (frozen ? 0 : 2 * table),
         Label::elementwise);
  if (!frozen) add_table_gradient(p.backward, table);
  p.weight_gradient = p.backward;
  return p;
}

LayerProgram LayerOperations::head() const {
  LayerProgram p;
  const std::int64_t vocab = local_vocabulary(model_, stack_, layout_);
  const bool one_position = !shape_.training && !shape_.decode;
  const std::int64_t rows = one_position ? shape_.sequences : shape_.tokens;
  norms(p, 1, 0);
  const Linear linear{.m = rows, .n = vocab, .k = model_.hidden, .quantised = false};
  forward_linear(p.forward, linear, Label::loss);
  if (shape_.training) {
    const double logits = static_cast<double>(rows * vocab);
    const double bytes = stack_.kernels.loss_bytes_per_logit.get() * logits;
    // Half of its traffic forward, half backward; only the sum of what is read and written counts.
    Operation loss{.label = Label::loss};
    loss.work = Kernel{.work = {.kind = WorkKind::cross_entropy,
                                .bytes_read = bytes * 0.3,
                                .bytes_written = bytes * 0.2},
                       .library = stack_.kernels.stream_library()};
    p.forward.operations.push_back(loss);
    p.input_gradient.operations.push_back(loss);
    backward_linear(p, linear, Label::loss, job_.task == Task::lora);
    if (stack_.sharding.splits_vocabulary) tensor_enter(p, false);
    const double head =
        stack_.host.launch == LaunchMode::full_graph ? 0 : stack_.host.operations.head.get();
    p.forward.host_time = host_time(head, p.forward);
    p.input_gradient.host_time = host_time(head / 2, p.input_gradient);
    p.weight_gradient.host_time = host_time(head / 2, p.weight_gradient);
    wait(p.forward, stack_.host.layer_sync.get() / 2);
    wait(p.input_gradient, stack_.host.layer_sync.get() / 2);
    wait(p.weight_gradient, Seconds(0));
    append(p.backward, p.input_gradient);
    append(p.backward, p.weight_gradient);
  } else {
    p.input_gradient = {};
  }
  return p;
}

}  // namespace orrery
