// SPDX-License-Identifier: Apache-2.0
// Holds how programs fill up the vocabulary: products, memory and parameters of a rank.
#include <catch2/catch.hpp>
#include <filesystem>

#include "workloads/memory/memory.h"
#include "workloads/model/model_catalog.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/operations/training.h"
#include "workloads/parameters/weight_split.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const char* kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

Stack catalog_stack(const std::string& name) { return load_stack(name, {}, catalog("stacks")); }

std::int64_t head_width(const Model& model, const Layout& layout, const Stack& stack) {
  const Job job{.sequence = 1024, .global_batch = 64};
  const LayerProgram head = LayerOperations(model, job, layout, stack).head();
  for (const Operation& o : head.forward.operations)
    if (o.kernel() && o.kernel()->work.kind == WorkKind::gemm) return o.kernel()->work.n;
  return 0;
}

}  // namespace

TEST_CASE("Megatron fills each part of the vocabulary up to a multiple of 128") {
  const Model gpt2 = load_model("gpt2", catalog("models"));
  REQUIRE(gpt2.vocab == 50257);
  const Stack megatron = catalog_stack("megatron-core");
  const auto rows = [&](const Stack& stack, std::int64_t tp) {
    return local_vocabulary(gpt2, stack, {.tp = tp});
  };
  CHECK(rows(megatron, 1) == 50304);
  CHECK(rows(megatron, 2) * 2 == 50432);
  CHECK(rows(megatron, 8) * 8 == 51200);
  for (const char* name : {"nemo", "nemo@24.03", "megatron-deepspeed", "deepspeed-zero"})
    CHECK(rows(catalog_stack(name), 4) * 4 == 50688);
  // Others leave it as it is; where that does not divide, the largest part counts.
  for (const char* name : {"nanotron", "pytorch-fsdp2", "automodel"}) {
    CHECK(rows(catalog_stack(name), 1) == 50257);
    CHECK(rows(catalog_stack(name), 2) == 25129);
  }
  CHECK(rows(catalog_stack("pytorch"), 2) == 50257);                      // not split
  CHECK(rows(catalog_stack("megatron-deepspeed-profiled"), 2) == 25128);  // cut off
  const Model llama = load_model("llama3-8b", catalog("models"));
  CHECK(local_vocabulary(llama, megatron, {.tp = 2}) * 2 == llama.vocab);
}

TEST_CASE("what a rank computes and holds is the filled vocabulary's") {
  const Model gpt2 = load_model("gpt2", catalog("models"));
  Stack filled = catalog_stack("megatron-core"), bare = filled;
  bare.sharding.vocabulary_multiple = 1;
  const Job job{.sequence = 1024, .global_batch = 64};
  for (const std::int64_t tp : {1, 2}) {
    const Layout layout{.tp = tp, .zero_stage = 0};
    CHECK(head_width(gpt2, layout, filled) % 128 == 0);
    CHECK(head_width(gpt2, layout, bare) == (tp == 1 ? 50257 : 25129));
    const double added = static_cast<double>(
        (head_width(gpt2, layout, filled) - head_width(gpt2, layout, bare)) * gpt2.hidden);
    const auto parameters = [&](const Stack& stack) {
      return lower_chunks(gpt2, job, layout, stack).front().parameters;
    };
    CHECK(parameters(filled) - parameters(bare) == Approx(added));
    const auto held = [&](const Stack& stack) {
      return training_memory(gpt2, job, layout, stack).front()[MemoryCategory::parameters].si();
    };
    CHECK(held(filled) - held(bare) == Approx(2 * added));
    const auto logits = [&](const Stack& stack) {
      return training_memory(gpt2, job, layout, stack).front()[MemoryCategory::logits].si();
    };
    CHECK(logits(filled) > logits(bare));
  }
  // The model itself stays what it is.
  CHECK(count_parameters(gpt2).embedding == (50257 + 1024) * gpt2.hidden);
}

}  // namespace orrery
