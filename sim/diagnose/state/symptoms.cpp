// SPDX-License-Identifier: Apache-2.0
// Reads symptoms off the state of a run.
#include "sim/diagnose/state/symptoms.h"

#include <algorithm>
#include <cmath>

#include "hw_models/catalog.h"
#include "sim/base/json/json.h"

namespace orrery {
namespace {

double log_of(double value) { return std::log(std::max(value, 1e-9)); }

double of_rank(const RunState& s, Symptom symptom, const RankState& r) {
  for (const KernelClass& time : kernel_classes)
    if (time.symptom == symptom) return log_of(r.*time.seconds);
  switch (symptom) {
    case Symptom::clock:
      return log_of(r.clock);
    case Symptom::wait:
      return r.wait_s / s.healthy_s;
    case Symptom::late:
    case Symptom::exposed:
      return r.exposed_s / s.healthy_s;
    case Symptom::idle:
      return r.idle_s / s.healthy_s;
    case Symptom::forward:
      return r.forward_s / s.healthy_s;
    case Symptom::work:
      return log_of(r.work);
    case Symptom::foreign_memory:
      return r.foreign_memory_gb;
    case Symptom::suspended:
      return r.suspended;
    case Symptom::alone:
      return r.alone_s / s.healthy_s;
    case Symptom::optimizer_timer:
      return log_of(r.optimizer_s);
    default:
      return 0;
  }
}

double least_exposed(const RunState& s) {
  double least = s.ranks.front().exposed_s;
  for (const RankState& r : s.ranks) least = std::min(least, r.exposed_s);
  return least / s.healthy_s;
}

double of_run(const RunState& s, Symptom symptom) {
  switch (symptom) {
    case Symptom::step:
      return log_of(s.step_s / s.healthy_s);
    case Symptom::occasional:
      return s.occasional_s / s.healthy_s;
    case Symptom::saves:
      return s.saves;
    case Symptom::stalls:
      return s.stalls;
    case Symptom::data:
      return s.data_s / s.healthy_s;
    case Symptom::jitter:
      return log_of(s.jitter);
    case Symptom::link:
      return log_of(s.link);
    case Symptom::network:
      return log_of(s.network);
    case Symptom::call_spread:
      return log_of(s.profiled.call_spread);
    case Symptom::call_bytes:
      return log_of(s.call_bytes);
    case Symptom::fp32:
      return s.fp32;
    case Symptom::host_waits:
      return log_of(1 + s.host_waits);
    case Symptom::allocations:
      return log_of(1 + s.allocations);
    case Symptom::launching:
      return s.launching;
    case Symptom::exposed:
      return least_exposed(s);
    default:
      return 0;
  }
}

// What chance adds to the differences of ranks in such a state.
double chance_of(const Reading& reading, const RunState& state) {
  switch (reading.symptom) {
    case Symptom::wait:
    case Symptom::late:
      return state.unknown.uneven_s / state.healthy_s;
    case Symptom::idle:
      return std::hypot((reading.rank < 0 ? 0.4 : 1) * state.unknown.uneven_s / state.healthy_s,
                        state.unknown.host);
    case Symptom::alone:
      return state.unknown.alone_s ? 1 : 0;
    case Symptom::exposed:
      return 0.4 * state.unknown.uneven_s / state.healthy_s;
    case Symptom::forward:
      return state.meets_in_forward ? 0 : state.unknown.uneven_s / state.healthy_s;
    case Symptom::clock:
      return state.unknown.clock;
    case Symptom::launching:
      return state.unknown.launching;
    case Symptom::jitter:
      return state.unknown.jitter;
    case Symptom::call_spread:
      return state.unknown.call_spread;
    case Symptom::network:
      return state.unknown.network;
    case Symptom::attention:
      return reading.rank < 0 ? state.unknown.attention : 0;
    case Symptom::memory_bound:
      return reading.rank < 0 ? 0 : state.unknown.memory_bound;
    case Symptom::work:
      return reading.rank < 0 ? 0 : state.unknown.work;
    default:
      return 0;
  }
}

// What another run than the predicted has in its place. Shares are of the predicted step, and go
// with the step.
double of_other_parts(const Reading& reading, const RunState& state, double base) {
  if (state.unknown.parts <= 0) return 0;
  const double step = state.step_s / state.healthy_s;
  switch (reading.symptom) {
    case Symptom::products:
    case Symptom::attention:
    case Symptom::memory_bound:
    case Symptom::optimizer:
      return reading.rank < 0 ? state.unknown.parts : 0;
    case Symptom::call_bytes:
      return state.unknown.parts;
    case Symptom::exposed:
    case Symptom::wait:
    case Symptom::late:
    case Symptom::idle:
    case Symptom::forward:
      return state.unknown.parts * step;
    case Symptom::occasional:
    case Symptom::data:
      return base * step;
    default:
      return 0;
  }
}

bool is_of_ranks(Symptom symptom) { return symptom >= Symptom::products; }

std::vector<SymptomNoise> load_noise() {
  const JsonValue file = JsonValue::load(data_root() / "sim/diagnose/catalog/symptoms.json");
  std::vector<SymptomNoise> noise(symptom_count);
  for (std::size_t i = 0; i < symptom_count; ++i) {
    const JsonValue row = file.at(symptom_text[static_cast<Symptom>(i)]);
    row.expect_only({"title", "base", "rank", "relative", "why"});
    const auto figure = [&](const char* key) {
      const auto value = row.find(key);
      return value ? value->number() : 0.0;
    };
    noise[i] = {row.at("title").text(), figure("base"), figure("rank"), figure("relative")};
  }
  return noise;
}

}  // namespace

const std::vector<SymptomNoise>& symptom_noise() {
  static const std::vector<SymptomNoise> noise = load_noise();
  return noise;
}

double expected(const RunState& state, Symptom symptom, int rank) {
  if (!is_of_ranks(symptom)) return of_run(state, symptom);
  double mean = 0;
  for (const RankState& r : state.ranks) mean += of_rank(state, symptom, r);
  mean /= static_cast<double>(state.ranks.size());
  if (rank < 0) return mean;
  const double own = of_rank(state, symptom, state.ranks.at(static_cast<std::size_t>(rank)));
  return is_of_each_rank(symptom) ? own : own - mean;
}

double deviation_of(const Reading& reading, double added, double healthy, const RunState& state) {
  const SymptomNoise& noise = symptom_noise()[static_cast<std::size_t>(reading.symptom)];
  const double own = reading.rank < 0 ? noise.base : noise.rank;
  // Slices of time are few: their number is known to its own root.
  const double quantum =
      reading.symptom == Symptom::suspended ? reading.slice * std::max(0.0, added) : 0;
  return std::sqrt(own * own + quantum + std::pow(noise.relative * added, 2) +
                   std::pow(noise.relative * healthy, 2) + reading.noise * reading.noise +
                   std::pow(chance_of(reading, state), 2) +
                   std::pow(of_other_parts(reading, state, noise.base), 2));
}

void add_of_ranks(Readings& readings, Symptom symptom,
                  const std::vector<std::optional<double>>& values) {
  double sum = 0;
  int count = 0;
  for (const auto& value : values)
    if (value) {
      sum += *value;
      ++count;
    }
  if (count == 0) return;
  const double mean = sum / count;
  const bool each = is_of_each_rank(symptom) && count > 1;
  if (!each) readings.push_back({.symptom = symptom, .rank = -1, .value = mean});
  if (count < 2) return;
  for (std::size_t r = 0; r < values.size(); ++r)
    if (values[r])
      readings.push_back({.symptom = symptom,
                          .rank = static_cast<int>(r),
                          .value = *values[r] - (each ? 0 : mean)});
}

}  // namespace orrery
