// SPDX-License-Identifier: Apache-2.0
// Reads hosts and tasks, and fills the hosts by each rule and seed.
#include "sim/question/schedule/filled.h"

#include <algorithm>

#include "hw_models/catalog.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"
#include "sim/base/text/words.h"
#include "sim/question/schedule/listed_names.h"
#include "sim/question/schedule/settings.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

constexpr double most_demand = 10;

double demand_of(const std::string& text) {
  std::size_t end = 0;
  double demand = 0;
  try {
    demand = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end == text.size() - 1 && text.back() == '%') {
    demand /= 100;
    ++end;
  }
  if (end != text.size() || !(demand > 0) || demand > most_demand)
    throw Error({.file = "--demand",
                 .found = in_quotes(text),
                 .expected = "a share of the accelerators above 0, such as 1.3 or 130%"});
  return demand;
}

// Demands of a table, those below `most`.
std::vector<double> marks_below(double most) {
  std::vector<double> marks;
  for (const double mark : {0.5, 0.8, 0.9, 1.0})
    if (mark < most) marks.push_back(mark);
  return marks;
}

FilledMark mark_of(double demand, const std::vector<FillRecord>& runs, std::size_t place) {
  FilledMark out{.demand = demand, .low = 1e9, .high = 0};
  for (const FillRecord& run : runs) {
    const double share = run.allocated.at(place);
    out.mean += share / static_cast<double>(runs.size());
    out.low = std::min(out.low, share);
    out.high = std::max(out.high, share);
  }
  return out;
}

FilledPoint point_of(FillRule rule, const std::vector<FillRecord>& runs,
                     const std::vector<double>& marks, double demand) {
  FilledPoint point{.rule = rule, .runs = static_cast<std::int64_t>(runs.size())};
  for (std::size_t i = 0; i < marks.size(); ++i) point.marks.push_back(mark_of(marks[i], runs, i));
  point.marks.push_back(mark_of(demand, runs, marks.size()));
  for (const FillRecord& run : runs) {
    const auto all = static_cast<double>(std::max<std::int64_t>(1, run.placed + run.refused));
    point.refused += static_cast<double>(run.refused) / all / static_cast<double>(runs.size());
  }
  return point;
}

}  // namespace

Filled fill_hosts(const FillWords& words, std::uint64_t first_seed, int threads) {
  const std::vector<std::string> rules =
      listed_names(JsonValue::from(words.rules, "--rule"), fill_rule_text.names());
  const double demand = demand_of(words.demand);
  Filled out;
  out.demand = demand;
  out.seeds = whole_number("--seeds", words.seeds, 1, most_seeds);
  const auto catalog = data_root() / "workloads/catalog";
  const SharedHosts cluster =
      read_shared_hosts(shared_file(words.hosts, "shared_hosts", catalog, "--hosts"));
  const std::vector<SharedTask> tasks =
      read_shared_tasks(shared_file(words.tasks, "shared_tasks", catalog, "--tasks"), cluster);
  out.hosts = static_cast<std::int64_t>(cluster.hosts.size());
  out.gpus = cluster.gpus();
  out.tasks = static_cast<std::int64_t>(tasks.size());
  for (const SharedTask& task : tasks)
    out.asked +=
        static_cast<double>(task.total_milli()) / whole_gpu / static_cast<double>(out.gpus);
  const std::vector<double> marks = marks_below(demand);
  const auto seeds = static_cast<std::size_t>(out.seeds);
  std::vector<std::vector<FillRecord>> runs(rules.size(), std::vector<FillRecord>(seeds));
  parallel_for(rules.size() * seeds, threads, [&](std::size_t i) {
    FillQuestion question;
    question.rule = *fill_rule_text.find(rules[i / seeds]);
    question.seed = first_seed + i % seeds;
    question.demand = demand;
    question.marks = marks;
    question.stop = [] { return interrupted(); };
    runs[i / seeds][i % seeds] = fill_cluster(cluster, tasks, question);
  });
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    std::erase_if(runs[rule], [](const FillRecord& run) { return run.stopped; });
    out.stopped = out.stopped || runs[rule].size() < seeds;
    if (!runs[rule].empty())
      out.points.push_back(point_of(*fill_rule_text.find(rules[rule]), runs[rule], marks, demand));
  }
  for (std::size_t i = 0; i < out.points.size(); ++i)
    if (out.points[i].marks.back().mean > out.points[out.best].marks.back().mean) out.best = i;
  return out;
}

}  // namespace orrery
