// SPDX-License-Identifier: Apache-2.0
// Asks for every reason, and holds a layout that runs now against the advised one.
#include "sim/explain/reasons.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/sorting.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/placement.h"
#include "sim/engine/step/step.h"
#include "sim/explain/explain.h"
#include "workloads/layout/decisions.h"

namespace orrery {
namespace {

// What a switch is set to: being there says it.
std::string said(const LaunchFlag& flag) { return flag.value.empty() ? "on" : flag.value; }

StageBreakdown where(const Scenario& s) {
  return mean_breakdown(step(step_context(s), s.model, s.job, s.layout, s.stack));
}

std::string release_of(const Stack& stack) { return stack.name + "@" + stack.release; }

// The layouts that take over one decision each. What has no sense alone comes together: a schedule
// with its chunks, a precision with the stack as it is under it.
std::vector<Layout> single_steps(const Layout& now, const Layout& advised) {
  std::vector<Layout> all;
  const auto take = [&](std::initializer_list<Decision> decisions) {
    Layout one = now;
    visit_layout([&](const LayoutField& field, const auto& member) {
      const auto end = decisions.end();
      if (field.decision && std::find(decisions.begin(), end, *field.decision) != end)
        member.set(one, member.of(advised));
    });
    const std::int64_t others = one.tp * one.pp * one.cp;
    if (now.gpus() % others != 0 || one == now) return;
    one.dp = now.gpus() / others;
    all.push_back(one);
  };
  take({Decision::tp, Decision::rows});
  take({Decision::cp, Decision::context});
  take({Decision::pp, Decision::schedule, Decision::stages});
  if (now.pp == advised.pp) take({Decision::rows});
  take({Decision::ep, Decision::etp});
  for (const Decision d :
       {Decision::micro_batch, Decision::zero, Decision::recompute, Decision::offload,
        Decision::optimizer, Decision::ranks, Decision::bucket})
    take({d});
  return all;
}

std::vector<SingleChange> single_changes(const Scenario& now, const Scenario& advised,
                                         const StageBreakdown& time) {
  std::vector<SingleChange> out;
  const auto add = [&](const Scenario& one, const std::string& what) {
    if (invalid_reason(one.layout, one.model, one.job, one.cluster.gpus,
                       one.stack.sharding.partition) ||
        unplaceable_reason(one.layout, one.cluster.fabric))
      return;
    const StageBreakdown after = where(one);
    std::string sentence = explain_difference(now.layout, time, one.layout, after);
    if (!what.empty()) sentence = what + sentence.substr(sentence.find(": "));
    out.push_back({.sentence = std::move(sentence),
                   .faster = to_seconds(time.total()) / to_seconds(after.total()) - 1,
                   .fits = memory_fit(one.model, one.job, one.layout, one.stack,
                                      step_context(one.cluster).device)
                               .fits});
  };
  Scenario one = now;
  one.stack = advised.stack;
  one.layout.precision = advised.layout.precision;
  if (release_of(now.stack) != release_of(advised.stack))
    add(one, release_of(advised.stack) + " in place of " + release_of(now.stack));
  else if (now.stack.host.launch != advised.stack.host.launch)
    add(one, fmt::format("launches {} in place of {}", to_text(advised.stack.host.launch),
                         to_text(now.stack.host.launch)));
  else if (!(one.layout == now.layout))
    add(one, "");
  one.stack = now.stack;
  for (const Layout& layout : single_steps(now.layout, advised.layout)) {
    one.layout = layout;
    add(one, "");
  }
  sort_stably(out, [](const SingleChange& a, const SingleChange& b) {
    return a.fits != b.fits ? a.fits : a.faster > b.faster;
  });
  return out;
}

}  // namespace

std::vector<FlagChange> flag_changes(const LaunchFlags& now, const LaunchFlags& advised) {
  const auto find = [](const LaunchFlags& in, const std::string& name) -> const LaunchFlag* {
    const auto at = std::find_if(in.flags.begin(), in.flags.end(),
                                 [&](const LaunchFlag& f) { return f.name == name; });
    return at == in.flags.end() ? nullptr : &*at;
  };
  std::vector<FlagChange> changes;
  for (const LaunchFlag& flag : advised.flags) {
    const LaunchFlag* was = find(now, flag.name);
    if (was == nullptr || was->value != flag.value)
      changes.push_back({flag.name, was == nullptr ? "" : said(*was), said(flag)});
  }
  for (const LaunchFlag& flag : now.flags)
    if (find(advised, flag.name) == nullptr) changes.push_back({flag.name, said(flag), ""});
  const auto holds = [](const std::vector<std::string>& in, const std::string& setting) {
    return std::find(in.begin(), in.end(), setting) != in.end();
  };
  const auto halves = [](const std::string& setting) {
    const std::size_t equals = std::min(setting.find('='), setting.size());
    return std::pair(setting.substr(0, equals),
                     equals < setting.size() ? setting.substr(equals + 1) : std::string("set"));
  };
  for (const std::string& setting : advised.environment)
    if (!holds(now.environment, setting))
      changes.push_back({halves(setting).first, "", halves(setting).second});
  for (const std::string& setting : now.environment)
    if (!holds(advised.environment, setting))
      changes.push_back({halves(setting).first, halves(setting).second, ""});
  return changes;
}

Reasons reasons_for(const Scenario& scenario, const TrapOptions& options) {
  Reasons r;
  if (scenario.network == NetworkMode::ideal && is_training(scenario.job.task)) {
    r.limits = phase_limits(scenario);
    r.levers = counterfactuals(scenario);
    r.traps = find_traps(scenario, options);
  }
  r.flags = launch_flags(scenario);
  return r;
}

Comparison compare_with(const Scenario& now, Prediction prediction, const Scenario* advised) {
  Comparison c{.now = now, .prediction = std::move(prediction)};
  if (advised == nullptr) return c;
  c.where = {where(now), where(*advised)};
  c.difference = explain_difference(now.layout, c.where[0], advised->layout, c.where[1]);
  c.faster = to_seconds(c.where[0].total()) / to_seconds(c.where[1].total()) - 1;
  c.singles = single_changes(now, *advised, c.where[0]);
  const std::string was = release_of(now.stack), is = release_of(advised->stack);
  if (was != is)
    c.stack.push_back(
        fmt::format("The advice is for {}, what runs now is on {}: the difference "
                    "is that of both.",
                    is, was));
  else if (now.stack.host.launch != advised->stack.host.launch)
    c.stack.push_back(
        fmt::format("The advice launches {}, what runs now {}: the difference is that of both.",
                    to_text(advised->stack.host.launch), to_text(now.stack.host.launch)));
  c.flags = flag_changes(launch_flags(now), launch_flags(*advised));
  return c;
}

}  // namespace orrery
