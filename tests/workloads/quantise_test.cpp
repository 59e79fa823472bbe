// SPDX-License-Identifier: Apache-2.0
// Holds what FP8 recipes move and quantise to where their operands are: before or after a gather.
#include <catch2/catch.hpp>

#include "workloads/model/model_catalog.h"
#include "workloads/operations/training.h"

using namespace orrery;

namespace {

const std::filesystem::path catalog =
    std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog";

struct Moved {
  double quantised = 0, gathered = 0, scattered = 0;  // bytes of one layer, forward and backward
};

Moved layer_traffic(PrecisionRecipe precision, std::int64_t tp, bool transposed, Task task) {
  const Model model = load_model("llama3-8b", catalog / "models");
  Stack stack = load_stack("megatron-core", {.architecture = "hopper", .precision = precision},
                           catalog / "stacks");
  stack.kernels.transposed_copies = transposed;
  Job job;
  job.sequence = 4096;
  job.global_batch = 16;
  job.task = task;
  Layout layout;
  layout.tp = tp;
  layout.sequence_parallel = tp > 1;
  layout.precision = precision;
  Moved moved;
  const StepProgram program = lower_training(model, job, layout, stack);
  const LayerProgram& layer = program.classes.front();
  for (const Segment* s : {&layer.forward, &layer.backward})
    for (const Operation& o : s->operations) {
      if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::quantise)
        moved.quantised += o.count * (k->work.bytes_read + k->work.bytes_written);
      const CollectiveOperation* c = o.collective();
      if (!c) continue;
      (c->kind == CollectiveKind::all_gather ? moved.gathered : moved.scattered) +=
          o.count * c->bytes.si();
    }
  return moved;
}

}  // namespace

TEST_CASE("operands are quantised before tensor-parallel ranks gather them") {
  const auto fp8 = PrecisionRecipe::fp8_delayed, bf16 = PrecisionRecipe::bf16;
  const Moved narrow = layer_traffic(fp8, 4, true, Task::pretrain);
  const Moved wide = layer_traffic(bf16, 4, true, Task::pretrain);
  CHECK(narrow.gathered == Approx(wide.gathered / 2));
  CHECK(narrow.scattered == Approx(wide.scattered));
  CHECK(wide.quantised == 0);
  // What is gathered is quantised once for all ranks, but every rank transposes all of it.
  const Moved alone = layer_traffic(fp8, 1, true, Task::pretrain);
  CHECK(narrow.quantised > alone.quantised / 4);
  CHECK(narrow.quantised < alone.quantised);
}

TEST_CASE("one copy serves both uses where products read either layout") {
  const auto quantised = [](PrecisionRecipe precision, bool transposed, Task task) {
    return layer_traffic(precision, 1, transposed, task).quantised;
  };
  const auto fp8 = PrecisionRecipe::fp8_delayed, mx = PrecisionRecipe::mxfp8;
  CHECK(quantised(fp8, false, Task::pretrain) ==
        Approx(quantised(fp8, true, Task::pretrain) * 3 / 4));
  // Block scales follow the direction of the sum: two copies on any device.
  CHECK(quantised(mx, false, Task::pretrain) == quantised(mx, true, Task::pretrain));
  // Adapters leave no weight gradient to read the second copy.
  CHECK(quantised(fp8, true, Task::lora) == Approx(quantised(fp8, true, Task::pretrain) * 3 / 4));
}

TEST_CASE("adapters gather a layer's input once") {
  const Moved whole = layer_traffic(PrecisionRecipe::bf16, 4, true, Task::pretrain);
  const Moved adapters = layer_traffic(PrecisionRecipe::bf16, 4, true, Task::lora);
  CHECK(adapters.gathered == Approx(whole.gathered * 2 / 3));
}
