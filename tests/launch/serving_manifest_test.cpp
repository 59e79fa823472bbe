// SPDX-License-Identifier: Apache-2.0
// Tests manifests of served models: their YAML, their forms, and what is refused.
#include <catch2/catch.hpp>

#include "sim/base/errors/check.h"
#include "sim/launch/serving/manifest.h"
#include "sim/launch/serving/yaml.h"
#include "tests/launch/served_questions.h"

namespace orrery {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
std::string written(const ServedDeployment& d, ManifestForm form) {
  return manifest(d, form, "--kubernetes-as");
}

TEST_CASE("YAML: texts that read back as something else are quoted") {
  Json json = Json::object();
  json["plain"] = "vllm/vllm-openai:v0.14.0";
  json["flag"] = "--tp-size";
  json["number"] = "8000";
  json["truth"] = "true";
  json["dot"] = "0.0.0.0";
  json["short"] = "-m";
  json["colon"] = "a:";
  json["empty"] = "";
  json["json"] = R"({"a":"it's"})";
  json["lines"] = "one\n\n  two\n";
  json["none"] = Json();
  json["true"] = true;
  json["list"].push_back("a b");
  Json item = Json::object();
  item["name"] = "x";
  item["inner"]["deep"] = 1;
  json["list"].push_back(item);
  json["nothing"] = Json::object();
  CHECK(to_yaml(json) ==
        "plain: vllm/vllm-openai:v0.14.0\nflag: --tp-size\nnumber: \"8000\"\ntruth: \"true\"\n"
        "dot: \"0.0.0.0\"\nshort: \"-m\"\ncolon: \"a:\"\nempty: \"\"\njson: '{\"a\":\"it''s\"}'\n"
        "lines: |\n  one\n\n    two\nnone: null\n\"true\": true\nlist:\n  - \"a b\"\n  - name: x\n"
        "    inner:\n      deep: 1\nnothing: {}\n");
}

TEST_CASE("the plainest form holds it") {
  CHECK(plainest_form(served_by("vllm", {.tp = 8})) == ManifestForm::deployment);
  CHECK(plainest_form(served_by("vllm", {.tp = 16})) == ManifestForm::dynamo);
  CHECK(plainest_form(served_apart("vllm", {.tp = 4}, {.tp = 4})) == ManifestForm::dynamo);
}

TEST_CASE("a Deployment: as many pods as engines, each with its GPUs") {
  ServedDeployment d = served_by("trtllm", {.tp = 4});
  d.engines[0].replicas = 3;
  const std::string text = written(d, ManifestForm::deployment);
  CHECK(holds(text, "kind: Deployment\nmetadata:\n  name: some-model-1b-trtllm\n"));
  CHECK(holds(text, "  replicas: 3\n"));
  CHECK(holds(text, "nvidia.com/gpu: \"4\"\n"));
  CHECK(holds(text, "kind: ConfigMap\n"));
  CHECK(holds(text, "    kv_cache_config:\n      dtype: auto\n"));
  CHECK(holds(text, "- /etc/engine/engine.yaml\n"));
  CHECK_THROWS_WITH(written(served_by("vllm", {.tp = 16}), ManifestForm::deployment),
                    Catch::Contains("found deployment; expected dynamo or llm-d: an engine spans"));
}

TEST_CASE("Dynamo: a front, and a component for each kind of engine") {
  ServedDeployment d = served_apart("sglang", {.tp = 8}, {.attention_dp = 32, .ep = 32});
  d.router = RouterKind::prefix;
  const std::string text = written(d, ManifestForm::dynamo);
  CHECK(holds(text, "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\n"));
  CHECK(holds(text, "  backendFramework: sglang\n"));
  CHECK(holds(text, "- --router-mode\n                - kv\n"));
  CHECK(holds(text, "      type: prefill\n"));
  CHECK(holds(text, "        nodeCount: 4\n"));
  CHECK_FALSE(holds(text, "--nnodes"));  // the operator's
  CHECK(holds(written(served_by("trtllm", {.tp = 4}), ManifestForm::dynamo),
              "- --extra-engine-args\n"));
}

TEST_CASE("Dynamo: workers of every engine are told which half they are") {
  for (const char* stack : {"vllm", "sglang", "trtllm"}) {
    INFO(stack);
    const ServedDeployment d = served_apart(stack, {.tp = 4}, {.tp = 8});
    for (const std::size_t engine : {0, 1})
      CHECK(value_of(command_of(d, engine, EngineDialect::dynamo), "--disaggregation-mode") ==
            to_text(d.engines[engine].role));
  }
  CHECK(value_of(command_of(served_apart("vllm", {}, {})), "--disaggregation-mode") == "absent");
}

TEST_CASE("llm-d: servers, a pool of those that answer, a route") {
  const std::string apart =
      written(served_apart("vllm", {.tp = 4}, {.tp = 8}), ManifestForm::llm_d);
  CHECK(holds(apart, "kind: InferencePool\n"));
  CHECK(holds(apart, "kind: HTTPRoute\n"));
  CHECK(holds(apart, "name: routing-proxy\n"));
  CHECK(holds(apart, "- --kv-connector=nixlv2\n"));
  CHECK(holds(apart, "llm-d.ai/role: decode\n"));
  CHECK_FALSE(holds(apart, "LeaderWorkerSet"));

  const std::string wide =
      written(served_by("vllm", {.attention_dp = 16, .ep = 16}), ManifestForm::llm_d);
  CHECK(holds(wide, "kind: LeaderWorkerSet\n"));
  CHECK(holds(wide, "--data-parallel-hybrid-lb"));
  CHECK_FALSE(holds(wide, "leaderTemplate"));  // every host answers
  const std::string tensor = written(served_by("vllm", {.tp = 16}), ManifestForm::llm_d);
  CHECK(holds(tensor, "leaderTemplate"));
  CHECK(holds(tensor, "--headless"));
  CHECK_THROWS_WITH(written(served_by("trtllm", {.tp = 4}), ManifestForm::llm_d),
                    Catch::Contains("llm-d serves vLLM and SGLang"));
}

TEST_CASE("a container has no variables: what guesses tokens is named") {
  ServedDeployment d = served_by("vllm", {.tp = 4});
  d.guessing = {.kind = DraftKind::draft, .drafts = 4, .guesser = "small/Model"};
  CHECK(holds(written(d, ManifestForm::deployment),
              R"('{"model":"small/Model","num_speculative_tokens":4}')"));
  d.guessing->guesser = "";
  CHECK(holds(written(d, ManifestForm::deployment), R"("model":"DRAFT_MODEL")"));
  d.checkpoint.clear();
  CHECK(holds(written(d, ManifestForm::deployment), "            - MODEL\n"));
}

TEST_CASE("law of served manifests: GPUs of all pods are those of the engines") {
  CHECK(rc::check([] {
    const ServedDeployment d = any_deployment();
    const std::string text = written(d, ManifestForm::dynamo);
    for (const ServedEngine& e : d.engines) {
      const EngineHosts h = engine_hosts(d, e);
      RC_ASSERT(holds(text, "nvidia.com/gpu: \"" + std::to_string(h.gpus) + "\"\n"));
      RC_ASSERT(holds(text, "replicas: " + std::to_string(e.replicas) + "\n"));
      RC_ASSERT(h.hosts == 1 || holds(text, "nodeCount: " + std::to_string(h.hosts) + "\n"));
    }
    RC_ASSERT(!holds(text, "$"));
  }));
}

}  // namespace
}  // namespace orrery
