// SPDX-License-Identifier: Apache-2.0
// Finds mistakes that make a step slower than it need be, and says by how much.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/engine/memory_fit.h"
#include "sim/engine/scenario.h"
#include "sim/outcome/noise.h"

namespace orrery {

// A known trap that a scenario is in.
struct Trap {
  std::string id;        // "old-release"
  std::string sentence;  // what is wrong and what to do, with figures; complete by itself
  std::string remedy;    // "nemo@26.02 in place of 25.07", "micro batch 2"
  // Steps per second without it over those with it, less one, by simulating both; none where no
  // model says.
  std::optional<double> gain = std::nullopt;
  bool at_most = false;  // the gain takes away all of a cost that a remedy takes away in part
  std::string evidence;  // what says so: rows, sources, or what was simulated
};

// As much as the memory model may be off.
inline constexpr double usual_memory_reserve = peak_error;

struct TrapOptions {
  // "NAME=VALUE" as the run would have it; only these are looked at for debug settings.
  std::vector<std::string> environment = {};
  // Share of the memory that a remedy must leave free.
  double memory_reserve = usual_memory_reserve;
  double least_gain = same_speed;  // traps that gain less are not told
};

// All traps of a scenario with a valid layout, largest gain first, those without a gain last. Each
// costs a few steps on the scenario's network.
std::vector<Trap> find_traps(const Scenario& scenario, const TrapOptions& options = {});

}  // namespace orrery
