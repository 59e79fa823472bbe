// SPDX-License-Identifier: Apache-2.0
// Holds LoRA: one count of adapters' parameters, their products, memory and what is trained.
#include <catch2/catch.hpp>
#include <filesystem>
#include <utility>

#include "workloads/memory/memory.h"
#include "workloads/model/model_catalog.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/operations/training.h"
#include "workloads/parameters/adapters.h"

namespace orrery {
namespace {

Model catalog_model(const std::string& name) {
  return load_model(name,
                    std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / "models");
}

Job lora(std::int64_t rank) {
  return {.task = Task::lora, .sequence = 2048, .global_batch = 8, .lora_rank = rank};
}

Stack plain() {
  return load_stack("megatron-core", {.task = Task::lora},
                    std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / "stacks");
}

double product_flop(const Segment& s) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::gemm)
      sum += 2.0 * o.count * static_cast<double>(k->work.m * k->work.n * k->work.k);
  return sum;
}

double layer_flop(const Model& model, const Job& job, const Layout& layout, const Stack& stack) {
  const LayerProgram p = LayerOperations(model, job, layout, stack).layer(model.classes.front());
  return product_flop(p.forward) + product_flop(p.backward);
}

}  // namespace

TEST_CASE("adapters hold the rank times inputs and outputs of each linear layer") {
  const Model llama = catalog_model("llama3-8b");
  const LayerClass& layer = llama.classes.front();
  Stack stack = plain();
  const double all = (4096 + 6144) + (4096 + 4096) + (4096 + 28672) + (14336 + 4096);
  CHECK(adapter_parameters(llama, layer, lora(16), {}, stack) == Approx(16 * all));
  CHECK(adapter_parameters(llama, layer, lora(64), {.tp = 4}, stack) == Approx(64 * all / 4));
  stack.kernels.adapter_sites = AdapterSites::query_key_value;
  CHECK(adapter_parameters(llama, layer, lora(16), {}, stack) == Approx(16.0 * (4096 + 6144)));
  Job full = lora(16);
  full.task = Task::sft;
  CHECK(adapter_parameters(llama, layer, full, {}, stack) == 0);
  CHECK(largest_adapter_rank(llama) == 4096);
  CHECK(largest_adapter_rank(catalog_model("deepseek-v3")) == 512);
}

TEST_CASE("adapters cost products in proportion to their rank") {
  // Two operations for each element and row forward, four backward, on every kind of layer.
  for (const char* name : {"llama3-8b", "deepseek-v3", "mixtral-8x7b", "nemotron-h-8b"})
    for (const AdapterSites sites : {AdapterSites::every_linear, AdapterSites::query_key_value})
      for (const std::int64_t tp : {1, 4}) {
        const Model model = catalog_model(name);
        const Layout layout{.tp = tp};
        Stack stack = plain();
        stack.kernels.adapter_sites = sites;
        const auto elements = [&](std::int64_t rank) {
          return adapter_parameters(model, model.classes.front(), lora(rank), layout, stack);
        };
        const double more = layer_flop(model, lora(256), layout, stack) -
                            layer_flop(model, lora(16), layout, stack);
        CHECK(more == Approx(6.0 * 2048 * (elements(256) - elements(16))));
      }
  // None of it without LoRA, and frozen weights alone take two thirds of training's products.
  const Model llama = catalog_model("llama3-8b");
  Job sft = lora(16);
  sft.task = Task::sft;
  const double trained = layer_flop(llama, sft, {}, plain());
  const double frozen =
      layer_flop(llama, lora(16), {}, plain()) -
      6.0 * 2048 * adapter_parameters(llama, llama.classes.front(), lora(16), {}, plain());
  CHECK(frozen == Approx(trained * 2 / 3));
}

TEST_CASE("memory and the update see the same adapters as the products") {
  const Model llama = catalog_model("llama3-8b");
  const Layout layout{.dp = 8, .zero_stage = 0};
  const Stack stack = plain();
  const auto stage = [&](std::int64_t rank) {
    return training_memory(llama, lora(rank), layout, stack).front();
  };
  const double elements =
      32 * adapter_parameters(llama, llama.classes.front(), lora(64), layout, stack);
  using C = MemoryCategory;
  CHECK(stage(64)[C::optimizer].si() == Approx(12 * elements));
  CHECK(stage(64)[C::gradients].si() == Approx(4 * elements));
  CHECK((stage(64)[C::parameters] - stage(16)[C::parameters]).si() ==
        Approx(2 * elements * (64 - 16) / 64));
  // What A makes of a layer's input is kept, 2 B for each of four adapters.
  CHECK((stage(64)[C::attention_activations] - stage(16)[C::attention_activations]).si() ==
        Approx(2.0 * 4 * (64 - 16) * 2048 * 32));
  const ChunkProgram chunk = lower_chunks(llama, lora(64), layout, stack).front();
  CHECK(chunk.trained == Approx(elements));
  CHECK(chunk.trained_experts == 0);
  Job sft = lora(64);
  sft.task = Task::sft;
  const ChunkProgram whole = lower_chunks(llama, sft, layout, stack).front();
  CHECK(whole.trained == whole.parameters);
  CHECK(chunk.parameters == Approx(whole.parameters + elements));
}

TEST_CASE("routed experts have no adapters") {
  const Model mixtral = catalog_model("mixtral-8x7b");
  const ChunkProgram chunk = lower_chunks(mixtral, lora(16), {}, plain()).front();
  CHECK(chunk.trained == Approx(32.0 * 16 * ((4096 + 6144) + (4096 + 4096))));
  CHECK(chunk.trained_experts == 0);
  CHECK(chunk.expert_parameters > 0);
}

}  // namespace orrery
