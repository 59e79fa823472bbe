// SPDX-License-Identifier: Apache-2.0
// Knows which checkpoint each failure of a job falls back to and how it recovers.
#pragma once

#include <array>
#include <vector>

#include "sim/outcome/months/goodput.h"

namespace orrery {

// The parts of one recovery, in order: shared by the closed form and the simulation.
struct RecoveryPhase {
  TimeShare share = TimeShare::restart;
  double seconds = 0;
};
struct Recovery {
  std::array<RecoveryPhase, 6> phases{};  // unused ones take no time
  double total = 0;
};

// One kind of failure on its level, plain numbers in seconds.
struct LevelFailure {
  std::size_t index = 0;  // in GoodputCase::failures
  double rate = 0;        // averaged over the run
  double latency = 0;
  Recovery recovery;
};
// A tier, or the peers of an elastic job (always the first), and what falls back to it.
struct GoodputLevel {
  std::string name;
  bool peers = false;
  double interval = 0;  // 0: to be optimised, but not below `least`
  double least = 0;
  // Of one save: what stops the job, and how much later it counts. A write of length w that slows
  // steps by a share d is a stop that is longer by d w and a write that is shorter by it: saves are
  // taken, count and lose the same at the same times. `slowed` is that d w.
  double stall = 0, write = 0, slowed = 0;
  std::vector<LevelFailure> failures;
  double rate = 0;
};
std::vector<GoodputLevel> goodput_levels(const GoodputCase& input);

// The mean over the run of a rate that may decay.
double mean_rate(const FailureClass& failure, Seconds run);

// Share of the undisturbed throughput that this share of the accelerators reaches.
double throughput_at(const ElasticPlan& plan, double gpus);

// The intervals that goodput() uses, one a level: given ones, else the optimal ones, but not
// shorter than a step or a write; whole steps where the case asks for them.
std::vector<double> level_intervals(const GoodputCase& input,
                                    const std::vector<GoodputLevel>& levels);

}  // namespace orrery
