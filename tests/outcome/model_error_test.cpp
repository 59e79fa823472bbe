// SPDX-License-Identifier: Apache-2.0
// Tests the 90% range of a prediction: its parts, its regions, and what widens it.
#include "sim/outcome/model_error.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "sim/outcome/simulate.h"
#include "tests/base/scratch_folder.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

Scenario training() {
  Scenario s{.cluster = load_cluster("dgx-h100", 16),
             .model = load_model("llama3-8b", data_root() / "workloads/catalog/models")};
  s.job.sequence = 4096;
  s.job.global_batch = 64;
  s.layout = {.tp = 2, .pp = 1, .dp = 8};
  s.stack = load_stack("nemo", {.architecture = "hopper", .precision = s.layout.precision},
                       data_root() / "workloads/catalog/stacks");
  return s;
}

ModelError some_error(const Scenario& s) {
  ModelError error;
  error.whole = {.below = 0.3, .above = 0.4, .rows = 100, .sources = 5};
  error.regions["nemo, dense, hopper, family measured"] = {
      .below = 0.05, .above = 0.1, .rows = 50, .sources = 3};
  error.difficulty = {.exposed = {.slope = 0, .centre = 0.1}, .near_limit = {.slope = 0}};
  error.stated_share = 0.5;
  error.run_to_run = 0.01;
  error.blank = 0.03;
  error.unseen = {.device = 0.1, .stack = 0.05, .precision = 0.02, .doubling = 0.02};
  error.seen = {.devices = {s.cluster.device.name},
                .stacks = {"nemo"},
                .precisions = {std::string(to_text(s.layout.precision))},
                .families = {"nemo, " + s.model.family},
                .most_gpus = 1024};
  return error;
}

TEST_CASE("a prediction's range joins values, the model's error and run to run") {
  const Scenario s = training();
  const ModelError error = some_error(s);
  const Prediction alone = simulate(s, {});
  const Prediction p = simulate(s, {.model_error = &error});
  CHECK(p.step_time == alone.step_time);
  CHECK(p.low < alone.step_time);
  CHECK(p.high > alone.step_time);
  CHECK(p.range->region == "nemo, dense, hopper, family measured");
  CHECK(p.range->widened.empty());
  CHECK(p.range->below.model == 0.05);
  CHECK(p.range->above.model == 0.1);
  CHECK(p.range->above.parameters == Approx(0.5 * alone.range->above.parameters));
  const RangeParts& above = p.range->above;
  CHECK(above.total() == Approx(std::sqrt(above.parameters * above.parameters + 0.01 +
                                          above.run_to_run * above.run_to_run +
                                          above.extrapolation * above.extrapolation)));
  CHECK(p.high.si() == Approx(p.step_time.si() * std::exp(above.total())));
  CHECK(alone.range->region.empty());
  CHECK(alone.range->above.model == 0);
}

TEST_CASE("what no measured run had widens a range and is named") {
  const Scenario s = training();
  const ModelError error = some_error(s);
  const RunKind known = run_kind(s);
  const auto width = [&](const RunKind& run) {
    const PredictionRange range = prediction_range(run, {}, {}, &error);
    CHECK((range.widened.empty() == (range.above.extrapolation == 0)));
    return range.above.extrapolation;
  };
  CHECK(width(known) == 0);
  RunKind run = known;
  run.device = "rubin";
  CHECK(width(run) == Approx(0.1));
  run.precision = "nvfp4";
  CHECK(width(run) == Approx(std::sqrt(0.01 + 0.0004)));
  run = known;
  run.gpus = 4096;
  CHECK(width(run) == Approx(0.04));
  run = known;
  run.blanks = 4;
  CHECK(width(run) == Approx(0.06));
}

// Training runs bear out a share of the stated ranges; of inference no run was measured.
TEST_CASE("what inference's range grows by outside of measured shapes counts whole") {
  const Scenario s = training();
  ModelError error = some_error(s);
  error.stated_share = 0.1;
  const std::vector<Assumption> assumptions = {
      {.path = "accelerator h100-sxm: calibration.gemm.bf16.cublas",
       .effect_low = -0.5,
       .effect_high = 2.0}};
  const std::vector<Extrapolation> outside = {{.curve = "gemm.bf16.cublas", .growth = 2.0}};
  const PredictionRange stated = prediction_range(run_kind(s), assumptions, outside, nullptr);
  RunKind run = run_kind(s);
  const PredictionRange training_range = prediction_range(run, assumptions, outside, &error);
  run.kind = "inference";
  const PredictionRange range = prediction_range(run, assumptions, outside, &error);
  CHECK(stated.above.extrapolation == Approx(std::log(3.0)));
  CHECK(range.above.extrapolation >= stated.above.extrapolation);
  CHECK(range.below.extrapolation >= stated.below.extrapolation);
  CHECK(training_range.above.extrapolation < 0.5 * stated.above.extrapolation);
}

TEST_CASE("the model's error is larger where a run waits for communication or fills the memory") {
  const Scenario s = training();
  ModelError error = some_error(s);
  error.difficulty = {.exposed = {.slope = 3, .centre = 0.1},
                      .near_limit = {.slope = 1, .centre = 0.2},
                      .waits = {.slope = 2, .centre = 0}};
  RunKind run = run_kind(s);
  const auto width = [&] { return prediction_range(run, {}, {}, &error).above.model; };
  run.exposed = 0.1;
  run.filled = 0.84;
  CHECK(width() == Approx(0.1));
  run.exposed = 0.3;
  CHECK(width() == Approx(0.1 * std::exp(3 * 0.2)));
  run.filled = 1;
  CHECK(width() == Approx(0.1 * std::exp(3 * 0.2 + 0.8)));
  // No measured run goes further.
  run.filled = 1.5;
  run.exposed = 0.5;
  const double widest = width();
  run.exposed = 0.9;
  CHECK(width() == widest);
  run.waits = 0.5;
  CHECK(width() == Approx(widest * std::exp(1)));
}

TEST_CASE("a step tells how much of it waits and how full the memory is") {
  StageBreakdown stage;
  stage[Label::gemm] = Ticks{60};
  stage[Label::host] = Ticks{10};
  stage[Label::tensor_comm] = Ticks{20};
  stage[Label::pipeline_comm] = Ticks{10};
  RunKind run;
  add_step(run, stage, {.margin = 0.25});
  CHECK(run.exposed == Approx(0.3));
  CHECK(run.filled == Approx(0.8));
  add_step(run, {}, {.margin = 0});
  CHECK(run.exposed == 0);
}

TEST_CASE("on a device that no run was on the stated ranges count in full") {
  const Scenario s = training();
  const ModelError error = some_error(s);
  const std::vector<Assumption> assumptions = {
      {.path = "accelerator x: memory.bandwidth", .effect_low = -0.1, .effect_high = 0.2}};
  RunKind run = run_kind(s);
  const double measured = prediction_range(run, assumptions, {}, &error).above.parameters;
  CHECK(measured == Approx(0.5 * std::log(1.2)));
  run.device = "rubin";
  CHECK(prediction_range(run, assumptions, {}, &error).above.parameters == Approx(std::log(1.2)));
}

TEST_CASE("a run lies in the narrowest region that was measured") {
  const Scenario s = training();
  ModelError error = some_error(s);
  RunKind run = run_kind(s);
  const auto above = [&] { return error.region(error.regions_of(run)).above; };
  CHECK(above() == 0.1);
  run.architecture = "blackwell";
  CHECK(above() == 0.4);
  error.regions["dense"] = {.below = 0.1, .above = 0.3};
  CHECK(above() == 0.3);
  error.regions["nemo, dense, family measured"] = {.below = 0.1, .above = 0.2};
  CHECK(above() == 0.2);
  // A family or a device without a run is new, whatever its stack has run.
  run.family = "a new one";
  CHECK(above() == 0.3);
  CHECK(error.stated_share_of(run) == error.new_share);
  run = run_kind(s);
  run.device = "rubin";
  CHECK(above() == 0.3);
  CHECK(error.stated_share_of(run) == 1);
  CHECK(prediction_range(run, {}, {}, &error).region == "dense");
}

TEST_CASE("a stand-in has regions of its own, whatever its stack has run") {
  const Scenario s = training();
  ModelError error = some_error(s);
  error.regions["stand-in"] = {.below = 0.3, .above = 0.5};
  RunKind run = run_kind(s);
  const PredictionRange own = prediction_range(run, {}, {}, &error);
  run.program = "a program of the year 2022";
  const PredictionRange range = prediction_range(run, {}, {}, &error);
  CHECK(range.region == "stand-in");
  CHECK(range.above.model == Approx(5 * own.above.model));
  const std::string reason = run.stack + " stands in for a program of the year 2022";
  CHECK(std::count(range.widened.begin(), range.widened.end(), reason) == 1);
  CHECK(std::count(own.widened.begin(), own.widened.end(), reason) == 0);
  error.regions["stand-in, dense"] = {.below = 0.3, .above = 0.6};
  CHECK(prediction_range(run, {}, {}, &error).region == "stand-in, dense");
}

TEST_CASE("a new model that no script names has regions of its own, a measured one has not") {
  const Scenario s = training();
  ModelError error = some_error(s);
  error.regions["no script"] = {.below = 0.2, .above = 0.3};
  RunKind run = run_kind(s);
  run.unscripted = true;
  CHECK(prediction_range(run, {}, {}, &error).region != "no script");
  run.family = "nobody's";
  CHECK(prediction_range(run, {}, {}, &error).region == "no script");
  run.unscripted = false;
  CHECK(prediction_range(run, {}, {}, &error).region != "no script");
}

TEST_CASE("the model's error is read as it was written") {
  const Scenario s = training();
  ModelError error = some_error(s);
  error.collectives["nccl, one domain, from 1 MiB"] = {.below = 0.1, .above = 0.2};
  error.memory = 0.05;
  const ScratchFolder folder("model_error");
  const ModelError read = load_model_error(folder.add("error.json", to_json_text(error)));
  CHECK(to_json_text(read) == to_json_text(error));
  CHECK(read.region({"nemo, dense, hopper, family measured"}).above == 0.1);
  CHECK(read.collective("nccl", false, true).above == 0.2);
  CHECK(read.seen.most_gpus == 1024);
}

TEST_CASE("the shipped error was measured on many rows of several sources") {
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  CHECK(error.whole.rows > 100);
  CHECK(error.whole.sources > 3);
  CHECK(error.stated_share >= 0);
  CHECK(error.stated_share <= 1);
  for (const auto& [name, region] : error.regions) {
    INFO(name);
    CHECK(region.below >= 0);
    CHECK(region.above >= 0);
    // What is stated of values may explain all of it; a range is not nothing.
    CHECK(region.below + region.above + error.run_to_run > 0.02);
  }
  CHECK(error.regions.contains("stand-in"));
  CHECK(error.regions.at("stand-in").above > error.regions.at("dense").above);
}

}  // namespace
}  // namespace orrery
