// SPDX-License-Identifier: Apache-2.0
// Tests that launch flags say every decision of a layout, in the words of each program.
#include "sim/launch/flags.h"
#include "sim/base/json/tree.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "tests/launch/launch_questions.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

// For each key a layout in which it is not the default and has an effect.
std::vector<std::pair<std::string, Layout>> one_decision_each() {
  const std::vector<std::int64_t> uneven = {3, 5, 5, 3};
  return {
      {"tp", {.tp = 4}},
      {"pp", {.pp = 4}},
      {"vpp", {.pp = 4, .vpp = 2, .schedule = Schedule::interleaved}},
      {"cp", {.cp = 2}},
      {"ep", {.dp = 8, .ep = 8}},
      {"etp", {.tp = 2, .dp = 8, .ep = 4, .etp = 2}},
      {"micro_batch", {.pp = 4, .micro_batch = 2}},
      {"sequence_parallel", {.tp = 4, .sequence_parallel = false}},
      {"zero", {.dp = 4, .zero_stage = 0}},
      {"zero", {.dp = 4, .zero_stage = 2}},
      {"zero", {.dp = 4, .zero_stage = 3}},
      {"shard_group", {.dp = 16, .zero_stage = 3, .shard_group = 8}},
      {"schedule", {.pp = 4, .schedule = Schedule::gpipe}},
      {"schedule", {.pp = 4, .vpp = 2, .schedule = Schedule::zero_bubble_v}},
      {"schedule", {.pp = 4, .schedule = Schedule::zero_bubble}},
      {"recompute", {.recompute = Recompute::full}},
      {"recompute",
       {.recompute = Recompute::selective, .recompute_modules = {RecomputeModule::mlp}}},
      {"recompute_layers", {.recompute = Recompute::full, .recompute_layers = 2}},
      {"precision", {.precision = PrecisionRecipe::fp16}},
      {"precision", {.precision = PrecisionRecipe::fp8_delayed}},
      {"precision", {.precision = PrecisionRecipe::fp8_current}},
      {"precision", {.precision = PrecisionRecipe::fp8_blockwise}},
      {"precision", {.precision = PrecisionRecipe::mxfp8}},
      {"precision", {.precision = PrecisionRecipe::nvfp4}},
      {"optimizer", {.optimizer = Optimizer::adam_bf16}},
      {"optimizer", {.optimizer = Optimizer::adam_bf16_moments}},
      {"optimizer", {.optimizer = Optimizer::adam_8bit}},
      {"optimizer", {.optimizer = Optimizer::muon}},
      {"optimizer", {.optimizer = Optimizer::sgd}},
      {"context_parallel", {.cp = 2, .context = ContextKind::all_to_all}},
      {"context_inner", {.cp = 4, .context = ContextKind::hierarchical, .context_inner = 2}},
      {"offload", {.offload_optimizer = true}},
      {"optimizer_offload_fraction",
       {.offload_optimizer = true, .optimizer_offload_fraction = 0.5}},
      {"offload", {.offload_weights = true}},
      {"offload", {.offload_activations = true}},
      {"stage_layers", {.pp = 4, .stage_layers = uneven}},
      {"rank_order",
       {.pp = 4,
        .dp = 2,
        .rank_order = RankOrder({Parallel::tp, Parallel::cp, Parallel::pp, Parallel::dp})}},
      {"per_domain", {.dp = 16, .per_domain = 4}},
      {"bucket", {.dp = 4, .bucket = Bytes(1.6e8)}},
  };
}

const std::vector<const char*> programs = {"megatron-core",
                                           "megatron-core@0.6",
                                           "megatron-core@0.2",
                                           "megatron-core-plain",
                                           "nemo@26.04",
                                           "nemo@25.05",
                                           "nemo@23.04",
                                           "pytorch-fsdp2",
                                           "pytorch-fsdp2@0.1",
                                           "automodel",
                                           "nanotron",
                                           "nanotron-debug",
                                           "megatron-deepspeed",
                                           "deepspeed-zero@0.10",
                                           "primus",
                                           "maxtext",
                                           "neuronx-distributed",
                                           "megatron-lm-gaudi",
                                           "megatron-lm-rocm"};

TEST_CASE("every decision is said by a flag or named as missing") {
  for (const char* program : programs)
    for (const auto& [key, layout] : one_decision_each()) {
      const bool moe = key == "ep" || key == "etp";
      const LaunchFlags f = flags_of(program, layout, moe);
      INFO(program << ": " << key << " of " << to_text(layout) << "\n" << f.text);
      // Hierarchies are lost with the kind that has them.
      CHECK((mentions(f, key) || (key == "context_inner" && lacks(f, "context_parallel")) ||
             (key == "context_inner" && lacks(f, "cp"))));
      for (const FlagNote& m : f.missing) CHECK(m.sentence.back() == '.');
    }
}

TEST_CASE("all keys of layouts are tried") {
  for (const std::string& key : layout_keys()) {
    if (key == "dp") continue;               // what the others leave
    if (key == "expert_replicas") continue;  // of inference, which no flags here start
    const auto all = one_decision_each();
    INFO(key);
    CHECK(std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.first == key; }));
  }
}

TEST_CASE("sources of flags are in the catalogue, and texts are whole") {
  const auto sources = load_sources();
  for (const char* program : programs) {
    const LaunchFlags f = flags_of(program, {.tp = 2, .pp = 2, .dp = 4});
    INFO(program);
    CHECK_FALSE(f.program.empty());
    CHECK_FALSE(f.flags.empty());
    CHECK_FALSE(f.note.empty());
    CHECK_FALSE(f.sources.empty());
    for (const std::string& id : f.sources) CHECK(sources.count(id) == 1);
    for (const LaunchFlag& flag : f.flags) {
      const std::string last = flag.name.substr(flag.name.find_last_of(". ") + 1);
      CHECK(f.text.find(last) != std::string::npos);
    }
  }
  const LaunchFlags hai = flags_of("hai-llm", {.dp = 4});
  CHECK(hai.flags.empty());
  CHECK(hai.note == "HAI-LLM has no flags to paste: it is not published.");
  CHECK(flags_of("transformers", {.dp = 4}).text.empty());
}

TEST_CASE("Megatron-LM: a whole command line") {
  const LaunchFlags f = flags_of("megatron-core", {.tp = 8,
                                                   .pp = 4,
                                                   .vpp = 2,
                                                   .dp = 2,
                                                   .cp = 2,
                                                   .micro_batch = 2,
                                                   .schedule = Schedule::interleaved,
                                                   .recompute = Recompute::full,
                                                   .recompute_layers = 1,
                                                   .context = ContextKind::all_gather});
  CHECK(f.language == "sh");
  CHECK(f.missing.empty());
  CHECK(f.environment == std::vector<std::string>{"CUDA_DEVICE_MAX_CONNECTIONS=1"});
  CHECK(f.text.find("# 128 accelerators") == 0);
  for (const char* line :
       {"--tensor-model-parallel-size 8 \\\n", "--sequence-parallel \\\n",
        "--pipeline-model-parallel-size 4 \\\n", "--context-parallel-size 2 \\\n",
        "--cp-comm-type allgather \\\n", "--num-virtual-stages-per-pipeline-rank 2 \\\n",
        "--micro-batch-size 2 \\\n", "--global-batch-size 256 \\\n", "--seq-length 4096 \\\n",
        "--bf16 \\\n", "--use-distributed-optimizer \\\n", "--recompute-granularity full \\\n",
        "--recompute-method block \\\n", "--recompute-num-layers 1 \\\n",
        "--overlap-grad-reduce \\\n", "--overlap-param-gather \\\n"}) {
    INFO(line << "in\n" << f.text);
    CHECK(f.text.find(line) != std::string::npos);
  }
}

TEST_CASE("Megatron-LM: stages, ranks, buckets and experts") {
  const LaunchFlags ends = flags_of("megatron-core", {.pp = 4, .stage_layers = {3, 5, 5, 3}});
  CHECK(says(ends, "--decoder-first-pipeline-num-layers", "3"));
  CHECK(says(ends, "--decoder-last-pipeline-num-layers", "3"));
  const LaunchFlags any = flags_of("megatron-core", {.pp = 4, .stage_layers = {3, 4, 8, 1}});
  CHECK(says(any, "--pipeline-model-parallel-layout", "'Et*3|t*4|t*8|tL'"));
  // Chunks follow from an explicit layout, and Megatron-LM refuses both.
  const LaunchFlags chunks = flags_of("megatron-core", {.pp = 4,
                                                        .vpp = 2,
                                                        .schedule = Schedule::interleaved,
                                                        .stage_layers = {1, 2, 2, 2, 2, 2, 2, 3}});
  CHECK(says(chunks, "--pipeline-model-parallel-layout", "'Et|(t*2|)*6t*3L'"));
  CHECK(chunks.text.find("--num-virtual-stages") == std::string::npos);
  CHECK(mentions(chunks, "vpp"));
  CHECK(lacks(flags_of("megatron-core@0.6", {.pp = 4, .stage_layers = {3, 4, 8, 1}}),
              "stage_layers"));
  // 16 layers do not divide over 3 stages.
  CHECK(says(flags_of("megatron-core", {.pp = 3}), "--decoder-first-pipeline-num-layers", "6"));

  using enum Parallel;
  Layout inside{.tp = 2, .pp = 2, .dp = 2};
  inside.rank_order = RankOrder({tp, cp, pp, dp});
  CHECK(says(flags_of("megatron-core", inside), "--use-tp-pp-dp-mapping", ""));
  inside.rank_order = RankOrder({pp, tp, cp, dp});
  CHECK(lacks(flags_of("megatron-core", inside), "rank_order"));

  // In elements of fp32 gradients.
  CHECK(says(flags_of("megatron-core", {.dp = 4, .bucket = Bytes(1.6e8)}), "--ddp-bucket-size",
             "40000000"));

  const Layout wide{.tp = 2, .dp = 8, .ep = 8, .etp = 1};
  const LaunchFlags moe = flags_of("megatron-core", wide, true);
  CHECK(says(moe, "--expert-model-parallel-size", "8"));
  CHECK(says(moe, "--expert-tensor-parallel-size", "1"));
  CHECK(says(moe, "--moe-token-dispatcher-type", "alltoall"));
  CHECK(says(moe, "--moe-grouped-gemm", ""));
  // An expert tensor size that the release cannot say.
  CHECK(lacks(flags_of("megatron-core@0.6", wide, true), "etp"));

  const LaunchFlags moments =
      flags_of("megatron-core", {.optimizer = Optimizer::adam_bf16_moments});
  CHECK(says(moments, "--exp-avg-dtype", "bf16"));
  const LaunchFlags mx = flags_of("megatron-core", {.precision = PrecisionRecipe::mxfp8});
  CHECK(says(mx, "--fp8-recipe", "mxfp8"));
  const LaunchFlags modules = flags_of(
      "megatron-core", {.recompute = Recompute::selective,
                        .recompute_modules = {RecomputeModule::mlp, RecomputeModule::layernorm}});
  CHECK(says(modules, "--recompute-modules", "mlp layernorm"));
  const LaunchFlags levels = flags_of(
      "megatron-core", {.cp = 8, .context = ContextKind::hierarchical, .context_inner = 4});
  CHECK(says(levels, "--cp-comm-type", "'a2a+p2p'") + says(levels, "--cp-comm-type", "a2a+p2p") ==
        1);
  CHECK(says(levels, "--hierarchical-context-parallel-sizes", "4 2"));
}

TEST_CASE("Megatron-LM: a release is told only what it knows") {
  // ZeRO-3 had another name before 0.14, and no checkpoint format of its own.
  const Layout sharded{.dp = 8, .zero_stage = 3};
  for (const char* release : {"megatron-core@0.12", "megatron-core@0.13"}) {
    INFO(release);
    const LaunchFlags old = flags_of(release, sharded);
    CHECK(says(old, "--use-custom-fsdp", ""));
    CHECK(says(old, "--data-parallel-sharding-strategy", "optim_grads_params"));
    CHECK(old.text.find("fsdp_dtensor") == std::string::npos);
    CHECK_FALSE(lacks(old, "zero"));
  }
  CHECK(says(flags_of("megatron-core@0.14", sharded), "--use-megatron-fsdp", ""));
  CHECK(lacks(flags_of("megatron-core@0.11", sharded), "zero"));
  // Scaling by blocks and BF16 moments came with 0.13, other recipes and FP8 moments before.
  const Layout blocks{.precision = PrecisionRecipe::fp8_blockwise};
  CHECK(lacks(flags_of("megatron-core@0.12", blocks), "precision"));
  CHECK(says(flags_of("megatron-core@0.13", blocks), "--fp8-recipe", "blockwise"));
  const Layout tensors{.precision = PrecisionRecipe::fp8_current};
  CHECK(says(flags_of("megatron-core@0.12", tensors), "--fp8-recipe", "tensorwise"));
  const Layout moments{.optimizer = Optimizer::adam_bf16_moments};
  CHECK(lacks(flags_of("megatron-core@0.12", moments), "optimizer"));
  CHECK(says(flags_of("megatron-core@0.13", moments), "--exp-avg-dtype", "bf16"));
  CHECK(says(flags_of("megatron-core@0.12", {.optimizer = Optimizer::adam_8bit}), "--exp-avg-dtype",
             "fp8"));
  // Graphs of the training loop had a flag of their own before 0.15.
  const auto graphed = [](const char* release, LaunchMode mode) {
    Stack stack = stack_of(release);
    stack.host.launch = mode;
    return launch_flags({}, small_dense_model(), small_job(4096, 256), stack);
  };
  const LaunchFlags loop = graphed("megatron-core@0.12", LaunchMode::scoped_graph);
  CHECK(says(loop, "--external-cuda-graph", ""));
  CHECK(says(loop, "--cuda-graph-scope", "attn"));
  CHECK(lacks(graphed("megatron-core@0.12", LaunchMode::full_graph), ""));
  const LaunchFlags step = graphed("megatron-core@0.14", LaunchMode::full_graph);
  CHECK(says(step, "--enable-cuda-graph", ""));
  CHECK(says(step, "--cuda-graph-scope", "full_iteration"));
  CHECK(says(graphed("megatron-core@0.15", LaunchMode::scoped_graph), "--cuda-graph-impl",
             "transformer_engine"));
}

TEST_CASE("NeMo speaks three languages, by release") {
  const Layout layout{.tp = 4, .pp = 2, .dp = 4, .precision = PrecisionRecipe::fp8_delayed};
  const LaunchFlags bridge = flags_of("nemo@26.04", layout);
  CHECK(bridge.language == "sh");
  CHECK(bridge.text.find("model.tensor_model_parallel_size=4 \\\n") != std::string::npos);
  CHECK(says(bridge, "mixed_precision", "bf16_with_fp8_delayed_scaling_mixed"));
  CHECK(says(bridge, "train.micro_batch_size", "1"));
  CHECK(says(bridge, "model.recompute_granularity", "null"));
  const LaunchFlags python = flags_of("nemo@25.05", layout);
  CHECK(python.language == "python");
  CHECK(python.text.find("recipe.trainer.strategy.tensor_model_parallel_size = 4\n") !=
        std::string::npos);
  CHECK(python.text.find("recipe.trainer.strategy.sequence_parallel = True\n") !=
        std::string::npos);
  CHECK(says(python, "recipe.trainer.plugins", "bf16_with_fp8_mixed()"));
  const LaunchFlags first = flags_of("nemo@23.04", layout);
  CHECK(says(first, "model.tensor_model_parallel_size", "4"));
  CHECK(says(first, "model.fp8", "true"));
}

TEST_CASE("TorchTitan, AutoModel and nanotron: files of settings") {
  const LaunchFlags titan =
      flags_of("pytorch-fsdp2", {.tp = 4, .pp = 2, .dp = 8, .micro_batch = 2, .zero_stage = 3});
  CHECK(titan.language == "toml");
  CHECK(titan.text.find("[parallelism]\n") != std::string::npos);
  CHECK(titan.text.find("tensor_parallel_degree = 4\n") != std::string::npos);
  CHECK(titan.text.find("data_parallel_shard_degree = 8\n") != std::string::npos);
  CHECK(titan.text.find("pipeline_parallel_schedule = \"1F1B\"\n") != std::string::npos);
  // 256 sequences over 8 ranks all pass the pipeline in one step.
  CHECK(says(titan, "training.local_batch_size", "32"));
  CHECK(says(titan, "parallelism.pipeline_parallel_microbatch_size", "2"));
  const LaunchFlags hybrid =
      flags_of("pytorch-fsdp2", {.dp = 16, .zero_stage = 3, .shard_group = 8});
  CHECK(says(hybrid, "parallelism.data_parallel_replicate_degree", "2"));
  CHECK(says(hybrid, "parallelism.data_parallel_shard_degree", "8"));
  CHECK(titan.text.find("[parallelism]") == titan.text.rfind("[parallelism]"));

  const LaunchFlags uneven =
      flags_of("pytorch-fsdp2", {.pp = 2, .zero_stage = 3, .stage_layers = {15, 1}});
  CHECK(uneven.text.find("[\"layers.15\", \"norm\", \"output\"]]") != std::string::npos);

  const LaunchFlags automodel = flags_of("automodel", {.dp = 16, .ep = 8, .zero_stage = 3}, true);
  CHECK(automodel.text.find("distributed:\n  strategy: fsdp2\n  tp_size: 1\n") !=
        std::string::npos);
  CHECK(automodel.text.find("  ep_size: 8\n") != std::string::npos);

  const LaunchFlags nano = flags_of("nanotron", {.tp = 4, .pp = 2, .dp = 2});
  CHECK(nano.text.find("parallelism:\n  dp: 2\n  tp: 4\n  pp: 2\n  pp_engine: 1f1b\n") !=
        std::string::npos);
  CHECK(says(nano, "tokens.batch_accumulation_per_replica", "128"));
  CHECK(flags_of("nanotron-debug", {.dp = 2}).note.find("TORCH_DISTRIBUTED_DEBUG") !=
        std::string::npos);
}

TEST_CASE("DeepSpeed: a file that parses") {
  const LaunchFlags f = flags_of(
      "deepspeed-zero@0.10",
      {.dp = 16, .micro_batch = 4, .zero_stage = 3, .shard_group = 8, .offload_optimizer = true});
  const SortedJson file = SortedJson::parse(f.text);
  CHECK(file.at("train_micro_batch_size_per_gpu") == 4);
  CHECK(file.at("gradient_accumulation_steps") == 4);
  CHECK(file.at("zero_optimization").at("stage") == 3);
  CHECK(file.at("zero_optimization").at("offload_optimizer").at("device") == "cpu");
  CHECK(file.at("zero_optimization").at("zero_hpz_partition_size") == 8);
  const LaunchFlags megatron = flags_of("megatron-deepspeed", {.tp = 4, .pp = 2, .dp = 2});
  CHECK(megatron.text.find("cat > ds_config.json <<'EOF'\n{") == 0);
  CHECK(megatron.text.find("--deepspeed_config ds_config.json") != std::string::npos);
}

}  // namespace
}  // namespace orrery
