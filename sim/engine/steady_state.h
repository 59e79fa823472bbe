// Knows how to skip the steady state of a periodic schedule without changing its result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace orrery {

// A schedule with a fixed order is a max-plus system: every time is the later of two times plus a
// cost. The machines below are written once over a kind of time: PlainTime runs them, DriftTime
// also carries each time's growth per period.
struct PlainTime {
  using Value = std::int64_t;
  static Value later(Value a, Value b) { return a < b ? b : a; }
  static Value constant(std::int64_t time) { return time; }
};

// A time v that grows by r with every period, and for how many more periods each choice of the
// later of two times stays as it is: until then the system is linear in the number of periods.
struct DriftTime {
  struct Value {
    std::int64_t v = 0, r = 0;
    Value operator+(std::int64_t cost) const { return {v + cost, r}; }
    bool operator==(const Value&) const = default;
  };
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  static Value constant(std::int64_t time) { return {time, 0}; }
  Value later(Value a, Value b) {
    if (a.v < b.v || (a.v == b.v && a.r < b.r)) std::swap(a, b);
    if (b.r > a.r) limit = std::min(limit, (a.v - b.v) / (b.r - a.r));
    return a;
  }
};

// Runs `periods` periods of a machine and returns how many of them it skipped. `machine.period(time,
// state)` advances a state, a std::vector of the kind's values, by one period; the state must hold
// all that later periods depend on, in a canonical form (what cannot matter is set to a fixed
// function of the rest), and adding the same to all its values must add that to the next state.
//
// Two ways to skip, both exact. The state equals an earlier one plus a uniform shift: so will all
// later ones. Or each value has grown by the same r twice: one period in DriftTime proves that
// f(x + t r) = f(x) + t r' for t up to its limit; with f(x) = x + r and r' = r, induction gives
// f^n(x) = x + n r for n up to limit + 1. The second way is what makes nearly balanced stages cheap,
// which drift apart for thousands of periods before one of them waits.
template <class Machine>
class SteadyState {
 public:
  std::int64_t run(Machine& machine, std::vector<std::int64_t>& state, std::int64_t periods) {
    PlainTime plain;
    std::int64_t skipped = 0;
    left_ = periods;
    while (left_ > 0) {
      remember(state);
      machine.period(plain, state);
      if (--left_ > 0) skipped += skip_uniform(state) + skip_drift(machine, state);
    }
    return skipped;
  }

 private:
  static constexpr int max_cycle = 4;  // periods per cycle that are looked for
  static constexpr int kept = 2 * max_cycle;
  using State = std::vector<std::int64_t>;

  void remember(const State& state) {
    history_[static_cast<std::size_t>(next_)] = state;
    next_ = (next_ + 1) % kept;
    held_ = std::min(held_ + 1, kept);
  }
  const State& back(int n) const {  // the n-th last remembered state, 1 is the last
    return history_[static_cast<std::size_t>((next_ + kept - n) % kept)];
  }

  std::int64_t skip_uniform(State& state) {
    for (int cycle = 1; cycle <= std::min(held_, max_cycle); ++cycle) {
      const State& before = back(cycle);
      const std::int64_t shift = state[0] - before[0];
      bool same = true;
      for (std::size_t i = 1; same && i < state.size(); ++i) same = state[i] - before[i] == shift;
      if (!same) continue;
      const std::int64_t cycles = left_ / cycle;
      for (std::int64_t& time : state) time += cycles * shift;
      left_ -= cycles * cycle;
      held_ = 0;  // fewer than a cycle of periods is left: no more to find
      return cycles * cycle;
    }
    return 0;
  }

  std::int64_t skip_drift(Machine& machine, State& state) {
    for (int cycle = 1; 2 * cycle <= held_ && 2 * cycle <= left_; ++cycle) {
      const State& before = back(cycle);
      const State& earlier = back(2 * cycle);
      bool same = true;
      for (std::size_t i = 0; same && i < state.size(); ++i)
        same = state[i] - before[i] == before[i] - earlier[i];
      if (same) return follow_drift(machine, state, before, cycle);
    }
    return 0;
  }

  std::int64_t follow_drift(Machine& machine, State& state, const State& before, int cycle) {
    drift_.resize(state.size());
    for (std::size_t i = 0; i < state.size(); ++i) drift_[i] = {state[i], state[i] - before[i]};
    start_ = drift_;
    DriftTime time;
    for (int i = 0; i < cycle; ++i) machine.period(time, drift_);
    left_ -= cycle;
    bool linear = true;
    for (std::size_t i = 0; linear && i < drift_.size(); ++i)
      linear = drift_[i] == DriftTime::Value{start_[i].v + start_[i].r, start_[i].r};
    const std::int64_t cycles = linear ? std::min(time.limit, left_ / cycle) : 0;
    for (std::size_t i = 0; i < state.size(); ++i) state[i] = drift_[i].v + cycles * drift_[i].r;
    left_ -= cycles * cycle;
    held_ = 0;  // the growth changes here
    return cycles * cycle;
  }

  State history_[kept];
  int next_ = 0, held_ = 0;
  std::int64_t left_ = 0;
  std::vector<DriftTime::Value> drift_, start_;
};

}  // namespace orrery
