// SPDX-License-Identifier: Apache-2.0
// Says how a serving engine runs steps: captured graphs, and what the host does for each.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/names.h"
#include "sim/base/text/enum_names.h"
#include "sim/base/units/units.h"
#include "workloads/serving/engine_policy.h"
#include "workloads/stack/unstated.h"

namespace orrery {

// Batch sizes that an engine captures beyond those of the entry before it: multiples of `by` up to
// `to`, and `to` itself.
struct GraphSizes {
  std::int64_t to = 0, by = 1;
};

// Rows of one expert that a tile of grouped products takes in steps of `from` rows and more.
struct TileRows {
  std::int64_t from = 0, rows = 1;
};

// Something that holds up to so many bytes on groups of so many ranks.
struct RankLimit {
  std::int64_t ranks = 0, bytes = 0;
};

// Of what an engine takes its share for weights and caches: of the device's memory, workspace
// included; of the memory, while the workspace must find room in the rest; of what weights and
// workspace leave.
enum class MemoryShare : std::uint8_t { total, before_workspace, left };
inline constexpr auto memory_share_text =
    enum_names<MemoryShare>({"total", "before-workspace", "left"});

// Of what an engine takes for weights and caches, and what lies beside them.
struct ServingMemory {
  double share = 0.9;
  MemoryShare of = MemoryShare::total;
  // That the framework's allocator never sees: the driver's, the context's, tables.
  Sourced<Bytes> outside = unstated(Bytes(0));
  // What the allocator takes for a step's workspace, over what the step holds of it.
  Sourced<double> workspace_rounding = unstated(1.0);
  bool keeps_mixer_rows = false;  // what attention read and made stays until its layer ends
  // Engines that try their largest step before they count blocks: bytes that its sampler takes for
  // each logit of as many sequences as may run (copies, what a sort needs), whole on every rank;
  // and whether rows that experts read and made stay allocated meanwhile.
  std::int64_t logit_bytes = 0;
  bool keeps_expert_rows = false;
  // Keys and values go to another engine in the same scale-up domain over that, not over NICs: they
  // lie, or are staged, in memory that a domain of several hosts can share.
  bool cache_in_domain = false;
};

// Kernels of a layer that move next to nothing: copies, casts, scales, sums that others fuse. By
// the part of the layer that has them, beside those that are priced by what they do.
struct SmallKernels {
  std::int64_t attention = 0;  // over heads' own keys and values
  std::int64_t latent = 0;     // over latents
  std::int64_t shared = 0;     // shared experts and what they are added to
};

// Which kernels a step has, where they are not those of StackKernels.
struct ServingKernels {
  std::optional<Library> prefill_attention;  // of prompts, where it is not that of decodes
  Format mxfp4_operands = Format::bf16;      // fp8 where products of MXFP4 weights take 8-bit rows
  // All-reduces of up to so many bytes do the residual and norm after them in the same kernel.
  std::vector<RankLimit> fused_norms;
  bool fused_qk_norm = false;  // norms of queries and keys are part of the rotary kernel
  // All-reduces of dense layers that norm their heads do no norm.
  bool head_norms_unfused = false;
  bool experts_at_once = false;  // one operation launches all kernels of routed experts
  // Graphs of steps with prompts leave out all that attention over latents does but its last
  // product.
  bool latents_outside_graphs = false;
  // Residuals of layer norms, and biases of products whose ranks' results are summed, are added by
  // kernels of their own; without this, norms add the one and products the other.
  bool adds_apart = false;
  bool greedy = false;  // tokens are the largest logits: no sampling, read once in 16 bits
  // Experts of steps up to so many rows run in a library of their own.
  std::optional<Library> small_grouped_gemm;
  std::int64_t small_grouped_rows = 0;
  // So do those that rows are sent to (DeepEP and its like), of steps of any size.
  std::optional<Library> sent_grouped_gemm;
  // Tiles of experts' products. Empty: not known.
  std::vector<TileRows> grouped_tiles;
  // Products of absorbed latents, where a stack has them in 8 bits. Empty: in 16, by cuBLAS.
  std::optional<Library> absorbed_gemm;
  SmallKernels small;
  // Graphs of up to so many rows run shared experts in a second stream, beside the routed ones.
  std::int64_t second_stream_rows = 0;
  bool second_stream_sends = false;  // also where rows are sent to the ranks of their experts
  // Where all ranks gather the rows of experts, more than graphs hold are gathered, and what was
  // made of them added up, by all-reduces.
  bool summed_gathers = false;
  // What the choice among an indexer's scores takes, where they are more than are chosen:
  // operations of the fp32 units that take as long, as such kernels go with the clock.
  Sourced<double> index_choice = unstated(0.0);
  // Attention of prompts over keys that an indexer chose, where it has kernels of its own. They go
  // through as many keys as it may choose, chosen or not.
  std::optional<Library> sparse_attention;
  // Prompts of no more tokens than an indexer chooses pass it by, which launches less; and are
  // attended to by their own keys and values, as without an indexer.
  bool short_prompts_whole = false, short_prompts_plain = false;
  // How unlike experts are in how often they are chosen (ExpertRouting).
  Sourced<double> expert_skew = unstated(0.0);
};

// What the host does for steps.
struct ServingHost {
  // On the device, between the layers of one step and those of the next, whatever the batch: what
  // the host launches there to prepare it, and what finds the tokens, beside reading logits.
  Sourced<Seconds> between_steps = unstated(Seconds(0));
  // Of a step, and for each sequence of its batch. Engines that schedule ahead show it only where
  // it is longer than the step on the device.
  Sourced<Seconds> step = unstated(Seconds(0)), sequence = unstated(Seconds(0));
  Sourced<Seconds> chunk = unstated(Seconds(0));  // for each part of a prompt
  // Of a step that several ranks run: the scheduler's word to the others, their answers.
  Sourced<Seconds> ranks = unstated(Seconds(0));
  bool schedules_ahead = false;
  // The tokens of a step are read once the next one is launched.
  bool reads_after_launch = false;
  bool prompts_ahead = true;  // so do engines of prompts alone
  // Of steps that guess tokens: batches that the host prepares for one (as passes of the guesser
  // are batches of their own), and whether it does so while the step before runs, as it schedules
  // ahead.
  std::int64_t guess_batches = 1;
  bool guesses_ahead = true;
  bool ahead(bool guessing) const { return schedules_ahead && (!guessing || guesses_ahead); }
  // Of handing out a sequence's tokens, which delays the step after it. Engines may hand out
  // several at once (EnginePolicy::stream_interval).
  Sourced<Seconds> answer = unstated(Seconds(0));
  // Of launching a step with prompts that no graph holds: whole, and for each of its operations.
  // The device waits where that takes longer.
  Sourced<Seconds> eager_step = unstated(Seconds(0)), eager_launch = unstated(Seconds(0));
  Sourced<Seconds> eager_collective = unstated(Seconds(0));  // more for each that is a collective
  // Of an operation that a compiler was shown and launches itself; 0: nothing is compiled.
  Sourced<Seconds> compiled_launch = unstated(Seconds(0));
  // Of such an operation where the compiler is switched off.
  Sourced<Seconds> uncompiled_launch = unstated(Seconds(0));
  // Time for which the operating system keeps the host away while it launches, over that of
  // launching, and how long in the mean (exponential): the slowest of a hundred first tokens wait.
  Sourced<double> stall_share = unstated(0.0);
  Sourced<Seconds> stall = unstated(Seconds(0));
  // More time of an engine's first step with prompts that come many at once: kernels are compiled,
  // tuned or loaded. Only runs that measure an engine just started see it.
  Sourced<Seconds> first_prompts = unstated(Seconds(0));
  // Kernels are chosen and loaded by the number of rows: a warm-up that repeats one prompt leaves
  // those of other lengths to the first prompts that count.
  bool first_prompts_by_rows = false;
  // From the client to the engine's queue and back, and for each token of the prompt: the
  // tokeniser. Engines have a server of their own, or stand behind Dynamo's.
  Sourced<Seconds> request_front = unstated(Seconds(0)), dynamo_front = unstated(Seconds(0));
  Sourced<Seconds> tokeniser = unstated(Seconds(0));
};

// Who takes the requests in: the engine's own server, in Python, or Dynamo's, in Rust.
enum class Frontend : std::uint8_t { engine, dynamo };
inline constexpr auto frontend_text = enum_names<Frontend>({"engine", "dynamo"});

struct StackServing {
  bool engine = false;  // a serving engine: it has steps of decodes and of prompts
  EnginePolicy policy;
  // Of decoding batches; none: steps are launched kernel by kernel.
  std::vector<GraphSizes> graphs;
  std::int64_t mixed_graph_rows = 0;  // steps with prompts of up to so many rows run in graphs too
  // Only of engines that split tensors alone, guess no tokens and have prompts and decodes.
  bool mixed_graphs_of_plain = false;
  ServingMemory memory;
  ServingKernels kernels;
  ServingHost host;
};

// What a request passes before the engine sees it, into the policy of an engine.
void set_front(EnginePolicy& policy, const ServingHost& host, Frontend frontend);

// Whether an all-reduce of so many bytes over so many ranks does the norm after it too.
bool fuses_norm(const StackServing& serving, std::int64_t ranks, double bytes);

// The captured size that a batch of `rows` runs in; 0: none is large enough.
std::int64_t graph_size(const StackServing& serving, std::int64_t rows);

}  // namespace orrery
