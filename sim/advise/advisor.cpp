// SPDX-License-Identifier: Apache-2.0
// Asks the search, and makes advice of what it found.
#include "sim/advise/advisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/advise/fits_from.h"
#include "sim/advise/rejections.h"
#include "sim/advise/search/any_fit.h"
#include "sim/advise/search/search.h"
#include "sim/advise/space/left_out.h"
#include "sim/engine/network/loaded_transfer.h"
#include "sim/engine/step/step.h"
#include "sim/explain/explain.h"
#include "sim/outcome/host_power.h"

namespace orrery {
namespace {

constexpr std::size_t most_contenders = 5;

std::vector<NumericRecipe> recipes_of(const Question& question) {
  const ResolvedDevice device = question.cluster.device.resolved();
  std::vector<NumericRecipe> recipes;
  for (const PrecisionRecipe precision : question.precisions) {
    check_precision(device, precision);
    const Stack stack = catalogue_stack(question.stack_name, question.cluster, question.model,
                                        question.job, precision);
    std::vector<Optimizer> optimizers = question.optimizers;
    if (optimizers.empty()) optimizers = {stack.defaults.optimizer};
    for (const Optimizer optimizer : optimizers)
      recipes.push_back({.precision = precision, .optimizer = optimizer, .stack = stack});
  }
  return recipes;
}

class Advisor {
 public:
  Advisor(const Question& question, const AdviseOptions& options, StopPoint& stop)
      : question_(question),
        options_(options),
        stop_(stop),
        context_(step_context(question.cluster)),
        recipes_(recipes_of(question)) {
    context_.loaded = &loaded_;
    const bool link = context_.device.host_bandwidth > BytesPerSecond(0);
    for (const NumericRecipe& recipe : recipes_) {
      subjects_.push_back(
          {.model = question.model,
           .job = question.job,
           .fabric = question.cluster.fabric,
           .stack = recipe.stack,
           .gpus = question.cluster.gpus,
           .precision = recipe.precision,
           .optimizer = recipe.optimizer,
           .offload = link,
           .offload_optimizer = link && context_.host_memory_bandwidth > BytesPerSecond(0)});
      spaces_.emplace_back(subjects_.back(), question.limits);
      Layout like;
      like.precision = recipe.precision;
      like.optimizer = recipe.optimizer;
      bounds_.emplace_back(context_, question.model, question.job, recipe.stack, like);
    }
  }
  Advice run();
  bool any_fit() const { return orrery::any_fit(ground(), options_.threads); }

 private:
  void tell_winner(Advice& advice, const std::vector<Found>& best);
  void tell_like(Advice& advice, const Scenario* winner);
  void simplify_best(SearchResult& found, Advice& advice) const;
  SimulateOptions simulate_options() const {
    return {.with_assumptions = true,
            .rental_per_gpu_hour = options_.rental_per_gpu_hour,
            .model_error = options_.model_error};
  }
  SearchGround ground() const {
    SearchGround g{.context = context_,
                   .model = question_.model,
                   .job = question_.job,
                   .recipes = recipes_,
                   .spaces = spaces_,
                   .bounds = bounds_,
                   .device = context_.device,
                   .objective = question_.objective,
                   .host_power = host_power_per_accelerator(question_.cluster) *
                                 static_cast<double>(question_.cluster.gpus),
                   .floors = &floors_};
    g.device.memory_capacity *= 1 - options_.memory_reserve;
    g.device.host_memory *= 1 - options_.memory_reserve;
    return g;
  }

  const Question& question_;
  const AdviseOptions& options_;
  StopPoint& stop_;  // of what follows the search
  StepContext context_;
  LoadedTransfers loaded_;
  PassFloors floors_;
  std::vector<NumericRecipe> recipes_;
  std::vector<SearchSubject> subjects_;  // of each recipe
  std::vector<SearchSpace> spaces_;
  std::vector<StepBound> bounds_;
};

void Advisor::tell_winner(Advice& advice, const std::vector<Found>& best) {
  const auto stack_of = [&](const Found& f) -> const Stack& {
    return recipes_[static_cast<std::size_t>(f.place.recipe)].stack;
  };
  const auto run = [&](const Found& f) {
    return step(context_, question_.model, question_.job, f.candidate.layout, stack_of(f));
  };
  const Layout& winner = best.front().candidate.layout;
  const StepResult first = run(best.front());
  const StageBreakdown winner_time = mean_breakdown(first);
  advice.why = explain_limit(winner, question_.job, winner_time, least_bubble(first));
  for (std::size_t i = 1; i < best.size(); ++i)
    advice.differences.push_back(explain_difference(winner, winner_time, best[i].candidate.layout,
                                                    mean_breakdown(run(best[i]))));
  advice.stack = stack_of(best.front());
  const Scenario scenario = {.cluster = question_.cluster,
                             .model = question_.model,
                             .job = question_.job,
                             .layout = winner,
                             .stack = advice.stack};
  advice.winner = simulate(scenario, simulate_options());
  advice.reasons = reasons_for(scenario, {.memory_reserve = options_.memory_reserve});
  tell_like(advice, &scenario);
  std::vector<Contender> contenders;
  for (std::size_t i = 0; i < std::min(most_contenders, best.size()); ++i)
    contenders.push_back({best[i].candidate.layout, stack_of(best[i])});
  if (advice.like) contenders.push_back({options_.like->layout, options_.like->stack});
  advice.reasons.ranking =
      rank_contenders(scenario, advice.winner, contenders, question_.objective);
  if (!advice.like) return;
  advice.like->rival = advice.reasons.ranking.rivals.back();
}

void Advisor::tell_like(Advice& advice, const Scenario* winner) {
  if (options_.like)
    advice.like =
        compare_with(*options_.like, simulate(*options_.like, simulate_options()), winner);
  if (options_.like && options_.changes > 0)
    advice.ladder = small_steps(ground(), subjects_, question_.limits, *options_.like,
                                {.changes = options_.changes, .threads = options_.threads}, stop_);
}

// Without `tie`, and where every setting is asked for, the layouts stay as they were found.
void Advisor::simplify_best(SearchResult& found, Advice& advice) const {
  if (options_.tie <= 0 || options_.variants || options_.pareto) return;
  advice.simplified = simplify_all(ground(), found.best, options_.tie, options_.threads);
  for (std::size_t i = 0; i < found.best.size(); ++i) found.best[i] = advice.simplified[i].shown;
}

Advice Advisor::run() {
  const SearchGround on = ground();
  SearchResult found = search(on, {.keep = static_cast<std::size_t>(std::max(1, options_.top)),
                                   .variants = options_.variants,
                                   .front = options_.pareto,
                                   .prune = options_.prune,
                                   .threads = options_.threads,
                                   .time_limit = options_.time_limit,
                                   .most_batches = options_.most_batches,
                                   .progress = options_.progress,
                                   .tasks = options_.tasks});
  Advice advice;
  if (!goes_on(options_.tasks)) return advice;
  advice.memory_reserve = options_.memory_reserve;
  advice.front = options_.pareto;
  advice.considered = found.considered;
  advice.left_out = left_out(subjects_.front(), question_.limits);
  advice.rejected_for_memory = found.rejected;
  advice.pruned = found.pruned;
  advice.simulated = found.simulated;
  advice.left = found.left;
  advice.batches = found.batches;
  advice.stopped_early = found.stopped_early;
  advice.stack = recipes_.front().stack;
  std::string invalid_example;
  for (const SearchSpace& space : spaces_) {
    advice.invalid += space.invalid();
    if (invalid_example.empty()) invalid_example = space.invalid_example();
  }
  if (found.left > 0 && !found.best.empty())
    advice.gap = std::max(0.0, 1 - found.least_left / found.best.front().score);
  simplify_best(found, advice);
  for (const Found& f : found.best) advice.best.push_back(f.candidate);
  for (const Found& f : found.front) advice.pareto.push_back(f.candidate);
  if (options_.brief && !found.best.empty()) {
    advice.stack = recipes_[static_cast<std::size_t>(found.best.front().place.recipe)].stack;
    return advice;
  }
  advice.rejections = explain_rejections(on, found, advice.simplified, options_.threads);
  if (!found.best.empty()) {
    tell_winner(advice, found.best);
    return advice;
  }
  tell_like(advice, nullptr);
  const auto nearest =
      std::max_element(advice.rejections.begin(), advice.rejections.end(),
                       [](const Rejection& a, const Rejection& b) { return a.margin < b.margin; });
  advice.why =
      explain_nothing(advice.considered, nearest == advice.rejections.end() ? "" : nearest->reason,
                      advice.invalid, invalid_example);
  return advice;
}

}  // namespace

Verdict verdict_of(const Advice& advice) {
  if (!advice.best.empty()) return verdict_of(advice.winner.memory);
  return {.fits = false, .why = advice.why, .probability = 0};
}

double measure(const Question& question, const Candidate& candidate) {
  if (question.objective != Objective::energy) return candidate.step_time.si();
  const Watts hosts =
      host_power_per_accelerator(question.cluster) * static_cast<double>(candidate.layout.gpus());
  return (candidate.energy_per_step + hosts * candidate.step_time).si();
}

Advice advise(const Question& question, const AdviseOptions& options) {
  StopPoint stop(options.stop_after);
  Advice advice = Advisor(question, options, stop).run();
  if (!goes_on(options.tasks)) return advice;
  if (advice.best.empty() && advice.considered > 0 && !advice.stopped_early && !options.brief)
    advice.fits_from = fits_from(question, options, stop).value_or(0);
  advice.stopped_after = stop.where();
  if (options.progress) options.progress(1, advice.simulated);
  return advice;
}

bool any_fit(const Question& question, const AdviseOptions& options) {
  StopPoint stop;
  return Advisor(question, options, stop).any_fit();
}

}  // namespace orrery
