// SPDX-License-Identifier: Apache-2.0
// Looks up the precision of a part in a model's checkpoints.
#include "workloads/layout/checkpoint.h"

#include "sim/base/json/json.h"
#include "sim/base/json/tree.h"

namespace orrery {

PrecisionRecipe part_precision(const Model& model, PrecisionRecipe recipe, ModelPart part) {
  for (const Checkpoint& checkpoint : model.checkpoints) {
    if (checkpoint.precision != to_text(recipe)) continue;
    for (const Checkpoint::Part& other : checkpoint.other)
      if (other.part == part)
        return precision_from(JsonValue::from(SortedJson(other.precision), model.name));
  }
  return recipe;
}

}  // namespace orrery
