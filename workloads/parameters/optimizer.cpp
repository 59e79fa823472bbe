// SPDX-License-Identifier: Apache-2.0
// Holds the table of optimizers.
#include "workloads/parameters/optimizer.h"

namespace orrery {

namespace {

// Sixteen bits complete a parameter that is there in bf16; those of low precision need all of it,
// and ZeRO-3 shards the master itself.
double master_size(const Layout& layout, const Stack& stack) {
  const bool in_bf16 = linear_format(layout.precision) == Format::bf16 ||
                       stack.sharding.parameter_gather_format != Format::fp8;
  return stack.memory.master_remainders && in_bf16 && layout.zero_stage < 3 ? 2 : 4;
}

}  // namespace

bool shards_master(const Layout& layout, const Stack& stack) {
  return layout.zero_stage >= 3 && !stack.memory.gathers_16_bit_shard &&
         layout.optimizer != Optimizer::adam_bf16;
}

OptimizerCost optimizer_cost(const Layout& layout, const Stack& stack, std::int64_t hidden) {
  const double side = static_cast<double>(hidden);
  const double whole = master_size(layout, stack);
  const double gradient = bytes_per_element(stack.sharding.gradient_storage);
  const bool one_copy = shards_master(layout, stack);
  // Each state is read and written, the gradient read, the bf16 parameter written.
  const auto cost = [&](double master, double state, double flop) {
    // Without a whole master the parameter is read as well.
    const double parameter = master < 4 ? 4 : one_copy ? 0 : 2;
    return OptimizerCost{.master_bytes = master,
                         .state_bytes = state,
                         .traffic_bytes = gradient + 2 * (master + state) + parameter,
                         .flop = flop};
  };
  switch (layout.optimizer) {
    case Optimizer::adam_fp32:
      return cost(whole, 8, 0);
    case Optimizer::adam_bf16:
      return cost(0, 4, 0);
    case Optimizer::adam_bf16_moments:
      return cost(whole, 4, 0);
    case Optimizer::adam_8bit:
      return cost(whole, 2, 0);  // Dettmers et al., 2022
    // Five Newton-Schulz steps of three products: about 6 * side FLOP a parameter each (Jordan
    // 2024).
    case Optimizer::muon:
      return cost(whole, 4, 30 * side);
    // Row and column statistics are negligible beside the parameter (Shazeer and Stern, 2018).
    case Optimizer::adafactor:
      return cost(whole, 0, 0);
    // Two preconditioners of the sides' squares, about one parameter's size each, and momentum; two
    // products an update (Gupta et al., 2018; roots are amortised over many steps).
    case Optimizer::shampoo:
      return cost(whole, 12, 4 * side);
    case Optimizer::sgd:
      return cost(whole, 4, 0);
    // A quarter of the parameters is updated each step: its moments live on the device, the traffic
    // is a quarter of Adam's.
    case Optimizer::rotating_adam: {
      OptimizerCost c = cost(whole, 2, 0);
      c.traffic_bytes = cost(whole, 8, 0).traffic_bytes / 4;
      return c;
    }
  }
  return {};
}

}  // namespace orrery
