// SPDX-License-Identifier: Apache-2.0
// Holds rigid policies on the Philly trace to what a plain program beside this file finds.
#include <catch2/catch.hpp>

#include "sim/base/text/csv.h"
#include "sim/question/schedule/schedule.h"

namespace orrery {
namespace {

struct Rules {
  const char *policy, *place;
};
Rules rules_of(const std::string& name) {
  if (name == "flat-fifo") return {"fifo", "pool"};
  if (name == "flat-sjf") return {"sjf", "pool"};
  if (name == "flat-easy") return {"easy", "pool"};
  return {"fifo", name == "nodes-best" ? "pack" : "spread"};
}

std::int64_t in_seconds(FleetTime t) { return t.us / 1'000'000; }

TEST_CASE("Philly's jobs wait as the reference says, to the second", "[schedule]") {
  const CsvTable table =
      read_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/question/philly_reference.csv");
  REQUIRE(table.rows.size() == 15);
  Catalogues catalogues;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    const Rules rules = rules_of(row.text("policy"));
    INFO(row.text("policy") << " on " << row.text("gpus"));
    const SortedJson settings = {{"cluster", "dgx-h100"},
                                 {"gpus", *row.integer("gpus")},
                                 {"trace", "philly"},
                                 {"policy", rules.policy},
                                 {"place", rules.place}};
    const Scheduled scheduled =
        schedule_jobs(JsonValue::from(settings, "test"), {.catalogues = catalogues, .threads = 1});
    const FleetMeasures& m = scheduled.points.at(0).measures.at(0);
    const auto is = [&](const char* column) { return *row.integer(column); };
    CHECK(m.finished == is("jobs"));
    CHECK(static_cast<std::int64_t>(m.wait.sum_us / 1'000'000) == is("sum_wait_s"));
    CHECK(in_seconds(m.wait.p50) == is("median_wait_s"));
    CHECK(in_seconds(m.wait.p90) == is("p90_wait_s"));
    CHECK(in_seconds(m.wait.p99) == is("p99_wait_s"));
    CHECK(static_cast<std::int64_t>(m.completion.sum_us / 1'000'000) == is("sum_jct_s"));
    if (!row.blank("blocked_idle_gpu_s"))
      CHECK(static_cast<std::int64_t>(m.scattered / 1'000'000) == is("blocked_idle_gpu_s"));
  }
}

}  // namespace
}  // namespace orrery
