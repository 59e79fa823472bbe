// SPDX-License-Identifier: Apache-2.0
// Tests the charts of answers: what they draw, and that an answer which was changed by hand is
// told.
#include "sim/app/charts/charts.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "sim/app/ask/answers.h"
#include "sim/app/schedule/command.h"
#include "sim/app/serve/command.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

const SortedJson job = {{"model", "llama3-8b"},
                        {"cluster", "dgx-h100"},
                        {"gpus", 16},
                        {"seq", 4096},
                        {"global_batch", 64}};

JsonValue asked(const SortedJson& more) {
  SortedJson settings = job;
  settings.update(more);
  return JsonValue::from(settings, "asked");
}

SortedJson answer(const std::string& command, const SortedJson& more) {
  Catalogues catalogues;
  return SortedJson(answer_for_machines(command, asked(more), {.catalogues = catalogues}).json);
}

SortedJson served() {
  return SortedJson(serve_again(JsonValue::from({{"model", "llama3.3-70b"},
                                                 {"cluster", "dgx-h100"},
                                                 {"stack", "vllm"},
                                                 {"engines", "TP8"},
                                                 {"concurrency", SortedJson::array({1, 4})},
                                                 {"requests", 20},
                                                 {"isl", "200"},
                                                 {"osl", "20"}},
                                                "asked"),
                                1, 1)
                        .json);
}

// Jobs that fail and wait, by two policies.
SortedJson scheduled(const SortedJson& more = SortedJson::object()) {
  SortedJson settings = {{"cluster", "dgx-h100"},
                         {"gpus", 64},
                         {"days", 3},
                         {"policy", SortedJson::array({"fifo", "easy"})},
                         {"reliability", "llama3-h100"},
                         {"jobs", SortedJson::array({{{"mix", "acme-kalos"}, {"per_day", 80}}})}};
  settings.update(more);
  return SortedJson(schedule_again(JsonValue::from(settings, "asked"), 1, 1).json);
}

std::vector<Chart> charts(const SortedJson& json) {
  return charts_of(JsonValue::from(json, "answer"));
}

std::vector<std::string> names(const SortedJson& json) {
  std::vector<std::string> all;
  for (const Chart& chart : charts(json)) all.push_back(chart.name);
  return all;
}

double sum_of(const Json& chart, const char* field) {
  double sum = 0;
  for (const Json& row : chart.at("data").at("values")) sum += row.at(field).get<double>();
  return sum;
}

TEST_CASE("charts of a step add up to the step and to its memory") {
  const SortedJson json = answer("simulate", {{"tp", 2}});
  const std::vector<Chart> all = charts(json);
  REQUIRE(names(json) == std::vector<std::string>{"time", "memory", "sensitivity", "levers"});
  const SortedJson& prediction = json.at("prediction");
  CHECK(sum_of(all[0].spec, "seconds") ==
        Approx(prediction.at("step_time_s").get<double>()).epsilon(0.002));
  const double allocated =
      prediction.at("memory").at("stages").at(0).at("allocated_bytes").get<double>();
  // Parts that are never held at once are counted in each.
  CHECK(sum_of(all[1].spec, "gib") * 1024 * 1024 * 1024 > 0.95 * allocated);
}

TEST_CASE("a pipeline in time has a bar for each pass") {
  const SortedJson json = answer("simulate", {{"pp", 4}, {"timeline", true}});
  const std::vector<Chart> all = charts(json);
  const auto at = std::find_if(all.begin(), all.end(),
                               [](const Chart& chart) { return chart.name == "timeline"; });
  REQUIRE(at != all.end());
  const SortedJson& passes = json.at("timeline").at("passes");
  CHECK(at->spec.at("data").at("values").size() == passes.size());
  CHECK(passes.size() == 2 * 4 * json.at("timeline").at("microbatches").get<std::size_t>());
  CHECK_FALSE(answer("simulate", {{"pp", 4}}).contains("timeline"));
  CHECK_FALSE(answer("simulate", {{"timeline", true}}).contains("timeline"));
}

TEST_CASE("every command draws what it found, under names of its own") {
  CHECK(names(answer("advise", {{"top", 3}, {"pareto", "time,memory"}})) ==
        std::vector<std::string>{"layouts", "pareto", "time", "memory", "sensitivity", "levers"});
  CHECK(names(served()) == std::vector<std::string>{"curve", "ttft", "tpot", "request"});
  Catalogues catalogues;
  const JsonValue plan = JsonValue::from({{"model", "llama3-8b"},
                                          {"cluster", "dgx-h100"},
                                          {"seq", 4096},
                                          {"global_batch", 256},
                                          {"tokens", "100B"},
                                          {"gpus", SortedJson::array({64, 128})}},
                                         "asked");
  CHECK(names(SortedJson(answer_for_machines("plan", plan, {.catalogues = catalogues}).json)) ==
        std::vector<std::string>{"cost", "months"});
  CHECK(charts(answer("simulate", {{"model", "llama3.1-405b"}})).size() > 1);
  CHECK(charts({{"orrery", {{"command", "topology"}}}}).empty());
}

TEST_CASE("charts of jobs on a cluster add up, with an interval where there are several runs") {
  const SortedJson once = scheduled(), json = scheduled({{"seeds", 3}});
  const std::vector<Chart> all = charts(json);
  REQUIRE(names(json) ==
          std::vector<std::string>{"waits", "shares", "sizes", "states", "queue", "power"});
  const Json& waits = all[0].spec.at("data").at("values");
  REQUIRE(waits.size() == 4);
  double sum = 0;
  for (const SortedJson& run : json.at("points").at(0).at("runs"))
    sum += run.at("wait_s").get<double>();
  CHECK(waits.at(0).at("hours").get<double>() == Approx(sum / 3 / 3600));
  CHECK(waits.at(0).at("low").get<double>() < waits.at(0).at("hours").get<double>());
  CHECK(all[0].spec.at("layer").size() == 2);
  CHECK(charts(once)[0].spec.at("layer").size() == 1);
  // Of two points; parts that do not show are left out.
  CHECK(sum_of(all[1].spec, "percent") == Approx(200).epsilon(0.003));
  std::size_t started = 0;  // kinds of jobs of which some did
  const SortedJson& best = json.at("points").at(json.at("best").get<std::size_t>());
  for (const SortedJson& group : best.at("first").at("by_size"))
    started += group.at("wait_s").at("jobs").get<int>() > 0 ? 1U : 0U;
  CHECK(all[2].spec.at("data").at("values").size() == 3 * started);
  SortedJson points = SortedJson::array();
  for (int gpus = 40; gpus <= 240; gpus += 8) points.push_back(gpus);
  const Chart few = charts(scheduled({{"policy", "easy"}, {"gpus", points}})).front();
  CHECK(few.spec.at("data").at("values").size() == 2 * 20);
  CHECK(few.spec.at("title").at("subtitle").get<std::string>().find("20 of 26 points") !=
        std::string::npos);
}

TEST_CASE("charts of a cluster over time hold all of its accelerators, to the end of the run") {
  const SortedJson json = scheduled();
  const SortedJson& best = json.at("points").at(json.at("best").get<std::size_t>());
  const SortedJson& first = best.at("first");
  const std::vector<Chart> all = charts(json);
  std::map<double, double> gpus;  // by day
  for (const Json& value : all[3].spec.at("data").at("values"))
    gpus[value.at("day").get<double>()] += value.at("gpus").get<double>();
  const std::size_t parts = first.at("timeline").size();
  REQUIRE(gpus.size() == parts + 1);
  for (const auto& [day, sum] : gpus) CHECK(sum == Approx(64));
  CHECK(gpus.rbegin()->first * 86'400 == Approx(first.at("span_s").get<double>()));
  // What is drawn is the energy of the run, and the time that jobs waited.
  const auto area = [](const Chart& chart) {
    double sum = 0;
    const Json& values = chart.spec.at("data").at("values");
    for (std::size_t i = 0; i + 1 < values.size(); ++i)
      sum += values.at(i).at("value").get<double>() * 86'400 *
             (values.at(i + 1).at("day").get<double>() - values.at(i).at("day").get<double>());
    return sum;
  };
  CHECK(1e6 * area(all[5]) == Approx(first.at("energy_j").get<double>()));
  CHECK(area(all[4]) == Approx(first.at("wait_s").at("sum").get<double>() +
                               first.at("waited_again_s").get<double>()));
  // A reading for each part.
  CHECK(all[3].spec.at("layer").at(1).at("data").at("values").size() == parts);
  SortedJson brief = json;
  brief["points"][json.at("best").get<std::size_t>()]["first"]["timeline"] =
      SortedJson::array({first.at("timeline").at(0)});
  CHECK(names(brief) == std::vector<std::string>{"waits", "shares", "sizes"});
}

// Takes one value out of the answer, or puts another in its place, at random.
void damage(SortedJson& at, std::mt19937_64& random, int depth = 0) {
  const auto draw = [&](std::size_t most) { return random() % most; };
  if (at.is_structured() && !at.empty() && (depth < 2 || draw(4) != 0)) {
    const std::size_t which = draw(at.size());
    if (at.is_array()) return damage(at[which], random, depth + 1);
    auto& [key, value] = at.items()[which];
    if (draw(6) == 0) {
      at.erase(std::string(key));
      return;
    }
    return damage(value, random, depth + 1);
  }
  const std::vector<SortedJson> others = {
      nullptr, "x", -1, 1e300, SortedJson::array(), SortedJson::object()};
  at = others[draw(others.size())];
}

TEST_CASE("an answer that was changed by hand is drawn or refused by name") {
  std::mt19937_64 random(fresh(41));
  int refused = 0;
  for (const SortedJson& whole :
       {answer("simulate", {{"tp", 2}}), answer("advise", {{"top", 2}}), served(), scheduled()})
    for (int i = 0; i < 300; ++i) {
      SortedJson changed = whole;
      damage(changed, random);
      try {
        charts(changed);
      } catch (const Error& error) {
        ++refused;
        CHECK(error.info().file == "answer");
        CHECK_FALSE((error.info().path.empty() && error.info().expected.empty()));
      }
    }
  CHECK(refused > 0);
}

}  // namespace
}  // namespace orrery
