// SPDX-License-Identifier: Apache-2.0
// Tests that context parallelism sends what its keys and values take, counted by hand, once.
#include <catch2/catch.hpp>

#include "sim/engine/step/step.h"
#include "tests/engine/step_case.h"

namespace orrery {
namespace {

double sent(const test::Case& c, ContextKind kind, std::int64_t microbatches) {
  Job job = c.job;
  job.global_batch = microbatches;
  Layout layout;
  layout.tp = layout.cp = 8;
  layout.context = kind;
  const StepContext context = step_context(c.cluster);
  return step(context, c.model, job, layout, c.stack).scale_out_bytes.si();
}

}  // namespace

TEST_CASE("a ring sends every rank's keys and values to the others once, as a gather does") {
  test::Case c = test::make_case("llama3-8b", "dgx-h100", 64, "megatron-core");
  c.job.sequence = 65536;
  // One head of keys and one of values on each of 8 ranks of tensor parallelism, one rank of the
  // ring in each host; forward, again in backward, and their gradients.
  const double own = 65536.0 / 8 * 2 * 128 * 2;
  const double each = 32 * 3 * 7 * own;
  for (const ContextKind kind : {ContextKind::ring, ContextKind::all_gather}) {
    const double more = sent(c, kind, 2) - sent(c, kind, 1);
    CHECK(more == Approx(each).epsilon(1e-6));
  }
  CHECK(sent(c, ContextKind::ring, 1) == Approx(sent(c, ContextKind::all_gather, 1)));
}

}  // namespace orrery
