// Holds the table of optimizers.
#include "workloads/optimizer.h"

namespace orrery {

OptimizerCost optimizer_cost(Optimizer optimizer, double gradient_bytes, std::int64_t hidden) {
  const double side = static_cast<double>(hidden);
  // Each state is read and written, the gradient read, the bf16 parameter written.
  const auto cost = [&](double master, double state, double flop) {
    const double parameter = master > 0 ? 2 : 4;  // without a master the parameter is read as well
    return OptimizerCost{.master_bytes = master,
                         .state_bytes = state,
                         .traffic_bytes = gradient_bytes + 2 * (master + state) + parameter,
                         .flop = flop};
  };
  switch (optimizer) {
    case Optimizer::adam_fp32:
      return cost(4, 8, 0);
    case Optimizer::adam_bf16:
      return cost(0, 4, 0);
    case Optimizer::adam_bf16_moments:
      return cost(4, 4, 0);
    case Optimizer::adam_8bit:
      return cost(4, 2, 0);  // Dettmers et al., 2022
    // Five Newton-Schulz steps of three products: about 6 * side FLOP a parameter each (Jordan
    // 2024).
    case Optimizer::muon:
      return cost(4, 4, 30 * side);
    // Row and column statistics are negligible beside the parameter (Shazeer and Stern, 2018).
    case Optimizer::adafactor:
      return cost(4, 0, 0);
    // Two preconditioners of the sides' squares, about one parameter's size each, and momentum; two
    // products an update (Gupta et al., 2018; roots are amortised over many steps).
    case Optimizer::shampoo:
      return cost(4, 12, 4 * side);
    case Optimizer::sgd:
      return cost(4, 4, 0);
    // A quarter of the parameters is updated each step: its moments live on the device, the traffic
    // is a quarter of Adam's.
    case Optimizer::rotating_adam: {
      OptimizerCost c = cost(4, 2, 0);
      c.traffic_bytes = cost(4, 8, 0).traffic_bytes / 4;
      return c;
    }
  }
  return {};
}

}  // namespace orrery
