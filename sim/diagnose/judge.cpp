// SPDX-License-Identifier: Apache-2.0
// Weighs the causes: likelihoods of readings under each, over strengths and ranks.
#include "sim/diagnose/judge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace orrery {
namespace {

constexpr int strengths = 32;
// Times of single ranks err more often than a normal distribution says: Student's t with so many
// degrees of freedom. What is predicted of kernels has few outliers, what is counted next to none.
constexpr double degrees = 4, degrees_of_kernels = 12, degrees_of_counts = 30;
// A line of a log that names a cause is there in half of the runs that have it, and in one of a
// hundred that do not. A profile shows a kernel that runs through steps in most runs whose
// processors something keeps: another process under MPS is what else could. Else it is next to
// never there: of 120 profiles of other runs of validation/faults in none. A port whose wrong
// symbols are more than any link is allowed is out of order, whether or not a run feels it. Judged.
struct Naming {
  double mine = 0.5, otherwise = 0.01;
};
Naming naming_of(const std::string& trouble) {
  if (trouble == kernel_through_steps || trouble == collectives_on_hosts)
    return {.mine = 0.8, .otherwise = 0.001};
  // Without overlap no collective ever meets a kernel; of 61 healthy training runs of
  // validation/faults none is so. Judged.
  if (trouble == collectives_alone) return {.mine = 0.8, .otherwise = 0.01};
  // So is one that is slower than its like: NICs of one kind do not differ.
  if (trouble == port_beyond_allowed || trouble == port_is_slow)
    return {.mine = 0.5, .otherwise = 0.001};
  // Networks mark packets in healthy runs, too, where many ranks send to one.
  if (trouble == port_is_congested) return {.mine = 0.5, .otherwise = 0.05};
  return {};
}
bool is_of_profiles(const std::string& trouble) {
  return trouble == kernel_through_steps || trouble == collectives_on_hosts ||
         trouble == older_attention || trouble == older_products || trouble == collectives_alone;
}
// A class of kernels that no profile shows is predicted to a tenth of its time. Judged.
constexpr double unseen_kernels = 0.1;

double log_density(double difference, double deviation, double free) {
  const double z = difference / deviation;
  return -std::log(deviation) - 0.5 * (free + 1) * std::log1p(z * z / free);
}

double degrees_of(const Reading& reading) {
  switch (reading.symptom) {
    case Symptom::call_bytes:
    case Symptom::fp32:
    case Symptom::host_waits:
    case Symptom::allocations:
    case Symptom::work:
    case Symptom::suspended:
    case Symptom::alone:
      return degrees_of_counts;
    default:
      return is_kernel_time(reading.symptom) && reading.rank < 0 ? degrees_of_kernels : degrees;
  }
}

// The step of the state, moved by how much longer its kernels took than the state says; and how
// well it is known.
struct StepGuess {
  double log_ratio = 0, deviation = 0;
  double alone_s = 0;                                 // as seen, where the cause does not say
  double moved_s = 0;                                 // seconds, of all classes
  std::array<double, kernel_classes.size()> moved{};  // of each
};

// Classes of kernels in passes, which collectives run beside: all but the optimizer, the last.
constexpr std::size_t pass_classes = kernel_classes.size() - 1;
static_assert(kernel_classes[pass_classes].symptom == Symptom::optimizer);

// Hidden collectives cost the kernels beside them. A prediction counts that as communication that
// shows, a profile shows longer kernels: what the one lacks (`less_s`) and the others have more is
// one time.
void count_once(StepGuess& guess, double less_s) {
  double longer_s = 0;
  for (std::size_t i = 0; i < pass_classes; ++i) longer_s += std::max(0.0, guess.moved[i]);
  if (less_s <= 0 || longer_s <= 0) return;
  const double left = 1 - std::min(1.0, less_s / longer_s);
  for (std::size_t i = 0; i < pass_classes; ++i)
    if (guess.moved[i] > 0) guess.moved[i] *= left;
}

// Causes whose seconds a profile shows by itself: how much longer kernels of one rank are than
// those of others, and what a loader takes. The step would add what else the prediction is off by.
bool is_measured(CauseKind kind) {
  using enum CauseKind;
  return kind == slow_gpu || kind == low_clock || kind == imbalance || kind == data_stall;
}

// A reading as a state has it.
struct Expectation {
  double value = 0, deviation = 0;
};

class Weighing {
 public:
  Weighing(const RunState& healthy, double step_noise, const Seen& seen)
      : healthy_(healthy), step_noise_(step_noise), seen_(seen) {}

  StepGuess guess(const RunState& state) const {
    StepGuess out;
    double unknown = 0;
    for (std::size_t i = 0; i < kernel_classes.size(); ++i) {
      const auto& [symptom, part] = kernel_classes[i];
      double seconds = 0;
      for (const RankState& r : state.ranks) seconds += r.*part;
      seconds /= static_cast<double>(state.ranks.size());
      const Reading* reading = mean_of(symptom);
      if (reading != nullptr)
        out.moved[i] = seconds * std::expm1(reading->value - expected(state, symptom, -1));
      else
        unknown += std::pow(seconds, 2);
    }
    if (const Reading* shown = mean_of(Symptom::exposed))
      count_once(out,
                 (expected(healthy_, Symptom::exposed, -1) - shown->value) * healthy_.healthy_s);
    out.moved_s = std::accumulate(out.moved.begin(), out.moved.end(), 0.0);
    if (state.unknown.alone_s)
      for (const Reading& reading : seen_.readings)
        if (reading.symptom == Symptom::alone)
          out.alone_s = std::max(out.alone_s, reading.value * state.healthy_s);
    out.moved_s += out.alone_s;
    const bool profiled = mean_of(Symptom::products) != nullptr;
    const double base = symptom_noise()[static_cast<std::size_t>(Symptom::step)].base;
    out.deviation = profiled ? std::hypot(base, unseen_kernels * std::sqrt(unknown) / state.step_s,
                                          state.unknown.host)
                             : std::max(base, step_noise_);
    out.deviation = std::hypot(out.deviation, state.unknown.parts);
    out.log_ratio = std::log((state.step_s + out.moved_s) / state.healthy_s);
    return out;
  }

  double log_likelihood(const RunState& state) const {
    double sum = 0;
    for (const Reading& reading : seen_.readings) sum += log_likelihood(state, reading);
    return sum;
  }
  // Between strengths of one cause: noise that grew with the strength would favour weak ones.
  double fit(const RunState& state, CauseKind kind) const {
    double sum = 0;
    const bool measured = mean_of(Symptom::products) != nullptr && is_measured(kind);
    for (const Reading& reading : seen_.readings)
      if (!measured || reading.symptom != Symptom::step)
        sum += density(reading, expectation(state, reading, reading.value));
    return sum;
  }

  double of_words(const Cause& cause) const {
    double sum = 0;
    bool any = false;
    for (const std::string& trouble : seen_.troubles) {
      const bool mine =
          std::find(cause.troubles.begin(), cause.troubles.end(), trouble) != cause.troubles.end();
      any |= mine;
      sum += std::log(mine ? naming_of(trouble).mine : naming_of(trouble).otherwise);
    }
    if (any) return sum;
    // Of files that could have named it none does.
    double unnamed = 1;
    for (const std::string& trouble : cause.troubles)
      if (is_of_profiles(trouble) ? seen_.profiles_can_name : seen_.can_name)
        unnamed = std::min(unnamed, 1 - naming_of(trouble).mine);
    return sum + std::log(unnamed);
  }

  double misfit(const RunState& state) const {
    double sum = 0;
    for (const Reading& reading : seen_.readings) {
      const Expectation known = expectation(state, reading);
      sum += std::pow((reading.value - known.value) / known.deviation, 2);
    }
    return seen_.readings.empty() ? 0 : sum / static_cast<double>(seen_.readings.size());
  }

  std::vector<Match> matches(const RunState& state) const {
    std::vector<Match> all;
    for (const Reading& reading : seen_.readings)
      all.push_back({.reading = reading,
                     .expected = expectation(state, reading).value,
                     .healthy = expectation(healthy_, reading).value,
                     .gain = log_likelihood(state, reading) - log_likelihood(healthy_, reading)});
    std::stable_sort(all.begin(), all.end(),
                     [](const Match& a, const Match& b) { return a.gain > b.gain; });
    return all;
  }

 private:
  double log_likelihood(const RunState& state, const Reading& reading) const {
    return density(reading, expectation(state, reading));
  }
  // `strength`: of which the noise is a share; else the state's own value.
  Expectation expectation(const RunState& state, const Reading& reading,
                          std::optional<double> strength = {}) const {
    if (reading.symptom == Symptom::step) {
      const StepGuess step = guess(state);
      return {step.log_ratio, std::hypot(step.deviation, reading.noise)};
    }
    const double value = expected(state, reading.symptom, reading.rank);
    const double healthy = expected(healthy_, reading.symptom, reading.rank);
    const double added = strength.value_or(value) - healthy;
    return {value, deviation_of(reading, added, healthy, state)};
  }
  double density(const Reading& reading, const Expectation& known) const {
    const double whole =
        log_density(reading.value - known.value, known.deviation, degrees_of(reading));
    // Differences of n ranks to their mean are n - 1 figures.
    const auto ranks = static_cast<double>(std::max<std::size_t>(2, seen_.ranks.size()));
    const bool own = reading.rank < 0 || is_of_each_rank(reading.symptom);
    return own ? whole : whole * (ranks - 1) / ranks;
  }
  const Reading* mean_of(Symptom symptom) const {
    for (const Reading& reading : seen_.readings)
      if (reading.symptom == symptom && reading.rank < 0) return &reading;
    return nullptr;
  }

  const RunState& healthy_;
  double step_noise_;
  const Seen& seen_;
};

struct Weighed {
  double log_weight = 0;
  double strength = 0;
  int rank = -1;
  int form = 0;
};

double strength_at(const Cause& cause, int i) {
  if (cause.most <= cause.least) return cause.least;
  return cause.least * std::pow(cause.most / cause.least, (i + 0.5) / strengths);
}

// All strengths and ranks of a cause, with prior times likelihood.
std::vector<Weighed> weigh(const Cause& cause, double prior, const RunState& healthy,
                           const Weighing& weighing, const LinkSteps& links, std::size_t ranks) {
  std::vector<Weighed> all;
  if (!is_possible(cause.kind, healthy, links)) return all;
  const std::size_t places = cause.of_rank ? ranks : 1;
  const int steps = cause.most > cause.least ? strengths : 1, forms = forms_of(cause.kind, healthy);
  const double share = prior / static_cast<double>(places) / steps / forms;
  const double words = weighing.of_words(cause);
  for (std::size_t rank = 0; rank < places; ++rank)
    for (int i = 0; i < steps * forms; ++i) {
      const double x = strength_at(cause, i / forms);
      const RunState state = with_fault(healthy, cause.kind, x, rank, links, i % forms);
      all.push_back({.log_weight = std::log(share) + words + weighing.log_likelihood(state),
                     .strength = x,
                     .rank = cause.of_rank ? static_cast<int>(rank) : -1,
                     .form = i % forms});
    }
  return all;
}

// By how much passes' kernels were faster than the state says: with nothing beside them they keep
// the processors and the memory that collectives take from them.
double freed(const StepGuess& guess) {
  double seconds = 0;
  for (std::size_t i = 0; i < pass_classes; ++i) seconds += std::min(0.0, guess.moved[i]);
  return seconds;
}

// Classes of kernels whose time the fault decides, so that what they took beyond the state is its
// own: how far it goes with a class is not known beforehand.
double moved_by(CauseKind kind, const RunState& state, const StepGuess& guess) {
  switch (kind) {
    case CauseKind::busy_gpu:
      return state.profiled.products_hold_slices ? guess.moved[0] : 0;
    case CauseKind::fp32_by_mistake:
      return guess.moved[0] + guess.moved[1] + guess.moved[2];
    case CauseKind::checked_calls:
      return guess.moved[2];
    case CauseKind::launch_blocking:
    case CauseKind::one_bucket:
    case CauseKind::no_overlap:
      return state.alone ? 0 : freed(guess);
    // Slow collectives run beside few kernels: as far as that was predicted, and was seen.
    case CauseKind::slow_nic:
    case CauseKind::bad_cable:
    case CauseKind::colliding_flows:
    case CauseKind::slow_scale_up:
      return std::max(freed(guess), -state.unknown.freed_s);
    default:
      return 0;
  }
}

// The strength that fits best, between the neighbours of the best of the grid.
double best_strength(const Cause& cause, const Weighed& best, const RunState& healthy,
                     const Weighing& weighing, const LinkSteps& links) {
  constexpr int steps = 24, wide = 2;  // of the grid, each way
  if (cause.most <= cause.least) return best.strength;
  const double apart = std::pow(cause.most / cause.least, 1.0 / strengths);
  double found = best.strength, most = -std::numeric_limits<double>::infinity();
  for (int i = -wide * steps; i <= wide * steps; ++i) {
    const double x = best.strength * std::pow(apart, static_cast<double>(i) / steps);
    const RunState state = with_fault(
        healthy, cause.kind, x, static_cast<std::size_t>(std::max(0, best.rank)), links, best.form);
    const double weight = weighing.fit(state, cause.kind);
    if (weight > most) {
      most = weight;
      found = x;
    }
  }
  return found;
}

Finding best_of(const Cause& cause, const std::vector<Weighed>& all, const RunState& healthy,
                const Weighing& weighing, const LinkSteps& links, double total) {
  Finding finding{.kind = cause.kind};
  const auto coarse = std::max_element(
      all.begin(), all.end(),
      [](const Weighed& a, const Weighed& b) { return a.log_weight < b.log_weight; });
  finding.rank = coarse->rank;
  finding.strength = best_strength(cause, *coarse, healthy, weighing, links);
  for (const Weighed& w : all) finding.probability += std::exp(w.log_weight - total);
  const RunState state =
      with_fault(healthy, cause.kind, finding.strength,
                 static_cast<std::size_t>(std::max(0, finding.rank)), links, coarse->form);
  const StepGuess guess = weighing.guess(state);
  finding.faulty_s = state.step_s + state.occasional_s + guess.moved_s;
  finding.healthy_s = finding.faulty_s - (state.step_s + state.occasional_s - healthy.step_s) -
                      moved_by(cause.kind, state, guess) - guess.alone_s;
  if (!is_fault(cause.kind)) finding.healthy_s = finding.faulty_s;
  finding.misfit = weighing.misfit(state);
  finding.matches = weighing.matches(state);
  return finding;
}

double log_sum(const std::vector<std::vector<Weighed>>& all) {
  double most = -std::numeric_limits<double>::infinity();
  for (const auto& one : all)
    for (const Weighed& w : one) most = std::max(most, w.log_weight);
  double sum = 0;
  for (const auto& one : all)
    for (const Weighed& w : one) sum += std::exp(w.log_weight - most);
  return most + std::log(sum);
}

}  // namespace

std::vector<Finding> judge(const RunState& healthy, double step_noise, const Seen& seen,
                           const LinkSteps& links, const std::vector<double>& priors) {
  const Weighing weighing(healthy, step_noise, seen);
  std::vector<std::vector<Weighed>> all;
  for (std::size_t i = 0; i < causes().size(); ++i)
    all.push_back(weigh(causes()[i], priors.at(i), healthy, weighing, links, seen.ranks.size()));
  const double total = log_sum(all);
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < causes().size(); ++i)
    if (!all[i].empty())
      findings.push_back(best_of(causes()[i], all[i], healthy, weighing, links, total));
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.probability > b.probability;
  });
  return findings;
}

}  // namespace orrery
