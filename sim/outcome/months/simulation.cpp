// SPDX-License-Identifier: Apache-2.0
// Simulates the events of a job that fails, is recovered, waits for spares and goes on.
#include "sim/outcome/months/simulation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/parallel.h"
#include "sim/base/random.h"
#include "sim/base/statistics.h"
#include "sim/outcome/months/saves.h"

namespace orrery {
namespace {

// Hosts, domains and leaves under repair. Single hosts matter one by one only where a unit can do
// without some of its own.
class Repairs {
 public:
  Repairs(const GoodputCase& input, RandomStream& random)
      : input_(input), random_(random), waiting_(input.failures.size()) {
    if (input.repair_crews > 0) return;  // these start with nothing to do
    std::vector<double> arrivals;
    double rate = 0, longest = 0;
    for (std::size_t i = 0; i < input.failures.size(); ++i) {
      const FailureClass& failure = input.failures[i];
      const double repair = failure.repair.value.si();
      arrivals.push_back(mean_rate(failure, input.run) * failure.removed.value);
      rate += arrivals.back();
      if (arrivals.back() > 0) longest = std::max(longest, repair);
      // As many as there are at any time: arrivals within the mean of one repair, but none of a job
      // that waits already.
      for (double passed = random_.exponential(1); passed < arrivals.back() * repair && !too_many();
           passed += random_.exponential(1))
        add(i);
    }
    if (too_many()) settle(arrivals, rate, longest);
  }

  // What a job that often waits has under repair at any time: after many repairs.
  void settle(const std::vector<double>& arrivals, double rate, double repair) {
    constexpr double repairs = 6;
    for (double now = 0; now < repairs * repair;) {
      const double failing = too_many() ? 0 : rate;
      const double mending = this->rate();
      now += random_.exponential(1 / (failing + mending));
      double pick = random_.uniform() * (failing + mending) - mending;
      if (pick < 0) {
        finish_one();
        continue;
      }
      std::size_t which = 0;
      while (which + 1 < arrivals.size() && (pick -= arrivals[which]) >= 0) ++which;
      add(which);
    }
  }

  void add(std::size_t failure) {
    const BlastRadius blast = input_.failures[failure].blast;
    std::int64_t unit = 0;
    if (input_.units.slack > 0 && blast != BlastRadius::leaf)
      unit =
          static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(input_.units.count)));
    waiting_[failure].push_back(unit);
    ++count_;
    change(blast, unit, 1);
  }

  // Of the whole shop: its crews share the repairs evenly.
  double rate() const {
    double sum = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) sum += rate_of(i);
    return sum;
  }

  void finish_one() {
    double pick = random_.uniform() * rate();
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      pick -= rate_of(i);
      if (waiting_[i].empty() || (pick >= 0 && i + 1 < waiting_.size())) continue;
      const std::size_t which = random_.below(waiting_[i].size());
      std::swap(waiting_[i][which], waiting_[i].back());
      const std::int64_t unit = waiting_[i].back();
      waiting_[i].pop_back();
      --count_;
      change(input_.failures[i].blast, unit, -1);
      return;
    }
  }

  std::int64_t units_out() const { return out_; }
  // The job waits.
  bool too_many() const { return !input_.elastic && out_ > input_.spares; }

 private:
  double rate_of(std::size_t i) const {
    if (waiting_[i].empty()) return 0;
    const double mean = std::max(input_.failures[i].repair.value.si(), 1e-9);
    double served = 1;
    if (input_.repair_crews > 0 && count_ > input_.repair_crews)
      served = static_cast<double>(input_.repair_crews) / static_cast<double>(count_);
    return static_cast<double>(waiting_[i].size()) * served / mean;
  }

  void change(BlastRadius blast, std::int64_t unit, int by) {
    if (blast == BlastRadius::leaf) {
      out_ += by * input_.units.leaf;
      return;
    }
    if (input_.units.slack == 0) {
      out_ += by;
      return;
    }
    // A domain that is out counts for all of its hosts.
    std::int64_t& hosts = hosts_out_[unit];
    const bool was_lost = hosts > input_.units.slack;
    hosts += by * (blast == BlastRadius::domain ? input_.units.hosts : 1);
    const bool is_lost = hosts > input_.units.slack;
    out_ += static_cast<int>(is_lost) - static_cast<int>(was_lost);
    if (hosts == 0) hosts_out_.erase(unit);
  }

  const GoodputCase& input_;
  RandomStream& random_;
  std::vector<std::vector<std::int64_t>> waiting_;  // units, by kind of failure
  std::map<std::int64_t, std::int64_t> hosts_out_;
  std::int64_t count_ = 0, out_ = 0;
};

struct TrialResult {
  TimeShares shares{};
  double open = 0;  // time in which failures interrupt
  double units_out = 0;
  double failures = 0;
};

class Trial {
 public:
  Trial(const GoodputCase& input, const std::vector<GoodputLevel>& levels,
        const std::vector<double>& intervals, double age, RandomStream random)
      : input_(input),
        levels_(levels),
        random_(random),
        repairs_(input, random_),
        progress_(levels, intervals) {
    for (std::size_t i = 0; i < levels.size(); ++i)
      for (const LevelFailure& failure : levels[i].failures) {
        const FailureClass& kind = input.failures[failure.index];
        double rate = kind.rate.value.si();
        if (kind.decay > Seconds{}) rate *= std::exp(-age / kind.decay.si());
        kinds_.push_back({&failure, i, rate});
        rate_ += rate;
      }
    waiting_ = repairs_.too_many();
  }

  TrialResult run(double horizon) {
    while (now_ < horizon) {
      const bool stopped = maintained_ > 0;
      const bool running = !recovering_ && !waiting_ && !stopped;
      const double maintenance = stopped ? 0 : input_.maintenance_rate.value.si();
      const double repair = repairs_.rate();
      const double rejoin = missing_ > 0 && input_.elastic && input_.elastic->rejoin > Seconds{}
                                ? static_cast<double>(missing_) / input_.elastic->rejoin.si()
                                : 0;
      const double failing = waiting_ ? 0 : rate_;  // idle machines do not fail
      const double total = failing + repair + rejoin + maintenance;
      const double next = total > 0 ? random_.exponential(1 / total) : infinite;
      const double end = phase_end();
      const double step = std::min({next, end, horizon - now_});
      pass(step, running);
      if (now_ >= horizon) break;
      if (step == end && end <= next) {
        if (!stopped) finish_phase();
        continue;
      }
      double pick = random_.uniform() * total;
      if ((pick -= repair) < 0)
        repaired();
      else if ((pick -= rejoin) < 0)
        --missing_;
      else if (pick < failing)
        fail();
      else
        maintained_ =
            input_.maintenance.value.si() + input_.start.value.si() + input_.warm_up.value.si();
    }
    return summary(horizon);
  }

 private:
  struct Kind {
    const LevelFailure* failure;
    std::size_t level;
    double rate;
  };

  double phase_end() const {
    if (maintained_ > 0) return maintained_;
    if (waiting_ || !recovering_) return infinite;
    return recovery_.phases[phase_].seconds - in_phase_;
  }

  double throughput() const {
    if (!input_.elastic) return 1;
    const ElasticPlan& plan = *input_.elastic;
    const auto replicas = static_cast<double>(plan.replicas);
    const double each = static_cast<double>(input_.units.count) / replicas;
    const auto lacking =
        static_cast<double>(std::max<std::int64_t>(0, repairs_.units_out() - input_.spares));
    const double missing = std::ceil(lacking / each - 1e-9) + static_cast<double>(missing_);
    return throughput_at(plan, 1 - missing / replicas);
  }

  void pass(double step, bool running) {
    if (maintained_ > 0) {
      at(result_.shares, TimeShare::maintenance) += step;
      maintained_ = std::max(0.0, maintained_ - step);
      if (maintained_ < 1e-9) maintained_ = 0;
    } else if (waiting_) {
      at(result_.shares, TimeShare::waiting) += step;
    } else if (recovering_) {
      at(result_.shares, recovery_.phases[phase_].share) += step;
      in_phase_ += step;
      result_.open += step;
    }
    if (running) {
      progress_.run(now_, step);
      ran_ += step;
      worked_ += step * throughput();
      result_.open += step;
    }
    result_.units_out += step * static_cast<double>(repairs_.units_out());
    now_ += step;
  }

  void finish_phase() {
    ++phase_;
    in_phase_ = 0;
    while (phase_ < recovery_.phases.size() && recovery_.phases[phase_].seconds <= 0) ++phase_;
    if (phase_ < recovery_.phases.size()) return;
    recovering_ = false;
    progress_.resume(now_);
  }

  void repaired() {
    repairs_.finish_one();
    waiting_ = repairs_.too_many();
  }

  void fail() {
    double pick = random_.uniform() * rate_;
    const Kind* kind = &kinds_.back();
    for (const Kind& each : kinds_)
      if ((pick -= each.rate) < 0) {
        kind = &each;
        break;
      }
    const FailureClass& failure = input_.failures[kind->failure->index];
    const bool removed = random_.uniform() < failure.removed.value;
    if (removed) repairs_.add(kind->failure->index);
    waiting_ = repairs_.too_many();
    // A job that is stopped has nothing to lose; what breaks meanwhile is repaired all the same.
    if (maintained_ > 0) return;
    result_.failures += 1;
    progress_.go_back(now_, kind->level, kind->failure->latency);
    if (levels_[kind->level].peers) ++missing_;
    recovery_ = kind->failure->recovery;
    recovering_ = true;
    phase_ = 0;
    in_phase_ = 0;
    if (recovery_.phases[0].seconds > 0) return;
    finish_phase();
  }

  TrialResult summary(double horizon) {
    TimeShares& shares = result_.shares;
    const double kept = progress_.progress();
    at(shares, TimeShare::checkpoint) += progress_.stalled() - progress_.slowed();
    at(shares, TimeShare::checkpoint_traffic) += progress_.slowed();
    at(shares, TimeShare::silent_corruption) += progress_.corrupted();
    at(shares, TimeShare::lost_work) += ran_ - progress_.stalled() - progress_.corrupted() - kept;
    const double whole = ran_ > 0 ? worked_ / ran_ : 1;
    double left = kept;
    const auto lose = [&](TimeShare to, double part) {
      at(shares, to) += left * part;
      left *= 1 - part;
    };
    lose(TimeShare::shrunk, 1 - whole);
    lose(TimeShare::data_loading, input_.data_loading.value);
    lose(TimeShare::evaluation, input_.evaluation.value);
    lose(TimeShare::stragglers, input_.stragglers.value);
    lose(TimeShare::variation, input_.variation.value);
    at(shares, TimeShare::effective) = left;
    for (double& share : shares) share /= horizon;
    result_.units_out /= horizon;
    return result_;
  }

  const GoodputCase& input_;
  const std::vector<GoodputLevel>& levels_;
  RandomStream random_;
  Repairs repairs_;
  SavedProgress progress_;
  std::vector<Kind> kinds_;
  double rate_ = 0;
  double now_ = 0, ran_ = 0, worked_ = 0;
  bool recovering_ = false, waiting_ = false;
  double maintained_ = 0;     // of a planned stop that is still to come
  std::int64_t missing_ = 0;  // replicas on their way back
  Recovery recovery_;
  std::size_t phase_ = 0;
  double in_phase_ = 0;
  TrialResult result_;
};

double horizon_of(const GoodputCase& input, const std::vector<GoodputLevel>& levels,
                  const SimulationSize& size) {
  double rate = input.maintenance_rate.value.si(), latency = 0;
  for (const GoodputLevel& level : levels) {
    rate += level.rate;
    for (const LevelFailure& failure : level.failures) latency = std::max(latency, failure.latency);
  }
  if (rate <= 0) return 1e5 * input.step.si();
  return std::max(size.failures / rate, 30 * latency);
}

SimulatedGoodput combine(const std::vector<TrialResult>& trials) {
  SimulatedGoodput result;
  const auto count = static_cast<double>(trials.size());
  std::vector<double> effective;
  double open = 0;
  for (const TrialResult& trial : trials) {
    for (std::size_t i = 0; i < trial.shares.size(); ++i) result.shares[i] += trial.shares[i];
    effective.push_back(share_of(trial.shares, TimeShare::effective));
    open += trial.open;
    result.units_out += trial.units_out / count;
    result.failures += trial.failures;
  }
  for (double& share : result.shares) share /= count;
  result.effective = share_of(result.shares, TimeShare::effective);
  const auto error_of = [&](const auto& value_of, double mean) {
    double square = 0;
    for (const TrialResult& trial : trials) square += std::pow(value_of(trial) - mean, 2);
    return count > 1 ? std::sqrt(square / (count - 1) / count) : 0.0;
  };
  for (std::size_t i = 0; i < result.shares.size(); ++i)
    result.share_errors[i] = error_of([&](const auto& t) { return t.shares[i]; }, result.shares[i]);
  result.standard_error = share_of(result.share_errors, TimeShare::effective);
  result.units_out_error = error_of([](const auto& t) { return t.units_out; }, result.units_out);
  result.trial_effective = {.value = median(effective),
                            .low = percentile(effective, 5),
                            .high = percentile(effective, 95)};
  result.mean_time_to_failure = seconds(result.failures > 0 ? open / result.failures : infinite);
  return result;
}

}  // namespace

SimulatedGoodput simulate_goodput(const GoodputCase& input, std::uint64_t seed, int threads,
                                  const SimulationSize& size) {
  check_goodput(input);
  if (size.trials < 1 || !(size.failures > 0))
    throw Error({.file = "goodput",
                 .path = "simulation",
                 .found = "no trials or no failures",
                 .expected = "at least one trial with more than 0 failures"});
  const std::vector<GoodputLevel> levels = goodput_levels(input);
  const std::vector<double> intervals = level_intervals(input, levels);
  const double horizon = horizon_of(input, levels, size);
  std::vector<TrialResult> trials(static_cast<std::size_t>(size.trials));
  parallel_for(trials.size(), threads, [&](std::size_t i) {
    // Trials stand for equal parts of the run: rates that decay are spread over them.
    const double age = input.run.si() * (static_cast<double>(i) + 0.5) / size.trials;
    trials[i] = Trial(input, levels, intervals, age, RandomStream(seed, i)).run(horizon);
  });
  return combine(trials);
}

}  // namespace orrery
