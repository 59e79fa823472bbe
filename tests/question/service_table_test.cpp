// SPDX-License-Identifier: Apache-2.0
// Tests the table of a replica over its load against what serve says of single loads.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "sim/base/json/tree.h"
#include "sim/base/parallel.h"
#include "sim/base/random.h"
#include "sim/outcome/serving/service_table.h"
#include "sim/question/serve/serve.h"
#include "tests/base/fresh_seed.h"
#include "tests/base/worst_rows.h"

namespace orrery {
namespace {

SortedJson settings_with(const SortedJson& more) {
  SortedJson settings = {{"model", "llama3-70b"},
                         {"cluster", "dgx-h100"},
                         {"stack", "vllm"},
                         {"precision", "fp8-current"},
                         {"engines", "TP4"},
                         {"arrivals", "offline"},
                         {"isl", "lognormal:1000:1.0:6000"},
                         {"osl", "lognormal:300:0.8:2000"},
                         {"slo", "ttft.p95=2s,tpot.p95=50ms"}};
  if (!more.is_null()) settings.update(more);
  return settings;
}

ServiceCase replica_with(const SortedJson& more) {
  Catalogues catalogues;
  return read_service(JsonValue::from(settings_with(more), "command line"), catalogues, 1);
}

struct Made {
  ServiceCase asked;
  ServiceTable table;
};

Made table_of(const SortedJson& more) {
  const ServiceCase asked = replica_with(more);
  const SaturatedRun run = saturated_service(asked);
  REQUIRE(run.refusal.empty());
  return {asked, ServiceTable(asked, run.service, 1, 0)};
}

// What the command says of one load, the mean over seeds: share and watts.
struct Said {
  double kept = 0, watts = 0;
};
Said said_by_serve(double rate, std::int64_t requests, std::uint64_t first_seed) {
  std::vector<Said> runs(8);
  parallel_for(runs.size(), 0, [&](std::size_t i) {
    SortedJson settings = settings_with({{"requests", requests}, {"warmup", requests / 5}});
    settings["arrivals"] = "poisson:" + std::to_string(rate) + "/s";
    Catalogues catalogues;
    const Served served = serve_settings(JsonValue::from(settings, "command line"),
                                         {.catalogues = catalogues, .seed = first_seed + i});
    const ServicePrediction& p = served.points.front().prediction;
    runs[i] = {p.target.share, p.cost.mean.si()};
  });
  Said mean;
  for (const Said& run : runs) {
    mean.kept += run.kept / static_cast<double>(runs.size());
    mean.watts += run.watts / static_cast<double>(runs.size());
  }
  return mean;
}

}  // namespace

// The bar of the service table. Seeds of the table leave what lies between its loads; others add
// what a run of so many requests does not know, which the table states.
TEST_CASE("the service table at 20 random loads is what serve says", "[service]") {
  const Made made = table_of({});
  RandomStream random(fresh(5), 0);
  int sure = 0;
  WorstRows worst;
  for (int i = 0; i < 20; ++i) {
    // A text of six decimals, so that both ask for one load.
    const double rate =
        std::round(1e6 * made.table.saturated().rate * (0.001 + 0.999 * random.uniform())) * 1e-6;
    const ServedLoad line = made.table.at(rate);
    const std::int64_t requests = ServiceTable::requests_at(rate / made.table.saturated().rate);
    const Said same = said_by_serve(rate, requests, 1), other = said_by_serve(rate, requests, 101);
    INFO("at " << rate << " of " << made.table.saturated().rate
               << " requests a second: " << line.kept << " +- " << line.error << ", serve "
               << same.kept << ", by other seeds " << other.kept);
    CHECK(std::abs(line.kept - same.kept) < 0.01);
    CHECK(std::abs(line.power.si() - same.watts) < 0.02 * same.watts);
    CHECK(std::abs(line.power.si() - other.watts) < 0.02 * other.watts);
    worst.add(fmt::format("{:.4g} requests a second, % that keep promises", rate), 100 * line.kept,
              100 * same.kept, 100 * std::abs(line.kept - same.kept), " points");
    worst.add(fmt::format("{:.4g} requests a second, W", rate), line.power.si(), same.watts,
              100 * std::abs(line.power.si() / same.watts - 1), "%");
    // Two means, each with its error.
    CHECK(std::abs(line.kept - other.kept) < 0.01 + 2 * line.error);
    if (line.error >= 0.005) continue;
    ++sure;
    CHECK(std::abs(line.kept - other.kept) < 0.01);
  }
  CHECK(sure >= 10);  // where promises are kept, the table knows it
  worst.print("serve at 20 loads, the table here");
}

TEST_CASE("a service table falls with its load, and draws what a device can", "[service]") {
  for (const SortedJson& more :
       {SortedJson{{"model", "llama3.1-8b"}, {"engines", "TP1"}},
        SortedJson{
            {"stack", "sglang"}, {"engines", "2xTP4"}, {"osl", 100}, {"slo", "e2e.p90=3s"}}}) {
    const auto [asked, table] = table_of(more);
    const ResolvedDevice device = asked.cluster.device.resolved();
    const std::vector<ServedLoad>& loads = table.loads();
    CHECK(loads.front().rate == 0);
    CHECK(loads.front().power == device.idle_power);
    CHECK(loads.back().rate > table.saturated().rate);
    double least = 1;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      INFO(loads[i].rate << " " << loads[i].kept);
      CHECK(loads[i].kept <= least + loads[i].error + 1e-9);
      least = std::min(least, loads[i].kept);
      CHECK(loads[i].power >= device.idle_power);
      CHECK(loads[i].power <= device.power_limit);
      if (i > 0) CHECK(loads[i].rate > loads[i - 1].rate);
    }
    // Nobody keeps a promise for long where more comes than can be served.
    CHECK(loads.back().kept < 0.1);
    CHECK(loads.back().tokens ==
          Approx(table.saturated().tokens).epsilon(0.15));  // the last ones drain
    const double bears = table.most_at(0.9);
    CHECK(bears > 0);
    CHECK(bears < table.saturated().rate);
    CHECK(table.at(bears).kept >= 0.9 - 1e-9);
    CHECK(table.most_at(0.99) <= bears);
    CHECK(table.most_at(1.01) == 0);
  }
}

// Clients in a loop that all have work: no more comes out where there are more of them.
TEST_CASE("a saturated replica ends what its engines can", "[service]") {
  const ServiceCase one = replica_with({}), two = replica_with({{"engines", "2xTP4"}});
  const SaturatedService a = saturated_service(one).service, b = saturated_service(two).service;
  CHECK(b.rate == Approx(2 * a.rate).epsilon(0.03));
  CHECK(b.in_flight == Approx(2 * a.in_flight).epsilon(0.05));
  CHECK(a.tokens / a.rate == Approx(300).epsilon(0.5));  // tokens of an answer
  SortedJson many = settings_with({{"requests", 8'000}, {"concurrency", 2'000}});
  many.erase("arrivals");
  Catalogues catalogues;
  const Served served =
      serve_settings(JsonValue::from(many, "command line"), {.catalogues = catalogues});
  CHECK(a.tokens >= served.points.front().prediction.summary.output_rate);
  CHECK(saturated_service(replica_with({{"engines", "TP1"}, {"precision", "bf16"}})).refusal != "");
}

}  // namespace orrery
