// SPDX-License-Identifier: Apache-2.0
// Tests `schedule` with jobs of RL that take turns on shared pools: answers and refusals.
#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
#include "tests/app/pages.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::ScratchFolder;
using orrery::SortedJson;

namespace {

SortedJson llama(const std::string& id, double response) {
  return {{"id", id},
          {"model", "llama3.1-8b"},
          {"gpus", 16},
          {"program", "nemo-rl"},
          {"prompt", 128},
          {"response", response},
          {"context", 4096},
          {"responses", 512},
          {"generation", {{"gpus", 8}}},
          {"training", {{"recompute", "full"}}}};
}

SortedJson question(const SortedJson& rl) {
  return {{"cluster", "dgx-h100"},
          {"gpus", 16},
          {"policy", "easy"},
          {"jobs", {{{"id", "post"}, {"steps", 1000}, {"rl", rl}}}}};
}

Outcome ask(const SortedJson& asked, const std::string& more = "") {
  const ScratchFolder scratch("schedule_pools");
  return run("schedule " + scratch.add("pools.json", asked.dump()).string() + more);
}

SortedJson answer_of(const SortedJson& asked) {
  const Outcome o = ask(asked, " --json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  return SortedJson::parse(o.out);
}

SortedJson pools_of(const SortedJson& rl) {
  const SortedJson answer = answer_of(question(rl));
  return answer.at("shared_pools").at(0);
}

void expect_refusal(const SortedJson& rl, const std::string& words, int code = 2) {
  const Outcome o = ask(question(rl));
  INFO(o.err);
  CHECK(o.code == code);
  CHECK(o.out.empty());
  CHECK(lines(o.err) == 1);
  CHECK(o.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("jobs of RL that take turns run a step each in a period", "[schedule]") {
  const SortedJson math = llama("math", 1500), code = llama("code", 1000);
  const SortedJson answer = answer_of(question({math, code}));
  const SortedJson& pools = answer.at("shared_pools").at(0);
  const double period = pools.at("step_s").get<double>();
  const SortedJson& first = answer.at("points").at(0).at("first");
  CHECK(first.at("completion_s").at("mean").get<double>() == Approx(1000 * period).epsilon(1e-6));
  CHECK(first.at("gpu_share").at("useful").get<double>() == Approx(1));
  double alone = 0;
  for (const SortedJson& job : answer.at("post_trainings")) {
    CHECK(job.at("pools") == "post");
    alone += job.at("step").at("step_s").get<double>();
    CHECK(period >= job.at("step").at("step_s").get<double>());
  }
  CHECK(answer.at("post_trainings").size() == 2);
  CHECK(pools.at("gain").get<double>() == Approx(alone / period));
  CHECK(pools.at("gain").get<double>() > 1.2);
  CHECK(pools.at("rollout_pool").at("gpus") == 8);
  const SortedJson& turn = pools.at("jobs").at(0);
  CHECK(pools.at("rollout_pool").at("busy").get<double>() >
        turn.at("rollout_busy_alone").get<double>());
  // Each alone answers with the same step, and knows of no pools.
  SortedJson single = math;
  single.erase("id");
  const SortedJson by_itself = answer_of(question(single));
  CHECK_FALSE(by_itself.contains("shared_pools"));
  CHECK_FALSE(by_itself.at("post_trainings").at(0).contains("pools"));
  CHECK(by_itself.at("post_trainings").at(0).at("step") ==
        answer.at("post_trainings").at(0).at("step"));
}

TEST_CASE("pools are told in words, and their answers repeat", "[schedule]") {
  const ScratchFolder scratch("schedule_pools_words");
  // A model file that one of the jobs names stands in the answer.
  const auto model = scratch.add(
      "mine.json", read_file(source_folder() / "workloads/catalog/models/llama3.1-8b.json"));
  SortedJson math = llama("math", 1500);
  math["model"] = model.string();
  const SortedJson asked = question({math, llama("code", 1000)});
  const Outcome text = ask(asked);
  REQUIRE(text.code == 0);
  CHECK(text.out.find("Pools of post") != std::string::npos);
  CHECK(text.out.find("times the GPU-time") != std::string::npos);
  const Outcome json = ask(asked, " --json");
  std::filesystem::remove(model);
  const Outcome again = run("rerun " + scratch.add("answer.json", json.out).string());
  INFO(again.err);
  CHECK(again.code == 0);
}

TEST_CASE("a better order of more jobs is told", "[schedule]") {
  // Two of many responses and two of few: long turns want to meet each other.
  SortedJson list = SortedJson::array();
  for (const char* id : {"few", "many", "few-too", "many-too"}) {
    list.push_back(llama(id, 500));
    list.back()["responses"] = std::string(id).starts_with("many") ? 2048 : 512;
  }
  const SortedJson pools = pools_of(list);
  const SortedJson& best = pools.at("best_order");
  // A cycle, told from the first job on: each of the two alike stands beside its twin.
  CHECK(best.at("jobs") == SortedJson{"few", "many", "many-too", "few-too"});
  CHECK(best.at("step_s").get<double>() < 0.97 * pools.at("step_s").get<double>());
  CHECK(ask(question(list)).out.find("In the order few, many, many-too, few-too a period takes") !=
        std::string::npos);
  std::swap(list[2], list[3]);
  const SortedJson ordered = pools_of(list);
  CHECK(ordered.at("step_s") == best.at("step_s"));
  CHECK(ask(question(list)).out.find("In the order") == std::string::npos);
}

TEST_CASE("jobs of RL that cannot take turns are refused where they stand", "[schedule]") {
  const SortedJson math = llama("math", 1500), code = llama("code", 1000);
  const auto with = [&](const char* key, const SortedJson& value) {
    SortedJson other = code;
    other[key] = value;
    return SortedJson::array({math, other});
  };
  expect_refusal(SortedJson::array({math}), "pools.json: jobs[0].rl: found");
  expect_refusal(with("id", "math"), "each id once");
  expect_refusal(with("generation", {{"gpus", 0}}), "jobs[0].rl[1]: RL jobs that share pools");
  expect_refusal(with("generation", {{"gpus", 4}}), "expected 8 and 8");
  expect_refusal(with("steps_off", 1), "both of whose pools are at work");
  expect_refusal(with("respons", 1), "did you mean \"response\"");
  expect_refusal(SortedJson::array({math, 3}), "jobs[0].rl[1]: found 3");
  expect_refusal(3, "jobs[0].rl: found 3");
  SortedJson nameless = code;
  nameless.erase("id");
  expect_refusal(SortedJson::array({math, nameless}), "jobs[0].rl[1].id: found nothing");
  SortedJson tight = question({math, code});
  tight["cluster"] = {{"based_on", "dgx-h100"},
                      {"name", "small hosts"},
                      {"overrides",
                       {{"host",
                         {{"memory",
                           {{"value", "100 GB"},
                            {"evidence", "specified"},
                            {"source", "nvidia-dgx-a100-guide"}}}}}}}};
  const Outcome o = ask(tight);
  INFO(o.err);
  CHECK(o.code == 3);
  CHECK(o.err.find("in host memory") != std::string::npos);
}
