// SPDX-License-Identifier: Apache-2.0
// Replays recordings of a real Slurm: given when its loops woke up, every job starts when and where
// it did there.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "sim/base/random.h"
#include "sim/engine/slurm/slurm_passes.h"
#include "tests/base/fresh_seed.h"
#include "tests/base/worst_rows.h"
#include "tests/engine/plain_slurm.h"

namespace orrery {
namespace {

struct Recorded {
  double submit = 0, start = 0, end = 0;
  std::int32_t gpus = 0;
  std::int64_t limit = 0;
  std::string by;
  std::vector<std::int32_t> hosts;
};

struct Recording {
  std::map<std::string, std::string> head;
  std::map<std::uint32_t, Recorded> jobs;
  std::vector<std::pair<double, std::string>> passes;
  double number(const char* key) const { return std::stod(head.at(key)); }
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

std::vector<std::int32_t> hosts_in(const std::string& text) {
  std::vector<std::int32_t> hosts;
  std::stringstream stream(text);
  for (std::string part; stream >> part;) {
    const std::size_t dash = part.find('-');
    const int from = std::stoi(part);
    const int to = dash == std::string::npos ? from : std::stoi(part.substr(dash + 1));
    for (int host = from; host <= to; ++host) hosts.push_back(host);
  }
  return hosts;
}

Recording read_recording(const std::string& name) {
  const std::string folder = std::string(ORRERY_SOURCE_DIR) + "/tests/slurm/recorded/";
  Recording out;
  std::ifstream jobs(folder + name + ".csv"), passes(folder + name + "-passes.csv");
  for (std::string line; std::getline(jobs, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("# ") && colon != std::string::npos)
      out.head[line.substr(2, colon - 2)] = line.substr(colon + 2);
    if (line.starts_with("#") || line.starts_with("id")) continue;
    const std::vector<std::string> cells = cells_of(line);
    out.jobs[static_cast<std::uint32_t>(std::stoul(cells.at(0)))] = {
        .submit = std::stod(cells.at(4)),
        .start = std::stod(cells.at(5)),
        .end = std::stod(cells.at(6)),
        .gpus = std::stoi(cells.at(1)),
        .limit = std::stoll(cells.at(3)),
        .by = cells.at(7),
        .hosts = hosts_in(cells.at(8))};
  }
  for (std::string line; std::getline(passes, line);)
    if (!line.starts_with("#") && !line.starts_with("at_s")) {
      const std::vector<std::string> cells = cells_of(line);
      out.passes.emplace_back(std::stod(cells.at(0)), cells.at(1));
    }
  return out;
}

// Starts of each job and the hosts that it got, the loops waking up when they did.
std::map<std::uint32_t, std::pair<double, std::vector<std::int32_t>>> replay(const Recording& r) {
  SlotShape shape{.hosts = static_cast<std::int32_t>(r.number("hosts")),
                  .gpus_per_host = static_cast<std::int32_t>(r.number("gpus_of_host"))};
  shape.levels = {{"leaf group", static_cast<std::int32_t>(r.number("leaf"))}};
  SlurmPasses slurm(shape, {.interval = std::llround(r.number("bf_interval")),
                            .resolution = std::llround(r.number("bf_resolution"))});
  const auto second = [&](double at) {
    return static_cast<std::int64_t>(std::floor(std::round((r.number("zero") + at) * 1e4) / 1e4));
  };
  std::map<std::uint32_t, std::pair<double, std::vector<std::int32_t>>> told;
  std::multimap<double, std::uint32_t> ends;
  auto arrival = r.jobs.begin();
  constexpr double release = 0.003;  // seconds from an end to free hosts
  for (const auto& [at, loop] : r.passes) {
    for (; arrival != r.jobs.end() && arrival->second.submit <= at; ++arrival)
      slurm.submit(arrival->first, arrival->second.gpus, arrival->second.limit);
    while (!ends.empty() && ends.begin()->first + release <= at) {
      slurm.release(ends.begin()->second);
      ends.erase(ends.begin());
    }
    const auto starts =
        loop == "main" ? slurm.main_pass(second(at), false) : slurm.backfill_pass(second(at));
    for (const SlurmPasses::Start& start : starts) {
      std::vector<std::int32_t> hosts = start.hosts;
      if (start.rest_host) hosts.push_back(*start.rest_host);
      told[start.job] = {at, hosts};
      const Recorded& job = r.jobs.at(start.job);
      // As long as it ran there, from the pass that started it.
      double woke = 0;
      for (const auto& [pass, which] : r.passes)
        if (which == job.by && pass <= job.start) woke = pass;
      ends.emplace(at + job.end - woke, start.job);
    }
  }
  return told;
}

TEST_CASE("a real Slurm is replayed: starts, hosts and waits", "[slurm]") {
  WorstRows worst;
  for (const char* name : {"usual-1", "usual-2", "tight-3", "defaults-5"}) {
    INFO(name);
    const Recording r = read_recording(name);
    REQUIRE(r.jobs.size() >= 150);
    const auto told = replay(r);
    std::size_t near = 0, same_hosts = 0;
    double wait = 0, recorded = 0;
    for (const auto& [number, job] : r.jobs) {
      const auto at = told.find(number);
      REQUIRE(at != told.end());
      near += std::abs(at->second.first - job.start) <= r.number("bf_interval") ? 1 : 0;
      same_hosts += at->second.second == job.hosts ? 1 : 0;
      wait += at->second.first - job.submit;
      recorded += job.start - job.submit;
    }
    const auto all = static_cast<double>(r.jobs.size());
    INFO(100 * static_cast<double>(near) / all
         << "% of starts within an interval, " << 100 * static_cast<double>(same_hosts) / all
         << "% on the same hosts, mean wait " << 100 * (wait / recorded - 1) << "% off");
    CHECK(static_cast<double>(near) / all >= 0.95);
    CHECK(static_cast<double>(same_hosts) / all >= 0.95);
    CHECK(std::abs(wait / recorded - 1) <= 0.05);
    const std::string row = name;
    worst.add(row + ", mean wait in s", wait / all, recorded / all,
              100 * std::abs(wait / recorded - 1), "%");
    worst.add(row + ", % of starts within an interval", 100 * static_cast<double>(near) / all, 100,
              100 - 100 * static_cast<double>(near) / all, "%");
  }
  worst.print("a real Slurm, told its wake-ups");
}

// Whether both start the same jobs on the same hosts.
bool alike(const std::vector<SlurmPasses::Start>& a, const std::vector<SlurmPasses::Start>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& two) {
    return one.job == two.job && one.hosts == two.hosts && one.rest_host == two.rest_host;
  });
}

struct PlannedList {
  std::size_t starts = 0, behind = 0;  // behind: that passed an older one
};

// Both planners see the same jobs come and end, some of them at their limits.
PlannedList plan_both(const SlotShape& shape, const SlurmSettings& settings, RandomStream& random) {
  SlurmPasses fast(shape, settings);
  PlainSlurmPasses plain(shape, settings);
  std::multimap<std::int64_t, std::uint32_t> ends;
  std::map<std::uint32_t, std::int64_t> waiting;
  PlannedList out;
  std::uint32_t number = 0;
  const auto most = static_cast<std::uint64_t>(shape.gpus());
  for (std::int64_t now = 1'000'000'000; number < 400;
       now += static_cast<std::int64_t>(random.below(90))) {
    for (; !ends.empty() && ends.begin()->first <= now; ends.erase(ends.begin())) {
      fast.release(ends.begin()->second);
      plain.release(ends.begin()->second);
    }
    for (std::uint64_t many = random.below(3); many > 0; --many, ++number) {
      const auto gpus = 1 + random.below(random.below(4) == 0 ? most : 8);
      const auto limit =
          static_cast<std::int64_t>(random.below(random.below(9) == 0 ? 90'000 : 9'000));
      fast.submit(number, static_cast<std::int32_t>(gpus), limit);
      plain.submit(number, static_cast<std::int32_t>(gpus), limit);
      waiting[number] = limit;
    }
    const bool whole = random.below(2) == 0, backfill = random.below(3) != 0;
    const auto started = backfill ? fast.backfill_pass(now) : fast.main_pass(now, whole);
    REQUIRE(alike(started, backfill ? plain.backfill_pass(now) : plain.main_pass(now, whole)));
    for (const SlurmPasses::Start& start : started) {
      ++out.starts;
      out.behind += waiting.begin()->first == start.job ? 0 : 1;
      const std::int64_t limit = waiting.at(start.job);
      const auto share = static_cast<std::int64_t>(1 + random.below(10));
      ends.emplace(now + limit * share / 10, start.job);
      waiting.erase(start.job);
    }
    REQUIRE(fast.waiting() == waiting.size());
  }
  return out;
}

TEST_CASE("law: passes of Slurm are those of a plain planner", "[slurm]") {
  const std::uint64_t seed = fresh(41);
  INFO("seed " << seed);
  RandomStream random(seed, 1);
  PlannedList all;
  for (int round = 0; round < 40; ++round) {
    SlotShape shape{.hosts = static_cast<std::int32_t>(1 + random.below(90))};
    shape.last_host_gpus = static_cast<std::int32_t>(1 + random.below(8));
    if (round % 3 != 0)
      shape.levels = {{"leaf group", static_cast<std::int32_t>(1 + random.below(32))}};
    const SlurmSettings settings{.resolution = round % 2 == 0 ? 60 : 600,
                                 .window = round % 4 == 0 ? 7'200 : 86'400};
    const PlannedList one = plan_both(shape, settings, random);
    all.starts += one.starts;
    all.behind += one.behind;
  }
  CHECK(all.starts > 3000);
  CHECK(all.behind > 500);
}

}  // namespace
}  // namespace orrery
