// SPDX-License-Identifier: Apache-2.0
// Knows what plan must say of sizes that limits find, of wirings, contracts and odd deadlines.
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
  return {{"model", "llama3.2-1b"},
          {"tokens", "200B"},
          {"seq", 4096},
          {"global_batch", 512},
          {"cluster", "dgx-h100"},
          {"micro_batch", 1},
          {"recompute", "none"},
          {"zero", 1},
          {"pp", 1},
          {"cp", 1},
          {"tp", 1}};
}

struct Answered {
  PlanFile file;
  PlanResult result;
  std::string words;  // without line ends, which stand anywhere
};

Answered answered(const SortedJson& question) {
  Answered a{.file = read_plan(JsonValue::from(question, "question.json"))};
  a.result = plan(a.file.plan, {.full_batches = 0});
  std::optional<PlanDetail> detail;
  if (const auto at = detailed_point(a.result))
    detail = plan_detail(a.file.plan, a.result.points[*at], nullptr);
  for (const char c : plan_document(a.file, a.result, detail).text())
    if ((c != ' ' && c != '\n') || (!a.words.empty() && a.words.back() != ' '))
      a.words += c == '\n' ? ' ' : c;
  return a;
}

}  // namespace

TEST_CASE("megawatts find TPUs, and more of them more") {
  std::int64_t before = 0;
  for (const char* power : {"50 kW", "200 kW"}) {
    SortedJson question = with(with(small_question(), "cluster", "tpu-v5p"), "power", power);
    const Answered a = answered(question);
    const PlanPoint& p = a.result.points.front();
    CAPTURE(power, p.step.why_not);
    REQUIRE(a.result.best);
    CHECK(p.gpus > 2 * before);
    CHECK_THAT(a.words, Contains("The limit of power allows at most"));
    before = p.gpus;
  }
  CHECK(before > 200);
}

TEST_CASE("a machine whose wiring ends before its limits is looked at on larger ones") {
  SortedJson question = with(with(small_question(), "cluster", "gb200-nvl72"), "power", "1000 MW");
  question["global_batch"] = 64;
  const PlanFile file = read_plan(JsonValue::from(question, "question.json"));
  REQUIRE(file.plan.choices.size() > 1);
  CHECK(file.plan.varied == std::vector<std::string>{"fabric"});
  const auto& first = file.plan.choices.front().question.cluster.fabric;
  CHECK(file.plan.choices.front().values.back() == first.name);
  for (const PlanChoice& choice : file.plan.choices) {
    CHECK(choice.any_count);
    CHECK(choice.question.cluster.device.name == "gb200");
    CHECK(choice.values.back() == choice.question.cluster.fabric.name);
  }
  REQUIRE(!file.premises.empty());
  CHECK_THAT(file.premises.front(), Contains("joins at most") && Contains(first.name));
  // A wiring that is asked for is kept, and so is one that ends beyond the limit.
  const auto choices = [](const SortedJson& q) {
    return read_plan(JsonValue::from(q, "question.json")).plan.choices.size();
  };
  CHECK(choices(with(question, "fabric", first.name)) == 1);
  CHECK(choices(with(question, "power", "1 MW")) == 1);
}

TEST_CASE("odd deadlines are told what one looks like") {
  SortedJson question = with(small_question(), "gpus", 16);
  for (const SortedJson& odd : {SortedJson("yesterday"), SortedJson(90), SortedJson("0 days"),
                                SortedJson("soon"), SortedJson("-3 days"), SortedJson("20 kg")})
    CHECK_THAT(error_of(with(question, "deadline", odd)),
               Contains("deadline") && Contains("90 days") && !Contains("2.5 us"));
  CHECK_THAT(error_of(with(with(question, "start", "2027-01-04"), "deadline", "2026-01-04")),
             Contains("after the start, 2027-01-04"));
  for (const char* good : {"1 second", "36 hours", "2 weeks", "3 months"})
    CHECK(error_of(with(question, "deadline", good)).empty());
}

TEST_CASE("a price names its contract, and what is not published is not nothing") {
  SortedJson question = with(with(small_question(), "gpus", 64), "ownership", "rent");
  CHECK_THAT(answered(question).words, Contains("rented on demand"));
  CHECK_THAT(answered(with(question, "contract", "reserved-1y")).words,
             Contains("rented reserved for a year"));
  SortedJson tpu = with(with(small_question(), "gpus", 64), "cluster", "tpu-v5p");
  CHECK_THAT(answered(tpu).words,
             Contains("it is not published") && !Contains(" 0 kg") && Contains("at least"));
}

TEST_CASE("where nothing is known of a cost, none is the least") {
  SortedJson question = with(with(small_question(), "gpus", 64), "objective", "cost");
  question["cluster"] = {"tpu-8t"};
  const Answered alone = answered(question);
  CHECK_FALSE(alone.result.best);
  CHECK_THAT(alone.words, Contains("least cost is not known"));
  question["cluster"] = {"tpu-8t", "dgx-h100"};
  const Answered both = answered(question);
  REQUIRE(both.result.best);
  CHECK(*both.result.best == 1);
}
