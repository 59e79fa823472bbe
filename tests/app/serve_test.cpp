// SPDX-License-Identifier: Apache-2.0
// Asks the binary about served models, as a user would.
#include <catch2/catch.hpp>

#include "sim/base/json/json.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

const std::string llama = "serve --model llama3.3-70b --cluster dgx-h100 --stack vllm ";

JsonValue answer(const std::string& arguments) {
  const test::Outcome outcome = test::run(arguments + " --json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return JsonValue::parse(outcome.out, "answer");
}

JsonValue point(const JsonValue& answer, std::size_t i = 0) {
  return answer.at("points").items()[i];
}

}  // namespace

TEST_CASE("serve: all that arrive are finished or rejected, and their tokens counted") {
  const JsonValue p =
      point(answer(llama + "--engines 2xTP4 --concurrency 16 --requests 200 --isl 500 --osl 100"));
  const JsonValue traffic = p.at("traffic");
  CHECK(traffic.at("arrived").integer() == 200);
  CHECK(traffic.at("finished").integer() == 200);
  CHECK(traffic.at("prompt_tokens").integer() == 200 * 500);
  CHECK(traffic.at("output_tokens").integer() == 200 * 100);
  CHECK(p.at("cache").at("preemptions").integer() == 0);
}

TEST_CASE("serve: a lone client waits for its prompt and for each of its steps") {
  const JsonValue p =
      point(answer(llama + "--engines TP4 --concurrency 1 --requests 5 --isl 1000 --osl 200"));
  const auto mean = [&](const char* what) {
    return p.at("latency").at(what).at("mean_s").number();
  };
  CHECK(mean("e2e") == Approx(mean("ttft") + 199 * mean("tpot")).epsilon(1e-9));
  const JsonValue request = p.at("request");
  CHECK(request.at("server_s").number() > 0);
  CHECK(request.at("server_s").number() + request.at("waiting_s").number() == Approx(mean("wait")));
}

TEST_CASE("serve: the parts of a request add up, to its first token and to its last") {
  const auto part_sum = [](const JsonValue& p, const std::vector<const char*>& names) {
    double sum = 0;
    for (const char* name : names) sum += p.at("request").at(name).number();
    return sum;
  };
  const std::string apart =
      "serve --model deepseek-r1 --cluster dgx-h200 --precision "
      "fp8-blockwise --prefill TP8 --decode DP8EP8 --concurrency 32 "
      "--requests 100 --isl 4000 --osl 300 --stack ";
  for (const char* stack : {"sglang", "vllm", "trtllm"}) {
    CAPTURE(stack);
    const JsonValue p = point(answer(apart + stack));
    const auto mean = [&](const char* what) {
      return p.at("latency").at(what).at("mean_s").number();
    };
    // The engine that decodes hands out the first token too: it comes after the way there.
    CHECK(p.at("request").at("on_the_way_s").number() > 0);
    const double first =
        part_sum(p, {"server_s", "waiting_s", "prefill_s", "on_the_way_s", "waiting_there_s"});
    CHECK(first == Approx(mean("ttft")));
    CHECK(first + part_sum(p, {"decoding_s"}) == Approx(mean("e2e")).epsilon(1e-3));
  }
}

TEST_CASE("serve: first tokens that wait longer have wider ranges, and the answer says why") {
  const auto at = [](const char* clients) {
    return point(answer(llama + "--engines TP4 --isl 4000 --osl 50 --concurrency " + clients));
  };
  const auto width = [](const JsonValue& p, const char* what) {
    const JsonValue range = p.at("ranges").at(what);
    return range.at("mean_high_s").number() / range.at("mean_low_s").number();
  };
  const JsonValue few = at("1"), many = at("256");
  CHECK(width(many, "ttft") > 1.3 * width(few, "ttft"));
  CHECK(width(many, "tpot") == Approx(width(few, "tpot")));
  CHECK(few.at("ranges").at("widened").items().empty());
  REQUIRE(many.at("ranges").at("widened").items().size() == 1);
  CHECK(many.at("ranges").at("widened").items()[0].text().find("wait for a step") !=
        std::string::npos);
}

TEST_CASE("serve: a list of values is a list of points, the best of them marked") {
  const JsonValue all =
      answer(llama + "--engines 2xTP4,TP8 --concurrency 4,64 --isl 800 --osl 200");
  REQUIRE(all.at("points").items().size() == 4);
  int best = 0;
  for (const JsonValue& p : all.at("points").items()) best += p.at("best").boolean() ? 1 : 0;
  CHECK(best >= 1);
  CHECK(best <= 3);
  CHECK(point(all, 0).at("varied").text() == "engines 2xTP4, concurrency 4");
}

TEST_CASE("serve: prompts and decodes on engines of their own") {
  const JsonValue p = point(
      answer("serve --model deepseek-r1 --cluster dgx-h200 --stack sglang --precision "
             "fp8-blockwise --prefill 2xTP8 --decode 2xDP8EP8 --arrivals poisson:2/s --requests "
             "300 --isl 4000 --osl 300 --slo ttft.p95=5s,tpot.p95=60ms"));
  CHECK(p.at("deployment").at("gpus").integer() == 32);
  CHECK(p.at("traffic").at("finished").integer() == 300);
  REQUIRE(p.at("slo").items().size() == 2);
  CHECK(p.at("slo").items()[0].at("kept").boolean());
}

TEST_CASE("serve: the same bytes on any number of threads") {
  const std::string question =
      llama +
      "--engines 2xTP4 --arrivals poisson:6/s --requests 500 --isl uniform:100:2000 --osl "
      "lognormal:200:0.8:1000 --router random --json --threads ";
  CHECK(test::run(question + "1").out == test::run(question + "2").out);
}

TEST_CASE("serve: a row for each request") {
  const ScratchFolder folder("serve_rows");
  const std::string file = folder / "rows.csv";
  REQUIRE(test::run(llama +
                    "--engines TP8 --concurrency 4 --requests 30 --isl 100 --osl 20 "
                    "--requests-out " +
                    file)
              .code == 0);
  CHECK(test::lines(test::read_file(file)) == 31);
}

TEST_CASE("serve: what does not fit is said, with exit code 3") {
  const test::Outcome outcome =
      test::run(llama + "--engines TP1 --concurrency 4 --isl 100 --osl 20");
  CHECK(outcome.code == 3);
  CHECK(outcome.out.find("Nothing can be served: the engine does not fit") != std::string::npos);
}

TEST_CASE("serve: bad input is one line that names the flag, with exit code 2") {
  struct Case {
    const char* flags;
    const char* says;
  };
  const Case cases[] = {
      {"--engines TP4 --concurrency 0 --isl 10 --osl 10", "--concurrency: found 0"},
      {"--engines TP4 --concurrency 4 --isl -5 --osl 10", "--isl: found \"-5\""},
      {"--engines TP4 --concurrency 4 --isl 2000000000 --osl 10", "--isl: found \"2000000000\""},
      {"--engines TP4 --concurrency 4 --isl 10", "--osl: found nothing"},
      {"--engines TP4 --isl 10 --osl 10", "one of --concurrency"},
      {"--engines TP4X2 --concurrency 4 --isl 10 --osl 10", "--engines: found \"TP4X2\""},
      {"--engines TP3 --concurrency 4 --isl 10 --osl 10", "--engines: found TP3"},
      {"--engines DP8EP3 --concurrency 4 --isl 10 --osl 10", "--engines: found ep 3 x etp 2"},
      {"--engines TP8 --gpus 4 --concurrency 4 --isl 10 --osl 10", "--gpus: found 4"},
      {"--prefill TP4 --concurrency 4 --isl 10 --osl 10", "no --decode"},
      {"--engines TP4 --arrivals poisson:x/s --isl 10 --osl 10", "--arrivals: found"},
      {"--engines TP4 --concurrency 4 --isl 10 --osl 10 --slo ttft.p95=2", "--slo: found"},
      {"--engines TP4 --trace nosuch", "found \"nosuch\""},
      {"--engines TP4 --concurrency 4 --isl 10 --osl 10 --router foo", "--router: found \"foo\""},
  };
  for (const Case& c : cases) {
    const test::Outcome outcome = test::run(llama + c.flags);
    CAPTURE(c.flags, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(test::lines(outcome.err) == 1);
    CHECK(outcome.err.find(c.says) != std::string::npos);
  }
}

TEST_CASE("serve: a program that trains is no serving engine") {
  const test::Outcome outcome = test::run(
      "serve --model llama3.3-70b --cluster dgx-h100 --stack nemo --engines TP4 --concurrency 4 "
      "--isl 10 --osl 10");
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find("a serving engine") != std::string::npos);
}

}  // namespace orrery
