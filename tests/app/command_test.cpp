// The commands as a user runs them: outputs parse, agree and do not depend on threads.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::ScratchFolder;

namespace {

const std::string job =
    "--model llama3-8b --cluster dgx-h100 --gpus 16 --seq 4096 --global-batch 32 ";

nlohmann::json run_json(const std::string& arguments) {
  const Outcome o = run(arguments + " --json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  return nlohmann::json::parse(o.out);
}

}  // namespace

TEST_CASE("simulate prints a prediction that adds up") {
  const auto result = run_json("simulate " + job + "--tp 2 --pp 2 --recompute full");
  const auto& p = result["prediction"];
  const double step = p["step_time_s"];
  CHECK(step > 0);
  CHECK(p["low_s"].get<double>() <= step);
  CHECK(p["high_s"].get<double>() >= step);
  REQUIRE(p["stages"].size() == 2);
  for (const auto& stage : p["stages"]) {
    double sum = 0;
    for (const auto& part : stage) sum += part.get<double>();
    CHECK(sum == Approx(step).epsilon(1e-9));
  }
  CHECK(p["tokens_per_s_per_gpu"].get<double>() == Approx(32 * 4096 / step / 16));
  CHECK(p["hfu"].get<double>() > p["mfu"].get<double>());
  CHECK(result["layout"]["dp"] == 4);
  const Outcome text = run("simulate " + job + "--tp 2 --pp 2");
  CHECK(text.code == 0);
  CHECK(text.out.find("tokens/s/GPU") != std::string::npos);
  CHECK(text.err.empty());
}

TEST_CASE("flags win over the file and the file over defaults") {
  const ScratchFolder scratch("app");
  const std::string file = add(scratch, "s.json", R"({"model": "llama3-8b", "cluster": "dgx-h100",
    "gpus": 16, "seq": 4096, "global_batch": 32, "tp": 4})");
  CHECK(run_json("simulate " + file)["layout"]["tp"] == 4);
  CHECK(run_json("simulate " + file + " --tp 2")["layout"]["tp"] == 2);
}

TEST_CASE("decode and prefill are steps too") {
  const auto decode = run_json(
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 1 --phase decode --batch 64 "
      "--context 4096");
  const auto prefill = run_json(
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 1 --phase prefill --batch 1 "
      "--seq 4096");
  CHECK(decode["prediction"]["latency"] == "TPOT");
  CHECK(prefill["prediction"]["latency"] == "TTFT");
  CHECK(decode["prediction"]["step_time_s"] < prefill["prediction"]["step_time_s"]);
}

TEST_CASE("the trace holds every pass and ends with the pipeline") {
  const ScratchFolder scratch("app");
  const std::string file = (scratch / "trace.json").string();
  REQUIRE(run("simulate " + job + "--tp 2 --pp 4 --trace " + file).code == 0);
  const auto trace = nlohmann::json::parse(read_file(file));
  int passes = 0;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] != "step end") ++passes;
  CHECK(passes == 4 * 2 * 16);  // 4 stages, forward and backward of 32 / dp 2 microbatches
}

TEST_CASE("law 6: advice is the same bytes on any number of threads") {
  const std::string question = "advise " + job + "--top 5 --json --threads ";
  const Outcome one = run(question + "1"), four = run(question + "4");
  REQUIRE(one.code == 0);
  CHECK(one.out == four.out);
  const auto advice = nlohmann::json::parse(one.out);
  REQUIRE(advice["best"].size() == 5);
  for (std::size_t i = 1; i < 5; ++i)
    CHECK(advice["best"][i - 1]["step_time_s"] <= advice["best"][i]["step_time_s"]);
}

TEST_CASE("advised layouts simulate to the time that advise printed") {
  const auto advice = run_json("advise " + job + "--top 3");
  for (const auto& candidate : advice["best"]) {
    const auto& l = candidate["layout"];
    std::string flags;
    for (const char* key : {"tp", "pp", "vpp", "dp", "cp", "ep", "micro_batch", "zero", "schedule",
                            "recompute", "sequence_parallel"}) {
      std::string flag = key;
      std::replace(flag.begin(), flag.end(), '_', '-');
      const auto& value = l[key];
      flags += " --" + flag + " " + (value.is_string() ? value.get<std::string>() : value.dump());
    }
    const auto again = run_json("simulate " + job + flags);
    CHECK(again["prediction"]["step_time_s"] == candidate["step_time_s"]);
  }
}

TEST_CASE("a fixed dimension stays fixed") {
  for (const auto& candidate : run_json("advise " + job + "--tp 4 --pp 2")["best"]) {
    CHECK(candidate["layout"]["tp"] == 4);
    CHECK(candidate["layout"]["pp"] == 2);
  }
}

TEST_CASE("the catalogue shows every entry with its sources") {
  for (const char* kind :
       {"accelerator", "cluster", "fabric", "host", "model", "nic", "stack", "switch"}) {
    const Outcome list = run(std::string("catalog list ") + kind);
    REQUIRE(list.code == 0);
    REQUIRE(lines(list.out) > 3);
    const Outcome show =
        run(std::string("catalog show ") + kind + " " + list.out.substr(0, list.out.find('\n')));
    INFO(kind << show.err);
    CHECK(show.code == 0);
  }
  const Outcome h100 = run("catalog show accelerator h100-sxm");
  CHECK(h100.out.find("3.35 TB/s") != std::string::npos);
  CHECK(h100.out.find("Sources:") != std::string::npos);
}
