// SPDX-License-Identifier: Apache-2.0
// Knows the flags of Megatron-LM and NeMo for precision, sharding, optimizer states and recompute.
#include <fmt/format.h>

#include "sim/launch/megatron_flags.h"

namespace orrery {

using namespace megatron_names;
using Dialect = MegatronDialect;

void MegatronFlags::fp8(const char* format, std::string_view recipe, const char* preset,
                        const char* function) {
  switch (dialect_) {
    case Dialect::bridge:
      out_.set("precision", "mixed_precision", preset);
      return;
    case Dialect::nemo2:
      out_.set("precision", "recipe.trainer.plugins", std::string(function) + "()", true);
      return;
    case Dialect::nemo1:
      if (recipe != "delayed") return lacks("precision", fmt::format("{} scaling", recipe));
      out_.set("precision", "model.transformer_engine", true);
      out_.set("precision", "model.fp8", true);
      out_.set("precision", "model.fp8_hybrid", true);
      return;
    case Dialect::megatron:
      break;
  }
  const bool knows_recipes = release_number(stack_.flags_release) >= std::pair(0, 12);
  const bool knows_blocks = release_number(stack_.flags_release) >= std::pair(0, 13);
  if ((recipe != "delayed" && !knows_recipes) || (recipe == "blockwise" && !knows_blocks))
    return lacks("precision", fmt::format("{} scaling", recipe));
  out_.set("precision", "--bf16", true);
  out_.set("precision", "--fp8-format", format);
  if (knows_recipes) out_.set("precision", "--fp8-recipe", recipe);
  if (stack_.sharding.parameter_gather_format != Format::fp8 || l_.zero_stage == 0 ||
      deals_itself())
    return;
  const bool blocks = recipe == "mxfp8";
  if (l_.offload_optimizer && recipe != "delayed")
    return out_.missing("",
                        "The prediction gathers parameters in FP8; Megatron-LM refuses that for "
                        "optimizer states in host memory but with delayed scaling, and gathers "
                        "them in BF16.");
  if (blocks && !has(gather_mxfp8)) return lacks("", "gathers of MXFP8 parameters");
  out_.set("", "--fp8-param-gather", true);
  if (blocks) say_if_known(gather_mxfp8, true);
}

void MegatronFlags::precision() {
  const bool half = l_.precision == PrecisionRecipe::fp16;
  switch (l_.precision) {
    case PrecisionRecipe::bf16:
    case PrecisionRecipe::fp16:
      if (dialect_ == Dialect::megatron)
        out_.set("precision", half ? "--fp16" : "--bf16", true);
      else if (dialect_ == Dialect::bridge)
        out_.set("precision", "mixed_precision", half ? "fp16_mixed" : "bf16_mixed");
      else if (dialect_ == Dialect::nemo2)
        out_.set("precision", "recipe.trainer.plugins", half ? "fp16_mixed()" : "bf16_mixed()",
                 true);
      else
        out_.set("precision", "trainer.precision", half ? "16" : "bf16");
      break;
    case PrecisionRecipe::fp8_delayed:
      fp8("hybrid", "delayed", "bf16_with_fp8_delayed_scaling_mixed", "bf16_with_fp8_mixed");
      break;
    case PrecisionRecipe::fp8_current:
      fp8("hybrid", "tensorwise", "bf16_with_fp8_current_scaling_mixed",
          "bf16_with_fp8_current_scaling_mixed");
      break;
    case PrecisionRecipe::fp8_blockwise:
      fp8("e4m3", "blockwise", "bf16_with_fp8_subchannel_scaling_mixed",
          "bf16_with_fp8_subchannel_scaling_mixed");
      break;
    case PrecisionRecipe::mxfp8:
      fp8("e4m3", "mxfp8", "bf16_with_mxfp8_mixed", "bf16_with_mxfp8_mixed");
      break;
    case PrecisionRecipe::nvfp4:
      if (dialect_ == Dialect::bridge) {
        out_.set("precision", "mixed_precision", "bf16_with_nvfp4_mixed");
      } else if (dialect_ == Dialect::megatron &&
                 release_number(stack_.flags_release) >= std::pair(0, 15)) {
        out_.set("precision", "--bf16", true);
        out_.set("precision", "--fp4-format", "e2m1");
        out_.set("precision", "--fp4-recipe", "nvfp4");
      } else {
        lacks("precision", "NVFP4");
      }
      break;
    case PrecisionRecipe::mxfp4:
    case PrecisionRecipe::int4:
    case PrecisionRecipe::int8:
      lacks("precision", "weights alone of 4 or 8 bits");
      break;
  }
  gradients_format();
}

// What gradients are reduced and added up in. Presets of Megatron-Bridge say FP32, those of FP16
// do not, and overwrite what `ddp` says.
void MegatronFlags::gradients_format() {
  const bool half = l_.precision == PrecisionRecipe::fp16;
  const bool in_bf16 = stack_.sharding.gradient_format == Format::bf16;
  if (dialect_ == Dialect::nemo1) {
    if (l_.zero_stage == 1) out_.set("", "model.optim.grad_sync_dtype", in_bf16 ? "bf16" : "fp32");
    return;
  }
  if (in_bf16 && !half) say_if_known(reduce_in_bf16, true);
  say_if_known(reduce_in_fp32, !in_bf16);
  if (dialect_ == Dialect::bridge && in_bf16 != half)
    out_.missing(
        "", fmt::format("The preset of mixed_precision overwrites ddp.grad_reduce_in_fp32 with {}: "
                        "in the recipe, pass it through get_mixed_precision_config() and set "
                        "cfg.mixed_precision.grad_reduce_in_fp32 = {}; else gradients take {} "
                        "memory that is predicted.",
                        half ? "False" : "True", half ? "True" : "False",
                        half ? "half the" : "twice the"));
}

void MegatronFlags::sharded_data() {
  out_.covers("shard_group");
  const bool shards_gradients = l_.zero_stage >= 2;
  if (shards_gradients) {
    const char* kind = l_.zero_stage == 2 ? "optim_grads" : "optim_grads_params";
    if (dialect_ == Dialect::nemo2)
      out_.set("zero", "recipe.trainer.strategy.fsdp", "megatron");
    else
      say("zero", has(fsdp) || !has(custom_fsdp) ? fsdp : custom_fsdp, true,
          fmt::format("ZeRO-{}", l_.zero_stage));
    if (has(sharding)) say("zero", sharding, kind, "what is sharded");
    if (dialect_ == Dialect::megatron) say_if_known(distributed_optimizer, true);
    if (dialect_ == Dialect::megatron && has(fsdp)) out_.set("", "--ckpt-format", "fsdp_dtensor");
  } else if (deals_itself()) {
    out_.implied("zero",
                 "Muon's dist_muon deals states out itself; the distributed optimizer is refused "
                 "beside it.");
    if (dialect_ == Dialect::bridge) {
      say("zero", distributed_optimizer, false, "states of Muon");
      out_.set("zero", "optimizer.use_distributed_optimizer", false);
    }
  } else if (l_.zero_stage == 1) {
    if (dialect_ == Dialect::nemo1)
      out_.set("zero", "model.optim.name", "distributed_fused_adam");
    else
      say("zero", distributed_optimizer, true, "a distributed optimizer");
    if (dialect_ == Dialect::bridge) out_.set("zero", "optimizer.use_distributed_optimizer", true);
  } else {
    if (dialect_ != Dialect::nemo2 && dialect_ != Dialect::bridge)
      out_.implied("zero", "Optimizer states are whole where no distributed optimizer is set.");
    else
      say("zero", distributed_optimizer, false, "optimizer states on every rank");
    if (dialect_ == Dialect::bridge) out_.set("zero", "optimizer.use_distributed_optimizer", false);
  }
  if (l_.shard_group > 0 && l_.shard_group < l_.dense_replicas())
    say("shard_group", shard_copies, l_.dense_replicas() / l_.shard_group,
        fmt::format("shards in groups of {}", l_.shard_group));
  if (l_.bucket <= Bytes(0)) return;
  const double elements = l_.bucket.si() / bytes_per_element(stack_.sharding.gradient_format);
  say("bucket", bucket_size, static_cast<std::int64_t>(elements), "the size of gradient buckets");
}

// Moments in FP32, which recipes of some models do not keep.
void MegatronFlags::whole_moments() {
  out_.covers("optimizer");
  if (!recipes() || stack_.defaults.optimizer == Optimizer::adam_fp32 || !has(precise)) return;
  if (l_.offload_optimizer)
    out_.missing("optimizer",
                 "The recipe keeps moments in fewer bits: set exp_avg_dtype and exp_avg_sq_dtype "
                 "of its optimizer to torch.float32 there.");
  else
    say("optimizer", precise, false, "moments in FP32");
}

void MegatronFlags::optimizer_states() {
  const auto moments = [&](const char* format) {
    // Transformer Engine's optimizer had FP16 and FP8 moments first.
    const bool too_old = dialect_ == Dialect::megatron && std::string(format) == "bf16" &&
                         release_number(stack_.flags_release) < std::pair(0, 13);
    if (dialect_ == Dialect::nemo1 || !has(precise) || too_old)
      return lacks("optimizer", fmt::format("moments in {}", format));
    if (l_.zero_stage == 0)
      return lacks("optimizer",
                   fmt::format("moments in {} without a distributed optimizer", format));
    say("optimizer", precise, true, "a precision-aware optimizer");
    if (dialect_ == Dialect::megatron) {
      out_.set("optimizer", "--exp-avg-dtype", format);
      out_.set("optimizer", "--exp-avg-sq-dtype", format);
      return;
    }
    const std::string type = std::string(format) == "bf16" ? "torch.bfloat16" : "torch.uint8";
    if (dialect_ == Dialect::nemo2) {
      out_.set("optimizer", "recipe.optim.config.exp_avg_dtype", type, true);
      out_.set("optimizer", "recipe.optim.config.exp_avg_sq_dtype", type, true);
      return;
    }
    out_.missing("optimizer",
                 fmt::format("Overrides cannot name tensor types: set cfg.optimizer.exp_avg_dtype "
                             "and exp_avg_sq_dtype to {} in the recipe.",
                             type));
  };
  switch (l_.optimizer) {
    case Optimizer::adam_fp32:
      whole_moments();
      break;
    case Optimizer::adam_bf16_moments:
      moments("bf16");
      break;
    case Optimizer::adam_8bit:
      moments("fp8");
      break;
    case Optimizer::sgd:
      say("optimizer", optimizer, "sgd", "SGD");
      break;
    case Optimizer::muon:
      if (!muon_known() || l_.zero_stage >= 2) {
        lacks("optimizer", l_.zero_stage >= 2 ? "Muon over sharded gradients" : "Muon");
        break;
      }
      say("optimizer", optimizer, l_.zero_stage >= 1 ? "dist_muon" : "muon", "Muon");
      if (dialect_ == Dialect::megatron) out_.set("optimizer", "--ckpt-format", "torch");
      break;
    case Optimizer::adam_bf16:
    case Optimizer::adafactor:
    case Optimizer::shampoo:
    case Optimizer::rotating_adam:
      lacks("optimizer", fmt::format("the optimizer {}", to_text(l_.optimizer)));
      break;
  }
  offloads();
}

void MegatronFlags::offloads() {
  if (l_.offload_optimizer) {
    const bool adam = l_.optimizer == Optimizer::adam_fp32 ||
                      l_.optimizer == Optimizer::adam_bf16_moments ||
                      l_.optimizer == Optimizer::adam_8bit;
    if (l_.zero_stage == 0 || !adam) {
      lacks("offload", "optimizer states in host memory without Adam in a distributed optimizer");
    } else {
      // Megatron-LM refuses the first without the second, whose code runs it.
      say("offload", offload_states, true, "optimizer states in host memory");
      // Megatron-LM's argument is 1 where it is left out, the class that recipes fill is 0.
      if (has(offload_states) && (recipes() || l_.optimizer_offload_fraction < 1))
        say("optimizer_offload_fraction", offload_fraction, l_.optimizer_offload_fraction,
            "a share of the optimizer's states in host memory");
      if (has(offload_states) && l_.optimizer == Optimizer::adam_fp32)
        say("offload", precise, true, "a precision-aware optimizer");
    }
    if (recipes() && stack_.sharding.parameter_gather_format == Format::fp8 &&
        l_.precision != PrecisionRecipe::fp8_delayed && !is_sixteen_bit(l_.precision))
      out_.missing("",
                   "Set fp8_param_gather of the recipe's mixed precision to False: it is refused "
                   "beside optimizer states in host memory but with delayed scaling.");
  }
  if (l_.offload_activations && (l_.pp > 1 || l_.recompute != Recompute::none)) {
    lacks("offload", "activations in host memory beside pipelines or recompute");
  } else if (l_.offload_activations) {
    if (dialect_ == Dialect::bridge) out_.set("offload", "model.cpu_offloading", true);
    // All but one: it refuses to move them all.
    say("offload", offload_layers, model_.layer_count() - 1, "activations in host memory");
  }
  if (l_.offload_weights) lacks("offload", "weights in host memory");
}

void MegatronFlags::recompute() {
  out_.covers("recompute");
  out_.covers("recompute_layers");
  switch (l_.recompute) {
    case Recompute::none:
      if (dialect_ == Dialect::bridge || dialect_ == Dialect::nemo1)
        say("recompute", granularity, nullptr, "no recompute");
      else if (dialect_ == Dialect::nemo2)
        out_.set("recompute", granularity.nemo2, "None", true);
      return;
    case Recompute::full: {
      if (dialect_ == Dialect::megatron && !has(granularity))
        return out_.set("recompute", "--checkpoint-activations", true);
      say("recompute", granularity, "full", "full recompute");
      const bool some = l_.recompute_layers > 0;
      say("recompute_layers", method, some ? "block" : "uniform", "the layers to recompute");
      say("recompute_layers", recomputed_layers, some ? l_.recompute_layers : 1,
          "the number of layers to recompute");
      return;
    }
    case Recompute::selective:
      break;
  }
  const bool norms = l_.recomputes(RecomputeModule::layernorm);
  if (l_.precision == PrecisionRecipe::fp8_delayed &&
      (norms || l_.recomputes(RecomputeModule::moe_act)))
    lacks("recompute", fmt::format("recompute of {} beside delayed scaling in FP8: {}, or take "
                                   "current scaling",
                                   norms ? "norms" : "the experts' activation",
                                   "leave layernorm and moe_act out"));
  say("recompute", granularity, "selective", "selective recompute");
  if (l_.recompute_modules == core_attention_only && !recipes()) return;
  std::vector<std::string> names;
  for (int m = 0; m < recompute_module_count; ++m)
    if (l_.recompute_modules.has(static_cast<RecomputeModule>(m)))
      names.emplace_back(to_text(static_cast<RecomputeModule>(m)));
  if (has(modules) || !(l_.recompute_modules == core_attention_only))
    say("recompute", modules, names, "a choice of what is recomputed");
}

}  // namespace orrery
