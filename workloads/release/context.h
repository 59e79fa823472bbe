// SPDX-License-Identifier: Apache-2.0
// Says what the settings of a release may depend on: a machine, a model, a job.
#pragma once

#include <compare>
#include <string>

#include "workloads/layout/job.h"
#include "workloads/layout/layout.h"

namespace orrery {

struct StackContext {
  std::string architecture;   // "hopper": to_text(Architecture)
  std::string device;         // "gb200": the accelerator's name in the catalogue
  std::string model, family;  // "qwen3-30b-a3b", "qwen3"
  PrecisionRecipe precision = PrecisionRecipe::bf16;
  bool moe = false;
  Task task = Task::pretrain;
  // Whether conditions that name the model or its family hold, and what launch programs set for it:
  // a validation asks what is known without them.
  bool named = true, scripted = true;
  auto operator<=>(const StackContext&) const = default;
};

}  // namespace orrery
