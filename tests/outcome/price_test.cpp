// SPDX-License-Identifier: Apache-2.0
// Holds the prices of a machine against each other, wherever they are told.
#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "sim/outcome/money/bill.h"
#include "sim/outcome/simulate.h"
#include "tests/explain/whole_scenarios.h"

using namespace orrery;

TEST_CASE(
    "one machine has one price on demand, in a prediction and in a bill, and it names itself") {
  for (const std::string& name : cluster_names()) {
    Scenario s = whole_scenario({});
    s.cluster = load_cluster(name, 8);
    if (s.cluster.device.resolved().tensor_rate[static_cast<std::size_t>(Format::bf16)].si() <= 0)
      continue;
    s.layout = {.tp = 1, .dp = 1};
    s.cluster.gpus = 1;
    const Prediction p = simulate(s, {});
    const Bill b = bill(s.cluster, load_bill_facts(s.cluster, {}, Ownership::rent),
                        {.accelerators = 8, .ownership = Ownership::rent, .ranges = false});
    INFO(name);
    CHECK(p.price.rental_per_gpu == b.renting_per_accelerator.value);
    CHECK(p.price.contract == "on demand");
    CHECK(b.renting_per_accelerator.unknown.empty() == (p.price.rental_per_gpu.si() > 0));
  }
  const Prediction given =
      simulate(whole_scenario({.layout = {.tp = 2, .dp = 4}}), {.rental_per_gpu_hour = 2});
  CHECK(given.price.contract == "as given");
  CHECK(given.price.rental_per_gpu.si() == Approx(2.0 / 3600));
}
