// SPDX-License-Identifier: Apache-2.0
// Lowers expert layers of a served model: router, exchange between ranks, experts that rows reach.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/kernel_shapes.h"
#include "workloads/inference/serving_operations.h"
#include "workloads/inference/weight_format.h"
#include "workloads/layout/checkpoint.h"
#include "workloads/layout/expert_reach.h"

namespace orrery {
namespace {

// Rows that a tile of plain grouped products takes from one expert.
constexpr std::int64_t plain_tile_rows = 128;

// Rows in the tiles of an expert with `mean` rows: loads scatter by the root of their mean, and
// tiles are whole.
std::int64_t filled_rows(double mean, std::int64_t tile) {
  const auto rows = static_cast<double>(tile);
  double tiles = 1;
  for (double k = 1; k * rows < mean + 5 * std::sqrt(mean); ++k)
    tiles += 0.5 * std::erfc((k * rows - mean) / std::sqrt(2 * mean));
  return std::llround(rows * tiles);
}

// The same of plain grouped products, where few rows take smaller tiles.
std::int64_t plainly_filled_rows(double mean) {
  if (mean <= 0.5 * plain_tile_rows) return static_cast<std::int64_t>(std::ceil(mean));
  return filled_rows(mean, plain_tile_rows);
}

// Rows that the tiles of an expert with `mean` rows hold in a step of `all` rows; 0: not known.
std::int64_t rows_in_tiles(const std::vector<TileRows>& tiles, std::int64_t all, double mean) {
  const auto after =
      std::find_if(tiles.begin(), tiles.end(), [&](const TileRows& t) { return t.from > all; });
  return after == tiles.begin() ? 0 : filled_rows(mean, std::prev(after)->rows);
}

}  // namespace

// Libraries that send rows where they are wanted know ranks with whole experts alone: engines then
// make as many ranks of experts as there are of all kinds (sglang/srt/server_args.py:
// _handle_a2a_moe; vllm/model_executor/layers/fused_moe/config.py).
bool ServingOperations::sends_rows() const {
  return layout_.attention_dp > 1 && layout_.etp == 1 && !layout_.gathers_rows &&
         stack_.communication.expert_library != CollectiveLibrary::nccl;
}

// DeepEP's normal mode, for prompts: the size of what a rank gets is known when all have said how
// many rows they send (deep_ep/buffer.py: dispatch; csrc/deep_ep.cpp spins on the host until then).
bool ServingOperations::waits_for_counts() const {
  return sends_rows() && stack_.communication.expert_library == CollectiveLibrary::deepep;
}

// Ranks of tensor parallelism that hold the same rows send a part of them each (sglang/srt/layers/
// communicator.py: _scatter_hidden_states_and_residual; vLLM's use_sequence_parallel_moe).
std::int64_t ServingOperations::rows_of_rank(std::int64_t rows) const {
  return sends_rows() ? (rows + layout_.tp - 1) / layout_.tp : rows;
}

// With attention data parallelism each rank has rows of its own, and experts' ranks need those of
// all: they are sent where they are wanted and come back added up. That ends when the rank with
// most rows has sent its own; a gather moves what there is (SGLang's SUM_LEN for steps with
// prompts, which adds up what each rank wrote at its place, sglang/srt/layers/dp_attention.py:
// get_dp_padding_mode, _dp_gather_via_all_reduce; TensorRT-LLM's all_rank_num_tokens).
void ServingOperations::exchange(Segment& s, const Ffn& ffn, const GroupRows& group,
                                 ExchangePhase phase) const {
  if (layout_.attention_dp == 1) return;
  const double width = static_cast<double>(ffn.latent > 0 ? ffn.latent : model_.hidden);
  const bool dispatch = phase == ExchangePhase::dispatch;
  const StackCommunication& own = stack_.communication;
  CollectiveOperation c{.group = sends_rows() ? GroupKind::expert : GroupKind::expert_ranks};
  if (!sends_rows()) {
    // Every rank gathers all rows and adds up what all made of them.
    if (group.all == 0) return;
    const double all = static_cast<double>(group.all) * width;
    const std::vector<GraphSizes>& graphs = stack_.serving.graphs;
    const std::int64_t captured = graphs.empty() ? 0 : graphs.back().to;
    if (stack_.serving.kernels.summed_gathers && group.largest > captured)
      c.kind = CollectiveKind::all_reduce;
    else
      c.kind = dispatch ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter;
    c.bytes = Bytes(2 * all);
  } else {
    if (group.largest == 0) return;
    const std::int64_t rows = rows_of_rank(group.largest);
    const double element = dispatch && own.fp8_dispatch ? 1 : 2;
    c.kind = CollectiveKind::all_to_all;
    c.library = own.expert_library;
    c.deduplicated = own.expert_deduplicated;
    c.bytes = Bytes(static_cast<double>(rows * ffn.topk) * width * element);
    // By as many rows on each rank, so that what an exchange takes goes by its largest alone.
    const ExpertRouting routing = this->routing(ffn, even(group.largest).all);
    c.skew = most_sent(reached_experts(routing), routing, c.deduplicated);
    c.exchange = {.phase = phase,
                  .tokens = rows,
                  .experts = ffn.topk,
                  .pool = ffn.experts + layout_.expert_copies.value_or(0)};
  }
  s.operations.push_back({.label = Label::expert_comm, .work = c});
}

ExpertRouting ServingOperations::routing(const Ffn& ffn, std::int64_t all) const {
  return {.tokens = static_cast<double>(all),
          .topk = ffn.topk,
          .ranks = layout_.ep,
          .held = local_experts(ffn, layout_.layout()),
          .skew = stack_.serving.kernels.expert_skew.get(),
          .copies = layout_.expert_copies};
}

// The experts of a rank, or its part of their width, over the rows of all ranks that reach them.
void ServingOperations::routed_experts(Segment& s, const Ffn& ffn, std::int64_t all) const {
  if (all == 0) return;
  const std::int64_t width = ffn.latent > 0 ? ffn.latent : model_.hidden;
  const ExpertReach reach = reached_experts(routing(ffn, all));
  const std::int64_t inner = std::max<std::int64_t>(1, ffn.width / layout_.etp);
  const std::int64_t gate = is_gated(ffn.activation) ? 2 : 1;
  const ServingKernels& kernels = stack_.serving.kernels;
  const bool few = all <= kernels.small_grouped_rows * layout_.attention_dp;
  std::optional<Library> other = few ? kernels.small_grouped_gemm : std::nullopt;
  if (sends_rows() && kernels.sent_grouped_gemm) other = kernels.sent_grouped_gemm;
  const Library own = other.value_or(stack_.kernels.grouped_gemm);
  const WeightFormat weights =
      weight_format(part_precision(model_, layout_.precision, ModelPart::experts), stack_);
  const Library library = weights.library.value_or(own);
  // Libraries of plain grouped products leave the order of rows to the framework: a sort and what
  // follows from it, rows put in order, results added up. Others do that themselves.
  const bool sorts = library == Library::grouped_gemm;
  const double sent = 2 * reach.rows * static_cast<double>(width);
  if (sorts) {
    stream(s, Label::expert, WorkKind::permute, 4 * reach.rows, 4 * reach.rows);
    stream(s, Label::expert, WorkKind::permute, sent, sent);
  }
  const double mean = reach.rows / static_cast<double>(std::max<std::int64_t>(1, reach.experts));
  const auto each = sorts ? plainly_filled_rows(mean) : static_cast<std::int64_t>(std::ceil(mean));
  const std::int64_t filled = rows_in_tiles(kernels.grouped_tiles, all, mean);
  const auto grouped = [&](std::int64_t n, std::int64_t k) {
    Operation o{.label = Label::expert};
    o.work = Kernel{.work = {.kind = WorkKind::grouped_gemm,
                             .input = weights.operands,
                             .output = Format::bf16,
                             .m = std::max<std::int64_t>(1, each),
                             .n = n,
                             .k = k,
                             .groups = reach.experts,
                             .pool = local_experts(ffn, layout_.layout()),
                             .filled_m = filled,
                             .stored_bits = weights.stored_bits},
                    .library = library};
    s.operations.push_back(o);
  };
  if (library == Library::trtllm_rows) {
    Operation o{.label = Label::expert};
    const auto sent_here = static_cast<std::int64_t>(std::ceil(reach.rows));
    const std::int64_t here = sends_rows() ? std::min(all, sent_here) : all;
    o.work = Kernel{.work = listed_tokens(here, ffn.experts, width), .library = library};
    s.operations.push_back(o);
  }
  grouped(gate * inner, width);
  const double outputs = 2.0 * reach.rows * static_cast<double>(inner);
  stream(s, Label::expert, WorkKind::elementwise, static_cast<double>(gate) * outputs, outputs);
  grouped(width, inner);
  // Tables of expert layers end with this kernel, and curves of their libraries are without it
  // (read_operator_tables); only our own engine's layers were fitted as wholes.
  if (library != Library::triton_paged)
    stream(s, Label::expert, WorkKind::permute, sent, sent / static_cast<double>(ffn.topk));
}

// The shared expert's operations, beside those of `s` from `fork` on where the engine does that.
void ServingOperations::add_shared(Segment& s, std::vector<Operation> operations, std::size_t fork,
                                   std::int64_t rows) const {
  const ServingKernels& kernels = stack_.serving.kernels;
  if (rows <= kernels.second_stream_rows && (kernels.second_stream_sends || !sends_rows()))
    s.second = {.operations = std::move(operations), .from = fork, .to = s.operations.size()};
  else
    s.operations.insert(s.operations.end(), operations.begin(), operations.end());
}

// Ranks of tensor parallelism all hold all rows: each runs its experts, or its part of their width,
// and an all-reduce adds the results of them and of the shared expert. Where ranks have parts of
// the rows, these are the two halves of the all-reduce after attention, one before and one after.
void ServingOperations::experts(Segment& s, const Ffn& ffn, std::int64_t all_rows,
                                const GroupRows& group) const {
  const std::int64_t rows = rows_of_rank(all_rows);
  const std::size_t fork = s.operations.size();
  const double scores = static_cast<double>(rows * ffn.experts);
  product(s, Label::expert, rows, ffn.experts, model_.hidden, false);
  stream(s, Label::expert, WorkKind::router, 4 * scores, 4 * scores);
  if (ffn.latent > 0) product(s, Label::expert, rows, ffn.latent, model_.hidden, true);
  exchange(s, ffn, group, ExchangePhase::dispatch);
  routed_experts(s, ffn, group.all);
  exchange(s, ffn, group, ExchangePhase::combine);
  if (ffn.latent > 0) product(s, Label::expert, rows, model_.hidden, ffn.latent, true);
  if (ffn.shared_width > 0) {
    Segment own;
    of(ModelPart::shared).feed_forward(own, ffn.shared_width, ffn.activation, all_rows, false);
    add_shared(s, std::move(own.operations), fork, all_rows);
  }
  if (!sends_rows()) all_reduce(s, rows);
}

Segment ServingOperations::shared(const LayerClass& layer, const GroupRows& group) const {
  Segment s;
  if (layer.ffn.kind != FfnKind::moe) return s;
  exchange(s, layer.ffn, group, ExchangePhase::dispatch);
  routed_experts(s, layer.ffn, group.all);
  exchange(s, layer.ffn, group, ExchangePhase::combine);
  return s;
}

}  // namespace orrery
