// SPDX-License-Identifier: Apache-2.0
// Knows what traces of predictions promise: replayed, they take as long as was predicted.
#include "sim/chakra/step_trace.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "sim/chakra/replay.h"
#include "sim/chakra/trace_file.h"
#include "sim/engine/step/step.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "tests/engine/step_case.h"

namespace orrery {
namespace {

Scenario scenario_of(const std::string& model, const std::string& cluster, std::int64_t batch,
                     const Layout& layout, const std::string& stack = "nemo") {
  test::Case c = test::make_case(model, cluster, layout.gpus(), stack);
  c.job.global_batch = batch;
  return {.cluster = std::move(c.cluster),
          .model = std::move(c.model),
          .job = c.job,
          .layout = layout,
          .stack = std::move(c.stack)};
}

ReplayResult written_and_replayed(const Scenario& s, const std::string& name) {
  const ScratchFolder scratch("chakra_" + name);
  write_step_traces(s, scratch / "traces");
  const Traces traces = read_traces({scratch / "traces"}, {});
  REQUIRE(traces.ranks.size() == static_cast<std::size_t>(s.layout.gpus()));
  return replay(traces, s.cluster);
}

struct Row {
  std::string name, model, cluster;
  std::int64_t batch;
  Layout layout;
  std::string stack = "nemo";
};

}  // namespace

TEST_CASE("law: a replayed trace takes the time that was predicted") {
  const std::vector<Row> rows = {
      {"dp", "llama3-8b", "dgx-h100", 32, {.dp = 16}},
      {"tp", "llama3-8b", "dgx-h100", 16, {.tp = 8, .dp = 2}},
      {"pp", "llama3-8b", "dgx-h100", 32, {.tp = 2, .pp = 4, .dp = 2}},
      {"vpp",
       "llama3-8b",
       "dgx-h100",
       32,
       {.tp = 2, .pp = 4, .vpp = 4, .dp = 2, .schedule = Schedule::interleaved}},
      {"cp", "llama3-8b", "dgx-h100", 16, {.tp = 2, .dp = 4, .cp = 2}},
      {"ep", "mixtral-8x7b", "dgx-h100", 32, {.tp = 2, .pp = 2, .dp = 8, .ep = 8}},
      {"zero3", "llama3-8b", "dgx-h100", 32, {.dp = 16, .zero_stage = 3}, "pytorch-fsdp2"},
      {"zero2", "llama3-8b", "dgx-h100", 64, {.dp = 16, .zero_stage = 2}, "deepspeed-zero"},
      {"zero-bubble",
       "llama3-8b",
       "dgx-h100",
       32,
       {.tp = 2, .pp = 4, .dp = 2, .schedule = Schedule::zero_bubble}},
      {"v",
       "llama3-8b",
       "dgx-h100",
       32,
       {.tp = 2, .pp = 4, .vpp = 2, .dp = 2, .schedule = Schedule::zero_bubble_v}},
      {"dualpipe-v",
       "llama3-8b",
       "dgx-h100",
       32,
       {.tp = 2, .pp = 4, .vpp = 2, .dp = 2, .schedule = Schedule::dual_pipe_v}},
      {"dualpipe",
       "deepseek-v2-lite",
       "dgx-h100",
       64,
       {.pp = 2, .dp = 8, .ep = 8, .schedule = Schedule::dual_pipe}},
      {"tied", "llama3.2-1b", "dgx-h100", 32, {.pp = 2, .dp = 8}},
      {"deepspeed", "llama3-8b", "dgx-h100", 64, {.tp = 2, .pp = 2, .dp = 4}, "megatron-deepspeed"},
      {"offset", "llama3-8b", "gb200-nvl72", 128, {.tp = 4, .pp = 2, .dp = 16}},
      {"cp-ring", "llama3-8b", "dgx-h100", 16, {.tp = 2, .dp = 2, .cp = 8}},
      {"outer-pp", "llama3-8b", "dgx-h100", 64, {.tp = 8, .pp = 4, .dp = 2}},
      {"ep-wide", "deepseek-v3", "dgx-h100", 256, {.pp = 8, .dp = 16, .ep = 16}},
      {"tpu", "llama3-8b", "tpu-v5p", 64, {.tp = 4, .dp = 8}, "maxtext"},
      {"nanotron", "llama3-8b", "dgx-h100", 64, {.tp = 4, .pp = 2, .dp = 4}, "nanotron"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const Scenario s = scenario_of(row.model, row.cluster, row.batch, row.layout, row.stack);
    const StepResult predicted = step(step_context(s), s.model, s.job, s.layout, s.stack);
    const ReplayResult replayed = written_and_replayed(s, row.name);
    const double off =
        in_microseconds(to_seconds(replayed.step)) - in_microseconds(to_seconds(predicted.step));
    INFO(off << " us of " << to_text(to_seconds(predicted.step)));
    // Durations are whole microseconds, and what rounding leaves goes on within a stage: half a
    // microsecond each time that the longest path goes from one stage to another.
    const auto passes = static_cast<double>(2 * s.layout.pp * s.layout.vpp +
                                            2 * s.layout.vpp * s.layout.microbatches(s.job));
    CHECK(std::abs(off) < 2 + 0.5 * passes);
    CHECK(std::abs(off) < 2e-5 * in_microseconds(to_seconds(predicted.step)));
  }
}

TEST_CASE("a replayed rank computes as long as its stage was predicted to") {
  const Scenario s = scenario_of("llama3-8b", "dgx-h100", 32, {.tp = 2, .pp = 4, .dp = 2});
  const StepResult predicted = step(step_context(s), s.model, s.job, s.layout, s.stack);
  const ReplayResult replayed = written_and_replayed(s, "compute");
  const std::int64_t stride = s.layout.stride(Parallel::pp);
  for (std::size_t stage = 0; stage < predicted.stages.size(); ++stage) {
    Ticks compute = predicted.stages[stage][Label::optimizer];
    for (const Label label : compute_labels) compute += predicted.stages[stage][label];
    const RankReplay& rank = replayed.ranks[stage * static_cast<std::size_t>(stride)];
    CHECK(in_microseconds(to_seconds(rank.compute)) ==
          Approx(in_microseconds(to_seconds(compute))).margin(2));
    CHECK(rank.exposed > Ticks{});
    CHECK((rank.compute + rank.exposed + rank.idle) == replayed.step);
  }
}

TEST_CASE("traces of a decode step and of a job on flows take what was predicted") {
  Scenario decode = scenario_of("llama3-70b", "dgx-h200", 64, {.tp = 4, .pp = 2}, "trtllm");
  decode.job.task = Task::decode;
  decode.job.batch = 64;
  decode.job.context = 4096;
  Scenario flows = scenario_of("llama3-8b", "h100-roce", 64, {.tp = 4, .pp = 2, .dp = 16});
  flows.network = NetworkMode::flow;
  for (const Scenario* s : {&decode, &flows}) {
    const StepResult predicted = step(step_context(*s), s->model, s->job, s->layout, s->stack);
    const ReplayResult replayed = written_and_replayed(*s, "others");
    CHECK(in_microseconds(to_seconds(replayed.step)) ==
          Approx(in_microseconds(to_seconds(predicted.step))).epsilon(5e-4).margin(8));
  }
}

TEST_CASE("traces of many ranks are refused, and folders with others'") {
  const Scenario s = scenario_of("llama3-8b", "dgx-h100", 8192, {.dp = 8192});
  const ScratchFolder scratch("chakra_refused");
  CHECK(error_text([&] { write_step_traces(s, scratch / "many"); }).find("8192 ranks") !=
        std::string::npos);
  CHECK(!std::filesystem::exists(scratch / "many"));
  const Scenario few = scenario_of("llama3-8b", "dgx-h100", 8, {.dp = 8});
  scratch.add("step.8.et", "");
  CHECK(error_text([&] { write_step_traces(few, scratch / ""); }).find("step.8.et") !=
        std::string::npos);
  const StepTraces traces = step_traces(few);
  // Ranks that hold the same parameters differ in nothing but their numbers.
  CHECK(trace_bytes(rank_nodes(traces, 0), 8) == trace_bytes(rank_nodes(traces, 5), 8));
}

}  // namespace orrery
