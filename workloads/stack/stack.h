// SPDX-License-Identifier: Apache-2.0
// Holds a software stack and its releases: kernels, fusions, overlap, host cost, allocator.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/base/names.h"
#include "sim/base/text/enum_names.h"
#include "sim/base/units/sourced.h"
#include "workloads/layout/layout.h"
#include "workloads/stack/launcher.h"

namespace orrery {

struct LayerClass;

// How kernels reach the device.
enum class LaunchMode : std::uint8_t {
  eager,         // one host dispatch per operation
  scoped_graph,  // attention and dense parts in CUDA graphs, expert parts eager
  full_graph,    // the whole iteration is one CUDA graph
};
inline constexpr auto launch_mode_text =
    enum_names<LaunchMode>({"eager", "scoped-graph", "full-graph"});
constexpr std::string_view to_text(LaunchMode mode) { return launch_mode_text[mode]; }

// What holds of a stack that does not name the value.
template <class T>
Sourced<T> unstated(T value) {
  return {.value = value,
          .low = value,
          .high = value,
          .evidence = Evidence::assumed,
          .source = "orrery-estimate",
          .reason = "a stack that names none has none"};
}

// How ZeRO-3 keeps what it shards. That decides which copies its collectives need around them.
enum class ShardStorage : std::uint8_t {
  in_place,  // gathered and reduced where parameters and gradients lie (Megatron-FSDP)
  flat,      // a flat tensor for each unit (FSDP1): gradients are joined, cast and divided in it
  parts,     // a shard for each parameter (FSDP2): gathers are copied out, gradients copied in
  bucketed,  // flat partitions, gradients in buckets of several parameters (DeepSpeed)
};

// Linear layers that LoRA gives adapters. Routed experts have none: recipes for models with experts
// adapt attention (NeMo: recipes/mixtral_8x7b.py).
enum class AdapterSites : std::uint8_t {
  every_linear,     // attention's, latent projections, dense and shared feed-forwards, Mamba's
  query_key_value,  // what makes queries, keys and values
};

// Counts of framework operations that the host dispatches for one layer (or the head), by phase.
struct HostOperations {
  Sourced<double> layer_forward, layer_backward;  // a dense layer
  Sourced<double> moe_forward, moe_backward;  // added by an expert layer (router, permute, loops)
  // Added for every expert of a rank: products, quantise kernels and biases that the host launches
  // expert by expert.
  Sourced<double> expert_forward = unstated(0.0), expert_backward = unstated(0.0);
  Sourced<double> head;        // final norm, head and loss, per phase
  Sourced<double> collective;  // added by one collective call
};

// Wrappers that check every collective call: host time of a call for each rank of its group.
struct DebugWrappers {
  Sourced<Seconds> per_rank;
  Sourced<Seconds> per_remote_rank = unstated(Seconds(0));  // added for each rank on another host
  // Share of hosts on which calls take longer, and by how much of their time: a job waits for the
  // slowest of its hosts.
  Sourced<double> slow_hosts = unstated(0.0), slow_cost = unstated(0.0);
};

// What a stack keeps in device memory beside parameters, gradients, state and activations.
struct StackMemory {
  Sourced<double> allocator_rounding;   // reserved over allocated at the peak
  Sourced<Bytes> context;               // CUDA context, NCCL and library workspaces
  bool loss_in_fp32 = true;             // logits are kept in fp32 too
  bool fused_loss = false;              // no fp32 copy of the logits
  bool gradient_bucket_copies = false;  // DDP buckets in the parameters' format beside fp32 sums
  // Gradients of all microbatches but the last add up in tensors of their own beside DDP's buckets.
  bool gradient_sums_beside_buckets = false;
  bool keeps_pipeline_outputs = false;  // every microbatch's logits stay until the step ends
  Sourced<double> sequence_buffers;     // whole hidden states kept for sequence-parallel gathers
  // A master weight is the bf16 parameter and the 16 bits that it lacks: 2 B beside the parameter,
  // not 4. Parameters that exist in 8 bits only have nothing to share.
  bool master_remainders = false;
  // What a quantised product reads stays in 16 bits from forward to backward, which quantises it
  // again (torchao's float8 and MX linear layers save their inputs as they came); else in the bits
  // of the recipe (Transformer Engine).
  bool inputs_in_16_bits = false;
  // ZeRO-3 keeps a 16-bit shard of the parameters, from which it gathers, beside the master's
  // (Megatron-FSDP, DeepSpeed); else it casts the master's as it gathers (FSDP2).
  bool gathers_16_bit_shard = false;
  // What backward needs is kept in few bits also where kernels of 16 bits made it (DeepSeek-V3,
  // arXiv 2412.19437, section 3.3.3): activation functions that run again with those of the experts
  // keep their inputs in the products' format, and attention's output lies there once, in 12 bits.
  // The report says so of expert layers; the three dense ones are taken to do the same.
  bool compact_activations = false;
};

// What a run's description leaves blank.
struct StackDefaults {
  RecomputeChoice recompute;
  bool recompute_known = false;  // that is the recipe's; else it is the least that a run may do
  int zero_stage = 1;
  bool sequence_parallel = true;
  bool mtp = false;  // the model's MTP modules are trained
  Schedule schedule = Schedule::one_f_one_b;
  bool interleaved = false;  // pipelines run one layer a chunk where vpp is left out
  Optimizer optimizer = Optimizer::adam_fp32;
  ContextKind context = ContextKind::ring;
  PrecisionRecipe fp8 = PrecisionRecipe::fp8_delayed;  // what plain "fp8" means here
};

// Ways in which a program splits a job's model or its sequences.
enum class Split : std::uint8_t { none, tp, pp, cp, ep };

// What a program lets its user choose, which a search tries. Empty: everything that a layout can
// say. A run may name another value.
struct StackChoices {
  std::vector<Split> splits;  // none: it has data-parallel ranks alone
  std::vector<PrecisionRecipe> precisions;
  std::vector<Optimizer> optimizers;
  std::vector<Schedule> schedules;
  std::vector<int> zero_stages;
  std::vector<RecomputeModule> recompute_modules;
  std::vector<RankOrder> rank_orders;
  std::vector<ContextKind> contexts;
  std::vector<Recompute> recomputes;
  std::vector<bool> sequence_parallel;  // beside tensor parallelism
  std::vector<bool> split_experts;      // over tensor ranks (etp is tp), or not (etp is 1)
  bool offload_weights = true, offload_optimizer = true, offload_activations = true;
  bool offload_any_optimizer = true;  // else the states of Adam alone
  bool uneven_stages = true;          // layers of the first and the last stage
  bool uneven_chunks = true;   // layers of inner stages too, and of stages with several chunks
  bool hybrid_chunks = true;   // models with state-space layers: several chunks, uneven stages
  bool recompute_part = true;  // full recompute of some of a stage's layers
  bool bucket_size = true;
  int pipeline_zero_stage = 3;        // the highest with pp above 1
  bool offload_whole_weights = true;  // weights in host memory below ZeRO-3 too
  bool offload_part = false;          // any share of the optimizer's states, not only all of them
  bool offload_activations_alone = false;  // activations: neither pipelines nor recompute beside
  template <class T>
  static bool allows(const std::vector<T>& list, const T& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  }
};

// Everything about a framework release that a step's time and memory depend on.
struct Stack {
  // Compiled once: it is long, and units all over the program hold one.
  Stack();
  Stack(const Stack&);
  Stack(Stack&&) noexcept;
  Stack& operator=(const Stack&);
  Stack& operator=(Stack&&) noexcept;
  ~Stack();

  std::string name;     // "megatron-core"
  std::string release;  // "0.15"
  std::string asked;    // for a release that is not listed, "0.16"; empty: none, or the listed one
  // Later than all that are listed: nothing is known of it. One between two of them runs as the
  // earlier, since releases state what they changed.
  bool asked_is_later = false;
  std::string date;  // of the release, "2025-11"
  std::string title, framework;
  // How it is started, and the release of that program whose settings it has: this one, or of a
  // stack that names no launcher the one that it is based on.
  Launcher launcher = Launcher::scripts;
  std::string flags_release;
  std::string launch_note;             // a sentence to whoever pastes the flags
  std::vector<std::string> platforms;  // of devices that it runs on; empty: not stated
  std::vector<std::string> changes;    // sentences: what this release changed

  // Kernels.
  Library attention = Library::flash2;
  // Decode over latents (MLA, absorbed) and all-reduces of tensor parallelism in inference, where a
  // stack has kernels of their own for them.
  std::optional<Library> latent_attention;
  std::optional<CollectiveLibrary> inference_all_reduce;
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
                                      .source = "orrery-estimate",
                                      .reason =
                                          "one read and one write of what it touches; library "
                                          "kernels that run an update in parts add up to a fifth"};
  // Kernels of a layer's pass that move next to nothing (memsets, casts, copies of views), beyond
  // those that its operations list.
  Sourced<double> small_kernels_forward = unstated(0.0), small_kernels_backward = unstated(0.0);
  // Experts with biases: traffic of adding them to the outputs by kernels of their own, over one
  // read and one write (0: the products add them), and of their activation over a fused one's,
  // where no fused kernel takes a bias.
  Sourced<double> expert_bias_passes = unstated(0.0), biased_activation_passes = unstated(1.0);
  // State-space scans: time of their kernels over that of their products as plain batched ones. The
  // Triton kernels of Mamba-2 keep fp32 states between five launches and recompute them backward.
  Sourced<double> scan_passes = {.value = 4.0,
                                 .low = 2.5,
                                 .high = 5.5,
                                 .evidence = Evidence::estimated,
                                 .source = "orrery-estimate",
                                 .reason =
                                     "as fitted for NeMo, which runs the same kernels; no "
                                     "row of a stack that says nothing"};
  // Grouped products apply the activation and quantise what the next product reads: neither is a
  // kernel of its own.
  bool fused_expert_mlp = false;
  bool fused_gradient_accumulation = false;  // weight-gradient products add into the gradient
                                             // buffer (gradient_storage) themselves
  // Traffic of adding a microbatch's gradients to those before it by kernels of their own, over one
  // read of both and one write.
  Sourced<double> accumulate_passes = {.value = 1.0,
                                       .low = 1.0,
                                       .high = 1.0,
                                       .evidence = Evidence::assumed,
                                       .source = "orrery-estimate",
                                       .reason = "one kernel that reads both and writes the sum"};
  bool attention_recompute_selective = true;  // "selective" recomputes the attention core
  // "selective" keeps the outputs of attention, of every second product (the first, the third, ...)
  // and of reductions over tp, and runs all else again (TorchTitan's selective_ac_option "op").
  bool recompute_by_operation = false;
  // The norm before a linear layer is part of that layer (Transformer Engine's LayerNormLinear) and
  // cannot run again alone; those that several layers read are modules of their own.
  bool fused_norms = false;
  // 8-bit products read both operands along k only (Hopper), so that what two products use is kept
  // twice, as is and transposed. Without it one copy of per-tensor scales serves both.
  bool transposed_copies = true;
  // Time of the release's products and attention over that of the libraries that calibrations
  // measured: kernels for a chip get faster for years. Where a stack says nothing its libraries are
  // taken to be those that were measured; releases of NeMo, whose age was fitted, lose 0 to 14%.
  Sourced<double> kernel_age = {.value = 1.0,
                                .low = 1.0,
                                .high = 1.0,
                                .evidence = Evidence::assumed,
                                .source = "orrery-estimate",
                                .reason = "libraries as the calibrated ones; not fitted"};

  bool fp8_dispatch = false;  // expert all-to-all carries fp8 tokens forward

  // The host.
  LaunchMode launch = LaunchMode::eager;  // launch_mode() says what a layout runs with
  // Modules that cannot run again inside graphs of parts of a layer, as these releases draw them.
  std::vector<RecomputeModule> graphs_refuse;
  bool graphs_refuse_shards = false;  // no graphs where gradients are sharded (ZeRO-2 and 3)
  Sourced<Seconds> dispatch;          // host time of one operation
  HostOperations operations;
  Sourced<Seconds> moe_sync;  // added per dropless expert layer, forward plus backward
  Sourced<double> sync_exposed = unstated(0.0);  // share of the expert part's dispatch that shows:
                                                 // the host cannot run ahead of a synchronisation
  // Added where micro_batch * heads / tp % 4 != 0 to the forward, recompute and backward of a layer
  // together: a third to each that runs, so two thirds to a layer that nothing recomputes.
  Sourced<Seconds> softmax_fallback;
  // Device time that a layer, or the head, waits for the host, forward plus backward, whoever is
  // slower: small kernels and starts of passes leave the device idle though the host is ahead.
  Sourced<Seconds> layer_sync = unstated(Seconds(0));
  // What each tensor-parallel collective of training waits for the last of its ranks, for every
  // doubling of them. The host runs ahead meanwhile.
  Sourced<Seconds> rank_wait = unstated(Seconds(0));
  bool blocking_launches = false;  // the host waits for each kernel: its time adds to the device's
  DebugWrappers debug;
  bool host_runs_ahead = false;    // a stage's host dispatches passes whose input has not arrived;
                                   // else it waits for each message of the pipeline
  Sourced<Seconds> step_overhead;  // host and logging work per step that nothing hides

  // Overlap. Shares are of the collective's own time.
  Sourced<double> tensor_exposed;  // of tensor-parallel collectives; 1: nothing overlapped
  Sourced<double> expert_exposed;  // of expert all-to-all
  // What layouts must have for these two to hold, else nothing is hidden. Userbuffers split rows
  // over the tensor ranks: without sequence parallelism there are no gathers to overlap. An
  // exchange that runs beside another microbatch's pass needs such a pass in the schedule.
  bool tensor_overlap_needs_rows = false;
  bool exchange_beside_passes = false;
  // The same of expert exchanges that run beside passes, where the program can do that but this
  // stack's runs do not (exchange_beside_passes is false). 1: it cannot.
  Sourced<double> overlapped_expert_exposed = unstated(1.0);
  Sourced<double> context_exposed;      // least share of context-parallel traffic left visible
  Sourced<double> data_overlap_window;  // share of the last microbatch's pass that hides gradients
  Sourced<double> overlap_cost;   // time that hidden traffic costs the compute beside it, over
                                  // the traffic's own: processors, memory and power it takes
  bool gradient_overlap = true;   // gradients reduced under the last backward
  bool parameter_overlap = true;  // parameters gathered under the first forward
  bool muon_overlap = true;       // both with Muon too
  bool sharded_at_once = false;   // ZeRO-1: one call after the last backward reduces gradients,
                                  // one gathers parameters; without shards gradients go by buckets
  // Microbatches that one run of the pipeline's schedule takes: a step runs it as often as it has
  // to, each time with a warm-up and a drain. Never fewer than stages. 0: all microbatches.
  std::int64_t schedule_microbatches = 0;
  bool pipeline_sends_block = true;
  bool interleaved_sends_block = false;    // those of pipelines with several chunks a stage
  bool scatter_gather_sends = true;        // pipeline messages split over tp ranks
  bool splits_gradient_sends = true;       // those of the backward pass too
  Sourced<Bytes> bucket;                   // gradient bucket
  Sourced<Bytes> bucket_per_rank;          // buckets grow to this for every rank of the group
  Format gradient_format = Format::fp32;   // as reduced
  Format gradient_storage = Format::fp32;  // as kept
  Format parameter_gather_format = Format::bf16;
  // LoRA: the linear layers that have adapters, and traffic of adding an adapter's output to the
  // layer's over one read of both and one write (0: a kernel of the adapter does it).
  AdapterSites adapter_sites = AdapterSites::every_linear;
  Sourced<double> adapter_passes = unstated(1.0);
  ShardStorage shard_storage = ShardStorage::in_place;
  bool reshard_after_forward = true;  // ZeRO-3 gathers again for backward what forward used
  // Share of its memory bandwidth at which the host runs the update of what is offloaded.
  // ZeRO-Offload (arXiv 2101.06840) reports 2.57 s for Adam on 10 billion parameters, 30 B each, on
  // two sockets of six DDR4-2666 channels (256 GB/s).
  Sourced<double> host_update_share = {.value = 0.46,
                                       .low = 0.25,
                                       .high = 0.7,
                                       .evidence = Evidence::estimated,
                                       .source = "zero-offload-paper",
                                       .reason =
                                           "vectorised Adam on all cores; low end: half of "
                                           "it where cores are fewer or not bound to ranks"};
  // Recomputing a layer ends where backward has all that it needs: the last product, what it sends
  // and what follows are left out (PyTorch's non-reentrant checkpoint from 2.1 on).
  bool recompute_stops_early = false;
  bool reduce_each_microbatch = true;   // ZeRO-3; else gradients stay whole until the last
                                        // microbatch of a step, and parameters with them,
  bool reshard_after_backward = false;  // unless backward frees what it gathered all the same
  CollectiveLibrary expert_library = CollectiveLibrary::nccl;  // deepep: deduplicated
  bool expert_deduplicated = true;  // a token crosses once per destination rank and node

  StackMemory memory;
  bool splits_vocabulary = true;  // embedding and head are split over tp
  // Rows of embedding and head are filled up to a multiple of this for every part of the table
  // (Megatron's make_vocab_size_divisible_by); 1: as the model has them.
  std::int64_t vocabulary_multiple = 1;
  Partition partition = Partition::even;
  StackDefaults defaults;
  StackChoices choices;
  bool has(Schedule s) const { return StackChoices::allows(choices.schedules, s); }
};

// What a release's conditional settings may depend on.
struct StackContext {
  std::string architecture;   // "hopper": to_text(Architecture)
  std::string device;         // "gb200": the accelerator's name in the catalogue
  std::string model, family;  // "qwen3-30b-a3b", "qwen3": recipes are written for models
  PrecisionRecipe precision = PrecisionRecipe::bf16;
  bool moe = false;
  Task task = Task::pretrain;
  auto operator<=>(const StackContext&) const = default;
};

// `name` is "megatron-core", "megatron-core@0.12" or a path. Files: catalog_folder/<name>.json with
// "base" settings, "releases" in order of date (each overlays those before it) and in each "when"
// lists: [{"architecture": .., "device": .., "model": .., "family": .., "precision": .., "moe": ..,
// "task": .., "use": [..], "set": {...}}], where "use" names entries of the file's "parts". Without
// a release the newest is taken; one that is not listed is the last before it, or the first.
Stack load_stack(const std::string& name, const StackContext& context,
                 const std::filesystem::path& catalog_folder);
// The stack at each of its listed releases up to that of `name`, in order of date.
std::vector<Stack> load_releases(const std::string& name, const StackContext& context,
                                 const std::filesystem::path& catalog_folder);

// How kernels of this layout reach the device. Graphs of parts of a layer cannot hold a layer that
// runs again as a whole, nor the modules that the stack lists.
LaunchMode launch_mode(const Stack& stack, const Layout& layout);
// Norms of a layer that are modules of their own, which recompute of "layernorm" runs again. It
// skips those inside linear layers; where graphs_refuse names parts of attention, graphs leave the
// norm before attention as it is too.
struct NormModules {
  bool mixer = false, ffn = false;  // the norm before each
};
NormModules norm_modules(const Stack& stack, const Layout& layout, const LayerClass& layer);

// Whether gradients are reduced under the last backward, and parameters gathered under the first
// forward, with the layout's optimizer.
bool overlaps_gradients(const Stack& stack, const Layout& layout);
bool overlaps_parameters(const Stack& stack, const Layout& layout);
// Shares of collectives that show, in training: with what the layout allows the stack to overlap.
double tensor_exposed(const Stack& stack, const Layout& layout);
// Whether a pass' expert exchange runs beside another microbatch's pass. DualPipe is made for that.
// Megatron-Core interleaves the operations of a forward and a backward (from 0.14 on): of a stage's
// chunks, so that pipelines need several, and of layers that are not run again as a whole.
bool exchange_beside_passes(const Stack& stack, const Layout& layout);
double expert_exposed(const Stack& stack, const Layout& layout, double microbatches);

std::vector<std::string> stack_names(const std::filesystem::path& catalog_folder);
std::vector<std::string> stack_releases(const std::string& name,
                                        const std::filesystem::path& catalog_folder);
// The last listed release that is not later than the one that `name` asks for ("nemo@25.10"), the
// newest where it asks for none; empty: all are later.
std::string known_release(const std::string& name, const std::filesystem::path& catalog_folder);

template <class StackRef, class Visit>
void visit_stack_values(StackRef& s, Visit&& visit) {
  visit("elementwise_passes", s.elementwise_passes);
  visit("loss_bytes_per_logit", s.loss_bytes_per_logit);
  visit("quantise_passes", s.quantise_passes);
  visit("permute_passes", s.permute_passes);
  visit("expert_bias_passes", s.expert_bias_passes);
  visit("biased_activation_passes", s.biased_activation_passes);
  visit("scan_passes", s.scan_passes);
  visit("optimizer_passes", s.optimizer_passes);
  visit("adapter_passes", s.adapter_passes);
  visit("kernel_age", s.kernel_age);
  visit("small_kernels_forward", s.small_kernels_forward);
  visit("small_kernels_backward", s.small_kernels_backward);
  visit("dispatch", s.dispatch);
  visit("operations.layer_forward", s.operations.layer_forward);
  visit("operations.layer_backward", s.operations.layer_backward);
  visit("operations.moe_forward", s.operations.moe_forward);
  visit("operations.moe_backward", s.operations.moe_backward);
  visit("operations.expert_forward", s.operations.expert_forward);
  visit("operations.expert_backward", s.operations.expert_backward);
  visit("operations.head", s.operations.head);
  visit("operations.collective", s.operations.collective);
  visit("moe_sync", s.moe_sync);
  visit("sync_exposed", s.sync_exposed);
  visit("softmax_fallback", s.softmax_fallback);
  visit("layer_sync", s.layer_sync);
  visit("rank_wait", s.rank_wait);
  visit("accumulate_passes", s.accumulate_passes);
  visit("debug_per_rank", s.debug.per_rank);
  visit("debug_per_remote_rank", s.debug.per_remote_rank);
  visit("slow_hosts", s.debug.slow_hosts);
  visit("slow_host_cost", s.debug.slow_cost);
  visit("step_overhead", s.step_overhead);
  visit("tensor_exposed", s.tensor_exposed);
  visit("expert_exposed", s.expert_exposed);
  visit("overlapped_expert_exposed", s.overlapped_expert_exposed);
  visit("context_exposed", s.context_exposed);
  visit("data_overlap_window", s.data_overlap_window);
  visit("overlap_cost", s.overlap_cost);
  visit("host_update_share", s.host_update_share);
  visit("bucket", s.bucket);
  visit("bucket_per_rank", s.bucket_per_rank);
  visit("allocator_rounding", s.memory.allocator_rounding);
  visit("context", s.memory.context);
  visit("sequence_buffers", s.memory.sequence_buffers);
}

}  // namespace orrery
