// SPDX-License-Identifier: Apache-2.0
// Holds the time of updates and of passes over gradients against the bytes that they move.
#include <catch2/catch.hpp>

#include "sim/engine/step/step.h"
#include "tests/engine/step_case.h"

namespace orrery {
namespace {

using test::Case;
using test::make_case;

// Seconds of the first stage's update.
double update(const Case& c, const Layout& layout) {
  const StepResult r = step(step_context(c.cluster), c.model, c.job, layout, c.stack);
  return to_seconds(r.stages[0][Label::optimizer]).si();
}

Case plain() {
  Case c = make_case("llama3.2-1b", "dgx-h200", 8, "pytorch");
  c.job.global_batch = 8;
  c.stack.kernels.update.gradient_touches.value = 0;
  return c;
}

TEST_CASE("an update takes the passes of the format in which its states are") {
  Case c = plain();
  const Layout narrow = {.dp = 8, .zero_stage = 0, .optimizer = Optimizer::adam_bf16};
  const Layout wide = {.dp = 8, .zero_stage = 0};
  const double narrow_before = update(c, narrow), wide_before = update(c, wide);
  c.stack.kernels.update.passes.value = 2 * c.stack.kernels.update.passes.get();
  CHECK(update(c, narrow) == narrow_before);
  CHECK(update(c, wide) == Approx(2 * wide_before).epsilon(0.01));
  c.stack.kernels.update.passes_16_bit.value = 2 * c.stack.kernels.update.passes_16_bit.get();
  CHECK(update(c, narrow) == Approx(2 * narrow_before).epsilon(0.01));
}

TEST_CASE("the fused AdamW of all in 16 bits and of all in FP32, as measured on an H200") {
  // 5.13 and 8.06 ps a parameter (validation/measurements/training_parts/h200_sharding.jsonl).
  Case c = plain();
  const auto parameters = static_cast<double>(count_parameters(c.model).total);
  const Layout narrow = {.dp = 8, .zero_stage = 0, .optimizer = Optimizer::adam_bf16};
  CHECK(update(c, narrow) == Approx(5.13e-12 * parameters).epsilon(0.03));
  c.stack.sharding.gradient_storage = Format::fp32;
  CHECK(update(c, {.dp = 8, .zero_stage = 3}) == Approx(8.06e-12 * parameters / 8).epsilon(0.03));
}

TEST_CASE("gradients that ranks share are divided, others are not") {
  Case c = plain();
  const Layout all = {.dp = 8, .zero_stage = 0, .optimizer = Optimizer::adam_bf16};
  const double without = update(c, all);
  c.stack.kernels.update.gradient_touches.value = 2;
  // DDP's division: 3.4 TB/s of 25 MB, 4 bytes a parameter.
  const auto parameters = static_cast<double>(count_parameters(c.model).total);
  CHECK(update(c, all) - without == Approx(4 * parameters / 3.9e12).epsilon(0.15));
  // ZeRO-3 counts its own copies, and one replica has nothing to divide by.
  const Layout sharded = {.dp = 8, .zero_stage = 3};
  Case alone = c;
  alone.job.global_batch = 1;
  const Layout one = {.zero_stage = 0, .optimizer = Optimizer::adam_bf16};
  const double sharded_with = update(c, sharded), one_with = update(alone, one);
  c.stack.kernels.update.gradient_touches.value =
      alone.stack.kernels.update.gradient_touches.value = 0;
  CHECK(update(c, sharded) == sharded_with);
  CHECK(update(alone, one) == one_with);
}

TEST_CASE("a fused update does not wait for layers to be fused") {
  const Case eager = make_case("llama3.2-1b", "dgx-h200", 8, "pytorch-eager");
  const Case compiled = make_case("llama3.2-1b", "dgx-h200", 8, "pytorch");
  const Layout layout = {.dp = 8, .zero_stage = 0, .optimizer = Optimizer::adam_bf16};
  CHECK(eager.stack.kernels.stream_library() == Library::eager);
  CHECK(update(eager, layout) == update(compiled, layout));
}

}  // namespace
}  // namespace orrery
