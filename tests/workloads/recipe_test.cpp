// SPDX-License-Identifier: Apache-2.0
// Holds recipes of expert models: settings by model and device, recompute of modules, fused
// experts.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "sim/base/json/json.h"
#include "tests/base/scratch_folder.h"
#include "workloads/model/model_catalog.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

Model catalog_model(const std::string& name) { return load_model(name, catalog("models")); }

Stack catalog_stack(const std::string& name, const StackContext& context) {
  return load_stack(name, context, catalog("stacks"));
}

const StackContext deepseek_gb300 = {.architecture = "blackwell-ultra",
                                     .device = "gb300",
                                     .model = "deepseek-v3",
                                     .family = "deepseek-v3",
                                     .precision = PrecisionRecipe::mxfp8,
                                     .moe = true};

// DeepSeek-V3 in the layout of 256 GB300.
struct Case {
  Model model = catalog_model("deepseek-v3");
  Job job = {.sequence = 4096, .global_batch = 4096};
  Layout layout = {.pp = 2,
                   .vpp = 8,
                   .dp = 128,
                   .ep = 32,
                   .schedule = Schedule::interleaved,
                   .precision = PrecisionRecipe::mxfp8};
  Stack stack = catalog_stack("nemo@26.02", deepseek_gb300);

  LayerProgram expert_layer() const {
    return LayerOperations(model, job, layout, stack).layer(model.classes.back());
  }
  void recompute(RecomputeModules modules) { layout.set({Recompute::selective, modules}); }
};

double count(const Segment& s, WorkKind kind) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (o.kernel() && o.kernel()->work.kind == kind) sum += o.count;
  return sum;
}

double traffic(const Segment& s, WorkKind kind) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (const Kernel* k = o.kernel(); k && k->work.kind == kind)
      sum += o.count * (k->work.bytes_read + k->work.bytes_written);
  return sum;
}

double waits(const Segment& s) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (const HostWait* wait = o.host_wait()) sum += o.count * wait->time.si();
  return sum;
}

}  // namespace

TEST_CASE("a recipe is chosen by release, model and device") {
  const Stack early = catalog_stack("nemo@26.02", deepseek_gb300);
  CHECK(early.defaults.mtp);
  CHECK(early.defaults.recompute_known);
  CHECK(early.defaults.recompute.recompute == Recompute::selective);
  CHECK(early.defaults.recompute.modules.has(RecomputeModule::mla_up_proj));
  CHECK(early.host.launch == LaunchMode::eager);
  const Stack late = catalog_stack("nemo@26.06", deepseek_gb300);
  CHECK(late.host.launch == LaunchMode::full_graph);
  CHECK(late.kernels.fused_expert_mlp);
  CHECK(late.defaults.recompute.recompute == Recompute::none);
  CHECK(late.kernels.attention_format == Format::fp8);
  StackContext other = deepseek_gb300;
  other.device = "gb200";
  CHECK(catalog_stack("nemo@26.02", other).host.launch == LaunchMode::scoped_graph);
  other.model = other.family = "nobody's";
  const Stack unknown = catalog_stack("nemo@26.02", other);
  CHECK_FALSE(unknown.defaults.recompute_known);
  CHECK_FALSE(unknown.defaults.mtp);
  other.moe = false;
  CHECK_FALSE(catalog_stack("nemo@26.06", other).kernels.fused_expert_mlp);
}

TEST_CASE("recipes choose optimizers and how context-parallel ranks exchange") {
  const Stack deepseek = catalog_stack("nemo@26.06", deepseek_gb300);
  CHECK(deepseek.defaults.optimizer == Optimizer::adam_bf16_moments);
  CHECK(deepseek.memory.master_remainders);
  StackContext llama{.architecture = "hopper",
                     .device = "h100-sxm",
                     .model = "llama2-70b",
                     .family = "llama2",
                     .task = Task::sft};
  CHECK(catalog_stack("nemo@24.07", llama).defaults.optimizer == Optimizer::adam_bf16);
  CHECK(catalog_stack("nemo@24.11", llama).defaults.optimizer == Optimizer::adam_fp32);
  CHECK(catalog_stack("nemo@26.04", llama).defaults.context == ContextKind::ring);
  llama.task = Task::lora;
  CHECK(catalog_stack("nemo@26.04", llama).defaults.context == ContextKind::all_to_all);
  llama.task = Task::pretrain;
  CHECK(catalog_stack("nemo@24.07", llama).defaults.optimizer == Optimizer::adam_fp32);
}

TEST_CASE("parts of a stack file are used by name") {
  const ScratchFolder folder("recipe");
  std::filesystem::copy_file(catalog("stacks") / "megatron-core.json",
                             folder / "megatron-core.json");
  const auto write = [&](const std::string& used) {
    folder.add("mine.json",
               R"({"name": "mine", "title": "Mine", "framework": "Mine",
                   "based_on": "megatron-core", "base": {},
                   "parts": {"graphs": {"launch": "full-graph"}},
                   "releases": [{"release": "1", "date": "2026-01", "changes": [], "when": [
                     {"device": "gb200", "use": [")" +
                   used + R"("], "set": {"default_mtp": true}}]}]})");
  };
  const std::filesystem::path files = folder / "";
  write("graphs");
  const Stack held = load_stack("mine", {.architecture = "blackwell", .device = "gb200"}, files);
  CHECK(held.host.launch == LaunchMode::full_graph);
  CHECK(held.defaults.mtp);
  const Stack other = load_stack("mine", {.architecture = "hopper", .device = "h100-sxm"}, files);
  CHECK(other.host.launch != LaunchMode::full_graph);
  write("grahps");
  CHECK_THROWS_AS(load_stack("mine", {.device = "gb200"}, files), Error);
  CHECK_THROWS_AS(load_stack("mine", {.device = "h100-sxm"}, files), Error);
}

TEST_CASE("a share of a stack file is at most 1") {
  const ScratchFolder folder("share");
  std::filesystem::copy_file(catalog("stacks") / "megatron-core.json",
                             folder / "megatron-core.json");
  const auto overlap = [&](const std::string& high) {
    folder.add("mine.json", R"({"name": "mine", "title": "Mine", "framework": "Mine",
                   "based_on": "megatron-core", "base": {"tensor_exposed": {"value": 0.5,
                     "low": 0, "high": )" +
                                high +
                                R"(, "evidence": "assumed", "reason": "a test"}},
                   "releases": [{"release": "1", "date": "2026-01", "changes": []}]})");
    return load_stack("mine", {}, folder / "").communication.tensor_exposed.high;
  };
  CHECK(overlap("1") == 1.0);
  CHECK_THROWS_WITH(overlap("1.5"), Catch::Contains("expected a share from 0 to 1"));
}

TEST_CASE("a feed-forward part runs again without its last product where that stops early") {
  const Model model = catalog_model("llama3-8b");
  const Job job = {.sequence = 4096, .global_batch = 64};
  Layout layout = {.dp = 8, .zero_stage = 3};
  layout.set({Recompute::selective, {RecomputeModule::mlp}});
  Stack stack = load_stack("megatron-core@0.12", {.architecture = "hopper"}, catalog("stacks"));
  const auto again = [&](bool stops_early) {
    stack.recompute.stops_early = stops_early;
    const LayerProgram layer =
        LayerOperations(model, job, layout, stack).layer(model.classes.front());
    double products = 0;
    for (const Operation& o : layer.backward.operations)
      if (o.label == Label::recompute && o.kernel()->work.kind == WorkKind::gemm)
        products += o.count;
    return products;
  };
  CHECK(again(false) == 2);  // into the feed-forward's width, and back
  CHECK(again(true) == 1);
}

TEST_CASE("selective recompute runs again what it names") {
  Case c;
  const Segment plain = c.expert_layer().backward;
  c.recompute({RecomputeModule::layernorm});
  CHECK(count(c.expert_layer().backward, WorkKind::norm) == count(plain, WorkKind::norm) + 2);
  c.recompute({RecomputeModule::mla_up_proj});
  const Segment up = c.expert_layer().backward;
  CHECK(count(up, WorkKind::gemm) == count(plain, WorkKind::gemm) + 2);
  CHECK(count(up, WorkKind::rotary) == count(plain, WorkKind::rotary) + 1);
  c.recompute({RecomputeModule::moe_act});
  const Segment act = c.expert_layer().backward;
  CHECK(count(act, WorkKind::elementwise) == count(plain, WorkKind::elementwise) + 1);
  CHECK(count(act, WorkKind::grouped_gemm) == count(plain, WorkKind::grouped_gemm));
  c.recompute({RecomputeModule::shared_experts});
  CHECK(count(c.expert_layer().backward, WorkKind::gemm) == count(plain, WorkKind::gemm) + 2);
  c.recompute({RecomputeModule::core_attn});
  CHECK(count(c.expert_layer().backward, WorkKind::attention_forward) == 1);
  // A whole expert layer includes its activation and its shared expert, once.
  c.recompute({RecomputeModule::moe});
  const Segment whole = c.expert_layer().backward;
  c.recompute({RecomputeModule::moe, RecomputeModule::moe_act, RecomputeModule::shared_experts});
  CHECK(c.expert_layer().backward.operations.size() == whole.operations.size());
  CHECK(count(whole, WorkKind::grouped_gemm) == count(plain, WorkKind::grouped_gemm) + 2);
  CHECK(count(whole, WorkKind::permute) > count(plain, WorkKind::permute));
  // The dense layers' feed-forward is not an expert layer's.
  c.recompute({RecomputeModule::mlp});
  CHECK(c.expert_layer().backward.operations.size() == plain.operations.size());
}

TEST_CASE("experts' rows are padded to what products need") {
  Case c;
  c.layout.micro_batch = 1;
  c.layout.ep = 1;
  c.model.classes.back().ffn.topk = 7;  // 4096 * 7 / 256 = 112 rows, then 111.something
  c.job.expert_imbalance = 0.99;
  for (const Operation& o : c.expert_layer().backward.operations)
    if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::grouped_gemm) {
      const std::int64_t rows = k->work.role == GemmRole::weight_gradient ? k->work.k : k->work.m;
      CHECK(rows % 32 == 0);
      CHECK(rows >= 110);
    }
}

TEST_CASE("fused experts have no activation and fewer quantise kernels") {
  Case c;
  const LayerProgram plain = c.expert_layer();
  c.stack.kernels.fused_expert_mlp = true;
  const LayerProgram fused = c.expert_layer();
  CHECK(count(fused.forward, WorkKind::elementwise) ==
        count(plain.forward, WorkKind::elementwise) - 1);
  CHECK(count(fused.forward, WorkKind::quantise) == count(plain.forward, WorkKind::quantise) - 1);
  CHECK(count(fused.backward, WorkKind::quantise) == count(plain.backward, WorkKind::quantise) - 1);
  CHECK(count(fused.backward, WorkKind::grouped_gemm) ==
        count(plain.backward, WorkKind::grouped_gemm));
}

TEST_CASE("biased experts pay for kernels that no library fuses") {
  Case c;
  const double plain = traffic(c.expert_layer().forward, WorkKind::elementwise);
  c.model.classes.back().ffn.bias = true;
  const double biased = traffic(c.expert_layer().forward, WorkKind::elementwise);
  CHECK(biased > 2 * plain);
  c.stack.kernels.biased_activation_passes.value = 1.0;
  c.stack.kernels.expert_bias_passes.value = 0.0;
  CHECK(traffic(c.expert_layer().forward, WorkKind::elementwise) == Approx(plain));
}

TEST_CASE("the host launches expert by expert and cannot run ahead of a synchronisation") {
  Case c;
  c.layout.ep = 64;
  const LayerProgram few = c.expert_layer();  // 4 experts a rank
  c.layout.ep = 8;
  const LayerProgram many = c.expert_layer();  // 32
  const double each =
      c.stack.host.dispatch.get().si() * c.stack.host.operations.expert_forward.get();
  CHECK(many.forward.host_time.si() - few.forward.host_time.si() == Approx(28 * each));
  const double late = 28 * each * c.stack.host.sync_exposed.get();
  CHECK(waits(many.forward) - waits(few.forward) == Approx(late));
  c.stack.host.launch = LaunchMode::full_graph;
  c.stack.host.moe_sync.value = Seconds(0);
  CHECK(waits(c.expert_layer().forward) == 0);
}

}  // namespace orrery
