// SPDX-License-Identifier: Apache-2.0
// Builds the operations of one layer on one rank: mixers, FFNs, experts, embedding and head.
#pragma once

#include "workloads/layout/job.h"
#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/operations/program.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Rows of one microbatch on one rank, and what the layout does to widths. Shared by every layer.
struct RankShape {
  std::int64_t tokens = 0;                   // rows of the layer's products
  std::int64_t norm_tokens = 0;              // rows where sequence parallelism splits them over tp
  std::int64_t sequences = 0;                // sequences (or documents) that attention sees
  std::int64_t q_length = 0, kv_length = 0;  // rows and keys of one of them
  bool causal = true;
  bool decode = false;
  bool training = true;
  bool sequence_parallel = false;
};

// What one of so many ranks has of `n` heads or columns; where ranks are more, they share them.
inline std::int64_t split(std::int64_t n, std::int64_t ways) {
  return std::max<std::int64_t>(1, n / ways);
}

// Appends the operations of one phase of one layer to a segment. All methods are for one rank.
class LayerOperations {
 public:
  LayerOperations(const Model& model, const Job& job, const Layout& layout, const Stack& stack);

  LayerProgram layer(const LayerClass& layer) const;
  LayerProgram embedding() const;
  LayerProgram head() const;
  // What an MTP module does before its layer: embeds the next words, norms and joins them with the
  // hidden states, projects both to one.
  LayerProgram module() const;
  // A product of two matrices of `side` x `side` that no recipe quantises (an optimizer's).
  Kernel square_product(std::int64_t side) const;
  const RankShape& shape() const { return shape_; }

 private:
  // What tensor parallelism does to a linear layer: nothing, splits its outputs or its inputs. LoRA
  // splits an adapter alike: A's rank with outputs, B's outputs with inputs.
  enum class Adapter : std::uint8_t { none, whole, columns, rows };
  // A linear layer y = x W on this rank: rows m, outputs n, inputs k (per tp rank).
  struct Linear {
    std::int64_t m = 0, n = 0, k = 0;
    bool quantised = true;
    // With sequence parallelism: its input is gathered from the tp ranks, its output scattered to
    // them. Quantised operands are then quantised before they move.
    bool gathered = false, scattered = false;
    Adapter adapter = Adapter::none;
  };

  // layer_operations.cpp
  void norms(LayerProgram& p, int count, int modules) const;
  void dense_ffn(LayerProgram& p, std::int64_t width, Activation activation) const;
  void stream(Segment& s, WorkKind kind, double read, double written, Label label) const;
  static void append(Segment& to, const Segment& from);

  // module_operations.cpp
  void module_projection(LayerProgram& p) const;

  // layer_operations.cpp
  void add_table_gradient(Segment& s, double elements) const;

  // linear_operations.cpp
  // Pieces that a training product of so many rows is cut into, where they divide it.
  std::int64_t cut(std::int64_t rows, std::int64_t pieces) const;
  void forward_linear(Segment& s, const Linear& l, Label label) const;
  void backward_linear(LayerProgram& p, const Linear& l, Label label, bool frozen) const;
  Adapter adapter(Adapter kind, AdapterSites site = AdapterSites::every_linear) const;
  struct AdapterWidths {
    std::int64_t a = 0, b = 0;
  };
  AdapterWidths adapter_widths(const Linear& l) const;
  void forward_adapter(Segment& s, const Linear& l, Label label) const;
  void backward_adapter(LayerProgram& p, const Linear& l, Label label) const;
  void add_output(Segment& s, std::int64_t elements) const;
  void accumulate(Segment& s, double elements, Label label) const;
  bool accumulates_fp32() const {
    return stack_.kernels.fused_gradient_accumulation &&
           stack_.sharding.gradient_storage == Format::fp32;
  }

  // quantise_operations.cpp
  Format linear_format() const;  // of products that the recipe quantises
  bool block_scales() const;     // of their operands
  Format plain_format() const;   // of what it leaves alone
  void quantise(Segment& s, double elements, bool gathered = false) const;
  void quantise_traffic(Segment& s, double elements, double bytes) const;
  void transpose_copy(Segment& s, double elements) const;
  double quantise_bytes(bool both) const;
  // Bytes of an element of activations that tensor-parallel ranks gather for a product.
  double gathered_bytes() const;
  bool per_tensor() const {
    return layout_.precision == PrecisionRecipe::fp8_delayed ||
           layout_.precision == PrecisionRecipe::fp8_current;
  }

  // tensor_traffic.cpp
  void tensor_enter(LayerProgram& p, bool quantised = true) const;
  void tensor_leave(LayerProgram& p) const;
  // Adds one and returns it, for what only some have; valid until another is added.
  CollectiveOperation& collective(Segment& s, CollectiveKind kind, GroupKind group, double bytes,
                                  Label label, double exposed) const;

  // context_traffic.cpp
  void context_exchange(LayerProgram& p, const Mixer& mixer) const;
  void pass_keys(LayerProgram& p, double own) const;
  void trade_heads(LayerProgram& p, GroupKind group, double before, double after) const;

  // mixer_operations.cpp
  void attention(LayerProgram& p, const Mixer& mixer) const;
  void attention_core(LayerProgram& p, const Mixer& mixer) const;

  // mamba_operations.cpp
  struct MambaWidths {
    std::int64_t inner = 0, heads = 0, states = 0;  // of a tp rank; states: B and C of all groups
  };
  MambaWidths mamba_widths(const Mixer& mixer) const;
  void mamba_kernel(Segment& s, Label label, double read, double written, double operations,
                    double count) const;
  void mamba_around_scan(LayerProgram& p, const Mixer& mixer) const;
  void mamba_scan(LayerProgram& p, const Mixer& mixer) const;
  void mamba(LayerProgram& p, const Mixer& mixer) const;

  // expert_operations.cpp
  void experts(LayerProgram& p, const Ffn& ffn) const;
  // Routed rows of one rank, and the experts of it that they reach.
  struct ExpertLoad {
    double rows = 0;
    std::int64_t experts = 1;
  };
  ExpertLoad expert_load(const Ffn& ffn) const;
  void expert_products(LayerProgram& p, const Ffn& ffn) const;
  Operation grouped_product(GemmRole role, std::int64_t m, std::int64_t n, std::int64_t k,
                            std::int64_t groups) const;
  void expert_biases(LayerProgram& p, double elements) const;
  void expert_exchange(LayerProgram& p, const Ffn& ffn) const;
  void latent_projections(LayerProgram& p, const Ffn& ffn) const;
  void expert_rows(LayerProgram& p, double bytes) const;

  // recompute_operations.cpp
  void rerun(LayerProgram& p, RecomputeModule module, std::size_t from) const;
  void add_recompute(LayerProgram& p) const;
  void end_at_last_product(Segment& s) const;
  void rerun_operations(LayerProgram& p, const LayerClass& layer) const;

  // host_operations.cpp
  void host(LayerProgram& p, const LayerClass& layer) const;
  Seconds host_time(double operations, const Segment& s) const;
  bool softmax_falls_back(const Mixer& mixer) const;
  void wait(Segment& s, Seconds time) const;
  void small_kernels(LayerProgram& p) const;

  const Model& model_;
  const Job& job_;
  const Layout& layout_;
  const Stack& stack_;
  RankShape shape_;
};

}  // namespace orrery
