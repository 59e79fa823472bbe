// SPDX-License-Identifier: Apache-2.0
// Holds hypothetical machines to what their keys say, in simulate, advise and plan alike.
#include "sim/question/settings/what_if.h"

#include <catch2/catch.hpp>

#include "sim/app/ask/answers.h"
#include "tests/app/plan_questions.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

const SortedJson job = {{"model", "llama3-8b"}, {"cluster", "dgx-h100"}, {"gpus", 64},
                        {"seq", 4096},          {"global_batch", 256},   {"tp", 8},
                        {"reasons", false}};

SortedJson simulated(const std::string& key, const SortedJson& value) {
  Catalogues catalogues;
  return SortedJson(answer_for_machines("simulate", JsonValue::from(with(job, key, value), "asked"),
                                        {.catalogues = catalogues})
                        .json);
}

double step_time(const std::string& key, const SortedJson& value) {
  return simulated(key, value).at("prediction").at("step_time_s").get<double>();
}

}  // namespace

TEST_CASE("a factor of one changes nothing, and more is never slower") {
  const double as_it_is = step_time("tp", 8);
  for (const char* key : {"memory_bandwidth", "scale_up_bandwidth", "nic_bandwidth",
                          "memory_capacity", "tensor_rate"}) {
    INFO(key);
    CHECK(step_time(key, 1) == as_it_is);
    double before = step_time(key, 0.5);
    for (const double factor : {0.8, 1.0, 1.3, 2.0}) {
      const double now = step_time(key, factor);
      CHECK(now <= before);
      before = now;
    }
  }
  CHECK(step_time("scale_up_bandwidth", 2) < as_it_is);
}

TEST_CASE(
    "a value with its unit is a factor of what there is, and an answer says what is changed") {
  // The H100's memory has 3.35 TB/s.
  CHECK(step_time("memory_bandwidth", "6.7 TB/s") == Approx(step_time("memory_bandwidth", 2)));
  CHECK(step_time("power_cap", "500 W") > step_time("power_cap", "none"));
  const SortedJson answer = simulated("memory_bandwidth", 2);
  CHECK(answer.at("notes").at(0) ==
        "The machine is hypothetical: dgx-h100 with memory bandwidth x 2.");
  CHECK(simulated("tp", 4).at("notes").empty());
}

TEST_CASE("a hypothetical machine that cannot be is one clear error") {
  for (const auto& [flags, part] :
       {std::pair{"--memory-bandwidth 0", "a value above 0 such as \"8 TB/s\""},
        {"--memory-bandwidth 8TB", "memory-bandwidth"},
        {"--tensor-rate -1", "tensor-rate"},
        {"--power-cap '10 W'", "power-cap"},
        {"--nic-bandwidth x", "nic-bandwidth"}}) {
    const test::Outcome o =
        test::run(std::string("simulate --model llama3-8b --cluster dgx-h100 --gpus 16 --seq 4096 "
                              "--global-batch 64 ") +
                  flags);
    INFO(flags << "\n" << o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(test::lines(o.err) == 1);
    CHECK(o.err.find(part) != std::string::npos);
  }
}

TEST_CASE("a plan's machine is simulate's, and more failures leave less time") {
  const SortedJson question = {{"model", "llama3-8b"},
                               {"cluster", "dgx-h100"},
                               {"seq", 4096},
                               {"global_batch", 256},
                               {"tokens", "1T"},
                               {"gpus", 64},
                               {"tp", 8},
                               {"pp", 1},
                               {"cp", 1}};
  const auto planned = [&](const std::string& key, const SortedJson& value) {
    Catalogues catalogues;
    return SortedJson(answer_for_machines("plan", JsonValue::from(with(question, key, value), "q"),
                                          {.catalogues = catalogues})
                          .json)
        .at("points")
        .front();
  };
  const double as_it_is = planned("tp", 8).at("effective").get<double>();
  CHECK(planned("failure_rate", 1).at("effective").get<double>() == as_it_is);
  CHECK(planned("failure_rate", 10).at("effective").get<double>() < as_it_is);
  CHECK(planned("failure_rate", 0.1).at("effective").get<double>() > as_it_is);
  CHECK(error_of(with(question, "failure_rate", 0)).find("failure_rate") != std::string::npos);
}

}  // namespace orrery
