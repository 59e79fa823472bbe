// SPDX-License-Identifier: Apache-2.0
// Knows which outputs of a layer recompute by operation keeps: TorchTitan's selective_ac_option
// "op".
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Whether "selective" means that for this layout on this stack.
inline bool recomputes_by_operation(const Layout& layout, const Stack& stack) {
  return stack.recompute.by_operation && layout.recomputes(RecomputeModule::core_attn);
}

// A product of a layer's forward on one rank, queries, keys and values and gate and up apart.
struct SeparateProduct {
  std::int64_t outputs = 0, inputs = 0;
  bool kept = false;   // its output is kept, else the product runs again
  bool needed = true;  // backward reads the output; the layer's last product's it does not
  bool reduced =
      false;  // what it makes is summed over tp, by a reduce-scatter whose result is kept
};
// In the order in which they run: the first, the third, ... is kept (torchtitan's
// distributed/activation_checkpoint.py: "save output of all compute ops, except every second mm").
// Routers and routed experts are no part of the count: the router's product is told to run again,
// and grouped products are not in the list of what is kept. Nor are products with 8-bit operands.
std::vector<SeparateProduct> separate_products(const Model& model, const LayerClass& layer,
                                               const Layout& layout);

}  // namespace orrery
