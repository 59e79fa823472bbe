// SPDX-License-Identifier: Apache-2.0
// Tests stacks that run their pipeline's schedule several times in a step.
#include <catch2/catch.hpp>

#include "sim/engine/step/step.h"
#include "tests/engine/step_case.h"

using namespace orrery;

namespace {

struct Batches {
  test::Case c = test::make_case("llama3-8b", "dgx-h100", 64, "automodel");
  Layout layout;
  Batches() {
    layout.pp = 4;
    layout.dp = 16;
    layout.micro_batch = 1;
    layout.zero_stage = 1;
    c.job.global_batch = 16 * 32;
  }
  StepResult run(std::int64_t microbatches) {
    c.stack.communication.schedule_microbatches = microbatches;
    return step(step_context(c.cluster), c.model, c.job, layout, c.stack);
  }
};

}  // namespace

TEST_CASE("each run of the schedule adds the same warm-up and drain, and labels still add up") {
  Batches b;
  const StepResult whole = b.run(0);
  const auto idle = [](const StepResult& r) { return r.stages[0][Label::bubble].ps; };
  const std::int64_t each = idle(b.run(16)) - idle(whole);
  REQUIRE(each > 0);
  for (const std::int64_t runs : {1, 2, 4, 8}) {
    const StepResult r = b.run(32 / runs);
    CHECK(idle(r) - idle(whole) == (runs - 1) * each);
    CHECK((r.step - whole.step).ps == (runs - 1) * each);
    for (const StageBreakdown& stage : r.stages) CHECK(stage.total() == r.step);
    CHECK(r.energy_per_gpu.si() >= whole.energy_per_gpu.si());
  }
  CHECK(b.run(1).step == b.run(4).step);  // never fewer than stages
}

TEST_CASE("a last run that is short costs less than a whole one") {
  Batches b;
  b.c.job.global_batch = 16 * 28;  // three runs of 8 and one of 4
  const Ticks step = b.run(8).step;
  CHECK(step > b.run(0).step);
  b.c.job.global_batch = 16 * 32;
  CHECK(step < b.run(8).step);
  b.c.job.global_batch = 16 * 24;
  CHECK(step > b.run(8).step);
}

TEST_CASE("schedules of two microbatches a stage never run fewer of them at a time") {
  Batches b;
  for (const Schedule schedule :
       {Schedule::zero_bubble_v, Schedule::dual_pipe_v, Schedule::dual_pipe}) {
    b.layout.schedule = schedule;
    b.layout.vpp = schedule == Schedule::dual_pipe ? 1 : 2;
    for (const std::int64_t microbatches : {8, 10, 12, 16, 20, 22, 32}) {
      b.c.job.global_batch = 16 * microbatches;
      const StepResult whole = b.run(0);
      for (const std::int64_t each : {1, 4, 8, 12, 16}) {
        const StepResult r = b.run(each);
        CHECK(r.step >= whole.step);
        const std::int64_t batch = (each + 7) / 8 * 8;  // two a stage
        CHECK((r.step == whole.step) == (batch + 8 > microbatches));
        for (const StageBreakdown& stage : r.stages) CHECK(stage.total() == r.step);
      }
    }
  }
}
