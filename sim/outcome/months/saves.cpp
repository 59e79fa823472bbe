// SPDX-License-Identifier: Apache-2.0
// Times how saves of several tiers interleave with running and failing.
#include "sim/outcome/months/saves.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

double slowed_share(const GoodputLevel& level) {
  return level.stall > 0 ? level.slowed / level.stall : 0;
}

}  // namespace

SavedProgress::SavedProgress(const std::vector<GoodputLevel>& levels, std::vector<double> intervals)
    : interval_(intervals.front()),
      stall_(levels.front().stall),
      write_(levels.front().write),
      fast_slowed_(slowed_share(levels.front())) {
  for (std::size_t i = 1; i < levels.size(); ++i)
    slow_.push_back({.interval = intervals[i],
                     .stall = levels[i].stall,
                     .write = levels[i].write,
                     .slowed = slowed_share(levels[i]),
                     .level = i,
                     .saves = {Save{}}});
  for (const GoodputLevel& level : levels)
    for (const LevelFailure& failure : level.failures)
      longest_latency_ = std::max(longest_latency_, failure.latency);
  begin_stretch(0, 0);
}

double SavedProgress::fast_progress(double running) const {
  if (!std::isfinite(interval_)) return running;
  const double period = interval_ + stall_;
  const double whole = std::floor(running / period);
  return whole * interval_ + std::min(running - whole * period, interval_);
}

double SavedProgress::fast_committed(double running) const {
  if (!std::isfinite(interval_)) return 0;
  return std::max(0.0, std::floor((running - write_) / (interval_ + stall_))) * interval_;
}

double SavedProgress::fast_time_of(double progress) const {
  if (!std::isfinite(interval_)) return progress;
  const double whole = std::floor(progress / interval_);
  return progress + whole * stall_;
}

void SavedProgress::begin_stretch(double now, double base) {
  if (!stretches_.empty()) stretches_.back().ran = fast_;
  base_ = base;
  fast_ = 0;
  stalling_ = 0;
  stall_left_ = 0;
  stretches_.push_back({now, base});
  while (stretches_.size() > 2 && stretches_[1].begin < now - longest_latency_)
    stretches_.pop_front();
}

void SavedProgress::save(Slow& slow, double now) {
  slow.last = progress();
  slow.saves.push_back({now, now + slow.write, slow.last});
  while (slow.saves.size() > 2 && slow.saves[1].taken < now - longest_latency_ &&
         slow.saves[1].counts <= now)
    slow.saves.pop_front();
}

void SavedProgress::run(double now, double span) {
  while (span > 0) {
    if (stalling_ > 0) {
      const double pause = std::min(span, stall_left_);
      now += pause;
      span -= pause;
      stalled_ += pause;
      slowed_ += pause * slow_[stalling_ - 1].slowed;
      stall_left_ -= pause;
      if (stall_left_ > 0) return;
      save(slow_[stalling_ - 1], now);
      stalling_ = 0;
    }
    double next = infinite;
    std::size_t which = 0;
    for (std::size_t i = 0; i < slow_.size(); ++i) {
      if (!std::isfinite(slow_[i].interval)) continue;
      const double due = std::max(slow_[i].last + slow_[i].interval - base_, 0.0);
      const double time = std::max(fast_time_of(due) - fast_, 0.0);
      if (time < next) {
        next = time;
        which = i + 1;
      }
    }
    const double step = std::min(span, next);
    const double before = progress();
    fast_ += step;
    const double stalled = step - (progress() - before);
    stalled_ += stalled;
    slowed_ += stalled * fast_slowed_;
    now += step;
    span -= step;
    if (which > 0 && step >= next) {
      stalling_ = which;
      stall_left_ = slow_[which - 1].stall;
      if (stall_left_ <= 0) {
        save(slow_[which - 1], now);
        stalling_ = 0;
      }
    }
  }
}

double SavedProgress::newest(const Slow& slow, double now, double latency) const {
  for (auto save = slow.saves.rbegin(); save != slow.saves.rend(); ++save)
    if (save->counts <= now && save->taken <= now - latency) return save->progress;
  return slow.saves.front().progress;
}

// Of the cheapest level, when it is the only one: what it had saved when the corruption began.
double SavedProgress::trusted_fast(double now, double latency) const {
  const double then = now - latency;
  double least = progress();  // of what the job went back to since
  for (auto stretch = stretches_.rbegin(); stretch != stretches_.rend(); ++stretch) {
    if (stretch->begin > then) {
      least = std::min(least, stretch->base);
      continue;
    }
    const double ran = stretch == stretches_.rbegin() ? fast_ : stretch->ran;
    const double running = std::min(then - stretch->begin, ran);
    const double saves =
        std::isfinite(interval_) ? std::floor(running / (interval_ + stall_)) * interval_ : 0;
    return std::min(least, stretch->base + saves);
  }
  return least;
}

void SavedProgress::go_back(double now, std::size_t level, double latency) {
  const double before = progress();
  double target = 0;
  if (level == 0) target = base_ + fast_committed(fast_);
  for (const Slow& slow : slow_)
    if (slow.level >= level) target = std::max(target, newest(slow, now, 0));
  if (latency > 0) {
    // Old checkpoints stand on the dearest level.
    const double kept =
        slow_.empty() ? trusted_fast(now, latency) : newest(slow_.back(), now, latency);
    corrupted_ += std::max(0.0, std::min(target, before) - kept);
    target = std::min(target, kept);
  }
  target = std::min(target, before);
  for (Slow& slow : slow_) {
    // A failure that reaches this level loses what it was still writing; corruption also what it
    // had written since.
    const bool reached = slow.level <= level;
    std::erase_if(slow.saves, [&](const Save& save) {
      return (reached && save.counts > now) || save.progress > target + 1e-9;
    });
    if (slow.saves.empty()) slow.saves.push_back({now, now, target});
    slow.last = slow.saves.back().progress;
  }
  begin_stretch(now, target);
}

}  // namespace orrery
