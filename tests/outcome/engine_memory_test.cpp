// SPDX-License-Identifier: Apache-2.0
// Checks what sequences of a serving engine keep beside their tokens, and how many there may be.
#include "sim/outcome/serving/engine_memory.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "hw_models/catalog.h"
#include "sim/outcome/serving/service.h"
#include "sim/outcome/serving/service_notes.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

ServiceCase case_of(const std::string& model, const std::string& cluster,
                    const std::string& stack = "vllm") {
  ServiceCase c;
  c.model = load_model(model, data_root() / "workloads/catalog/models");
  c.cluster = load_cluster(cluster, 1);
  const Job job{.task = Task::decode, .batch = 1, .context = 1};
  c.stack = catalogue_stack(stack, c.cluster, c.model, job, PrecisionRecipe::bf16);
  c.traffic.classes = {{"one", 1, FixedLength{100}, FixedLength{20}}};
  c.traffic.arrivals = ClosedLoop{2};
  c.traffic.requests = 4;
  return c;
}

EngineMemory memory_of(const ServiceCase& c) {
  return engine_memory(c.cluster, c.model, c.engines.layout, c.stack);
}

double block_bytes(const ServiceCase& c, const EngineMemory& m) {
  return m.token.si() * static_cast<double>(c.stack.serving.policy.block_tokens);
}

}  // namespace

TEST_CASE("engine memory: keys of every layer grow with the sequence, where none has a window") {
  const ServiceCase c = case_of("llama3.1-8b", "dgx-h100");
  const EngineMemory m = memory_of(c);
  CHECK(m.state == Bytes(0));
  CHECK(m.beside.of(100'000) == 0);
  CHECK(m.sequences == c.stack.serving.policy.max_sequences);
}

TEST_CASE("engine memory: SGLang sizes its cache before it loads what guesses") {
  const auto blocks = [](const std::string& stack, bool guesses) {
    ServiceCase c = case_of("deepseek-r1", "dgx-h200", stack);
    c.engines.layout.tp = c.engines.layout.etp = 16;
    const Drafter drafter = mtp_drafter(c.model, c.engines.layout, 2);
    const EngineMemory m =
        engine_memory(c.cluster, c.model, c.engines.layout, c.stack, guesses ? &drafter : nullptr);
    CHECK((m.drafter > Bytes(0)) == guesses);
    return m.blocks;
  };
  CHECK(blocks("sglang", true) == blocks("sglang", false));
  CHECK(blocks("vllm", true) < blocks("vllm", false));
}

TEST_CASE("engine memory: a window takes what a sequence has filled of it") {
  const ServiceCase c = case_of("gemma3-27b", "dgx-h200");
  const EngineMemory m = memory_of(c);
  REQUIRE(m.refusal.empty());
  // 52 layers of 1,024 tokens, 16 heads of 128, keys and values of two bytes.
  const double full = 52.0 * 1024 * 16 * 128 * 2 * 2;
  CHECK(m.state.si() == Approx(full));
  CHECK(m.beside.states == 0);
  CHECK(m.beside.window_tokens == 1024);
  const double block = block_bytes(c, m);
  CHECK(static_cast<double>(m.beside.of(5000)) == Approx(full / block).margin(1));
  CHECK(static_cast<double>(m.beside.of(128)) == Approx(full / 8 / block).margin(1));
  // None has states from its first token on: as many may run as the stack lets.
  CHECK(m.sequences == c.stack.serving.policy.max_sequences);
}

TEST_CASE("engine memory: states bound how many sequences run, unless as many were asked for") {
  ServiceCase c = case_of("nemotron-h-8b", "dgx-h100");
  const EngineMemory m = memory_of(c);
  REQUIRE(m.refusal.empty());
  CHECK(m.beside.window == 0);
  CHECK(m.beside.states > 0);
  REQUIRE(m.sequences < c.stack.serving.policy.max_sequences);
  CHECK(static_cast<double>(m.sequences) <= m.cache.si() / m.state.si());
  CHECK(static_cast<double>(m.sequences) > 0.97 * m.cache.si() / m.state.si());
  const ServicePrediction p = predict_service(c, {});
  CHECK(p.refusal.empty());
  CHECK(p.summary.requests == 4);
  REQUIRE(service_notes(c, p).size() == 1);
  CHECK(service_notes(c, p).front().find("their states fill the memory") != std::string::npos);
  c.needs_all_sequences = true;
  const ServicePrediction refused = predict_service(c, {});
  CHECK(refused.refusal.find("the states of 1,024 sequences fill more than") == 0);
  CHECK(service_notes(c, refused).empty());
}

TEST_CASE("engine memory: ranks of tensor parallelism share the tables of words") {
  ServiceCase c = case_of("llama3.1-8b", "dgx-h100");
  c.cluster = load_cluster("dgx-h100", 8);
  const double whole = memory_of(c).weights.si();
  CHECK(whole == Approx(2 * 8.03e9).epsilon(0.001));
  c.engines.layout.tp = 8;
  CHECK(memory_of(c).weights.si() == Approx(whole / 8).epsilon(0.001));
}

// What vLLM's own log said that the try of its largest step took (PyTorch activation peak), with
// its defaults of 1,024 sequences and 8,192 tokens on one H100; Qwen3-Next on two H200.
TEST_CASE("engine memory: what vLLM tries before it counts blocks is as large as it said") {
  struct Told {
    std::string model, release;
    std::int64_t gpus;
    double gibibytes;
  };
  const std::vector<Told> runs = {
      {"llama3.1-8b", "vllm@0.19", 1, 1.89},   {"qwen3-8b", "vllm@0.19", 1, 2.21},
      {"qwen3-30b-a3b", "vllm@0.19", 1, 2.68}, {"qwen3-14b", "vllm@0.17", 1, 2.23},
      {"qwen3-14b", "vllm@0.15", 1, 5.64},     {"qwen3-next-80b-a3b", "vllm@0.8", 2, 5.58}};
  for (const Told& run : runs) {
    CAPTURE(run.model, run.release);
    ServiceCase c = case_of(run.model, run.gpus == 1 ? "dgx-h100" : "dgx-h200", run.release);
    c.cluster = load_cluster(c.cluster.name, run.gpus);
    c.engines.layout.tp = run.gpus;
    c.engines.layout.etp = run.gpus;
    CHECK(memory_of(c).workspace / Bytes(1024.0 * 1024 * 1024) ==
          Approx(run.gibibytes).epsilon(0.1));
  }
}

TEST_CASE("engine memory: bytes a logit are those that a sampler was measured to take") {
  ServiceCase sorts = case_of("llama3.1-8b", "dgx-h100", "vllm@0.15");
  ServiceCase draws = case_of("llama3.1-8b", "dgx-h100", "vllm@0.17");
  std::ifstream file(data_root() / "validation/logit_bytes.jsonl");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const nlohmann::json told = nlohmann::json::parse(line);
    const bool sort = told.at("sampler") == "sort";
    if (sort && told.at("sequences") < 128) continue;  // by another algorithm, on no engine here
    const ServingMemory& memory = (sort ? sorts : draws).stack.serving.memory;
    CHECK(static_cast<double>(memory.logit_bytes) ==
          Approx(told.at("bytes_per_logit").get<double>()).epsilon(0.025));
  }
  CHECK(lines == 24);
}

TEST_CASE("prompts run in SGLang's graphs on plain engines alone") {
  const auto first_token = [](std::int64_t ranks, bool graphs, bool apart) {
    ServiceCase c = case_of("deepseek-v2-lite", "dgx-h200", "sglang@0.5.10");
    c.cluster = load_cluster("dgx-h200", ranks * (apart ? 2 : 1));
    c.traffic.arrivals = ClosedLoop{1};
    c.engines.layout.attention_dp = c.engines.layout.ep = ranks;
    if (apart) c.decode = c.engines;
    REQUIRE(c.stack.serving.mixed_graph_rows == 2048);
    if (!graphs) c.stack.serving.mixed_graph_rows = 0;
    const ServicePrediction p = predict_service(c, {});
    REQUIRE(p.refusal.empty());
    return p.summary.ttft.mean;
  };
  CHECK(first_token(1, true, false) < first_token(1, false, false));
  CHECK(first_token(2, true, false) == first_token(2, false, false));
  CHECK(first_token(1, true, true) == first_token(1, false, true));
}

}  // namespace orrery
