// SPDX-License-Identifier: Apache-2.0
// Keeps the steps that a part of a plan searched, so that another process can take them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/point.h"

namespace orrery {

// The searches of one task in the order in which they were asked for. That order follows from the
// question and from what the searches found, so that a later run asks for the same ones.
class KeptSteps {
 public:
  KeptSteps() = default;                        // none is known: each is searched, and kept
  explicit KeptSteps(std::string_view record);  // each is taken from there

  // plan_step(), or its result of before. Error where the record ends too soon.
  PlanStep step(const Question& question, double memory_reserve, const StepSearch& how);
  std::string record() const;

 private:
  struct Kept;
  std::vector<PlanStep> steps_;
  std::optional<std::size_t> next_;  // of those that are taken
};

}  // namespace orrery
