// SPDX-License-Identifier: Apache-2.0
// Knows the settings of programs for accelerators that run no CUDA: Primus, MaxText, NeuronX
// Distributed Training and Intel's Megatron-LM for Gaudi.
#include <algorithm>

#include <fmt/format.h>

#include "sim/base/json/quick.h"
#include "sim/launch/flag_writer.h"

namespace orrery {
namespace {

void no_choice_of_ranks(FlagWriter& out, const Layout& l) {
  if (!l.rank_order.is_default()) out.lacks("rank_order", "another rank order");
  if (l.per_domain > 0)
    out.missing("per_domain", fmt::format("The scheduler places ranks: start {} in each scale-up "
                                          "domain.",
                                          l.per_domain));
}

// Decisions that say nothing where a size is one, or where there are no experts.
void cover_what_is_one(FlagWriter& out, const Layout& l, const Model& model) {
  out.covers("dp");  // the ranks that are left
  cover_absent(out, l, model);
  if (l.tp == 1) out.covers("sequence_parallel");
}

// Programs that split experts as they split all else.
void experts_as_all_else(FlagWriter& out, const Layout& l, const Model& model) {
  if (!model.has_experts()) return;
  if (l.etp == l.tp)
    out.implied("etp", "Experts are split over tensor ranks as all else is.");
  else
    out.lacks("etp", fmt::format("experts that {} tensor ranks share", l.etp));
}

// Megatron-LM's text of a value as YAML has it.
SortedJson yaml_value(const std::string& text) {
  if (text.empty()) return true;
  if (text.find(' ') != std::string::npos) {
    SortedJson list = SortedJson::array();
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      list.push_back(yaml_value(text.substr(at, end - at)));
      at = end + 1;
    }
    return list;
  }
  const std::optional<SortedJson> number = parse_quickly(text);
  return number && number->is_number() ? *number : SortedJson(text);
}

// argparse's name of a flag: what is called --no-x there is x: false.
std::pair<std::string, SortedJson> yaml_argument(const LaunchFlag& flag) {
  std::string name = flag.name.substr(flag.name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  const std::string off = "no_";
  if (flag.value.empty() && name.starts_with(off)) return {name.substr(off.size()), false};
  // Two whose values are kept under a shorter name.
  if (name == "fp8_format") name = "fp8";
  if (name == "fp4_format") name = "fp4";
  return {name, yaml_value(flag.value)};
}

}  // namespace

LaunchFlags primus_flags(const Layout& l, const Model& model, const Job& job, const Stack& stack,
                         const LaunchDevice& device) {
  const LaunchFlags megatron = megatron_flags(l, model, job, stack, device);
  FlagWriter out(fmt::format("Primus {} (its YAML file, Megatron backend)", stack.release),
                 FlagStyle::yaml);
  out.set("", "modules.pre_trainer.framework", "megatron");
  for (const std::string& key : layout_keys()) out.covers(key);  // Megatron's flags said them
  for (const LaunchFlag& flag : megatron.flags) {
    const auto [name, value] = yaml_argument(flag);
    out.set(flag.key, "modules.pre_trainer.overrides." + name, value);
  }
  for (const FlagNote& note : megatron.missing) out.missing(note.key, note.sentence);
  for (const FlagNote& note : megatron.implied) out.implied(note.key, note.sentence);
  for (const std::string& source : megatron.sources) out.source(source);
  out.source("primus-llama-config");
  return std::move(out).finish(
      l, "Add the model's file, its data and its learning rates; arguments are Megatron-LM's.");
}

LaunchFlags maxtext_flags(const Layout& l, const Model& model, const Job& job, const Stack& stack) {
  FlagWriter out(fmt::format("MaxText {} (keys over base.yml)", stack.release), FlagStyle::yaml);
  cover_what_is_one(out, l, model);
  const std::int64_t replicas = l.dp / std::max<std::int64_t>(1, model.has_experts() ? l.ep : 1);
  out.set("zero", l.zero_stage == 3 ? "ici_fsdp_parallelism" : "ici_data_parallelism",
          std::max<std::int64_t>(1, replicas));
  if (l.zero_stage == 1 || l.zero_stage == 2)
    out.lacks("zero", fmt::format("ZeRO-{}: its axes shard everything or nothing", l.zero_stage));
  if (l.shard_group > 0 && l.shard_group < l.dense_replicas() && l.shard_group % l.cp == 0)
    out.missing("shard_group",
                fmt::format("Set ici_fsdp_parallelism to {} and the copies, {}, in "
                            "dcn_data_parallelism.",
                            l.shard_group / l.cp, l.dense_replicas() / l.shard_group));
  else if (l.shard_group > 0 && l.shard_group < l.dense_replicas())
    out.lacks("shard_group", fmt::format("shards in groups of {}", l.shard_group));
  out.covers("shard_group");
  out.set("tp", "ici_tensor_parallelism", l.tp);
  if (l.tp > 1 && l.sequence_parallel)
    out.implied("sequence_parallel", "The compiler shards activations itself.");
  else if (l.tp > 1)
    out.lacks("sequence_parallel", "activations that every tensor rank holds whole");
  if (l.cp > 1) out.set("cp", "ici_context_parallelism", l.cp);
  if (l.cp > 1 && l.context == ContextKind::all_gather)
    out.implied("context_parallel", "Keys and values are gathered, as is the default.");
  else if (l.cp > 1)
    out.lacks("context_parallel", fmt::format("{} in context parallelism", to_text(l.context)));
  if (model.has_experts()) out.set("ep", "ici_expert_parallelism", l.ep);
  experts_as_all_else(out, l, model);
  const double batch = static_cast<double>(l.micro_batch) / static_cast<double>(l.tp * l.cp * l.pp);
  out.set("micro_batch", "per_device_batch_size", batch);
  out.set("", "gradient_accumulation_steps", l.microbatches(job));
  out.set("", "max_target_length", job.sequence);
  if (l.recompute == Recompute::full)
    out.set("recompute", "remat_policy", "full");
  else if (l.recompute == Recompute::none)
    out.set("recompute", "remat_policy", "minimal_with_context");
  else
    out.missing("recompute", fmt::format("remat_policy custom keeps tensors by name: choose those "
                                         "that leave {} to run again.",
                                         to_text(l.recompute_choice())));
  if (is_sixteen_bit(l.precision))
    out.set("precision", "dtype", l.precision == PrecisionRecipe::fp16 ? "float16" : "bfloat16");
  else
    out.missing("precision", fmt::format("{}: its key quantization names other recipes; choose the "
                                         "nearest.",
                                         to_text(l.precision)));
  if (l.optimizer != Optimizer::adam_fp32)
    out.lacks("optimizer", fmt::format("the optimizer {}", to_text(l.optimizer)));
  if (l.offload_optimizer) out.set("offload", "optimizer_memory_host_offload", true);
  if (l.offload_activations || l.offload_weights)
    out.lacks("offload", "activations or weights in host memory");
  no_choice_of_ranks(out, l);
  out.source("maxtext-gpu-configs");
  return std::move(out).finish(l,
                               "Add the model's name (model_name), its data and its learning "
                               "rates. Of several slices the dcn_ keys take the outer sizes.");
}

LaunchFlags neuronx_flags(const Layout& l, const Model& model, const Job& job, const Stack& stack) {
  FlagWriter out(fmt::format("NeuronX Distributed Training {} (its YAML file)", stack.release),
                 FlagStyle::yaml);
  cover_what_is_one(out, l, model);
  const std::string strategy = "distributed_strategy.";
  out.set("tp", strategy + "tensor_model_parallel_size", l.tp);
  out.set("pp", strategy + "pipeline_model_parallel_size", l.pp);
  out.set("vpp", strategy + "virtual_pipeline_model_parallel_size", l.vpp);
  if (l.cp > 1) {
    out.set("cp", strategy + "context_parallel_size", l.cp);
    if (l.context == ContextKind::ring)
      out.implied("context_parallel", "It passes keys and values around a ring.");
  }
  if (model.has_experts()) {
    out.set("ep", strategy + "expert_model_parallel_size", l.ep);
  }
  experts_as_all_else(out, l, model);
  out.set("zero", strategy + "zero1", l.zero_stage == 1);
  if (l.zero_stage > 1) out.lacks("zero", fmt::format("ZeRO-{}", l.zero_stage));
  if (l.tp > 1) out.set("sequence_parallel", strategy + "sequence_parallel", l.sequence_parallel);
  if (l.schedule == Schedule::one_f_one_b || l.schedule == Schedule::interleaved)
    out.covers("schedule");
  out.set("micro_batch", "data.micro_batch_size", l.micro_batch);
  out.set("", "data.global_batch_size", job.global_batch);
  out.set("", "model.encoder_seq_length", job.sequence);
  if (l.recompute == Recompute::full)
    out.set("recompute", "model.activations_checkpoint_granularity", "full");
  if (l.recompute == Recompute::selective) {
    out.set("recompute", "model.activations_checkpoint_granularity", "selective");
    out.missing("recompute", fmt::format("activations_checkpoint_recompute lists classes of the "
                                         "model: name those of {}.",
                                         to_text(l.recompute_choice())));
  }
  if (l.precision == PrecisionRecipe::bf16)
    out.set("precision", "precision.type", "mixed_precision");
  no_choice_of_ranks(out, l);
  out.source("neuronx-llama-config");
  return std::move(out).finish(
      l,
      "Add the model's shape, its data and its learning rates; a rank is a NeuronCore as the "
      "runtime shows it.");
}

LaunchFlags gaudi_megatron_flags(const Layout& l, const Model& model, const Job& job,
                                 const Stack& stack) {
  FlagWriter out(
      fmt::format("Megatron-LM for Gaudi {} (examples/llama/pretrain_llama.sh)", stack.release),
      FlagStyle::overrides);
  cover_what_is_one(out, l, model);
  out.set("tp", "HL_TP", l.tp);
  out.set("pp", "HL_PP", l.pp);
  out.set("dp", "HL_DP", l.dp);
  out.set("micro_batch", "HL_MICRO_BATCH", l.micro_batch);
  out.set("", "HL_GBS", job.global_batch);
  out.set("", "HL_SEQ_LEN", job.sequence);
  out.set("sequence_parallel", "HL_SEQ_PARALLEL", l.sequence_parallel && l.tp > 1 ? 1 : 0);
  if (l.precision == PrecisionRecipe::fp8_delayed) {
    out.set("precision", "HL_FP8", 1);
    out.set("", "HL_TRANSFORMER_IMPL", "transformer_engine");
  } else if (l.precision != PrecisionRecipe::bf16) {
    out.lacks("precision", fmt::format("{}", to_text(l.precision)));
  }
  if (l.recompute != Recompute::none)
    out.missing("recompute", fmt::format("HL_CKP_ACT numbers what runs again: choose the one for "
                                         "{} in the script.",
                                         to_text(l.recompute_choice())));
  if (l.schedule == Schedule::one_f_one_b) out.covers("schedule");
  experts_as_all_else(out, l, model);
  if (l.zero_stage == 0)
    out.missing("zero", "Turn the distributed optimizer off in the script: states stay whole.");
  no_choice_of_ranks(out, l);
  out.source("gaudi-megatron-scripts");
  return std::move(out).finish(l,
                               "Set up the rest by hand: the script's other variables name the "
                               "model, its data and the hosts.");
}

}  // namespace orrery
