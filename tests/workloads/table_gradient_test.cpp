// SPDX-License-Identifier: Apache-2.0
// Holds the sums of the word table's gradients against the bytes that they move.
#include <catch2/catch.hpp>

#include "workloads/operations/layer_operations.h"

namespace orrery {
namespace {

Model llama(bool tied) {
  Model m;
  m.name = "llama";
  m.hidden = 1024;
  m.vocab = 32000;
  m.tied_embeddings = tied;
  LayerClass layer;
  layer.mixer.heads = layer.mixer.kv_heads = 16;
  layer.mixer.qk_dim = layer.mixer.v_dim = 64;
  layer.ffn.width = 4096;
  m.classes = {layer};
  m.layers.assign(4, 0);
  return m;
}

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
  CHECK(summed(llama(false), {}, false, Format::bf16) == 0);
  CHECK(summed(llama(true), {}, false, Format::bf16) == 6);
  // On stages of their own each has a table, and their sum is a reduction.
  CHECK(summed(llama(true), {.pp = 2}, false, Format::bf16) == 0);
  CHECK(summed(llama(true), {}, false, Format::bf16, Task::lora) == 0);
}

TEST_CASE("where products add to the gradient buffer, a kernel adds the table's gradient") {
  CHECK(summed(llama(false), {}, true, Format::fp32) == 2 + 4 + 4);
  CHECK(summed(llama(true), {}, true, Format::bf16) == 2 + 2 + 2);
  CHECK(summed(llama(false), {}, true, Format::fp32, Task::lora) == 0);
}

}  // namespace
}  // namespace orrery
