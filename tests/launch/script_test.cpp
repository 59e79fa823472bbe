// SPDX-License-Identifier: Apache-2.0
// Tests that launch scripts start the layout: hosts, ranks, settings, the model's shape.
#include <catch2/catch.hpp>

#include "sim/launch/script/host_plan.h"
#include "sim/launch/script/program.h"
#include "sim/launch/script/shape.h"
#include "tests/launch/launch_questions.h"
#include "tests/launch/script_cases.h"

namespace orrery::test {
namespace {

HostPlan plan_on(const char* cluster, std::int64_t gpus, const Layout& layout) {
  return host_plan(scenario_of("megatron-core", cluster, gpus, small_expert_model(), layout));
}

TEST_CASE("hosts: whole ones, parts of one, and blocks of a rack") {
  const HostPlan whole = plan_on("dgx-h100", 1024, {.tp = 8, .pp = 16});
  CHECK(whole.hosts == 128);
  CHECK(whole.ranks == 8);
  CHECK(whole.last_ranks == 8);
  CHECK(whole.hosts_per_domain == 1);
  const HostPlan part = plan_on("dgx-h100", 4, {.tp = 2});
  CHECK(part.hosts == 1);
  CHECK(part.ranks == 4);
  CHECK(part.accelerators == 8);
  // Six of eight accelerators, and a last host with less.
  const HostPlan six = plan_on("dgx-h100", 16, {.per_domain = 6});
  CHECK(six.hosts == 3);
  CHECK(six.ranks == 6);
  CHECK(six.last_ranks == 4);
  // Groups of 64 take 16 of the 18 trays of a rack.
  const HostPlan rack = plan_on("gb200-nvl72", 576, {.ep = 64});
  CHECK(rack.hosts == 144);
  CHECK(rack.ranks == 4);
  CHECK(rack.hosts_per_domain == 16);
  CHECK(rack.domain_hosts == 18);
  // Six of a rack lie on two trays alike.
  const HostPlan few = plan_on("gb200-nvl72", 24, {.per_domain = 6});
  CHECK(few.ranks == 3);
  CHECK(few.hosts == 8);
  CHECK(few.hosts_per_domain == 2);
  // Hosts of several domains, each of one accelerator.
  const HostPlan apart = plan_on("l40s-8", 16, {});
  CHECK(apart.hosts == 2);
  CHECK(apart.ranks == 8);
  for (const HostPlan& p : {whole, part, six, rack, few, apart}) CHECK(p.last_ranks <= p.ranks);
}

TEST_CASE("a script says its hosts, its ranks and the last host's ranks") {
  const Scenario s =
      scenario_of("megatron-core", "dgx-h100", 16, small_dense_model(), {.per_domain = 6});
  const std::string slurm = slurm_of(s);
  CHECK(holds(slurm, "#SBATCH --nodes=3\n"));
  CHECK(holds(slurm, "#SBATCH --gpus-per-node=8\n"));
  CHECK(holds(slurm, "ranks=6\nif [ \"$SLURM_NODEID\" -eq 2 ]; then ranks=4; fi\n"));
  const std::string manifest = kubernetes_of(s);
  CHECK(holds(manifest, "  completions: 3\n"));
  CHECK(holds(manifest, "nvidia.com/gpu: 8\n"));
  CHECK(holds(manifest, "if [ \"$JOB_COMPLETION_INDEX\" -eq 2 ]; then ranks=4; fi\n"));
  const Scenario rack =
      scenario_of("nemo", "gb200-nvl72", 576, small_expert_model(), {.ep = 8, .per_domain = 64});
  CHECK(holds(slurm_of(rack), "--segment=16"));
  CHECK(holds(slurm_of(rack), "in such blocks, in order"));
  CHECK_FALSE(holds(slurm, "--segment"));
}

TEST_CASE("the head of a script says who made it, for what, and what is left") {
  Scenario s = scenario_of("megatron-core", "dgx-h100", 32, small_expert_model(),
                           {.tp = 2, .ep = 4, .sequence_parallel = false});
  s.model.name = "mine\nrm -rf /";
  const LaunchFlags flags = launch_flags(s);
  REQUIRE_FALSE(flags.missing.empty());
  for (const std::string& text : {slurm_of(s), kubernetes_of(s)}) {
    CHECK(holds(text, "# Made by orrery 0: mine rm -rf / on dgx-h100, 32 accelerators.\n"));
    CHECK(holds(text, "# Predicted: 12.5 s a step (90% range 11 to 14) of 1,024 sequences"));
    CHECK_FALSE(holds(text, "\nrm"));
    CHECK(holds(text, "# - Megatron-Core's expert layers refuse"));
  }
}

const std::vector<const char*> scripted = {
    "megatron-core",     "megatron-core@0.12", "nemo",    "nemo@25.05",      "pytorch-fsdp2",
    "pytorch-fsdp2@0.1", "deepspeed-zero",     "maxtext", "megatron-lm-rocm"};

const char* machine_of(const std::string& stack) {
  return stack.ends_with("rocm") ? "mi300x-8" : "dgx-h100";
}

TEST_CASE("every flag of a layout stands in its scripts") {
  const std::vector<Layout> layouts = {
      {.tp = 4, .pp = 2, .recompute = Recompute::full, .context = ContextKind::all_gather},
      {.tp = 2, .pp = 3, .zero_stage = 1},
      {.cp = 2, .zero_stage = 3, .precision = PrecisionRecipe::fp8_current},
      {.pp = 4,
       .vpp = 2,
       .schedule = Schedule::interleaved,
       .stage_layers = {1, 2, 2, 2, 2, 2, 2, 3}},
  };
  for (const char* stack : scripted)
    for (const Layout& layout : layouts) {
      const Scenario s = scenario_of(stack, machine_of(stack), 48, small_dense_model(), layout);
      const LaunchFlags flags = launch_flags(s);
      INFO(stack << ": " << to_text(layout));
      for (const std::string& text : {slurm_of(s), kubernetes_of(s)}) {
        for (const LaunchFlag& flag : flags.flags) {
          INFO(flag.name << " " << flag.value);
          if (flag.name.starts_with("ici_")) continue;  // split between slices, below
          const std::string last = flag.name.substr(flag.name.find_last_of(". ") + 1);
          CHECK(holds(text, last));
          CHECK(holds(text, bare_value(flag.value)));
        }
        for (const std::string& setting : flags.environment)
          CHECK(holds(text, "export " + setting));
      }
    }
}

TEST_CASE("an override that Hydra would misread is quoted for it") {
  const Scenario s = scenario_of("nemo", "dgx-h100", 48, small_dense_model(), {.pp = 3});
  CHECK(holds(slurm_of(s), "'model.num_layers_in_first_pipeline_stage=6'") +
            holds(slurm_of(s), "'model.pipeline_model_parallel_layout=\"Et*6|t*5|t*5L\"'") ==
        1);
  const Scenario odd = scenario_of("nemo", "dgx-h100", 64, small_dense_model(),
                                   {.pp = 4, .stage_layers = {3, 4, 8, 1}});
  CHECK(holds(slurm_of(odd), "'model.pipeline_model_parallel_layout=\"Et*3|t*4|t*8|tL\"'"));
}

TEST_CASE("a recipe's own cuts of the pipeline are undone where the layout has none") {
  const std::string flat =
      slurm_of(scenario_of("nemo", "dgx-h100", 16, small_dense_model(), {.tp = 2}));
  CHECK(holds(flat, "'model.pipeline_model_parallel_layout=null'"));
  CHECK(holds(flat, "'model.virtual_pipeline_model_parallel_size=null'"));
  const Layout chunks{.pp = 4, .vpp = 2, .schedule = Schedule::interleaved};
  const std::string cut =
      slurm_of(scenario_of("nemo", "dgx-h100", 16, small_dense_model(), chunks));
  CHECK(holds(cut, "'model.virtual_pipeline_model_parallel_size=2'"));
  CHECK_FALSE(holds(cut, "virtual_pipeline_model_parallel_size=null"));
  const std::string python =
      slurm_of(scenario_of("nemo@25.05", "dgx-h100", 16, small_dense_model(), {.pp = 2}));
  CHECK(holds(python, "strategy.virtual_pipeline_model_parallel_size = None\n"));
}

TEST_CASE("MaxText: axes fill a host first, and hosts behind it") {
  const Model model = small_dense_model();
  const std::string text =
      slurm_of(scenario_of("maxtext", "dgx-h100", 64, model, {.tp = 2, .cp = 2, .zero_stage = 3}));
  for (const char* setting :
       {"'ici_tensor_parallelism=2'", "'dcn_tensor_parallelism=1'", "'ici_context_parallelism=2'",
        "'ici_fsdp_parallelism=2'", "'dcn_fsdp_parallelism=8'", "'hardware=gpu'",
        "'base_num_decoder_layers=16'", "'base_mlp_dim=14336'", "'decoder_block=llama2'"}) {
    INFO(setting);
    CHECK(holds(text, setting));
  }
  CHECK_FALSE(holds(text, "torchrun"));
  const std::string one =
      slurm_of(scenario_of("maxtext", "dgx-h100", 8, model, {.tp = 2, .zero_stage = 3}));
  CHECK(holds(one, "'ici_fsdp_parallelism=4'"));
  CHECK_FALSE(holds(one, "dcn_"));
  const Scenario pod = scenario_of("maxtext", "tpu-v5p", 64, model, {.tp = 2, .zero_stage = 3});
  CHECK(holds(kubernetes_of(pod), "'hardware=tpu'"));
  CHECK(holds(kubernetes_of(pod), "google.com/tpu: 4"));
  CHECK_FALSE(holds(kubernetes_of(pod), "dcn_"));
  CHECK(holds(no_slurm_reason(pod), "no generic resource of Slurm"));
  CHECK(no_kubernetes_reason(pod).empty());
}

TEST_CASE("a program without a script is refused by name") {
  const auto reason = [](const char* stack, const char* machine) {
    return no_slurm_reason(scenario_of(stack, machine, 8, small_dense_model(), {}));
  };
  CHECK(reason("megatron-core", "dgx-h100").empty());
  CHECK(reason("transformers", "dgx-h100") == "stack transformers, which no public program starts");
  CHECK(holds(reason("nanotron", "dgx-h100"), "stack nanotron, started by nanotron"));
  CHECK(holds(reason("nemo@24.03", "dgx-h100"), "started by nemo1"));
  Scenario decode = scenario_of("megatron-core", "dgx-h100", 8, small_dense_model(), {});
  decode.job.task = Task::decode;
  CHECK(no_kubernetes_reason(decode) == "phase decode");
}

TEST_CASE("fine-tuning says where its data and checkpoints come from") {
  for (const Task task : {Task::sft, Task::lora})
    for (const char* stack : {"megatron-core", "nemo", "nemo@25.05", "pytorch-fsdp2", "maxtext"}) {
      Scenario s = scenario_of(stack, "dgx-h100", 16, small_dense_model(), {});
      s.job.task = task;
      s.stack = catalogue_stack(stack, s.cluster, s.model, s.job, s.layout.precision);
      INFO(stack << " " << to_text(task) << "\n" << slurm_of(s));
      CHECK(holds(slurm_of(s), "checkpoint to start from") + holds(slurm_of(s), "fine-tuning") ==
            1);
    }
  Scenario lora = scenario_of("nemo", "dgx-h100", 16, small_dense_model(), {});
  lora.job.task = Task::lora;
  CHECK(holds(slurm_of(lora), "--peft_scheme lora"));
}

TEST_CASE("Megatron-LM: shapes of models") {
  const auto shape = [](const char* name) {
    const Model model = model_of(name);
    Job job;
    job.sequence = 4096;
    const ShapeFlags told = megatron_shape(model, job, stack_of("megatron-core"));
    LaunchFlags flags;
    flags.flags = told.flags;
    for (const std::string& sentence : told.missing) flags.missing.push_back({"", sentence});
    return flags;
  };
  const LaunchFlags llama = shape("llama3.1-405b");
  CHECK(says(llama, "--num-layers", "126"));
  CHECK(says(llama, "--hidden-size", "16384"));
  CHECK(says(llama, "--ffn-hidden-size", "53248"));
  CHECK(says(llama, "--num-query-groups", "8"));
  CHECK(says(llama, "--disable-bias-linear", ""));
  CHECK(says(llama, "--untie-embeddings-and-output-weights", ""));
  CHECK(llama.missing.empty());
  const LaunchFlags deepseek = shape("deepseek-v3");
  CHECK(says(deepseek, "--moe-layer-freq", "'([0]*3+[1]*58)'"));
  CHECK(says(deepseek, "--q-lora-rank", "1536"));
  CHECK(says(deepseek, "--qk-head-dim", "128"));
  CHECK(says(deepseek, "--qk-pos-emb-head-dim", "64"));
  CHECK(says(deepseek, "--moe-shared-expert-intermediate-size", "2048"));
  CHECK(says(shape("qwen2.5-7b"), "--add-qkv-bias", ""));
  CHECK(says(shape("qwen3-8b"), "--qk-layernorm", ""));
  const LaunchFlags gpt = shape("gpt3-175b");
  CHECK(says(gpt, "--normalization", "LayerNorm"));
  CHECK(says(gpt, "--position-embedding-type", "learned_absolute"));
  CHECK_FALSE(says(gpt, "--disable-bias-linear", ""));
  CHECK_FALSE(says(gpt, "--untie-embeddings-and-output-weights", ""));
  const LaunchFlags oss = shape("gpt-oss-20b");
  CHECK(says(oss, "--window-size", "'127,0'"));
  CHECK(says(oss, "--window-attn-skip-freq", "'([1]*1+[0]*1)*12'"));
  CHECK(says(oss, "--softmax-type", "learnable"));
  CHECK(says(shape("nemotron-h-8b"), "--mamba-state-dim", "128"));
  CHECK(notes(shape("gemma2-9b").missing, "norms behind attention"));
  CHECK(notes(shape("falcon-40b").missing, "side by side"));
  CHECK(notes(shape("bloom-176b").missing, "ALiBi"));
}

TEST_CASE("sources of scripts are in the catalogue") {
  const auto sources = load_sources();
  for (const char* stack : scripted) {
    const Scenario s = scenario_of(stack, machine_of(stack), 16, small_dense_model(), {});
    const LaunchProgram program = launch_program(s, launch_flags(s), host_plan(s));
    INFO(stack);
    CHECK_FALSE(program.sources.empty());
    for (const std::string& id : program.sources) CHECK(sources.count(id) == 1);
    CHECK(sources.count(s.cluster.device.software->scheduled_as->source) == 1);
  }
}

}  // namespace
}  // namespace orrery::test
