// SPDX-License-Identifier: Apache-2.0
// Holds what a stack makes of a layout: graphs that recompute rules out, norms that cannot run
// again alone, activations in few bits, tables that stages share. Holds the batches that serving
// engines capture.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>

#include "workloads/memory/activation_memory.h"
#include "workloads/memory/memory.h"
#include "workloads/model/model_catalog.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

using enum RecomputeModule;

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

Model catalog_model(const std::string& name) { return load_model(name, catalog("models")); }

Stack stack_for(const std::string& name, const Model& model,
                PrecisionRecipe precision = PrecisionRecipe::bf16) {
  return load_stack(name,
                    {.architecture = "hopper",
                     .model = model.name,
                     .family = model.family,
                     .precision = precision,
                     .moe = model.has_experts()},
                    catalog("stacks"));
}

Layout selective(RecomputeModules modules) {
  Layout layout{.dp = 8};
  layout.set({Recompute::selective, modules});
  return layout;
}

TEST_CASE("graphs of parts of a layer leave out what recompute they refuse") {
  const Model model = catalog_model("deepseek-v3");
  const Stack stack = stack_for("megatron-core@0.15", model);
  REQUIRE(stack.host.launch == LaunchMode::scoped_graph);
  Layout full{.dp = 8, .recompute = Recompute::full};
  CHECK(launch_mode(stack, {}) == LaunchMode::scoped_graph);
  CHECK(launch_mode(stack, full) == LaunchMode::eager);
  full.recompute_layers = 2;
  CHECK(launch_mode(stack, full) == LaunchMode::eager);
  CHECK(launch_mode(stack, selective({mla_up_proj, moe_act})) == LaunchMode::eager);
  CHECK(launch_mode(stack, selective({core_attn})) == LaunchMode::eager);
  CHECK(launch_mode(stack, selective({moe_act})) == LaunchMode::scoped_graph);
  // Releases that say nothing refuse whole layers only, and graphs of an iteration nothing.
  Stack newer = stack;
  newer.host.graphs_refuse.clear();
  CHECK(launch_mode(newer, selective({mla_up_proj})) == LaunchMode::scoped_graph);
  CHECK(launch_mode(newer, full) == LaunchMode::eager);
  newer.host.launch = LaunchMode::full_graph;
  CHECK(launch_mode(newer, full) == LaunchMode::full_graph);
}

TEST_CASE("a layout without graphs pays for the host") {
  const Model model = catalog_model("deepseek-v3");
  const Stack stack = stack_for("megatron-core@0.15", model);
  const Job job{.sequence = 4096, .global_batch = 64};
  const auto host = [&](const Layout& layout) {
    const LayerProgram p = LayerOperations(model, job, layout, stack).layer(model.classes.back());
    return p.forward.host_time.si();
  };
  const double more = host(selective({mla_up_proj})) - host(selective({moe_act}));
  CHECK(more == Approx(stack.host.operations.layer_forward.get() * stack.host.dispatch.get().si()));
}

TEST_CASE("norms inside linear layers neither run again nor leave memory") {
  const Job job{.sequence = 4096, .global_batch = 64};
  const Layout plain = selective({}), again = selective({layernorm});
  const auto kept = [&](const Model& model, const Stack& stack, const Layout& layout) {
    return layer_activations(model, model.classes.back(), job, layout, stack, memory_traits(stack));
  };
  const auto norms = [&](const Model& model, const Stack& stack, const Layout& layout) {
    const LayerProgram p = LayerOperations(model, job, layout, stack).layer(model.classes.back());
    return std::count_if(
        p.backward.operations.begin(), p.backward.operations.end(),
        [](const Operation& o) { return o.kernel() && o.kernel()->work.kind == WorkKind::norm; });
  };
  struct Expected {
    const char* model;
    bool mixer, ffn;
  };
  // Graphs of attention keep its norm in 0.15 whatever is asked.
  for (const auto& [release, in_graph] : {std::pair("0.14", false), std::pair("0.15", true)})
    for (const Expected& e :
         {Expected{"llama3-8b", false, false}, Expected{"qwen3-30b-a3b", false, true},
          Expected{"deepseek-v3", true, true}}) {
      INFO(e.model << " on " << release);
      const Model model = catalog_model(e.model);
      const Stack stack = stack_for(std::string("megatron-core@") + release, model);
      const bool mixer = e.mixer && !in_graph;
      const NormModules own = norm_modules(stack, again, model.classes.back());
      CHECK(own.mixer == mixer);
      CHECK(own.ffn == e.ffn);
      const LayerActivations before = kept(model, stack, plain), after = kept(model, stack, again);
      CHECK((after.attention < before.attention) == mixer);
      CHECK((after.ffn < before.ffn) == e.ffn);
      CHECK(norms(model, stack, again) - norms(model, stack, plain) == (mixer ? 1 : 0) + e.ffn);
    }
  // Stacks whose norms are kernels of their own save both.
  const Model dense = catalog_model("llama3-8b");
  const Stack eager = stack_for("nanotron", dense);
  CHECK(kept(dense, eager, again).attention < kept(dense, eager, plain).attention);
  CHECK(kept(dense, eager, again).ffn < kept(dense, eager, plain).ffn);
}

TEST_CASE("compact activations keep the inputs of SwiGLU in 8 bits and attention's output once") {
  const Model model = catalog_model("deepseek-v3");
  Stack stack = stack_for("hai-llm", model, PrecisionRecipe::fp8_blockwise);
  REQUIRE(stack.memory.compact_activations);
  const Job job{.sequence = 4096, .global_batch = 64};
  Layout layout = selective({moe_act});
  layout.precision = PrecisionRecipe::fp8_blockwise;
  const auto kept = [&] {
    return layer_activations(model, model.classes.back(), job, layout, stack, memory_traits(stack));
  };
  const LayerActivations compact = kept();
  stack.memory.compact_activations = false;
  const LayerActivations plain = kept();
  const double few = saved_input_bytes(layout.precision), tokens = 4096;
  CHECK(plain.attention - compact.attention == Approx((2 + few - 1.5) * 128 * 128 * tokens));
  CHECK(plain.expert - compact.expert == Approx((4 - 2 * few) * 2048 * 8 * tokens));
  // One shared expert: its second input is no longer kept either.
  CHECK(plain.ffn - compact.ffn == Approx((4 + few - 2 * few) * 2048 * tokens));
}

TEST_CASE("a stage with both ends of the model holds each table once") {
  Model model = catalog_model("deepseek-v3");
  const Stack stack = stack_for("hai-llm", model, PrecisionRecipe::fp8_blockwise);
  Layout layout{.pp = 16, .dp = 128, .ep = 64, .schedule = Schedule::dual_pipe};
  layout.precision = PrecisionRecipe::fp8_blockwise;
  Job job{.sequence = 4096, .global_batch = 15360};
  const auto gradients = [&](std::size_t stage) {
    return training_memory(model, job, layout, stack)[stage][MemoryCategory::gradients].si();
  };
  const double table = 4.0 * static_cast<double>(model.vocab * model.hidden);
  const double first = gradients(0), last = gradients(15);
  CHECK(first == Approx(last));
  job.mtp = true;  // a layer and a projection more, no third table
  const double module = gradients(0) - first;
  CHECK(gradients(15) - last == Approx(module));
  CHECK(module > 0.0);
  CHECK(module < table);
  model.tied_embeddings = true;
  CHECK(gradients(0) == Approx(first + module - table));
  CHECK(gradients(15) == Approx(first + module - table));
}

TEST_CASE("the published run of DeepSeek-V3 fits its accelerators") {
  const Model model = catalog_model("deepseek-v3");
  const Stack stack = stack_for("hai-llm", model, PrecisionRecipe::fp8_blockwise);
  Layout layout{.pp = 16, .dp = 128, .ep = 64, .schedule = Schedule::dual_pipe};
  layout.precision = PrecisionRecipe::fp8_blockwise;
  layout.optimizer = stack.defaults.optimizer;
  layout.set(stack.defaults.recompute);
  const Job job{.sequence = 4096, .global_batch = 15360, .mtp = true};
  double most = 0;
  for (const StageMemory& m : training_memory(model, job, layout, stack))
    most = std::max(most, m.peak().si() * stack.memory.allocator_rounding.get() +
                              stack.memory.context.get().si());
  CHECK(most < 80 * 1.024 * 1.024 * 1.024e9);
  CHECK(most > 0.6 * 80e9);
}

std::string si_text(double value) { return fmt::format("{}", value); }
template <Dimension D>
std::string si_text(Quantity<D> value) {
  return fmt::format("{}", value.si());
}

// All that tells two stacks apart here: names, values, changes.
std::string described(const Stack& stack) {
  std::string text = stack.name + "@" + stack.release + " " + stack.date;
  visit_stack_values(stack, [&](const std::string& path, const auto& value) {
    text += " " + path + "=" + si_text(value.get());
  });
  for (const std::string& change : stack.changes) text += "\n" + change;
  return text;
}

TEST_CASE("captured batches are multiples up to the end of each entry, and that end") {
  StackServing serving;
  CHECK(graph_size(serving, 1) == 0);
  serving.graphs = {{.to = 2, .by = 1}, {.to = 4, .by = 2}, {.to = 28, .by = 8}};
  std::vector<std::int64_t> sizes;
  for (std::int64_t rows = 1; rows <= 28; ++rows) {
    const std::int64_t size = graph_size(serving, rows);
    CHECK(size >= rows);
    CHECK(graph_size(serving, size) == size);
    if (sizes.empty() || size != sizes.back()) sizes.push_back(size);
  }
  CHECK(sizes == std::vector<std::int64_t>{1, 2, 4, 8, 16, 24, 28});
  CHECK(graph_size(serving, 29) == 0);
}

TEST_CASE("engines capture the batches that their programs list") {
  const auto first = [](const std::string& stack, std::size_t count) {
    const StackServing serving = load_stack(stack, {}, catalog("stacks")).serving;
    std::vector<std::int64_t> sizes;
    for (std::int64_t rows = 1; sizes.size() < count; rows = sizes.back() + 1)
      sizes.push_back(graph_size(serving, rows));
    return sizes;
  };
  const std::vector<std::int64_t> eights = {1, 2, 4, 8, 16, 24, 32};
  CHECK(first("vllm", 7) == eights);
  CHECK(first("trtllm", 7) == eights);
  CHECK(first("pytorch-serve", 7) == eights);
  CHECK(first("sglang", 8) == std::vector<std::int64_t>{1, 2, 4, 8, 12, 16, 24, 32});
  const std::vector<std::int64_t> all = first("trtllm", 23);
  CHECK(std::vector<std::int64_t>(all.end() - 5, all.end()) ==
        std::vector<std::int64_t>{128, 256, 512, 1024, 2048});
}

TEST_CASE("law: the releases of a stack, read at once, are those read one by one") {
  const Model model = catalog_model("deepseek-v3");
  const StackContext context{.architecture = "hopper",
                             .device = "h100-sxm",
                             .model = model.name,
                             .family = model.family,
                             .precision = PrecisionRecipe::fp8_blockwise,
                             .moe = true};
  for (const std::string& name : stack_names(catalog("stacks"))) {
    const std::vector<std::string> labels = stack_releases(name, catalog("stacks"));
    const std::vector<Stack> releases = load_releases(name, context, catalog("stacks"));
    REQUIRE(releases.size() == labels.size());
    for (std::size_t i = 0; i < labels.size(); ++i)
      CHECK(described(releases[i]) ==
            described(load_stack(name + "@" + labels[i], context, catalog("stacks"))));
  }
}

}  // namespace
}  // namespace orrery
