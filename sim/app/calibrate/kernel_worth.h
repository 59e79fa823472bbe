// SPDX-License-Identifier: Apache-2.0
// Knows what a job, or each point of a plan, gains where a kernel replaces that of today.
#pragma once

#include <optional>
#include <string>

#include "sim/base/json/json.h"
#include "sim/base/json/tree.h"
#include "sim/calibrate/kernel/judgement.h"
#include "sim/calibrate/kernel/spec.h"

namespace orrery {

// Jobs that a kernel's worth is told of. Empty: none.
struct WorthQuestion {
  std::optional<JsonValue> job;   // settings of simulate
  std::optional<JsonValue> plan;  // question of plan
  double tokens = 0;              // that the job trains on; 0: no days
  bool asked() const { return job || plan; }
};

// Simulates as it is and with the kernel at its middle, least and greatest speed. Error where the
// question is wrong, CannotExist where its job is.
Json kernel_worth(const WorthQuestion& question, const KernelSpec& spec, const KernelSpeed& speed);
std::string worth_text(const Json& worth);

}  // namespace orrery
