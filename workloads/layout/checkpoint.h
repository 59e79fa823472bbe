// SPDX-License-Identifier: Apache-2.0
// Knows which precision a checkpoint has for each part of a model.
#pragma once

#include "workloads/layout/layout.h"
#include "workloads/model/model.h"

namespace orrery {

// Precision of a part in the model's checkpoint of `recipe`: the recipe itself unless the model's
// `checkpoints` say otherwise. Error where they name a recipe that does not exist.
PrecisionRecipe part_precision(const Model& model, PrecisionRecipe recipe, ModelPart part);

}  // namespace orrery
