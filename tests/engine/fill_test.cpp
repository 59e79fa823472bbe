// SPDX-License-Identifier: Apache-2.0
// Holds rules for shared accelerators to the published shares that they hand out of openb.
#include "sim/engine/packing/fill.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "sim/base/random.h"
#include "sim/base/text/csv.h"
#include "sim/engine/packing/shared_state.h"
#include "tests/base/fresh_seed.h"
#include "tests/base/worst_rows.h"

namespace orrery {
namespace {

const std::string root = ORRERY_SOURCE_DIR;

// Means over ten seeds, in percent, at a demand of 100 and 130%.
struct Published {
  double at_100 = 0, at_130 = 0;
};
using ByRule = std::map<std::pair<std::string, std::string>, Published>;

ByRule published() {
  const CsvTable table = read_csv(root + "/tests/engine/openb_published.csv");
  ByRule out;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    Published& one = out[{row.text("workload"), row.text("policy")}];
    one.at_100 += *row.number("allocated_pct_at_100") / 10;
    one.at_130 += *row.number("allocated_pct_at_130") / 10;
  }
  return out;
}

const std::map<std::string, FillRule>& rules() {
  static const std::map<std::string, FillRule> all = {{"Random", FillRule::random},
                                                      {"BestFit", FillRule::best_fit},
                                                      {"DotProd", FillRule::dot_product},
                                                      {"GpuPacking", FillRule::packing},
                                                      {"GpuClustering", FillRule::clustering},
                                                      {"FGD", FillRule::fragmentation}};
  return all;
}

Published filled(const SharedHosts& cluster, const std::vector<SharedTask>& tasks, FillRule rule,
                 int seeds) {
  Published out;
  for (int seed = 0; seed < seeds; ++seed) {
    FillQuestion question;
    question.rule = rule;
    question.seed = fresh(static_cast<std::uint64_t>(seed));
    question.marks = {1.0};
    const FillRecord record = fill_cluster(cluster, tasks, question);
    out.at_100 += 100 * record.allocated.at(0) / seeds;
    out.at_130 += 100 * record.allocated.at(1) / seeds;
  }
  return out;
}

// The published runs have the hosts with accelerators alone (data/prepare_input.sh of their
// simulator); with the others best fit hands out 0.6 points more.
SharedHosts openb_with_gpus() {
  SharedHosts cluster = read_shared_hosts(root + "/workloads/catalog/job_traces/openb_nodes.csv");
  std::erase_if(cluster.hosts, [](const SharedHost& host) { return host.gpus == 0; });
  return cluster;
}

TEST_CASE("rules hand out of openb what was published, within 0.7 points", "[fill]") {
  const SharedHosts cluster = openb_with_gpus();
  REQUIRE(cluster.gpus() == 6212);
  const ByRule known = published();
  REQUIRE(known.size() == 30);
  std::map<std::string, std::vector<std::pair<std::string, Published>>> found;
  WorstRows worst;
  for (const auto& [key, was] : known) {
    const auto tasks = read_shared_tasks(
        root + "/workloads/catalog/job_traces/openb_pods_" + key.first + ".csv", cluster);
    const Published now = filled(cluster, tasks, rules().at(key.second), 10);
    const std::string row = key.first + " " + key.second;
    worst.add(row + " at 100%", now.at_100, was.at_100, std::abs(now.at_100 - was.at_100),
              " points");
    worst.add(row + " at 130%", now.at_130, was.at_130, std::abs(now.at_130 - was.at_130),
              " points");
    INFO(row);
    CHECK(std::abs(now.at_100 - was.at_100) < 0.7);
    CHECK(std::abs(now.at_130 - was.at_130) < 0.7);
    for (const auto& [other, other_now] : found[key.first]) {
      const double apart = was.at_100 - known.at({key.first, other}).at_100;
      INFO("beside " << other);
      if (std::abs(apart) > 1) CHECK((now.at_100 - other_now.at_100) * apart > 0);
    }
    found[key.first].emplace_back(key.second, now);
  }
  worst.print("openb, GPUs handed out in percent");
}

// Hosts of random sizes and tasks of random kinds.
TEST_CASE("law: what a filled cluster hands out was asked for and is there", "[fill]") {
  const std::uint64_t seed = fresh(5);
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  for (int round = 0; round < 60; ++round) {
    SharedHosts cluster;
    cluster.models = {"a", "b"};
    for (int i = 0; i < 12; ++i)
      cluster.hosts.push_back({static_cast<std::int64_t>(1000 * random.below(64)), 1 << 20,
                               static_cast<std::int32_t>(1 + random.below(8)),
                               static_cast<std::int32_t>(random.below(2))});
    std::vector<SharedTask> tasks;
    for (int i = 0; i < 20; ++i) {
      SharedTask task;
      task.cpu_milli = static_cast<std::int64_t>(1000 * random.below(9));
      task.gpus = static_cast<std::int32_t>(random.below(5));
      task.gpu_milli = task.gpus == 0   ? 0
                       : task.gpus == 1 ? static_cast<std::int32_t>(1 + random.below(whole_gpu))
                                        : whole_gpu;
      if (task.gpus > 0 && random.below(4) == 0) task.models = 1 + random.below(2);
      tasks.push_back(task);
    }
    tasks.push_back({.gpus = 1, .gpu_milli = whole_gpu});
    for (int rule = 0; rule < fill_rule_text.count; ++rule) {
      FillQuestion question;
      question.rule = static_cast<FillRule>(rule);
      question.seed = seed + static_cast<std::uint64_t>(round);
      question.marks = {0.2, 0.5, 1.0};
      const FillRecord record = fill_cluster(cluster, tasks, question);
      REQUIRE(record.allocated.size() == 4);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(record.allocated[i] <= question.marks[i] + 1e-12);
        CHECK(record.allocated[i] <= record.allocated[i + 1]);
      }
      CHECK(record.allocated.back() <= 1);
      CHECK(fill_cluster(cluster, tasks, question).allocated == record.allocated);
    }
  }
}

TEST_CASE("free accelerators that a usual task cannot use are fragments", "[fill]") {
  HostState host = empty_host({.cpu_milli = 8000, .memory_mib = 1, .gpus = 2, .model = 0});
  const SharedTask half{.cpu_milli = 1000, .gpus = 1, .gpu_milli = 500};
  const SharedTask two{.cpu_milli = 1000, .gpus = 2, .gpu_milli = whole_gpu};
  const std::vector<UsualTask> usual = {{half, 0.75}, {two, 0.25}};
  CHECK(fragments(host, usual) == 0);
  take_task(host, {.cpu_milli = 1000, .gpus = 1, .gpu_milli = 600}, 0);
  // 400 of one accelerator is of no use to halves; all 1,400 are of none to pairs.
  CHECK(fragments(host, usual) == Approx(0.75 * 400 + 0.25 * 1400));
  take_task(host, {.cpu_milli = 6500}, 0);
  CHECK(fragments(host, usual) == Approx(1400));
  const auto kinds = usual_tasks({half, half, half, two});
  REQUIRE(kinds.size() == 2);
  CHECK(kinds[0].share == Approx(0.75));
}

}  // namespace
}  // namespace orrery
