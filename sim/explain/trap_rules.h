// SPDX-License-Identifier: Apache-2.0
// Holds what the rules for traps share: the scenario as it is, and what another one would take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/engine/step/result.h"
#include "sim/explain/traps.h"

namespace orrery {

// One look for traps. Rules add what they find; the scenario and options must outlive it.
class TrapSearch {
 public:
  TrapSearch(const Scenario& scenario, const TrapOptions& options);

  const Scenario& scenario() const { return scenario_; }
  const TrapOptions& options() const { return options_; }
  double share(Label label) const;  // of the mean stage's step
  const StageBreakdown& mean() const { return mean_; }
  // Steps per second of another scenario over this one's, less one; none where its layout cannot
  // run, lie on the fabric or fit in memory.
  std::optional<double> gain(const Scenario& other) const;
  // The same without looking at memory: for what changes no memory.
  double gain_of(const Stack& stack) const;
  bool worth(std::optional<double> gain) const { return gain && *gain >= options_.least_gain; }
  // The scenario's stack as its catalogue has it, at a release ("": the scenario's) and precision;
  // none for stacks that are not in the catalogue.
  std::optional<Stack> stack(const std::string& name, const std::string& release,
                             PrecisionRecipe precision) const;
  void add(Trap trap) { traps_.push_back(std::move(trap)); }
  std::vector<Trap> sorted() &&;

 private:
  bool runs(const Scenario& other) const;

  const Scenario& scenario_;
  const TrapOptions& options_;
  Seconds base_;
  StageBreakdown mean_;
  std::vector<Trap> traps_;
};

// Rules about software: traps.cpp.
void find_software_traps(TrapSearch& search);
// Rules about the layout, shapes and the machine: layout_traps.cpp.
void find_layout_traps(TrapSearch& search);

// "12% faster", "4.3 times as fast" from twice on.
std::string faster_text(double gain);

}  // namespace orrery
