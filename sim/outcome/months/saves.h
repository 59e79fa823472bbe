// SPDX-License-Identifier: Apache-2.0
// Knows what a simulated job has computed, saved and lost at any time.
#pragma once

#include <deque>
#include <vector>

#include "sim/outcome/months/levels.h"

namespace orrery {

// Progress of one simulated job, in seconds of running. The cheapest level saves so often that its
// saves are counted by arithmetic; each save of the others is an event.
class SavedProgress {
 public:
  SavedProgress(const std::vector<GoodputLevel>& levels, std::vector<double> intervals);

  // Runs for `span` of wall-clock time from `now`.
  void run(double now, double span);
  // Goes back to the newest checkpoint of this level or a dearer one. `latency`: only what was
  // computed so long before `now` is trusted. Running starts anew from there.
  void go_back(double now, std::size_t level, double latency);

  // The recovery is over.
  void resume(double now) { stretches_.back().begin = now; }

  double progress() const { return base_ + fast_progress(fast_); }
  double stalled() const { return stalled_; }      // seconds of saves so far
  double slowed() const { return slowed_; }        // of those, what writes slowed
  double corrupted() const { return corrupted_; }  // progress lost to late notice so far

 private:
  struct Save {
    double taken = 0, counts = 0;  // wall-clock times
    double progress = 0;
  };
  struct Slow {
    double interval = 0, stall = 0, write = 0;
    double slowed = 0;  // share of `stall`
    std::size_t level = 0;
    double last = 0;         // progress of the last save
    std::deque<Save> saves;  // oldest first
  };
  // A stretch between two restarts, kept for as long as late notice may reach back.
  struct Stretch {
    double begin = 0;  // wall-clock time
    double base = 0;   // progress
    double ran = 0;    // set when it ends
  };

  double fast_progress(double running) const;
  double fast_committed(double running) const;
  double fast_time_of(double progress) const;
  void begin_stretch(double now, double base);
  void save(Slow& slow, double now);
  double newest(const Slow& slow, double now, double latency) const;
  double trusted_fast(double now, double latency) const;

  double interval_ = 0, stall_ = 0, write_ = 0;  // of the cheapest level
  double fast_slowed_ = 0;                       // share of `stall_`
  double base_ = 0;                              // progress at the last restart
  double fast_ = 0;  // wall-clock time run since, without stalls of dearer levels
  std::vector<Slow> slow_;
  std::size_t stalling_ = 0;  // 1 + index of the dearer level that is saving
  double stall_left_ = 0;
  double stalled_ = 0, slowed_ = 0, corrupted_ = 0;
  double longest_latency_ = 0;
  std::deque<Stretch> stretches_;
};

}  // namespace orrery
