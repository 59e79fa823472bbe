// SPDX-License-Identifier: Apache-2.0
// Holds the products of lowered layers against their parameters: latent experts, MTP modules, and
// the passes that DualPipe leaves alone.
#include <catch2/catch.hpp>
#include <filesystem>

#include "workloads/memory/memory.h"
#include "workloads/model/model_catalog.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/operations/training.h"
#include "workloads/parameters/state_memory.h"
#include "workloads/parameters/weight_split.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

double products(const Segment& s) {
  double flop = 0;
  for (const Operation& o : s.operations) {
    if (!o.kernel()) continue;
    const Work& w = o.kernel()->work;
    if (w.kind == WorkKind::gemm)
      flop += 2.0 * o.count * static_cast<double>(w.m) * static_cast<double>(w.n * w.k);
    if (w.kind == WorkKind::grouped_gemm)
      flop += 2.0 * o.count * static_cast<double>(w.m * w.groups) * static_cast<double>(w.n * w.k);
  }
  return flop;
}

Stack megatron() { return load_stack("megatron-core", {.moe = true}, catalog("stacks")); }

}  // namespace

TEST_CASE("an expert layer's products are two operations a weight and row, latent or not") {
  for (const char* name : {"nemotron-3-super", "mixtral-8x7b", "deepseek-v3"}) {
    INFO(name);
    const Model model = load_model(name, catalog("models"));
    const Job job = {.sequence = 8192, .global_batch = 8};
    const Stack stack = megatron();
    const LayerClass& layer = model.classes[model.layers.back()];
    REQUIRE(layer.ffn.kind == FfnKind::moe);
    LayerClass alone = layer;
    alone.mixer.kind = MixerKind::none;
    const LayerParameters p = layer_parameters(model, alone);
    for (const std::int64_t tp : {1, 2}) {
      const Layout layout = {.tp = tp, .dp = 4 / tp};
      const LayerProgram program = LayerOperations(model, job, layout, stack).layer(alone);
      const double ranks = static_cast<double>(tp);
      const double rows = static_cast<double>(job.sequence) / ranks;
      const auto weights =
          static_cast<double>(p.ffn + p.active_experts + model.hidden * alone.ffn.experts);
      CHECK(products(program.forward) == Approx(2 * rows * weights).epsilon(0.02));
      CHECK(products(program.backward) == Approx(4 * rows * weights).epsilon(0.02));
    }
    // Experts split over the tensor ranks: half of each for twice the rows, which are gathered.
    const LayerProgram whole = LayerOperations(model, job, {.tp = 2}, stack).layer(alone);
    const LayerProgram split = LayerOperations(model, job, {.tp = 2, .etp = 2}, stack).layer(alone);
    CHECK(products(split.forward) == Approx(products(whole.forward)).epsilon(0.01));
    double moved = 0;
    for (const Operation& o : split.forward.operations)
      if (const CollectiveOperation* c = o.collective(); c && c->group == GroupKind::expert_tensor)
        moved += c->bytes.si();
    const auto width = static_cast<double>(alone.ffn.latent > 0 ? alone.ffn.latent : model.hidden);
    const double copies = static_cast<double>(job.sequence * alone.ffn.topk);
    CHECK(moved == Approx(2 * 2 * copies * width * job.expert_imbalance));
  }
}

TEST_CASE("every tensor-parallel rank holds the projections to the latent width whole") {
  const Model model = load_model("nemotron-3-super", catalog("models"));
  const LayerClass& layer = model.classes[model.layers.back()];
  const Stack stack = megatron();
  const double whole = local_parameters(model, layer, {}, {}, stack).dense;
  const double latent = 2.0 * static_cast<double>(model.hidden * layer.ffn.latent);
  const LayerParameters all = layer_parameters(model, layer);
  const auto replicated = static_cast<double>(all.router + all.norms);
  CHECK(local_parameters(model, layer, {}, {.tp = 4}, stack).dense ==
        Approx((whole - latent - replicated) / 4 + latent + replicated));
}

TEST_CASE("what modules hold is what their gradients and parameters move") {
  const Model model = load_model("deepseek-v3", catalog("models"));
  Stack stack = megatron();
  Layout layout = {.tp = 2, .pp = 4, .dp = 64, .ep = 32, .zero_stage = 0};
  const auto difference = [&](const Job& job) {
    const auto chunks = lower_training(model, job, layout, stack).chunks;
    const auto memory = training_memory(model, job, layout, stack);
    // 16-bit parameters; the rest is what norms of the ends differ by.
    for (std::size_t s = 0; s < memory.size(); ++s)
      CHECK(2 * (chunks[s].parameters + chunks[s].expert_parameters) ==
            Approx(memory[s][MemoryCategory::parameters].si()).epsilon(1e-4));
    return chunks.back();
  };
  const Job plain = {.sequence = 4096, .global_batch = 256};
  Job trained = plain;
  trained.mtp = true;
  const ChunkProgram without = difference(plain), with = difference(trained);
  const LocalParameters layer =
      local_parameters(model, model.classes[model.layers.back()], trained, layout, stack);
  CHECK(with.modules == 1);
  CHECK(without.modules == 0);
  CHECK(with.expert_parameters - without.expert_parameters == Approx(layer.expert));
  const auto hidden = static_cast<double>(model.hidden);
  const double table = vocabulary_parameters(model, stack, layout);
  CHECK(with.parameters - without.parameters ==
        Approx(layer.dense + hidden * hidden + 3 * hidden + table));
}

TEST_CASE("a stage that has both ends of the model has their tables once") {
  const Model model = load_model("deepseek-v3", catalog("models"));
  const Stack stack = megatron();
  const Job job = {.sequence = 4096, .global_batch = 1024, .mtp = true};
  for (const Schedule schedule : {Schedule::dual_pipe, Schedule::dual_pipe_v}) {
    const bool two = schedule == Schedule::dual_pipe;
    const Layout layout = {
        .pp = 4, .vpp = two ? 1 : 2, .dp = 32, .ep = 32, .zero_stage = 0, .schedule = schedule};
    const auto chunks = lower_training(model, job, layout, stack).chunks;
    const auto held = [&](const ChunkProgram& c) { return c.parameters + c.expert_parameters; };
    const double first =
        two ? held(chunks.front()) + held(chunks.back()) : held(chunks[0]) + held(chunks[1]);
    CHECK(2 * first ==
          Approx(training_memory(model, job, layout, stack)[0][MemoryCategory::parameters].si())
              .epsilon(1e-4));
  }
}

TEST_CASE("a module projects two hidden states to one, and runs again where its layer does") {
  const Model model = load_model("deepseek-v3", catalog("models"));
  const Job job = {.sequence = 4096, .global_batch = 256, .mtp = true};
  const Stack stack = megatron();
  Layout layout = {.tp = 2, .pp = 4, .dp = 64, .ep = 32};
  const auto lowered = [&] { return lower_training(model, job, layout, stack); };
  const double flop = 2.0 * 4096 * 2 * static_cast<double>(model.hidden * model.hidden) / 2;
  const StepProgram p = lowered();
  CHECK(products(p.module.forward) == Approx(flop));
  CHECK(products(p.module.backward) == Approx(2 * flop));
  CHECK(products(p.module.recompute) == Approx(flop));
  const auto again = [&] { return lowered().chunks.back().recomputed[model.layers.back()]; };
  CHECK(again() == 0);
  layout.recompute = Recompute::full;
  CHECK(lowered().chunks.back().recomputes_modules);
  const std::int32_t all = again();
  CHECK(lowered().chunks.back().layers[model.layers.back()] == 0);
  // Recompute of a number of layers leaves modules out.
  layout.recompute_layers = 61;
  CHECK(again() == all - 1);
  CHECK_FALSE(lowered().chunks.back().recomputes_modules);
  CHECK(lowered().chunks.back().layers[model.layers.back()] == 1);
}

TEST_CASE("passes without a partner are those that DualPipe's steps run alone") {
  Model model = load_model("deepseek-v3", catalog("models"));
  Stack stack = megatron();
  stack.communication.expert_exposed.value = 1;
  stack.communication.overlap_cost.value = 0;
  for (const std::int64_t pp : {2, 4, 8, 16}) {
    const std::int64_t half = pp / 2;
    double alone = 0;
    for (std::int64_t k = 0; k < half; ++k) {
      alone += static_cast<double>(2 * (half - k - 1));  // forwards of one direction
      alone += static_cast<double>(2 * (k + 1));         // of both by turns
      alone += static_cast<double>(half - k - 1);        // between backwards
    }
    Layout layout = {.pp = pp, .schedule = Schedule::dual_pipe};
    CHECK(expert_exposed(stack, layout, 100) == Approx(alone / static_cast<double>(half) / 100));
    // The same stages, two of a rank, of 2 x 50 passes.
    layout = {.pp = half, .vpp = 2, .schedule = Schedule::dual_pipe_v};
    CHECK(expert_exposed(stack, layout, 50) == Approx(alone / static_cast<double>(half) / 100));
  }
}

}  // namespace orrery
