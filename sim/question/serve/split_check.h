// SPDX-License-Identifier: Apache-2.0
// Refuses engines that a model's layers, heads or experts do not divide among.
#pragma once

#include <string>

#include "workloads/inference/engine_layout.h"
#include "workloads/model/model.h"

namespace orrery {

// Error at `flag` (--engines, --prefill, --decode) where a split leaves ranks unequal.
void check_split(const Model& model, const EngineLayout& engine, const std::string& flag);

}  // namespace orrery
