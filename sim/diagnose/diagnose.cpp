// SPDX-License-Identifier: Apache-2.0
// Joins gap, findings and actions.
#include "sim/diagnose/diagnose.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/statistics.h"
#include "sim/diagnose/cause/priors.h"
#include "sim/diagnose/observed/held_clocks.h"

namespace orrery {
namespace {

// Causes below this probability are not acted on.
constexpr double least_probability = 0.05;
// The first cause is told apart from the second when it is so many times as probable.
constexpr double told_apart = 4;

const Cause& cause_of(CauseKind kind) { return causes()[static_cast<std::size_t>(kind)]; }

// "rank {rank}" as the rank, or as one of ranks that were not seen one by one.
std::string at_rank(std::string text, int rank) {
  const std::string place = "rank {rank}";
  const std::string name = rank < 0 ? "one rank" : fmt::format("rank {}", rank);
  for (std::size_t at = text.find(place); at != std::string::npos; at = text.find(place))
    text.replace(at, place.size(), name);
  return text;
}

// The prediction's own 90% range as a standard deviation of a logarithm.
double noise_of(const Prediction& prediction) {
  constexpr double without_range = 0.1;  // judged: blind predictions are off by about so much
  if (!prediction.range || prediction.low <= Seconds{}) return without_range;
  return std::log(prediction.high / prediction.low) / (2 * normal_95);
}

// The cause's action, and the change in the words of the program that ran.
std::string action_of(const Finding& finding, const Stack& stack) {
  const Cause& cause = cause_of(finding.kind);
  std::string text = at_rank(cause.action, finding.rank);
  if (!finding.reason_action.empty()) text = finding.reason_action;
  const auto words = cause.settings.find(std::string(to_text(stack.launcher)));
  if (words != cause.settings.end()) text += action_in_words + words->second + ".";
  return text;
}

std::vector<Action> actions_of(const std::vector<Finding>& findings, const Stack& stack) {
  std::vector<Action> actions;
  for (const Finding& f : findings)
    if (f.kind != CauseKind::healthy && f.probability >= least_probability)
      actions.push_back({.cause = f.kind,
                         .sentence = action_of(f, stack),
                         .gain = f.faulty_s / std::max(1e-9, f.healthy_s) - 1,
                         .probability = f.probability});
  std::stable_sort(actions.begin(), actions.end(), [](const Action& a, const Action& b) {
    return a.gain * a.probability > b.gain * b.probability;
  });
  // What gains nothing by itself comes last: to check what was predicted.
  return actions;
}

// Places among the ranks that were seen become the ranks' numbers in the run. Of several ranks of
// which one was seen, nobody knows which it is.
void number_ranks(Finding& finding, const std::vector<int>& ranks, bool alone) {
  const auto number = [&](int place) {
    return place < 0 ? place : ranks.at(static_cast<std::size_t>(place));
  };
  finding.rank = ranks.size() > 1 || alone ? number(finding.rank) : -1;
  for (Match& match : finding.matches) match.reading.rank = number(match.reading.rank);
}

// Why clocks are low, where counters tell it: of the finding's own rank, where they tell as many
// devices as ranks were seen, else of all.
void add_reason(Finding& finding, const std::vector<HeldDevice>& held, std::size_t ranks,
                std::optional<Watts> limit) {
  if (finding.kind != CauseKind::low_clock && finding.kind != CauseKind::low_clocks) return;
  std::vector<HeldDevice> devices = held;
  if (finding.kind == CauseKind::low_clock && held.size() == ranks && finding.rank >= 0)
    devices = {held[static_cast<std::size_t>(finding.rank)]};
  const auto reason = devices.empty() ? std::nullopt : reason_of(devices, limit);
  if (!reason) return;
  finding.reason = reason->words;
  finding.reason_action = reason->action;
}

std::string to_measure(const std::vector<Finding>& findings) {
  const Finding &first = findings[0], &second = findings[1];
  if (first.probability > told_apart * second.probability || second.probability < least_probability)
    return "";
  const Finding& unclear = second.kind == CauseKind::healthy ? first : second;
  return fmt::format(
      "These files are not enough to tell \"{}\" ({:.0f}%) from \"{}\" ({:.0f}%); measure this: "
      "{}.",
      title_of(first), 100 * first.probability, title_of(second), 100 * second.probability,
      at_rank(cause_of(unclear.kind).measure, unclear.rank));
}

// What the log prints of the run, against what was predicted: one sentence, or none.
std::vector<std::string> unlike(const observe::RunLog& log, const Scenario& s) {
  const std::tuple<const char*, std::optional<std::int64_t>, std::int64_t> told[] = {
      {"GPUs", log.world_size, s.cluster.gpus},
      {"TP", log.tensor, s.layout.tp},
      {"PP", log.pipeline, s.layout.pp},
      {"CP", log.context, s.layout.cp}};
  std::string in_log, predicted;
  for (const auto& [name, seen, asked] : told) {
    if (!seen || *seen == asked) continue;
    in_log += fmt::format("{}{} {}", in_log.empty() ? "" : ", ", name, *seen);
    predicted += fmt::format("{}{} {}", predicted.empty() ? "" : ", ", name, asked);
  }
  if (in_log.empty()) return {};
  return {fmt::format("{} is of another run: it tells {}, predicted is {}.", log.file, in_log,
                      predicted)};
}

// A step that the user gives in place of the log's: one sentence, or none.
std::vector<std::string> overruled(const Observations& run) {
  const auto logged = run.overruled_step();
  if (!logged) return {};
  return {fmt::format("{} tells steps of {}, give or take {}; {} is used, as --step says.",
                      run.log->file, to_text(Seconds(*logged)), to_text(run.log->usual.deviation),
                      to_text(Seconds(*run.step_s)))};
}

}  // namespace

std::string title_of(const Finding& finding) {
  const std::string title = at_rank(cause_of(finding.kind).title, finding.rank);
  return finding.reason.empty() ? title : fmt::format("{} ({})", title, finding.reason);
}

const std::string& what_to_check() { return cause_of(CauseKind::another_run).action; }

Diagnosis diagnose(const Scenario& scenario, const Prediction& prediction,
                   const Observations& observations) {
  Diagnosis out;
  const auto gpus = static_cast<std::size_t>(std::max<std::int64_t>(1, scenario.cluster.gpus));
  RunState healthy = healthy_state(scenario, prediction, ranks_seen(observations, gpus).size());
  healthy.profiled.loader_is_unnamed = !name_loader(observations.profiles);
  healthy.profiled.products_hold_slices = !tell_slices_of_products(observations.profiles);
  healthy.profiled.exposed_wait =
      share_of_wait_exposed(observations.profiles, observations.told_step(), healthy);
  const auto exchanged = exchanged_of(observations.profiles, scenario);
  if (exchanged)
    for (RankState& rank : healthy.ranks) rank.exposed_s += rank.bubble_s;
  out.seen = seen_of(observations, healthy, scenario);
  out.links = tested_links(observations.tests, scenario, out.notes);
  read_tested_links(out.links, out.seen.readings);
  out.gap = gap_of(healthy, out.seen.readings, exchanged);
  out.findings =
      judge(healthy, noise_of(prediction), out.seen, simulate_links(scenario), priors_of(scenario));
  const std::vector<HeldDevice> held = held_devices(observations.counters, gpus);
  for (Finding& finding : out.findings) {
    add_reason(finding, held, out.seen.ranks.size(), makers_limit(scenario));
    number_ranks(finding, out.seen.ranks, healthy.alone);
  }
  out.healthy = out.first().kind == CauseKind::healthy;
  out.another_run = out.first().kind == CauseKind::another_run;
  if (is_fault(out.first().kind)) out.actions = actions_of(out.findings, scenario.stack);
  if (is_training(scenario.job.task)) out.traps = find_traps(scenario);
  out.to_measure = to_measure(out.findings);
  if (!prediction.memory.fits)
    out.notes.emplace_back(
        "The prediction says that this layout does not fit: check that it is what ran.");
  const auto add = [&](const std::vector<std::string>& notes) {
    out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  };
  add(observations.notes);
  if (observations.log) {
    out.unlike = unlike(*observations.log, scenario);
    out.log_step_s = observations.overruled_step();
    for (const std::string& sentence : overruled(observations)) out.unlike.push_back(sentence);
    add(out.unlike);
    add(observations.log->notes);
  }
  for (const auto& profile : observations.profiles) add(profile.notes);
  for (const auto& log : observations.counters) add(log.notes);
  return out;
}

}  // namespace orrery
