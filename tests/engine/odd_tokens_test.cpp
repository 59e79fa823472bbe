// SPDX-License-Identifier: Apache-2.0
// Tests that a token more costs a step what it must compute, and no slower kernels.
#include <catch2/catch.hpp>

#include "sim/engine/step/step.h"
#include "tests/engine/step_case.h"

namespace orrery {
namespace {

double step_seconds(test::Case c, std::int64_t sequence) {
  c.job.sequence = sequence;
  c.job.global_batch = 64;
  const Layout layout = {.dp = c.cluster.gpus};
  const Ticks time = step(step_context(c.cluster), c.model, c.job, layout, c.stack).step;
  return static_cast<double>(time.ps) * 1e-12;
}

// Weight gradients have the tokens in k, along which no operand of theirs lies in memory: 8,193
// tokens took 2.2 times as long as 8,192 while every extent had to be on the grid.
TEST_CASE("a step of 8,193 tokens costs at most one of 8,208, and hardly more than one of 8,192") {
  for (const char* cluster : {"dgx-h100", "dgx-h200", "dgx-a100"})
    for (const char* stack : {"megatron-core", "pytorch-fsdp2"}) {
      const test::Case c = test::make_case("llama3-8b", cluster, 8, stack);
      INFO(cluster << " " << stack);
      const double odd = step_seconds(c, 8193);
      CHECK(odd <= step_seconds(c, 8208));
      CHECK(odd < 1.01 * step_seconds(c, 8192));
      CHECK(step_seconds(c, 8191) <= step_seconds(c, 8192));
    }
}

}  // namespace
}  // namespace orrery
