// SPDX-License-Identifier: Apache-2.0
// Holds the simulator to our own serving engine: steps, runs under load, pools and memory.
#include <catch2/catch.hpp>
#include <iterator>
#include <map>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/engine/serving/fleet.h"
#include "sim/validate/replayed/engine_gates.h"

namespace orrery {
namespace {

std::vector<EngineCase> shipped(const char* table) {
  return read_engine_cases(
      read_csv(data_root() / "validation/measurements/serving_engine" / table));
}

TEST_CASE("a replayed table says where it is wrong", "[replayed]") {
  const std::string header =
      "id,gpu,cluster,stack,model,tp,held,part,blocks,max_sequences,token_budget,clients,"
      "unfinished,ttft_mean_s,ttft_p99_s,tpot_mean_s,arrivals_us,prompts,outputs\n";
  const std::string begin = "a,h100,dgx-h100,pytorch-serve,llama3.1-8b,2,0,x,100,8,2048,";
  const auto read = [&](const std::string& rest) {
    return read_engine_cases(parse_csv(header + begin + rest + "\n", "mine.csv"));
  };
  const auto cases = read("0,0,0.1,,0.01,0 5,10 20,3 4");
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].kind == EngineCaseKind::run);
  CHECK(cases[0].tp == 2);
  CHECK(cases[0].gpus() == 2);
  CHECK(cases[0].load.arrivals_us == std::vector<std::int64_t>{0, 5});
  CHECK(cases[0].load.outputs == std::vector<std::int64_t>{3, 4});
  CHECK_THROWS_AS(read("0,0,0.1,,0.01,5 0,10 20,3 4"), Error);   // out of order
  CHECK_THROWS_AS(read("0,0,0.1,,0.01,0 5,10 20,3"), Error);     // a length is missing
  CHECK_THROWS_AS(read("2,0,0.1,,0.01,0 5,10 20,3 4"), Error);   // a closed loop has no arrivals
  CHECK_THROWS_AS(read("0,0,0.1,,0.01,0 5,10 -20,3 4"), Error);  // a negative length
  CHECK_THROWS_AS(read("0,0,0,,0.01,0 5,10 20,3 4"), Error);     // no time
}

TEST_CASE("a cut model's table says over how many GPUs", "[replayed]") {
  const auto read = [&](const std::string& columns, const std::string& cells) {
    return read_engine_cases(parse_csv("id,gpu,cluster,stack,model," + columns +
                                           "\na,h200,dgx-h200,pytorch-serve,llama3.1-8b," + cells +
                                           "\n",
                                       "mine.csv"));
  };
  const auto cases = read("tp,held,max_sequences,token_budget,pool_blocks", "2,1,256,2048,100");
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].kind == EngineCaseKind::pool);
  CHECK(cases[0].gpus() == 2);
  CHECK_THROWS_AS(read("held,max_sequences,token_budget,pool_blocks", "1,256,2048,100"), Error);
  CHECK_THROWS_AS(read("tp,held,max_sequences,token_budget,pool_blocks", "0,1,256,2048,100"),
                  Error);
}

TEST_CASE("a table of pairs has the way between two GPUs", "[replayed]") {
  const std::string header =
      "id,gpu,cluster,stack,model,held,blocks,max_sequences,token_budget,unfinished,ttft_mean_s,"
      "tpot_mean_s,transfer_mean_s,arrivals_us,prompts,outputs\n";
  const auto read = [&](const std::string& rest) {
    return read_engine_cases(parse_csv(
        header + "a,h200,dgx-h200,pytorch-serve,llama3.1-8b,1,100,8,2048,0," + rest + "\n",
        "mine.csv"));
  };
  const auto cases = read("0.1,0.01,0.002,0 5,10 20,3 4");
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].kind == EngineCaseKind::pair);
  CHECK(cases[0].held);
  CHECK(cases[0].gpus() == 2);
  CHECK(cases[0].tp == 1);
  CHECK(cases[0].latencies.transfer_mean == 0.002);
  CHECK(!cases[0].latencies.ttft_p99);
  CHECK_THROWS_AS(read("0.1,0.01,,0 5,10 20,3 4"), Error);     // no transfer
  CHECK_THROWS_AS(read("0.1,0.01,0.002,0,10 20,3 4"), Error);  // an arrival is missing
}

// One case of a shipped table by its id.
EngineCase shipped_case(const char* table, const std::string& id) {
  for (const EngineCase& c : shipped(table))
    if (c.id == id) return c;
  FAIL("no case " << id);
  return {};
}

TEST_CASE("a model cut over two GPUs decodes faster than on one, and has more room", "[replayed]") {
  std::vector<EngineCase> cases(
      2, shipped_case("runs.csv", "h200 tp2 closed/llama-3.1-8b/i512-o128/c4"));
  cases[1].tp = 1;
  const auto runs = replay_engine(cases, 1);
  REQUIRE(runs.size() == 4);
  for (std::size_t i = 0; i < 2; ++i) {  // tpot, ttft
    CHECK(runs[i].predicted < runs[i + 2].predicted);
    CHECK(runs[i].predicted > runs[i + 2].predicted / 2);
  }
  std::vector<EngineCase> pools(2,
                                shipped_case("pools.csv", "h200 tp2 pool/llama-3.1-8b/t2048-s256"));
  pools[1].tp = 1;
  const auto blocks = replay_engine(pools, 1);
  REQUIRE(blocks.size() == 2);
  CHECK(blocks[0].predicted > 2 * blocks[1].predicted);
}

TEST_CASE("a pair waits for keys and values before it decodes", "[replayed]") {
  const EngineCase pair =
      shipped_case("pairs.csv", "h200 pair/llama-3.1-8b/i128..896-o32..224/rate8");
  EngineCase alone = pair;
  alone.kind = EngineCaseKind::run;
  alone.latencies.transfer_mean.reset();
  const auto apart = replay_engine({pair}, 1), together = replay_engine({alone}, 1);
  REQUIRE(apart.size() == 3);
  REQUIRE(together.size() == 2);
  const double tpot = apart[0].predicted, transfer = apart[2].predicted;
  CHECK(std::string(apart[2].quantity) == "transfer");
  CHECK(transfer > 0.8 * tpot);  // it is noticed a step later
  CHECK(transfer < 3 * tpot);
  CHECK(tpot < together[0].predicted);                // no step of its decodes has a prompt
  CHECK(apart[1].predicted < together[1].predicted);  // nor a prefill a decode
}

TEST_CASE("a run that was cut off is not predicted, and says so", "[replayed]") {
  std::vector<EngineCase> cases;
  for (const EngineCase& c : shipped("runs.csv"))
    if (c.load.unfinished > 0) cases.push_back(c);
  REQUIRE(!cases.empty());
  for (const EngineFigure& f : replay_engine(cases, 1)) CHECK(!f.skipped.empty());
}

// The figures of one half are within what they were when this was written, as shares; bars of the
// half that was never fitted: 3% TPOT (3.2% since steps charge the gaps between kernels and curves
// of rows none: steps alone came nearer, hosts drift), 7% TTFT, 15% its 99th percentile, 3% blocks,
// 2% verdicts.
// On two GPUs the host's more in a step and in a collective that it launches was measured on the
// fitted half.
TEST_CASE("our engine comes out as near as it did", "[replayed]") {
  const auto groups = engine_gate_figures(replay_engine(shipped_engine_cases(), 2));
  const std::map<std::string, double> at_most[] = {
      {{"tpot_median", 0.035},
       {"ttft_median", 0.055},
       {"device_step_median", 0.045},
       {"kv_blocks_median", 0.005},
       {"oom_wrong", 0}},
      {{"tpot_median", 0.035},
       {"ttft_median", 0.07},
       {"ttft_p99_median", 0.15},
       {"device_step_median", 0.035},
       {"kv_blocks_median", 0.005},
       {"oom_wrong", 0}},
      {{"tpot_median", 0.046},
       {"ttft_median", 0.05},
       {"transfer_median", 0.3},
       {"kv_blocks_median", 0.005}},
      {{"tpot_median", 0.07}, {"ttft_median", 0.055}, {"transfer_median", 0.2}}};
  REQUIRE(groups.size() == std::size(at_most));
  for (std::size_t half = 0; half < groups.size(); ++half)
    for (const auto& [figure, most] : at_most[half]) {
      CAPTURE(groups[half].group, figure);
      REQUIRE(groups[half].figures.contains(figure));
      CHECK(groups[half].figures.at(figure) <= most);
    }
}

// Every step takes a millisecond.
class Flat : public StepPrices {
 public:
  DecodePiece decode(std::int64_t, std::int64_t) const override {
    return {.at_first = ms, .per_token = {}, .first = 0, .last = std::int64_t{1} << 60};
  }
  Ticks step(const StepShape&) const override { return ms; }
  Ticks launching(const StepShape&, Ticks) const override { return launch; }
  static constexpr Ticks ms{1'000'000'000};
  Ticks launch{1};
};

ServiceTimeline served(const std::vector<std::pair<int, int>>& lengths, const EnginePolicy& policy,
                       std::int64_t blocks, const HostStalls& stalls, Ticks launching = Ticks{1}) {
  Flat prices;
  prices.launch = launching;
  RequestList list;
  for (const auto& [prompt, output] : lengths)
    list.requests.push_back({.prompt = prompt, .output = output});
  return serve(list,
               {.engines = {.shape = {.blocks = blocks, .stalls = stalls},
                            .policy = policy,
                            .prices = &prices}},
               {.check = true});
}

EnginePolicy simple_policy(std::int64_t budget) {
  EnginePolicy policy;
  policy.scheduler = SchedulerKind::simple;
  policy.token_budget = budget;
  policy.max_sequences = 8;
  policy.prefix_cache = false;
  return policy;
}

TEST_CASE("a host that is never kept away, or whose device has enough to do, stalls nothing",
          "[replayed]") {
  const std::vector<std::pair<int, int>> lengths{{100, 20}, {300, 5}, {50, 40}};
  const EnginePolicy policy = simple_policy(128);
  const ServiceTimeline plain = served(lengths, policy, 1000, {});
  CHECK(served(lengths, policy, 1000, {.share = 0, .mean = Flat::ms * 50}) == plain);
  CHECK(served(lengths, policy, 1000, {.share = 1, .mean = Ticks{1'000'000}}) == plain);
  const HostStalls bare{.share = 1, .mean = Flat::ms * 50};
  const ServiceTimeline late = served(lengths, policy, 1000, bare, Flat::ms);
  CHECK(late.end > plain.end);
  CHECK(late == served(lengths, policy, 1000, bare, Flat::ms));
}

TEST_CASE("a chunk of our engine's waits for blocks where another engine's makes room",
          "[replayed]") {
  const std::vector<std::pair<int, int>> lengths{{64, 64}, {128, 4}};
  EnginePolicy policy = simple_policy(64);
  const ServiceTimeline ours = served(lengths, policy, 12, {});
  CHECK(ours.totals.preemptions == 0);
  CHECK(count_requests(ours).finished == 2);
  policy.scheduler = SchedulerKind::vllm;
  CHECK(served(lengths, policy, 12, {}).totals.preemptions > 0);
}

}  // namespace
}  // namespace orrery
