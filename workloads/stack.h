// Knows a software stack and its releases: kernels, fusions, overlap, host cost, allocator.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json.h"
#include "sim/base/names.h"
#include "sim/base/sourced.h"
#include "workloads/layout.h"

namespace orrery {

// How kernels reach the device.
enum class LaunchMode : std::uint8_t {
  eager,         // one host dispatch per operation
  scoped_graph,  // attention and dense parts in CUDA graphs, expert parts eager
  full_graph,    // the whole iteration is one CUDA graph
};
std::string_view to_text(LaunchMode);

// Counts of framework operations that the host dispatches for one layer (or the head), by phase.
struct HostOperations {
  Sourced<double> layer_forward, layer_backward;  // a dense layer
  Sourced<double> moe_forward, moe_backward;  // added by an expert layer (router, permute, loops)
  Sourced<double> head;                       // final norm, head and loss, per phase
  Sourced<double> collective;                 // added by one collective call
};

// A count that a stack may leave out.
inline Sourced<double> no_kernels() {
  return {.value = 0.0,
          .low = 0.0,
          .high = 0.0,
          .evidence = Evidence::assumed,
          .source = "orrery-first-study"};
}

// Everything about a framework release that a step's time and memory depend on.
struct Stack {
  std::string name;     // "megatron-core"
  std::string release;  // "0.15"
  std::string date;     // of the release, "2025-11"
  std::string title, framework;
  std::vector<std::string> changes;  // sentences: what this release changed

  // Kernels.
  Library attention = Library::flash2;
  Format attention_format = Format::bf16;  // fp8 where the recipe quantises attention
  Library gemm = Library::cublas;
  Library grouped_gemm = Library::grouped_gemm;
  Library memory_bound = Library::fused;  // norms, activations, rotary, residuals
  // Whose kernels time these: traffic is counted in passes of theirs. Empty: of memory_bound.
  std::optional<Library> counted_in;
  Library stream_library() const { return counted_in.value_or(memory_bound); }
  Sourced<double> elementwise_passes;    // memory traffic of these over a perfectly fused layer's
  Sourced<double> loss_bytes_per_logit;  // traffic of the loss, forward and backward together
  Sourced<double> quantise_passes;       // traffic of quantise kernels over one read and one write
  Sourced<double> permute_passes;        // expert permute traffic over one read and one write
  // Traffic of the update over one read and one write of what it touches. Most stacks leave it out.
  Sourced<double> optimizer_passes = {.value = 1.0,
                                      .low = 1.0,
                                      .high = 1.2,
                                      .evidence = Evidence::assumed,
                                      .source = "orrery-first-study"};
  // Kernels of a layer's pass that move next to nothing (memsets, casts, copies of views), beyond
  // those that its operations list.
  Sourced<double> small_kernels_forward = no_kernels(), small_kernels_backward = no_kernels();
  bool fused_gradient_accumulation = false;   // weight-gradient products add into the gradient
                                              // buffer (gradient_storage) themselves
  bool attention_recompute_selective = true;  // "selective" recomputes the attention core

  bool fp8_dispatch = false;  // expert all-to-all carries fp8 tokens forward

  // The host.
  LaunchMode launch = LaunchMode::eager;
  Sourced<Seconds> dispatch;  // host time of one operation
  HostOperations operations;
  Sourced<Seconds> moe_sync;          // added per dropless expert layer, forward plus backward
  Sourced<Seconds> softmax_fallback;  // added per layer where micro_batch * heads / tp % 4 != 0
  Sourced<Seconds> debug_per_rank;    // host time per collective and rank of its group: debug
                                      // wrappers that check every call, and skew of hosts
  Sourced<Seconds> step_overhead;     // host and logging work per step that nothing hides

  // Overlap. Shares are of the collective's own time.
  Sourced<double> tensor_exposed;       // of tensor-parallel collectives; 1: nothing overlapped
  Sourced<double> expert_exposed;       // of expert all-to-all
  Sourced<double> context_exposed;      // least share of context-parallel traffic left visible
  Sourced<double> data_overlap_window;  // share of the last microbatch's pass that hides gradients
  Sourced<double> overlap_cost;   // time that hidden traffic costs the compute beside it, over
                                  // the traffic's own: processors, memory and power it takes
  bool gradient_overlap = true;   // gradients reduced under the last backward
  bool parameter_overlap = true;  // parameters gathered under the first forward
  bool pipeline_sends_block = true;
  bool scatter_gather_sends = true;        // pipeline messages split over tp ranks
  Sourced<Bytes> bucket;                   // gradient bucket
  Sourced<Bytes> bucket_per_rank;          // buckets grow to this for every rank of the group
  Format gradient_format = Format::fp32;   // as reduced
  Format gradient_storage = Format::fp32;  // as kept
  Format parameter_gather_format = Format::bf16;
  CollectiveLibrary expert_library = CollectiveLibrary::nccl;  // deepep: deduplicated
  bool expert_deduplicated = true;  // a token crosses once per destination rank and node

  // Memory.
  Sourced<double> allocator_rounding;   // reserved over allocated at the peak
  Sourced<Bytes> context;               // CUDA context, NCCL and library workspaces
  bool loss_in_fp32 = true;             // logits are kept in fp32 too
  bool fused_loss = false;              // no fp32 copy of the logits
  bool gradient_bucket_copies = false;  // DDP buckets in the parameters' format beside fp32 sums
  bool splits_vocabulary = true;        // embedding and head are split over tp
  bool keeps_pipeline_outputs = false;  // every microbatch's logits stay until the step ends
  Sourced<double> sequence_buffers;     // whole hidden states kept for sequence-parallel gathers

  Partition partition = Partition::even;
  // What a run's description leaves blank.
  Recompute default_recompute = Recompute::none;
  int default_zero_stage = 1;
  bool default_sequence_parallel = true;
  Schedule default_schedule = Schedule::one_f_one_b;
  PrecisionRecipe fp8_recipe = PrecisionRecipe::fp8_delayed;  // what plain "fp8" means here
};

// What a release's conditional settings may depend on.
struct StackContext {
  std::string architecture;  // "hopper": to_text(Architecture)
  PrecisionRecipe precision = PrecisionRecipe::bf16;
  bool moe = false;
  Task task = Task::pretrain;
};

// `name` is "megatron-core", "megatron-core@0.12" or a path. Files: catalog_folder/<name>.json with
// "base" settings, "releases" in order of date (each overlays those before it) and in each "when"
// lists: [{"architecture": .., "precision": .., "moe": .., "task": .., "set": {...}}]. Without a
// release the newest is taken; a release later than the last listed one inherits it.
Stack load_stack(const std::string& name, const StackContext& context,
                 const std::filesystem::path& catalog_folder);
std::vector<std::string> stack_names(const std::filesystem::path& catalog_folder);
std::vector<std::string> stack_releases(const std::string& name,
                                        const std::filesystem::path& catalog_folder);

template <class StackRef, class Visit>
void visit_stack_values(StackRef& s, Visit&& visit) {
  visit("elementwise_passes", s.elementwise_passes);
  visit("loss_bytes_per_logit", s.loss_bytes_per_logit);
  visit("quantise_passes", s.quantise_passes);
  visit("permute_passes", s.permute_passes);
  visit("optimizer_passes", s.optimizer_passes);
  visit("small_kernels_forward", s.small_kernels_forward);
  visit("small_kernels_backward", s.small_kernels_backward);
  visit("dispatch", s.dispatch);
  visit("operations.layer_forward", s.operations.layer_forward);
  visit("operations.layer_backward", s.operations.layer_backward);
  visit("operations.moe_forward", s.operations.moe_forward);
  visit("operations.moe_backward", s.operations.moe_backward);
  visit("operations.head", s.operations.head);
  visit("operations.collective", s.operations.collective);
  visit("moe_sync", s.moe_sync);
  visit("softmax_fallback", s.softmax_fallback);
  visit("debug_per_rank", s.debug_per_rank);
  visit("step_overhead", s.step_overhead);
  visit("tensor_exposed", s.tensor_exposed);
  visit("expert_exposed", s.expert_exposed);
  visit("context_exposed", s.context_exposed);
  visit("data_overlap_window", s.data_overlap_window);
  visit("overlap_cost", s.overlap_cost);
  visit("bucket", s.bucket);
  visit("bucket_per_rank", s.bucket_per_rank);
  visit("allocator_rounding", s.allocator_rounding);
  visit("context", s.context);
  visit("sequence_buffers", s.sequence_buffers);
}

}  // namespace orrery
