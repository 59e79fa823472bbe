// SPDX-License-Identifier: Apache-2.0
// Knows how judgements of kernels are told, to machines and to people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/calibrate/kernel_worth.h"
#include "sim/app/line/command.h"
#include "sim/calibrate/kernel/judgement.h"

namespace orrery {

struct KernelAnswer {
  KernelSpec spec;
  bool host = false;
  std::optional<KernelDevice> device;
  std::string catalogue_device;  // "": none of the catalogue
  std::vector<PresentTimes> present;
  std::vector<KernelJudgement> candidates;  // the best last
  Json worth = nullptr;
};

std::string kernel_json(const KernelAnswer& answer, const Given& given);
std::string kernel_text(const KernelAnswer& answer);

}  // namespace orrery
