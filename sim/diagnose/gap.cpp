// SPDX-License-Identifier: Apache-2.0
// Splits the gap between a run and its prediction by what the files show.
#include "sim/diagnose/gap.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace orrery {
namespace {

class Parts {
 public:
  Parts(const RunState& healthy, const Readings& readings)
      : healthy_(healthy), readings_(readings) {}

  std::optional<double> value(Symptom symptom, int rank = -1) const {
    for (const Reading& r : readings_)
      if (r.symptom == symptom && r.rank == rank) return r.value;
    return std::nullopt;
  }
  // The rank that waits least for others: they wait for it.
  int awaited() const {
    int rank = -1;
    double least = 0;
    for (const Reading& r : readings_)
      if (r.symptom == Symptom::late && r.rank >= 0 && (rank < 0 || r.value < least)) {
        rank = r.rank;
        least = r.value;
      }
    return rank;
  }
  // Seconds of a class of kernels beyond the predicted: of the mean rank, and of the awaited one
  // beyond the mean.
  std::pair<double, double> kernels(Symptom symptom, double predicted_s) const {
    const auto mean = value(symptom);
    if (!mean) return {0, 0};
    const double seen = std::exp(*mean);
    const int rank = awaited();
    const double own = rank < 0 ? 0 : value(symptom, rank).value_or(0);
    return {seen - predicted_s, seen * std::expm1(own)};
  }
  // Seconds of slices that kernels of the awaited rank, or of the one that was seen, lost to
  // another process; those of products are in their own time where no reading tells them apart.
  double slices(const RunState& plan) const {
    const int rank = std::max(0, awaited());
    const auto whole = value(Symptom::suspended);
    const double rate = whole ? *whole : value(Symptom::suspended, rank).value_or(0);
    double seconds = 0;
    for (const auto& [symptom, part] : kernel_classes) {
      if (symptom == Symptom::products && plan.profiled.products_hold_slices) continue;
      const auto mean = value(symptom);
      if (mean) seconds += std::exp(*mean + value(symptom, rank).value_or(0));
    }
    return rate * seconds;
  }
  // Seconds without work of the awaited rank's device, or of the one that was seen.
  std::optional<double> idle() const {
    const auto mean = value(Symptom::idle);
    const auto share = mean ? mean : value(Symptom::idle, std::max(0, awaited()));
    return share ? std::optional(*share * healthy_.healthy_s) : std::nullopt;
  }

 private:
  const RunState& healthy_;
  const Readings& readings_;
};

}  // namespace

Gap gap_of(const RunState& healthy, const Readings& readings, std::optional<double> exchanged) {
  const Parts of(healthy, readings);
  Gap gap{.predicted_s = healthy.healthy_s,
          .bubble_s = healthy.ranks.front().bubble_s,
          .exchanged_s = exchanged};
  gap.usual_s = healthy.healthy_s * std::exp(of.value(Symptom::step).value_or(0));
  const double occasional = of.value(Symptom::occasional).value_or(0) * healthy.healthy_s;
  gap.measured_s = gap.usual_s + occasional;
  const auto add = [&](const char* key, const char* title, double seconds) {
    if (seconds != 0) gap.parts.push_back({key, title, seconds});
  };
  const RankState& plan = healthy.ranks.front();
  constexpr std::array<std::pair<const char*, const char*>, kernel_classes.size()> named = {
      {{"products", "matrix products"},
       {"attention", "attention"},
       {"memory_bound", "memory-bound kernels"},
       {"optimizer", "optimizer"}}};
  double skew = 0;
  for (std::size_t i = 0; i < kernel_classes.size(); ++i) {
    const auto& [symptom, part] = kernel_classes[i];
    const auto [mean, awaited] = of.kernels(symptom, plan.*part);
    add(named[i].first, named[i].second, mean);
    skew += awaited;
  }
  add("imbalance", "kernels of the rank that others wait for, beyond the mean rank", skew);
  if (const auto shown = of.value(Symptom::exposed)) {
    const double exposed = *shown * healthy.healthy_s;
    const double waited = std::min(exposed, exchanged.value_or(0));
    const double planned = exchanged ? plan.bubble_s + plan.exchange_s : 0;
    add("bubble", "sends and receives of the pipeline, with its bubble", waited - planned);
    add("communication", "communication that nothing hides",
        exposed - waited - (plan.exposed_s - planned));
  }
  add("slices", "slices of time that kernels lose to another process", of.slices(healthy));
  if (const auto idle = of.idle()) {
    // Waits for data that the log tells and a profile does not name are a part of their own.
    const double waits = healthy.profiled.loader_is_unnamed
                             ? of.value(Symptom::data).value_or(0) * healthy.healthy_s
                             : 0;
    add("host", "device without work", *idle - waits - plan.idle_s);
  }
  add("data", "waiting for data", of.value(Symptom::data).value_or(0) * healthy.healthy_s);
  const double saves = of.value(Symptom::saves).value_or(0) * occasional;
  const double stalls = of.value(Symptom::stalls).value_or(0) * occasional;
  add("checkpoint", "steps that save a checkpoint", saves);
  add("late_batches", "steps that wait for a late batch", stalls);
  add("slow_steps", "other slow steps", occasional - saves - stalls);
  double explained = 0;
  for (const GapPart& part : gap.parts) explained += part.seconds;
  add("unexplained", "not explained by these files", gap.seconds() - explained);
  return gap;
}

}  // namespace orrery
