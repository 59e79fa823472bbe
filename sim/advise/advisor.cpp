// Knows how to search: memory rejects, bounds order and prune, batches are simulated in parallel.
#include "sim/advise/advisor.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/advise/bound.h"
#include "sim/advise/explain.h"
#include "sim/base/interrupt.h"
#include "sim/base/parallel.h"

namespace orrery {

namespace {

// Batches have a fixed size and the incumbents change only between them: what is pruned, and so
// every count, is the same on any number of threads.
constexpr std::size_t memory_batch = 4096;
constexpr std::size_t simulation_batch = 256;

struct Survivor {  // fits in memory
  Layout layout;
  std::int64_t index = 0;  // in grid order
  Bytes peak;
  Seconds bound;
};
struct Scored {
  Candidate candidate;
  std::int64_t index = 0;
  double score = 0;  // least is best
};

bool better(const Scored& a, const Scored& b) {
  return a.score != b.score ? a.score < b.score : a.index < b.index;
}

// Rejections of the layouts that share tp, pp and ep.
struct Group {
  std::int64_t layouts = 0;
  double margin = 0;
  std::string reason;
};
using Groups = std::map<std::array<std::int64_t, 3>, Group>;

void count_rejection(Groups& groups, const Layout& layout, const MemoryVerdict& verdict) {
  Group& group = groups[{layout.tp, layout.pp, layout.ep}];
  if (group.layouts++ == 0 || verdict.margin > group.margin) {
    group.margin = verdict.margin;
    group.reason = verdict.reason;
  }
}

std::vector<Rejection> by_size(const Groups& groups, bool experts) {
  std::vector<Rejection> rejections;
  for (const auto& [key, group] : groups) {
    std::string family = fmt::format("TP{} PP{}", key[0], key[1]);
    if (experts) family += fmt::format(" EP{}", key[2]);
    rejections.push_back({.family = std::move(family),
                          .layouts = group.layouts,
                          .margin = group.margin,
                          .reason = group.reason});
  }
  std::stable_sort(rejections.begin(), rejections.end(),
                   [](const Rejection& a, const Rejection& b) { return a.layouts > b.layouts; });
  return rejections;
}

const Group* nearest_miss(const Groups& groups) {
  const Group* nearest = nullptr;
  for (const auto& [key, group] : groups)
    if (!nearest || group.margin > nearest->margin) nearest = &group;
  return nearest;
}

Stack question_stack(const Question& question) {
  const StackContext context = {
      .architecture = std::string(to_text(question.cluster.device.architecture)),
      .device = question.cluster.device.name,
      .model = question.model.name,
      .family = question.model.family,
      .precision = question.limits.precision,
      .moe = question.model.has_experts(),
      .task = question.job.task};
  return load_stack(question.stack_name, context, data_root() / "workloads/catalog/stacks");
}

double tokens_per_step(const Job& job, const Layout& layout) {
  const double sequence = static_cast<double>(job.sequence);
  if (is_training(job.task)) return static_cast<double>(job.global_batch) * sequence;
  const double batch = static_cast<double>(job.batch * layout.dp);
  return job.task == Task::prefill ? batch * sequence : batch;
}

// The whole search for one question: state shared by its phases.
class Search {
 public:
  Search(const Question& question, const AdviseOptions& options, Advice& advice)
      : question_(question),
        options_(options),
        advice_(advice),
        context_(step_context(question.cluster)),
        keep_(static_cast<std::size_t>(std::max(1, options.top))) {
    context_.loaded = &loaded_;
  }
  void run();

 private:
  void collect();
  void sort_out(const std::vector<Layout>& batch);
  void evaluate();
  void simulate_batch(const std::vector<const Survivor*>& batch);
  void keep(Scored scored);
  void keep_front(const Candidate& candidate, std::int64_t index);
  bool can_skip(const Survivor& survivor) const;
  double score(const Candidate& candidate) const;
  void finish();
  void report(double share) const {
    if (options_.progress) options_.progress(share, advice_.simulated);
  }

  const Question& question_;
  const AdviseOptions& options_;
  Advice& advice_;
  StepContext context_;
  LoadedTransfers loaded_;
  std::size_t keep_;
  Groups groups_;
  std::string invalid_example_;
  std::vector<Survivor> survivors_;
  std::vector<Scored> best_, front_;
};

// Which layouts fit: closed forms, so cheap that the whole grid is asked before any simulation.
void Search::collect() {
  SearchSpace space(question_.model, question_.job, question_.cluster.gpus,
                    question_.cluster.fabric.scale_up.domain, question_.limits, advice_.stack);
  std::vector<Layout> batch;
  bool more = true;
  while (more) {
    if (interrupted()) {
      advice_.stopped_early = true;
      break;
    }
    batch.clear();
    while (batch.size() < memory_batch && more) {
      std::optional<Layout> layout = space.next();
      more = layout.has_value();
      if (layout) batch.push_back(std::move(*layout));
    }
    sort_out(batch);
    report(0.1 * space.share());
  }
  advice_.invalid = space.invalid();
  invalid_example_ = space.invalid_example();
}

void Search::sort_out(const std::vector<Layout>& batch) {
  std::vector<MemoryVerdict> verdicts(batch.size());
  ResolvedDevice device = context_.device;
  device.memory_capacity *= 1 - options_.memory_reserve;
  parallel_for(batch.size(), options_.threads, [&](std::size_t i) {
    verdicts[i] = memory_fit(question_.model, question_.job, batch[i], advice_.stack, device);
  });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::int64_t index = advice_.considered++;
    if (verdicts[i].fits) {
      survivors_.push_back({batch[i], index, verdicts[i].peak, Seconds(0)});
    } else {
      ++advice_.rejected_for_memory;
      count_rejection(groups_, batch[i], verdicts[i]);
    }
  }
}

double Search::score(const Candidate& candidate) const {
  const double tokens = tokens_per_step(question_.job, candidate.layout);
  switch (question_.objective) {
    case Objective::time:
      return candidate.step_time.si();
    // The price of an accelerator-hour is the same for every layout: only its hours count.
    case Objective::cost:
      return candidate.step_time.si() * static_cast<double>(candidate.layout.gpus()) / tokens;
    case Objective::energy:
      return candidate.energy_per_step.si() / tokens;
  }
  return 0;
}

// Skips only what cannot enter the result: the bound is above the last kept score (an equal one
// could win by grid order) and, for the front, a simulated layout with no more memory is faster.
bool Search::can_skip(const Survivor& survivor) const {
  if (!options_.prune || question_.objective == Objective::energy || best_.size() < keep_)
    return false;
  Candidate at_bound;
  at_bound.layout = survivor.layout;
  at_bound.step_time = survivor.bound;
  if (score(at_bound) <= best_.back().score) return false;
  if (!options_.pareto) return true;
  return std::any_of(front_.begin(), front_.end(), [&](const Scored& s) {
    return s.candidate.step_time < survivor.bound && s.candidate.peak_memory <= survivor.peak;
  });
}

void Search::evaluate() {
  if (survivors_.empty()) return;
  const StepBound bound(context_, question_.model, question_.job, advice_.stack,
                        survivors_.front().layout);
  for (Survivor& s : survivors_) s.bound = bound(s.layout);
  std::sort(survivors_.begin(), survivors_.end(), [](const Survivor& a, const Survivor& b) {
    return a.bound != b.bound ? a.bound < b.bound : a.index < b.index;
  });
  std::vector<const Survivor*> batch;
  for (std::size_t i = 0; i < survivors_.size();) {
    batch.clear();
    for (; i < survivors_.size() && batch.size() < simulation_batch; ++i) {
      if (can_skip(survivors_[i]))
        ++advice_.pruned;
      else
        batch.push_back(&survivors_[i]);
    }
    simulate_batch(batch);
    report(0.1 + 0.9 * static_cast<double>(i) / static_cast<double>(survivors_.size()));
    // One batch is always simulated, so that "best so far" exists.
    if (i < survivors_.size() && interrupted()) {
      advice_.stopped_early = true;
      return;
    }
  }
}

void Search::simulate_batch(const std::vector<const Survivor*>& batch) {
  std::vector<Candidate> results(batch.size());
  parallel_for(batch.size(), options_.threads, [&](std::size_t i) {
    const Layout& layout = batch[i]->layout;
    const StepResult result = step(context_, question_.model, question_.job, layout, advice_.stack);
    const Seconds time = to_seconds(result.step);
    const double gpus = static_cast<double>(layout.gpus());
    results[i] = {
        .layout = layout,
        .step_time = time,
        .energy_per_step = result.energy_per_gpu * gpus,
        .peak_memory = batch[i]->peak,
        .tokens_per_second_per_gpu = tokens_per_step(question_.job, layout) / time.si() / gpus};
  });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (options_.pareto) keep_front(results[i], batch[i]->index);
    const double value = score(results[i]);
    keep({.candidate = std::move(results[i]), .index = batch[i]->index, .score = value});
  }
  advice_.simulated += static_cast<std::int64_t>(batch.size());
}

void Search::keep(Scored scored) {
  if (best_.size() == keep_ && !better(scored, best_.back())) return;
  best_.insert(std::upper_bound(best_.begin(), best_.end(), scored, better), std::move(scored));
  if (best_.size() > keep_) best_.pop_back();
}

// Of equal points the first in grid order stays, whatever the order of simulation.
void Search::keep_front(const Candidate& candidate, std::int64_t index) {
  const auto covers = [](const Candidate& a, std::int64_t ia, const Candidate& b, std::int64_t ib) {
    if (a.step_time > b.step_time || a.peak_memory > b.peak_memory) return false;
    return a.step_time < b.step_time || a.peak_memory < b.peak_memory || ia < ib;
  };
  for (const Scored& s : front_)
    if (covers(s.candidate, s.index, candidate, index)) return;
  std::erase_if(front_,
                [&](const Scored& s) { return covers(candidate, index, s.candidate, s.index); });
  Scored scored = {.candidate = candidate, .index = index, .score = candidate.step_time.si()};
  front_.insert(std::upper_bound(front_.begin(), front_.end(), scored, better), std::move(scored));
}

void Search::finish() {
  advice_.rejections = by_size(groups_, question_.model.has_experts());
  for (Scored& s : front_) advice_.pareto.push_back(std::move(s.candidate));
  for (Scored& s : best_) advice_.best.push_back(std::move(s.candidate));
  if (advice_.best.empty()) {
    const Group* nearest = nearest_miss(groups_);
    advice_.why = explain_nothing(advice_.considered, nearest ? nearest->reason : "",
                                  advice_.invalid, invalid_example_);
    return;
  }
  const auto where = [&](const Layout& layout) {
    return mean_breakdown(step(context_, question_.model, question_.job, layout, advice_.stack));
  };
  const Layout& winner = advice_.best.front().layout;
  const StageBreakdown winner_time = where(winner);
  advice_.why = explain_limit(winner, question_.job, winner_time);
  for (std::size_t i = 1; i < advice_.best.size(); ++i) {
    const Layout& other = advice_.best[i].layout;
    advice_.differences.push_back(explain_difference(winner, winner_time, other, where(other)));
  }
  const Scenario scenario = {.cluster = question_.cluster,
                             .model = question_.model,
                             .job = question_.job,
                             .layout = winner,
                             .stack = advice_.stack};
  advice_.winner = simulate(scenario, {.with_assumptions = true,
                                       .rental_per_gpu_hour = options_.rental_per_gpu_hour,
                                       .model_error = options_.model_error});
}

void Search::run() {
  collect();
  evaluate();
  finish();
  report(1);
}

}  // namespace

Advice advise(const Question& question, const AdviseOptions& options) {
  check_precision(question.cluster.device.resolved(), question.limits.precision);
  Advice advice;
  advice.stack = question_stack(question);
  advice.memory_reserve = options.memory_reserve;
  Search(question, options, advice).run();
  return advice;
}

}  // namespace orrery
