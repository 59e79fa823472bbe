// SPDX-License-Identifier: Apache-2.0
// Knows how to skip the steady state of a periodic schedule without changing its result.
#pragma once

#include <algorithm>
#include <cstddef>
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

// Runs `periods` periods of a machine and returns how many of them it skipped.
// `machine.period(time, state)` advances a state, a std::vector of the kind's values, by one
// period; the state must hold all that later periods depend on, in a canonical form (what cannot
// matter is set to a fixed function of the rest), and adding the same to all its values must add
// that to the next state.
//
// Two ways to skip, both exact. The state equals an earlier one plus a uniform shift: so will all
// later ones. Or each value has grown by the same r over two cycles: one cycle in DriftTime proves
// that f(x + t r) = f(x) + t r' for t up to its limit; with f(x) = x + r and r' = r, induction
// gives f^n(x) = x + n r for n up to limit + 1. The second way is what makes nearly balanced stages
// cheap, which drift apart for thousands of periods before one of them waits.
//
// A cycle is up to `max_cycle` periods: as many as there are microbatches on the loop of stages
// that sets the pace (Baccelli et al. 1992, Synchronization and Linearity, chapter 3).
template <class Machine>
class SteadyState {
 public:
  SteadyState(Machine& machine, std::size_t max_cycle) : machine_(machine), kept_(2 * max_cycle) {}

  // Periods that were skipped; none without `collapse`, when each is run.
  std::int64_t run(std::vector<std::int64_t>& state, std::int64_t periods, bool collapse = true) {
    PlainTime plain;
    std::int64_t skipped = 0;
    if (!collapse) {
      for (std::int64_t i = 0; i < periods; ++i) machine_.period(plain, state);
      return skipped;
    }
    begin(state.size());
    left_ = periods;
    while (left_ > 0) {
      remember(state);
      machine_.period(plain, state);
      if (--left_ > 0) skipped += skip(state);
    }
    return skipped;
  }

 private:
  using State = std::vector<std::int64_t>;

  // A linear fingerprint of a state: differences of states have the differences of fingerprints, so
  // that one number rules out almost every cycle that is none.
  struct Print {
    std::uint64_t sum, first;
  };
  Print print(const std::int64_t* state) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < size_; ++i)
      sum += weight_[i] * static_cast<std::uint64_t>(state[i]);
    return {sum, static_cast<std::uint64_t>(state[0])};
  }

  void begin(std::size_t size) {
    size_ = size;
    next_ = held_ = 0;
    weight_sum_ = 0;
    weight_.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      // Any weights do, as long as sums of unlike states seldom meet: the golden ratio's multiples.
      weight_[i] = (2 * i + 1) * 0x9e3779b97f4a7c15u;
      weight_[i] ^= weight_[i] >> 29;
      weight_sum_ += weight_[i];
    }
    prints_.resize(kept_);
    history_.reserve(kept_ * size);
  }

  void remember(const State& state) {
    prints_[next_] = print(state.data());
    if (history_.size() == next_ * size_)
      history_.insert(history_.end(), state.begin(), state.end());
    else
      std::copy(state.begin(), state.end(), history_.begin() + offset(next_));
    next_ = next_ + 1 == kept_ ? 0 : next_ + 1;
    held_ = std::min(held_ + 1, kept_);
  }
  std::ptrdiff_t offset(std::size_t slot) const {
    return static_cast<std::ptrdiff_t>(slot * size_);
  }
  // The slot of the n-th last remembered state; 1 is the last.
  std::size_t slot(std::size_t n) const { return next_ >= n ? next_ - n : next_ + kept_ - n; }
  const std::int64_t* back(std::size_t n) const { return history_.data() + offset(slot(n)); }

  std::int64_t skip(State& state) {
    const Print now = print(state.data());
    const auto left = static_cast<std::size_t>(left_);
    const std::size_t longest = std::min({held_, left, kept_ / 2});
    for (std::size_t cycle = 1; cycle <= longest; ++cycle) {
      const Print& before = prints_[slot(cycle)];
      if (now.sum - before.sum == (now.first - before.first) * weight_sum_ &&
          is_shifted(state, back(cycle)))
        return skip_uniform(state, back(cycle)[0], static_cast<std::int64_t>(cycle));
      if (2 * cycle > held_ || 2 * cycle > left) continue;
      if (now.sum - before.sum == before.sum - prints_[slot(2 * cycle)].sum &&
          is_linear(state, back(cycle), back(2 * cycle)))
        return follow_drift(state, back(cycle), static_cast<std::int64_t>(cycle));
    }
    return 0;
  }

  bool is_shifted(const State& state, const std::int64_t* before) const {
    for (std::size_t i = 1; i < size_; ++i)
      if (state[i] - before[i] != state[0] - before[0]) return false;
    return true;
  }
  bool is_linear(const State& state, const std::int64_t* before,
                 const std::int64_t* earlier) const {
    for (std::size_t i = 0; i < size_; ++i)
      if (state[i] - before[i] != before[i] - earlier[i]) return false;
    return true;
  }

  std::int64_t skip_uniform(State& state, std::int64_t before, std::int64_t cycle) {
    const std::int64_t shift = state[0] - before, cycles = left_ / cycle;
    for (std::int64_t& time : state) time += cycles * shift;
    left_ -= cycles * cycle;
    held_ = 0;  // less than a cycle is left: no more to find
    return cycles * cycle;
  }

  std::int64_t follow_drift(State& state, const std::int64_t* before, std::int64_t cycle) {
    drift_.resize(size_);
    for (std::size_t i = 0; i < size_; ++i) drift_[i] = {state[i], state[i] - before[i]};
    start_ = drift_;
    DriftTime time;
    for (std::int64_t i = 0; i < cycle; ++i) machine_.period(time, drift_);
    left_ -= cycle;
    bool linear = true;
    for (std::size_t i = 0; linear && i < size_; ++i)
      linear = drift_[i] == DriftTime::Value{start_[i].v + start_[i].r, start_[i].r};
    const std::int64_t cycles = linear ? std::min(time.limit, left_ / cycle) : 0;
    for (std::size_t i = 0; i < size_; ++i) state[i] = drift_[i].v + cycles * drift_[i].r;
    left_ -= cycles * cycle;
    held_ = 0;  // the growth changes here
    return cycles * cycle;
  }

  Machine& machine_;
  std::size_t kept_, size_ = 0;      // states that are kept; values in one
  std::size_t next_ = 0, held_ = 0;  // slot of the next state; states since the last skip
  std::int64_t left_ = 0;            // periods
  std::uint64_t weight_sum_ = 0;
  std::vector<std::uint64_t> weight_;
  std::vector<Print> prints_;  // by slot
  State history_;              // slots of size_ values
  std::vector<DriftTime::Value> drift_, start_;
};

}  // namespace orrery
