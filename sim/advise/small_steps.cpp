// SPDX-License-Identifier: Apache-2.0
// Searches every small set of decisions with all others as they are now.
#include "sim/advise/small_steps.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "sim/advise/search/search.h"
#include "sim/advise/simplify.h"
#include "sim/advise/space/search_options.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/step/step.h"
#include "sim/explain/explain.h"

namespace orrery {
namespace {

using Set = std::uint32_t;  // of decisions
constexpr Set only(Decision d) { return Set{1} << static_cast<unsigned>(d); }
constexpr bool has(Set set, Decision d) { return (set & only(d)) != 0; }

bool same_recompute(const Layout& a, const Layout& b) {
  if (a.recompute != b.recompute) return false;
  if (a.recompute == Recompute::selective) return a.recompute_modules == b.recompute_modules;
  return a.recompute == Recompute::none || a.recompute_layers == b.recompute_layers;
}

bool same_context(const Layout& a, const Layout& b) {
  return a.context == b.context &&
         (a.context != ContextKind::hierarchical || a.context_inner == b.context_inner);
}

bool same_positions(const Layout& a, const Layout& b) { return a.pp * a.vpp == b.pp * b.vpp; }

// The limits that leave only the decisions of a set open, each of the others as it is now.
class Fixer {
 public:
  Fixer(const SearchLimits& limits, const Layout& now) : limits_(limits), now_(now) {}
  SearchLimits operator()(Set open) const {
    SearchLimits l = limits_;
    visit_layout([&](const LayoutField& field, const auto& member) {
      if constexpr (std::decay_t<decltype(member)>::searched)
        if (field.decision && !has(open, *field.decision)) member.limit(l) = member.of(now_);
    });
    if (now_.context != ContextKind::hierarchical) l.context_inner = limits_.context_inner;
    // Layers of stages follow their number.
    if (!has(open, Decision::stages) && (has(open, Decision::pp) || has(open, Decision::schedule)))
      l.stage_layers = std::vector<std::int64_t>();
    return l;
  }

 private:
  const SearchLimits& limits_;
  const Layout& now_;
};

// Decisions that the question fixes: at now's value, so that they cannot change, or at another one,
// so that they must.
struct Fixed {
  Set stay = 0, must = 0;
};

Fixed fixed_by(const SearchLimits& l, const Layout& now) {
  Fixed f;
  const auto add = [&](Decision d, bool given, bool same) {
    if (given) (same ? f.stay : f.must) |= only(d);
  };
  add(Decision::tp, l.tp.has_value(), l.tp == now.tp);
  add(Decision::cp, l.cp.has_value(), l.cp == now.cp);
  add(Decision::pp, l.pp.has_value(), l.pp == now.pp);
  add(Decision::ep, l.ep.has_value(), l.ep == now.ep);
  add(Decision::etp, l.etp.has_value(), l.etp == now.etp);
  // Of a schedule alone the chunks may still change, and the other way round.
  const bool schedule =
      l.schedule.value_or(now.schedule) == now.schedule && l.vpp.value_or(now.vpp) == now.vpp;
  add(Decision::schedule, !schedule || (l.schedule && l.vpp), schedule);
  add(Decision::micro_batch, l.micro_batch.has_value(), l.micro_batch == now.micro_batch);
  const bool zero = l.zero_stage.value_or(now.zero_stage) == now.zero_stage &&
                    l.shard_group.value_or(now.shard_group) == now.shard_group;
  add(Decision::zero, !zero || (l.zero_stage && (l.shard_group || *l.zero_stage < 3)), zero);
  const bool again = (!l.recompute || *l.recompute == now.recompute_choice()) &&
                     l.recompute_layers.value_or(now.recompute_layers) == now.recompute_layers;
  add(Decision::recompute,
      !again || l.recompute_layers.value_or(0) > 0 ||
          (l.recompute && (l.recompute_layers || l.recompute->recompute != Recompute::full)),
      again);
  add(Decision::offload, l.offload.has_value(), l.offload == offload_of(now));
  add(Decision::rows, l.sequence_parallel.has_value(),
      l.sequence_parallel == now.sequence_parallel || now.tp == 1);
  const std::int64_t inner = l.context_inner.value_or(0);
  const bool exchange = l.context.value_or(now.context) == now.context || now.cp == 1;
  add(Decision::context, l.context || inner > 0,
      inner > 0 ? now.context == ContextKind::hierarchical && now.context_inner == inner
                : exchange);
  add(Decision::ranks, l.rank_order.has_value(), l.rank_order == now.rank_order);
  add(Decision::bucket, l.bucket.has_value(), l.bucket == now.bucket);
  add(Decision::stages, l.stage_layers.has_value(), l.stage_layers == now.stage_layers);
  return f;
}

class Climber {
 public:
  Climber(const SearchGround& ground, const std::vector<SearchSubject>& subjects,
          const SearchLimits& limits, const Scenario& now, const SmallStepOptions& options,
          StopPoint& stop)
      : ground_(ground),
        subjects_(subjects),
        limits_(limits),
        now_(now),
        options_(options),
        stop_(stop),
        fixed_(fixed_by(limits, now.layout)) {
    const auto recipe_has = [&](auto same) {
      return std::any_of(ground.recipes.begin(), ground.recipes.end(), same);
    };
    if (!recipe_has([&](const NumericRecipe& r) { return r.precision == now.layout.precision; }))
      fixed_.must |= only(Decision::precision);
    if (!recipe_has([&](const NumericRecipe& r) { return r.optimizer == now.layout.optimizer; }))
      fixed_.must |= only(Decision::optimizer);
  }
  Ladder run();

 private:
  Set open_decisions() const;
  std::vector<Set> sets(int size) const;
  bool idle(Set set) const;
  std::optional<Found> best_of(Set set, std::int64_t& considered) const;
  std::optional<Found> best_within(const SearchLimits& limits, Set set,
                                   std::int64_t& considered) const;
  void add_rung(int changes, const Found& found, bool better, Ladder& ladder) const;

  const SearchGround& ground_;
  const std::vector<SearchSubject>& subjects_;
  const SearchLimits& limits_;
  const Scenario& now_;
  const SmallStepOptions& options_;
  StopPoint& stop_;
  Fixed fixed_;
};

// Those with more than one choice somewhere in the grid.
Set Climber::open_decisions() const {
  Set open = (Set{1} << decision_count) - 1;
  const auto close = [&](Decision d, bool closed) {
    if (closed) open &= ~only(d);
  };
  const SearchSubject& s = subjects_.front();
  const StackChoices& c = s.stack.choices;
  const SearchLimits free;
  const bool experts = s.model.has_experts();
  const Layout& now = now_.layout;
  close(Decision::ep, !experts && now.ep == 1);
  close(Decision::etp, !experts && now.etp == 1);
  close(Decision::cp, context_sizes(s, free).size() < 2 && now.cp == 1);
  close(Decision::offload, offload_options(s, free).size() < 2 && offload_of(now) == Offload());
  close(Decision::bucket, !c.bucket_size && now.bucket == Bytes(0));
  close(Decision::stages, !c.uneven_stages && now.stage_layers.empty());
  const auto several = [&](auto same) {
    return std::any_of(ground_.recipes.begin(), ground_.recipes.end(),
                       [&](const NumericRecipe& r) { return !same(r); });
  };
  close(Decision::precision,
        !several([&](const NumericRecipe& r) { return r.precision == now.precision; }));
  close(Decision::optimizer,
        !several([&](const NumericRecipe& r) { return r.optimizer == now.optimizer; }));
  return (open & ~fixed_.stay) | fixed_.must;
}

// Whether a decision of the set can mean nothing, so that a smaller set says the same.
bool Climber::idle(Set set) const {
  const Layout& now = now_.layout;
  const auto alone = [&](Decision d, Decision size) { return has(set, d) && !has(set, size); };
  return (now.pp == 1 &&
          (alone(Decision::schedule, Decision::pp) || alone(Decision::stages, Decision::pp))) ||
         (now.cp == 1 && alone(Decision::context, Decision::cp)) ||
         (now.tp == 1 && alone(Decision::rows, Decision::tp));
}

std::vector<Set> Climber::sets(int size) const {
  const Set open = open_decisions();
  std::vector<Set> all;
  for (Set set = 0; set < Set{1} << decision_count; ++set)
    if ((set & ~open) == 0 && std::popcount(set) == size && (set & fixed_.must) == fixed_.must &&
        !idle(set & ~fixed_.must))
      all.push_back(set);
  return all;
}

std::optional<Found> Climber::best_within(const SearchLimits& limits, Set set,
                                          std::int64_t& considered) const {
  SearchLimits none = limits;
  none.dp = 0;  // of a recipe that is not asked for: no layout has it
  std::vector<SearchSpace> spaces;
  for (const SearchSubject& s : subjects_) {
    const bool asked = (has(set, Decision::precision) || s.precision == now_.layout.precision) &&
                       (has(set, Decision::optimizer) || s.optimizer == now_.layout.optimizer);
    spaces.emplace_back(s, asked ? limits : none);
    considered += spaces.back().leaves();
  }
  const SearchGround on{.context = ground_.context,
                        .model = ground_.model,
                        .job = ground_.job,
                        .recipes = ground_.recipes,
                        .spaces = spaces,
                        .bounds = ground_.bounds,
                        .device = ground_.device,
                        .objective = ground_.objective,
                        .host_power = ground_.host_power};
  const SearchResult found = search(on, {.keep = 1, .threads = 1});
  if (found.best.empty()) return std::nullopt;
  return found.best.front();
}

std::optional<Found> Climber::best_of(Set set, std::int64_t& considered) const {
  std::vector<SearchLimits> tries = {Fixer(limits_, now_.layout)(set)};
  // One stage has no schedule to keep.
  if (has(set, Decision::pp) && !limits_.pp && now_.layout.pp > 1 &&
      !has(set, Decision::schedule)) {
    SearchLimits one = tries.front();
    one.pp = 1;
    one.schedule = std::nullopt;
    one.vpp = std::nullopt;
    tries.push_back(one);
  }
  // One rank of a sequence has no exchange to keep.
  if (has(set, Decision::cp) && !limits_.cp && now_.layout.context_inner > 0 &&
      !has(set, Decision::context) && !limits_.context_inner) {
    for (std::size_t i = 0, all = tries.size(); i < all; ++i) {
      SearchLimits one = tries[i];
      one.cp = 1;
      one.context_inner = std::nullopt;
      tries.push_back(one);
    }
  }
  std::optional<Found> best;
  for (const SearchLimits& limits : tries) {
    const std::optional<Found> found = best_within(limits, set, considered);
    if (found && (!best || found->score < best->score)) best = found;
  }
  return best;
}

void Climber::add_rung(int changes, const Found& found, bool better, Ladder& ladder) const {
  const NumericRecipe& recipe = ground_.recipe(found.place);
  const Layout& layout = found.candidate.layout;
  const auto where = [&](const Layout& l, const Stack& stack) {
    return step(ground_.context, ground_.model, ground_.job, l, stack);
  };
  const StepResult was = where(now_.layout, now_.stack), is = where(layout, recipe.stack);
  Scenario then = now_;
  then.layout = layout;
  then.stack = recipe.stack;
  ladder.rungs.push_back({.changes = changes,
                          .better = better,
                          .what = changed(now_.layout, layout),
                          .candidate = found.candidate,
                          .stack = recipe.stack,
                          .difference = explain_difference(now_.layout, mean_breakdown(was), layout,
                                                           mean_breakdown(is)),
                          .faster = to_seconds(was.step) / to_seconds(is.step) - 1,
                          .flags = flag_changes(launch_flags(now_), launch_flags(then))});
}

Ladder Climber::run() {
  Ladder ladder;
  ladder.asked = options_.changes;
  ladder.forced = std::popcount(fixed_.must);
  const StepResult was = step(ground_.context, ground_.model, ground_.job, now_.layout, now_.stack);
  const double now_score = score(ground_, to_seconds(was.step),
                                 was.energy_per_gpu * static_cast<double>(now_.layout.gpus()));
  // What does not fit is no layout to stay with.
  double before = memory_fits(ground_.model, ground_.job, now_.layout, now_.stack, ground_.device)
                      ? now_score
                      : infinite;
  std::optional<Found> best;
  for (int changes = 1; changes <= options_.changes; ++changes) {
    ladder.stopped_early = stop_.reached();
    if (ladder.stopped_early) return ladder;
    const std::vector<Set> all = sets(changes);
    std::vector<std::optional<Found>> found(all.size());
    std::vector<std::int64_t> considered(all.size());
    parallel_for(all.size(), options_.threads, [&](std::size_t i) {
      if (!interrupted()) found[i] = best_of(all[i], considered[i]);
    });
    ladder.stopped_early = stop_.reached();
    if (ladder.stopped_early) return ladder;
    for (const std::int64_t n : considered) ladder.considered += n;
    ladder.searches += static_cast<std::int64_t>(all.size());
    std::optional<Found> next;
    for (const std::optional<Found>& f : found)
      if (f && (!next || f->score < next->score)) next = f;
    // A change that gains no more than a tie is not worth its trouble.
    const bool better = next && next->score < before * (1 - tie_tolerance);
    if (better) {
      before = next->score;
      best = next;
    }
    if (best)
      add_rung(changes, *best, better, ladder);
    else
      ladder.rungs.push_back({.changes = changes});
  }
  return ladder;
}

}  // namespace

std::vector<Decision> changed(const Layout& now, const Layout& l) {
  std::vector<Decision> all;
  const auto add = [&](Decision d, bool differs) {
    if (differs) all.push_back(d);
  };
  add(Decision::tp, l.tp != now.tp);
  add(Decision::cp, l.cp != now.cp);
  add(Decision::pp, l.pp != now.pp);
  add(Decision::ep, l.ep != now.ep);
  add(Decision::etp, l.etp != now.etp);
  add(Decision::schedule, l.pp > 1 && (l.schedule != now.schedule || l.vpp != now.vpp));
  add(Decision::micro_batch, l.micro_batch != now.micro_batch);
  add(Decision::zero, l.zero_stage != now.zero_stage || l.shard_group != now.shard_group);
  add(Decision::recompute, !same_recompute(l, now));
  add(Decision::offload, !(offload_of(l) == offload_of(now)));
  add(Decision::rows, l.tp > 1 && l.sequence_parallel != now.sequence_parallel);
  add(Decision::context, l.cp > 1 && !same_context(l, now));
  add(Decision::ranks, l.rank_order != now.rank_order || l.per_domain != now.per_domain);
  add(Decision::bucket, l.bucket != now.bucket);
  const bool follows = !same_positions(l, now) && l.stage_layers.empty();
  add(Decision::stages, l.stage_layers != now.stage_layers && !follows);
  add(Decision::precision, l.precision != now.precision);
  add(Decision::optimizer, l.optimizer != now.optimizer);
  return all;
}

Ladder small_steps(const SearchGround& ground, const std::vector<SearchSubject>& subjects,
                   const SearchLimits& limits, const Scenario& now, const SmallStepOptions& options,
                   StopPoint& stop) {
  return Climber(ground, subjects, limits, now, options, stop).run();
}

}  // namespace orrery
