// SPDX-License-Identifier: Apache-2.0
// Tests the scripts that start serving engines: hosts, ports, routers, and what is refused.
#include <catch2/catch.hpp>

#include "sim/base/errors/check.h"
#include "sim/launch/serving/program.h"
#include "sim/launch/serving/script.h"
#include "tests/launch/served_questions.h"

namespace orrery {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("words of a shell: variables alone are expanded") {
  CHECK(expanded_word("--tp-size") == "--tp-size");
  CHECK(expanded_word("") == "''");
  CHECK(expanded_word("a b") == "'a b'");
  CHECK(expanded_word("it's") == "'it'\\''s'");
  CHECK(expanded_word("$MODEL") == "\"$MODEL\"");
  CHECK(expanded_word(R"({"a":"$X"})") == R"("{\"a\":\"$X\"}")");
  CHECK(expanded_word(R"({"a":1})") == R"('{"a":1}')");
}

TEST_CASE("comments break between words, and keep them all") {
  const std::string text = as_comment({std::string(150, 'x') + " y", "short."});
  CHECK(text == "# " + std::string(150, 'x') + "\n#   y\n# short.\n");
}

TEST_CASE("an engine on one host is a command; its script needs no word") {
  ServedDeployment d = served_by("vllm", {.tp = 4});
  d.engines[0].replicas = 3;
  const std::string text = commands_script(d, "--commands");
  CHECK(holds(text,
              "#!/usr/bin/env bash\n# Orrery: Some Model 1B on a cluster, vLLM 0.22: 3 x TP4.\n"));
  CHECK(holds(text, "MODEL=${MODEL:-some/Model-1B}\n"));
  CHECK(holds(text, "  exec vllm serve \"$MODEL\" \\\n    --tensor-parallel-size 4 \\\n"));
  CHECK(holds(text, "case \"${1:-serve}\" in\n"));
  CHECK(holds(text, "up to 2 on a host"));
  CHECK(holds(text, "a balancer of yours"));
  CHECK_FALSE(holds(text, "NODE_RANK"));
  d.checkpoint.clear();
  CHECK(holds(commands_script(d, "--commands"), "MODEL=${MODEL:?"));
}

TEST_CASE("an engine on several hosts: each program joins its processes in its own way") {
  const auto script = [](const std::string& stack, const EngineLayout& layout) {
    return commands_script(served_by(stack, layout), "--commands");
  };
  const std::string tensor = script("vllm", {.tp = 16});
  CHECK(holds(tensor,
              "--nnodes 2 \\\n    --node-rank \"$NODE_RANK\" \\\n    --master-addr \"$HEAD\""));
  CHECK(holds(tensor, "wait_flags=(--headless)"));
  const std::string data = script("vllm", {.attention_dp = 16, .ep = 16});
  CHECK(holds(data, "--data-parallel-size-local 8 \\\n"));
  CHECK(holds(data, "--data-parallel-start-rank \"$((NODE_RANK * 8))\""));
  CHECK(holds(
      script("sglang", {.attention_dp = 16, .ep = 16}),
      "--nnodes 2 \\\n    --node-rank \"$NODE_RANK\" \\\n    --dist-init-addr \"$HEAD:20000\""));
  CHECK(holds(script("trtllm", {.attention_dp = 16, .ep = 16}),
              "mpirun -n 16 --hostfile \"$HOSTFILE\" --map-by ppr:8:node trtllm-llmapi-launch "
              "trtllm-serve \"$MODEL\""));
  // Before 0.12 Ray joins hosts, which is started beside the engine; and ranks that span hosts
  // have no way at all.
  CHECK_THROWS_WITH(script("vllm@0.8", {.tp = 16}), Catch::Contains("vLLM 0.12 or later"));
  CHECK_THROWS_WITH(script("vllm", {.tp = 16, .attention_dp = 2}),
                    Catch::Contains("--commands: found DP2 TP16 PP1 of vLLM on hosts of 8"));
}

TEST_CASE("ranks of attention stay whole on hosts") {
  ServedDeployment d = served_by("vllm", {.tp = 4, .attention_dp = 3});
  const EngineHosts three = engine_hosts(d, d.engines[0]);
  CHECK(three.hosts == 3);
  CHECK(three.gpus == 4);
  d.gpus_per_host = 4;
  CHECK(engine_hosts(d, d.engines[0]).hosts == 3);
  d.engines[0].layout = {.tp = 6};
  CHECK(engine_hosts(d, d.engines[0]).hosts == 2);
  d.engines[0].layout = {.tp = 1};
  CHECK(engine_hosts(d, d.engines[0]).engines == 4);
}

TEST_CASE("Slurm: engines of a kind lie on hosts of their own, in turn") {
  ServedDeployment d = served_apart("sglang", {.tp = 4}, {.attention_dp = 16, .ep = 16});
  d.engines[0].replicas = 3;
  const std::string text = slurm_script(d, "--slurm");
  // Two engines of prompts share a host: two hosts; decodes take two more.
  CHECK(holds(text, "#SBATCH --nodes=4\n"));
  CHECK(holds(text, "#SBATCH --job-name=some-model-1b-sglang\n"));
  CHECK(holds(text, "launch prefill $((i / 2)) 1 4 $((i % 2))\n"));
  CHECK(holds(text, "PREFILL_FRONTS+=\"${HOSTS[i / 2]}:$((PORT + i % 2)) \"\n"));
  CHECK(holds(text, "launch decode $((2 + 2 * i)) 2 8 0\n"));
  CHECK(holds(text, "--disaggregation-bootstrap-port \"$((PORT + 998))\""));
  CHECK(holds(text, "--prefill \"http://$front\" $((${front##*:} + 998))"));
  CHECK(holds(text, "wait -n\n"));
  CHECK(text.find("#SBATCH") < text.find("set -euo"));
}

TEST_CASE("routers: SGLang's and TensorRT-LLM's own, and a word where there is none") {
  ServedDeployment d = served_by("sglang", {.tp = 8});
  CHECK_FALSE(holds(commands_script(d, "--commands"), "start_router"));
  d.engines[0].replicas = 2;
  d.router = RouterKind::prefix;
  CHECK(holds(commands_script(d, "--commands"), "--policy cache_aware \\\n"));
  d.router = RouterKind::session;
  CHECK(holds(commands_script(d, "--commands"), "no policy like session"));
  const ServedDeployment apart = served_apart("trtllm", {.tp = 4}, {.tp = 8});
  CHECK(holds(commands_script(apart, "--commands"), "trtllm-serve disaggregated"));
  CHECK(holds(commands_script(served_apart("vllm", {.tp = 4}, {.tp = 8}), "--commands"),
              "brings no program"));
}

TEST_CASE("law of served scripts: all engines are there, or one error says why none is") {
  CHECK(rc::check([] {
    const ServedDeployment d = any_deployment();
    std::string text, job;
    try {
      text = commands_script(d, "--commands");
      job = slurm_script(d, "--slurm");
    } catch (const Error& error) {
      RC_ASSERT(holds(error.message(), "--commands: found "));
      return;
    }
    for (const ServedEngine& e : d.engines) {
      const std::string role(to_text(e.role));
      RC_ASSERT(holds(text, "start_" + role + "() {\n"));
      RC_ASSERT(holds(job, "start_" + role + "() {\n"));
      RC_ASSERT(holds(job, "i < " + std::to_string(e.replicas) + "; i++"));
    }
    for (const std::string& all : {text, job})
      for (std::size_t from = 0; from < all.size();) {
        const std::size_t end = all.find('\n', from);
        RC_ASSERT(all[from] != '#' || end - from <= 160);
        from = end + 1;
      }
  }));
}

}  // namespace
}  // namespace orrery
