// SPDX-License-Identifier: Apache-2.0
// Holds the memory model against peaks that PyTorch's allocator counted on two H200.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <string>

#include "workloads/memory/memory.h"
#include "workloads/model/model_catalog.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

Model eight_layers() {
  Model m = load_model("llama3-8b", catalog("models"));
  m.layers.resize(8);
  return m;
}

Stack plain_pytorch() {
  return load_stack("pytorch@2.11", {.architecture = "hopper", .device = "h200-sxm"},
                    catalog("stacks"));
}

// A run of h200_memory.csv or h200_layouts.csv: two GPUs.
struct Run {
  std::int64_t sequence = 4096, microbatches = 1, micro_batch = 1;
  Recompute recompute = Recompute::none;
  int zero = 3;
  std::int64_t stages = 1;
  Schedule schedule = Schedule::one_f_one_b;
};

std::vector<StageMemory> stages_of(const Run& run, const Stack& stack) {
  Layout layout;
  layout.pp = run.stages;
  layout.dp = 2 / run.stages;
  layout.zero_stage = run.zero;
  layout.sequence_parallel = false;
  layout.schedule = run.schedule;
  layout.optimizer = Optimizer::adam_bf16;
  Job job;
  job.sequence = run.sequence;
  layout.micro_batch = run.micro_batch;
  layout.recompute = run.recompute;
  job.global_batch = run.microbatches * run.micro_batch * layout.dp;
  return training_memory(eight_layers(), job, layout, stack);
}

double peak_gb(const Run& run, const Stack& stack) {
  Bytes worst;
  for (const StageMemory& m : stages_of(run, stack)) worst = std::max(worst, m.peak());
  return worst.si() / 1e9;
}

}  // namespace

TEST_CASE("peaks of FSDP, DDP and pipelines are those that were measured") {
  const Stack stack = plain_pytorch();
  const auto within = [](double measured) { return Approx(measured).epsilon(0.01); };
  CHECK(peak_gb({}, stack) == within(22.101));
  CHECK(peak_gb({.sequence = 8192}, stack) == within(33.646));
  CHECK(peak_gb({.microbatches = 2}, stack) == within(27.693));
  CHECK(peak_gb({.zero = 0}, stack) == within(33.976));
  CHECK(peak_gb({.microbatches = 2, .zero = 0}, stack) == within(39.567));
  const Run pipeline{.microbatches = 8, .zero = 0, .stages = 2};
  CHECK(peak_gb(pipeline, stack) == within(28.882));
  CHECK(stages_of(pipeline, stack)[0].peak().si() / 1e9 == Approx(17.111).epsilon(0.015));
  const Run gpipe{.microbatches = 4, .zero = 0, .stages = 2, .schedule = Schedule::gpipe};
  CHECK(peak_gb(gpipe, stack) == within(35.878));
  CHECK(stages_of(gpipe, stack)[0].peak().si() / 1e9 == within(19.596));
  // Parameters kept from forward to backward; without a compiler.
  Stack other = stack;
  other.sharding.reshard_after_forward = false;
  CHECK(peak_gb({}, other) == within(25.591));
  other = stack;
  other.kernels.memory_bound = Library::eager;
  CHECK(peak_gb({}, other) == Approx(23.041).epsilon(0.05));
}

TEST_CASE("a pipeline's outputs are there twice when they are joined at the end of a step") {
  const Stack stack = plain_pytorch();
  const auto within = [](double measured) { return Approx(measured).epsilon(0.005); };
  const auto pipeline = [](std::int64_t microbatches, std::int64_t size, Recompute recompute) {
    return Run{.microbatches = microbatches,
               .micro_batch = size,
               .recompute = recompute,
               .zero = 0,
               .stages = 2};
  };
  // Measured alike: the logits of 16 sequences do not care in which microbatches they came.
  CHECK(peak_gb(pipeline(16, 1, Recompute::none), stack) == within(45.4099));
  CHECK(peak_gb(pipeline(16, 1, Recompute::full), stack) == within(45.4099));
  CHECK(peak_gb(pipeline(8, 2, Recompute::full), stack) == within(45.4099));
  CHECK(peak_gb(pipeline(8, 2, Recompute::none), stack) == Approx(46.5133).epsilon(0.02));
  Stack without = stack;
  without.memory.keeps_pipeline_outputs = false;
  CHECK(peak_gb(pipeline(16, 1, Recompute::none), without) < 28);
}

TEST_CASE("a second microbatch meets the first one's gradients") {
  Stack stack = plain_pytorch();
  const double whole = 2 * 2795573248.0, shard = whole / 2;
  const auto more = [&](int zero) {
    return 1e9 *
           (peak_gb({.microbatches = 2, .zero = zero}, stack) - peak_gb({.zero = zero}, stack));
  };
  CHECK(more(3) == Approx(whole).epsilon(1e-6));  // reduced after the last microbatch only
  CHECK(more(0) == Approx(whole).epsilon(1e-6));  // beside DDP's buckets
  stack.sharding.reduce_each_microbatch = true;
  stack.memory.gradient_sums_beside_buckets = false;
  CHECK(more(3) == Approx(shard).epsilon(1e-6));
  CHECK(more(0) == 0);
  // Static memory is what the update holds: sums are gone by then.
  const Stack plain = plain_pytorch();
  for (const int zero : {0, 3})
    CHECK(stages_of({.microbatches = 2, .zero = zero}, plain)[0].static_bytes() ==
          stages_of({.zero = zero}, plain)[0].static_bytes());
}

TEST_CASE("more microbatches never need less, whatever the stack and the schedule") {
  for (const char* name : {"pytorch", "pytorch-fsdp2", "megatron-core", "nanotron", "automodel",
                           "deepspeed-zero", "llm-foundry"}) {
    const Stack stack =
        load_stack(name, {.architecture = "hopper", .device = "h200-sxm"}, catalog("stacks"));
    for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::gpipe})
      for (const int zero : {0, 1, 3})
        for (const std::int64_t stages : {1, 2}) {
          double before = 0;
          for (std::int64_t m = 1; m <= 6; ++m) {
            const double now = peak_gb(
                {.microbatches = m, .zero = zero, .stages = stages, .schedule = schedule}, stack);
            INFO(name << " ZeRO-" << zero << " stages " << stages << " microbatches " << m);
            CHECK(now >= before * (1 - 1e-12));
            before = now;
          }
        }
  }
}

}  // namespace orrery
