// SPDX-License-Identifier: Apache-2.0
// Tests which accelerators are said to tie.
#include "sim/explain/machine_tie.h"

#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "sim/outcome/simulate.h"
#include "tests/explain/whole_scenarios.h"

using namespace orrery;
using Catch::Matchers::Contains;

TEST_CASE("dense BF16 on H100 and H200 is a tie, with its reason, whatever the order") {
  const Device h100 = load_device("h100-sxm"), h200 = load_device("h200-sxm");
  for (const Layout& layout : {Layout{.tp = 2, .dp = 32}, Layout{.tp = 4, .pp = 4, .dp = 4}}) {
    const auto step = [&](const char* cluster) {
      return simulate(whole_scenario({.cluster = cluster, .layout = layout}), {}).step_time;
    };
    const double ratio = step("dgx-h100") / step("dgx-h200");
    CHECK_THAT(machine_tie(h100, h200, ratio), Contains("tie") && Contains("700 W"));
    CHECK_THAT(machine_tie(h200, h100, 1 / ratio), Contains("few boards"));
  }
}

TEST_CASE("one kind, and kinds that differ by more than boards do, are no tie") {
  const Device h100 = load_device("h100-sxm"), b200 = load_device("b200-sxm");
  CHECK(machine_tie(h100, h100, 1.001).empty());
  CHECK(machine_tie(h100, b200, 2.1).empty());
  CHECK(machine_tie(h100, b200, 1 / 2.1).empty());
  Device unknown = b200;
  unknown.board_spread = {};
  CHECK(machine_tie(h100, unknown, 1).empty());
}
