// SPDX-License-Identifier: Apache-2.0
// Tests what experts add to gradients, and how schedules hide their exchange.
#include <catch2/catch.hpp>
#include <filesystem>

#include "workloads/model/model_catalog.h"
#include "workloads/operations/layer_operations.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

const StackContext deepseek_h800 = {.architecture = "hopper",
                                    .device = "h800-sxm",
                                    .model = "deepseek-v3",
                                    .family = "deepseek-v3",
                                    .precision = PrecisionRecipe::fp8_blockwise,
                                    .moe = true};

struct Case {
  Model model = load_model("deepseek-v3", catalog("models"));
  Job job = {.sequence = 4096, .global_batch = 15360};
  Layout layout = {.pp = 16, .dp = 128, .ep = 64, .precision = PrecisionRecipe::fp8_blockwise};
  Stack stack = load_stack("hai-llm", deepseek_h800, catalog("stacks"));

  LayerProgram expert_layer() const {
    return LayerOperations(model, job, layout, stack).layer(model.classes.back());
  }
  double exposed() const {
    for (const Operation& o : expert_layer().forward.operations)
      if (o.collective() && o.label == Label::expert_comm) return o.collective()->exposed;
    return -1;
  }
};

double written(const Segment& s) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (o.kernel() && o.label == Label::expert) sum += o.kernel()->work.bytes_written;
  return sum;
}

TEST_CASE("DualPipe hides most of the experts' exchange, more with more microbatches") {
  Case c;
  c.layout.schedule = Schedule::one_f_one_b;
  const double alone = c.exposed();
  CHECK(alone == Approx(1.0));
  c.layout.schedule = Schedule::dual_pipe;
  const double paired = c.exposed();
  // 120 microbatches: 19.5 passes have no partner, the others cost compute 0.2 of the exchange.
  CHECK(paired == Approx(19.5 / 120 + 100.5 / 120 * 0.2));
  c.job.global_batch *= 4;
  CHECK(c.exposed() < paired);
  CHECK(c.exposed() > c.stack.communication.overlap_cost.get());
}

TEST_CASE("an exchange runs beside other passes only where the layout has them") {
  Case c;
  c.stack.communication.exchange_beside_passes = true;
  c.stack.communication.expert_exposed.value = 0.3;
  c.layout.schedule = Schedule::one_f_one_b;
  CHECK_FALSE(exchange_beside_passes(c.stack, c.layout));  // a pipeline of one chunk a stage
  CHECK(c.exposed() == 1.0);
  c.layout.vpp = 2;
  c.layout.schedule = Schedule::interleaved;
  CHECK(exchange_beside_passes(c.stack, c.layout));
  CHECK(c.exposed() == 0.3);
  for (const Operation& o : c.expert_layer().forward.operations)
    CHECK((o.collective() && o.collective()->beside_passes) == (o.label == Label::expert_comm));
  c.layout.set({.recompute = Recompute::selective, .modules = {RecomputeModule::moe_act}});
  CHECK(c.exposed() == 0.3);
  // A layer that is run again as a whole cannot be interleaved.
  c.layout.set({.recompute = Recompute::selective, .modules = {RecomputeModule::moe}});
  CHECK(c.exposed() == 1.0);
  c.layout.set({.recompute = Recompute::full});
  CHECK(c.exposed() == 1.0);
  c.layout = {.dp = 128, .ep = 64, .precision = PrecisionRecipe::fp8_blockwise};
  CHECK(c.exposed() == 0.3);  // without a pipeline two microbatches follow each other
  c.stack.communication.exchange_beside_passes = false;
  CHECK(c.exposed() == 0.3);  // whatever hides it asks nothing of the layout
}

TEST_CASE("userbuffers need rows that are split over the tensor ranks") {
  for (const char* release : {"megatron-core@0.7", "megatron-core@0.8", "megatron-core@0.15"}) {
    const Stack stack = load_stack(release, deepseek_h800, catalog("stacks"));
    INFO(release);
    CHECK(tensor_exposed(stack, {.tp = 8, .sequence_parallel = false}) == 1.0);
    CHECK((tensor_exposed(stack, {.tp = 8, .sequence_parallel = true}) < 1.0) ==
          stack.communication.tensor_overlap_needs_rows);
  }
}

TEST_CASE("userbuffers cut products beside whose traffic they run, and no others") {
  const Layout rows{.tp = 8, .sequence_parallel = true};
  const Stack plain = load_stack("megatron-core@0.7", deepseek_h800, catalog("stacks"));
  const Stack cut = load_stack("megatron-core@0.8", deepseek_h800, catalog("stacks"));
  CHECK((gathered_pieces(plain, rows) == 1 && scattered_pieces(plain, rows) == 1));
  CHECK((gathered_pieces(cut, rows) == 8 && scattered_pieces(cut, rows) == 4));
  CHECK(gathered_pieces(cut, {.tp = 8, .sequence_parallel = false}) == 1);
  CHECK(scattered_pieces(cut, {.tp = 1, .sequence_parallel = true}) == 1);
}

TEST_CASE("experts' products read and write 16-bit gradients that they add to") {
  Case c;
  c.stack.sharding.gradient_storage = Format::fp32;
  const double whole = written(c.expert_layer().weight_gradient);
  c.stack.sharding.gradient_storage = Format::bf16;
  const double sums = written(c.expert_layer().weight_gradient) - whole;
  const Ffn& ffn = c.model.classes.back().ffn;
  CHECK(sums == Approx(2.0 * 3 * static_cast<double>(ffn.experts / 64 * ffn.width * 7168)));
  c.stack.kernels.fused_expert_mlp = true;
  CHECK(written(c.expert_layer().weight_gradient) == Approx(whole));
}

}  // namespace
}  // namespace orrery
