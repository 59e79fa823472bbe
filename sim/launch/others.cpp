// SPDX-License-Identifier: Apache-2.0
// Knows the settings of nanotron, DeepSpeed and Megatron-DeepSpeed.
#include <fmt/format.h>

#include "sim/launch/flag_writer.h"

namespace orrery {
namespace {

void states_and_places(FlagWriter& out, const Layout& l) {
  if (l.optimizer != Optimizer::adam_fp32)
    out.lacks("optimizer", fmt::format("the optimizer {}", to_text(l.optimizer)));
  if (!l.rank_order.is_default()) out.lacks("rank_order", "another rank order");
  if (l.per_domain > 0)
    out.missing("per_domain", fmt::format("The scheduler places ranks: start {} in each scale-up "
                                          "domain.",
                                          l.per_domain));
}

// DeepSpeed's own settings, in a file for deepspeed.initialize().
void deepspeed_settings(FlagWriter& out, const Layout& l, const Job& job, const Stack& stack) {
  const bool half = l.precision == PrecisionRecipe::fp16;
  out.set("", "train_batch_size", job.global_batch);
  out.set("micro_batch", "train_micro_batch_size_per_gpu", l.micro_batch);
  out.set("", "gradient_accumulation_steps", l.microbatches(job));
  if (is_sixteen_bit(l.precision))
    out.set("precision", half ? "fp16.enabled" : "bf16.enabled", true);
  else
    out.lacks("precision", fmt::format("{}", to_text(l.precision)));
  out.set("zero", "zero_optimization.stage", l.zero_stage);
  out.set("", "zero_optimization.overlap_comm", stack.communication.gradient_overlap);
  if (l.bucket > Bytes(0)) {
    // Counted in elements.
    const double elements = l.bucket.si() / bytes_per_element(stack.sharding.gradient_format);
    out.set("bucket", "zero_optimization.reduce_bucket_size", static_cast<std::int64_t>(elements));
  }
  if (l.shard_group > 0 && l.shard_group < l.dense_replicas()) {
    if (l.zero_stage == 3)
      out.set("shard_group", "zero_optimization.zero_hpz_partition_size", l.shard_group);
    else
      out.lacks("shard_group", fmt::format("shards in groups of {}", l.shard_group));
  }
  out.covers("shard_group");
  if (l.offload_optimizer) out.set("offload", "zero_optimization.offload_optimizer.device", "cpu");
  // ZeRO-Offload++ splits updates between host and accelerator under ZeRO-3 alone.
  if (l.optimizer_offload_fraction < 1 && l.zero_stage == 3)
    out.set("optimizer_offload_fraction", "zero_optimization.offload_optimizer.ratio",
            l.optimizer_offload_fraction);
  else if (l.optimizer_offload_fraction < 1)
    out.lacks("optimizer_offload_fraction", "a share of the optimizer's states in host memory");
  if (l.offload_weights) out.set("offload", "zero_optimization.offload_param.device", "cpu");
  if (l.offload_activations) out.set("offload", "activation_checkpointing.cpu_checkpointing", true);
}

void no_adapters(FlagWriter& out, const Job& job) {
  if (job.task == Task::lora)
    out.missing("", fmt::format("{} has no setting for LoRA: the model's code puts adapters of "
                                "rank {} on every linear layer.",
                                out.program(), job.lora_rank));
}

// What a model's own code decides where DeepSpeed alone runs it, and what the user sets there.
void model_decisions(FlagWriter& out, const Layout& l) {
  const auto elsewhere = [&](const char* key, std::int64_t size, const std::string& how) {
    if (size > 1)
      out.missing(key, fmt::format("DeepSpeed's file has no key for {} {}: set it where the model "
                                   "is built ({}).",
                                   key, size, how));
  };
  elsewhere("tp", l.tp, fmt::format("--tensor-model-parallel-size {} of Megatron-DeepSpeed", l.tp));
  elsewhere("pp", l.pp,
            fmt::format("--pipeline-model-parallel-size {} of Megatron-DeepSpeed, num_stages={} of "
                        "deepspeed.pipe.PipelineModule",
                        l.pp, l.pp));
  elsewhere("ep", l.ep, fmt::format("ep_size={} of deepspeed.moe.layer.MoE", l.ep));
  elsewhere("etp", l.etp, "enable_expert_tensor_parallelism of deepspeed.moe.layer.MoE");
  if (l.vpp > 1) out.lacks("vpp", fmt::format("{} chunks of a stage", l.vpp));
  if (l.cp > 1) {
    if (l.context == ContextKind::all_to_all)
      out.missing("cp", fmt::format("Ulysses is set up in code: a sequence-parallel group of {} "
                                    "ranks.",
                                    l.cp));
    else
      out.lacks("cp", "context parallelism that passes keys and values");
    out.implied("context_parallel", "The kind goes with the group that the code makes.");
    out.covers("context_inner");
  }
  out.covers("dp");
  if (l.tp > 1) out.implied("sequence_parallel", "It goes with the model's own splitting.");
  out.covers("sequence_parallel");
  if (l.recompute != Recompute::none)
    out.missing("recompute", fmt::format("Recompute is the model's: turn on its gradient "
                                         "checkpointing ({}).",
                                         to_text(l.recompute_choice())));
}

}  // namespace

LaunchFlags nanotron_flags(const Layout& l, const Model& model, const Job& job,
                           const Stack& stack) {
  FlagWriter out(fmt::format("nanotron of {} (its YAML file)", stack.flags_release),
                 FlagStyle::yaml);
  out.set("dp", "parallelism.dp", l.dp);
  out.set("tp", "parallelism.tp", l.tp);
  out.set("pp", "parallelism.pp", l.pp);
  if (l.schedule == Schedule::gpipe || l.schedule == Schedule::one_f_one_b)
    out.set("schedule", "parallelism.pp_engine", l.schedule == Schedule::gpipe ? "afab" : "1f1b");
  else
    out.lacks("schedule", fmt::format("the {} schedule", to_text(l.schedule)));
  const bool rows = l.sequence_parallel && l.tp > 1;
  out.set("sequence_parallel", "parallelism.tp_mode", rows ? "REDUCE_SCATTER" : "ALL_REDUCE");
  out.set("", "parallelism.tp_linear_async_communication",
          rows && stack.communication.tensor_exposed.get() < 1);
  if (l.cp > 1) out.set("cp", "parallelism.context_parallel_size", l.cp);
  if (l.cp == 1 || l.context == ContextKind::ring) {
    out.covers("context_parallel");
    out.covers("context_inner");
  }
  if (model.has_experts()) out.set("ep", "parallelism.expert_parallel_size", l.ep);
  out.covers("ep");
  out.set("recompute", "parallelism.recompute_layer", l.recompute == Recompute::full);
  if (l.recompute == Recompute::selective)
    out.lacks("recompute", fmt::format("recompute of {}", to_text(l.recompute_choice())));
  out.set("", "tokens.sequence_length", job.sequence);
  out.set("micro_batch", "tokens.micro_batch_size", l.micro_batch);
  out.set("", "tokens.batch_accumulation_per_replica", l.microbatches(job));
  if (l.zero_stage <= 1)
    out.set("zero", "optimizer.zero_stage", l.zero_stage);
  else
    out.lacks("zero", fmt::format("ZeRO-{}", l.zero_stage));
  out.set("", "optimizer.accumulate_grad_in_fp32", stack.sharding.gradient_storage == Format::fp32);
  if (is_sixteen_bit(l.precision))
    out.set("precision", "model.dtype",
            l.precision == PrecisionRecipe::fp16 ? "float16" : "bfloat16");
  else
    out.lacks("precision", fmt::format("{}", to_text(l.precision)));
  states_and_places(out, l);
  no_adapters(out, job);
  out.source("nanotron-parallelism-config");
  std::string note = "Merge it with the model's own file; learning rates and data stay there.";
  if (stack.host.debug.per_rank.get() > Seconds(0)) note += " Leave TORCH_DISTRIBUTED_DEBUG unset.";
  return std::move(out).finish(l, std::move(note));
}

LaunchFlags deepspeed_flags(const Layout& l, const Model& /*model*/, const Job& job,
                            const Stack& stack) {
  FlagWriter out(fmt::format("DeepSpeed {} (its JSON file)", stack.flags_release), FlagStyle::json);
  deepspeed_settings(out, l, job, stack);
  model_decisions(out, l);
  no_adapters(out, job);
  states_and_places(out, l);
  out.source("deepspeed-config");
  return std::move(out).finish(
      l, fmt::format("Start it on {} accelerators; sequence length {} is the data's.", l.gpus(),
                     job.sequence));
}

LaunchFlags megatron_deepspeed_flags(const Layout& l, const Model& model, const Job& job,
                                     const Stack& stack) {
  FlagWriter out(fmt::format("Megatron-DeepSpeed of {} (pretrain_gpt.py)", stack.flags_release),
                 FlagStyle::command_line);
  FlagWriter file("DeepSpeed (its JSON file)", FlagStyle::json);
  deepspeed_settings(file, l, job, stack);
  const LaunchFlags settings = std::move(file).finish(Layout(), "");
  out.set("tp", "--tensor-model-parallel-size", l.tp);
  out.set("pp", "--pipeline-model-parallel-size", l.pp);
  out.covers("dp");
  out.set("micro_batch", "--micro-batch-size", l.micro_batch);
  out.set("", "--global-batch-size", job.global_batch);
  out.set("", "--seq-length", job.sequence);
  if (is_sixteen_bit(l.precision))
    out.set("precision", l.precision == PrecisionRecipe::fp16 ? "--fp16" : "--bf16", true);
  if (l.schedule == Schedule::one_f_one_b) out.covers("schedule");
  cover_absent(out, l, model);
  out.covers("sequence_parallel");  // before 2023.08 it has none, and one size does without
  if (l.tp > 1 && l.sequence_parallel)
    out.lacks("sequence_parallel", "sequence parallelism beside tensor parallelism");
  else if (l.tp > 1)
    out.implied("sequence_parallel", "There is none to turn off.");
  if (l.recompute == Recompute::full) {
    out.set("recompute", "--checkpoint-activations", true);
    out.set("recompute", "--deepspeed-activation-checkpointing", true);
    if (l.recompute_layers > 0)
      out.lacks("recompute_layers", "full recompute of some layers of a stage");
  } else if (l.recompute == Recompute::selective) {
    out.lacks("recompute", fmt::format("recompute of {}", to_text(l.recompute_choice())));
  }
  out.set("zero", "--zero-stage", l.zero_stage);
  if (l.zero_stage == 0 && l.precision == PrecisionRecipe::bf16 && l.dense_replicas() > 1)
    out.lacks("zero", "whole states in BF16: its optimizer deals them out at stage 0 too");
  if (l.offload_optimizer) out.set("offload", "--cpu-optimizer", true);
  if (l.optimizer_offload_fraction < 1)
    out.lacks("optimizer_offload_fraction", "a share of the optimizer's states in host memory");
  if (l.offload_weights || l.offload_activations)
    out.lacks("offload", "weights or activations in host memory beside pipelines");
  out.covers("bucket");
  out.covers("shard_group");
  for (const FlagNote& m : settings.missing) out.missing(m.key, m.sentence);
  out.set("", "--deepspeed", true);
  out.set("", "--deepspeed_config", "ds_config.json");
  states_and_places(out, l);
  no_adapters(out, job);
  out.source("deepspeed-config");
  LaunchFlags flags =
      std::move(out).finish(l, "Add the model's shape, its data and its learning rates.");
  for (LaunchFlag f : settings.flags) {
    f.name = "ds_config.json: " + f.name;
    flags.flags.push_back(std::move(f));
  }
  flags.text = "cat > ds_config.json <<'EOF'\n" + settings.text + "EOF\n" + flags.text;
  return flags;
}

}  // namespace orrery
