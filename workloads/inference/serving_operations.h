// SPDX-License-Identifier: Apache-2.0
// Lowers a step of a serving engine: what every row takes, and what attention takes besides.
#pragma once

#include "workloads/inference/drafter.h"
#include "workloads/inference/engine_layout.h"
#include "workloads/layout/expert_reach.h"
#include "workloads/model/model.h"
#include "workloads/operations/program.h"
#include "workloads/serving/step_shape.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Operations of one rank. Rows are tokens that a step computes on it: one of each decoding sequence
// (more with drafts) and those of prompts. A step's price is a sum over layers of what its rows
// take and of what attention takes over the histories, so that both can be tabulated.
class ServingOperations {
 public:
  // All must outlive it.
  ServingOperations(const Model& model, const EngineLayout& layout, const Stack& stack)
      : model_(model), layout_(layout), stack_(stack), precision_(layout.precision) {}
  const ServingKernels& kernels() const { return stack_.serving.kernels; }
  // On the device between the layers of one step and those of the next.
  Seconds between_steps() const { return stack_.serving.host.between_steps.get(); }
  // Whether the host waits in each layer of a prompt for the counts of rows that are sent to a
  // rank.
  bool waits_for_counts() const;
  // The same, with products in the precision that the checkpoint has for a part.
  ServingOperations of(ModelPart part) const;

  // A layer of a class but for attention over histories. Experts belong to all ranks of the group:
  // their work goes by the rows of all, where each rank has as many as this one or by `group`.
  Segment layer(const LayerClass& layer, std::int64_t rows) const;
  Segment layer(const LayerClass& layer, std::int64_t rows, const GroupRows& group) const;
  // Of the latter what `group` decides: the exchange of rows, and experts.
  Segment shared(const LayerClass& layer, const GroupRows& group) const;
  // Where each rank has so many rows.
  GroupRows even(std::int64_t rows) const { return {rows, rows * layout_.attention_dp}; }
  // The embedding, and the head of those rows that are sampled.
  Segment embedding(std::int64_t rows) const;
  Segment head(std::int64_t sampled) const;
  // What joins the inputs of a network that guesses tokens: a norm and a product. In a first pass
  // all of them, in later ones those that are made anew.
  Segment joined(const std::vector<JoinedInput>& inputs, std::int64_t rows, bool first) const;
  // Attention of sequences that decode, each `rows` tokens over `history` keys and values, itself
  // included; empty where the mixer keeps no history.
  Segment decode(const Mixer& mixer, std::int64_t sequences, std::int64_t rows,
                 std::int64_t history) const;
  // Attention of a part of a prompt: `tokens` after `start` that are in the cache.
  Segment prefill(const Mixer& mixer, std::int64_t start, std::int64_t tokens) const;

 private:
  void product(Segment& s, Label label, std::int64_t m, std::int64_t n, std::int64_t k,
               bool quantised) const;
  void stream(Segment& s, Label label, WorkKind kind, double read, double written,
              std::int64_t blocks = 0) const;
  void vector_work(Segment& s, Label label, double operations, double read = 0,
                   double written = 0) const;
  void batched_product(Segment& s, std::int64_t m, std::int64_t n, std::int64_t k,
                       std::int64_t groups, Format format = Format::bf16,
                       Library library = Library::cublas) const;
  void absorbed_product(Segment& s, std::int64_t m, std::int64_t n, std::int64_t k,
                        std::int64_t heads) const;
  void quantise(Segment& s, double elements, Format format, Library library,
                std::int64_t rows = 0) const;
  void decode_attention(Segment& s, const Mixer& mixer, Work work) const;
  void prefill_attention(Segment& s, Work work) const;
  void prefill_attention(Segment& s, Work work, Library library) const;
  void norms(Segment& s, const LayerClass& layer, std::int64_t rows) const;
  void all_reduce(Segment& s, std::int64_t rows) const;
  void small_kernels(Segment& s, std::int64_t number) const;
  void choose(Segment& s) const;  // among an indexer's scores
  void mixer_rows(Segment& s, const Mixer& mixer, std::int64_t rows) const;
  void latent_rows(Segment& s, const Mixer& mixer, std::int64_t rows) const;
  void scan_rows(Segment& s, const Mixer& mixer, std::int64_t rows) const;
  void scan_prefill(Segment& s, const Mixer& mixer, std::int64_t tokens) const;
  void state_decode(Segment& s, const Mixer& mixer, std::int64_t sequences) const;
  void delta_rows(Segment& s, const Mixer& mixer, std::int64_t rows) const;
  void delta_prefill(Segment& s, const Mixer& mixer, std::int64_t tokens) const;
  void index_rows(Segment& s, const Mixer& mixer, std::int64_t rows) const;
  void sparse_decode(Segment& s, const Mixer& mixer, std::int64_t sequences, std::int64_t rows,
                     std::int64_t history) const;
  void sparse_prefill(Segment& s, const Mixer& mixer, std::int64_t start,
                      std::int64_t tokens) const;
  bool attends_plainly(const Mixer& mixer, std::int64_t tokens) const;
  void compress_rows(Segment& s, const Mixer& mixer, std::int64_t rows) const;
  void project_groups(Segment& s, const Mixer& mixer, std::int64_t rows) const;
  void feed_forward(Segment& s, std::int64_t width, Activation activation, std::int64_t rows,
                    bool reduced) const;
  ExpertRouting routing(const Ffn& ffn, std::int64_t all) const;
  bool sends_rows() const;
  std::int64_t rows_of_rank(std::int64_t rows) const;
  void experts(Segment& s, const Ffn& ffn, std::int64_t rows, const GroupRows& group) const;
  void add_shared(Segment& s, std::vector<Operation> operations, std::size_t fork,
                  std::int64_t rows) const;
  void routed_experts(Segment& s, const Ffn& ffn, std::int64_t all) const;
  void exchange(Segment& s, const Ffn& ffn, const GroupRows& group, ExchangePhase phase) const;
  std::int64_t split(std::int64_t n) const;  // over tensor-parallel ranks

  const Model& model_;
  const EngineLayout& layout_;
  const Stack& stack_;
  PrecisionRecipe precision_;
};

}  // namespace orrery
