// SPDX-License-Identifier: Apache-2.0
// Tests that flags are those of what was predicted, and none that the program or device refuses.
#include <catch2/catch.hpp>

#include "tests/launch/launch_questions.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

TEST_CASE("fine-tuning with LoRA: adapters of the job's rank, or a sentence that there are none") {
  const auto lora = [](const char* stack) {
    Job job = small_job(4096, 256);
    job.task = Task::lora;
    job.lora_rank = 24;
    return launch_flags({.dp = 4}, small_dense_model(), job, stack_of(stack));
  };
  CHECK(says(lora("nemo@26.04"), "peft.dim", "24"));
  CHECK(says(lora("nemo@26.04"), "dataset.seq_length", "4096"));
  CHECK(says(lora("nemo@25.05"), "recipe.peft.dim", "24"));
  const LaunchFlags first = lora("nemo@24.03");
  CHECK(says(first, "model.peft.lora_tuning.adapter_dim", "24"));
  CHECK(first.program.find("megatron_gpt_finetuning.py") != std::string::npos);
  const LaunchFlags automodel = lora("automodel");
  CHECK(automodel.text.find("peft:\n  _target_: nemo_automodel.components._peft.lora.PeftConfig\n"
                            "  match_all_linear: true\n  dim: 24\n") != std::string::npos);
  for (const char* stack :
       {"megatron-core", "megatron-deepspeed", "deepspeed-zero", "nanotron", "pytorch-fsdp2"}) {
    INFO(stack);
    CHECK(notes(lora(stack).missing, "LoRA"));
    CHECK(notes(lora(stack).missing, "rank 24"));
  }
  CHECK_FALSE(notes(flags_of("megatron-core", {.dp = 4}).missing, "LoRA"));
}

TEST_CASE("Megatron-LM: what arguments.py refuses side by side is not printed so") {
  const LaunchFlags offload = flags_of("megatron-core", {.dp = 4, .offload_optimizer = true});
  CHECK(says(offload, "--optimizer-cpu-offload", ""));
  CHECK(says(offload, "--use-precision-aware-optimizer", ""));
  CHECK(says(offload, "--use-distributed-optimizer", ""));
  CHECK(offload.text.find("offload-fraction") == std::string::npos);
  const Layout shared{.dp = 4, .offload_optimizer = true, .optimizer_offload_fraction = 0.5};
  CHECK(says(flags_of("megatron-core", shared), "--optimizer-offload-fraction", "0.5"));
  CHECK(says(flags_of("nemo@26.04", {.dp = 4, .offload_optimizer = true}),
             "optimizer.optimizer_offload_fraction", "1.0"));
  CHECK(lacks(flags_of("megatron-core", {.dp = 4, .zero_stage = 0, .offload_optimizer = true}),
              "offload"));
  const auto fp8 = [](PrecisionRecipe p, bool on_host) {
    return flags_of("megatron-core", {.dp = 4, .precision = p, .offload_optimizer = on_host});
  };
  CHECK(says(fp8(PrecisionRecipe::fp8_current, false), "--fp8-param-gather", ""));
  CHECK_FALSE(says(fp8(PrecisionRecipe::fp8_current, true), "--fp8-param-gather", ""));
  CHECK(notes(fp8(PrecisionRecipe::fp8_current, true).missing, "gathers parameters in FP8"));
  CHECK(says(fp8(PrecisionRecipe::fp8_delayed, true), "--fp8-param-gather", ""));
  CHECK(says(fp8(PrecisionRecipe::mxfp8, false), "--reuse-grad-buf-for-mxfp8-param-ag", ""));

  const LaunchFlags muon = flags_of("megatron-core", {.dp = 4, .optimizer = Optimizer::muon});
  CHECK(says(muon, "--optimizer", "dist_muon"));
  CHECK(says(muon, "--ckpt-format", "torch"));
  CHECK_FALSE(says(muon, "--use-distributed-optimizer", ""));
  CHECK_FALSE(says(muon, "--overlap-param-gather", ""));
  CHECK_FALSE(says(muon, "--overlap-grad-reduce", ""));
  CHECK(says(flags_of("megatron-core", {.dp = 4}), "--overlap-grad-reduce", ""));
  CHECK(says(flags_of("nemo", {.dp = 4, .optimizer = Optimizer::muon}), "ddp.overlap_grad_reduce",
             "false"));
  CHECK(mentions(muon, "zero"));

  const LaunchFlags sharded = flags_of("megatron-core", {.dp = 4, .zero_stage = 3});
  CHECK(says(sharded, "--use-distributed-optimizer", ""));

  // Less than all layers, without a pipeline.
  CHECK(says(flags_of("megatron-core", {.offload_activations = true}),
             "--cpu-offloading-num-layers", "15"));
  CHECK(lacks(flags_of("megatron-core", {.pp = 4, .offload_activations = true}), "offload"));

  const LaunchFlags half =
      flags_of("megatron-core", {.dp = 4, .ep = 4, .precision = PrecisionRecipe::fp16}, true);
  CHECK_FALSE(says(half, "--moe-grouped-gemm", ""));
  CHECK(notes(half.missing, "expert parallelism in FP16"));
  CHECK(lacks(flags_of("megatron-core", {.tp = 2, .dp = 4, .sequence_parallel = false}, true),
              "sequence_parallel"));
}

TEST_CASE("Muon's gradients show where its program refuses to overlap them") {
  const Layout muon{.dp = 4, .optimizer = Optimizer::muon}, adam{.dp = 4};
  for (const char* name : {"megatron-core", "megatron-core-plain", "nemo"}) {
    INFO(name);
    Stack stack = stack_of(name);
    stack.communication.gradient_overlap = stack.communication.parameter_overlap = true;
    CHECK_FALSE(overlaps_gradients(stack, muon));
    CHECK_FALSE(overlaps_parameters(stack, muon));
    CHECK(overlaps_gradients(stack, adam));
    CHECK(overlaps_parameters(stack, adam));
  }
  CHECK(overlaps_gradients(stack_of("pytorch-fsdp2"), muon));
}

TEST_CASE("delayed scaling refuses modules that keep no output") {
  const auto again = [](const char* stack, PrecisionRecipe precision, RecomputeModule module) {
    return flags_of(stack,
                    {.dp = 4,
                     .recompute = Recompute::selective,
                     .recompute_modules = {module},
                     .precision = precision},
                    true);
  };
  using enum PrecisionRecipe;
  for (const char* stack : {"megatron-core", "nemo"}) {
    INFO(stack);
    CHECK(lacks(again(stack, fp8_delayed, RecomputeModule::layernorm), "recompute"));
    CHECK(lacks(again(stack, fp8_delayed, RecomputeModule::moe_act), "recompute"));
    CHECK_FALSE(lacks(again(stack, fp8_delayed, RecomputeModule::moe), "recompute"));
    CHECK_FALSE(lacks(again(stack, fp8_current, RecomputeModule::moe_act), "recompute"));
  }
}

TEST_CASE("NeMo: gradients are reduced in the format that was predicted") {
  // Presets overwrite what ddp says.
  const LaunchFlags bridge = flags_of("nemo@26.04", {.dp = 4});
  CHECK(says(bridge, "mixed_precision", "bf16_mixed"));
  CHECK(notes(bridge.missing, "cfg.mixed_precision.grad_reduce_in_fp32 = False"));
  const Layout half{.dp = 4, .precision = PrecisionRecipe::fp16};
  CHECK_FALSE(notes(flags_of("nemo@26.04", half).missing, "grad_reduce_in_fp32"));
  const std::string recipe = flags_of("nemo@25.05", {.dp = 4}).text;
  const auto plugin = recipe.find("recipe.trainer.plugins = bf16_mixed()");
  const auto format = recipe.find("recipe.trainer.plugins.grad_reduce_in_fp32 = False");
  REQUIRE(plugin != std::string::npos);
  REQUIRE(format != std::string::npos);
  CHECK(plugin < format);
  CHECK(says(flags_of("nemo@24.07", {.dp = 4}), "model.optim.grad_sync_dtype", "bf16"));
}

TEST_CASE("models with Mamba layers have a program and a pattern of their own") {
  const Model model = load_model("nemotron-h-8b", data_root() / "workloads/catalog/models");
  const auto on = [&](const char* stack, const Layout& layout) {
    return flags_on("h100-sxm", Architecture::hopper, stack, layout, model);
  };
  const LaunchFlags plain = on("megatron-core", {.pp = 2, .dp = 4});
  CHECK(plain.program.find("pretrain_mamba.py") != std::string::npos);
  CHECK(plain.text.find("--hybrid-override-pattern 'M-M-") != std::string::npos);
  CHECK(plain.text.find("--spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec") !=
        std::string::npos);
  const std::string& text = plain.text;
  const auto from = text.find("'M-") + 1, to = text.find('\'', from);
  CHECK(static_cast<std::int64_t>(to - from) == model.layer_count());
  CHECK_FALSE(lacks(plain, "vpp"));
  for (const char* stack : {"megatron-core", "nemo"}) {
    INFO(stack);
    CHECK(lacks(on(stack, {.pp = 2, .vpp = 2, .schedule = Schedule::interleaved}), "vpp"));
    CHECK(lacks(on(stack, {.pp = 2, .stage_layers = {25, 27}}), "stage_layers"));
    CHECK_FALSE(lacks(on(stack, {.pp = 2}), "stage_layers"));
  }
  CHECK(notes(on("megatron-core@0.6", {.dp = 4}).missing, "this pattern of layers"));
  CHECK(on("nemo", {.pp = 2}).text.find("hybrid") == std::string::npos);
  CHECK(flags_of("megatron-core", {.dp = 4}).program.find("pretrain_gpt.py") != std::string::npos);
}

TEST_CASE("TorchTitan: context ranks are part of the group that shards") {
  const auto degree = [](const Layout& layout, const char* name) {
    const LaunchFlags f = flags_of("pytorch-fsdp2", layout);
    for (const LaunchFlag& flag : f.flags)
      if (flag.name == std::string("parallelism.data_parallel_") + name) return flag.value;
    return std::string();
  };
  const Layout groups{.dp = 8, .cp = 2, .zero_stage = 3, .shard_group = 8};
  CHECK(degree(groups, "shard_degree") == "4");
  CHECK(degree(groups, "replicate_degree") == "2");
  const Layout all{.dp = 8, .cp = 2, .zero_stage = 3, .shard_group = 16};
  CHECK(degree(all, "shard_degree") == "8");
  CHECK(degree(all, "replicate_degree") == "1");
  const Layout as_many_as_dp{.dp = 8, .cp = 2, .zero_stage = 3, .shard_group = 8};
  CHECK_FALSE(lacks(flags_of("pytorch-fsdp2", as_many_as_dp), "shard_group"));
  const Layout across{.dp = 8, .cp = 4, .zero_stage = 3, .shard_group = 2};
  CHECK(lacks(flags_of("pytorch-fsdp2", across), "shard_group"));
  CHECK(lacks(flags_of("pytorch-fsdp2", {.dp = 4, .cp = 2, .zero_stage = 0}), "zero"));
}

TEST_CASE("TorchTitan: DeepEP with expert ranks, and with whole experts") {
  const auto titan = [](const Layout& layout) { return flags_of("pytorch-fsdp2", layout, true); };
  const auto deep = [](const LaunchFlags& f) {
    return f.text.find("expert_parallel_comm_backend") != std::string::npos;
  };
  CHECK(deep(titan({.dp = 8, .ep = 8, .zero_stage = 3})));
  CHECK_FALSE(deep(titan({.dp = 8, .zero_stage = 3})));
  const LaunchFlags split = titan({.tp = 2, .dp = 8, .ep = 4, .etp = 2, .zero_stage = 3});
  CHECK_FALSE(deep(split));
  CHECK(lacks(split, "etp"));
  CHECK(lacks(titan({.tp = 2, .dp = 4, .etp = 1, .zero_stage = 3}), "etp"));
}

TEST_CASE("Megatron-LM: CUDA graphs are printed where they run") {
  const auto graphed = [](const Layout& layout) {
    return says(flags_of("megatron-core@0.15", layout), "--cuda-graph-impl", "transformer_engine");
  };
  const auto selective = [](RecomputeModule m) {
    return Layout{.recompute = Recompute::selective, .recompute_modules = {m}};
  };
  CHECK(graphed({}));
  CHECK(graphed(selective(RecomputeModule::layernorm)));
  CHECK_FALSE(graphed({.recompute = Recompute::full}));
  CHECK_FALSE(graphed(selective(RecomputeModule::mla_up_proj)));
  CHECK_FALSE(graphed(selective(RecomputeModule::core_attn)));
  CHECK_FALSE(graphed({.offload_activations = true}));
  // A graph of the whole step holds no recompute; the prediction had the graph.
  Stack whole = stack_of("megatron-core@0.15");
  whole.host.launch = LaunchMode::full_graph;
  const LaunchFlags refused = launch_flags({.recompute = Recompute::full}, small_dense_model(),
                                           small_job(4096, 256), whole);
  CHECK(refused.text.find("cuda-graph") == std::string::npos);
  CHECK(notes(refused.missing, "CUDA graphs"));
}

TEST_CASE("what a device refuses is not printed for it") {
  using enum Architecture;
  const Layout wide{.tp = 2, .dp = 8, .ep = 8, .etp = 1};
  Model model = small_expert_model();
  const auto on = [&](const char* device, Architecture a, const char* stack) {
    return flags_on(device, a, stack, wide, model);
  };
  // The published recipes on GB200 run HybridEP.
  const LaunchFlags rack = on("gb200", blackwell, "nemo@26.04");
  CHECK(says(rack, "model.moe_token_dispatcher_type", "flex"));
  CHECK(says(rack, "model.moe_flex_dispatcher_backend", "hybridep"));
  const LaunchFlags boxes = on("h100-sxm", Architecture::hopper, "nemo@26.04");
  CHECK(says(boxes, "model.moe_token_dispatcher_type", "alltoall"));

  model.family = "deepseek-v3";
  CHECK(says(on("h100-sxm", Architecture::hopper, "megatron-core"), "--moe-enable-deepep", ""));
  CHECK(says(on("b200-sxm", blackwell, "megatron-core"), "--moe-enable-deepep", ""));
  const LaunchFlags refused = on("gb200", blackwell, "megatron-core@0.15");
  CHECK_FALSE(says(refused, "--moe-enable-deepep", ""));
  CHECK(says(refused, "--moe-token-dispatcher-type", "alltoall"));
  CHECK(notes(refused.missing, "HybridEP"));
  Stack next = load_stack("megatron-core", {.family = model.family, .moe = true},
                          data_root() / "workloads/catalog/stacks");
  next.flags_release = "0.16";
  const LaunchFlags later =
      launch_flags(wide, model, small_job(4096, 256), next, launch_device(load_device("gb300")));
  CHECK(says(later, "--moe-flex-dispatcher-backend", "hybridep"));
  CHECK(notes(later.implied, "HybridEP, not DeepEP"));

  // Attention in a graph beside its own recompute is refused: recipes capture the router.
  Layout again = wide;
  again.recompute = Recompute::selective;
  again.recompute_modules = {RecomputeModule::mla_up_proj};
  model.family = "kimi-k2";
  const LaunchFlags router = flags_on("gb200", blackwell, "nemo@26.02.01", again, model);
  CHECK(says(router, "model.cuda_graph_scope", "'[moe_router,moe_preprocess]'"));

  const Model dense = small_dense_model();
  const Layout split{.tp = 2, .cp = 2};
  CHECK(flags_on("gb200", blackwell, "megatron-core", split, dense).environment.empty());
  CHECK(flags_on("h100-sxm", Architecture::hopper, "megatron-core", split, dense)
            .environment.size() == 1);
}

TEST_CASE("FSDP2 is told to keep what the prediction keeps") {
  const auto policy = [](const Layout& layout) {
    const LaunchFlags f = flags_of("pytorch-fsdp2", layout);
    for (const LaunchFlag& flag : f.flags)
      if (flag.name == "parallelism.fsdp_reshard_after_forward") return flag.value;
    return std::string();
  };
  CHECK(policy({.dp = 8, .zero_stage = 3}) == "\"always\"");
  CHECK(policy({.pp = 2, .dp = 8, .zero_stage = 3}) == "\"never\"");
  // One microbatch a step: nothing is kept for the next.
  CHECK(policy({.pp = 2, .dp = 8, .micro_batch = 32, .zero_stage = 3}) == "\"always\"");
  CHECK(policy({.dp = 8, .zero_stage = 2}) == "\"never\"");
}

TEST_CASE("AutoModel: sections by release, batches of the pipeline, silence at one replica") {
  const Layout piped{.pp = 2, .dp = 8, .ep = 8, .zero_stage = 3};
  const LaunchFlags first = flags_of("automodel@26.02", piped, true);
  CHECK(says(first, "autopipeline.pp_schedule", "1f1b"));
  CHECK(says(first, "model.backend.enable_deepep", "true"));
  CHECK(says(first, "parallelizer.reshard_after_forward", "false"));
  // The benchmarks' pipelines run 8 microbatches at a time of 32.
  CHECK(says(first, "step_scheduler.local_batch_size", "8"));
  const LaunchFlags later = flags_of("automodel@26.06", piped, true);
  CHECK(says(later, "distributed.pipeline.pp_schedule", "1f1b"));
  CHECK(says(later, "distributed.moe.reshard_after_forward", "false"));
  CHECK(says(later, "model.backend.dispatcher", "deepep"));
  for (const char* gone : {"autopipeline", "parallelizer", "enable_deepep"}) {
    INFO(gone << " in\n" << later.text);
    CHECK(later.text.find(gone) == std::string::npos);
  }
  CHECK(later.text.find("distributed:\n  strategy: fsdp2\n") != std::string::npos);
  // The old switch would choose other experts' kernels than FP8 needs.
  Layout fp8 = piped;
  fp8.precision = PrecisionRecipe::fp8_current;
  const LaunchFlags te = flags_of("automodel@26.02", fp8, true);
  CHECK(says(te, "model.backend.experts", "te"));
  CHECK(says(te, "model.backend.dispatcher", "deepep"));
  CHECK(te.text.find("enable_deepep") == std::string::npos);
  CHECK(says(
      flags_on("gb200", Architecture::blackwell, "automodel@26.06", piped, small_expert_model()),
      "model.backend.dispatcher", "hybridep"));

  CHECK_FALSE(mentions(flags_of("automodel", {.tp = 8, .zero_stage = 0}), "zero"));
  CHECK(lacks(flags_of("automodel", {.dp = 8, .zero_stage = 0}), "zero"));
}

TEST_CASE("DeepSpeed: sizes of the model's own code are said with where they are set") {
  const LaunchFlags f = flags_of("deepspeed-zero@0.10", {.tp = 4, .pp = 2, .dp = 2});
  CHECK(notes(f.missing, "--tensor-model-parallel-size 4 of Megatron-DeepSpeed"));
  CHECK(notes(f.missing, "num_stages=2"));
}

}  // namespace
}  // namespace orrery
