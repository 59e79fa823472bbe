// SPDX-License-Identifier: Apache-2.0
// Holds the sums of the word table's gradients against the bytes that they move.
#include <catch2/catch.hpp>

#include "tests/workloads/small_model.h"
#include "workloads/operations/layer_operations.h"

namespace orrery {
namespace {

Model small(bool tied) { return test::small_model(tied, Activation::swiglu); }

// Bytes that a microbatch's embedding moves for each element of its table, in backward, beside the
// table itself and the rows.
double summed(const Model& model, const Layout& layout, bool adds_itself, Format kept,
              Task task = Task::pretrain) {
  Stack stack;
  stack.kernels.elementwise_passes.value = 1;
  stack.kernels.fused_gradient_accumulation = adds_itself;
  stack.sharding.gradient_storage = kept;
  const Job job = {.task = task, .sequence = 1024, .global_batch = 1, .lora_rank = 8};
  const LayerProgram p = LayerOperations(model, job, layout, stack).embedding();
  double bytes = 0;
  for (const Operation& o : p.backward.operations)
    if (const Kernel* k = o.kernel(); k && k->work.kind == WorkKind::elementwise)
      bytes += o.count * (k->work.bytes_read + k->work.bytes_written);
  return bytes / static_cast<double>(model.vocab * model.hidden);
}

TEST_CASE("embedding and head of one table have their gradients added up") {
  CHECK(summed(small(false), {}, false, Format::bf16) == 0);
  CHECK(summed(small(true), {}, false, Format::bf16) == 6);
  // On stages of their own each has a table, and their sum is a reduction.
  CHECK(summed(small(true), {.pp = 2}, false, Format::bf16) == 0);
  CHECK(summed(small(true), {}, false, Format::bf16, Task::lora) == 0);
}

TEST_CASE("where products add to the gradient buffer, a kernel adds the table's gradient") {
  CHECK(summed(small(false), {}, true, Format::fp32) == 2 + 4 + 4);
  CHECK(summed(small(true), {}, true, Format::bf16) == 2 + 2 + 2);
  CHECK(summed(small(false), {}, true, Format::fp32, Task::lora) == 0);
}

}  // namespace
}  // namespace orrery
