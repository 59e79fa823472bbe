// SPDX-License-Identifier: Apache-2.0
// Joins the formats of stored weights with the operands of a stack's products.
#include "workloads/inference/weight_format.h"

#include "workloads/stack/memory_traits.h"

namespace orrery {

WeightFormat weight_format(PrecisionRecipe recipe, const Stack& stack) {
  WeightFormat f{.operands = linear_format(recipe), .library = {}};
  if (!is_weight_only(recipe)) return f;
  f.stored_bits = 8 * saved_input_bytes(recipe);
  f.library = Library::marlin;
  if (recipe == PrecisionRecipe::mxfp4) {
    f.library = Library::packed_mxfp4;
    f.operands = stack.serving.kernels.mxfp4_operands;
  }
  return f;
}

}  // namespace orrery
