// SPDX-License-Identifier: Apache-2.0
// Holds context parallelism's traffic, work and memory against counting by hand.
#include <catch2/catch.hpp>
#include <filesystem>

#include "workloads/model/model_catalog.h"
#include "workloads/operations/training.h"
#include "workloads/parameters/optimizer.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

Model catalog_model(const std::string& name) { return load_model(name, catalog("models")); }

Stack megatron() { return load_stack("megatron-core", {}, catalog("stacks")); }

constexpr double sequence = 65536, heads = 32, kv_heads = 8, head = 128;

Layout layout_of(ContextKind kind, std::int64_t cp, std::int64_t inner = 0) {
  return {.dp = 2, .cp = cp, .context = kind, .context_inner = inner};
}

const Job job{.sequence = 65536, .global_batch = 8};

LayerProgram layer_of(const std::string& model, const Layout& layout) {
  return lower_training(catalog_model(model), job, layout, megatron()).classes.front();
}

// Bytes of context-parallel collectives that the rank waits for or hides, by kind of group.
double bytes_of(const Segment& s, GroupKind group, CollectiveKind kind, bool beside) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (const CollectiveOperation* c = o.collective(); c && o.label == Label::context_comm &&
                                                       c->group == group && c->kind == kind &&
                                                       c->beside_compute == beside)
      sum += o.count * c->bytes.si();
  return sum;
}

Work attention_of(const LayerProgram& layer) {
  for (const Operation& o : layer.forward.operations)
    if (o.kernel() && o.kernel()->work.kind == WorkKind::attention_forward) return o.kernel()->work;
  return {};
}

// Products of queries and keys that a mask leaves.
double scores(const Work& w) {
  return static_cast<double>(w.batch * w.heads * w.q_length) * static_cast<double>(w.kv_length) /
         (w.causal ? 2 : 1);
}

}  // namespace

TEST_CASE("ranks that trade rows for heads send queries, keys, values and outputs once") {
  const LayerProgram layer = layer_of("llama3-8b", layout_of(ContextKind::all_to_all, 4));
  const double rows = sequence / 4;
  const double all = 2 * rows * head * (heads + 2 * kv_heads + heads);
  const auto sent = [](const Segment& s) {
    return bytes_of(s, GroupKind::context_heads, CollectiveKind::all_to_all, false);
  };
  CHECK(sent(layer.forward) == Approx(all));
  CHECK(sent(layer.input_gradient) == Approx(all));  // their gradients go the other way
  CHECK(bytes_of(layer.forward, GroupKind::context_rings, CollectiveKind::all_gather, true) == 0);
  const Work work = attention_of(layer);
  CHECK((work.heads == 8 && work.kv_heads == 2 && work.q_length == 65536 && work.causal));
}

TEST_CASE("hierarchical exchange trades heads among neighbours and passes keys across") {
  const LayerProgram layer = layer_of("llama3-8b", layout_of(ContextKind::hierarchical, 8, 4));
  const double rows = sequence / 8;
  CHECK(bytes_of(layer.forward, GroupKind::context_heads, CollectiveKind::all_to_all, false) ==
        Approx(2 * rows * head * (2 * heads + 2 * kv_heads)));
  // A rank's keys and values are as many bytes as before: four times the rows of a quarter of
  // heads.
  CHECK(bytes_of(layer.forward, GroupKind::context_rings, CollectiveKind::all_gather, true) ==
        Approx(2 * 2 * rows * head * 2 * kv_heads));
  const Work work = attention_of(layer);
  CHECK((work.heads == 8 && work.q_length == 32768 && work.kv_length == 32768 && !work.causal));
}

TEST_CASE("however ranks exchange, they compute the same scores") {
  const double ring = scores(attention_of(layer_of("llama3-8b", layout_of(ContextKind::ring, 8))));
  for (const auto& [kind, inner] :
       {std::pair{ContextKind::all_gather, 0}, std::pair{ContextKind::all_to_all, 0},
        std::pair{ContextKind::hierarchical, 2}, std::pair{ContextKind::hierarchical, 4}})
    CHECK(scores(attention_of(layer_of("llama3-8b", layout_of(kind, 8, inner)))) == Approx(ring));
}

TEST_CASE("state-space layers trade heads in every context-parallel layout") {
  const Model hybrid = catalog_model("nemotron-h-8b");
  for (const ContextKind kind : {ContextKind::ring, ContextKind::all_to_all}) {
    const StepProgram program = lower_training(hybrid, job, layout_of(kind, 4), megatron());
    for (std::size_t i = 0; i < program.classes.size(); ++i) {
      const double sent = bytes_of(program.classes[i].forward, GroupKind::context,
                                   CollectiveKind::all_to_all, false);
      CHECK((sent > 0) == (hybrid.classes[i].mixer.kind == MixerKind::mamba2));
    }
  }
}

TEST_CASE("a master weight that completes a bf16 parameter takes two bytes") {
  Stack stack = megatron();
  Layout layout{.dp = 8};
  const auto cost = [&] { return optimizer_cost(layout, stack, 4096); };
  const OptimizerCost whole = cost();
  stack.memory.master_remainders = true;
  CHECK(whole.master_bytes == 4);
  CHECK(cost().master_bytes == 2);
  // Two bytes less are read and two less written; the parameter is read besides.
  CHECK(cost().traffic_bytes == whole.traffic_bytes - 2);
  layout.precision = PrecisionRecipe::mxfp8;  // there is a bf16 parameter to complete ...
  CHECK(cost().master_bytes == 2);
  stack.sharding.parameter_gather_format = Format::fp8;  // ... and now there is none
  CHECK(cost().master_bytes == 4);
  layout = {.dp = 8, .zero_stage = 3};
  CHECK(cost().master_bytes == 4);
  layout.optimizer = Optimizer::adam_bf16;
  CHECK(cost().master_bytes == 0);
}

}  // namespace orrery
