// SPDX-License-Identifier: Apache-2.0
// Builds the operations of an expert layer: router, permute, all-to-all, grouped products.
#include <algorithm>
#include <cmath>

#include "workloads/layout/expert_reach.h"
#include "workloads/operations/layer_operations.h"

namespace orrery {
namespace {

// Rows that one rank routes: each rank of tensor parallelism routes its own slice of a sequence,
// whatever splits experts (Megatron-Core wants sequence parallelism for that).
std::int64_t routed_rows(const RankShape& shape, const Layout& layout) {
  return std::max<std::int64_t>(1, shape.tokens / layout.tp);
}

// Products that add to 16-bit gradients read and write one for every expert's weight. An expert's
// rows are few, so that no other tile's work hides it (B200: what products into 16-bit gradients
// take longer than those of forward is their traffic at full bandwidth). Of 32-bit gradients the
// product's own curve says what is exposed.
Operation gradient_sums(double weights, const Stack& stack) {
  const double bytes = weights * bytes_per_element(stack.sharding.gradient_storage);
  Operation o{.label = Label::expert};
  o.work =
      Kernel{.work = {.kind = WorkKind::elementwise, .bytes_read = bytes, .bytes_written = bytes},
             .library = stack.kernels.stream_library()};
  return o;
}

}  // namespace

void LayerOperations::experts(LayerProgram& p, const Ffn& ffn) const {
  const std::int64_t rows = routed_rows(shape_, layout_);
  const double scores = static_cast<double>(rows * ffn.experts);
  const bool frozen = job_.task == Task::lora;
  const Linear gate{.m = rows, .n = ffn.experts, .k = model_.hidden, .quantised = false};
  forward_linear(p.forward, gate, Label::expert);
  // Scores in fp32: softmax, top-k and the routing map, read and written once each.
  stream(p.forward, WorkKind::router, 8 * scores, 8 * scores, Label::expert);
  stream(p.input_gradient, WorkKind::router, 8 * scores, 8 * scores, Label::expert);
  backward_linear(p, gate, Label::expert, frozen);
  latent_projections(p, ffn);
  expert_exchange(p, ffn);
  expert_products(p, ffn);
  if (ffn.shared_width == 0) return;
  const std::size_t shared = p.forward.operations.size();
  dense_ffn(p, ffn.shared_width, ffn.activation);
  rerun(p, RecomputeModule::shared_experts, shared);
}

// Latent experts: rows are projected to the latent width before they are dispatched and back when
// they are combined, whole on each rank and for its own rows (Megatron-Core's fc1_latent_proj and
// fc2_latent_proj, parallel_mode "duplicated").
void LayerOperations::latent_projections(LayerProgram& p, const Ffn& ffn) const {
  if (ffn.latent == 0) return;
  const bool frozen = job_.task == Task::lora;
  const std::int64_t rows = routed_rows(shape_, layout_);
  const Linear down{
      .m = rows, .n = ffn.latent, .k = model_.hidden, .adapter = adapter(Adapter::whole)};
  const Linear up{
      .m = rows, .n = model_.hidden, .k = ffn.latent, .adapter = adapter(Adapter::whole)};
  for (const Linear& linear : {down, up}) {
    forward_linear(p.forward, linear, Label::expert);
    backward_linear(p, linear, Label::expert, frozen);
  }
}

// Ranks that split an expert's width need each other's rows, and add up what each makes of them
// (Megatron-Core's token_dispatcher.py: a gather after the dispatch, a reduce-scatter before the
// combination, and the other way round backward).
void LayerOperations::expert_rows(LayerProgram& p, double bytes) const {
  if (layout_.etp == 1) return;
  const auto over = [&](Segment& s, CollectiveKind kind) {
    collective(s, kind, GroupKind::expert_tensor, bytes, Label::tensor_comm, 1);
  };
  over(p.forward, CollectiveKind::all_gather);
  over(p.forward, CollectiveKind::reduce_scatter);
  if (!shape_.training) return;
  over(p.input_gradient, CollectiveKind::all_gather);
  over(p.input_gradient, CollectiveKind::reduce_scatter);
}

// Dispatch and combine: permuting a routed row reads and writes it on its way out, once more to
// sort by local expert, and once to bring it back; 2 B an element each way.
void LayerOperations::expert_exchange(LayerProgram& p, const Ffn& ffn) const {
  const double width = static_cast<double>(ffn.latent > 0 ? ffn.latent : model_.hidden);
  const double rows = static_cast<double>(routed_rows(shape_, layout_));
  const double routed = rows * static_cast<double>(ffn.topk) * width;
  const double passes = stack_.kernels.permute_passes.get();
  const double moved = routed * passes;
  const auto permute = [&](Segment& s, double times) {
    Operation o{.label = Label::expert, .count = times};
    o.work = Kernel{
        .work = {.kind = WorkKind::permute, .bytes_read = 2 * moved, .bytes_written = 2 * moved},
        .library = stack_.kernels.stream_library()};
    s.operations.push_back(o);
  };
  permute(p.forward, 3);
  if (shape_.training) permute(p.input_gradient, 4);  // the combine's weights get gradients too
  expert_rows(p, 2 * routed * static_cast<double>(layout_.etp) * job_.expert_imbalance);
  if (layout_.ep == 1) return;
  const auto microbatches = static_cast<double>(layout_.microbatches(job_));
  const double exposed = shape_.training ? expert_exposed(stack_, layout_, microbatches) : 1.0;
  const bool beside = shape_.training && exchange_beside_passes(stack_, layout_);
  const double copies = static_cast<double>(ffn.topk);
  const auto exchange = [&](Segment& s, ExchangePhase phase, double bytes) {
    CollectiveOperation& c = collective(s, CollectiveKind::all_to_all, GroupKind::expert,
                                        rows * copies * width * bytes, Label::expert_comm, exposed);
    c.library = stack_.communication.expert_library;
    c.deduplicated = stack_.communication.expert_deduplicated;
    c.skew = job_.expert_imbalance;
    c.beside_passes = beside;
    c.exchange = {.phase = phase,
                  .tokens = static_cast<std::int64_t>(std::ceil(rows)),
                  .experts = ffn.topk,
                  .pool = ffn.experts + layout_.redundant_experts,
                  .in_turn = job_.experts_in_turn};
  };
  exchange(p.forward, ExchangePhase::dispatch, stack_.communication.fp8_dispatch ? 1 : 2);
  exchange(p.forward, ExchangePhase::combine, 2);
  if (!shape_.training) return;
  exchange(p.input_gradient, ExchangePhase::dispatch, 2);
  exchange(p.input_gradient, ExchangePhase::combine, 2);
}

Operation LayerOperations::grouped_product(GemmRole role, std::int64_t m, std::int64_t n,
                                           std::int64_t k, std::int64_t groups) const {
  Operation o{.label = Label::expert};
  o.work =
      Kernel{.work = {.kind = WorkKind::grouped_gemm,
                      .input = linear_format(),
                      .output = Format::bf16,
                      .role = role,
                      .accumulate_fp32 = role == GemmRole::weight_gradient && accumulates_fp32(),
                      .block_scales = block_scales(),
                      .m = m,
                      .n = n,
                      .k = k,
                      .groups = groups},
             .library = stack_.kernels.grouped_gemm};
  return o;
}

// The experts' biases, forward and backward, by kernels of their own.
void LayerOperations::expert_biases(LayerProgram& p, double elements) const {
  const double bytes = 2 * elements * stack_.kernels.expert_bias_passes.get();
  if (bytes <= 0) return;
  Operation o{.label = Label::expert};
  o.work =
      Kernel{.work = {.kind = WorkKind::elementwise, .bytes_read = bytes, .bytes_written = bytes},
             .library = stack_.kernels.stream_library()};
  p.forward.operations.push_back(o);
  p.input_gradient.operations.push_back(o);
}

// A training step has rows for every expert. A step of inference may have few: the rank that most
// of them reach decides, and of its experts only those that some row reaches are read. Routing is
// taken as even over all copies of experts, each row's as drawn by chance.
LayerOperations::ExpertLoad LayerOperations::expert_load(const Ffn& ffn) const {
  const std::int64_t local = local_experts(ffn, layout_);
  const auto copies = static_cast<double>(ffn.topk * layout_.etp);
  if (shape_.training)
    return {
        .rows = static_cast<double>(routed_rows(shape_, layout_)) * copies * job_.expert_imbalance,
        .experts = local};
  const double own = static_cast<double>(shape_.tokens) / static_cast<double>(layout_.tp);
  const double mean = own * copies * job_.expert_imbalance;
  if (job_.experts_in_turn)
    return {
        .rows = mean,
        .experts = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(mean)), 1, local)};
  const ExpertReach reach =
      reached_experts({.tokens = own * static_cast<double>(layout_.ep * layout_.etp),
                       .topk = ffn.topk,
                       .ranks = layout_.ep,
                       .held = local,
                       .imbalance = job_.expert_imbalance});
  return {.rows = reach.rows, .experts = reach.experts};
}

void LayerOperations::expert_products(LayerProgram& p, const Ffn& ffn) const {
  const bool gated = is_gated(ffn.activation), fused = stack_.kernels.fused_expert_mlp && !ffn.bias;
  const bool frozen = job_.task == Task::lora;
  const std::int64_t width = ffn.latent > 0 ? ffn.latent : model_.hidden;
  const ExpertLoad load = expert_load(ffn);
  const double routed = load.rows;
  const std::int64_t reached = load.experts;
  // Experts' rows are padded to what the products need; without padding their number does not
  // decide alignment either, since operands are contiguous along the layer's widths.
  const std::int64_t multiple = std::max<std::int64_t>(8, dimension_multiple(layout_.precision));
  const auto each = static_cast<std::int64_t>(std::ceil(routed / static_cast<double>(reached)));
  const std::int64_t rows = (std::max<std::int64_t>(1, each) + multiple - 1) / multiple * multiple;
  const std::int64_t inner = std::max<std::int64_t>(1, ffn.width / layout_.etp);
  const double elements = routed * static_cast<double>(inner);
  const double outputs = routed * static_cast<double>(width);
  struct Product {
    std::int64_t n, k;
  };
  const Product up{(gated ? 2 : 1) * inner, width}, down{width, inner};
  const auto backward = [&](const Product& product) {
    p.input_gradient.operations.push_back(
        grouped_product(GemmRole::input_gradient, rows, product.k, product.n, reached));
    if (frozen) return;
    p.weight_gradient.operations.push_back(
        grouped_product(GemmRole::weight_gradient, product.n, product.k, rows, reached));
    const auto weights = static_cast<double>(reached * product.n * product.k);
    accumulate(p.weight_gradient, weights, Label::expert);
    if (stack_.kernels.fused_gradient_accumulation && !accumulates_fp32() && !fused)
      p.weight_gradient.operations.push_back(gradient_sums(weights, stack_));
  };
  quantise(p.forward, outputs);
  p.forward.operations.push_back(grouped_product(GemmRole::forward, rows, up.n, up.k, reached));
  // Fused products apply the activation, and quantise its result and its gradient, themselves.
  const std::size_t act = p.forward.operations.size();
  const double passes = ffn.bias ? stack_.kernels.biased_activation_passes.get() : 1.0;
  if (!fused)
    stream(p.forward, WorkKind::elementwise, (gated ? 4 : 2) * elements * passes,
           2 * elements * passes, Label::expert);
  rerun(p, RecomputeModule::moe_act, act);
  if (!fused) quantise(p.forward, elements);
  p.forward.operations.push_back(grouped_product(GemmRole::forward, rows, down.n, down.k, reached));
  if (ffn.bias) expert_biases(p, outputs);
  quantise(p.input_gradient, outputs);
  backward(down);
  if (!fused) {
    stream(p.input_gradient, WorkKind::elementwise, (gated ? 6 : 4) * elements * passes,
           (gated ? 4 : 2) * elements * passes, Label::expert);
    quantise(p.input_gradient, routed * static_cast<double>(up.n));
  }
  backward(up);
}

}  // namespace orrery
