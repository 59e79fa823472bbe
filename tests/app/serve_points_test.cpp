// SPDX-License-Identifier: Apache-2.0
// Asks the binary about lists, ranges, loads, kinds of requests and limits of served models.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "sim/base/json/json.h"
#include "tests/app/run_binary.h"

namespace orrery {
namespace {

const std::string llama = "serve --model llama3.3-70b --cluster dgx-h100 --stack vllm ";
const std::string lengths = "--isl 800 --osl 100 ";

JsonValue answer(const std::string& arguments, int code = 0) {
  const test::Outcome outcome = test::run(arguments + " --json");
  CAPTURE(arguments, outcome.err);
  REQUIRE(outcome.code == code);
  return JsonValue::parse(outcome.out, "answer");
}

std::vector<std::string> varied(const JsonValue& answer) {
  std::vector<std::string> all;
  for (const JsonValue& p : answer.at("points").items()) all.push_back(p.at("varied").text());
  return all;
}

JsonValue point(const JsonValue& answer, std::size_t i = 0) {
  return answer.at("points").items()[i];
}

}  // namespace

TEST_CASE("serve: ranges are points, in whole values and in parts of texts") {
  using Words = std::vector<std::string>;
  CHECK(varied(answer(llama + lengths + "--engines TP4 --concurrency 4..16")) ==
        Words{"concurrency 4", "concurrency 8", "concurrency 16"});
  CHECK(varied(answer(llama + lengths + "--engines TP4 --concurrency 4..12+4")) ==
        Words{"concurrency 4", "concurrency 8", "concurrency 12"});
  CHECK(varied(answer(llama + lengths + "--engines 1..4xTP4 --concurrency 4")) ==
        Words{"engines 1xTP4", "engines 2xTP4", "engines 4xTP4"});
  CHECK(varied(answer(llama + lengths +
                      "--engines TP4 --requests 20 --arrivals "
                      "poisson:1..2/s,gamma:1..2/s+1/s:3")) ==
        Words{"arrivals poisson:1/s", "arrivals poisson:2/s", "arrivals gamma:1/s:3",
              "arrivals gamma:2/s:3"});
}

TEST_CASE("serve: a question file holds lists and ranges, and repeats byte for byte") {
  const ScratchFolder folder("serve_question");
  const std::string file =
      test::add(folder, "q.json",
                R"({"model": "llama3.3-70b", "cluster": "dgx-h100", "stack": "vllm",
          "engines": ["TP4", "TP8"],
          "concurrency": {"from": 2, "to": 8, "times": 4}, "isl": 500, "osl": "20..40",
          "prefix_cache": [true, false], "queue_limit": 100, "tiers": "host:64GiB:20GB/s"})");
  const test::Outcome first = test::run("serve " + file + " --json");
  REQUIRE(first.code == 0);
  CHECK(JsonValue::parse(first.out, "answer").at("points").items().size() == 16);
  const std::string kept = test::add(folder, "answer.json", first.out);
  CHECK(test::run("rerun " + kept).out == first.out);
}

TEST_CASE("serve: an answer holds the trace that it was made with") {
  const ScratchFolder folder("serve_kept_trace");
  const std::string trace = test::add(folder, "t.csv",
                                      "arrival_s,prompt,output,class\n0,100,10,a\n0.5,2000,20,b\n"
                                      "0.7,300,5,a\n");
  const test::Outcome first =
      test::run(llama + "--engines TP4,TP8 --trace " + trace + " --slo b.ttft.mean=1s --json");
  REQUIRE(first.code == 0);
  const JsonValue kinds = point(JsonValue::parse(first.out, "answer")).at("classes");
  CHECK(kinds.items()[0].at("counted").integer() == 2);
  CHECK(kinds.items()[1].at("counted").integer() == 1);
  std::filesystem::remove(trace);
  CHECK(test::run("rerun " + test::add(folder, "answer.json", first.out)).out == first.out);
}

TEST_CASE("serve: a key of a file that no setting has is an error with the nearest") {
  const ScratchFolder folder("serve_key");
  const test::Outcome o =
      test::run("serve " + test::add(folder, "q.json", R"({"model": "a", "concurency": 4})"));
  CHECK(o.code == 2);
  CHECK(o.err.find("did you mean \"concurrency\"?") != std::string::npos);
}

TEST_CASE("serve: of the points that bear a load the one with the least GPUs is taken") {
  const JsonValue all = answer(llama + "--engines 1..8xTP4 --for 8/s --isl 1024 --osl 512");
  const JsonValue load = all.at("load");
  const auto chosen = static_cast<std::size_t>(load.at("point").integer());
  std::int64_t least = 1 << 30;
  for (const JsonValue& p : all.at("points").items())
    if (p.at("load").at("meets").boolean())
      least = std::min(least, p.at("deployment").at("gpus").integer());
  CHECK(point(all, chosen).at("deployment").at("gpus").integer() == least);
  CHECK(load.at("says").text().find("(8 GPUs)") != std::string::npos);
  // One engine is at its limit below the load, two are not.
  CHECK(!point(all, 0).at("load").at("keeps_up").boolean());
  CHECK(point(all, 1).at("load").at("served_requests_per_s").number() == Approx(8).epsilon(0.1));
  // A promise that two break moves the answer; one that none keeps is said, with exit code 3.
  const JsonValue promised =
      answer(llama + "--engines 1..8xTP4 --for 8/s --isl 1024 --osl 512 --slo tpot.p95=19.5ms");
  CHECK(promised.at("load").at("point").integer() > static_cast<std::int64_t>(chosen));
  const test::Outcome none =
      test::run(llama + "--engines 1..2xTP4 --for 50/s --isl 1024 --osl 512");
  CHECK(none.code == 3);
  CHECK(none.out.find("None of 2 listed points bears 50 requests/s") != std::string::npos);
}

TEST_CASE("serve: points are the same on any number of threads, and name all machines") {
  const std::string question =
      "serve --model llama3.3-70b --cluster dgx-h100,dgx-h200 --stack vllm,sglang --engines "
      "1..2xTP4 --for 2/s --requests 300 --isl uniform:100:2000 --osl 100 --threads ";
  const test::Outcome one = test::run(question + "1"), three = test::run(question + "3");
  CHECK(one.out == three.out);
  CHECK(one.out.find("(dgx-h100) and NVIDIA H200") != std::string::npos);
  CHECK(one.out.find("vLLM 0.22 in bf16 and SGLang") != std::string::npos);
}

TEST_CASE("serve: a load that any deployment bears needs one engine") {
  const JsonValue all = answer(llama + lengths + "--engines 1..2xTP4 --for 0.5/s");
  CHECK(all.at("load").at("point").integer() == 0);
}

TEST_CASE("serve: Ctrl-C ends with the points so far") {
  for (const auto& [signal, code] : {std::pair{"INT", 130}, {"TERM", 143}}) {
    const test::Outcome o =
        test::run_shell("timeout --foreground --preserve-status -s " + std::string(signal) + " 1 " +
                        std::string(ORRERY_BINARY) + " " + llama + lengths +
                        "--engines 1..8+1xTP4 --concurrency 1..16+1 --requests 200000 --threads 1");
    CAPTURE(o.err);
    CHECK(o.code == code);
    CHECK(o.out.find("Stopped early: not all points were served.") != std::string::npos);
    CHECK(o.out.find("concurrency ") != std::string::npos);
  }
}

TEST_CASE("serve: a trace has a process for each engine and is in order") {
  const ScratchFolder folder("serve_trace");
  const std::string file = folder / "trace.json";
  const test::Outcome run = test::run(
      "serve --model deepseek-r1 --cluster dgx-h200 --stack sglang --precision fp8-blockwise "
      "--prefill 2xTP8 --decode DP8EP8 --arrivals poisson:2/s --requests 60 --isl 4000 --osl 60 "
      "--json --trace-out " +
      file);
  REQUIRE(run.code == 0);
  const JsonValue p = point(JsonValue::parse(run.out, "answer"));
  const JsonValue trace = JsonValue::load(file);
  std::set<std::int64_t> engines;
  std::int64_t steps = 0, prompts = 0, counters = 0;
  double last = 0, end = 0;
  for (const JsonValue& event : trace.at("traceEvents").items()) {
    const std::string kind = event.at("ph").text();
    if (kind == "M") continue;
    CHECK(event.at("ts").number() >= last);
    last = event.at("ts").number();
    engines.insert(event.at("pid").integer());
    counters += kind == "C" ? 1 : 0;
    if (kind != "X") continue;
    const std::int64_t count = event.at("args").at("steps").integer();
    steps += count;
    prompts += count * event.at("args").at("prompt_tokens").integer();
    end = std::max(end, last + event.at("dur").number());
  }
  CHECK(engines == std::set<std::int64_t>{0, 1, 2});
  CHECK(steps == p.at("steps").at("count").integer());
  CHECK(prompts == p.at("traffic").at("prompt_tokens").integer());
  CHECK(counters > 10);
  // Microseconds: the last step ends with the span.
  CHECK(end * 1e-6 == Approx(p.at("traffic").at("span_s").number()).epsilon(0.5));
  CHECK(end * 1e-6 > p.at("traffic").at("span_s").number());
}

TEST_CASE("serve: requests beyond the model's context are rejected and said") {
  const std::string long_ones = "--engines 2xTP4 --concurrency 2 --requests 20 --osl 1000 --isl ";
  const JsonValue some = point(answer(llama + long_ones + "uniform:120000:140000"));
  const std::int64_t rejected = some.at("traffic").at("rejected_by").at("context").integer();
  CHECK(rejected > 0);
  CHECK(rejected < 20);
  CHECK(rejected == some.at("traffic").at("rejected").integer());
  const test::Outcome all = test::run(llama + long_ones + "1000000000");
  CHECK(all.code == 3);
  CHECK(all.out.find("longer than the 131,072") != std::string::npos);
  CHECK(point(answer(llama + long_ones + "131000 --max-context 200000"))
            .at("traffic")
            .at("finished")
            .integer() == 20);
}

TEST_CASE("serve: promises that a lone request breaks are said to be beyond any load") {
  const test::Outcome o = test::run(llama +
                                    "--engines 2xTP4 --concurrency 4 --isl 1000 --osl 100 --slo "
                                    "ttft.p95=1ms,tpot.p95=1s");
  CHECK(o.code == 0);
  CHECK(o.out.find("ttft.p95=1ms: NOT kept") != std::string::npos);
  CHECK(o.out.find("No load keeps ttft.p95=1ms on these engines") != std::string::npos);
  CHECK(o.out.find("No load keeps tpot") == std::string::npos);
}

TEST_CASE("serve: an urgent kind of requests waits less") {
  const auto of = [](int chat, int batch) {
    return point(
        answer(llama +
               "--engines TP4 --arrivals poisson:6/s --requests 1500 --classes '"
               R"([{"name": "chat", "share": 0.7, "isl": 500, "osl": 100, "priority": )" +
               std::to_string(chat) +
               R"(}, {"name": "batch", "share": 0.3, "isl": 6000, "osl": 100, "priority": )" +
               std::to_string(batch) + "}]' --slo chat.ttft.p95=1s --max-sequences 32"));
  };
  const auto p95 = [](const JsonValue& p) {
    return p.at("classes").items()[0].at("ttft").at("p95_s").number();
  };
  const JsonValue first = of(0, 1), alike = of(0, 0);
  CHECK(first.at("classes").items()[0].at("name").text() == "chat");
  CHECK(p95(first) < p95(alike));
  CHECK(first.at("slo").items()[0].at("reached_s").number() == Approx(p95(first)));
}

TEST_CASE("serve: a short queue rejects, a tier keeps what memory cannot") {
  const std::string load =
      llama + "--engines TP4 --arrivals poisson:30/s --requests 1000 " + lengths;
  const JsonValue limited = point(answer(load + "--queue-limit 2 --max-sequences 64"));
  CHECK(limited.at("traffic").at("rejected_by").at("queue").integer() > 0);
  CHECK(limited.at("traffic").at("rejected_by").at("queue").integer() ==
        limited.at("traffic").at("rejected").integer());
  const std::string talks = llama +
                            "--engines TP4 --arrivals poisson:1/s --requests 200 --turns 4 "
                            "--turn-tokens 200 --think-time 60s --isl 12000 --osl 100 ";
  const JsonValue none = point(answer(talks)),
                  host = point(answer(talks + "--tiers host:256GiB:50GB/s"));
  CHECK(none.at("cache").at("from_tiers_tokens").integer() == 0);
  CHECK(host.at("cache").at("from_tiers_tokens").integer() > 0);
  CHECK(host.at("cache").at("cached_tokens").integer() >
        none.at("cache").at("cached_tokens").integer());
}

TEST_CASE("serve: all tokens together pay what the GPUs cost, and no GPU draws above its limit") {
  const JsonValue p =
      point(answer(llama +
                   "--engines 2xTP4 --arrivals poisson:1/s --requests 200 --turns 3 --turn-tokens "
                   "300 --think-time 5s --shared-prefix 1000 --isl 4000 --osl 200 "
                   "--router session --gpu-hour-price 3.6 --slo ttft.p50=180ms"));
  const JsonValue cost = p.at("cost"), traffic = p.at("traffic");
  const auto of = [&](const char* key) { return cost.at(key).number(); };
  const double cached = static_cast<double>(p.at("cache").at("cached_tokens").integer());
  const double prompts = static_cast<double>(traffic.at("prompt_tokens").integer()) - cached;
  const double paid =
      1e-6 *
      (of("per_million_input_usd") * prompts + of("per_million_cached_usd") * cached +
       of("per_million_output_usd") * static_cast<double>(traffic.at("output_tokens").integer()));
  CHECK(paid == Approx(8 * 0.001 * traffic.at("span_s").number()).epsilon(1e-6));
  CHECK(of("per_million_cached_usd") < of("per_million_input_usd"));
  CHECK(of("per_million_promised_usd") > of("per_million_usd"));
  CHECK(of("per_million_promised_usd") * p.at("slo_share").number() ==
        Approx(of("per_million_usd")).epsilon(1e-6));
  for (const char* phase : {"mean_w", "prompts_w", "decodes_w"}) {
    CHECK(p.at("energy").at(phase).number() > 50);
    CHECK(p.at("energy").at(phase).number() <= 700);
  }
}

TEST_CASE("serve: what a setting does not go with is one line, with exit code 2") {
  const ScratchFolder folder("serve_bad");
  const auto trace = [&](const std::string& name, const std::string& rows) {
    return "--engines TP4 --trace " + test::add(folder, name, "arrival_s,prompt,output\n" + rows);
  };
  const std::string loop = "--engines TP4 --concurrency 4 --isl 10 --osl 10 ";
  const std::string open = "--engines TP4 --isl 10 --osl 10 ";
  const std::pair<std::string, const char*> cases[] = {
      {trace("negative.csv", "0,5,5\n1,-5,10\n"), "line 3, column prompt: found -5"},
      {trace("order.csv", "5,5,5\n1,5,10\n"), "expected arrivals in order"},
      {trace("large.csv", "0,2000000000,5\n"), "found 2000000000"},
      {trace("empty.csv", ""), "found no requests"},
      {open + "--concurrency 8..4", "--concurrency: found \"8..4\""},
      {open + "--concurrency 1..x", "--concurrency: found \"1..x\""},
      {open + "--arrivals poisson:1..x/s", "--arrivals: found \"poisson:1..x/s\""},
      {open + "--arrivals daily:8h", "--arrivals: found \"daily:8h\""},
      {open + "--for 50", "--for: found \"50\""},
      {loop + "--for 5/s", "--for: found \"5/s\""},
      {loop + "--tiers host", "--tiers: found \"host\""},
      {loop + "--preemption swap", "--preemption: found \"swap\""},
      {loop + "--mixed-steps true", "SGLang"},
      {loop + "--capacity no-evict", "TensorRT-LLM"},
      {loop + "--turn-tokens 5", "--turn-tokens: found \"5\""},
      {loop + "--shared-prefix 100", "--shared-prefix: found 100"},
      {loop + "--max-context 0", "--max-context: found 0"},
      {loop + "--watermark 1", "--watermark: found 1"},
      {loop + "--gpu-hour-price -1", "--gpu-hour-price: found -1"},
      {loop + "--classes '[{\"name\": \"a.b\"}]'", "--classes: [0].name: found \"a.b\""},
      {loop + "--classes '[{\"nam\": \"a\"}]'", "did you mean \"name\""},
      {open + "--concurrency 4,8 --trace-out x.json", "--trace-out: found several points"},
      {"--prefill 2xTP8 --decode 4xTP8 --gpus 32 --concurrency 4 --isl 10 --osl 10",
       "--gpus: found 32"},
      {"--engines TP4 --trace mooncake-conversation --block-tokens 48", "--block-tokens: found 48"},
  };
  for (const auto& [flags, says] : cases) {
    const test::Outcome outcome = test::run(llama + flags);
    CAPTURE(flags, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(test::lines(outcome.err) == 1);
    CHECK(outcome.err.find(says) != std::string::npos);
  }
}

}  // namespace orrery
