// SPDX-License-Identifier: Apache-2.0
// Checks the pipeline executor: against an event-driven run, against itself uncollapsed, and
// against the textbook's closed forms.
#include "sim/engine/pipeline/run.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/base/errors/check.h"
#include "sim/base/random.h"
#include "tests/base/fresh_seed.h"

using namespace orrery;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t pick(RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

PipelineShape random_shape(RandomStream& random, std::int64_t most_stages,
                           std::int64_t most_microbatches) {
  while (true) {
    PipelineShape shape{static_cast<Schedule>(random.below(schedule_traits.size())),
                        pick(random, 1, most_stages), 1, pick(random, 1, most_microbatches)};
    if (loops_over_chunks(shape.schedule)) {
      shape.chunks = pick(random, 1, 8);
      if (splits_backward(shape.schedule) || random.below(2) == 0)
        shape.microbatches += shape.stages - shape.microbatches % shape.stages;
    }
    if (is_v_shaped(shape.schedule)) {
      shape.chunks = 2;
      shape.microbatches += 2 * shape.stages;
    }
    if (shape.schedule == Schedule::dual_pipe) {
      shape.stages += shape.stages % 2;
      shape.microbatches = 2 * (shape.stages + shape.microbatches / 2);
    }
    if (!invalid_shape(shape)) return shape;
  }
}

// Costs of many characters: small numbers meet in ties, near-equal ones drift apart slowly, wide
// ones leave most stages waiting, and a first and a last stage with more to do are the usual case.
PipelineCosts random_costs(RandomStream& random, const PipelineShape& shape) {
  const std::uint64_t character = random.below(5);
  const std::int64_t base = character == 0 ? 4 : 1000000;
  const std::int64_t spread = character == 1 ? 10 : character == 2 ? base : character == 3 ? 0 : 3;
  const std::int64_t send = random.below(3) == 0 ? 0 : pick(random, 0, base / 2);
  const std::int64_t head = character == 4 ? pick(random, 0, base / 5) : 0;
  const auto about = [&](std::int64_t middle) { return Ticks{middle + pick(random, 0, spread)}; };
  PipelineCosts costs;
  costs.sends_block = random.below(2) == 0;
  const std::int64_t chunks = chunks_per_stage(shape);
  for (std::int64_t i = 0; i < shape.stages * chunks; ++i) {
    ChunkCost cost{about(base), about(2 * base), about(base),
                   about(base), about(send),     about(send)};
    if (i == 0) cost.forward += Ticks{head / 10};
    if (i == shape.stages * chunks - 1) {
      cost.forward += Ticks{head};
      cost.backward += Ticks{2 * head};
      cost.input_gradient += Ticks{head};
    }
    costs.chunk.push_back(cost);
    if ((shape.schedule == Schedule::dual_pipe || shape.schedule == Schedule::dual_pipe_v) &&
        character == 2)
      costs.paired.push_back(about(2 * base));
  }
  return costs;
}

bool same(const PipelineRun& a, const PipelineRun& b) {
  if (a.end != b.end || a.stages.size() != b.stages.size()) return false;
  for (std::size_t s = 0; s < a.stages.size(); ++s) {
    const StageRun &x = a.stages[s], &y = b.stages[s];
    if (x.end != y.end || x.busy != y.busy || x.blocked != y.blocked ||
        x.first_forward != y.first_forward || x.last_backward != y.last_backward ||
        x.last_backward_start != y.last_backward_start)
      return false;
  }
  return a.passes_run + a.passes_skipped == b.passes_run + b.passes_skipped;
}

// The same summary from the event-driven trace.
PipelineRun summary(const PipelineShape& shape, const PipelineCosts& given) {
  const PipelineCosts costs = complete_costs(shape, given);
  const std::int64_t chunks = chunks_per_stage(shape);
  PipelineRun run;
  for (const std::vector<PassTime>& times : trace_pipeline(shape, costs)) {
    const std::size_t s = run.stages.size();
    StageRun stage;
    stage.first_forward.assign(at(chunks), Ticks{-1});
    stage.last_backward.resize(at(chunks));
    stage.last_backward_start.resize(at(chunks));
    for (std::size_t i = 0; i < times.size(); ++i) {
      const PassTime& time = times[i];
      const std::size_t c = at(time.pass.chunk);
      const ChunkCost& cost = costs.chunk[s * at(chunks) + c];
      const bool second = i > 0 && times[i - 1].pass.paired;
      Ticks send = time.pass.kind == PassKind::forward ? cost.send_forward : cost.send_backward;
      if (time.pass.kind == PassKind::weight_gradient) send = {};
      if (time.pass.paired) send = max(send, costs.chunk[s * at(chunks) + (c ^ 1)].send_backward);
      if (!second) {
        stage.busy += time.end - time.start;
        if (costs.sends_block && i + 1 < times.size()) stage.blocked += send;
      }
      if (time.pass.kind != PassKind::forward) {
        stage.last_backward[c] = time.end;
        stage.last_backward_start[c] = time.start;
      } else if (stage.first_forward[c].ps < 0) {
        stage.first_forward[c] = time.start;
      }
      stage.end = max(stage.end, time.end);
    }
    run.passes_run += static_cast<std::int64_t>(times.size());
    run.end = max(run.end, stage.end);
    run.stages.push_back(stage);
  }
  return run;
}

PipelineCosts even_costs(const PipelineShape& shape, std::int64_t forward, std::int64_t backward) {
  PipelineCosts costs;
  costs.chunk.assign(at(shape.stages * chunks_per_stage(shape)),
                     {{forward}, {backward}, {backward / 2}, {backward - backward / 2}, {}, {}});
  return costs;
}

void describe(const PipelineShape& shape) {
  UNSCOPED_INFO("schedule " << static_cast<int>(shape.schedule) << ", stages " << shape.stages
                            << ", chunks " << shape.chunks << ", microbatches "
                            << shape.microbatches);
}

}  // namespace

TEST_CASE("the recurrences agree with the event-driven run") {
  RandomStream random(fresh(1), 0);
  for (int i = 0; i < 4000; ++i) {
    const PipelineShape shape = random_shape(random, 9, 40);
    const PipelineCosts costs = random_costs(random, shape);
    const PipelineRun expected = summary(shape, costs);
    if (same(run_pipeline(shape, costs, false), expected)) continue;
    describe(shape);
    FAIL("case " << i << ": " << run_pipeline(shape, costs, false).end.ps << " is not "
                 << expected.end.ps);
  }
}

TEST_CASE("collapsed equals uncollapsed to the picosecond") {
  RandomStream random(fresh(2), 0);
  std::int64_t run = 0, skipped = 0;
  for (int i = 0; i < 20000; ++i) {
    const PipelineShape shape =
        random_shape(random, i % 100 == 0 ? 48 : 12, i % 10 == 0 ? 2000 : 150);
    const PipelineCosts costs = random_costs(random, shape);
    const PipelineRun collapsed = run_pipeline(shape, costs);
    run += collapsed.passes_run;
    skipped += collapsed.passes_skipped;
    if (same(collapsed, run_pipeline(shape, costs, false))) continue;
    describe(shape);
    FAIL("case " << i << ": " << collapsed.end.ps << " is not "
                 << run_pipeline(shape, costs, false).end.ps);
  }
  CHECK(skipped > run);  // the collapse is at work
}

TEST_CASE("law 2: on each stage the clock never goes back, and nothing comes before its cause") {
  RandomStream random(fresh(3), 0);
  for (int i = 0; i < 300; ++i) {
    const PipelineShape shape = random_shape(random, 8, 30);
    const PipelineCosts costs = random_costs(random, shape);
    const PipelineRun run = run_pipeline(shape, costs);
    bool ordered = true;
    std::size_t s = 0;
    for (const std::vector<PassTime>& times : trace_pipeline(shape, costs)) {
      for (std::size_t p = 0; p < times.size(); ++p) {
        ordered = ordered && times[p].start.ps >= 0 && times[p].end >= times[p].start;
        if (p == 0) continue;
        const Ticks before = times[p - 1].pass.paired ? times[p - 1].start : times[p - 1].end;
        ordered = ordered && times[p].start >= before;
      }
      const StageRun& stage = run.stages[s++];
      ordered = ordered && (stage.end - stage.busy - stage.blocked).ps >= 0;
    }
    describe(shape);
    REQUIRE(ordered);
  }
}

TEST_CASE("law 7: a longer pass or send never makes the step shorter") {
  RandomStream random(fresh(4), 0);
  for (int i = 0; i < 1500; ++i) {
    const PipelineShape shape = random_shape(random, 8, 60);
    PipelineCosts costs = complete_costs(shape, random_costs(random, shape));
    const PipelineRun before = run_pipeline(shape, costs);
    const std::size_t which = random.below(costs.chunk.size());
    const Ticks more{pick(random, 1, 3000000)};
    ChunkCost& cost = costs.chunk[which];
    Ticks* const costs_of_pass[] = {&cost.forward,         &cost.backward,     &cost.input_gradient,
                                    &cost.weight_gradient, &cost.send_forward, &cost.send_backward};
    const std::size_t kind = random.below(7);
    if (kind < 6) *costs_of_pass[kind] += more;
    if (kind == 6 && !costs.paired.empty()) costs.paired[which] += more;
    const PipelineRun after = run_pipeline(shape, costs);
    bool later = after.end >= before.end;
    for (std::size_t s = 0; s < after.stages.size(); ++s)
      later = later && after.stages[s].end >= before.stages[s].end;
    describe(shape);
    REQUIRE(later);
  }
}

TEST_CASE("bubbles of equal stages are the textbook's") {
  const std::int64_t f = 1000, b = 2000;
  for (std::int64_t p : {1, 2, 4, 7, 16}) {
    for (std::int64_t m : {p, 2 * p, 5 * p, 40 * p}) {
      const auto end = [&](Schedule schedule, std::int64_t chunks) {
        const PipelineShape shape{schedule, p, chunks, m};
        return run_pipeline(shape, even_costs(shape, f, b)).end.ps;
      };
      CAPTURE(p, m);
      CHECK(end(Schedule::one_f_one_b, 1) == (m + p - 1) * (f + b));
      CHECK(end(Schedule::gpipe, 1) == (m + p - 1) * (f + b));
      // Narayanan et al. 2021, section 2.2.2: the bubble shrinks by the number of chunks.
      for (std::int64_t v : {2, 3, 8})
        CHECK(end(Schedule::interleaved, v) == (v * m + p - 1) * (f + b));
      // Qi et al. 2023, table 2: (p - 1) (T_F + T_B - T_W).
      if (m < 2 * p) continue;
      CHECK(end(Schedule::zero_bubble, 1) == m * (f + b) + (p - 1) * f);
      // The same of chunks, each a stage's share.
      for (std::int64_t v : {2, 3, 8})
        CHECK(end(Schedule::interleaved_zero_bubble, v) == v * m * (f + b) + (p - 1) * f);
    }
  }
}

TEST_CASE("the bubble of DualPipe is the report's") {
  // DeepSeek-V3, table 2: (p / 2 - 1) (F&B + B - 3 W) for a stage that holds two positions.
  for (std::int64_t p : {2, 4, 8, 16}) {
    for (std::int64_t m : {2 * p, 4 * p, 20 * p}) {
      const PipelineShape shape{Schedule::dual_pipe, p, 1, m};
      const std::int64_t f = 1000, b = 2000, w = 1000;
      CAPTURE(p, m);
      CHECK(run_pipeline(shape, even_costs(shape, f, b)).end.ps ==
            m * (f + b) + (p / 2 - 1) * (f + b + b - 3 * w));
    }
  }
}

TEST_CASE("the bubble of DualPipeV is DualPipe's of twice the positions") {
  // DualPipe's repository compares both by positions: (p / 2 - 1) (F&B + B - 3 W) with p positions
  // on p / 2 devices.
  for (std::int64_t stages : {2, 4, 8, 16}) {
    for (std::int64_t m : {2 * stages, 4 * stages, 20 * stages}) {
      const PipelineShape shape{Schedule::dual_pipe_v, stages, 2, m};
      const std::int64_t f = 1000, b = 2000, w = 1000;
      CAPTURE(stages, m);
      CHECK(run_pipeline(shape, even_costs(shape, f, b)).end.ps ==
            2 * m * (f + b) + (stages - 1) * (f + b + b - 3 * w));
    }
  }
}

TEST_CASE("ZB-H1 leaves a third of 1F1B's bubble, ZB-V none inside a stage's passes") {
  // Qi et al. 2023, sections 2 and 6, for forward, input and weight gradient of equal length.
  const std::int64_t f = 1000, b = 2000;
  for (std::int64_t p : {2, 3, 4, 8, 16}) {
    for (std::int64_t m : {2 * p, 3 * p + 1, 20 * p}) {
      CAPTURE(p, m);
      const PipelineShape plain{Schedule::one_f_one_b, p, 1, m}, h1{Schedule::zero_bubble, p, 1, m};
      const std::int64_t work = m * (f + b);
      const std::int64_t bubble = run_pipeline(plain, even_costs(plain, f, b)).end.ps - work;
      CHECK(3 * (run_pipeline(h1, even_costs(h1, f, b)).end.ps - work) == bubble);
      const PipelineShape v{Schedule::zero_bubble_v, p, 2, m};
      const PipelineRun run = run_pipeline(v, even_costs(v, f, b));
      for (const StageRun& stage : run.stages)
        CHECK(stage.end - stage.first_forward[0] == stage.busy);
      // A step that waits for all stages pays the way of half a chunk's forward down the V.
      CHECK(run.end.ps == 2 * work + (p - 1) * f);
    }
  }
}

TEST_CASE("a V's steady state is skipped") {
  for (const Schedule schedule : {Schedule::zero_bubble_v, Schedule::dual_pipe_v}) {
    const PipelineShape shape{schedule, 8, 2, 4096};
    PipelineCosts costs = even_costs(shape, 900000000, 1900000000);
    for (ChunkCost& cost : costs.chunk) cost.send_forward = cost.send_backward = Ticks{7000000};
    costs.chunk[1].forward += Ticks{30000001};
    const PipelineRun run = run_pipeline(shape, costs);
    CHECK(run.passes_skipped > 9 * run.passes_run);
    CHECK(same(run, run_pipeline(shape, costs, false)));
  }
}

TEST_CASE("what costs no time is skipped") {
  const PipelineShape shape{Schedule::interleaved, 16, 8, 4096};
  PipelineCosts costs = even_costs(shape, 900000000, 1900000000);
  for (ChunkCost& cost : costs.chunk) cost.send_forward = cost.send_backward = Ticks{70000000};
  costs.chunk.front().forward += Ticks{1234567};
  costs.chunk.back().forward += Ticks{300000001};
  costs.chunk.back().backward += Ticks{600000003};
  const PipelineRun run = run_pipeline(shape, costs);
  CHECK(run.passes_run + run.passes_skipped == 2 * 16 * 8 * 4096);
  CHECK(run.passes_skipped > 9 * run.passes_run);
  CHECK(same(run, run_pipeline(shape, costs, false)));
}

TEST_CASE("dual_pipe costs may be given once for both directions") {
  const PipelineShape shape{Schedule::dual_pipe, 4, 1, 12};
  RandomStream random(fresh(5), 0);
  PipelineCosts both = random_costs(random, shape), one = both;
  both.paired.clear();
  one.paired.clear();
  one.chunk.clear();
  for (std::size_t s = 0; s < 4; ++s) {
    one.chunk.push_back(both.chunk[2 * s]);
    both.chunk[2 * (3 - s) + 1] = both.chunk[2 * s];
  }
  CHECK(same(run_pipeline(shape, one), run_pipeline(shape, both)));
}

TEST_CASE("a step of more than 106 days is an error") {
  const PipelineShape shape{Schedule::one_f_one_b, 4, 1, 1000};
  CHECK_THROWS_AS(run_pipeline(shape, even_costs(shape, 9000000000000000, 9000000000000000)),
                  Error);
}
