// SPDX-License-Identifier: Apache-2.0
// Reads settings of stacks: what each key of a file sets.
#include "workloads/stack/settings.h"

#include "workloads/stack/values.h"

namespace orrery {
namespace {

constexpr auto shard_storage_text =
    enum_names<ShardStorage>({"in-place", "flat", "parts", "bucketed"});
constexpr auto adapter_sites_text = enum_names<AdapterSites>({"every-linear", "query-key-value"});
constexpr auto split_text = enum_names<Split>({"none", "tp", "pp", "cp", "ep"});

Library read_library(const JsonValue& at) { return library_text.from(at); }
Format read_format(const JsonValue& at) { return format_text.from(at); }
CollectiveLibrary read_collective_library(const JsonValue& at) {
  return collective_library_text.from(at);
}
Split split_from(const JsonValue& at) { return split_text.from(at); }
Recompute recompute_kind_from(const JsonValue& at) { return recompute_kind_text.from(at); }

bool switch_from(const JsonValue& at) { return at.boolean(); }

int zero_stage_from(const JsonValue& at) { return static_cast<int>(at.integer(0, 3)); }

template <class T>
void read_list(const JsonValue& at, T (*read)(const JsonValue&), std::vector<T>& list) {
  list.clear();
  for (const JsonValue& item : at.items()) list.push_back(read(item));
}

constexpr std::int64_t most_of_a_step = std::int64_t{1} << 20;  // rows, sequences

constexpr std::int64_t most_kernels = 1000;  // of a layer

// Captured batch sizes: [{"to": 4, "by": 2}, {"to": 512, "by": 8}] are 2, 4, 8, 16, 24, ...
std::vector<GraphSizes> graph_sizes_from(const JsonValue& at) {
  std::vector<GraphSizes> sizes;
  std::int64_t from = 0;
  for (const JsonValue& item : at.items()) {
    const std::int64_t most = std::int64_t{1} << 20;
    sizes.push_back(
        {.to = item.at("to").integer(from + 1, most), .by = item.at("by").integer(1, most)});
    from = sizes.back().to;
  }
  return sizes;
}

// Tiles by rows of a step: [{"from": 0, "rows": 16}, {"from": 65, "rows": 128}].
std::vector<TileRows> tile_rows_from(const JsonValue& at) {
  std::vector<TileRows> tiles;
  for (const JsonValue& item : at.items()) {
    const std::int64_t least = tiles.empty() ? 0 : tiles.back().from + 1;
    tiles.push_back({.from = item.at("from").integer(least, most_of_a_step),
                     .rows = item.at("rows").integer(1, 1024)});
  }
  return tiles;
}

// Largest messages by ranks: [{"ranks": 8, "bytes": 524288}].
std::vector<RankLimit> rank_limits_from(const JsonValue& at) {
  std::vector<RankLimit> limits;
  for (const JsonValue& item : at.items())
    limits.push_back({.ranks = item.at("ranks").integer(2, 1 << 20),
                      .bytes = item.at("bytes").integer(0, std::int64_t{1} << 40)});
  return limits;
}

// Settings that are plain choices.
struct Choice {
  std::string_view name;
  void (*apply)(Stack& s, const JsonValue& value);
};
constexpr Choice choices[] = {
    {"attention", [](Stack& s, const JsonValue& v) { s.kernels.attention = read_library(v); }},
    {"latent_attention",
     [](Stack& s, const JsonValue& v) { s.kernels.latent_attention = read_library(v); }},
    {"absorbed_gemm",
     [](Stack& s, const JsonValue& v) { s.serving.kernels.absorbed_gemm = read_library(v); }},
    {"inference_all_reduce",
     [](Stack& s, const JsonValue& v) {
       s.communication.inference_all_reduce = read_collective_library(v);
     }},
    {"attention_format",
     [](Stack& s, const JsonValue& v) { s.kernels.attention_format = read_format(v); }},
    {"gemm", [](Stack& s, const JsonValue& v) { s.kernels.gemm = read_library(v); }},
    {"grouped_gemm",
     [](Stack& s, const JsonValue& v) { s.kernels.grouped_gemm = read_library(v); }},
    {"mxfp4_operands",
     [](Stack& s, const JsonValue& v) { s.serving.kernels.mxfp4_operands = read_format(v); }},
    {"memory_bound",
     [](Stack& s, const JsonValue& v) { s.kernels.memory_bound = read_library(v); }},
    {"counted_in", [](Stack& s, const JsonValue& v) { s.kernels.counted_in = read_library(v); }},
    {"update", [](Stack& s, const JsonValue& v) { s.kernels.update.library = read_library(v); }},
    {"launcher", [](Stack& s, const JsonValue& v) { s.launcher = launcher_from(v); }},
    {"flags_release", [](Stack& s, const JsonValue& v) { s.flags_release = v.text(); }},
    {"stands_in", [](Stack& s, const JsonValue& v) { s.stands_in = v.text(); }},
    {"launch_note", [](Stack& s, const JsonValue& v) { s.launch_note = v.text(); }},
    {"platforms",
     [](Stack& s, const JsonValue& v) {
       s.platforms.clear();
       for (const JsonValue& item : v.items()) s.platforms.push_back(item.text());
     }},
    {"launch", [](Stack& s, const JsonValue& v) { s.host.launch = launch_mode_text.from(v); }},
    {"gradient_format",
     [](Stack& s, const JsonValue& v) { s.sharding.gradient_format = read_format(v); }},
    {"gradient_storage",
     [](Stack& s, const JsonValue& v) { s.sharding.gradient_storage = read_format(v); }},
    {"parameter_gather_format",
     [](Stack& s, const JsonValue& v) { s.sharding.parameter_gather_format = read_format(v); }},
    {"adapter_sites",
     [](Stack& s, const JsonValue& v) { s.kernels.adapter_sites = adapter_sites_text.from(v); }},
    {"vocabulary_multiple",
     [](Stack& s, const JsonValue& v) { s.sharding.vocabulary_multiple = v.integer(0, 1 << 20); }},
    {"shard_storage",
     [](Stack& s, const JsonValue& v) { s.sharding.shard_storage = shard_storage_text.from(v); }},
    {"expert_library",
     [](Stack& s, const JsonValue& v) {
       s.communication.expert_library = read_collective_library(v);
     }},
    {"partition",
     [](Stack& s, const JsonValue& v) { s.sharding.partition = partition_text.from(v); }},
    {"default_attention_dropout",
     [](Stack& s, const JsonValue& v) { s.defaults.attention_dropout = dropout_from(v); }},
    {"default_hidden_dropout",
     [](Stack& s, const JsonValue& v) { s.defaults.hidden_dropout = dropout_from(v); }},
    {"default_recompute",
     [](Stack& s, const JsonValue& v) { s.defaults.recompute = recompute_from(v); }},
    {"default_schedule",
     [](Stack& s, const JsonValue& v) { s.defaults.schedule = schedule_from(v); }},
    {"schedules",
     [](Stack& s, const JsonValue& v) { read_list(v, schedule_from, s.choices.schedules); }},
    {"splits", [](Stack& s, const JsonValue& v) { read_list(v, split_from, s.choices.splits); }},
    {"precisions",
     [](Stack& s, const JsonValue& v) { read_list(v, precision_from, s.choices.precisions); }},
    {"optimizers",
     [](Stack& s, const JsonValue& v) { read_list(v, optimizer_from, s.choices.optimizers); }},
    {"recomputes",
     [](Stack& s, const JsonValue& v) { read_list(v, recompute_kind_from, s.choices.recomputes); }},
    {"sequence_parallel",
     [](Stack& s, const JsonValue& v) { read_list(v, switch_from, s.choices.sequence_parallel); }},
    {"split_experts",
     [](Stack& s, const JsonValue& v) { read_list(v, switch_from, s.choices.split_experts); }},
    {"zero_stages",
     [](Stack& s, const JsonValue& v) { read_list(v, zero_stage_from, s.choices.zero_stages); }},
    {"recompute_modules",
     [](Stack& s, const JsonValue& v) {
       read_list(v, recompute_module_from, s.choices.recompute_modules);
     }},
    {"graphs_refuse",
     [](Stack& s, const JsonValue& v) {
       read_list(v, recompute_module_from, s.host.graphs_refuse);
     }},
    {"pipeline_zero_stage",
     [](Stack& s, const JsonValue& v) { s.choices.pipeline_zero_stage = zero_stage_from(v); }},
    {"rank_orders",
     [](Stack& s, const JsonValue& v) { read_list(v, rank_order_from, s.choices.rank_orders); }},
    {"contexts",
     [](Stack& s, const JsonValue& v) { read_list(v, context_kind_from, s.choices.contexts); }},
    {"default_optimizer",
     [](Stack& s, const JsonValue& v) { s.defaults.optimizer = optimizer_from(v); }},
    {"default_context",
     [](Stack& s, const JsonValue& v) { s.defaults.context = context_kind_from(v); }},
    {"schedule_microbatches",
     [](Stack& s, const JsonValue& v) {
       s.communication.schedule_microbatches = v.integer(0, 1 << 20);
     }},
    {"default_zero_stage",
     [](Stack& s, const JsonValue& v) {
       s.defaults.zero_stage = static_cast<int>(v.integer(0, 3));
     }},
    {"graph_sizes",
     [](Stack& s, const JsonValue& v) { s.serving.graphs = graph_sizes_from(v); }},
    {"scheduler",
     [](Stack& s, const JsonValue& v) {
       s.serving.policy.scheduler = scheduler_kind_text.from(v);
     }},
    {"capacity_policy",
     [](Stack& s, const JsonValue& v) {
       s.serving.policy.capacity = capacity_policy_text.from(v);
     }},
    {"token_budget",
     [](Stack& s, const JsonValue& v) {
       s.serving.policy.token_budget = v.integer(1, most_of_a_step);
     }},
    {"max_sequences",
     [](Stack& s, const JsonValue& v) {
       s.serving.policy.max_sequences = v.integer(1, most_of_a_step);
     }},
    {"chunk",
     [](Stack& s, const JsonValue& v) { s.serving.policy.chunk = v.integer(0, most_of_a_step); }},
    {"balance_steps",
     [](Stack& s, const JsonValue& v) {
       s.serving.policy.balance_steps = v.integer(0, most_of_a_step);
     }},
    {"batch_wait_steps",
     [](Stack& s, const JsonValue& v) {
       s.serving.policy.batch_wait.steps = v.integer(0, most_of_a_step);
     }},
    {"batch_wait_tokens",
     [](Stack& s, const JsonValue& v) {
       s.serving.policy.batch_wait.tokens = v.share();
     }},
    {"block_tokens",
     [](Stack& s, const JsonValue& v) { s.serving.policy.block_tokens = v.integer(1, 1 << 16); }},
    {"memory_share",
     [](Stack& s, const JsonValue& v) {
       s.serving.memory.share = v.number();
       if (s.serving.memory.share <= 0 || s.serving.memory.share > 1) v.fail("above 0, at most 1");
     }},
    {"memory_of",
     [](Stack& s, const JsonValue& v) { s.serving.memory.of = memory_share_text.from(v); }},
    {"sparse_attention",
     [](Stack& s, const JsonValue& v) { s.serving.kernels.sparse_attention = read_library(v); }},
    {"prefill_attention",
     [](Stack& s, const JsonValue& v) { s.serving.kernels.prefill_attention = read_library(v); }},
    {"sent_grouped_gemm",
     [](Stack& s, const JsonValue& v) { s.serving.kernels.sent_grouped_gemm = read_library(v); }},
    {"small_grouped_gemm",
     [](Stack& s, const JsonValue& v) { s.serving.kernels.small_grouped_gemm = read_library(v); }},
    {"small_grouped_rows",
     [](Stack& s, const JsonValue& v) {
       s.serving.kernels.small_grouped_rows = v.integer(0, most_of_a_step);
     }},
    {"grouped_tiles",
     [](Stack& s, const JsonValue& v) { s.serving.kernels.grouped_tiles = tile_rows_from(v); }},
    {"small_kernels_attention",
     [](Stack& s, const JsonValue& v) {
       s.serving.kernels.small.attention = v.integer(0, most_kernels);
     }},
    {"small_kernels_latent",
     [](Stack& s, const JsonValue& v) {
       s.serving.kernels.small.latent = v.integer(0, most_kernels);
     }},
    {"small_kernels_shared",
     [](Stack& s, const JsonValue& v) {
       s.serving.kernels.small.shared = v.integer(0, most_kernels);
     }},
    {"guess_batches",
     [](Stack& s, const JsonValue& v) { s.serving.host.guess_batches = v.integer(1, 8); }},
    {"second_stream_rows",
     [](Stack& s, const JsonValue& v) {
       s.serving.kernels.second_stream_rows = v.integer(0, most_of_a_step);
     }},
    {"mixed_graph_rows",
     [](Stack& s, const JsonValue& v) { s.serving.mixed_graph_rows = v.integer(0, 1 << 20); }},
    {"logit_bytes",
     [](Stack& s, const JsonValue& v) { s.serving.memory.logit_bytes = v.integer(0, 256); }},
    {"fused_norm_limits",
     [](Stack& s, const JsonValue& v) { s.serving.kernels.fused_norms = rank_limits_from(v); }},
    {"stream_interval",
     [](Stack& s, const JsonValue& v) {
       s.serving.policy.stream_interval = v.integer(1, 1 << 20);
     }},
    {"receive_interval",
     [](Stack& s, const JsonValue& v) {
       s.serving.policy.receive_interval = v.integer(1, 1 << 20);
     }},
    {"fp8_recipe", [](Stack& s, const JsonValue& v) { s.defaults.fp8 = precision_from(v); }},
};

// Settings that are on or off.
struct Switch {
  std::string_view name;
  bool& (*target)(Stack& s);
};
constexpr Switch switches[] = {
    {"fused_gradient_accumulation",
     [](Stack& s) -> bool& { return s.kernels.fused_gradient_accumulation; }},
    {"attention_recompute_selective",
     [](Stack& s) -> bool& { return s.recompute.selects_attention; }},
    {"recompute_by_operation", [](Stack& s) -> bool& { return s.recompute.by_operation; }},
    {"offloads_weights", [](Stack& s) -> bool& { return s.choices.offload_weights; }},
    {"offloads_optimizer", [](Stack& s) -> bool& { return s.choices.offload_optimizer; }},
    {"offloads_activations", [](Stack& s) -> bool& { return s.choices.offload_activations; }},
    {"offloads_activations_alone",
     [](Stack& s) -> bool& { return s.choices.offload_activations_alone; }},
    {"graphs_refuse_shards", [](Stack& s) -> bool& { return s.host.graphs_refuse_shards; }},
    {"offload_whole_weights", [](Stack& s) -> bool& { return s.choices.offload_whole_weights; }},
    {"offloads_part_of_optimizer", [](Stack& s) -> bool& { return s.choices.offload_part; }},
    {"offloads_any_optimizer", [](Stack& s) -> bool& { return s.choices.offload_any_optimizer; }},
    {"uneven_stages", [](Stack& s) -> bool& { return s.choices.uneven_stages; }},
    {"uneven_chunks", [](Stack& s) -> bool& { return s.choices.uneven_chunks; }},
    {"hybrid_chunks", [](Stack& s) -> bool& { return s.choices.hybrid_chunks; }},
    {"recompute_part", [](Stack& s) -> bool& { return s.choices.recompute_part; }},
    {"bucket_size", [](Stack& s) -> bool& { return s.choices.bucket_size; }},
    {"transposed_copies", [](Stack& s) -> bool& { return s.kernels.transposed_copies; }},
    {"fused_norms", [](Stack& s) -> bool& { return s.kernels.fused_norms; }},
    {"default_interleaved", [](Stack& s) -> bool& { return s.defaults.interleaved; }},
    {"fused_expert_mlp", [](Stack& s) -> bool& { return s.kernels.fused_expert_mlp; }},
    {"fp8_dispatch", [](Stack& s) -> bool& { return s.communication.fp8_dispatch; }},
    {"gradient_overlap", [](Stack& s) -> bool& { return s.communication.gradient_overlap; }},
    {"parameter_overlap", [](Stack& s) -> bool& { return s.communication.parameter_overlap; }},
    {"muon_overlap", [](Stack& s) -> bool& { return s.communication.muon_overlap; }},
    {"recompute_stops_early", [](Stack& s) -> bool& { return s.recompute.stops_early; }},
    {"reshard_after_forward", [](Stack& s) -> bool& { return s.sharding.reshard_after_forward; }},
    {"reduce_each_microbatch", [](Stack& s) -> bool& { return s.sharding.reduce_each_microbatch; }},
    {"reshard_after_backward", [](Stack& s) -> bool& { return s.sharding.reshard_after_backward; }},
    {"pipeline_sends_block",
     [](Stack& s) -> bool& { return s.communication.pipeline_sends_block; }},
    {"interleaved_sends_block",
     [](Stack& s) -> bool& { return s.communication.interleaved_sends_block; }},
    {"host_runs_ahead", [](Stack& s) -> bool& { return s.host.runs_ahead; }},
    {"sharded_at_once", [](Stack& s) -> bool& { return s.sharding.sharded_at_once; }},
    {"scatter_gather_sends",
     [](Stack& s) -> bool& { return s.communication.scatter_gather_sends; }},
    {"splits_gradient_sends",
     [](Stack& s) -> bool& { return s.communication.splits_gradient_sends; }},
    {"blocking_launches", [](Stack& s) -> bool& { return s.host.blocking_launches; }},
    {"tensor_overlap_needs_rows",
     [](Stack& s) -> bool& { return s.communication.tensor_overlap_needs_rows; }},
    {"tensor_pieces", [](Stack& s) -> bool& { return s.communication.tensor_pieces; }},
    {"exchange_beside_passes",
     [](Stack& s) -> bool& { return s.communication.exchange_beside_passes; }},
    {"expert_deduplicated", [](Stack& s) -> bool& { return s.communication.expert_deduplicated; }},
    {"loss_in_fp32", [](Stack& s) -> bool& { return s.memory.loss_in_fp32; }},
    {"fused_loss", [](Stack& s) -> bool& { return s.memory.fused_loss; }},
    {"gradient_bucket_copies", [](Stack& s) -> bool& { return s.memory.gradient_bucket_copies; }},
    {"gradient_sums_beside_buckets",
     [](Stack& s) -> bool& { return s.memory.gradient_sums_beside_buckets; }},
    {"splits_vocabulary", [](Stack& s) -> bool& { return s.sharding.splits_vocabulary; }},
    {"keeps_pipeline_outputs", [](Stack& s) -> bool& { return s.memory.keeps_pipeline_outputs; }},
    {"default_mtp", [](Stack& s) -> bool& { return s.defaults.mtp; }},
    {"recompute_known", [](Stack& s) -> bool& { return s.defaults.recompute_known; }},
    {"default_sequence_parallel", [](Stack& s) -> bool& { return s.defaults.sequence_parallel; }},
    {"compact_activations", [](Stack& s) -> bool& { return s.memory.compact_activations; }},
    {"inputs_in_16_bits", [](Stack& s) -> bool& { return s.memory.inputs_in_16_bits; }},
    {"gathers_16_bit_shard", [](Stack& s) -> bool& { return s.memory.gathers_16_bit_shard; }},
    {"prefix_cache", [](Stack& s) -> bool& { return s.serving.policy.prefix_cache; }},
    {"chunked_prefill", [](Stack& s) -> bool& { return s.serving.policy.chunked_prefill; }},
    {"first_token_anew", [](Stack& s) -> bool& { return s.serving.policy.first_token_anew; }},
    {"mixed_steps", [](Stack& s) -> bool& { return s.serving.policy.mixed_steps; }},
    {"serving_engine", [](Stack& s) -> bool& { return s.serving.engine; }},
    {"fused_qk_norm", [](Stack& s) -> bool& { return s.serving.kernels.fused_qk_norm; }},
    {"adds_apart", [](Stack& s) -> bool& { return s.serving.kernels.adds_apart; }},
    {"head_norms_unfused", [](Stack& s) -> bool& { return s.serving.kernels.head_norms_unfused; }},
    {"experts_at_once", [](Stack& s) -> bool& { return s.serving.kernels.experts_at_once; }},
    {"latents_outside_graphs",
     [](Stack& s) -> bool& { return s.serving.kernels.latents_outside_graphs; }},
    {"short_prompts_whole",
     [](Stack& s) -> bool& { return s.serving.kernels.short_prompts_whole; }},
    {"short_prompts_plain",
     [](Stack& s) -> bool& { return s.serving.kernels.short_prompts_plain; }},
    {"greedy", [](Stack& s) -> bool& { return s.serving.kernels.greedy; }},
    {"second_stream_sends",
     [](Stack& s) -> bool& { return s.serving.kernels.second_stream_sends; }},
    {"summed_gathers", [](Stack& s) -> bool& { return s.serving.kernels.summed_gathers; }},
    {"cache_in_domain", [](Stack& s) -> bool& { return s.serving.memory.cache_in_domain; }},
    {"keeps_expert_rows", [](Stack& s) -> bool& { return s.serving.memory.keeps_expert_rows; }},
    {"mixed_graphs_of_plain", [](Stack& s) -> bool& { return s.serving.mixed_graphs_of_plain; }},
    {"keeps_mixer_rows", [](Stack& s) -> bool& { return s.serving.memory.keeps_mixer_rows; }},
    {"reads_after_launch", [](Stack& s) -> bool& { return s.serving.host.reads_after_launch; }},
    {"prompts_ahead", [](Stack& s) -> bool& { return s.serving.host.prompts_ahead; }},
    {"schedules_ahead", [](Stack& s) -> bool& { return s.serving.host.schedules_ahead; }},
    {"first_prompts_by_rows",
     [](Stack& s) -> bool& { return s.serving.host.first_prompts_by_rows; }},
    {"guesses_ahead", [](Stack& s) -> bool& { return s.serving.host.guesses_ahead; }},
    {"master_remainders", [](Stack& s) -> bool& { return s.memory.master_remainders; }},
};

// Applies the setting of a table that has the key. False when none has.
bool apply_named(Stack& s, const std::string& key, const JsonValue& value) {
  for (const Choice& choice : choices)
    if (key == choice.name) {
      choice.apply(s, value);
      return true;
    }
  for (const Switch& named : switches)
    if (key == named.name) {
      named.target(s) = value.boolean();
      return true;
    }
  return false;
}

template <class T>
void assign_sourced(std::string_view, Sourced<T>& target, const JsonValue& at) {
  target = read_sourced<T>(at);
}
void assign_sourced(std::string_view name, Sourced<double>& target, const JsonValue& at) {
  target = is_share(name) ? read_share(at) : read_sourced<double>(at);
}

// Settings with evidence, addressed by their path. False when there is none at `path`.
bool apply_value(Stack& s, const std::string& path, const JsonValue& value) {
  bool found = false;
  visit_stack_values(s, [&](std::string_view name, auto& sourced) {
    if (name != path) return;
    assign_sourced(name, sourced, value);
    found = true;
  });
  return found;
}

std::vector<std::string> setting_names(Stack& s) {
  std::vector<std::string> names;
  for (const Choice& choice : choices) names.emplace_back(choice.name);
  for (const Switch& named : switches) names.emplace_back(named.name);
  visit_stack_values(s, [&](std::string_view name, auto&) { names.emplace_back(name); });
  return names;
}

}  // namespace

void apply_settings(Stack& s, const JsonValue& settings) {
  for (const auto& [key, value] : settings.members()) {
    if (apply_named(s, key, value)) continue;
    if (key == "operations") {
      for (const auto& [name, leaf] : value.members())
        if (!apply_value(s, "operations." + name, leaf))
          leaf.fail(
              "one of layer_forward, layer_backward, moe_forward, moe_backward, "
              "expert_forward, expert_backward, head, collective",
              name);
      continue;
    }
    if (apply_value(s, key, value)) continue;
    const std::string near = nearest_name(key, setting_names(s));
    throw Error({.file = value.file(),
                 .path = value.path(),
                 .found = "unknown setting",
                 .expected = "a setting of a stack",
                 .nearest = near});
  }
}

}  // namespace orrery
