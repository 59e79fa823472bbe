// SPDX-License-Identifier: Apache-2.0
// Holds recompute by operation: what TorchTitan's selective mode keeps and what runs again.
#include <catch2/catch.hpp>
#include <filesystem>

#include "workloads/memory/activation_memory.h"
#include "workloads/model/model_catalog.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/stack/operation_recompute.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const char* kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

Model llama() { return load_model("llama3-8b", catalog("models")); }
Stack titan() { return load_stack("pytorch-fsdp2", {}, catalog("stacks")); }
const Job job{.sequence = 8192, .global_batch = 8};

Layout layout_of(Recompute recompute, std::int64_t tp = 1) {
  Layout l{.tp = tp, .zero_stage = 3};
  l.recompute = recompute;
  return l;
}

LayerActivations kept(const Layout& layout, const Stack& stack) {
  const Model model = llama();
  return layer_activations(model, model.classes.front(), job, layout, stack, memory_traits(stack));
}

double again(const Layout& layout, const Stack& stack, WorkKind kind, bool flop) {
  const Model model = llama();
  const LayerProgram p = LayerOperations(model, job, layout, stack).layer(model.classes.front());
  double sum = 0;
  for (const Operation& o : p.input_gradient.operations) {
    if (!o.kernel()) continue;
    const Work& w = o.kernel()->work;
    if (o.label == Label::recompute && w.kind == kind)
      sum += flop ? 2.0 * static_cast<double>(w.m * w.n * w.k) : o.count;
  }
  return sum;
}

std::vector<bool> saved(const char* model, const Layout& layout) {
  const Model m = load_model(model, catalog("models"));
  std::vector<bool> out;
  for (const SeparateProduct& p : separate_products(m, m.classes.front(), layout))
    out.push_back(p.kept);
  return out;
}

}  // namespace

TEST_CASE("every second product of a layer is kept, in the order in which they run") {
  // q, k, v, output; gate, up, down.
  const std::vector<bool> llama_saves{true, false, true, false, true, false, true};
  CHECK(saved("llama3-8b", {}) == llama_saves);
  CHECK(saved("llama3-8b", {.tp = 8}) == llama_saves);
  // Latent attention with compressed queries has five products: the output is kept, gate is not.
  CHECK(saved("deepseek-v3", {}) ==
        std::vector<bool>{true, false, true, false, true, false, true, false});
  // Products of 8-bit operands are not in the list.
  CHECK(saved("llama3-8b", {.precision = PrecisionRecipe::fp8_current}) ==
        std::vector<bool>(7, false));
}

TEST_CASE("memory by operation: the input, every second product, attention") {
  const Stack stack = titan();
  REQUIRE(recomputes_by_operation(layout_of(Recompute::selective), stack));
  const LayerActivations a = kept(layout_of(Recompute::selective), stack);
  const double tokens = 8192;
  CHECK(a.norm == Approx(tokens * 2 * 4096));
  CHECK(a.attention == Approx(tokens * (2 * (4096 + 1024) + 2 * 4096 + 4 * 32)));
  CHECK(a.ffn == Approx(tokens * 2 * 14336));
  const LayerActivations whole = kept(layout_of(Recompute::none), stack);
  CHECK(a.kept() < 0.5 * whole.kept());
  CHECK(a.kept() > 3 * a.checkpoint);
  CHECK(a.transient == Approx(whole.transient + whole.kept() - a.kept()));
  // Tensor parallelism keeps the reduce-scatter's result too.
  const LayerActivations split = kept(layout_of(Recompute::selective, 8), stack);
  CHECK(split.norm == Approx(2 * tokens * 2 * 4096 / 8));
  // Other stacks' selective mode runs attention's core again.
  Stack core = stack;
  core.recompute.by_operation = false;
  CHECK(kept(layout_of(Recompute::selective), core).kept() > 0.9 * whole.kept());
}

TEST_CASE("time by operation: the other products, norms and activations run again") {
  const Stack stack = titan();
  const Layout one = layout_of(Recompute::selective);
  const double flop = again(one, stack, WorkKind::gemm, true);
  CHECK(flop == Approx(2.0 * 8192 * (4096.0 * 1024 + 4096.0 * 4096 + 4096.0 * 14336)));
  CHECK(again(one, stack, WorkKind::attention_forward, false) == 0);
  CHECK(again(one, stack, WorkKind::norm, false) == 2);
  CHECK(again(one, stack, WorkKind::rotary, false) == 1);
  CHECK(again(one, stack, WorkKind::elementwise, false) == 2);  // h = x + attention, activation
  CHECK(again(layout_of(Recompute::none), stack, WorkKind::gemm, false) == 0);
  // With sequence parallelism the output's reduce-scatter is kept, so the product before is not
  // needed, while the norms' outputs are gathered again.
  const Layout split = layout_of(Recompute::selective, 8);
  CHECK(again(split, stack, WorkKind::gemm, true) ==
        Approx(2.0 * 8192 * (4096.0 * 1024 + 4096.0 * 14336) / 8));
  const auto collectives = [&](Recompute recompute, CollectiveKind kind) {
    const Model model = llama();
    const LayerProgram p =
        LayerOperations(model, job, layout_of(recompute, 8), stack).layer(model.classes.front());
    double count = 0;
    for (const Operation& o : p.backward.operations)
      count += o.collective() && o.collective()->kind == kind;
    return count;
  };
  CHECK(collectives(Recompute::selective, CollectiveKind::all_gather) ==
        collectives(Recompute::none, CollectiveKind::all_gather) + 2);
  CHECK(collectives(Recompute::selective, CollectiveKind::reduce_scatter) ==
        collectives(Recompute::none, CollectiveKind::reduce_scatter));
}

}  // namespace orrery
