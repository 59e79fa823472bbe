// SPDX-License-Identifier: Apache-2.0
// Asks the binary about served models whose engines guess tokens ahead.
#include <catch2/catch.hpp>

#include "sim/base/json/json.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

const std::string deepseek =
    "serve --model deepseek-r1 --cluster dgx-h200 --stack trtllm --precision fp8-blockwise "
    "--engines TP8EP8 --concurrency 8 --requests 40 --isl 300 --osl 120 ";
const std::string llama =
    "serve --model llama3.3-70b --cluster dgx-h100 --stack vllm --engines TP8 --concurrency 4 "
    "--requests 20 --isl 300 --osl 60 ";

JsonValue point(const std::string& arguments) {
  const test::Outcome outcome = test::run(arguments + " --json");
  CAPTURE(arguments, outcome.err);
  REQUIRE(outcome.code == 0);
  return JsonValue::parse(outcome.out, "answer").at("points").items().front();
}

std::string bytes(const JsonValue& value) { return value.raw().dump(); }

}  // namespace

TEST_CASE("serve: tokens that are guessed come as often as was measured") {
  const JsonValue plain = point(deepseek), mtp = point(deepseek + "--spec mtp:3");
  const JsonValue guessed = mtp.at("speculation");
  CHECK(guessed.at("kind").text() == "mtp");
  CHECK(guessed.at("drafts").integer() == 3);
  CHECK(guessed.at("tokens_per_step").number() == Approx(2.82));
  CHECK(guessed.at("from").text().find("deepseek-r1") != std::string::npos);
  const double steps = guessed.at("drafted").number() / 3;
  CHECK(1 + guessed.at("accepted").number() / steps == Approx(2.82).epsilon(0.03));
  const auto tpot = [](const JsonValue& p) {
    return p.at("latency").at("tpot").at("mean_s").number();
  };
  CHECK(tpot(mtp) < tpot(plain));
  CHECK(tpot(mtp) > tpot(plain) / 2.82);
  CHECK(mtp.at("steps").at("parts").at("drafting_s").number() > 0);
  // Its weights lie beside the model's, and its keys and values beside theirs.
  const auto memory = [](const JsonValue& p, const char* key) {
    return p.at("deployment").at("engines").at("memory").at(key).number();
  };
  CHECK(memory(mtp, "weights_bytes") - memory(plain, "weights_bytes") ==
        Approx(guessed.at("weights_bytes").number()));
  CHECK(memory(mtp, "token_bytes") == Approx(memory(plain, "token_bytes") * 62 / 61));
  CHECK(memory(mtp, "blocks") < memory(plain, "blocks"));
}

TEST_CASE("law: no tokens guessed leaves the same bytes") {
  const std::string plain = bytes(point(deepseek));
  CHECK(bytes(point(deepseek + "--spec none")) == plain);
  CHECK(bytes(point(deepseek + "--spec mtp:0")) == plain);
  CHECK(bytes(point(deepseek + "--spec ngram:0")) == plain);
  CHECK(bytes(point(deepseek + "--spec mtp:1")) != plain);
}

TEST_CASE("serve: chances that are given take the place of measured ones") {
  const auto tokens = [](const std::string& more) {
    return point(llama + more).at("speculation").at("tokens_per_step").number();
  };
  CHECK(tokens("--spec ngram:2 --accept 0.5") == Approx(1.75));
  CHECK(tokens("--spec eagle3:3 --accept 0.9:0.8:0.5") == Approx(1 + 0.9 + 0.72 + 0.36));
  CHECK(tokens("--spec draft:llama3.2-1b:4 --accept 1") == Approx(5));
  // A text of which they were measured, by its name.
  const JsonValue named = point(deepseek + "--spec mtp:2 --accept random-1k-1k");
  CHECK(named.at("speculation").at("tokens_per_step").number() == Approx(2.17));
  CHECK(named.at("speculation").at("from").text().find("1,024 random ones") != std::string::npos);
  // All are right: a sequence needs a fifth of the steps, each of which costs more.
  const JsonValue sure = point(llama + "--spec draft:llama3.2-1b:4 --accept 1");
  CHECK(sure.at("speculation").at("drafter").text() == "llama3.2-1b");
  CHECK(sure.at("speculation").at("weights_bytes").number() > 2 * 1.2e9 / 8);
  const JsonValue never = point(llama + "--spec draft:llama3.2-1b:4 --accept 0");
  const auto tpot = [](const JsonValue& p) {
    return p.at("latency").at("tpot").at("mean_s").number();
  };
  CHECK(tpot(sure) < tpot(point(llama)));
  CHECK(tpot(never) > tpot(point(llama)));
}

TEST_CASE("serve: several ways to guess are several points, and an answer repeats") {
  const test::Outcome one = test::run(deepseek + "--spec none,mtp:1,mtp:2 --json --threads 1");
  const test::Outcome two = test::run(deepseek + "--spec none,mtp:1,mtp:2 --json --threads 2");
  REQUIRE(one.code == 0);
  CHECK(one.out == two.out);
  const JsonValue all = JsonValue::parse(one.out, "answer");
  REQUIRE(all.at("points").items().size() == 3);
  CHECK(all.at("points").items()[2].at("varied").text() == "spec mtp:2");
  const ScratchFolder folder("serve_spec");
  CHECK(test::run("rerun " + test::add(folder, "answer.json", one.out)).code == 0);
}

TEST_CASE("serve: prompts and decodes apart guess tokens where they decode") {
  const JsonValue p = point(
      "serve --model deepseek-r1 --cluster dgx-h200 --stack sglang --precision fp8-blockwise "
      "--prefill TP8 --decode DP8EP8 --concurrency 16 --requests 60 --isl 500 --osl 100 --spec "
      "mtp:2");
  CHECK(p.at("traffic").at("output_tokens").integer() == 60 * 100);
  CHECK(p.at("speculation").at("accepted").integer() > 0);
}

TEST_CASE("serve: guesses that cannot be are one line that names the flag, with exit code 2") {
  struct Case {
    std::string asked;
    const char* says;
  };
  const Case cases[] = {
      {llama + "--spec mtp:2", "llama3.3-70b has no multi-token prediction modules"},
      {llama + "--spec eagle3:3", "--accept"},
      {llama + "--spec ngram:4", "--accept"},
      {llama + "--spec medusa:2", "--spec: found \"medusa:2\""},
      {llama + "--spec mtp", "--spec: found \"mtp\""},
      {llama + "--spec ngram:x --accept 0.5", "--spec: found \"ngram:x\""},
      {llama + "--spec ngram:-1 --accept 0.5", "from 1 to 64"},
      {llama + "--spec ngram:65 --accept 0.5", "from 1 to 64"},
      {llama + "--spec draft:4 --accept 0.5", "--spec: found \"draft:4\""},
      {llama + "--spec draft:lama3.2-1b:4 --accept 0.5", "--spec: found \"lama3.2-1b\""},
      {llama + "--spec ngram:4:2 --accept 0.5", "--spec: found \"ngram:4:2\""},
      {llama + "--spec ngram:4 --accept 1.5", "--accept: found \"1.5\""},
      {llama + "--spec ngram:2 --accept 0.5:0.5:0.5", "at most 2 chances"},
      {llama + "--accept 0.5", "--accept: found"},
      {deepseek + "--spec mtp:9", "nobody measured"},
      {deepseek + "--spec mtp:2 --accept random-1k-2k", "did you mean \"random-1k-1k\"?"},
      {llama + "--spec ngram:2 --accept random-1k-1k", "--accept: found \"random-1k-1k\""},
  };
  for (const Case& c : cases) {
    const test::Outcome outcome = test::run(c.asked);
    CAPTURE(c.asked, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(test::lines(outcome.err) == 1);
    CHECK(outcome.err.find(c.says) != std::string::npos);
  }
}

}  // namespace orrery
