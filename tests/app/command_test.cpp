// SPDX-License-Identifier: Apache-2.0
// The commands as a user runs them: outputs parse, agree and do not depend on threads.
#include <fmt/format.h>
#include <algorithm>

#include <catch2/catch.hpp>
#include <sstream>

#include "sim/base/json/tree.h"
#include "sim/paper/tables.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::ScratchFolder;
using orrery::SortedJson;

namespace {

const std::string job =
    "--model llama3-8b --cluster dgx-h100 --gpus 16 --seq 4096 --global-batch 32 ";

SortedJson run_json(const std::string& arguments) {
  const Outcome o = run(arguments + " --json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  return SortedJson::parse(o.out);
}

}  // namespace

TEST_CASE("simulate prints a prediction that adds up") {
  const auto result = run_json("simulate " + job + "--tp 2 --pp 2 --recompute full");
  const auto& p = result["prediction"];
  const double step = p["step_time_s"].get<double>();
  CHECK(step > 0);
  CHECK(p["step_time_low_s"].get<double>() <= step);
  CHECK(p["step_time_high_s"].get<double>() >= step);
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
  CHECK(decode["prediction"]["latency"] == "tpot");
  CHECK(prefill["prediction"]["latency"] == "ttft");
  CHECK(decode["prediction"]["step_time_s"].get<double>() <
        prefill["prediction"]["step_time_s"].get<double>());
}

TEST_CASE("the trace holds every pass and ends with the pipeline") {
  const ScratchFolder scratch("app");
  const std::string file = (scratch / "trace.json").string();
  REQUIRE(run("simulate " + job + "--tp 2 --pp 4 --trace-out " + file).code == 0);
  const auto trace = SortedJson::parse(read_file(file));
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
  const auto advice = SortedJson::parse(one.out);
  REQUIRE(advice["best"].size() == 5);
  for (std::size_t i = 1; i < 5; ++i)
    CHECK(advice["best"][i - 1]["step_time_s"].get<double>() <=
          advice["best"][i]["step_time_s"].get<double>());
}

TEST_CASE("advised layouts simulate to the time that advise printed") {
  const auto advice = run_json("advise " + job + "--top 3");
  for (const auto& candidate : advice["best"]) {
    const auto& l = candidate["layout"];
    std::string flags;
    for (const auto& [key, value] : l.items()) {
      if (value.is_null() || (value.is_array() && value.empty()) || value == 0) continue;
      std::string flag = key, text = value.is_string() ? value.get<std::string>() : value.dump();
      std::replace(flag.begin(), flag.end(), '_', '-');
      if (value.is_array()) std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
      flags += fmt::format(" --{} '{}'", flag, text);
    }
    const auto again = run_json("simulate " + job + flags);
    CHECK(again["prediction"]["step_time_s"] == candidate["step_time_s"]);
  }
}

TEST_CASE("a Hugging Face config.json is a model") {
  const std::string rest = " --cluster dgx-h100 --gpus 8 --seq 4096 --global-batch 64 --tp 2";
  const std::string config = ORRERY_SOURCE_DIR "/tests/workloads/configs/llama3-8b.json";
  const auto by_file = run_json("simulate --model " + config + rest);
  const auto by_name = run_json("simulate --model llama3-8b" + rest);
  CHECK(by_file["prediction"]["step_time_s"] == by_name["prediction"]["step_time_s"]);
}

TEST_CASE("flags may be written with an equals sign") {
  const Outcome blanks = run("simulate " + job + "--tp 2 --json");
  const Outcome equals =
      run("simulate --model=llama3-8b --cluster=dgx-h100 --gpus=16 --seq=4096 --global-batch=32 "
          "--tp=2 --json");
  CHECK(equals.code == 0);
  CHECK(blanks.out == equals.out);
}

TEST_CASE("a file may hold every setting of advise and simulate") {
  const ScratchFolder scratch("settings");
  const std::string trace = (scratch / "trace.json").string();
  const std::string file = add(scratch, "q.json", R"({"model": "llama3-8b", "cluster": "dgx-h100",
    "gpus": 16, "seq": 4096, "global_batch": 32, "top": 2, "pareto": "time,memory",
    "objective": "energy",
    "trace_out": ")" + trace + "\"}");
  const auto advice = run_json("advise " + file);
  CHECK(advice["best"].size() == 2);
  CHECK(!advice["pareto"].empty());
  run_json("simulate " + file);
  CHECK(!read_file(trace).empty());
}

TEST_CASE("plain fp8 is what the stack means by it") {
  const std::string question =
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 4096 --global-batch 64 "
      "--precision fp8 --stack ";
  CHECK(run_json(question + "nemo@25.09")["layout"]["precision"] == "fp8-current");
  CHECK(run_json(question + "nemo@24.09")["layout"]["precision"] == "fp8-delayed");
}

TEST_CASE("reports stay within a page's width") {
  for (const std::string& arguments :
       {"advise " + job + "--pareto time,memory",
        "simulate " + job + "--tp 2 --pp 4 --recompute full",
        std::string("advise --model deepseek-v3 --cluster gb200-nvl72 --gpus 256 --seq 4096 "
                    "--global-batch 2048 --precision mxfp8 --tp 1 --pp 4 --pareto time,memory"),
        std::string("simulate --model deepseek-v3 --cluster dgx-h200 --gpus 16 --phase decode "
                    "--batch 64 --context 4096 --ep 16"),
        std::string("--help"), std::string("advise --help"), std::string("simulate --help"),
        std::string("validate --help"), std::string("catalog show stack nemo")}) {
    const Outcome o = run(arguments);
    INFO(arguments << "\n" << o.err);
    CHECK(o.code == 0);
    std::istringstream text(o.out);
    for (std::string line; std::getline(text, line);) {
      INFO(line);
      CHECK((orrery::columns(line) <= orrery::page_width ||
             line.find("https://") != std::string::npos));
      CHECK((line.empty() || line.back() != ' '));
    }
  }
}

TEST_CASE("an interrupted search prints the best so far") {
  const std::string question =
      " advise --model 100t-moe --cluster gb300-4plane --gpus 1048576 --seq 8192 --global-batch "
      "65536 --precision mxfp8 --threads 1";
  // In the foreground `timeout` signals once: without it a second signal goes to the whole group,
  // and a second Ctrl-C ends the process.
  for (const auto& [signal, code] : {std::pair{"INT", 130}, {"TERM", 143}}) {
    const Outcome o = run_shell("timeout --foreground --preserve-status -s " + std::string(signal) +
                                " 0.3 " + std::string(ORRERY_BINARY) + question);
    INFO(signal << o.err);
    CHECK(o.out.find("stopped") != std::string::npos);
    CHECK(lines(o.out) > 3);
    CHECK(o.code == code);
  }
}

TEST_CASE("flags that have another name say it") {
  const Outcome trace = run("simulate " + job + "--trace x.json");
  CHECK(trace.code == 2);
  CHECK(trace.err.find("--trace-out") != std::string::npos);
  const Outcome report = run("validate --report x");
  CHECK(report.code == 2);
  CHECK(report.err.find("--html") != std::string::npos);
  const ScratchFolder scratch("renamed");
  const Outcome key = run("simulate " + add(scratch, "s.json", R"({"trace": "x.json"})"));
  CHECK(key.code == 2);
  CHECK(key.err.find("trace_out") != std::string::npos);
}

TEST_CASE("help goes to stdout") {
  for (const char* arguments : {"", "--help", "advise --help", "catalog --help"}) {
    const Outcome o = run(arguments);
    CHECK(o.code == 0);
    CHECK(o.err.empty());
    CHECK(o.out.find("sage:") != std::string::npos);
  }
}

TEST_CASE("a fixed dimension stays fixed") {
  const auto advice = run_json("advise " + job + "--tp 4 --pp 2");
  for (const auto& candidate : advice["best"]) {
    CHECK(candidate["layout"]["tp"] == 4);
    CHECK(candidate["layout"]["pp"] == 2);
  }
}

TEST_CASE("the catalogue shows every entry with its sources") {
  for (const char* kind : {"accelerator", "cloud", "cluster", "economics", "fabric", "host",
                           "model", "nic", "site", "stack", "storage", "switch"}) {
    const Outcome list = run(std::string("catalog list --names ") + kind);
    REQUIRE(list.code == 0);
    REQUIRE(lines(list.out) >= 3);
    const Outcome show =
        run(std::string("catalog show ") + kind + " " + list.out.substr(0, list.out.find('\n')));
    INFO(kind << show.err);
    CHECK(show.code == 0);
  }
  const Outcome h100 = run("catalog show accelerator h100-sxm");
  CHECK(h100.out.find("3350 GB/s") != std::string::npos);
  CHECK(h100.out.find("Sources:") != std::string::npos);
}
