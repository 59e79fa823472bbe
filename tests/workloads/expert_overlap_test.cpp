// Tests what experts add to gradients, and how schedules hide their exchange.
#include <catch2/catch.hpp>
#include <filesystem>

#include "workloads/layer_operations.h"
#include "workloads/model_catalog.h"
#include "workloads/stack.h"

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
      if (o.kind == OperationKind::collective && o.label == Label::expert_comm) return o.exposed;
    return -1;
  }
};

double written(const Segment& s) {
  double sum = 0;
  for (const Operation& o : s.operations)
    if (o.label == Label::expert) sum += o.kernel.work.bytes_written;
  return sum;
}

TEST_CASE("DualPipe hides most of the experts' exchange, more with more microbatches") {
  Case c;
  c.layout.schedule = Schedule::one_f_one_b;
  const double alone = c.exposed();
  CHECK(alone == Approx(1.0));
  c.layout.schedule = Schedule::dual_pipe;
  const double paired = c.exposed();
  // 120 microbatches: 20 passes have no partner, the others cost compute 0.2 of the exchange.
  CHECK(paired == Approx(20.0 / 120 + 100.0 / 120 * 0.2));
  c.job.global_batch *= 4;
  CHECK(c.exposed() < paired);
  CHECK(c.exposed() > c.stack.overlap_cost.get());
}

TEST_CASE("experts' products read and write 16-bit gradients that they add to") {
  Case c;
  c.stack.gradient_storage = Format::fp32;
  const double whole = written(c.expert_layer().weight_gradient);
  c.stack.gradient_storage = Format::bf16;
  const double sums = written(c.expert_layer().weight_gradient) - whole;
  const Ffn& ffn = c.model.classes.back().ffn;
  CHECK(sums == Approx(2.0 * 3 * static_cast<double>(ffn.experts / 64 * ffn.width * 7168)));
  c.stack.fused_expert_mlp = true;
  CHECK(written(c.expert_layer().weight_gradient) == Approx(whole));
}

}  // namespace
}  // namespace orrery
