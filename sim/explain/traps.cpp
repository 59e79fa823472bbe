// SPDX-License-Identifier: Apache-2.0
// Finds traps of software: wrappers, blocking launches, old releases, slow hosts.
#include "sim/explain/traps.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw_models/catalog.h"
#include "sim/base/sorting.h"
#include "sim/base/text/words.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/placement.h"
#include "sim/engine/step/step.h"
#include "sim/explain/explain.h"
#include "sim/explain/trap_rules.h"
#include "sim/explain/what_if.h"

namespace orrery {

std::string faster_text(double gain) {
  return gain < 1 ? short_percent(gain) + " faster" : fmt::format("{:.2g} times as fast", 1 + gain);
}

TrapSearch::TrapSearch(const Scenario& scenario, const TrapOptions& options)
    : scenario_(scenario), options_(options) {
  const StepResult result =
      step(step_context(scenario), scenario.model, scenario.job, scenario.layout, scenario.stack);
  base_ = to_seconds(result.step);
  mean_ = mean_breakdown(result);
}

double TrapSearch::share(Label label) const { return to_seconds(mean_[label]) / base_; }

bool TrapSearch::runs(const Scenario& s) const {
  if (s.layout.gpus() != scenario_.layout.gpus()) return false;
  if (invalid_reason(s.layout, s.model, s.job, 0, s.stack.sharding.partition)) return false;
  if (!s.stack.has(s.layout.schedule) && scenario_.stack.has(s.layout.schedule)) return false;
  if (unplaceable_reason(s.layout, s.cluster.fabric)) return false;
  const MemoryVerdict memory =
      memory_fit(s.model, s.job, s.layout, s.stack, step_context(s.cluster).device);
  return memory.fits && memory.needed <= memory.capacity * (1 - options_.memory_reserve);
}

std::optional<double> TrapSearch::gain(const Scenario& other) const {
  if (!runs(other)) return std::nullopt;
  return base_ / step_time(other) - 1;
}

double TrapSearch::gain_of(const Stack& stack) const {
  Scenario other = scenario_;
  other.stack = stack;
  return base_ / step_time(other) - 1;
}

std::optional<Stack> TrapSearch::stack(const std::string& name, const std::string& release,
                                       PrecisionRecipe precision) const {
  const auto folder = data_root() / "workloads/catalog/stacks";
  const std::vector<std::string> names = stack_names(folder);
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  return catalogue_stack(release.empty() ? name : name + "@" + release, scenario_.cluster,
                         scenario_.model, scenario_.job, precision);
}

std::vector<Trap> TrapSearch::sorted() && {
  sort_stably(traps_, [](const Trap& a, const Trap& b) {
    return a.gain.value_or(-1) > b.gain.value_or(-1);
  });
  return std::move(traps_);
}

namespace {

std::string stack_text(const Stack& stack) { return stack.name + "@" + stack.release; }

void debug_wrappers(TrapSearch& search) {
  const Stack& own = search.scenario().stack;
  if (own.host.debug.per_rank.get() <= Seconds(0) &&
      own.host.debug.per_remote_rank.get() <= Seconds(0))
    return;
  Stack plain = own;
  plain.host.debug = {.per_rank = unstated(Seconds(0))};
  const double gain = search.gain_of(plain);
  if (!search.worth(gain)) return;
  search.add({.id = "debug-wrappers",
              .sentence = fmt::format(
                  "{} checks every collective over its whole group, {} for each rank of it: {} "
                  "without (leave TORCH_DISTRIBUTED_DEBUG unset).",
                  stack_text(own), to_text(own.host.debug.per_rank.get()), faster_text(gain)),
              .remedy = "no debug wrapper",
              .gain = gain,
              .evidence = fmt::format("both simulated; time of a check: {}",
                                      own.host.debug.per_rank.source)});
}

void blocking_launches(TrapSearch& search) {
  if (!search.scenario().stack.host.blocking_launches) return;
  Stack plain = search.scenario().stack;
  plain.host.blocking_launches = false;
  const double gain = search.gain_of(plain);
  if (!search.worth(gain)) return;
  search.add({.id = "blocking-launches",
              .sentence = fmt::format("{} waits for every kernel (CUDA_LAUNCH_BLOCKING=1): {} "
                                      "when launches run ahead.",
                                      stack_text(search.scenario().stack), faster_text(gain)),
              .remedy = "CUDA_LAUNCH_BLOCKING unset",
              .gain = gain,
              .evidence = "both simulated"});
}

void debug_environment(TrapSearch& search) {
  const Stack& own = search.scenario().stack;
  for (const std::string& setting : search.options().environment) {
    std::optional<double> gain;
    std::string why, evidence = "both simulated";
    if (setting == "TORCH_DISTRIBUTED_DEBUG=DETAIL" &&
        own.host.debug.per_rank.get() <= Seconds(0)) {
      const auto debug = search.stack("nanotron-debug", "", search.scenario().layout.precision);
      if (!debug) continue;
      Stack slow = own;
      slow.host.debug = debug->host.debug;
      gain = 1 / (1 + search.gain_of(slow)) - 1;
      why = "checks every collective over its whole group";
      evidence += fmt::format("; time of a check: {}", debug->host.debug.per_rank.source);
    } else if (setting == "CUDA_LAUNCH_BLOCKING=1" && !own.host.blocking_launches) {
      Stack slow = own;
      slow.host.blocking_launches = true;
      gain = 1 / (1 + search.gain_of(slow)) - 1;
      why = "makes the host wait for every kernel";
    } else if (setting == "NCCL_DEBUG=TRACE" || setting == "NCCL_DEBUG=INFO") {
      why = "writes a log line for each communicator, with TRACE for each call";
      evidence = "NCCL's documentation of NCCL_DEBUG; no run with and without it was measured";
    } else {
      continue;
    }
    if (gain && !search.worth(gain)) continue;
    search.add({.id = "debug-environment",
                .sentence = fmt::format("{} {}{}.", setting, why,
                                        gain ? fmt::format(": {} without", faster_text(*gain))
                                             : ": WARN is enough in production"),
                .remedy = setting.substr(0, setting.find('=')) + " unset",
                .gain = gain,
                .evidence = evidence});
  }
}

// Where the time goes that another scenario saves, as its parts: what a release changed for other
// devices, models or precisions explains nothing here.
std::string saved_text(const TrapSearch& search, const Scenario& other) {
  const StageBreakdown after =
      mean_breakdown(step(step_context(other), other.model, other.job, other.layout, other.stack));
  std::vector<std::pair<Ticks, Label>> saved;
  Ticks all;
  for (int i = 0; i < label_count; ++i) {
    const auto label = static_cast<Label>(i);
    const Ticks less = search.mean()[label] - after[label];
    if (less.ps <= 0) continue;
    saved.emplace_back(less, label);
    all += less;
  }
  sort_stably(saved, [](const auto& x, const auto& y) { return x.first > y.first; });
  std::vector<std::string> parts;
  for (const auto& [less, label] : saved)
    if (parts.size() < 3 && 10 * less.ps >= all.ps)
      parts.push_back(fmt::format("{} less in {}", to_text(to_seconds(less)), phrase(label)));
  return parts.empty() ? "" : fmt::format(": {}", joined(parts, ", "));
}

// The fastest later release; the earliest of those that are as fast.
void old_release(TrapSearch& search) {
  const Scenario& s = search.scenario();
  const auto folder = data_root() / "workloads/catalog/stacks";
  const std::vector<std::string> names = stack_names(folder);
  if (std::find(names.begin(), names.end(), s.stack.name) == names.end()) return;
  std::vector<std::pair<double, Stack>> later;
  double most = 0;
  for (Stack& stack : load_releases(
           s.stack.name, stack_context(s.cluster, s.model, s.job, s.layout.precision), folder)) {
    if (stack.date <= s.stack.date) continue;
    Scenario other = s;
    other.stack = stack;
    const auto gain = search.gain(other);
    if (!search.worth(gain)) continue;
    most = std::max(most, *gain);
    later.push_back({*gain, std::move(stack)});
  }
  for (const auto& [gain, stack] : later) {
    if (1 + gain < 0.995 * (1 + most)) continue;
    Scenario other = s;
    other.stack = stack;
    search.add(
        {.id = "old-release",
         .sentence = fmt::format("{} {} in place of {}: {}{}.", stack.name, stack.release,
                                 s.stack.release, faster_text(gain), saved_text(search, other)),
         .remedy = fmt::format("{} in place of {}", stack_text(stack), s.stack.release),
         .gain = gain,
         .evidence = "both simulated with the settings that the stack's file has for this "
                     "device, model and precision"});
    return;
  }
}

// Twice the rows a launch.
std::optional<double> larger_microbatch(const TrapSearch& search) {
  Scenario other = search.scenario();
  other.layout.micro_batch *= 2;
  return search.gain(other);
}

bool eager_experts(TrapSearch& search) {
  const Scenario& s = search.scenario();
  if (!is_training(s.job.task) || !s.model.has_experts() ||
      s.stack.host.launch != LaunchMode::eager)
    return false;
  if (search.share(Label::host) < 0.05) return false;
  Stack scoped = s.stack;
  scoped.host.launch = LaunchMode::scoped_graph;
  const double some = search.gain_of(scoped);
  const double most = search.gain_of(with(s.stack, {.whole_graphs = true}));
  const auto larger = larger_microbatch(search);
  if (!search.worth(most)) return false;
  std::string sentence = fmt::format(
      "Experts are launched one operation at a time, {} tokens a microbatch: the device waits for "
      "the host {} of the step. CUDA graphs over attention and router: {}; over the whole "
      "iteration: {} at most",
      s.layout.micro_batch * s.job.sequence / s.layout.cp, short_percent(search.share(Label::host)),
      faster_text(std::max(0.0, some)), faster_text(most));
  if (search.worth(larger))
    sentence += fmt::format("; micro batch {}: {}", 2 * s.layout.micro_batch, faster_text(*larger));
  search.add({.id = "eager-experts",
              .sentence = sentence + ".",
              .remedy = "CUDA graphs",
              .gain = most,
              .at_most = true,
              .evidence = fmt::format("simulated each; dispatch of an operation: {}",
                                      s.stack.host.dispatch.source)});
  return true;
}

// A program that can run experts' exchanges beside another microbatch's pass but is not told to. It
// takes pipelines of several chunks a stage, no layer that runs again as a whole and no graphs.
void serial_exchange(TrapSearch& search) {
  const Scenario& s = search.scenario();
  const Sourced<double>& overlapped = s.stack.communication.overlapped_expert_exposed;
  if (!is_training(s.job.task) || !s.model.has_experts() || s.layout.ep == 1 ||
      s.stack.communication.exchange_beside_passes || overlapped.get() >= 1)
    return;
  Scenario other = s;
  other.stack.communication.exchange_beside_passes = true;
  other.stack.communication.expert_exposed = overlapped;
  other.stack.host.launch = LaunchMode::eager;
  std::string also;
  if (s.layout.pp > 1 && s.layout.vpp == 1 && s.layout.schedule == Schedule::one_f_one_b) {
    other.layout.schedule = Schedule::interleaved;
    other.layout.vpp = 2;
    other.layout.stage_layers.clear();
    also = " and two chunks a stage";
  }
  if (exchange_beside_passes(s.stack, other.layout) ||
      !exchange_beside_passes(other.stack, other.layout))
    return;
  const auto gain = search.gain(other);
  if (!search.worth(gain)) return;
  if (launch_mode(s.stack, s.layout) != LaunchMode::eager) also += ", CUDA graphs off";
  search.add(
      {.id = "serial-exchange",
       .sentence =
           fmt::format("Nothing runs beside the experts' exchanges, which show {} of the "
                       "step. Beside another microbatch's passes{}: {}.",
                       short_percent(search.share(Label::expert_comm)), also, faster_text(*gain)),
       .remedy = "overlap of expert exchanges" + also,
       .gain = gain,
       .evidence = fmt::format("both simulated; exchanges that are overlapped show {:.0f}% ({})",
                               100 * overlapped.get(), overlapped.source)});
}

// Work at the end of a step is not launches; fewer of them do not shorten it.
void host_bound(TrapSearch& search) {
  const Scenario& s = search.scenario();
  if (search.share(Label::host) < 0.05) return;
  Stack quick = with(s.stack, {.host_speed = 1e6});
  quick.host.step_overhead = s.stack.host.step_overhead;
  const double gain = search.gain_of(quick);
  if (gain < 0.05 || !search.worth(gain)) return;
  search.add(
      {.id = "host-bound",
       .sentence = fmt::format(
           "The device waits for the host {} of the step ({} an operation). Fewer and larger "
           "launches (graphs, larger microbatches, fused kernels) help: {} at most.",
           short_percent(search.share(Label::host)), to_text(s.stack.host.dispatch.get()),
           faster_text(gain)),
       .remedy = "fewer launches",
       .gain = gain,
       .at_most = true,
       .evidence = fmt::format("simulated with a host that takes no time; dispatch: {}",
                               s.stack.host.dispatch.source)});
}

}  // namespace

void find_software_traps(TrapSearch& search) {
  debug_wrappers(search);
  blocking_launches(search);
  debug_environment(search);
  old_release(search);
  serial_exchange(search);
  if (!eager_experts(search)) host_bound(search);
}

std::vector<Trap> find_traps(const Scenario& scenario, const TrapOptions& options) {
  TrapSearch search(scenario, options);
  find_software_traps(search);
  find_layout_traps(search);
  return std::move(search).sorted();
}

}  // namespace orrery
