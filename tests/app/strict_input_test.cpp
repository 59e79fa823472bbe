// SPDX-License-Identifier: Apache-2.0
// What was asked is what is answered: near misses, sizes that no machine has and sequences that no
// model has are errors, or said beside the answer.
#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

using test::run;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_error(const std::string& arguments, const std::string& part) {
  const test::Outcome o = run(arguments);
  INFO(arguments << "\n" << o.out << o.err);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK(test::lines(o.err) == 1);
  CHECK(has(o.err, part));
}

TEST_CASE("a release that nothing is known of is said, and widens the range") {
  const std::string job =
      "simulate --model llama3.1-8b --cluster dgx-h100 --gpus 8 --seq 8192 --global-batch 32 "
      "--tp 2 ";
  const test::Outcome text = run(job + "--stack nemo@99.99");
  CHECK(text.code == 0);
  CHECK(has(text.out, "Note: Release 99.99 of nemo is not known"));
  const SortedJson known = SortedJson::parse(run(job + "--stack nemo --json").out);
  const SortedJson asked = SortedJson::parse(run(job + "--stack nemo@99.99 --json").out);
  CHECK(known["notes"].empty());
  REQUIRE(asked["notes"].size() == 1);
  CHECK(asked["prediction"]["step_time_s"] == known["prediction"]["step_time_s"]);
  CHECK(asked["prediction"]["step_time_high_s"].get<double>() >
        known["prediction"]["step_time_high_s"].get<double>());
}

TEST_CASE("a stack of one's own is named by its file where it is wrong") {
  const ScratchFolder scratch("stack");
  const std::string file = scratch.add("mine.json", R"({"name": "mine"})").string();
  for (const std::string command : {"simulate ", "advise ", "plan --tokens 1T "})
    expect_error(command +
                     "--model llama3.1-8b --cluster dgx-h100 --gpus 8 --seq 8192 "
                     "--global-batch 32 --stack " +
                     file,
                 file + ": title: found nothing");
}

TEST_CASE("a release between two that are listed is said, and runs as the earlier one") {
  const std::string job =
      "simulate --model llama3.1-8b --cluster dgx-h100 --gpus 8 --seq 8192 --global-batch 32 "
      "--tp 2 ";
  const SortedJson known = SortedJson::parse(run(job + "--stack nemo@24.04 --json").out);
  const SortedJson asked = SortedJson::parse(run(job + "--stack nemo@24.05 --json").out);
  CHECK(known["notes"].empty());
  REQUIRE(asked["notes"].size() == 1);
  CHECK(has(asked["notes"][0].get<std::string>(), "predicted as 24.04"));
  CHECK(asked["prediction"] == known["prediction"]);
}

TEST_CASE("sequences beyond a learned table are an error, beyond the training a note") {
  const std::string gpt2 = "--model gpt2 --cluster dgx-h100 --gpus 8 --global-batch 32 ";
  expect_error("simulate " + gpt2 + "--seq 8192", "1024");
  expect_error("advise " + gpt2 + "--seq 1025", "1024");
  CHECK(run("simulate " + gpt2 + "--seq 1024").code == 0);
  const test::Outcome o =
      run("simulate --model llama3.1-8b --cluster dgx-h100 --gpus 8 --seq 1000000 --global-batch 8 "
          "--tp 8 --json");
  CHECK(has(SortedJson::parse(o.out)["notes"][0].get<std::string>(), "131072"));
}

TEST_CASE("accelerators come in whole hosts, in all commands") {
  const std::string job = "--model llama3.1-8b --cluster dgx-h100 --seq 8192 ";
  const std::string what = "a multiple of 8";
  expect_error("simulate " + job + "--global-batch 1001 --gpus 1001", what);
  expect_error("advise " + job + "--global-batch 1001 --gpus 1001", what);
  expect_error("plan " + job + "--tokens 1T --global-batch 1001 --gpus 1001 --quiet", what);
  expect_error("topology dgx-h100 --gpus 1001", what);
  CHECK(run("simulate " + job + "--global-batch 12 --gpus 4 --tp 2").code == 0);
}

TEST_CASE("a row with an impossible sequence is skipped for that") {
  const ScratchFolder scratch("rows");
  const std::string table = test::add(scratch, "mine.csv",
                                      "model,gpu,n_gpus,seq,global_batch,tp,pp,tokens_s_gpu\n"
                                      "Llama3-8B,H100,16,-8192,128,2,1,9000\n");
  const SortedJson rows = SortedJson::parse(run("validate " + table + " --json").out)["rows"];
  REQUIRE_FALSE(rows.empty());
  CHECK(has(rows[0]["skipped"].get<std::string>(), "sequences of -8192 tokens"));
}

TEST_CASE("copies of experts make expert parallelism of any number, in inference alone") {
  const std::string decode =
      "simulate --model deepseek-v3 --cluster dgx-h200 --phase decode --batch 8 --context 4096 ";
  expect_error(decode + "--gpus 144 --ep 144", "may hold 32 copies");
  expect_error(decode + "--gpus 72 --ep 72", "may hold 32 copies");
  expect_error(decode + "--gpus 72 --ep 72 --expert-replicas 30", "256 experts and 30 copies");
  expect_error(decode + "--gpus 8 --ep 8 --expert-replicas 1800", "more than one of each");
  const test::Outcome o = run(decode + "--gpus 72 --ep 72 --expert-replicas 32 --json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  CHECK(SortedJson::parse(o.out)["layout"]["expert_replicas"] == 32);
  expect_error(
      "simulate --model deepseek-v3 --cluster dgx-h200 --gpus 256 --seq 4096 --global-batch 1024 "
      "--pp 8 --ep 32 --expert-replicas 32",
      "updates one of each");
}

TEST_CASE("a short step says that measured ones took longer") {
  const test::Outcome o =
      run("simulate --model gpt2 --cluster dgx-h100 --gpus 2 --seq 1024 --global-batch 2 --json");
  REQUIRE(o.code == 0);
  const SortedJson p = SortedJson::parse(o.out)["prediction"];
  REQUIRE(p["step_time_s"].get<double>() < 0.05);
  CHECK(p["step_time_high_s"].get<double>() > 1.3 * p["step_time_s"].get<double>());
  CHECK(has(p["range"]["widened"].dump(), "below 50 ms"));
}

TEST_CASE("a model comes from a folder, from a hub's name or from standard input") {
  const std::string job = " --cluster dgx-h100 --gpus 8 --seq 4096 --global-batch 32 --json";
  const auto parameters = [&](const std::string& model) {
    const test::Outcome o = test::run_shell(model + job);
    INFO(model << o.err);
    REQUIRE(o.code != 2);
    return SortedJson::parse(o.out)["prediction"]["model_flop_per_token"].get<double>();
  };
  const std::string binary = ORRERY_BINARY " simulate --model ";
  const std::string config = ORRERY_SOURCE_DIR "/tests/workloads/configs/qwen3-8b.json";
  const ScratchFolder scratch("model");
  scratch.add("config.json", test::read_file(config));
  const double known = parameters(binary + "qwen3-8b");
  CHECK(parameters(binary + "Qwen/Qwen3-8B") == known);
  CHECK(parameters(binary + "qwen/qwen3-8b") == known);
  CHECK(parameters(binary + (scratch / "").string()) == known);
  CHECK(parameters(binary + "- < " + config + " ") == known);
  expect_error(
      "simulate --model Qwen/Qwen3-9B --cluster dgx-h100 --gpus 8 --seq 4096 "
      "--global-batch 32",
      "Qwen3-9B");
}

}  // namespace
}  // namespace orrery
