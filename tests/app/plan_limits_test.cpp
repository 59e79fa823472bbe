// SPDX-License-Identifier: Apache-2.0
// Knows what plan must say of limits, unknown costs and jobs that do not end.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "sim/app/plan/report.h"
#include "sim/base/json/tree.h"
#include "sim/question/plan/question.h"
#include "tests/app/plan_questions.h"
#include "tests/app/run_binary.h"

using namespace orrery;
using namespace orrery::test;
using Catch::Matchers::Contains;

namespace {

SortedJson small_question() {
  return {{"model", "llama3.2-1b"}, {"tokens", "200B"},      {"seq", 4096},
          {"global_batch", 128},    {"cluster", "dgx-h100"}, {"gpus", 16},
          {"micro_batch", 1},       {"recompute", "none"},   {"pp", 1}};
}

PlanFile read(const SortedJson& question) {
  return read_plan(JsonValue::from(question, "question.json"));
}

struct Answered {
  PlanFile file;
  PlanResult result;
  std::optional<PlanDetail> detail;
  std::string text() const { return plan_document(file, result, detail).text(); }
};

Answered answered(const SortedJson& question) {
  Answered a{.file = read(question)};
  a.result = plan(a.file.plan, {.full_batches = 0});
  if (const auto at = detailed_point(a.result))
    a.detail = plan_detail(a.file.plan, a.result.points[*at], nullptr);
  return a;
}

// The report without its line ends, which stand anywhere.
std::string words(const Answered& a) {
  std::string words;
  for (const char c : a.text())
    if ((c != ' ' && c != '\n') || (!words.empty() && words.back() != ' '))
      words += c == '\n' ? ' ' : c;
  return words;
}

}  // namespace

TEST_CASE("a key that is null is as one that is not there") {
  const SortedJson good = small_question();
  CHECK_THAT(error_of(with(good, "tokens", nullptr)), Contains("tokens") && Contains("nothing"));
  CHECK_THAT(error_of(with(good, "gpus", nullptr)), Contains("a limit that finds it"));
  for (const char* key : {"model", "cluster", "seq"}) {
    CAPTURE(key);
    CHECK_THAT(error_of(with(good, key, nullptr)), Contains(key) && Contains("this key"));
  }
  CHECK(read(with(with(good, "tokens", nullptr), "flop", 1e22)).plan.choices[0].goal.flop.si() ==
        1e22);
  const PlanFile open = read(with(with(good, "gpus", nullptr), "deadline", "90 days"));
  CHECK(open.plan.choices[0].any_count);
  CHECK(read(with(good, "deadline", nullptr)).plan.choices[0].goal.objective ==
        PlanObjective::time);
  CHECK(error_of(with(good, "gpus", {{"from", 8}, {"to", 16}, {"times", 2}, {"step", nullptr}}))
            .empty());
}

TEST_CASE("simulate and advise take a null for nothing too") {
  const ScratchFolder scratch("absent");
  const SortedJson scenario = {
      {"model", "llama3.2-1b"}, {"cluster", "dgx-h100"}, {"gpus", 8}, {"seq", 4096},
      {"global_batch", 64},     {"tp", nullptr}};
  const std::string plain = add(scratch, "a.json", scenario.dump());
  CHECK(run("simulate " + plain).code == 0);
  const std::string none = add(scratch, "b.json", with(scenario, "model", nullptr).dump());
  for (const char* command : {"simulate ", "advise "}) {
    const Outcome o = run(command + none);
    CHECK(o.code == 2);
    CHECK_THAT(o.err, Contains("model: found nothing"));
  }
}

TEST_CASE("money is read as the help writes it") {
  const auto goal = [](const char* key, const char* text) {
    return read(with(small_question(), key, text)).plan.choices[0].goal;
  };
  CHECK(goal("budget", "20 million USD").budget.si() == 20e6);
  CHECK(goal("capital", "1.5 billion USD").capital.si() == 1.5e9);
  CHECK(goal("capital", "20 MUSD").capital.si() == 20e6);
  CHECK_THAT(error_of(with(small_question(), "budget", "20M USD")), Contains("MUSD"));
  CHECK_THAT(error_of(with(small_question(), "budget", "20 million")), Contains("20 million USD"));
}

TEST_CASE("a cost with unknown parts is a least one and names them") {
  // Two sites of 16,384 are joined by a long haul without a price.
  const Answered a = answered({{"model", "llama3.1-405b"},
                               {"tokens", "1T"},
                               {"seq", 8192},
                               {"global_batch", 4096},
                               {"cluster", {"h100-two-sites", "dgx-h100"}},
                               {"gpus", 32768},
                               {"tp", 8},
                               {"pp", 16},
                               {"objective", "cost"}});
  const PlanPoint& two = a.result.points[0];
  const PlanPoint& one = a.result.points[1];
  REQUIRE(two.step.fits);
  REQUIRE(one.step.fits);
  CHECK(one.unknown_costs.empty());
  CHECK_FALSE(two.unknown_costs.empty());
  CHECK(two.cost < 1.01 * one.cost);
  CHECK(*a.result.best == 1);
  CHECK_FALSE(same_machine(one, two));
  CHECK_THAT(words(a), Contains("at least what is shown (+)") && Contains("of long-haul,") &&
                           Contains("of fibre-long-haul"));
  SortedJson alone = {{"model", "llama3.1-405b"},
                      {"tokens", "1T"},
                      {"seq", 8192},
                      {"global_batch", 4096},
                      {"tp", 8},
                      {"pp", 16},
                      {"gpus", 32768},
                      {"cluster", "h100-two-sites"}};
  CHECK_THAT(words(answered(alone)),
             Contains("share of at least $") && Contains("not known and so in no sum"));
}

TEST_CASE("least carbon searches layouts by energy") {
  for (const char* objective : {"energy", "carbon"})
    CHECK(read(with(small_question(), "objective", objective)).plan.choices[0].question.objective ==
          Objective::energy);
  CHECK(read(with(small_question(), "objective", "cost")).plan.choices[0].question.objective ==
        Objective::time);
}

TEST_CASE("checkpoints that cannot be are refused by name") {
  const std::vector<std::array<const char*, 2>> odd = {
      {"bandwidth", "0 GB/s"}, {"bandwidth", "-5 GB/s"}, {"interval", "0 s"}, {"interval", "-1 h"}};
  for (const auto& [key, value] : odd)
    CHECK_THAT(error_of(with(small_question(), "checkpoint", {{key, value}})),
               Contains(std::string("checkpoint.") + key) && Contains("above 0"));
}

TEST_CASE("a job that never saves never ends, and one that is long only takes its time") {
  SortedJson question = with(small_question(), "checkpoint", {{"interval", "100000 days"}});
  question["gpus"] = {16, 4096};
  question["tokens"] = "1000T";
  question["global_batch"] = 8192;
  const Answered a = answered(question);
  CHECK(a.result.points.back().stalls());
  CHECK_THAT(words(a), Contains("never ends: a failure every") && Contains("between checkpoints"));
  const Answered slow = answered(with(small_question(), "tokens", 1e18));
  CHECK_FALSE(slow.result.points[0].stalls());
  CHECK_FALSE(slow.result.points[0].ends());
  CHECK_THAT(words(slow), Contains("it takes over 100 years") && !Contains("never"));
}

TEST_CASE("a remedy that the question applies is not recommended again") {
  SortedJson question = with(small_question(), "gpus", 512);
  question["global_batch"] = 512;
  const auto names = [&](const char* applied) {
    std::vector<std::string> found;
    const Answered a = answered(with(question, "remedies", applied));
    for (const PlanLever& l : a.detail->remedies) {
      found.push_back(l.name);
      if (l.name == "all of them") CHECK_THAT(l.note, !Contains(applied));
    }
    return found;
  };
  const auto without = names("none");
  CHECK(std::find(without.begin(), without.end(), "faster restart") != without.end());
  const auto faster = names("faster restart");
  CHECK(std::find(faster.begin(), faster.end(), "faster restart") == faster.end());
  CHECK(names("all of them").empty());
}

TEST_CASE("a limit that allows too little is named, not memory") {
  SortedJson question = small_question();
  question.erase("gpus");
  question["model"] = "llama3.1-405b";
  for (const auto& [key, value] : std::vector<std::pair<const char*, SortedJson>>{
           {"power", "1 kW"}, {"capital", "20 thousand USD"}}) {
    const Answered a = answered(with(question, key, value));
    CAPTURE(key, a.result.points[0].step.why_not);
    CHECK_FALSE(a.result.points[0].step.fits);
    CHECK_THAT(words(a),
               Contains(std::string("the limit of ") + key) && Contains("not even one host"));
  }
  const Answered some = answered(with(question, "power", "25 kW"));
  CHECK_THAT(words(some), Contains("the limit of power allows holds at most"));
}

TEST_CASE("the surest point by a deadline is named with its chance") {
  SortedJson question = small_question();
  question["gpus"] = {64, 128};
  const Answered free = answered(question);
  // A little later than the slow one is predicted to end, and than the fast one's late end.
  question["deadline"] = fmt::format("{} days", free.result.points[0].finish.si() / 86400 * 1.02);
  question["objective"] = "gpus";
  CHECK_THAT(words(answered(question)), Contains("this meets it at its late end too: 128 GPUs"));
  question["gpus"] = {120, 128};
  question["global_batch"] = 120 * 128;
  const Answered two = answered(question);
  REQUIRE(two.result.points[0].finish > two.result.points[1].finish);
  question["deadline"] = fmt::format("{} days", two.result.points[0].finish.si() / 86400 * 1.01);
  CHECK_THAT(words(answered(question)), Contains("the surest point of the question meets it with"));
}
