// SPDX-License-Identifier: Apache-2.0
// Answers all choices of a plan, and says which is best.
#include "sim/plan/plan.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>

#include "sim/advise/simplify.h"
#include "sim/advise/stop_point.h"
#include "sim/base/content_hash.h"
#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"
#include "sim/base/sorting.h"
#include "sim/outcome/noise.h"
#include "sim/plan/kept_steps.h"
#include "sim/plan/point.h"
#include "workloads/layout/decisions.h"

namespace orrery {
namespace {

constexpr double least_effective = 0.01, longest_years = 100;

// Choices whose steps are the same on as many accelerators: they are searched once.
struct Group {
  std::uint64_t task = 0;  // its name among those that processes share
  std::vector<std::size_t> choices;
};
std::vector<Group> groups_of(const Plan& plan) {
  std::map<std::string, std::size_t> known;
  std::vector<Group> groups;
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    const PlanChoice& choice = plan.choices[i];
    std::string key = choice.step_key;
    if (!choice.any_count) key += " on " + std::to_string(choice.question.cluster.gpus);
    const auto [at, added] = known.try_emplace(key, groups.size());
    if (added) groups.push_back({.task = content_hash(key), .choices = {}});
    groups[at->second].choices.push_back(i);
  }
  return groups;
}

// What the question leaves open, as the layout has it: sizes, schedule and what is run again. The
// rest (order of ranks, buckets, accelerators of a domain) depends on the machine and stays open.
SearchLimits limits_like(SearchLimits limits, const Layout& layout) {
  visit_layout([&](const LayoutField& field, const auto& member) {
    if constexpr (std::decay_t<decltype(member)>::searched) {
      auto& limit = member.limit(limits);
      if (field.decision && !field.finer && !limit) limit = member.of(layout);
    }
  });
  return limits;
}

// A part of the plan: where it stops, and what it searches.
struct Part {
  StopPoint& stop;
  KeptSteps& steps;
};

// A search that Ctrl-C met counts for nothing: what it would have found is not known.
PlanStep step_or_stop(const Question& question, double memory_reserve, const StepSearch& how,
                      Part& part) {
  PlanStep stopped{.why_not = "stopped before it was searched"};
  if (part.stop.reached()) return stopped;
  PlanStep step = part.steps.step(question, memory_reserve, how);
  if (part.stop.reached()) return stopped;
  return step;
}

// The step, and the same layout with more accelerators used of each scale-up domain: slower
// perhaps, but in fewer racks. Where placement leaves none idle, the step alone.
std::vector<PlanStep> packings(const Question& question, PlanStep step, double memory_reserve,
                               int threads, Part& part) {
  std::vector<PlanStep> all;
  const std::int64_t domain = question.cluster.fabric.scale_up.domain, gpus = question.cluster.gpus;
  const std::int64_t used = step.domain_gpus;
  const bool open = step.fits && !question.limits.per_domain && gpus > domain && used < domain;
  const Layout layout = step.best.layout;
  all.push_back(std::move(step));
  if (!open) return all;
  for (std::int64_t packed = used + 1; packed <= domain; ++packed) {
    if (packed % layout.tp != 0 || (gpus % packed != 0 && packed != domain)) continue;
    Question q = question;
    q.limits = limits_like(question.limits, layout);
    q.limits.per_domain = packed;
    PlanStep other = step_or_stop(q, memory_reserve, {.threads = threads, .full = true}, part);
    if (other.fits) all.push_back(std::move(other));
  }
  return all;
}

class Planner {
 public:
  Planner(const Plan& plan, const PlanOptions& options) : plan_(plan), options_(options) {}

  PlanResult run() {
    result_.points.resize(plan_.choices.size());
    result_.tried.resize(plan_.choices.size());
    const std::vector<Group> groups = groups_of(plan_);
    alone_ = options_.full_batches > 0 && groups.size() == 1 &&
             !plan_.choices[groups.front().choices.front()].any_count;
    std::vector<StopPoint> stops = stop_points(groups.size() + 1);
    answer_groups(groups, stops);
    if (!goes_on(options_.tasks)) return std::move(result_);
    shared(content_hash("all layouts of the best"), stops.back(), [&](Part& part) {
      search_best_fully(part);
      search_fewer(part);
    });
    for (const StopPoint& stop : stops) result_.stopped_after.push_back(stop.where());
    choose();
    make_front();
    return std::move(result_);
  }

 private:
  // Of each group, and of what follows them.
  std::vector<StopPoint> stop_points(std::size_t parts) const {
    if (options_.stop_after.empty()) return std::vector<StopPoint>(parts);
    if (options_.stop_after.size() != parts)
      throw Error({.file = "stopped_after",
                   .found = std::to_string(options_.stop_after.size()) + " parts",
                   .expected = std::to_string(parts) + ", those of this plan"});
    return {options_.stop_after.begin(), options_.stop_after.end()};
  }
  // Does a task: with its own searches, or with those that another process did. Nothing where
  // another does it.
  void shared(std::uint64_t task, StopPoint& stop, const std::function<void(Part&)>& run);
  void answer_groups(const std::vector<Group>& groups, std::vector<StopPoint>& stops);
  void answer_group(const std::vector<std::size_t>& group, int threads, Part& part);

  // What the objective wants of steps that differ in how racks are filled; of those that end as
  // soon as the first to within what a rerun changes, the cheapest.
  PlanPoint best_of(std::size_t choice, std::int64_t gpus,
                    const std::vector<PlanStep>& steps) const {
    std::vector<PlanPoint> points;
    for (const PlanStep& step : steps) points.push_back(plan_point(plan_, choice, gpus, step));
    const auto worse = [&](const PlanPoint& a, const PlanPoint& b) { return before(a, b); };
    auto best = std::min_element(points.begin(), points.end(), worse);
    if (objective() != PlanObjective::time || !best->feasible) return *best;
    const Seconds latest = best->finish * (1 + tie_tolerance);
    for (auto p = points.begin(); p != points.end(); ++p)
      if (p->feasible && p->finish <= latest && p->cost < best->cost) best = p;
    return *best;
  }

  PlanObjective objective() const { return plan_.choices.front().goal.objective; }

  // First those that meet all limits, then those that miss them least.
  bool before(const PlanPoint& a, const PlanPoint& b) const {
    if (a.feasible != b.feasible) return a.feasible;
    if (!a.feasible) return misses_less(a, b);
    const PlanRank first = plan_rank(a, objective()), second = plan_rank(b, objective());
    if (first != second) return first < second;
    if (objective() == PlanObjective::gpus && a.bought != b.bought) return a.bought < b.bought;
    return a.finish != b.finish ? a.finish < b.finish : a.cost < b.cost;
  }

  std::vector<std::size_t> ranked() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < result_.points.size(); ++i)
      if (result_.points[i].step.fits) order.push_back(i);
    sort_stably(order, [&](std::size_t a, std::size_t b) {
      return before(result_.points[a], result_.points[b]);
    });
    return order;
  }

  // The point with the best of all layouts within the limits; one that does not fit where there is
  // none or the search did not end.
  PlanPoint searched_fully(const PlanPoint& point, const SearchLimits& limits,
                           std::int64_t most_batches, Part& part) const {
    Question question = plan_.choices[point.choice].question;
    question.cluster.gpus = point.gpus;
    question.limits = limits;
    PlanStep step = step_or_stop(
        question, plan_.memory_reserve,
        {.threads = options_.threads, .full = true, .most_batches = most_batches}, part);
    if (!step.fits) return {.step = {.batches = step.batches}};
    const std::int64_t batches = step.batches;
    PlanPoint better =
        best_of(point.choice, point.gpus,
                packings(question, std::move(step), plan_.memory_reserve, options_.threads, part));
    better.binding = point.binding;
    better.largest_tried = point.largest_tried;
    better.allowed = point.allowed;
    better.allowed_by = point.allowed_by;
    better.step.batches = batches;
    return better;
  }

  // Of each machine the best point, best first, so that none of them loses for the sweep's sake.
  void search_best_fully(Part& part) {
    std::int64_t left = options_.full_batches;
    std::set<std::string> machines;
    for (const std::size_t index : ranked()) {
      if (left <= 0 || part.stop.reached()) return;
      if (!machines.insert(plan_.choices[index].step_key).second) continue;
      PlanPoint& point = result_.points[index];
      if (point.fully_searched) continue;
      PlanPoint better = searched_fully(point, plan_.choices[index].question.limits, left, part);
      left -= better.step.batches;
      if (!better.step.fits) continue;  // its search was cut
      better.fully_searched = point.fully_searched = true;
      if (before(point, better)) continue;
      point = std::move(better);
      share_layout(index, part);
    }
  }

  // Of the fewest accelerators, whether the next smaller count serves with all of its layouts.
  void search_fewer(Part& part) {
    if (objective() != PlanObjective::gpus || options_.full_batches <= 0) return;
    const std::vector<std::size_t> order = ranked();
    if (order.empty() || !result_.points[order.front()].feasible) return;
    PlanPoint& point = result_.points[order.front()];
    const PlanChoice& choice = plan_.choices[point.choice];
    while (choice.any_count && point.gpus > 1 && !part.stop.reached()) {
      PlanPoint fewer = point;
      fewer.gpus = plan_counts(choice.question.cluster.fabric, 1, point.gpus - 1, 8).back();
      fewer = searched_fully(fewer, choice.question.limits, options_.full_batches, part);
      if (!fewer.step.fits || !fewer.feasible) return;
      fewer.fully_searched = true;
      point = std::move(fewer);
    }
  }

  // What was found on one point may suit others of its size: without it the one that was searched
  // longest would look the best.
  void share_layout(std::size_t from, Part& part) {
    const PlanPoint& found = result_.points[from];
    for (std::size_t i = 0; i < result_.points.size(); ++i) {
      PlanPoint& point = result_.points[i];
      if (i == from || point.gpus != found.gpus || !point.step.fits || point.fully_searched)
        continue;
      if (part.stop.reached()) return;
      PlanPoint better = searched_fully(
          point, limits_like(plan_.choices[i].question.limits, found.step.best.layout),
          options_.full_batches, part);
      if (better.step.fits && before(better, point)) point = std::move(better);
    }
  }

  void choose() {
    const std::vector<std::size_t> order = ranked();
    if (order.empty()) return;
    const PlanPoint& first = result_.points[order.front()];
    if (first.feasible && std::isfinite(plan_score(first, objective())))
      result_.best = order.front();
  }

  // Of machines that meet all limits; where none does, of all.
  void make_front() {
    std::vector<PlanPoint> all;
    for (std::size_t i = 0; i < result_.points.size(); ++i) {
      const PlanPoint& point = result_.points[i];
      if (point.step.fits && point.ends() && point.cost_known()) all.push_back(point);
      for (const PlanPoint& p : result_.tried[i])
        if (p.step.fits && p.ends() && p.cost_known() && p.gpus != point.gpus) all.push_back(p);
    }
    if (std::any_of(all.begin(), all.end(), [](const PlanPoint& p) { return p.feasible; }))
      std::erase_if(all, [](const PlanPoint& p) { return !p.feasible; });
    sort_stably(all, [](const PlanPoint& a, const PlanPoint& b) {
      return a.finish != b.finish ? a.finish < b.finish : a.cost < b.cost;
    });
    for (PlanPoint& p : all)
      if (result_.front.empty() || p.cost < result_.front.back().cost)
        result_.front.push_back(std::move(p));
  }

  const Plan& plan_;
  const PlanOptions& options_;
  PlanResult result_;
  bool alone_ = false;  // one machine of one size: it needs no sweep before all of its layouts
  std::atomic<std::int64_t> done_ = 0;
};

void Planner::shared(std::uint64_t task, StopPoint& stop, const std::function<void(Part&)>& run) {
  bool made = false;
  const auto record = task_result(options_.tasks, task, [&]() -> std::optional<std::string> {
    made = true;
    KeptSteps steps;
    Part part{stop, steps};
    run(part);
    if (options_.tasks == nullptr || stop.where()) return std::nullopt;
    return steps.record();
  });
  if (made || !record) return;
  KeptSteps steps(*record);
  Part part{stop, steps};
  run(part);
}

void Planner::answer_groups(const std::vector<Group>& groups, std::vector<StopPoint>& stops) {
  std::vector<std::size_t> own;
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (options_.tasks == nullptr || options_.tasks->wants(groups[g].task)) own.push_back(g);
  const auto cores =
      static_cast<std::size_t>(options_.threads > 0 ? options_.threads : hardware_threads());
  // Few groups: each search takes all cores; many: each core takes a group.
  const bool many = own.size() >= cores;
  const auto answer = [&](std::size_t i) {
    const Group& group = groups[own[i]];
    for (const std::size_t choice : group.choices) result_.points[choice].choice = choice;
    shared(group.task, stops[own[i]],
           [&](Part& part) { answer_group(group.choices, many ? 1 : options_.threads, part); });
    if (options_.progress) options_.progress(++done_, static_cast<std::int64_t>(own.size()));
  };
  if (many)
    parallel_for(own.size(), options_.threads, answer);
  else
    for (std::size_t i = 0; i < own.size(); ++i) answer(i);
}

void Planner::answer_group(const std::vector<std::size_t>& group, int threads, Part& part) {
  std::map<std::int64_t, std::vector<PlanStep>> steps;
  bool thorough = false;  // all layouts where the sweep's do not fit
  bool full = false;      // all layouts were searched at once
  const auto steps_on = [&](const PlanChoice& choice,
                            std::int64_t gpus) -> const std::vector<PlanStep>& {
    const auto found = steps.find(gpus);
    if (found != steps.end()) return found->second;
    Question question = choice.question;
    question.cluster.gpus = gpus;
    const auto search = [&](const StepSearch& how) {
      return step_or_stop(question, plan_.memory_reserve, how, part);
    };
    PlanStep step;
    if (alone_)
      step = search({.threads = threads, .full = true, .most_batches = options_.full_batches});
    full = step.fits;
    if (!step.fits)
      step = search({.threads = threads, .most_batches = thorough ? options_.full_batches : 0});
    return steps
        .emplace(gpus, packings(question, std::move(step), plan_.memory_reserve, threads, part))
        .first->second;
  };
  for (const std::size_t index : group) {
    const PlanChoice& choice = plan_.choices[index];
    PlanPoint& point = result_.points[index];
    std::vector<PlanPoint>& tried = result_.tried[index];
    const auto at = [&](std::int64_t gpus) { return best_of(index, gpus, steps_on(choice, gpus)); };
    const auto answer = [&] {
      tried.clear();
      point = choice.any_count ? search_count(plan_, index, at, part.stop, tried)
                               : at(choice.question.cluster.gpus);
    };
    answer();
    point.fully_searched = full;
    if (point.step.fits || thorough || part.stop.reached()) continue;
    thorough = true;
    steps.clear();
    answer();
  }
}

}  // namespace

bool PlanPoint::stalls() const {
  return !(effective >= least_effective) || !std::isfinite(duration.si());
}

bool PlanPoint::ends() const {
  return !stalls() && duration.si() < longest_years * seconds_per_year;
}

bool same_machine(const PlanPoint& a, const PlanPoint& b) {
  if (!a.step.fits || !b.step.fits || !a.ends() || !b.ends() || a.gpus != b.gpus) return false;
  const auto close = [](double x, double y) {
    return std::abs(x - y) <= same_speed * std::max(std::abs(x), std::abs(y));
  };
  return a.unknown_costs == b.unknown_costs &&
         close(a.step.best.step_time.si(), b.step.best.step_time.si()) &&
         close(a.finish.si(), b.finish.si()) && close(a.cost, b.cost) &&
         close(a.capital, b.capital) && close(a.energy, b.energy) && close(a.carbon, b.carbon) &&
         close(a.facility_peak, b.facility_peak) && close(a.racks, b.racks);
}

bool PlanResult::stopped_early() const {
  return std::any_of(stopped_after.begin(), stopped_after.end(),
                     [](const auto& part) { return part.has_value(); });
}

PlanResult plan(const Plan& question, const PlanOptions& options) {
  if (question.choices.empty()) return {};
  return Planner(question, options).run();
}

}  // namespace orrery
