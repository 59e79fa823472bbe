// SPDX-License-Identifier: Apache-2.0
// Holds what a step needs of its cluster in plain numbers.
#pragma once

#include "sim/engine/scenario.h"

namespace orrery {

class FlowMemory;
class LoadedTransfers;
struct StepProgram;

// What step() needs in plain numbers, resolved once per cluster and stack and shared by all
// layouts.
struct StepContext {
  const Fabric& fabric;
  const CollectiveCosts& collective_costs;
  ResolvedDevice device;
  const Calibration& calibration;
  double clock_factor = 1;
  BytesPerSecond host_memory_bandwidth = {};  // one accelerator's share of its host's
  NetworkMode network = NetworkMode::ideal;
  Conditions conditions = {};
  LoadedTransfers* loaded = nullptr;  // remembers for many layouts on the same fabric
  // Remembers for many places of one layout; then flows tell times alone (FlowOptions::ends_only).
  FlowMemory* flows = nullptr;
  // What the same model, job, layout and stack were lowered to before; nullptr: they are lowered.
  const StepProgram* program = nullptr;
  const ScatteredRanks* ranks = nullptr;  // where they are; nullptr or no blocks: contiguous
  bool scattered() const { return ranks != nullptr && !ranks->contiguous(); }
};
// Of a healthy cluster on the ideal network.
StepContext step_context(const Cluster& cluster);
// With the scenario's network and conditions. The scenario must outlive it.
StepContext step_context(const Scenario& scenario);
// Of the same job from accelerator 0 on, on a healthy network.
StepContext contiguous_context(const StepContext& scattered);

}  // namespace orrery
