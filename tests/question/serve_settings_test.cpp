// SPDX-License-Identifier: Apache-2.0
// Tests what questions of served models refuse: engines without end, and what has no effect.
#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
#include "sim/question/serve/engine_text.h"
#include "sim/question/serve/policy.h"
#include "sim/question/serve/serve.h"
#include "tests/base/error_text.h"

namespace orrery {
namespace {

JsonValue question(SortedJson more) {
  SortedJson settings = {
      {"model", "llama3.1-8b"}, {"cluster", "dgx-h100"}, {"stack", "vllm"}, {"engines", "TP2"},
      {"concurrency", 2},       {"requests", 4},         {"isl", 100},      {"osl", 10}};
  settings.update(more);
  return JsonValue::from(settings, "command line");
}

ServiceCase asked(SortedJson more, Catalogues& catalogues) {
  return read_service(question(std::move(more)), catalogues, 1);
}

std::vector<std::string> unused(SortedJson more) {
  Catalogues catalogues;
  std::vector<std::string> keys;
  const JsonValue settings = question(std::move(more));
  for (const UnusedSetting& one : unused_settings(settings, read_service(settings, catalogues, 1)))
    keys.push_back(one.key);
  return keys;
}

std::string error_of(SortedJson more) {
  Catalogues catalogues;
  return error_text([&] { serve_settings(question(std::move(more)), {.catalogues = catalogues}); });
}

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("serve: engines have a number that memory bears") {
  CHECK(parse_engines("65536xTP8", "--engines").replicas == 65'536);
  CHECK(error_text([] { parse_engines("1000000xTP8", "--engines"); }) ==
        "--engines: found \"1000000xTP8\": 1,000,000 engines; expected at most 65,536");
  CHECK(error_text([] { parse_engines("8192xDP64", "--decode"); }) ==
        "--decode: found \"8192xDP64\": 524,288 ranks with requests of their own; expected at most "
        "262,144");
  CHECK(error_text([] { parse_engines("65536xTP1PP8", "--engines"); }).find("of pipelines") !=
        std::string::npos);
}

TEST_CASE("serve: engines say whether their experts' ranks are evened out") {
  const EngineGroup evened = parse_engines("2xDP32EP32+32", "--engines");
  CHECK(evened.layout.expert_copies == 32);
  CHECK(to_text(evened) == "2 x DP32 EP32+32");
  CHECK(parse_engines("DP8EP8+0", "--engines").layout.expert_copies == 0);
  CHECK(!parse_engines("DP8EP8", "--engines").layout.expert_copies);
  for (const char* text : {"TP8+1", "DP8EP8+", "DP8EP8+-8", "DP8EP8+8+8"})
    CHECK(error_text([&] { parse_engines(text, "--engines"); }).find("DP32EP32+32") !=
          std::string::npos);
  const SortedJson wide = {
      {"model", "deepseek-r1"}, {"precision", "fp8-blockwise"}, {"engines", "DP8EP8+9"}};
  CHECK(error_of(wide).find("copies in multiples of 8 ranks, at most one of each expert on every "
                            "rank: 1792") != std::string::npos);
  CHECK(error_of({{"model", "deepseek-r1"}, {"engines", "TP8EP1+0"}})
            .find("several ranks of experts") != std::string::npos);
}

TEST_CASE("serve: copies fill ranks that experts alone do not divide among") {
  const auto of = [](const char* engines) {
    return SortedJson{{"model", "deepseek-r1"},
                      {"cluster", "gb200-nvl72"},
                      {"stack", "trtllm"},
                      {"precision", "fp8-blockwise"},
                      {"engines", engines}};
  };
  CHECK(error_of(of("DP36EP36")).find("copies that fill its ranks: EP36+32") != std::string::npos);
  for (const char* text : {"DP36EP36+36", "DP36EP36+0"})
    CHECK(error_of(of(text)).find("fill 36 ranks with the 256 experts: 32, 68, and so on") !=
          std::string::npos);
  CHECK(error_of(of("DP2EP2+512")).find("at most one of each expert on every rank: 256") !=
        std::string::npos);
  Catalogues catalogues;
  for (const auto& [engines, held] : {std::pair{"DP36EP36+32", 8}, {"DP72EP72+32", 4}}) {
    const ServiceCase wide = asked(of(engines), catalogues);
    CHECK(local_experts(wide.model.classes.back().ffn, wide.engines.layout.layout()) == held);
  }
}

TEST_CASE("serve: settings that the scheduler or the engines do not know are found") {
  CHECK(unused({{"chunk", 2048}, {"long_prefill", 100}}) == Keys{"chunk"});
  CHECK(unused({{"stack", "sglang"}, {"chunk", 2048}, {"mixed_steps", true}}).empty());
  CHECK(unused({{"stack", "sglang"}, {"long_prefill", 100}}) == Keys{"long_prefill"});
  CHECK(unused({{"balance_steps", 4}, {"engines", "DP2"}}) == Keys{"balance_steps"});
  CHECK(unused({{"stack", "trtllm"}, {"balance_steps", 4}}) == Keys{"balance_steps"});
  CHECK(unused({{"stack", "trtllm"}, {"balance_steps", 4}, {"engines", "DP2"}}).empty());
  CHECK(unused({{"batch_wait_steps", 4}}) == Keys{"batch_wait_steps"});
  const SortedJson waits = {
      {"stack", "trtllm"}, {"batch_wait_steps", 4}, {"batch_wait_tokens", 0.5}};
  CHECK(unused(waits).empty());
  SortedJson ranks = waits;
  ranks["engines"] = "DP2";
  CHECK(unused(ranks) == Keys{"batch_wait_steps", "batch_wait_tokens"});
  CHECK(unused({{"stack", "trtllm"}, {"batch_wait_steps", 4}}) == Keys{"batch_wait_steps"});
  CHECK(unused({{"stack", "trtllm"}, {"batch_wait_tokens", 0.5}}) == Keys{"batch_wait_tokens"});
  CHECK(unused({{"stack", "trtllm"}, {"batch_wait_steps", 0}}).empty());
  CHECK(error_of({{"stack", "trtllm"}, {"batch_wait_tokens", 1.5}}).find("a share from 0 to 1") !=
        std::string::npos);
  CHECK(unused({{"rank_choice", "least-requests"}}) == Keys{"rank_choice"});
  CHECK(unused({{"rank_choice", "least-requests"}, {"engines", "DP2"}}).empty());
  Catalogues catalogues;
  CHECK(asked({{"chunk", 77}}, catalogues).stack.serving.policy.chunk != 77);
  CHECK(asked({{"chunk", 77}, {"stack", "sglang"}}, catalogues).stack.serving.policy.chunk == 77);
  const EnginePolicy waiting = asked(waits, catalogues).stack.serving.policy;
  CHECK(waiting.batch_wait.steps == 4);
  CHECK(waiting.batch_wait.tokens == 0.5);
  CHECK(asked({{"ignore_eos", true}}, catalogues).stack.serving.policy.new_tokens.known_ends);
  CHECK_FALSE(asked({{"chunk", 77}}, catalogues).stack.serving.policy.new_tokens.known_ends);
  const auto front = [&](const char* frontend) {
    return asked({{"frontend", frontend}}, catalogues).stack.serving.policy.front;
  };
  CHECK(front("dynamo") < front("engine"));
  CHECK(unused({{"frontend", "dynamo"}}).empty());
  CHECK(unused({{"stack", "pytorch-serve"}, {"frontend", "dynamo"}}) == Keys{"frontend"});
}

TEST_CASE("serve: engines without graphs or a compiler") {
  Catalogues catalogues;
  const auto read = [&](const SortedJson& settings) { return asked(settings, catalogues); };
  CHECK_FALSE(read({{"eager", "none"}}).engines.eager);
  CHECK(read({{"eager", "all"}}).engines.eager);
  const auto with = [&](const char* which) {
    SortedJson settings = question({{"prefill", "TP1"}, {"decode", "TP1"}, {"eager", which}}).raw();
    settings.erase("engines");
    return read_service(JsonValue::from(settings, "command line"), catalogues, 1);
  };
  CHECK(with("prompts").engines.eager);
  CHECK_FALSE(with("prompts").decode->eager);
  CHECK(with("all").decode->eager);
  CHECK(error_of({{"eager", "prompts"}}).find("--prefill") != std::string::npos);
  CHECK(error_of({{"eager", "some"}}).find("none, prompts") != std::string::npos);
}

TEST_CASE("serve: what no point of a question uses is an error, what one uses is none") {
  CHECK(error_of({{"chunk", 2048}}) ==
        "command line: chunk: found 2048; expected nothing with vllm: it is a setting of SGLang's "
        "scheduler; elsewhere --token-budget bounds a step's prompts");
  CHECK(error_of({{"chunk", 2048}, {"stack", {"vllm", "sglang"}}}) == "no error");
  CHECK(error_of({{"rank_choice", "least-requests"}}).find("with attention DP") !=
        std::string::npos);
  CHECK(error_of({{"rank_choice", "least-requests"}, {"engines", {"TP2", "DP2"}}}) == "no error");
}

TEST_CASE("serve: formats that a device has no units for are refused in words of serving") {
  const auto starts = [](SortedJson more, const std::string& start) {
    const std::string text = error_of(std::move(more));
    INFO(text);
    CHECK(text.rfind(start, 0) == 0);
    CHECK(text.find("train") == std::string::npos);
  };
  starts({{"cache", "nvfp4"}},
         "command line: cache: found \"nvfp4\"; expected bf16 or fp8: NVIDIA H100");
  starts({{"precision", "nvfp4"}},
         "command line: precision: found \"nvfp4\"; expected another format of the checkpoint: "
         "NVIDIA H100 SXM5 80 GB does not serve in nvfp4");
  starts({{"cluster", "mi300x-8"}},
         "command line: stack: found \"vllm\"; expected a device that it serves on");
  CHECK(error_of({{"cache", "fp8"}}) == "no error");
  CHECK(error_of({{"cache", "nvfp4"}, {"cluster", "dgx-b200"}, {"precision", "nvfp4"}}) ==
        "no error");
}

TEST_CASE("serve: a release before the first one is an error, as for simulate") {
  CHECK(
      error_of({{"stack", "vllm@0.0"}}).find("found \"vllm@0.0\"; expected one of its releases") !=
      std::string::npos);
  Catalogues catalogues;
  CHECK(asked({{"stack", "vllm@99"}}, catalogues).stack.asked == "99");
}

TEST_CASE("serve: what says when requests come is named, all of it") {
  Catalogues catalogues;
  SortedJson settings = question(SortedJson::object()).raw();
  settings.erase("concurrency");
  CHECK(
      error_text([&] { read_service(JsonValue::from(settings, "command line"), catalogues, 1); }) ==
      "command line: found nothing that says when requests come; expected one of --concurrency, "
      "--arrivals, --trace or --for");
}

}  // namespace orrery
