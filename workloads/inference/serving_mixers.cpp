// SPDX-License-Identifier: Apache-2.0
// Lowers mixers that only serving engines run: gated delta nets, indexed and compressed attention.
#include <algorithm>

#include "workloads/inference/serving_operations.h"

namespace orrery {
namespace {

// Heads of a gated delta net whose chunks follow each other at the same time: fewer take as long
// (H200, Flash Linear Attention, one prompt of 2,048 to 16,384 tokens: 50 ns a token with 8 heads,
// 72 with 16, 160 with 64).
constexpr std::int64_t least_delta_heads = 20;

// FlashMLA's sparse kernels take 64 heads or 128: layers of 8 and of 64 heads differ by their
// products alone (aiconfigurator's table of whole layers, H200).
constexpr std::int64_t sparse_heads = 64;

// What an indexer takes beside its products, streams and choice: some twenty kernels that move next
// to nothing. aiconfigurator's tables of whole layers with and without an indexer (H200, vLLM 0.24,
// one sequence) differ by 90 us at 512 tokens, 27 of which are listed here. Operations of the fp32
// units that take as long, as such kernels go with the clock.
constexpr double indexer_operations = 4.2e9;

// An indexer's key in 8 bits has an fp32 scale (SGLang: 128 + 4 bytes).
double index_bytes(const Mixer& m) { return static_cast<double>(m.index_dim + 4); }

std::int64_t padded_heads(std::int64_t heads) {
  return (heads + sparse_heads - 1) / sparse_heads * sparse_heads;
}

// Entries that the indexer scores or, without one, that are attended to beside the window.
std::int64_t entries(const Mixer& m, std::int64_t history) {
  return m.compress > 0 ? history / m.compress : history;
}

// Keys that a query attends to.
std::int64_t attended(const Mixer& m, std::int64_t history) {
  std::int64_t keys = entries(m, history);
  if (m.index_topk > 0) keys = std::min(keys, m.index_topk);
  return m.window > 0 ? keys + std::min(m.window, history) : keys;
}

}  // namespace

// Projections to queries, keys, values and gates, a convolution over the first three, the state's
// part, which is attention's, a gated norm and the output. Decays and strengths stay in 16 bits.
void ServingOperations::delta_rows(Segment& s, const Mixer& m, std::int64_t rows) const {
  const std::int64_t values = split(m.inner), keys = split(m.groups * m.state);
  product(s, Label::gemm, rows, 2 * (values + keys), model_.hidden, true);
  product(s, Label::gemm, rows, 2 * split(m.heads), model_.hidden, false);
  const auto mixed = static_cast<double>(rows * (values + 2 * keys));
  vector_work(s, Label::elementwise, stack_.kernels.scan.convolution.get() * mixed, 2 * mixed,
              2 * mixed);
  const double gated = 2.0 * static_cast<double>(rows * values);
  stream(s, Label::elementwise, WorkKind::norm, 2 * gated, gated);
  product(s, Label::gemm, rows, model_.hidden, values, true);
}

void ServingOperations::delta_prefill(Segment& s, const Mixer& m, std::int64_t tokens) const {
  const std::int64_t heads = split(m.heads);
  const auto busy = static_cast<double>(std::max(heads, least_delta_heads) * m.v_dim);
  const auto rows = static_cast<double>(tokens);
  const double states = 4.0 * static_cast<double>(heads * m.v_dim * m.state);
  const auto values = static_cast<double>(heads * m.v_dim);
  const auto keys = static_cast<double>(2 * split(m.groups * m.state));
  vector_work(s, Label::attention, stack_.kernels.scan.delta_rule.get() * rows * busy,
              states + 2 * rows * (values + keys), states + 2 * rows * values);
}

// DeepSeek-V3.2 (2025), section 2: queries of the indexer come from the queries' latent, its key
// and the weights of its heads from the row. Keys are kept in 8 bits. Ranks do not split it.
void ServingOperations::index_rows(Segment& s, const Mixer& m, std::int64_t rows) const {
  const ServingOperations indexer = of(ModelPart::indexer);
  indexer.product(s, Label::gemm, rows, m.index_heads * m.index_dim, m.q_lora, true);
  const std::int64_t keys = m.compress > 0 ? 4 * m.index_dim : m.index_dim;
  indexer.product(s, Label::gemm, rows, keys, model_.hidden, true);
  indexer.product(s, Label::gemm, rows, m.index_heads, model_.hidden, false);
  const auto elements = static_cast<double>(rows * (m.index_heads + 1) * m.index_dim);
  stream(s, Label::elementwise, WorkKind::rotary, 2 * elements, elements);
  vector_work(s, Label::elementwise, indexer_operations);
}

// DeepSeek-V4's code: keys of several tokens are their sum with learned weights; where few tokens
// make one key, those before them take part as well, for which both are made twice.
void ServingOperations::compress_rows(Segment& s, const Mixer& m, std::int64_t rows) const {
  const std::int64_t key = m.kv_lora + m.rope_dim;
  const std::int64_t width = 2 * key * (m.index_heads > 0 ? 2 : 1);
  product(s, Label::gemm, rows, width, model_.hidden, true);
  const double made = 2.0 * static_cast<double>(rows * width);
  stream(s, Label::elementwise, WorkKind::elementwise, made,
         made / static_cast<double>(m.compress));
}

// Results of a group's heads go to a narrow row, and all of them to the hidden size.
void ServingOperations::project_groups(Segment& s, const Mixer& m, std::int64_t rows) const {
  const std::int64_t groups = split(m.out_groups);
  batched_product(s, rows, m.out_lora, split(m.heads) * m.v_dim / groups, groups);
  of(ModelPart::attention_output)
      .product(s, Label::gemm, rows, model_.hidden, groups * m.out_lora, true);
}

void ServingOperations::choose(Segment& s) const {
  const double operations = stack_.serving.kernels.index_choice.get();
  if (operations > 0) vector_work(s, Label::attention, operations);
}

// Scores of the history, the choice among them, attention over what was chosen.
void ServingOperations::sparse_decode(Segment& s, const Mixer& m, std::int64_t sequences,
                                      std::int64_t rows, std::int64_t history) const {
  if (m.index_heads > 0) {
    const double all = static_cast<double>(sequences * entries(m, history));
    const double scores = 4 * all * static_cast<double>(rows);
    stream(s, Label::attention, WorkKind::elementwise, all * index_bytes(m), scores);
    const auto chosen = static_cast<double>(sequences * rows * attended(m, history));
    stream(s, Label::attention, WorkKind::softmax, scores, 4 * chosen);
    if (entries(m, history) > m.index_topk) choose(s);
  }
  decode_attention(s, m,
                   {.batch = sequences * rows,
                    .heads = padded_heads(split(m.heads)),
                    .q_length = 1,
                    .kv_length = std::max<std::int64_t>(1, attended(m, history))});
}

// The same for many queries, each of which sees what was before it. Keys are read by their latents,
// as in decode: what a query does not choose is not made anew.
void ServingOperations::sparse_prefill(Segment& s, const Mixer& m, std::int64_t start,
                                       std::int64_t tokens) const {
  const std::int64_t keys = std::max<std::int64_t>(1, entries(m, start + tokens));
  if (m.index_heads > 0) {
    // Products of queries with keys, without values.
    prefill_attention(s, {.input = Format::fp8,
                          .heads = m.index_heads,
                          .kv_heads = 1,
                          .q_length = tokens,
                          .kv_length = std::max(keys, tokens),
                          .qk_dim = m.index_dim / 2,
                          .v_dim = m.index_dim / 2,
                          .window = m.compress > 0 ? keys : 0});
    const double pairs = static_cast<double>(tokens) *
                         static_cast<double>(entries(m, start) + entries(m, start + tokens)) / 2;
    stream(s, Label::attention, WorkKind::softmax, 8 * pairs, 4 * pairs);
    if (entries(m, start + tokens) > m.index_topk) choose(s);
  }
  Work work{.heads = padded_heads(split(m.heads)),
            .kv_heads = 1,
            .q_length = tokens,
            .kv_length = start + tokens,
            .qk_dim = m.kv_lora + m.rope_dim,
            .v_dim = m.kv_lora,
            .window = attended(m, start + tokens)};
  if (!kernels().sparse_attention || m.index_heads == 0 || m.compress > 0)
    return prefill_attention(s, work);
  if (layout_.cache == Format::fp8) work.input = Format::fp8;
  work.kv_length = std::max(start, m.index_topk) + tokens;
  work.window = m.index_topk;
  prefill_attention(s, work, *kernels().sparse_attention);
}

}  // namespace orrery
