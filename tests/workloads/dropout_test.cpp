// SPDX-License-Identifier: Apache-2.0
// Tests what dropout adds to a layer's operations and memory.
#include <catch2/catch.hpp>

#include <filesystem>

#include "workloads/memory/activation_memory.h"
#include "workloads/model/model_catalog.h"
#include "workloads/operations/layer_operations.h"

namespace orrery {
namespace {

const std::filesystem::path root = ORRERY_SOURCE_DIR;

struct Layer {
  Model model = load_model("gpt3-175b", root / "workloads/catalog/models");
  Stack stack = load_stack("megatron-core", {}, root / "workloads/catalog/stacks");
  Job job{.sequence = 2048, .global_batch = 8};
  Layout layout{.tp = 4, .sequence_parallel = true};

  LayerProgram program() const {
    return LayerOperations(model, job, layout, stack).layer(model.classes.front());
  }
  LayerActivations kept() const {
    return layer_activations(model, model.classes.front(), job, layout, stack,
                             memory_traits(stack));
  }
};

// Bytes that memory-bound kernels move, and operations of attention beside its products.
struct Sums {
  double bytes = 0, numbers = 0;
};
Sums sums_of(const Segment& segment) {
  Sums sums;
  for (const Operation& o : segment.operations) {
    if (!o.kernel()) continue;
    const Work& w = o.kernel()->work;
    sums.bytes += w.bytes_read + w.bytes_written;
    sums.numbers += w.vector_flop;
  }
  return sums;
}

TEST_CASE("dropout in attention costs random numbers, dropout after it bytes and masks") {
  Layer layer;
  const LayerProgram plain = layer.program();
  const LayerActivations held = layer.kept();
  CHECK(sums_of(plain.forward).numbers == 0);
  layer.job.attention_dropout = 0.1;
  layer.stack.kernels.attention = Library::flash2;
  const LayerProgram flash = layer.program();
  layer.stack.kernels.attention = Library::cudnn_attention;
  const LayerProgram scores = layer.program();
  const double pairs = 24 * 2048.0 * 2049 / 2;  // 96 heads over TP4, the causal half
  CHECK(sums_of(scores.forward).numbers == Approx(64 * pairs));
  CHECK(sums_of(scores.input_gradient).numbers == Approx(39 * pairs));
  CHECK(sums_of(flash.forward).numbers == Approx(22 * pairs));
  CHECK(sums_of(flash.input_gradient).numbers == Approx(35 * pairs));
  CHECK(sums_of(scores.forward).bytes == sums_of(plain.forward).bytes);
  layer.job = {.sequence = 2048, .global_batch = 8, .hidden_dropout = 0.1};
  const LayerProgram sum = layer.program();
  const double elements = 2 * 512.0 * 12288;  // after attention and the feed-forward, a TP rank's
  CHECK(sums_of(sum.forward).bytes - sums_of(plain.forward).bytes == Approx(4.6 * elements));
  CHECK(sums_of(sum.input_gradient).bytes - sums_of(plain.input_gradient).bytes ==
        Approx(5.0 * elements));
  CHECK(sums_of(sum.forward).numbers == 0);
  const LayerActivations more = layer.kept();
  CHECK(more.attention + more.ffn - held.attention - held.ffn == Approx(elements));
}

TEST_CASE("inference drops nothing") {
  Layer layer;
  layer.job = {.task = Task::prefill,
               .sequence = 2048,
               .batch = 1,
               .attention_dropout = 0.1,
               .hidden_dropout = 0.1};
  CHECK(sums_of(layer.program().forward).numbers == 0);
}

}  // namespace
}  // namespace orrery
