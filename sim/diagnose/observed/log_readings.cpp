// SPDX-License-Identifier: Apache-2.0
// Reads symptoms off the steps and timers of a log.
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "sim/base/statistics.h"
#include "sim/diagnose/observed/observations.h"

namespace orrery {
namespace {

using observe::LoggedPhase;
using observe::LoggedStep;
using observe::RunLog;
using observe::StepMark;

// Timers of waiting for a batch, as programs name them.
bool is_data_timer(std::string_view name) {
  return name == "batch-generator" || name == "batch_generator" || name == "data_loading" ||
         name == "train_dataloader_next" || name == "data";
}

double mean_of(const LoggedPhase& phase) {
  if (!phase.ranks.empty()) {
    double sum = 0;
    for (const auto& [rank, time] : phase.ranks) sum += time.si();
    return sum / static_cast<double>(phase.ranks.size());
  }
  if (phase.least && phase.most) return (phase.least->si() + phase.most->si()) / 2;
  return phase.most ? phase.most->si() : 0;
}

// Seconds that a step waited for its batch, by step.
std::map<std::int64_t, double> data_waits(const RunLog& log) {
  std::map<std::int64_t, double> waits;
  for (const LoggedPhase& phase : log.phases)
    if (is_data_timer(phase.name) && phase.step) waits[*phase.step] = mean_of(phase);
  return waits;
}

// What the mean step is longer than the usual one, and of whom.
struct Occasional {
  double total = 0, saves = 0, stalls = 0;
  std::size_t steps = 0;
};

Occasional occasional_of(const RunLog& log, const std::map<std::int64_t, double>& waits,
                         double usual_wait) {
  Occasional out;
  const double usual = log.usual.median.si();
  const double far = std::max(3 * log.usual.deviation.si(), 0.1 * usual);
  for (const LoggedStep& step : log.steps) {
    if (!step.time || step.mark == StepMark::warm_up || step.mark == StepMark::evaluation) continue;
    ++out.steps;
    const double beyond = step.time->si() - usual;
    if (beyond < far && step.mark != StepMark::checkpoint) continue;
    out.total += beyond;
    if (step.mark == StepMark::checkpoint) out.saves += beyond;
    const auto wait = waits.find(step.step);
    if (wait != waits.end())
      out.stalls += std::min(beyond, std::max(0.0, wait->second - usual_wait));
  }
  return out;
}

// The median time of each rank in a timer that tells all of them.
std::vector<std::optional<double>> by_rank(const RunLog& log, std::string_view timer) {
  std::map<int, std::vector<double>> times;
  for (const LoggedPhase& phase : log.phases)
    if (phase.name == timer)
      for (const auto& [rank, time] : phase.ranks) times[rank].push_back(time.si());
  std::vector<std::optional<double>> out;
  for (const auto& [rank, values] : times) out.emplace_back(median(values));
  return out;
}

}  // namespace

void read_log(const RunLog& log, const RunState& healthy, Readings& readings) {
  if (log.usual.steps == 0) return;
  std::vector<std::optional<double>> forward = by_rank(log, "forward-compute");
  if (forward.size() > 1 && forward.size() == healthy.ranks.size()) {
    for (auto& time : forward) *time /= healthy.healthy_s;
    add_of_ranks(readings, Symptom::forward, forward);
  }
  std::vector<std::optional<double>> optimizer = by_rank(log, "optimizer");
  if (optimizer.size() > 1 && optimizer.size() == healthy.ranks.size() &&
      !healthy.meets_in_optimizer) {
    for (auto& time : optimizer) *time = std::log(std::max(1e-9, *time));
    add_of_ranks(readings, Symptom::optimizer_timer, optimizer);
  }
  const auto add = [&](Symptom symptom, double value, double noise = 0) {
    readings.push_back({.symptom = symptom, .value = value, .noise = noise});
  };
  const std::map<std::int64_t, double> waits = data_waits(log);
  std::vector<double> each;
  for (const auto& [step, wait] : waits) each.push_back(wait);
  const double usual_wait = each.empty() ? 0 : median(each);
  if (!each.empty()) add(Symptom::data, usual_wait / healthy.healthy_s);
  const Occasional occasional = occasional_of(log, waits, usual_wait);
  const double share = occasional.total /
                       static_cast<double>(std::max<std::size_t>(1, occasional.steps)) /
                       healthy.healthy_s;
  add(Symptom::occasional, share);
  if (share > 0.01) {
    add(Symptom::saves, occasional.saves / occasional.total);
    if (!waits.empty()) add(Symptom::stalls, occasional.stalls / occasional.total);
  }
  if (log.usual.steps >= 6) {
    const double jitter = log.usual.deviation.si() / log.usual.median.si();
    // Few steps tell their own spread badly.
    add(Symptom::jitter, std::log(std::max(jitter, 0.001)),
        1 / std::sqrt(static_cast<double>(log.usual.steps)));
  }
}

}  // namespace orrery
