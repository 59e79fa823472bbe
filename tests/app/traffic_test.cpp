// SPDX-License-Identifier: Apache-2.0
// Knows what the topology command must print and refuse about routing.
#include <catch2/catch.hpp>

#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::SortedJson;

TEST_CASE("the topology command compares routings of crossing traffic", "[app][traffic]") {
  const Outcome o = run("topology h100-spectrum-x --gpus 1024 --traffic crossing-ring");
  INFO(o.err);
  REQUIRE(o.code == 0);
  for (const char* part : {"ecmp, 1 queue pair", "ecmp, 16 queue pairs", "spray *", "leaf-spine",
                           "100.0% passes spines", "92.0%"})
    CHECK(o.out.find(part) != std::string::npos);
  for (std::size_t at = 0; at < o.out.size(); at = o.out.find('\n', at) + 1)
    CHECK(o.out.find('\n', at) - at <= 100);
}

TEST_CASE("studies of routing are whole in JSON, and repeat", "[app][traffic]") {
  const std::string arguments =
      "topology nvlink4-roce --gpus 512 --traffic all-to-all --group 128 --rounds 3 --json";
  const Outcome o = run(arguments), again = run(arguments), other = run(arguments + " --seed 9");
  REQUIRE(o.code == 0);
  CHECK(o.out == again.out);
  CHECK(o.out != other.out);
  const auto result = SortedJson::parse(o.out);
  CHECK(result["fabric"] == "nvlink4-roce");
  CHECK(result["accelerators"] == 512);
  CHECK(result["group"] == 128);
  REQUIRE(result["routings"].size() == 4);
  int own = 0;
  double before = 0;
  for (const auto& row : result["routings"]) {
    own += row["own"].get<bool>() ? 1 : 0;
    const double share = row["collective"]["share"].get<double>();
    CHECK(share > before);
    CHECK(share <= result["efficiency"].get<double>() + 1e-9);
    CHECK(row["single_flows"]["share"].get<double>() >= share - 1e-9);
    CHECK(row["offered_load"].size() >= 2);
    before = share;
  }
  CHECK(own == 1);
}

TEST_CASE("the topology command refuses traffic that it cannot study", "[app][traffic]") {
  const std::pair<const char*, const char*> cases[] = {
      {"h100-roce-flat --traffic rings", "did you mean \"ring\"?"},
      {"h100-roce-flat --traffic ring --routing ecmq", "did you mean \"ecmp\"?"},
      {"h100-roce-flat --rounds 3", "no --traffic"},
      {"h100-roce-flat --traffic ring --group 64", "traffic without groups"},
      {"h100-roce-flat --traffic ring --routing spray --paths-per-flow 4", "it with ecmp"},
      {"h100-roce-flat --gpus 8 --traffic ring", "two scale-up domains"},
      {"h100-roce-flat --gpus 512 --traffic all-to-all --group 12", "whole scale-up domains"},
      {"nvlink4-host --gpus 64 --traffic ring", "no scale-out network"}};
  for (const auto& [arguments, expected] : cases) {
    const Outcome o = run(std::string("topology ") + arguments);
    INFO(arguments << ": " << o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(o.err.find(expected) != std::string::npos);
  }
}
