// SPDX-License-Identifier: Apache-2.0
// Knows which operands products of quantised weights multiply, and whose kernels they are.
#pragma once

#include <optional>

#include "workloads/layout/layout.h"
#include "workloads/stack/stack.h"

namespace orrery {

struct WeightFormat {
  Format operands = Format::bf16;  // what the tensor units multiply
  double stored_bits = 0;          // of a weight in memory, scales included; 0: as operands
  std::optional<Library> library;  // none: the stack's
  // Rows are made narrower before the product, by a kernel of its own.
  bool quantises() const { return operands == Format::fp8 || operands == Format::fp4; }
};

// Weights of 4 and 8 bits alone are unpacked to the 16 bits of the rows on the way to the tensor
// units; MXFP4 to what the stack says.
WeightFormat weight_format(PrecisionRecipe recipe, const Stack& stack);

}  // namespace orrery
