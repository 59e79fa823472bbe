// SPDX-License-Identifier: Apache-2.0
// Tests what schedule answers where jobs ask for parts of GPUs.
#include <catch2/catch.hpp>

#include "tests/question/scheduled_case.h"

namespace orrery {
namespace {

SortedJson parts_of_jobs(const SortedJson& more = SortedJson::object()) {
  SortedJson settings = {{"cluster", "dgx-h100"}, {"gpus", 32}, {"days", 3}};
  settings["jobs"] = SortedJson::array({{{"mix", "pai-2020"}, {"per_day", 800}}});
  settings.update(more);
  return settings;
}

const SortedJson training = {
    {"id", "tuning"},      {"length", "10 h"},  {"model", "llama3.2-1b"},
    {"gpus", 0.5},         {"global_batch", 1}, {"seq", 512},
    {"recompute", "full"}, {"tp", 1},           {"stack", "megatron-core"}};

SortedJson with_uses(const char* sharing) {
  SortedJson settings = parts_of_jobs({{"sharing", sharing}, {"gpus", 8}});
  settings["jobs"][0]["uses"] = {{"busy", 0.7}, {"kernel", "40 us"}};
  return settings;
}

double mean_completion(const Scheduled& s) {
  return s.points.front().measures.front().completion.mean().si();
}

}  // namespace

TEST_CASE("jobs share GPUs unless they are told not to", "[schedule]") {
  const Scheduled s = scheduled(parts_of_jobs({{"share", {"never", "best-fit"}}}));
  REQUIRE(s.points.size() == 2);
  const FleetMeasures &never = s.points[0].measures.front(), &shared = s.points[1].measures.front();
  CHECK(shared.wait.mean() < never.wait.mean() * 0.5);
  CHECK(shared.shares.unshared < never.shares.unshared * 0.5);
  const FleetWork &one = s.points[0].record.use.work, &other = s.points[1].record.use.work;
  CHECK(one.useful == other.useful);
  CHECK(scheduled(parts_of_jobs()).points.front().record.last_end == s.points[1].record.last_end);
}

TEST_CASE("what knows whole GPUs alone does not let jobs share one", "[schedule]") {
  const auto refused = [](const SortedJson& more) { return schedule_failure(parts_of_jobs(more)); };
  const std::string why =
      "; expected share never beside it, since jobs ask for parts of a GPU: it knows whole GPUs "
      "alone";
  CHECK(refused({{"policy", "goodput"}}) == "test: policy: found \"goodput\"" + why);
  CHECK(refused({{"policy", "conservative"}}) == "test: policy: found \"conservative\"" + why);
  CHECK(refused({{"policy", "slurm-default"}}) == "test: policy: found \"slurm-default\"" + why);
  CHECK(refused({{"place", "pool"}}) == "test: place: found \"pool\"" + why);
  CHECK(refused({{"defragment", "pays"}}) == "test: defragment: found \"pays\"" + why);
  CHECK(refused({{"power_limit", "30 kW"}, {"power_policy", "priority"}}) ==
        "test: power_policy: found \"priority\"" + why);
  CHECK(scheduled(parts_of_jobs({{"power_limit", "30 kW"}})).runs == 1);
  CHECK(refused({{"policy", "goodput"}, {"share", "best-fit"}}) ==
        "test: share: found \"best-fit\"; expected never: this policy knows whole GPUs alone");
  CHECK(scheduled(parts_of_jobs({{"policy", "goodput"}, {"share", "never"}})).runs == 1);
  CHECK(schedule_failure(
            {{"cluster", "dgx-h100"}, {"gpus", 640}, {"trace", "philly"}, {"share", "never"}}) ==
        "test: share: found \"never\"; expected nothing here: no job asks for a part of a GPU");
  CHECK(refused({{"sharing", "mps"}}) ==
        "test: sharing: found \"mps\"; expected nothing without uses in an entry of jobs that ask "
        "for parts of a GPU");
}

TEST_CASE("a training on a part of a GPU takes its step alone, and its part of the memory",
          "[schedule]") {
  SortedJson settings = {{"cluster", "dgx-h100"}, {"gpus", 8}};
  SortedJson two = training;
  two["id"] = "other";
  settings["jobs"] = {training, two};
  const Scheduled s = scheduled(settings);
  SortedJson whole = training;
  whole["gpus"] = 1;
  settings["jobs"] = SortedJson::array({whole});
  const Scheduled alone = scheduled(settings);
  CHECK(s.points.front().trainings[0].end == alone.points.front().trainings[0].end);
  CHECK(s.points.front().trainings[1].end == alone.points.front().trainings[0].end);
  CHECK(s.points.front().record.use.held == alone.points.front().record.use.held);
  CHECK(s.points.front().record.use.work.unshared < 1'000'000);
  SortedJson small = training;
  small["gpus"] = 0.05;
  settings["jobs"] = SortedJson::array({small});
  CHECK(schedule_failure(settings).find("a training that needs ") != std::string::npos);
  small["gpus"] = 0.0001;
  settings["jobs"] = SortedJson::array({small});
  CHECK(schedule_failure(settings) ==
        "test: jobs[0].gpus: found 0.0001; expected whole GPUs, or 0.001 to 0.999 of one");
  small["gpus"] = 1.5;
  settings["jobs"] = SortedJson::array({small});
  CHECK(schedule_failure(settings) ==
        "test: jobs[0].gpus: found 1.5; expected whole GPUs, or a part of one such as 0.5");
  small["gpus"] = 0.5;
  small["sizes"] = {1, 2};
  settings["jobs"] = SortedJson::array({small});
  CHECK(schedule_failure(settings).find("one size") != std::string::npos);
}

TEST_CASE("who says what a job asks of a GPU lets those that share it slow each other",
          "[schedule]") {
  const double alone = mean_completion(scheduled(parts_of_jobs({{"gpus", 8}})));
  const double turns = mean_completion(scheduled(with_uses("time-slices")));
  const double queue = mean_completion(scheduled(with_uses("mps")));
  CHECK(turns > alone * 1.05);
  CHECK(queue > alone * 1.05);
  CHECK(queue < turns);  // nothing is lost to switches
  SortedJson settings = with_uses("mps");
  settings["jobs"][0]["uses"]["busy"] = 1.5;
  CHECK(schedule_failure(settings) ==
        "test: jobs[0].uses.busy: found 1.5; expected a share of time above 0, up to 1");
  settings = with_uses("mps");
  settings["jobs"][0] = {
      {"mix", "acme-kalos"}, {"per_day", 5}, {"uses", {{"busy", 0.5}, {"kernel", "1 us"}}}};
  CHECK(schedule_failure(settings).find("none of these jobs asks for a part of a GPU") !=
        std::string::npos);
}

}  // namespace orrery
