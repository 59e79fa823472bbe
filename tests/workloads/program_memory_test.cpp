// SPDX-License-Identifier: Apache-2.0
// Tests what programs keep in memory differently: quantised inputs, shards of parameters.
#include <catch2/catch.hpp>

#include <filesystem>

#include "workloads/memory/memory.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

using C = MemoryCategory;

Stack stack_of(const std::string& name) {
  return load_stack(name, {.architecture = "hopper", .device = "h100-sxm"},
                    std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog/stacks");
}

StageMemory memory_of(const std::string& stack, int zero, PrecisionRecipe precision) {
  const Model model = load_model(
      "llama3-8b", std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog/models");
  Job job;
  job.sequence = 8192;
  job.global_batch = 8;
  Layout layout;
  layout.dp = 8;
  layout.zero_stage = zero;
  layout.precision = precision;
  return training_memory(model, job, layout, stack_of(stack))[0];
}

double activations(const StageMemory& m) {
  return m[C::attention_activations].si() + m[C::ffn_activations].si();
}

// Bytes of each parameter on all ranks together.
double of_parameter(const StageMemory& m, C category) {
  return 8 * m[category].si() / 8030261248.0;
}

}  // namespace

TEST_CASE("torchao keeps products' inputs in 16 bits, Transformer Engine in those of the recipe") {
  for (const PrecisionRecipe fp8 : {PrecisionRecipe::fp8_current, PrecisionRecipe::mxfp8}) {
    const double torchao = activations(memory_of("pytorch-fsdp2", 3, fp8)),
                 plain = activations(memory_of("pytorch-fsdp2", 3, PrecisionRecipe::bf16));
    CHECK(torchao == plain);
    const double engine = activations(memory_of("megatron-core", 1, fp8)),
                 whole = activations(memory_of("megatron-core", 1, PrecisionRecipe::bf16));
    CHECK(engine < 0.9 * whole);
  }
  // What is based on a stack keeps what it keeps.
  CHECK(stack_of("transformers").memory.inputs_in_16_bits);
}

TEST_CASE("Megatron-FSDP and DeepSpeed gather from a 16-bit shard beside the master, FSDP2 casts") {
  const StageMemory megatron = memory_of("megatron-core", 3, PrecisionRecipe::bf16);
  CHECK(of_parameter(megatron, C::parameters) == Approx(2));
  CHECK(of_parameter(megatron, C::optimizer) == Approx(12));  // master and two moments in fp32
  CHECK(of_parameter(megatron, C::gradients) == Approx(4));
  const StageMemory fsdp2 = memory_of("pytorch-fsdp2", 3, PrecisionRecipe::bf16);
  CHECK(of_parameter(fsdp2, C::parameters) == Approx(4));
  CHECK(of_parameter(fsdp2, C::optimizer) == Approx(8));
  // 16 bytes and the gradient (ZeRO, arXiv 1910.02054, section 3.1).
  const StageMemory deepspeed = memory_of("deepspeed-zero", 3, PrecisionRecipe::bf16);
  CHECK(of_parameter(deepspeed, C::parameters) + of_parameter(deepspeed, C::optimizer) ==
        Approx(14).epsilon(0.02));
  CHECK(stack_of("nemo").memory.gathers_16_bit_shard);
}

}  // namespace orrery
