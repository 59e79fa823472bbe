// SPDX-License-Identifier: Apache-2.0
// Tests that no setting is taken and then ignored: what a command has no use for is one error.
#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
#include "sim/question/settings/settings.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

using test::Outcome;
using test::run;

SortedJson training() {
  return {{"model", "llama3-8b"},
          {"cluster", "dgx-h100"},
          {"gpus", 16},
          {"seq", 4096},
          {"global_batch", 64}};
}

SortedJson phase(const char* name) {
  SortedJson s = {{"model", "llama3-8b"}, {"cluster", "dgx-h100"}, {"gpus", 8}, {"batch", 4}};
  s["phase"] = name;
  s[std::string(name) == "decode" ? "context" : "seq"] = 4096;
  return s;
}

SortedJson with(SortedJson settings, const char* key, const SortedJson& value) {
  settings[key] = value;
  return settings;
}

Scenario scenario(const SortedJson& settings) {
  return read_scenario(JsonValue::from(settings, "test"));
}

std::optional<Scenario> like(const SortedJson& question, const SortedJson& now) {
  const JsonValue s = JsonValue::from(with(question, "like", now), "test");
  return read_like(s, read_question(s).job);
}

template <class Run>
std::string error_of(Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

void expect_error(const SortedJson& settings, const std::string& part) {
  const std::string message = error_of([&] { scenario(settings); });
  INFO(settings.dump() << "\n" << message);
  CHECK(message.find(part) != std::string::npos);
}

TEST_CASE("sizes of another task are errors") {
  REQUIRE(error_of([] { scenario(training()); }).empty());
  REQUIRE(error_of([] { scenario(phase("decode")); }).empty());
  REQUIRE(error_of([] { scenario(phase("prefill")); }).empty());
  expect_error(with(training(), "batch", 4), "batch: found 4; expected nothing: pretrain");
  expect_error(with(training(), "context", 4096), "phase decode in context");
  expect_error(with(training(), "lora_rank", 8), "pretrain has no adapters");
  expect_error(with(with(training(), "task", "sft"), "lora_rank", 8), "sft has no adapters");
  expect_error(with(phase("decode"), "seq", 4096), "decode counts tokens before in context");
  expect_error(with(phase("decode"), "global_batch", 64), "decode counts sequences in batch");
  expect_error(with(phase("prefill"), "global_batch", 64), "prefill counts sequences in batch");
  expect_error(with(phase("prefill"), "context", 64), "prefill counts tokens in seq");
  expect_error(with(phase("prefill"), "mean_document", 64), "prefill packs no documents");
  expect_error(with(phase("prefill"), "hidden_dropout", 0.1), "prefill drops nothing");
  const SortedJson lora = with(with(training(), "task", "lora"), "lora_rank", 8);
  CHECK(scenario(lora).job.lora_rank == 8);
  // An adapter that would hold more than its layer is none.
  expect_error(with(lora, "lora_rank", 1 << 20), "the smallest width of a linear layer");
}

TEST_CASE("parts that the model lacks are errors, unless they are switched off") {
  expect_error(with(training(), "mtp", true), "no multi-token prediction modules");
  expect_error(with(training(), "expert_imbalance", 1.2), "has no experts");
  expect_error(with(training(), "experts_in_turn", true), "has no experts");
  const SortedJson experts = with(training(), "model", "deepseek-v3");
  expect_error(with(with(phase("decode"), "model", "deepseek-v3"), "mtp", true),
               "decode trains no prediction modules");
  SortedJson off = training();
  off.update({{"mtp", false}, {"expert_imbalance", 1}, {"experts_in_turn", false}});
  CHECK(error_of([&] { scenario(off); }).empty());
  CHECK(scenario(with(experts, "expert_imbalance", 1.2)).job.expert_imbalance == 1.2);
}

TEST_CASE("a release trains the modules that it trains by default") {
  const SortedJson model = with(training(), "model", "deepseek-v3");
  const SortedJson recipe = with(model, "stack", "nemo");
  CHECK(scenario(recipe).job.mtp);
  CHECK_FALSE(scenario(with(recipe, "mtp", false)).job.mtp);
  CHECK_FALSE(scenario(with(model, "stack", "megatron-core")).job.mtp);
  CHECK(scenario(with(with(model, "stack", "megatron-core"), "mtp", true)).job.mtp);
  CHECK(read_question(JsonValue::from(recipe, "test")).job.mtp);
  CHECK_FALSE(read_question(JsonValue::from(with(recipe, "mtp", false), "test")).job.mtp);
  // What runs now trains what the question trains, whatever its own release would.
  CHECK(like(recipe, {{"stack", "megatron-core"}})->job.mtp);
}

TEST_CASE("a launch program's dropout is the job's, unless it is told") {
  SortedJson run = with(training(), "model", "gpt3-175b");
  run.update({{"seq", 2048}, {"stack", "nemo@25.02"}, {"cluster", "dgx-h100"}});
  CHECK(scenario(run).job.attention_dropout == 0.1);
  CHECK(scenario(run).job.hidden_dropout == 0.1);
  CHECK(scenario(with(run, "attention_dropout", 0)).job.attention_dropout == 0);
  CHECK(scenario(with(run, "stack", "megatron-core")).job.attention_dropout == 0);
}

TEST_CASE("what runs now is compared as it runs, or not at all") {
  const SortedJson q = training();
  CHECK(like(q, {{"tp", 8}})->stack.host.launch == scenario(with(q, "tp", 8)).stack.host.launch);
  CHECK(like(q, {{"tp", 8}, {"launch", "graph"}})->stack.host.launch == LaunchMode::full_graph);
  CHECK(like(q, {{"tp", 8}, {"launch", "eager"}})->stack.host.launch == LaunchMode::eager);
  const auto refused = [&](const char* key, const SortedJson& value, const std::string& part) {
    const std::string message = error_of([&] { like(q, {{"tp", 8}, {key, value}}); });
    INFO(message);
    CHECK(message.find(key) != std::string::npos);
    CHECK(message.find(part) != std::string::npos);
  };
  refused("network", "flow", "ideal");
  refused("slow_gpus", SortedJson::parse(R"([{"gpu": 3, "speed": 0.8}])"), "healthy");
  refused("faults", SortedJson::parse(R"([{"kind": "nic", "gpu": 3}])"), "healthy");
  refused("background", SortedJson::array(), "healthy");
  refused("phase", "decode", "pretrain as in the question");
  refused("task", "sft", "pretrain as in the question");
  refused("seq", 8192, "4096 as in the question");
  CHECK(error_of([&] { like(q, {{"network", "ideal"}, {"trace_out", "t.json"}}); }).empty());
}

TEST_CASE("what runs now has the tokens of the question, also those that it takes for granted") {
  const SortedJson q = with(training(), "model", "mixtral-8x7b");
  const auto message = [&](const SortedJson& question, const SortedJson& now) {
    return error_of([&] { like(question, now); });
  };
  CHECK(message(q, {{"expert_imbalance", 1.3}}).find("on one job") != std::string::npos);
  CHECK(message(q, {{"experts_in_turn", true}}).find("on one job") != std::string::npos);
  const SortedJson uneven = with(q, "expert_imbalance", 1.3);
  CHECK(like(uneven, {{"tp", 2}})->job.expert_imbalance == 1.3);
  CHECK(message(uneven, {{"expert_imbalance", 1.3}}).empty());
  CHECK(message(uneven, {{"expert_imbalance", 1}}).find("on one job") != std::string::npos);
}

const std::string subject =
    "--model llama3-8b --cluster dgx-h100 --gpus 16 --seq 4096 --global-batch 64 ";

SortedJson answer(const std::string& arguments) {
  const Outcome o = run(arguments + " --json --quiet");
  INFO(arguments << "\n" << o.err);
  REQUIRE(o.code == 0);
  return SortedJson::parse(o.out);
}

TEST_CASE("a seed changes what is drawn, and is refused where nothing is") {
  const std::string drawn = "--seed: found 7; expected nothing", other = "found --seed, a flag of";
  for (const auto& [command, part] : {std::pair{"advise " + subject, other},
                                      {"simulate " + subject, drawn},
                                      {"validate", other},
                                      {"catalog list", other},
                                      {"calibrate show --device gb300", other},
                                      {"topology dgx-h100", drawn}}) {
    const Outcome o = run(command + " --seed 7");
    INFO(command << "\n" << o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(o.err.find(part) != std::string::npos);
  }
  const std::string hashed =
      "simulate --model llama3-8b --cluster h100-roce --gpus 512 --seq 8192 --global-batch 1024 "
      "--micro-batch 1 --stack pytorch-fsdp2 --zero 3 --network flow";
  const auto time = [&](const std::string& seed) {
    return answer(hashed + seed)["prediction"]["step_time_s"];
  };
  CHECK(time("") == time(" --seed 1"));
  CHECK(time(" --seed 7") == time(" --seed 7"));
  CHECK(time("") != time(" --seed 7"));
  const std::string months =
      "plan --model llama3-8b --cluster dgx-h100 --gpus 1024 --seq 8192 --global-batch 1024 "
      "--tokens 1T --stack megatron-core --tp 1 --pp 1 --recompute none";
  CHECK(answer(months) == answer(months + " --seed 1"));
  CHECK(answer(months) != answer(months + " --seed 7"));
}

TEST_CASE("simulate's remedies leave the memory free that a file reserves") {
  const ScratchFolder scratch("reserve");
  const auto traps = [&](double share) {
    SortedJson s = with(with(training(), "tp", 8), "recompute", "full");
    s["memory_reserve"] = share;
    const SortedJson all = answer("simulate " + test::add(scratch, "s.json", s.dump()));
    std::string ids;
    for (const SortedJson& trap : all["reasons"]["traps"])
      ids += trap["id"].get<std::string>() + " ";
    return ids;
  };
  CHECK(traps(0.05).find("needless-recompute") != std::string::npos);
  CHECK(traps(0.9).find("needless-recompute") == std::string::npos);
  const Outcome o = run(
      "simulate " + test::add(scratch, "bad.json", with(training(), "memory_reserve", 2).dump()));
  CHECK(o.code == 2);
  CHECK(o.err.find("memory_reserve") != std::string::npos);
}

}  // namespace
}  // namespace orrery
