// SPDX-License-Identifier: Apache-2.0
// Walks up and down the counts of accelerators that a choice may have.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/outcome/model_flop.h"
#include "sim/plan/point.h"
#include "topologies/parts.h"

namespace orrery {
namespace {

// Counts in a row that bring nothing: an octave of them, since some sizes divide badly.
constexpr int patience = 5;
// What a job costs falls with the count while fixed parts dominate, and rises again once sizes
// divide badly or failures eat the gain: over its least by this it will not come back.
constexpr double past_the_least = 1.25;

// A count and the limit that it comes from; no name: none but what is searched at all.
struct LimitedCount {
  std::int64_t count = 0;
  std::string limit;
};

// The least count that could hold the weights, and do the work in time at the peaks.
LimitedCount least_count(const PlanChoice& choice) {
  const Question& q = choice.question;
  const ResolvedDevice device = q.cluster.device.resolved();
  const auto parameters = static_cast<double>(count_parameters(q.model).total);
  double least = parameters / device.memory_capacity.si();  // a byte of each
  std::string_view limit = lacks_memory;
  double peak = 0;
  for (const PrecisionRecipe precision : q.precisions)
    peak =
        std::max({peak, device.tensor_rate[static_cast<std::size_t>(linear_format(precision))].si(),
                  device.tensor_rate[static_cast<std::size_t>(Format::bf16)].si()});
  for (const KernelSpeedup& k : choice.edit.kernels) peak *= std::max(1.0, k.factor);
  const double time = (choice.goal.allowed - choice.terms.wait).si();
  const double work = choice.goal.tokens * model_flop_per_token(q.model, q.job);
  if (time > 0 && peak > 0 && work / (peak * time) > least) {
    least = work / (peak * time);
    limit = "deadline";
  }
  const auto count =
      static_cast<std::int64_t>(std::min(least, static_cast<double>(plan_most_gpus)));
  // What a host holds and does anyway is no limit.
  if (count < q.cluster.gpus_per_host) limit = "";
  return {.count = std::max<std::int64_t>(1, count), .limit = std::string(limit)};
}

// The most that the limits of size and the wiring allow without looking at layouts; 0: not one
// host.
LimitedCount most_count(const PlanChoice& choice) {
  LimitedCount most = {.count = plan_most_gpus, .limit = ""};
  const auto limit = [&](const char* name, std::int64_t count) {
    if (count < most.count) most = {.count = count, .limit = name};
  };
  limit("wiring", most_joined(choice.question.cluster.fabric, plan_most_gpus));
  // Where the wiring ends first, it is the limit and not what the limit is of.
  for (const SizeLimit& size : size_limits(choice))
    if (!size.most.fabric_limit) limit(size.name, size.most.count);
  return most;
}

std::string limit_words(const std::string& limit) {
  return limit == "wiring" ? "the wiring" : "the limit of " + limit;
}

// `least`: what weights and deadline ask for; `why`: nothing fits on the largest count.
std::string too_few_text(const LimitedCount& most, std::int64_t least, const std::string& why) {
  if (most.count <= 0)
    return fmt::format("what {} allows holds not even one host or rack", limit_words(most.limit));
  return fmt::format(
      "what {} allows holds at most {} accelerators{}", limit_words(most.limit), most.count,
      most.count < least
          ? fmt::format(", fewer than the {} that the weights or the deadline need at the least",
                        least)
          : ". " + why);
}

std::string words_of_misses(const PlanPoint& point) {
  if (!point.step.fits) return point.step.lacks;
  std::string words;
  for (const PlanVerdict& v : point.verdicts)
    if (!v.met()) words += (words.empty() ? "" : ", ") + v.name;
  return words;
}

class CountSearch {
 public:
  CountSearch(const Plan& plan, std::size_t choice,
              const std::function<PlanPoint(std::int64_t)>& at, StopPoint& stop)
      : plan_(plan),
        index_(choice),
        choice_(plan.choices[choice]),
        at_(at),
        stop_(stop),
        objective_(choice_.goal.objective) {}

  PlanPoint run(std::vector<PlanPoint>& tried) {
    const Fabric& fabric = choice_.question.cluster.fabric;
    const LimitedCount most = most_count(choice_);
    const LimitedCount least = least_count(choice_);
    const std::int64_t low = least.count, high = most.count;
    if (high <= 0) return {.gpus = 0, .step = {.why_not = too_few_text(most, low, "")}};
    // Limits of the machine's size and the wish for speed: the best lies close to the limit.
    const PlanGoal& goal = choice_.goal;
    const bool sized = goal.power.si() > 0 || goal.capital.si() > 0 || goal.racks > 0 ||
                       goal.square_metres > 0 || fabric.scale_out.kind == ScaleOutKind::none;
    const bool close = objective_ == PlanObjective::time && high < plan_most_gpus && sized;
    if (close || low > high)
      walk_down(fabric, high);
    else
      walk_up(plan_counts(fabric, low, high, 2));
    // Too few to be in time even at the peaks: what there is misses its limits by how much?
    if (best_ == 0) walk_below(fabric, std::min(low, high));
    refine(plan_counts(fabric, 1, high, 8));
    for (const auto& [gpus, point] : points_) tried.push_back(point);
    return answer(least, most);
  }

 private:
  const PlanPoint& point(std::int64_t gpus) {
    const auto found = points_.find(gpus);
    if (found != points_.end()) return found->second;
    return points_.emplace(gpus, at_(gpus)).first->second;
  }
  // Whether the point becomes the best.
  bool improve(const PlanPoint& p) {
    if (!p.feasible) return false;
    const PlanRank score = plan_rank(p, objective_);
    if (best_ != 0 && score >= best_score_) return false;
    best_ = p.gpus;
    best_score_ = score;
    return true;
  }
  void walk_up(const std::vector<std::int64_t>& counts) {
    int idle = 0;  // counts in a row that are too large, or no better
    Seconds soonest(infinite);
    for (const std::int64_t gpus : counts) {
      if (stop_.reached()) return;
      const PlanPoint& p = point(gpus);
      const bool better = improve(p);
      if (better && objective_ == PlanObjective::gpus) return;
      const bool stale = best_ != 0 && !better && objective_ != PlanObjective::time;
      if (!p.step.fits) continue;  // it divides badly, or is too small yet
      least_cost_ = std::min(least_cost_, p.cost);
      const bool late = p.finish >= soonest;
      soonest = std::min(soonest, p.finish);
      idle = too_large(p) || stale || late ? idle + 1 : 0;
      if (idle == patience) return;
    }
  }
  // Whether a limit is missed that more accelerators would miss by more.
  bool too_large(const PlanPoint& p) const {
    return std::any_of(p.verdicts.begin(), p.verdicts.end(), [&](const PlanVerdict& v) {
      if (v.met() || v.name == "deadline") return false;
      return v.name != "budget" || p.cost > past_the_least * least_cost_;
    });
  }
  // From the most that is allowed: close to it every count, since some sizes divide badly, then
  // round ones, of which one may be faster than all above.
  void walk_down(const Fabric& fabric, std::int64_t most) {
    std::vector<std::int64_t> counts = plan_counts(fabric, most / 2 + 1, most, 8);
    for (const std::int64_t gpus : plan_counts(fabric, 1, most / 2, 2)) counts.push_back(gpus);
    std::sort(counts.rbegin(), counts.rend());
    for (const std::int64_t gpus : counts) {
      if (stop_.reached()) return;
      if (best_ != 0 && (gpus <= most / 4 || gpus < best_ / 4)) return;
      if (gpus <= most / 16) return;
      improve(point(gpus));
    }
  }
  // Down from what the limits ask for, as long as that comes nearer to them.
  void walk_below(const Fabric& fabric, std::int64_t most) {
    std::vector<std::int64_t> counts = plan_counts(fabric, 1, most, 2);
    std::reverse(counts.begin(), counts.end());
    int idle = 0;
    const PlanPoint* nearest = points_.empty() ? nullptr : &nearest_point();
    for (const std::int64_t gpus : counts) {
      if (stop_.reached()) return;
      const PlanPoint& p = point(gpus);
      improve(p);
      if (!p.step.fits) continue;  // it divides badly, or is too small
      const bool nearer = nearest == nullptr || misses_less(p, *nearest);
      if (nearer) nearest = &p;
      idle = nearer ? 0 : idle + 1;
      if (idle == patience) return;
    }
  }
  const PlanPoint& nearest_point() const {
    return std::min_element(
               points_.begin(), points_.end(),
               [](const auto& a, const auto& b) { return misses_less(a.second, b.second); })
        ->second;
  }
  // Between the best and its neighbours.
  void refine(const std::vector<std::int64_t>& counts) {
    if (best_ == 0) return;
    const auto at = points_.find(best_);
    const std::int64_t low = at == points_.begin() ? best_ : std::prev(at)->first;
    const std::int64_t high = std::next(at) == points_.end() || objective_ == PlanObjective::gpus
                                  ? best_
                                  : std::next(at)->first;
    for (const std::int64_t gpus : counts) {
      if (stop_.reached()) return;
      if (gpus <= low || gpus >= high || points_.contains(gpus)) continue;
      if (improve(point(gpus)) && objective_ == PlanObjective::gpus) return;
    }
  }
  PlanPoint answer(const LimitedCount& least, const LimitedCount& most) {
    const std::int64_t high = most.count;
    const auto fits = [](const auto& entry) { return entry.second.step.fits; };
    const bool none = std::none_of(points_.begin(), points_.end(), fits);
    if (points_.empty()) return {.gpus = high, .step = {.why_not = "no count was searched"}};
    if (none && !most.limit.empty() && !stop_.reached())
      return {.gpus = high,
              .step = {.why_not =
                           too_few_text(most, least.count, points_.rbegin()->second.step.why_not)}};
    // Nothing larger was looked at, and no limit of the question is why.
    const auto largest = [&](const PlanPoint& p) {
      return high == plan_most_gpus && p.gpus == points_.rbegin()->first &&
             p.gpus == plan_counts(choice_.question.cluster.fabric, 1, high, 8).back();
    };
    PlanPoint found = best_ != 0 ? points_.at(best_) : nearest_point();
    if (found.step.fits) allowed_ = allowed_count(plan_, index_, found.step, high);
    if (allowed_.count == high / unit_gpus() * unit_gpus() && allowed_.limit.empty())
      allowed_.limit = most.limit;
    found.allowed = allowed_.count;
    found.allowed_by = allowed_.limit;
    found.largest_tried = largest(found);
    if (best_ == 0)
      found.binding = words_of_misses(found);
    else if (!found.largest_tried || objective_ != PlanObjective::time)
      found.binding = binding(least);
    return found;
  }
  std::int64_t unit_gpus() const { return choice_.question.cluster.gpus_per_host; }
  // What the nearest count in the wanted direction misses.
  std::string binding(const LimitedCount& least) const {
    if (stop_.reached()) return "";
    const auto at = points_.find(best_);
    if (objective_ != PlanObjective::time) {
      if (at == points_.begin()) return least.limit;
      // Some sizes between do not divide: what a smaller one misses is why.
      for (auto below = at; below != points_.begin();) {
        --below;
        if (below->second.step.fits)
          return below->second.feasible ? "" : words_of_misses(below->second);
        if (below->second.step.lacks == lacks_memory) return std::string(lacks_memory);
      }
      return words_of_misses(std::prev(at)->second);
    }
    for (auto next = std::next(at); next != points_.end(); ++next) {
      if (!next->second.step.fits) continue;
      // A larger machine that meets all limits was no faster: no limit binds.
      return next->second.feasible ? "" : words_of_misses(next->second);
    }
    // Larger ones that are allowed were tried, and none of them runs.
    if (const auto next = std::next(at); next != points_.end() && next->first <= allowed_.count)
      return words_of_misses(next->second);
    return allowed_.limit;
  }
  const Plan& plan_;
  std::size_t index_;
  const PlanChoice& choice_;
  const std::function<PlanPoint(std::int64_t)>& at_;
  StopPoint& stop_;
  PlanObjective objective_;
  AllowedCount allowed_;
  std::map<std::int64_t, PlanPoint> points_;
  std::int64_t best_ = 0;
  PlanRank best_score_;
  double least_cost_ = infinite;  // of what walk_up has seen
};

}  // namespace

std::vector<SizeLimit> size_limits(const PlanChoice& choice) {
  const PlanGoal& goal = choice.goal;
  const Cluster& cluster = choice.question.cluster;
  const BillFacts& facts = choice.terms.facts;
  const BillQuestion question{.accelerators = cluster.gpus_per_host,
                              .ownership = choice.terms.ownership,
                              .facility = choice.terms.facility,
                              .contract = choice.terms.contract,
                              .ranges = false};
  std::vector<SizeLimit> limits;
  if (goal.power.si() > 0)
    limits.push_back({"power", accelerators_for_power(cluster, facts, question, goal.power)});
  if (goal.capital.si() > 0 && choice.terms.ownership == Ownership::buy)
    limits.push_back({"capital", accelerators_for_money(cluster, facts, question, goal.capital)});
  if (goal.racks > 0)
    limits.push_back({"racks", accelerators_for_racks(cluster, facts, question, goal.racks)});
  if (goal.square_metres > 0)
    limits.push_back(
        {"floor", accelerators_for_floor(cluster, facts, question, goal.square_metres)});
  return limits;
}

PlanPoint search_count(const Plan& plan, std::size_t choice,
                       const std::function<PlanPoint(std::int64_t)>& at, StopPoint& stop,
                       std::vector<PlanPoint>& tried) {
  PlanPoint point;
  try {
    point = CountSearch(plan, choice, at, stop).run(tried);
  } catch (const Error& error) {  // a limit that cannot be held against this machine's bill
    point = {.step = {.why_not = error.message()}};
  }
  point.choice = choice;
  return point;
}

}  // namespace orrery
