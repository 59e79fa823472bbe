// SPDX-License-Identifier: Apache-2.0
// Reads what serve says of rejected requests, of releases, of GPUs without work and of caches.
#include <catch2/catch.hpp>

#include "sim/base/json/json.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

const std::string llama =
    "serve --quiet --model llama3.3-70b --cluster dgx-h100 --stack vllm --engines 2xTP4 ";

// The text with each run of spaces and line breaks as one space.
std::string flat(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n';
    if (!space || (!out.empty() && out.back() != ' ')) out += space ? ' ' : c;
  }
  return out;
}

void expect_says(const std::string& arguments, const std::vector<std::string>& words,
                 int code = 0) {
  const test::Outcome outcome = test::run(arguments);
  CAPTURE(arguments, outcome.out, outcome.err);
  CHECK(outcome.code == code);
  for (const std::string& word : words)
    CHECK(flat(outcome.out + outcome.err).find(word) != std::string::npos);
}

JsonValue point(const std::string& arguments, int code = 0) {
  const test::Outcome outcome = test::run(arguments + " --json");
  CAPTURE(arguments, outcome.err);
  REQUIRE(outcome.code == code);
  return JsonValue::parse(outcome.out, "answer").at("points").items()[0];
}

}  // namespace

TEST_CASE("serve: points whose requests are all rejected say so, and why") {
  expect_says(llama + "--isl 1000,200000 --osl 10 --concurrency 4",
              {"isl 200000 8 rejected",
               "rejected: prompt and output are longer than the 131,072 tokens of Llama 3.3 70B"});
  expect_says(llama + "--isl 200000 --osl 10 --concurrency 4 --requests 1",
              {"the only request is rejected: "}, 3);
  expect_says(llama + "--isl 2000000 --osl 10 --concurrency 4 --max-context 1000000",
              {"all 40 requests are rejected: prompt and output are longer than the 1,000,000 "
               "tokens of --max-context."},
              3);
}

TEST_CASE("serve: prompts that fill a step of an engine that cuts none are noted") {
  const std::string whole =
      "serve --quiet --model llama3.3-70b --cluster dgx-h100 --stack trtllm --engines TP8 "
      "--concurrency 4 --requests 8 --osl 10 --isl ";
  const std::string note = "Note: Prompts of up to 8,192 tokens fill a step of 8,192 rows";
  expect_says(whole + "8192", {note, "(--token-budget)"});
  CHECK(flat(test::run(whole + "8192 --token-budget 16384").out).find(note) == std::string::npos);
  CHECK(flat(test::run(whole + "4096").out).find("Note: Prompts") == std::string::npos);
}

TEST_CASE("serve: a release that is not known is noted, and so are GPUs without work") {
  const std::string load = "--concurrency 4 --isl 100 --osl 10 ";
  const std::string note = "Release 0.99 of vllm is not known: it is predicted as 0.22";
  const std::string later =
      "serve --quiet --model llama3.3-70b --cluster dgx-h100 --engines 2xTP4 --stack vllm@0.99 ";
  expect_says(later + load, {"Note: " + note});
  expect_says(later + load + "--gpus 1000",
              {"Note: " + note, "Note: The engines use 8 of 1,000 GPUs (--gpus)."});
  expect_says(later + "--isl 100 --osl 10 --concurrency 2,4", {"Note: " + note});
  const JsonValue p = point(later + load);
  REQUIRE(p.at("notes").items().size() == 1);
  CHECK(p.at("notes").items()[0].text().find(note) == 0);
  CHECK(point(llama + load + "--gpus 8").at("notes").items().empty());
}

TEST_CASE("serve: the share of cached prompts is that of requests when they first start") {
  const ScratchFolder folder("serve_cached");
  const std::string file = folder / "rows.csv";
  const JsonValue p =
      point(llama + "--trace mooncake-conversation --requests 300 --requests-out " + file);
  std::ifstream rows(file);
  std::string line;
  std::getline(rows, line);
  std::int64_t cached = 0;
  while (std::getline(rows, line)) {
    std::size_t at = 0;  // request,state,replica,prompt,output,cached
    for (int comma = 0; comma < 5; ++comma) at = line.find(',', at) + 1;
    cached += std::stoll(line.substr(at));
  }
  REQUIRE(p.at("cache").at("preemptions").integer() > 0);
  CHECK(p.at("cache").at("cached_tokens").integer() == cached);
  CHECK(p.at("cache").at("found_again_tokens").integer() > cached);
}

TEST_CASE("serve: rejected requests keep no promise") {
  const std::string load =
      "--arrivals poisson:50/s --requests 400 --isl 2000 --osl 200 --queue-limit 4 --slo "
      "ttft.p95=5s ";
  const JsonValue p = point(llama + load);
  const double served = static_cast<double>(p.at("traffic").at("finished").integer()) / 400;
  REQUIRE(served < 0.9);
  const JsonValue promise = p.at("slo").items()[0];
  CHECK(promise.at("reached_s").number() < 5);
  CHECK(!promise.at("kept").boolean());
  CHECK(promise.at("share").number() == Approx(served));
  CHECK(p.at("slo_share").number() == Approx(served));
  expect_says(llama + load, {"ttft.p95=5s: NOT kept", "rejected ones keep no promise"});
}

TEST_CASE("serve: models with states are served by as many sequences as have them") {
  const std::string hybrid =
      "serve --quiet --model nemotron-h-8b --cluster dgx-h100 --stack vllm --engines TP1 "
      "--concurrency 4 --isl 100 --osl 10 ";
  expect_says(hybrid, {"sequences run at once on a rank, in place of 1,024",
                       "a sequence takes 97.9 MiB of them for its states"});
  expect_says(hybrid + "--max-sequences 1024", {"the states of 1,024 sequences fill more than"}, 3);
  expect_says(
      "serve --quiet --model gemma3-27b --cluster dgx-h200 --stack vllm --engines TP1 "
      "--concurrency 4 --isl 100 --osl 10",
      {"40 of 40 requests", "416 MiB of them for its windows"});
}

TEST_CASE("serve: flags without effect are errors that name them") {
  const std::string load = "--concurrency 4 --isl 100 --osl 10 ";
  expect_says(llama + load + "--chunk 2048", {"--chunk: found 2048; expected nothing with vllm"},
              2);
  expect_says(llama + load + "--rank-choice least-requests", {"--rank-choice: found"}, 2);
  expect_says(llama + load + "--cache nvfp4", {"--cache: found \"nvfp4\"; expected bf16 or fp8"},
              2);
  expect_says(llama + load + "--precision nvfp4", {"--precision: found \"nvfp4\""}, 2);
  expect_says(
      "serve --model llama3.3-70b --cluster dgx-h100 --stack vllm --engines 1000000xTP8 " + load,
      {"--engines: found \"1000000xTP8\": 1,000,000 engines; expected at most 65,536"}, 2);
}

}  // namespace orrery
