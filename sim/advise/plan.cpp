// Answers all choices of a plan, and says which is best.
#include "sim/advise/plan.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "sim/advise/plan_point.h"
#include "sim/base/interrupt.h"
#include "sim/base/parallel.h"

namespace orrery {
namespace {

constexpr std::size_t fully_searched_points = 2;

// Choices whose steps are the same on as many accelerators: they are searched once.
std::vector<std::vector<std::size_t>> groups_of(const Plan& plan) {
  std::map<std::string, std::size_t> known;
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    const PlanChoice& choice = plan.choices[i];
    std::string key = choice.step_key;
    if (!choice.any_count) key += " on " + std::to_string(choice.question.cluster.gpus);
    const auto [at, added] = known.try_emplace(key, groups.size());
    if (added) groups.emplace_back();
    groups[at->second].push_back(i);
  }
  return groups;
}

class Planner {
 public:
  Planner(const Plan& plan, const PlanOptions& options) : plan_(plan), options_(options) {}

  PlanResult run() {
    result_.points.resize(plan_.choices.size());
    result_.tried.resize(plan_.choices.size());
    const auto groups = groups_of(plan_);
    const auto cores =
        static_cast<std::size_t>(options_.threads > 0 ? options_.threads : hardware_threads());
    // Few groups: each search takes all cores; many: each core takes a group.
    const bool many = groups.size() >= cores;
    const auto answer = [&](std::size_t g) {
      for (const std::size_t choice : groups[g]) result_.points[choice].choice = choice;
      answer_group(groups[g], many ? 1 : options_.threads);
      if (options_.progress) options_.progress(++done_, static_cast<std::int64_t>(groups.size()));
    };
    if (many)
      parallel_for(groups.size(), options_.threads, answer);
    else
      for (std::size_t g = 0; g < groups.size(); ++g) answer(g);
    search_best_fully();
    result_.stopped_early = interrupted();
    choose();
    make_front();
    return std::move(result_);
  }

 private:
  void answer_group(const std::vector<std::size_t>& group, int threads) {
    std::map<std::int64_t, PlanStep> steps;
    bool thorough = false;  // all layouts where the sweep's do not fit
    const auto step_on = [&](const PlanChoice& choice, std::int64_t gpus) -> const PlanStep& {
      const auto found = steps.find(gpus);
      if (found != steps.end()) return found->second;
      Question question = choice.question;
      question.cluster.gpus = gpus;
      PlanStep step = interrupted() ? PlanStep{.why_not = "stopped before it was searched"}
                                    : plan_step(question, plan_.memory_reserve, threads, false,
                                                thorough ? options_.full_search : Seconds{});
      return steps.emplace(gpus, std::move(step)).first->second;
    };
    for (const std::size_t index : group) {
      const PlanChoice& choice = plan_.choices[index];
      PlanPoint& point = result_.points[index];
      std::vector<PlanPoint>& tried = result_.tried[index];
      const auto at = [&](std::int64_t gpus) {
        return plan_point(plan_, index, gpus, step_on(choice, gpus));
      };
      const auto answer = [&] {
        tried.clear();
        point = choice.any_count ? search_count(plan_, index, at, tried)
                                 : at(choice.question.cluster.gpus);
      };
      answer();
      if (point.step.fits || interrupted() || thorough) continue;
      thorough = true;
      steps.clear();
      answer();
    }
  }

  PlanObjective objective() const { return plan_.choices.front().goal.objective; }

  // First those that meet all limits, then those that miss them least.
  bool before(const PlanPoint& a, const PlanPoint& b) const {
    if (a.feasible != b.feasible) return a.feasible;
    if (!a.feasible) return misses_less(a, b);
    const double first = plan_score(a, objective()), second = plan_score(b, objective());
    return first != second ? first < second : a.finish < b.finish;
  }

  std::vector<std::size_t> ranked() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < result_.points.size(); ++i)
      if (result_.points[i].step.fits) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return before(result_.points[a], result_.points[b]);
    });
    return order;
  }

  void search_best_fully() {
    if (options_.full_search.si() <= 0) return;
    std::vector<std::size_t> order = ranked();
    order.resize(std::min(order.size(), fully_searched_points));
    for (const std::size_t index : order) {
      if (interrupted()) return;
      PlanPoint& point = result_.points[index];
      Question question = plan_.choices[index].question;
      question.cluster.gpus = point.gpus;
      PlanStep step =
          plan_step(question, plan_.memory_reserve, options_.threads, true, options_.full_search);
      if (!step.fits || interrupted()) continue;
      PlanPoint better = plan_point(plan_, index, point.gpus, std::move(step));
      better.binding = point.binding;
      better.fully_searched = true;
      if (better.step.fits && !before(point, better)) point = std::move(better);
    }
  }

  void choose() {
    const std::vector<std::size_t> order = ranked();
    if (!order.empty() && result_.points[order.front()].feasible) result_.best = order.front();
  }

  void make_front() {
    std::vector<PlanPoint> all;
    for (std::size_t i = 0; i < result_.points.size(); ++i) {
      const PlanPoint& point = result_.points[i];
      if (point.step.fits && point.cost_known()) all.push_back(point);
      for (const PlanPoint& p : result_.tried[i])
        if (p.step.fits && p.cost_known() && p.gpus != point.gpus) all.push_back(p);
    }
    std::stable_sort(all.begin(), all.end(), [](const PlanPoint& a, const PlanPoint& b) {
      return a.finish != b.finish ? a.finish < b.finish : a.cost < b.cost;
    });
    for (PlanPoint& p : all)
      if (result_.front.empty() || p.cost < result_.front.back().cost)
        result_.front.push_back(std::move(p));
  }

  const Plan& plan_;
  const PlanOptions& options_;
  PlanResult result_;
  std::atomic<std::int64_t> done_ = 0;
};

}  // namespace

PlanResult plan(const Plan& question, const PlanOptions& options) {
  if (question.choices.empty()) return {};
  return Planner(question, options).run();
}

}  // namespace orrery
