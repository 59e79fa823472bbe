// SPDX-License-Identifier: Apache-2.0
// Holds a pipeline's picture to the schedule: no stage does two things at once, nothing is missing.
#include "sim/outcome/timeline.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "sim/engine/cluster.h"
#include "sim/outcome/simulate.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

Scenario pipelined(std::int64_t pp, std::int64_t vpp, Schedule schedule, std::int64_t batch) {
  Scenario s{.cluster = load_cluster("dgx-h100", 64),
             .model = load_model("llama3-8b", data_root() / "workloads/catalog/models")};
  s.job.sequence = 4096;
  s.job.global_batch = batch;
  s.stack = load_stack("nemo",
                       {.architecture = std::string(to_text(s.cluster.device.architecture)),
                        .precision = s.layout.precision,
                        .moe = s.model.has_experts(),
                        .task = s.job.task},
                       data_root() / "workloads/catalog/stacks");
  s.layout.pp = pp;
  s.layout.vpp = vpp;
  s.layout.tp = 2;
  s.layout.dp = 64 / (2 * pp);
  s.layout.schedule = schedule;
  return s;
}

}  // namespace

TEST_CASE("passes of a stage follow each other") {
  struct Case {
    std::int64_t pp, vpp;
    Schedule schedule;
  };
  for (const Case& c : {Case{4, 1, Schedule::one_f_one_b}, Case{4, 2, Schedule::interleaved},
                        Case{8, 1, Schedule::gpipe}, Case{4, 1, Schedule::zero_bubble}}) {
    const auto timeline = step_timeline(pipelined(c.pp, c.vpp, c.schedule, 256));
    REQUIRE(timeline);
    CHECK(timeline->of == 256 / (64 / (2 * c.pp)));
    CHECK(timeline->microbatches <= timeline->of);
    CHECK(timeline->idle > 0);
    CHECK(timeline->idle < 1);
    std::map<std::int64_t, double> busy_until;
    std::map<std::int64_t, std::int64_t> forwards;
    for (const TimelinePass& pass : timeline->passes) {
      CHECK(pass.start.si() >= busy_until[pass.stage]);
      CHECK(pass.end >= pass.start);
      CHECK(pass.end <= timeline->end);
      busy_until[pass.stage] = pass.end.si();
      if (pass.pass.kind == PassKind::forward) ++forwards[pass.stage];
    }
    CHECK(forwards.size() == static_cast<std::size_t>(c.pp));
    for (const auto& [stage, count] : forwards) CHECK(count == c.vpp * timeline->microbatches);
  }
}

TEST_CASE("what has no pipeline has no picture of one") {
  CHECK_FALSE(step_timeline(pipelined(1, 1, Schedule::one_f_one_b, 64)));
}

}  // namespace orrery
