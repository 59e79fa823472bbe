// SPDX-License-Identifier: Apache-2.0
// Holds the simulator to our own serving engine: steps, runs under load, pools and memory.
#include <catch2/catch.hpp>
#include <map>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/validate/replayed/engine_replay.h"

namespace orrery {
namespace {

std::vector<EngineCase> shipped(const char* table) {
  return read_engine_cases(
      read_csv(data_root() / "validation/measurements/serving_engine" / table));
}

// Errors by group and quantity.
using Errors = std::map<std::pair<std::string, std::string>, EngineErrors>;
Errors errors_of(const std::vector<EngineCase>& cases) {
  Errors all;
  for (const EngineErrors& e : engine_errors(replay_engine(cases, 2)))
    all[{e.name, e.quantity}] = e;
  return all;
}

TEST_CASE("a replayed table says where it is wrong", "[replayed]") {
  const std::string header =
      "id,gpu,cluster,stack,model,held,part,blocks,max_sequences,token_budget,clients,unfinished,"
      "ttft_mean_s,ttft_p99_s,tpot_mean_s,arrivals_us,prompts,outputs\n";
  const std::string begin = "a,h100,dgx-h100,pytorch-serve,llama3.1-8b,0,x,100,8,2048,";
  const auto read = [&](const std::string& rest) {
    return read_engine_cases(parse_csv(header + begin + rest + "\n", "mine.csv"));
  };
  const auto cases = read("0,0,0.1,,0.01,0 5,10 20,3 4");
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].load.arrivals_us == std::vector<std::int64_t>{0, 5});
  CHECK(cases[0].load.outputs == std::vector<std::int64_t>{3, 4});
  CHECK_THROWS_AS(read("0,0,0.1,,0.01,5 0,10 20,3 4"), Error);   // out of order
  CHECK_THROWS_AS(read("0,0,0.1,,0.01,0 5,10 20,3"), Error);     // a length is missing
  CHECK_THROWS_AS(read("2,0,0.1,,0.01,0 5,10 20,3 4"), Error);   // a closed loop has no arrivals
  CHECK_THROWS_AS(read("0,0,0.1,,0.01,0 5,10 -20,3 4"), Error);  // a negative length
  CHECK_THROWS_AS(read("0,0,0,,0.01,0 5,10 20,3 4"), Error);     // no time
}

TEST_CASE("a run that was cut off is not predicted, and says so", "[replayed]") {
  std::vector<EngineCase> cases;
  for (const EngineCase& c : shipped("runs.csv"))
    if (c.load.unfinished > 0) cases.push_back(c);
  REQUIRE(!cases.empty());
  for (const EngineFigure& f : replay_engine(cases, 1)) CHECK(!f.skipped.empty());
}

}  // namespace
}  // namespace orrery
