// SPDX-License-Identifier: Apache-2.0
// Tests that commands take the files that programs are started with, and say what they read.
#include <filesystem>

#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::Json;
using orrery::ScratchFolder;

namespace {

std::string given(const std::string& name) {
  return std::string(ORRERY_SOURCE_DIR) + "/tests/launch/configurations/" + name;
}
bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string small =
    "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 16 --hidden-size 2048 "
    "--ffn-hidden-size 8192 --num-attention-heads 32 --group-query-attention --num-query-groups 8 "
    "--swiglu --position-embedding-type rope --normalization RMSNorm --disable-bias-linear "
    "--tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64 --seq-length 4096 "
    "--bf16 --use-distributed-optimizer --overlap-grad-reduce --attention-dropout 0 "
    "--hidden-dropout 0 --mystery 3\n";

}  // namespace

TEST_CASE("a launch script is predicted, and the page says what was read of it") {
  const ScratchFolder scratch("configured");
  const std::string file = add(scratch, "train.sh", small);
  const std::string ask = "simulate " + file + " --cluster dgx-h100 --ranges false";
  const Outcome page = run(ask);
  REQUIRE(page.code == 0);
  CHECK(holds(page.out, "TP2"));
  CHECK(holds(page.out, "Read from " + file + ": Megatron-LM"));
  CHECK(holds(page.out, "train.sh:1: --mystery 3"));
  CHECK(holds(page.out, "model llama3.2-1b"));
  const Outcome answer = run(ask + " --json");
  REQUIRE(answer.code == 0);
  const Json json = Json::parse(answer.out);
  const Json& read = json.at("question").at("read_from");
  CHECK(read.at("program").text() == "Megatron-LM");
  CHECK(read.at("not_understood").size() == 1);
  CHECK(read.at("understood").size() > 10);
  // The answer is repeated from itself, without the file.
  const std::string kept = add(scratch, "answer.json", answer.out);
  std::filesystem::remove(file);
  CHECK(run("rerun " + kept).out == answer.out);
}

TEST_CASE("flags win over a configuration, and several models are told apart by one") {
  const ScratchFolder scratch("configured_flags");
  const std::string file = add(scratch, "train.sh", small);
  const Outcome other =
      run("simulate " + file + " --cluster dgx-h100 --tp 4 --ranges false --reasons false");
  REQUIRE(other.code == 0);
  CHECK(holds(other.out, "TP4"));
  const Outcome missing = run("simulate " + file);
  CHECK(missing.code == 2);
  CHECK(holds(missing.err, "cluster"));
}

TEST_CASE("a serving engine's command line is one step of simulate and diagnose") {
  const ScratchFolder scratch("configured_engine");
  const std::string file =
      add(scratch, "serve.sh",
          "vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 4 --dtype bfloat16 "
          "--max-num-seqs 256 --kv-cache-dtype fp8 --enforce-eager\n");
  const std::string machine = " --cluster dgx-h200 ";
  const Outcome missing = run("simulate " + file + machine);
  CHECK(missing.code == 2);
  CHECK(holds(missing.err, "no batch and context"));
  const Outcome answer =
      run("simulate " + file + machine + "--batch 32 --context 2000 --ranges false --json");
  INFO(answer.err);
  REQUIRE(answer.code == 0);
  const Json json = Json::parse(answer.out);
  const Json& question = json.at("question");
  for (const auto& [key, value] : {std::pair{"tp", 4}, {"dp", 1}, {"pp", 1}, {"gpus", 4}})
    CHECK(question.at(key).get<int>() == value);
  CHECK(question.at("phase").text() == "decode");
  CHECK(question.at("launch").text() == "eager");
  CHECK_FALSE(question.contains("engines"));
  const Json& read = question.at("read_from");
  CHECK(read.at("not_understood").size() == 1);  // the format of its cache
  CHECK(run("rerun " + add(scratch, "answer.json", answer.out)).out == answer.out);
  // Experts over attention-DP ranks.
  const Outcome experts =
      run("simulate " + given("vllm_experts.sh") + machine +
          "--batch 32 --context 2000 --ranges false --json --precision fp8-blockwise");
  INFO(experts.err);
  REQUIRE(experts.code == 0);
  const Json spread = Json::parse(experts.out).at("question");
  for (const auto& [key, value] : {std::pair{"tp", 1}, {"dp", 8}, {"ep", 8}, {"etp", 1}})
    CHECK(spread.at(key).get<int>() == value);
  // Experts whose width the ranks split.
  const std::string split = add(scratch, "split.sh",
                                "python3 -m sglang.launch_server --model-path "
                                "deepseek-ai/DeepSeek-R1 --tp 8 --quantization fp8\n");
  const Outcome wide =
      run("simulate " + split + machine + "--batch 16 --context 1000 --ranges false --json");
  INFO(wide.err);
  REQUIRE(wide.code == 0);
  for (const auto& [key, value] : {std::pair{"tp", 8}, {"ep", 1}, {"etp", 8}})
    CHECK(Json::parse(wide.out).at("question").at(key).get<int>() == value);
  // A prompt's step, of the same engine.
  CHECK(run("simulate " + file + machine + "--phase prefill --batch 1 --seq 2000 --ranges false")
            .code == 0);
  // The engine's own log tells the batch and the history.
  const std::string log = std::string(ORRERY_SOURCE_DIR) + "/tests/observe/files/vllm.log";
  const Outcome told = run("diagnose " + file + " " + log + machine + "--json");
  INFO(told.err);
  const Json asked = Json::parse(told.out).at("question");
  CHECK(asked.at("batch").get<int>() == 64);
  CHECK(asked.at("context").get<int>() == 1095);
  // Advice is of training.
  const Outcome advice = run("advise " + file + machine);
  CHECK(advice.code == 2);
  CHECK(holds(advice.err, "one inference step is timed by simulate"));
  CHECK(holds(
      run("advise --model llama3-8b --gpus 8 --seq 4096 --global-batch 8 --like " + file + machine)
          .err,
      "orrery serve reads this one"));
}

TEST_CASE("advice is compared with the configuration that runs now") {
  const ScratchFolder scratch("configured_like");
  const std::string file = add(scratch, "train.sh", small);
  const std::string ask =
      "advise --model llama3.2-1b --cluster dgx-h100 --gpus 16 --seq 4096 --global-batch 64 --top "
      "1 "
      "--tp 1 --pp 1 --like ";
  const Outcome page = run(ask + file);
  REQUIRE(page.code == 0);
  CHECK(holds(page.out, "Against what runs now: TP2"));
  CHECK(holds(page.out, ", which runs now: Megatron-LM"));
  const Outcome served = run(ask + given("vllm.sh"));
  CHECK(served.code == 2);
  CHECK(holds(served.err, "a configuration of vLLM"));
}

TEST_CASE("a server's command line is served, and training is not") {
  const std::string traffic =
      " --cluster dgx-h100 --concurrency 4 --isl 512 --osl 64 --requests 40";
  const Outcome page = run("serve " + given("vllm.sh") + traffic);
  REQUIRE(page.code == 0);
  CHECK(holds(page.out, "Read from " + given("vllm.sh") + ": vLLM"));
  CHECK(holds(page.out, "--tensor-parallel-sizes 8"));
  const Outcome training = run("serve " + given("nanotron.yaml") + traffic);
  CHECK(training.code == 2);
  CHECK(holds(training.err, "a serving engine's command line"));
}

TEST_CASE("broken configurations are one line and exit code 2") {
  const ScratchFolder scratch("configured_broken");
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"a.sh", "torchrun pretrain_gpt.py --tensor-model-parallel-size 'two\n"},
      {"b.sh", "torchrun pretrain_gpt.py --tensor-model-parallel-size two\n"},
      {"c.yaml", "parallelism:\n  dp: 2\n  tp: [1\n"},
      {"d.toml", "[training]\nseq_len = \"long\"\n"},
      {"e.json", "{\"train_batch_size\": \"many\"}"},
      {"f.py", "recipe.data.micro_batch_size = 12a\n"},
      {"g.txt", "nothing that starts a program\n"},
      {"h.yml", std::string("a: b\0c", 6)}};
  for (const auto& [name, text] : broken) {
    const std::string file = add(scratch, name, text);
    const Outcome refused = run("simulate " + file + " --cluster dgx-h100 --gpus 8");
    INFO(name << ": " << refused.err);
    CHECK(refused.code == 2);
    CHECK(refused.out.empty());
    CHECK(lines(refused.err) == 1);
    CHECK(holds(refused.err, name));
  }
}
