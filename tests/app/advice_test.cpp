// SPDX-License-Identifier: Apache-2.0
// Tests the advice as a user reads it: reasons, flags, what runs now, markdown.
#include <catch2/catch.hpp>
#include <sstream>

#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"

namespace {

using namespace orrery::test;
using orrery::ScratchFolder;
using orrery::SortedJson;

const std::string question =
    "advise --model llama3-8b --cluster dgx-h100 --gpus 16 --seq 4096 --global-batch 64 --top 4 ";
const std::string subject =
    "--model llama3-8b --cluster dgx-h100 --gpus 16 --seq 4096 --global-batch 64 ";

std::string text_of(const std::string& arguments) {
  const Outcome o = run(arguments);
  INFO(arguments << "\n" << o.err);
  REQUIRE(o.code == 0);
  return o.out;
}

SortedJson json_of(const std::string& arguments) {
  return SortedJson::parse(text_of(arguments + " --json"));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_error(const std::string& arguments, const std::string& part) {
  const Outcome o = run(arguments);
  INFO(arguments << "\n" << o.err);
  CHECK(o.code == 2);
  CHECK(has(o.err, part));
}

TEST_CASE("advice says why, what would help, and how to start it") {
  const std::string text = text_of(question);
  for (const char* part :
       {"How sure the order is: ", "Why the first: ", "The first in detail: ", "What limits it: ",
        "what would make this layout faster", "Known traps", "To start it with Megatron-LM",
        "--micro-batch-size ", "32 layers", "Ranks count "}) {
    INFO(part);
    CHECK(has(text, part));
  }
  CHECK_FALSE(has(text, "Against what runs now"));
}

TEST_CASE("advice for machines has every reason") {
  const auto advice = json_of(question);
  const auto& reasons = advice["reasons"];
  CHECK(reasons["limits"][0]["phase"] == "step");
  CHECK(reasons["levers"].size() > 10);
  CHECK(reasons["ranking"]["rivals"].size() == 3);
  CHECK(reasons["launch"]["flags"].size() > 3);
  CHECK(reasons["traps"].is_array());
  CHECK(advice["like"].is_null());
  const auto rivals = reasons["ranking"]["rivals"];
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    const double first = advice["best"][0]["step_time_s"].get<double>(),
                 other = advice["best"][i + 1]["step_time_s"].get<double>();
    CHECK(rivals[i]["behind"].get<double>() == Approx(other / first - 1).margin(1e-9));
    CHECK(rivals[i]["may_lead"] == (rivals[i]["low"].get<double>() < 0));
  }
}

TEST_CASE("markdown holds what the text holds") {
  for (const std::string& arguments :
       {question, question + "--like '{\"tp\": 8}' ", question + "--pareto time,memory ",
        "simulate " + subject + "--tp 2 ",
        std::string("simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --phase decode "
                    "--batch 8 --context 1024 ")}) {
    INFO(arguments);
    const std::string text = text_of(arguments + "--markdown");
    std::istringstream in(text);
    std::size_t fences = 0, titles = 0;
    std::string pipes;  // of the table at hand
    for (std::string line; std::getline(in, line);) {
      INFO(line);
      if (line.starts_with("```")) ++fences;
      if (fences % 2 == 1) continue;
      if (line.starts_with("# ")) ++titles;
      CHECK_FALSE(line.ends_with(" "));
      if (!line.starts_with("|")) {
        pipes.clear();
        continue;
      }
      std::string marks;
      for (std::size_t i = 0; i < line.size(); ++i)
        if (line[i] == '|' && (i == 0 || line[i - 1] != '\\')) marks += '|';
      if (!pipes.empty()) CHECK(marks == pipes);
      pipes = marks;
    }
    CHECK(fences % 2 == 0);
    CHECK(titles == 1);
    CHECK(has(text, "| where the time goes | "));
  }
  const std::string text = text_of(question + "--markdown");
  CHECK(has(text, "## The first in detail: "));
  CHECK(has(text, "```sh\n"));
  CHECK(has(text, "| phase | s | % of step |"));  // cut from the text
  CHECK_FALSE(has(text_of(question), "% of step"));
  expect_error(question + "--markdown --json", "--markdown");
  expect_error("catalog list --markdown", "--markdown");
}

TEST_CASE("what runs now is held against the advice") {
  const std::string now = "{\"tp\": 8, \"recompute\": \"full\"}";
  const std::string text = text_of(question + "--like '" + now + "'");
  for (const char* part :
       {"Against what runs now: TP8", "Memory now: It fits", "more steps",
        "where the time goes (mean of stages)", "flags to change", "--recompute-granularity"}) {
    INFO(part);
    CHECK(has(text, part));
  }
  const auto like = json_of(question + "--like '" + now + "'")["like"];
  const auto alone = json_of("simulate " + subject + "--tp 8 --recompute full");
  CHECK(like["prediction"]["step_time_s"] == alone["prediction"]["step_time_s"]);
  CHECK(like["layout"] == alone["layout"]);
  CHECK(like["advised_faster"].get<double>() > 0);
}

TEST_CASE("what runs now may be a file, a scenario, or on another release") {
  const ScratchFolder scratch("like");
  const std::string file = add(scratch, "now.json",
                               R"({"model": "llama3-8b", "gpus": 16, "tp": 4, "pp": 2,
                                   "stack": "megatron-core@0.8"})");
  const auto like = json_of(question + "--like " + file)["like"];
  CHECK(like["layout"]["tp"] == 4);
  CHECK(like["stack"].get<std::string>().starts_with("megatron-core@0."));
  CHECK(has(text_of(question + "--markdown --like " + file), "the difference is that of both"));
  const std::string whole = add(scratch, "question.json",
                                R"({"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 16,
                                    "seq": 4096, "global_batch": 64, "like": {"tp": 4}})");
  CHECK(json_of("advise " + whole)["like"]["layout"]["tp"] == 4);
  CHECK(run("simulate " + whole).code == 0);
}

TEST_CASE("the layout that is advised has no reason to change") {
  const auto best = json_of(question)["best"][0]["layout"];
  SortedJson layout = best;
  const std::string text = text_of(question + "--like '" + layout.dump() + "'");
  CHECK(has(text, "no reason to change"));
  CHECK_FALSE(has(text, "flags to change"));
}

TEST_CASE("what runs now may be faster than what the limits leave") {
  const auto best = json_of(question)["best"][0]["layout"];
  REQUIRE(best["pp"] != 8);
  const std::string text = text_of(question + "--pp 8 --like '" + best.dump() + "'");
  CHECK(has(text, "faster than the best layout that was searched"));
  CHECK_FALSE(has(text, "more steps in the same time"));
}

TEST_CASE("listed layouts are simple, and the exact ones are there too") {
  const auto advice = json_of(question);
  std::size_t left = 0;
  double best = 1e9;
  for (const auto& c : advice["best"]) {
    const double shown = c["step_time_s"].get<double>(),
                 exact = c["exact"]["step_time_s"].get<double>();
    CHECK(shown >= exact);
    CHECK(shown <= exact * 1.004 * (1 + 1e-9));
    CHECK((shown > exact || c["layout"] == c["exact"]["layout"] || !c["left_at_default"].empty()));
    best = std::min(best, exact);
    left += c["left_at_default"].size();
    for (const auto& l : c["left_at_default"]) {
      CHECK_FALSE(l["setting"].get<std::string>().empty());
      CHECK(l["gain"].get<double>() <= 0.004);
    }
  }
  REQUIRE(left > 0);
  const std::string text = text_of(question);
  CHECK(has(text, "Settings stay at the stack's defaults"));
  CHECK(has(text, "(0."));
  const auto variants = json_of(question + "--variants true");
  CHECK(variants["best"][0]["step_time_s"] == best);
  CHECK_FALSE(variants["best"][0].contains("exact"));
  CHECK_FALSE(has(text_of(question + "--variants true"), "Settings stay at"));
}

TEST_CASE("a team can move in small steps") {
  const std::string like = "--like '{\"tp\": 8, \"recompute\": \"full\"}' ";
  const std::string text = text_of(question + like + "--changes 2");
  for (const char* part :
       {"In small steps from what runs now, up to 2 changes",
        "1 change: ", "2 changes: ", "sets of decisions were searched", "flags to change for "}) {
    INFO(part);
    CHECK(has(text, part));
  }
  CHECK_FALSE(has(text_of(question + like), "In small steps"));
  const auto advice = json_of(question + like + "--changes 2");
  const auto& rungs = advice["small_steps"]["rungs"];
  REQUIRE(rungs.size() == 2);
  double before = advice["like"]["prediction"]["step_time_s"].get<double>();
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(rungs[i]["changes"] == i + 1);
    if (rungs[i]["better"] == false) continue;
    CHECK(rungs[i]["what"].size() <= i + 1);
    CHECK(rungs[i]["step_time_s"].get<double>() < before);
    before = rungs[i]["step_time_s"].get<double>();
  }
  CHECK(rungs[0]["better"] == true);
  CHECK(json_of(question + like)["small_steps"].is_null());
  expect_error(question + "--changes 2", "--like");
  expect_error(question + like + "--changes 0", "--changes");
  expect_error(question + like + "--changes -1", "--changes");
  expect_error(question + like + "--changes 99", "--changes");
}

TEST_CASE("narrow formats are told by their own peak too") {
  const std::string narrow = subject + "--precision fp8 ";
  const auto p = json_of("simulate " + narrow)["prediction"];
  // The data sheet's FP8 peak is twice that of BF16.
  CHECK(p["products"]["format"] == "fp8");
  CHECK(p["products"]["utilisation"].get<double>() ==
        Approx(p["mfu"].get<double>() / 2).epsilon(0.001));
  for (const std::string& command : {"simulate " + narrow, "advise " + narrow + "--top 1 "})
    CHECK(has(text_of(command), "the dense FP8 peak, in which the layers' products run"));
  CHECK(
      has(text_of("advise " + narrow + "--top 1 "), "MFU counts by the dense BF16 peak in every"));
  CHECK(json_of("simulate " + subject)["prediction"]["products"].is_null());
  CHECK_FALSE(has(text_of("simulate " + subject), "the layers' products run"));
}

TEST_CASE("advice asks once to be asked again") {
  const std::string text = text_of(
      "advise --model llama3.1-405b --cluster dgx-h100 --gpus 16384 --seq 8192 --global-batch "
      "2048 ");
  const std::size_t first = text.find("ask again"), again = text.find("Ask again");
  if (first != std::string::npos) CHECK(text.find("ask again", first + 1) == std::string::npos);
  CHECK(again == std::string::npos);
  CHECK_FALSE(has(text, "Wider for: 1 times"));
  CHECK(has(text, "1.4 times the largest measured run"));
  CHECK_FALSE(has(text, "bucket:1.49 GiB"));
}

TEST_CASE("bad words for what runs now are named") {
  expect_error(question + "--like '{\"tq\": 8}'", "\"tp\"?");
  expect_error(question + "--like '{\"tp\": 3}'", "tp");
  expect_error(question + "--like '{\"model\": \"llama3-70b\"}'", "on one job");
  expect_error(question + "--like /nowhere/now.json", "now.json");
  expect_error(question + "--like ''", "--like");
  expect_error(question + "--like '{'", "--like");
}

}  // namespace
