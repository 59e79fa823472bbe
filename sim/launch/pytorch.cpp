// SPDX-License-Identifier: Apache-2.0
// Knows the settings of TorchTitan and NeMo AutoModel, which run PyTorch's FSDP2.
#include <fmt/format.h>

#include "sim/base/json/tree.h"
#include "sim/launch/flag_writer.h"
#include "workloads/parameters/weight_split.h"

namespace orrery {
namespace {

// Decisions that neither program leaves to its settings.
void fixed_decisions(FlagWriter& out, const Layout& l) {
  out.covers("sequence_parallel");
  if (l.cp == 1) {
    out.covers("context_parallel");
    out.covers("context_inner");
  }
  if (!l.rank_order.is_default()) out.lacks("rank_order", "another rank order");
  if (l.per_domain > 0)
    out.missing("per_domain", fmt::format("The scheduler places ranks: start {} in each scale-up "
                                          "domain.",
                                          l.per_domain));
  if (l.bucket > Bytes(0))
    out.missing("bucket", "FSDP2 reduces a block at a time: its units are the buckets.");
}

const char* schedule_name(Schedule s) {
  switch (s) {
    case Schedule::gpipe:
      return "GPipe";
    case Schedule::one_f_one_b:
      return "1F1B";
    case Schedule::interleaved:
      return "Interleaved1F1B";
    case Schedule::zero_bubble_v:
      return "ZBVZeroBubble";
    case Schedule::dual_pipe_v:
      return "DualPipeV";
    case Schedule::interleaved_zero_bubble:
      return "InterleavedZeroBubble";
    case Schedule::zero_bubble:
    case Schedule::dual_pipe:
      return nullptr;
  }
  return nullptr;
}

// Sequences that a data-parallel rank takes through the pipeline at once.
std::int64_t local_batch(const Layout& l, const Job& job) {
  return l.pp > 1 ? l.micro_batch * l.microbatches(job) : l.micro_batch;
}

// Whether ZeRO-3 frees parameters after a unit's forward and gathers them again for its backward.
bool gathers_again(const Layout& l, const Job& job, const Stack& stack) {
  const bool kept = l.pp > 1 && gathers_once(l, stack, l.microbatches(job));
  return l.zero_stage == 3 && stack.sharding.reshard_after_forward && !kept;
}

void titan_stages(FlagWriter& out, const Layout& l, const Model& model, const Stack& stack) {
  out.covers("stage_layers");
  if (l.pp == 1) return;
  const std::vector<Position> positions = partition_layers(model, l, stack.sharding.partition);
  bool alike = true;
  for (const Position& p : positions) alike = alike && p.layers == positions.front().layers;
  if (alike) {
    out.set("vpp", "parallelism.pipeline_parallel_layers_per_stage", positions.front().layers);
    out.set("", "parallelism.pipeline_parallel_first_stage_less_layers", 0);
    out.set("", "parallelism.pipeline_parallel_last_stage_less_layers", 0);
    return;
  }
  SortedJson parts = SortedJson::array();
  for (const Position& p : positions) {
    SortedJson part = SortedJson::array();
    if (p.embedding) part.push_back("tok_embeddings");
    for (std::int64_t i = 0; i < p.layers; ++i)
      part.push_back(fmt::format("layers.{}", p.first_layer + i));
    if (p.head) {
      part.push_back("norm");
      part.push_back("output");
    }
    parts.push_back(part);
  }
  out.covers("vpp");
  out.set("stage_layers", "parallelism.module_fqns_per_model_part", parts);
}

void titan_pipeline(FlagWriter& out, const Layout& l, const Model& model, const Stack& stack) {
  out.set("pp", "parallelism.pipeline_parallel_degree", l.pp);
  if (l.pp > 1) {
    if (const char* name = schedule_name(l.schedule))
      out.set("schedule", "parallelism.pipeline_parallel_schedule", name);
    else
      out.lacks("schedule", fmt::format("the {} schedule", to_text(l.schedule)));
    out.set("micro_batch", "parallelism.pipeline_parallel_microbatch_size", l.micro_batch);
  }
  out.covers("schedule");
  titan_stages(out, l, model, stack);
}

void titan_data(FlagWriter& out, const Layout& l, const Job& job, const Stack& stack) {
  // Context ranks shard too: their degree is a factor of the group beside this one.
  const bool groups = l.shard_group > 0 && l.shard_group < l.dense_replicas();
  const bool whole = !groups || l.shard_group % l.cp == 0;
  const std::int64_t shard = l.zero_stage == 0 ? 1 : groups && whole ? l.shard_group / l.cp : l.dp;
  if (l.zero_stage > 0 && !whole)
    out.lacks(
        "shard_group",
        fmt::format("shards in groups of {} that cp {} does not divide: its groups hold whole "
                    "context groups",
                    l.shard_group, l.cp));
  const char* key = l.zero_stage == 0 ? "zero" : shard < l.dp ? "shard_group" : "dp";
  out.set(key, "parallelism.data_parallel_replicate_degree", l.dp / shard);
  out.set("dp", "parallelism.data_parallel_shard_degree", shard);
  out.covers("shard_group");
  out.covers("zero");
  if (l.zero_stage == 0 && l.cp > 1)
    out.lacks("zero", "whole states beside context parallelism: FSDP shards over its ranks");
  if (l.zero_stage == 1 && l.dense_replicas() > 1)
    out.lacks("zero", "sharded optimizer states alone; FSDP shards gradients too");
  if (l.zero_stage >= 2)
    out.set("zero", "parallelism.fsdp_reshard_after_forward",
            gathers_again(l, job, stack) ? "always" : "never");
}

void titan_experts(FlagWriter& out, const Layout& l, const Model& model, const Stack& stack) {
  out.covers("ep");
  out.covers("etp");
  if (!model.has_experts()) return;
  out.set("ep", "parallelism.expert_parallel_degree", l.ep);
  out.set("etp", "parallelism.expert_tensor_parallel_degree", l.etp);
  if (l.ep == 1 && l.etp != l.tp)
    out.lacks("etp", "experts whole on tensor ranks without expert parallelism");
  if (stack.communication.expert_library != CollectiveLibrary::deepep || l.ep == 1) return;
  if (l.etp > 1)
    return out.lacks("etp", "experts split over tensor ranks beside DeepEP, which is predicted");
  out.set("", "parallelism.expert_parallel_comm_backend", "deepep");
}

void titan_precision(FlagWriter& out, const Layout& l, const Stack& stack) {
  const bool nested = release_number(stack.flags_release) >= std::pair(0, 2);
  const std::string prefix = nested ? "quantize.linear." : "";
  switch (l.precision) {
    case PrecisionRecipe::bf16:
      out.set("precision", "training.mixed_precision_param", "bfloat16");
      break;
    case PrecisionRecipe::fp8_current:
      out.set("precision", "model.converters", std::vector<std::string>{prefix + "float8"});
      out.set("precision", prefix + "float8.enable_fsdp_float8_all_gather", true);
      out.set("precision", prefix + "float8.precompute_float8_dynamic_scale_for_fsdp", true);
      break;
    case PrecisionRecipe::mxfp8:
      out.set("precision", "model.converters", std::vector<std::string>{prefix + "mx"});
      out.set("precision", prefix + "mx.recipe_name", "mxfp8_cublas");
      break;
    case PrecisionRecipe::fp16:
    case PrecisionRecipe::fp8_delayed:
    case PrecisionRecipe::fp8_blockwise:
    case PrecisionRecipe::nvfp4:
    case PrecisionRecipe::mxfp4:
    case PrecisionRecipe::int4:
    case PrecisionRecipe::int8:
      out.lacks("precision", fmt::format("{}", to_text(l.precision)));
      break;
  }
}

void titan_memory(FlagWriter& out, const Layout& l) {
  const bool selective = l.recompute == Recompute::selective;
  out.set("recompute", "activation_checkpoint.mode", std::string(to_text(l.recompute)));
  if (selective) {
    out.set("recompute", "activation_checkpoint.selective_ac_option", "op");
    if (!(l.recompute_modules == core_attention_only))
      out.lacks(
          "recompute",
          fmt::format("the parts {}; its selective mode keeps attention and every second product",
                      to_text(l.recompute_choice())));
  }
  if (l.recompute_layers > 0)
    out.lacks("recompute_layers",
              fmt::format("full recompute of {} layers a stage", l.recompute_layers));
  if (l.optimizer != Optimizer::adam_fp32)
    out.lacks("optimizer", fmt::format("the optimizer {}", to_text(l.optimizer)));
  if (l.offload_optimizer || l.offload_weights)
    out.set("offload", "training.enable_cpu_offload", true);
  if (l.offload_optimizer != l.offload_weights)
    out.lacks("offload", "weights or optimizer states alone; it moves both");
  if (l.optimizer_offload_fraction < 1)
    out.lacks("optimizer_offload_fraction", "a share of the optimizer's states in host memory");
  if (l.offload_activations) out.lacks("offload", "activations in host memory");
}

void titan_context(FlagWriter& out, const Layout& l) {
  if (l.cp == 1) return;
  out.set("cp", "parallelism.context_parallel_degree", l.cp);
  if (l.context == ContextKind::ring)
    out.set("context_parallel", "parallelism.context_parallel_rotate_method", "alltoall");
  else if (l.context == ContextKind::all_gather)
    out.set("context_parallel", "parallelism.context_parallel_rotate_method", "allgather");
  else
    out.lacks("context_parallel", fmt::format("{} in context parallelism", to_text(l.context)));
  out.covers("context_inner");
}

const char* automodel_fp8(PrecisionRecipe p) {
  if (p == PrecisionRecipe::fp8_current) return "current";
  return p == PrecisionRecipe::fp8_blockwise ? "block" : nullptr;
}

// From 0.4, which NeMo 26.04 carries, pipelines, expert layers and recompute are parts of
// `distributed`.
bool one_section(const Stack& stack) {
  return release_number(stack.flags_release) >= std::pair(26, 4);
}

void automodel_pipeline(FlagWriter& out, const Layout& l, const Model& model, const Stack& stack) {
  out.covers("schedule");
  out.covers("vpp");
  out.covers("stage_layers");
  if (l.pp == 1) return;
  const std::string section = one_section(stack) ? "distributed.pipeline." : "autopipeline.";
  out.set("micro_batch", section + "pp_microbatch_size", l.micro_batch);
  // AutoPipeline reads PyTorch's names in lower case too.
  std::string name = schedule_name(l.schedule) ? schedule_name(l.schedule) : "";
  if (name.empty())
    return out.lacks("schedule", fmt::format("the {} schedule", to_text(l.schedule)));
  if (l.schedule == Schedule::interleaved) name = "interleaved1f1b";
  if (l.schedule == Schedule::one_f_one_b) name = "1f1b";
  out.set("schedule", section + "pp_schedule", name);
  const std::vector<Position> positions = partition_layers(model, l, stack.sharding.partition);
  std::int64_t most = 0;
  for (const Position& p : positions) most = std::max(most, p.layers);
  out.set("vpp", section + "layers_per_stage", most);
  // It makes as few stages as hold all layers, in a multiple of the ranks.
  const std::int64_t fewest = (model.layer_count() + most - 1) / most;
  if ((fewest + l.pp - 1) / l.pp != l.vpp)
    out.lacks("vpp", fmt::format("{} chunks of a stage that hold at most {} layers", l.vpp, most));
  if (!l.stage_layers.empty()) out.lacks("stage_layers", "stages of given sizes");
}

void automodel_memory(FlagWriter& out, const Layout& l, const Model& model, const Job& job,
                      const Stack& stack) {
  // Models with experts have a parallelizer of their own.
  const bool own = model.has_experts() && !one_section(stack);
  out.set("recompute",
          own ? "parallelizer.activation_checkpointing" : "distributed.activation_checkpointing",
          l.recompute == Recompute::full);
  if (l.recompute == Recompute::selective)
    out.lacks("recompute", fmt::format("recompute of {}", to_text(l.recompute_choice())));
  if (l.recompute_layers > 0) out.lacks("recompute_layers", "full recompute of some layers");
  if (l.optimizer != Optimizer::adam_fp32)
    out.lacks("optimizer", fmt::format("the optimizer {}", to_text(l.optimizer)));
  if (l.offload_optimizer || l.offload_weights || l.offload_activations)
    out.lacks("offload", "state in host memory in its benchmark recipes");
  out.covers("zero");
  if (l.zero_stage >= 2 && model.has_experts())
    out.set("zero",
            own ? "parallelizer.reshard_after_forward" : "distributed.moe.reshard_after_forward",
            gathers_again(l, job, stack));
  else if (l.zero_stage == 3)
    out.implied("zero", "FSDP2 shards parameters wherever there are several replicas.");
  else if (l.dense_replicas() > 1)
    out.lacks("zero", fmt::format("ZeRO-{}", l.zero_stage));
}

void automodel_experts(FlagWriter& out, const Model& model, const Layout& l, const Stack& stack,
                       const LaunchDevice& device) {
  const bool quantised = automodel_fp8(l.precision) != nullptr;
  if (quantised && model.has_experts()) out.set("precision", "model.backend.experts", "te");
  if (!model.has_experts() || stack.communication.expert_library != CollectiveLibrary::deepep)
    return;
  // The switch of the first releases chose the experts' kernels too; from 26.06 on it is ignored.
  if (!one_section(stack) && !quantised) return out.set("", "model.backend.enable_deepep", true);
  if (!quantised) out.set("", "model.backend.experts", "gmm");
  const bool hybrid = one_section(stack) && !device.deepep;
  out.set("", "model.backend.dispatcher", hybrid ? "hybridep" : "deepep");
  if (hybrid)
    out.implied("",
                fmt::format("HybridEP, not DeepEP: NVIDIA's recipes for {} run it.", device.name));
}

void automodel_adapters(FlagWriter& out, const Job& job) {
  if (job.task != Task::lora) return;
  out.set("", "peft._target_", "nemo_automodel.components._peft.lora.PeftConfig");
  out.set("", "peft.match_all_linear", true);
  out.set("", "peft.dim", job.lora_rank);
  out.set("", "peft.use_triton", true);
}

// Sequences that a rank takes at once: a local batch is one run of the pipeline's schedule.
std::int64_t automodel_batch(const Layout& l, const Job& job, const Stack& stack) {
  const std::int64_t all = l.microbatches(job), each = stack.communication.schedule_microbatches;
  if (l.pp == 1 || each <= 0) return local_batch(l, job);
  const std::int64_t round = (is_v_shaped(l.schedule) ? 2 : 1) * l.pp;
  const std::int64_t batch = (each + round - 1) / round * round;
  return l.micro_batch * (batch < all && all % batch == 0 ? batch : all);
}

}  // namespace

LaunchFlags torchtitan_flags(const Layout& l, const Model& model, const Job& job,
                             const Stack& stack) {
  FlagWriter out(fmt::format("TorchTitan {} (a job's TOML file)", stack.flags_release),
                 FlagStyle::toml);
  out.set("", "training.seq_len", job.sequence);
  out.set("", "training.global_batch_size", job.global_batch);
  out.set("micro_batch", "training.local_batch_size", local_batch(l, job));
  out.set("tp", "parallelism.tensor_parallel_degree", l.tp);
  if (l.tp > 1 && !l.sequence_parallel)
    out.lacks("sequence_parallel", "tensor parallelism without sequence parallelism");
  titan_data(out, l, job, stack);
  titan_context(out, l);
  titan_experts(out, l, model, stack);
  titan_pipeline(out, l, model, stack);
  titan_precision(out, l, stack);
  titan_memory(out, l);
  const bool own_section = release_number(stack.flags_release) >= std::pair(0, 2);
  out.set("", own_section ? "compile.enable" : "training.compile", true);
  fixed_decisions(out, l);
  if (job.task == Task::lora)
    out.missing("", fmt::format("{} has no setting for LoRA: adapters of rank {} on every linear "
                                "layer are the model's code.",
                                out.program(), job.lora_rank));
  out.source("torchtitan-job-config");
  return std::move(out).finish(l,
                               "Merge it with the model's own file of train_configs; the "
                               "optimizer's learning rates and the data stay as they are there.");
}

LaunchFlags automodel_flags(const Layout& l, const Model& model, const Job& job, const Stack& stack,
                            const LaunchDevice& device) {
  FlagWriter out(
      fmt::format("NeMo AutoModel of NeMo {} (a recipe's YAML file)", stack.flags_release),
      FlagStyle::yaml);
  out.set("", "step_scheduler.global_batch_size", job.global_batch);
  out.set("micro_batch", "step_scheduler.local_batch_size", automodel_batch(l, job, stack));
  out.set("", "dataset.seq_len", job.sequence);
  if (one_section(stack)) out.set("", "distributed.strategy", "fsdp2");
  out.set("tp", "distributed.tp_size", l.tp);
  out.set("cp", "distributed.cp_size", l.cp);
  out.set("pp", "distributed.pp_size", l.pp);
  const bool hybrid = l.shard_group > 0 && l.shard_group < l.dense_replicas();
  out.set(hybrid ? "shard_group" : "dp", "distributed.dp_replicate_size",
          hybrid ? l.dense_replicas() / l.shard_group : 1);
  if (hybrid && l.shard_group % l.cp != 0)
    out.lacks("shard_group", fmt::format("shards in groups of {} that cp {} does not divide",
                                         l.shard_group, l.cp));
  out.covers("shard_group");
  out.covers("dp");
  out.set("ep", "distributed.ep_size", l.ep);
  if (l.etp > 1) out.lacks("etp", "experts split over tensor ranks");
  out.set("sequence_parallel", "distributed.sequence_parallel", l.tp > 1 && l.sequence_parallel);
  automodel_pipeline(out, l, model, stack);
  automodel_memory(out, l, model, job, stack);
  if (l.cp > 1 && l.context != ContextKind::ring)
    out.lacks("context_parallel", fmt::format("{} in context parallelism", to_text(l.context)));
  if (l.precision != PrecisionRecipe::bf16) {
    if (const char* recipe = automodel_fp8(l.precision)) {
      out.set("precision", "model.backend.te_fp8._target_",
              "nemo_automodel.components.models.common.utils.TEFp8Config");
      out.set("precision", "model.backend.te_fp8.recipe", recipe);
    } else {
      out.lacks("precision", fmt::format("{}", to_text(l.precision)));
    }
  }
  automodel_experts(out, model, l, stack, device);
  if (model.has_experts())
    out.set("", "model.backend.enable_fsdp_optimizations", !stack.sharding.reduce_each_microbatch);
  automodel_adapters(out, job);
  fixed_decisions(out, l);
  out.source("automodel-recipes");
  out.source("automodel-distributed");
  return std::move(out).finish(l,
                               "Merge it with the model's own recipe, whose _target_ entries, "
                               "data and optimizer stay.");
}

}  // namespace orrery
