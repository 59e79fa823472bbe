// SPDX-License-Identifier: Apache-2.0
// Knows every decision about how a job uses a cluster, and which combinations are valid.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/base/names.h"
#include "sim/base/text/enum_names.h"
#include "workloads/layout/job.h"
#include "workloads/layout/rank_order.h"
#include "workloads/layout/schedule.h"
#include "workloads/model/model.h"

namespace orrery {

enum class Recompute : std::uint8_t { none, selective, full };
inline constexpr auto recompute_kind_text = enum_names<Recompute>({"none", "selective", "full"});
// Parts that selective recompute runs again, as Megatron-Core's --recompute-modules names them.
enum class RecomputeModule : std::uint8_t {
  core_attn,    // scores, softmax and their product with the values
  mlp,          // a dense layer's whole feed-forward
  moe,          // a whole expert layer: router, dispatch, experts, combination
  moe_act,      // the experts' activation function: its output is not kept
  layernorm,    // norms before attention and feed-forward: their outputs are not kept
  mla_up_proj,  // latent attention's up-projections and rotary parts
  shared_experts,
};
class RecomputeModules {
 public:
  constexpr RecomputeModules() = default;
  constexpr RecomputeModules(std::initializer_list<RecomputeModule> modules) {
    for (RecomputeModule m : modules) add(m);
  }
  constexpr void add(RecomputeModule m) {
    bits_ = static_cast<std::uint8_t>(bits_ | (1U << static_cast<unsigned>(m)));
  }
  constexpr bool has(RecomputeModule m) const {
    return ((bits_ >> static_cast<unsigned>(m)) & 1U) != 0;
  }
  constexpr bool empty() const { return bits_ == 0; }
  bool operator==(const RecomputeModules&) const = default;

 private:
  std::uint8_t bits_ = 0;
};
inline constexpr int recompute_module_count = enumerator_count<RecomputeModule>();
// What "selective" alone means.
inline constexpr RecomputeModules core_attention_only{RecomputeModule::core_attn};
struct RecomputeChoice {
  Recompute recompute = Recompute::none;
  RecomputeModules modules = core_attention_only;  // of selective
  bool operator==(const RecomputeChoice&) const = default;
};
enum class PrecisionRecipe : std::uint8_t {
  bf16,
  fp16,
  fp8_delayed,
  fp8_current,
  fp8_blockwise,
  mxfp8,
  nvfp4,
  // Of served checkpoints alone: products unpack such weights.
  mxfp4,
  int4,
  int8,
};
enum class Optimizer : std::uint8_t {
  adam_fp32,          // fp32 master weights and both moments (12 B per parameter)
  adam_bf16,          // bf16 parameters and moments, no master (4 B)
  adam_bf16_moments,  // fp32 master, bf16 moments (8 B)
  adam_8bit,
  muon,
  adafactor,
  shampoo,
  sgd,
  rotating_adam,
};
// How ranks of context parallelism, which hold parts of every sequence, attend to all of it. In
// brackets Megatron-Core's cp_comm_type.
enum class ContextKind : std::uint8_t {
  ring,          // keys and values go round the group (p2p)
  all_gather,    // every rank gathers all keys and values (allgather)
  all_to_all,    // Ulysses: rows are traded for heads around attention (a2a)
  hierarchical,  // all-to-all among context_inner neighbours, rings across (a2a+p2p)
};

constexpr bool is_sixteen_bit(PrecisionRecipe p) {
  return p == PrecisionRecipe::bf16 || p == PrecisionRecipe::fp16;
}
constexpr bool is_weight_only(PrecisionRecipe p) { return p >= PrecisionRecipe::mxfp4; }
// The number format of a recipe's linear layers: that of their products.
Format linear_format(PrecisionRecipe recipe);

std::string_view to_text(Recompute);
std::string_view to_text(RecomputeModule);
// "none", "full", "selective" for the attention core alone, else the modules: "moe_act,layernorm".
std::string to_text(RecomputeChoice);
std::string_view to_text(PrecisionRecipe);
std::string_view to_text(Optimizer);
std::string_view to_text(ContextKind);
Schedule schedule_from(const JsonValue&);  // Errors with the nearest name
// Text as above, or a list of modules.
RecomputeChoice recompute_from(const JsonValue&);
RecomputeModule recompute_module_from(const JsonValue&);
PrecisionRecipe precision_from(const JsonValue&);
Optimizer optimizer_from(const JsonValue&);
ContextKind context_kind_from(const JsonValue&);

// What lies in host memory.
struct Offload {
  bool weights = false, optimizer = false, activations = false;
  double fraction = 1;  // of the optimizer's states
  bool operator==(const Offload&) const = default;
};

// n_gpus = tp * pp * dp * cp. Experts fold over dp * cp * tp: ep * etp divides that product.
struct Layout {
  std::int64_t tp = 1, pp = 1, vpp = 1, dp = 1, cp = 1, ep = 1, etp = 1;
  // Copies of experts beyond one of each, over all ranks: inference alone has them.
  std::int64_t redundant_experts = 0;
  std::int64_t micro_batch = 1;   // sequences
  bool sequence_parallel = true;  // has an effect only when tp > 1
  int zero_stage = 1;             // 0 DDP, 1 distributed optimizer, 2, 3 = FSDP
  std::int64_t shard_group = 0;   // hybrid sharding: ranks that shard; 0: the whole dp x cp
  Schedule schedule = Schedule::one_f_one_b;
  Recompute recompute = Recompute::none;
  RecomputeModules recompute_modules = core_attention_only;  // of selective recompute
  std::int64_t recompute_layers = 0;  // full recompute of this many layers of each chunk; 0: all
  PrecisionRecipe precision = PrecisionRecipe::bf16;
  Optimizer optimizer = Optimizer::adam_fp32;
  ContextKind context = ContextKind::ring;
  std::int64_t context_inner = 0;  // hierarchical: ranks that trade rows for heads
  bool offload_optimizer = false, offload_weights = false, offload_activations = false;
  double optimizer_offload_fraction = 1;  // of what the optimizer keeps, where it is offloaded
  // Layers per pipeline position (pp * vpp); empty: as the stack places them.
  std::vector<std::int64_t> stage_layers;
  RankOrder rank_order;
  std::int64_t per_domain =
      0;         // accelerators used in a scale-up domain; 0: as placement finds best
  Bytes bucket;  // of gradients that are reduced together; 0: the stack's
  bool operator==(const Layout&) const = default;

  std::int64_t gpus() const { return tp * pp * dp * cp; }
  std::int64_t size(Parallel axis) const {
    return axis == Parallel::tp ? tp : axis == Parallel::cp ? cp : axis == Parallel::dp ? dp : pp;
  }
  // Ranks between neighbours along an axis.
  std::int64_t stride(Parallel axis) const {
    std::int64_t ranks = 1;
    for (const Parallel inner : rank_order.axes()) {
      if (inner == axis) break;
      ranks *= size(inner);
    }
    return ranks;
  }
  // Whether selective recompute runs this part again.
  bool recomputes(RecomputeModule m) const {
    return recompute == Recompute::selective && recompute_modules.has(m);
  }
  RecomputeChoice recompute_choice() const { return {recompute, recompute_modules}; }
  void set(RecomputeChoice choice) {
    recompute = choice.recompute;
    recompute_modules = choice.modules;
  }
  void set(const Offload& o) {
    offload_weights = o.weights;
    offload_optimizer = o.optimizer;
    offload_activations = o.activations;
    optimizer_offload_fraction = o.fraction;
  }
  void offload_nothing() { set(Offload()); }
  // The position of a chunk of a stage, counted in the model's order.
  std::int64_t position(std::int64_t stage, std::int64_t chunk) const {
    return is_v_shaped(schedule) && chunk == 1 ? 2 * pp - 1 - stage : chunk * pp + stage;
  }
  // Ways in which context-parallel ranks split heads; rings or gathers pass keys and values among
  // context_rings() of them.
  std::int64_t context_heads() const {
    if (cp == 1) return 1;
    if (context == ContextKind::all_to_all) return cp;
    return context == ContextKind::hierarchical && context_inner > 0 ? context_inner : 1;
  }
  std::int64_t context_rings() const { return cp / context_heads(); }
  // Microbatches of one step; 0 when micro_batch * dp does not divide the global batch. An
  // inference step is one microbatch.
  std::int64_t microbatches(const Job& job) const;
  // Ranks over which the gradients of dense and of expert parameters are reduced.
  std::int64_t dense_replicas() const { return dp * cp; }
  std::int64_t expert_replicas() const { return dp * cp * tp / (ep * etp); }
};

// Experts of a layer whose weights lie on a rank of expert parallelism, copies included.
std::int64_t local_experts(const Ffn& ffn, const Layout& layout);

// How layers fall on pipeline positions.
enum class Partition : std::uint8_t {
  even,           // Megatron: layers divided evenly, remainder on the first positions
  by_cost,        // nanotron: layers and head as blocks of their products' parameters
  head_as_layer,  // Megatron-Core account_for_embedding/loss_in_pipeline_split
  rest_last,      // Megatron-Bridge's layouts of uneven models: full positions, the rest at the end
};
inline constexpr auto partition_text =
    enum_names<Partition>({"even", "by-cost", "head-as-layer", "rest-last"});

// Why a layout cannot run, in one sentence that names the numbers ("tp 6 does not divide 64
// heads"); nullopt when it can. Checks divisibility, group folding, schedule, batch and precision.
// Does not check memory. `gpus` 0: any. Where layers are placed by cost, stages may stay empty.
std::optional<std::string> invalid_reason(const Layout& layout, const Model& model, const Job& job,
                                          std::int64_t gpus, Partition partition = Partition::even);

// Multiple of elements that a precision's products need in every dimension: Transformer Engine
// wants 16 for FP8 and NVFP4 operands (NVFP4's block is 16) and whole blocks of 32 for MXFP8; 1
// otherwise.
std::int64_t dimension_multiple(PrecisionRecipe precision);

Offload offload_of(const Layout& layout);
// "weights", "optimizer", "activations": what lies in host memory.
std::vector<std::string> offloaded(const Layout& layout);
// Those with commas, a share of the optimizer's states behind it: "optimizer(0.125),activations".
// Empty where nothing does.
std::string offload_text(const Layout& layout);

// The layout as a person writes it: "TP8 PP16 VPP8 DP8 MB1 ZeRO-1 selective BF16".
std::string to_text(const Layout& layout);

// JSON keys are the long flag names with '_'; decisions.h lists them. `offload` is a list of
// "weights", "optimizer", "activations", or text of these with commas. "fp8" is read as
// fp8-delayed. Without "schedule", vpp above 1 means interleaved; zb-v and dualpipe-v have vpp 2
// where "vpp" is left out. "zb-h1" is zero-bubble.
Layout read_layout(const JsonValue& object);  // unknown keys are Errors
// The same keys over `base`, in an object that holds other keys too (a flat scenario).
Layout read_layout_over(const JsonValue& object, const Layout& base);
const std::vector<std::string>& layout_keys();
const char* schedule_words();  // names of all schedules with blanks between
// One line with every key, which read_layout reads back.
std::string to_json_text(const Layout& layout);
SortedJson to_json(const Layout& layout);

// Layers of a pipeline position (Layout::position tells which stage holds it).
struct Position {
  std::int64_t first_layer = 0, layers = 0;
  bool embedding = false, head = false;
};
// Size pp * vpp. `layout.stage_layers` wins over `partition`.
std::vector<Position> partition_layers(const Model& model, const Layout& layout,
                                       Partition partition);

}  // namespace orrery
