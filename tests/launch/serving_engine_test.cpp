// SPDX-License-Identifier: Apache-2.0
// Tests that a serving engine's command says what was predicted, or that it does not.
#include <algorithm>
#include <cctype>
#include <map>

#include <catch2/catch.hpp>

#include "sim/base/errors/check.h"
#include "sim/launch/serving/program.h"
#include "tests/launch/served_questions.h"

namespace orrery {
namespace {

bool mentions(const EngineCommand& c, const std::string& key) {
  const auto noted = [&](const std::vector<FlagNote>& notes) {
    return std::any_of(notes.begin(), notes.end(),
                       [&](const FlagNote& note) { return note.key == key; });
  };
  const auto said = [&](const std::vector<LaunchFlag>& flags) {
    return std::any_of(flags.begin(), flags.end(),
                       [&](const LaunchFlag& flag) { return flag.key == key; });
  };
  return said(c.flags) || said(c.environment) || noted(c.missing) || noted(c.implied);
}

// Everything that reaches the engine.
std::string all_of(const EngineCommand& c) {
  std::string text = c.file.dump();
  for (const LaunchFlag& flag : c.flags) text += " " + flag.name + " " + flag.value;
  for (const LaunchFlag& one : c.environment) text += " " + one.name + "=" + one.value;
  for (const FlagNote& note : c.missing) text += " " + note.sentence;
  for (const FlagNote& note : c.implied) text += " " + note.sentence;
  for (const std::string& sentence : c.advice) text += " " + sentence;
  return text;
}

// One setting of another deployment in a deployment; false where it is not one that moves here.
bool take(ServedDeployment& d, const ServedDeployment& other, const std::string& key) {
  using Mover = void (*)(ServedEngine&, const ServedEngine&);
  static const std::map<std::string, Mover> movers = {
#define MOVES(name)                                                                             \
  {                                                                                             \
#name, [](ServedEngine & e, const ServedEngine& from) { e.policy.name = from.policy.name; } \
  }
      MOVES(token_budget),
      MOVES(max_sequences),
      MOVES(block_tokens),
      MOVES(prefix_cache),
      MOVES(queue_limit),
      MOVES(long_prefill),
      MOVES(mixed_steps),
      MOVES(balance_steps),
      MOVES(stream_interval),
      MOVES(receive_interval),
      MOVES(watermark),
      MOVES(capacity),
      MOVES(priorities),
      MOVES(preemption),
      MOVES(chunked_prefill),
      MOVES(rank_choice),
      MOVES(tiers),
#undef MOVES
      {"batch_wait_steps",
       [](ServedEngine& e, const ServedEngine& from) {
         e.policy.batch_wait.steps = from.policy.batch_wait.steps;
       }},
      {"batch_wait_tokens",
       [](ServedEngine& e, const ServedEngine& from) {
         e.policy.batch_wait.tokens = from.policy.batch_wait.tokens;
       }},
      {"precision", [](ServedEngine& e,
                       const ServedEngine& from) { e.layout.precision = from.layout.precision; }},
      {"cache",
       [](ServedEngine& e, const ServedEngine& from) { e.layout.cache = from.layout.cache; }},
  };
  if (key == "spec") d.guessing = other.guessing;
  if (key == "max_context") d.longest = other.longest;
  const auto mover = movers.find(key);
  if (mover != movers.end()) mover->second(d.engines[0], other.engines[0]);
  return mover != movers.end() || key == "spec" || key == "max_context";
}

TEST_CASE("law of served settings: one that changes is said, or named as missing") {
  CHECK(rc::check([] {
    const ServedDeployment d = any_deployment(), other = any_deployment();
    const EngineCommand before = command_of(d);
    const SortedJson is = engine_settings(d, d.engines[0]);
    for (const auto& [key, value] : is.items()) {
      ServedDeployment moved = d;
      if (!take(moved, other, key)) continue;
      const SortedJson now = engine_settings(moved, moved.engines[0]).at(key);
      // Ranks of attention wait for each other only where there are some.
      const bool idle = key == "balance_steps" && d.engines[0].layout.attention_dp == 1 &&
                        d.engines[0].policy.scheduler == SchedulerKind::trtllm;
      const bool waits = d.engines[0].policy.batch_wait.steps > 0;
      if (now == value || idle || (key == "batch_wait_tokens" && !waits)) continue;
      if (all_of(command_of(moved)) == all_of(before))
        RC_FAIL("a change of " + key + " to " + now.dump() + " does not show:" + all_of(before));
    }
  }));
}

TEST_CASE("law of served settings: what is not plain is mentioned") {
  CHECK(rc::check([] {
    const ServedDeployment d = any_deployment();
    const SortedJson plain = engine_settings({}, {});
    for (std::size_t i = 0; i < d.engines.size(); ++i) {
      const EngineCommand c = command_of(d, i);
      for (const char* key :
           {"tp", "attention_dp", "ep", "cache", "token_budget", "max_sequences", "block_tokens",
            "memory_share", "queue_limit", "watermark", "priorities", "spec", "role", "max_context",
            "tiers", "expert_copies"}) {
        const SortedJson is = engine_settings(d, d.engines[i]).at(key);
        const bool file = c.file.dump().find("kv_cache_config") != std::string::npos;
        if (is == plain.at(key) || mentions(c, key)) continue;
        const std::string said(key);
        // TensorRT-LLM's file has no keys of ours: these are in it.
        const bool in_file =
            file && (said == "cache" || said == "block_tokens" || said == "tiers" ||
                     said == "memory_share" || said == "spec" || said == "role" ||
                     said == "attention_dp" || said == "expert_copies");
        if (!in_file) RC_FAIL(c.program + " says nothing of " + said + " " + is.dump());
      }
      for (const FlagNote& note : c.missing) RC_ASSERT(note.sentence.back() == '.');
      for (const LaunchFlag& flag : c.flags) RC_ASSERT(flag.name.starts_with("--"));
    }
  }));
}

TEST_CASE("law of served engines: hosts hold all GPUs of an engine, alike") {
  CHECK(rc::check([] {
    const ServedDeployment d = any_deployment();
    for (const ServedEngine& e : d.engines) {
      const EngineHosts h = engine_hosts(d, e);
      RC_ASSERT(h.hosts * h.gpus == e.layout.gpus());
      RC_ASSERT(h.gpus <= d.gpus_per_host);
      RC_ASSERT(h.gpus * h.engines <= d.gpus_per_host);
      const std::int64_t all = hosts_of_all(h, e.replicas);
      RC_ASSERT(all * d.gpus_per_host >= e.replicas * e.layout.gpus());
      RC_ASSERT(h.hosts == 1 || all == e.replicas * h.hosts);
    }
  }));
}

TEST_CASE("ranks of experts that are evened out are so in each program's words") {
  const EngineLayout wide{.attention_dp = 32, .ep = 32, .expert_copies = 32};
  const auto asked = [&](const char* stack) {
    ServedDeployment d = served_by(stack, wide);
    d.experts = 256;
    return command_of(d);
  };
  const EngineCommand sglang = asked("sglang");
  CHECK(value_of(sglang, "--enable-eplb").empty());
  CHECK(value_of(sglang, "--ep-num-redundant-experts") == "32");
  CHECK(value_of(asked("vllm"), "--eplb-config") == R"({"num_redundant_experts":32})");
  CHECK(is_missing(asked("vllm@0.8"), "expert_copies"));
  const Json moe = asked("trtllm").file.at("moe_config");
  CHECK(moe.at("load_balancer").at("num_slots") == 288);
  CHECK(moe.at("backend") == "WIDEEP");
}

TEST_CASE("vLLM: ranks of attention are its data parallelism, experts lie over all") {
  const EngineCommand c =
      command_of(served_by("vllm", {.tp = 2, .pp = 2, .attention_dp = 4, .ep = 8}));
  CHECK(value_of(c, "--tensor-parallel-size") == "2");
  CHECK(value_of(c, "--pipeline-parallel-size") == "2");
  CHECK(value_of(c, "--data-parallel-size") == "4");
  CHECK(value_of(c, "--enable-expert-parallel").empty());
  CHECK(value_of(c, "--max-num-seqs") == "1024");
  CHECK(c.program == "vLLM 0.22");
  const EngineCommand shared =
      command_of(served_by("vllm", {.tp = 2, .attention_dp = 4, .ep = 1, .etp = 8}));
  CHECK(value_of(shared, "--enable-expert-parallel") == "absent");
  const EngineCommand some =
      command_of(served_by("vllm", {.tp = 2, .attention_dp = 4, .ep = 4, .etp = 2}));
  CHECK(is_missing(some, "ep"));
}

TEST_CASE("vLLM of 2023 has fewer flags, and says so") {
  ServedDeployment d = served_by("vllm@0.2", {.tp = 4, .attention_dp = 2});
  d.engines[0].layout.cache = Format::fp8;
  const EngineCommand c = command_of(d);
  CHECK(is_missing(c, "attention_dp"));
  CHECK(is_missing(c, "cache"));
  CHECK(value_of(c, "--kv-cache-dtype") == "absent");
  CHECK(engine_program(d, EngineDialect::own).model_flag == "--model");
  CHECK(engine_program(served_by("vllm"), EngineDialect::own).start.back() == "serve");
}

TEST_CASE("SGLang: what it divides by its ranks of attention is multiplied before") {
  ServedDeployment d = served_by("sglang", {.attention_dp = 8, .ep = 8});
  d.engines[0].policy.chunk = 4096;
  d.engines[0].policy.max_sequences = 100;
  const EngineCommand c = command_of(d);
  CHECK(value_of(c, "--tp-size") == "8");
  CHECK(value_of(c, "--dp-size") == "8");
  CHECK(value_of(c, "--enable-dp-attention").empty());
  CHECK(value_of(c, "--chunked-prefill-size") == "32768");
  CHECK(value_of(c, "--max-running-requests") == "800");
  CHECK(value_of(c, "--moe-a2a-backend") == "deepep");
  CHECK(value_of(c, "--cuda-graph-max-bs") == "100");
  REQUIRE(c.environment.size() == 1);
  CHECK(c.environment[0].value == "100");
  d.guessing = {.kind = DraftKind::mtp, .drafts = 3, .guesser = ""};
  d.engines[0].policy.max_sequences = 512;
  const EngineCommand guessed = command_of(d);
  CHECK(value_of(guessed, "--cuda-graph-max-bs") == "256");
  CHECK(guessed.environment[0].value == "1024");
  CHECK(value_of(guessed, "--speculative-algorithm") == "NEXTN");
  CHECK(value_of(guessed, "--speculative-num-draft-tokens") == "4");
}

TEST_CASE("SGLang: engines of prompts know those of decodes") {
  const ServedDeployment d =
      served_apart("sglang", {.tp = 8}, {.tp = 2, .attention_dp = 8, .ep = 16});
  const EngineCommand prompts = command_of(d, 0), decodes = command_of(d, 1);
  CHECK(value_of(prompts, "--disaggregation-mode") == "prefill");
  CHECK(value_of(prompts, "--disaggregation-decode-tp") == "16");
  CHECK(value_of(prompts, "--disaggregation-decode-dp") == "8");
  CHECK(value_of(decodes, "--disaggregation-mode") == "decode");
  CHECK(value_of(decodes, "--prefill-round-robin-balance").empty());
  CHECK(value_of(decodes, "--disaggregation-bootstrap-port") == "absent");
}

TEST_CASE("TensorRT-LLM: prompts that wait for more of them") {
  ServedDeployment d = served_by("trtllm", {.tp = 8});
  d.engines[0].policy.batch_wait.steps = 40;
  d.engines[0].policy.batch_wait.tokens = 0.8;
  const EngineCommand c = command_of(d);
  CHECK(c.file["batch_wait_timeout_iters"].get<int>() == 40);
  CHECK(c.file["batch_wait_max_tokens_ratio"].get<double>() == 0.8);
}

TEST_CASE("TensorRT-LLM: settings without a flag stand in its file") {
  ServedDeployment d = served_by("trtllm", {.attention_dp = 8, .ep = 4, .etp = 2});
  d.engines[0].policy.balance_steps = 50;
  d.engines[0].policy.capacity = CapacityPolicy::max_utilisation;
  d.engines[0].layout.cache = Format::fp8;
  d.guessing = {.kind = DraftKind::mtp, .drafts = 2, .guesser = ""};
  const EngineCommand c = command_of(d);
  CHECK(value_of(c, "--tp_size") == "8");
  CHECK(value_of(c, "--ep_size") == "4");
  CHECK(value_of(c, "--max_num_tokens") == "8192");
  CHECK(c.file["enable_attention_dp"].get<bool>());
  CHECK(c.file["attention_dp_config"]["timeout_iters"].get<int>() == 50);
  CHECK_FALSE(c.file.contains("batch_wait_timeout_iters"));
  CHECK(c.file["kv_cache_config"]["dtype"].text() == "fp8");
  CHECK(c.file["kv_cache_config"]["tokens_per_block"].get<int>() == 32);
  CHECK(c.file["kv_cache_config"]["free_gpu_memory_fraction"].get<double>() == 0.9);
  CHECK(c.file["scheduler_config"]["capacity_scheduler_policy"].text() == "MAX_UTILIZATION");
  CHECK(c.file["speculative_config"]["num_nextn_predict_layers"].get<int>() == 2);
  CHECK(c.missing.empty());
  const EngineCommand dynamo = command_of(d, 0, EngineDialect::dynamo);
  CHECK(value_of(dynamo, "--tensor-parallel-size") == "8");
  CHECK(value_of(dynamo, "--tp_size") == "absent");
  CHECK(dynamo.file == c.file);
  CHECK(is_missing(command_of(served_by("trtllm", {.tp = 2, .attention_dp = 4})), "attention_dp"));
}

TEST_CASE("an engine of our own has no command") {
  CHECK_THROWS_AS(command_of(served_by("pytorch-serve")), Error);
}

TEST_CASE("a release that is asked for is the one whose flags are said") {
  ServedDeployment d = served_by("vllm@0.11");
  CHECK(command_of(d).program == "vLLM 0.11");
  d.engines[0].policy.stream_interval = 20;
  CHECK(value_of(command_of(d), "--stream-interval") == "20");
  ServedDeployment old = served_by("vllm@0.8");
  old.engines[0].policy.stream_interval = 20;
  CHECK(is_missing(command_of(old), "stream_interval"));
}

TEST_CASE("sources of engines' flags are in the catalogue") {
  const auto sources = load_sources();
  for (const std::string& stack : served_stacks()) {
    const ServedDeployment d = served_by(stack, {.tp = 2});
    INFO(stack);
    const EngineCommand c = command_of(d);
    CHECK_FALSE(c.sources.empty());
    for (const std::string& id : c.sources) CHECK(sources.count(id) == 1);
    for (const EngineDialect dialect : {EngineDialect::own, EngineDialect::dynamo})
      for (const std::string& id : engine_program(d, dialect).sources)
        CHECK(sources.count(id) == 1);
  }
}

TEST_CASE("names of objects are those that Kubernetes takes") {
  CHECK(object_name("Llama 3.3 70B") == "llama-3-3-70b");
  CHECK(object_name("3-things") == "m3-things");
  CHECK(object_name("a--b__c") == "a-b-c");
  CHECK(object_name("x.") == "x");
  CHECK(object_name("") == "m");
  CHECK(rc::check([] {
    const std::string name = object_name(*rc::gen::arbitrary<std::string>());
    RC_ASSERT(!name.empty() && name.size() <= 40);
    RC_ASSERT(std::islower(static_cast<unsigned char>(name.front())) != 0);
    RC_ASSERT(name.back() != '-');
    for (const char c : name)
      RC_ASSERT(c == '-' || std::isdigit(static_cast<unsigned char>(c)) != 0 ||
                std::islower(static_cast<unsigned char>(c)) != 0);
  }));
}

}  // namespace
}  // namespace orrery
