// Knows the constants of collective libraries on one accelerator generation, with their evidence.
#pragma once

#include <array>
#include <string>

#include "hw_models/device.h"
#include "sim/base/json.h"
#include "sim/base/names.h"
#include "sim/base/sourced.h"
#include "sim/base/units.h"

namespace orrery {

inline constexpr int collective_algorithm_count = 10;
inline constexpr int collective_protocol_count = 3;

// One algorithm with one protocol. An absent value means that the term does not exist. Which terms
// an algorithm uses, and how, says sim/engine/collectives.cpp.
struct StepCosts {
  bool present = false;
  Sourced<Seconds> base;          // one call, at zero bytes and zero hops
  Sourced<Seconds> hop;           // one step inside a scale-up domain
  Sourced<Seconds> network_hop;   // one step over the network, beyond the fabric's own latency
  Sourced<double> share;          // of the scale-up bandwidth that large messages reach
  Sourced<double> network_share;  // of the NICs' rate that they reach
  Sourced<Bytes> window;          // bytes that fill the pipeline (per rank for nvls and nvls-tree)
  Sourced<BytesPerSecond> copy;   // of a rank's own part from its source to its destination
  Sourced<Bytes> largest;         // bytes per rank up to which the library picks the protocol
  Sourced<double> least_ranks;    // in a domain, from which the library picks the algorithm
  Sourced<double> rank_exponent;  // share falls with (ranks / 8) to this power beyond 8 ranks
};

// NCCL's tuner tables (measured.md 3.9 of the reference) with fitted efficiencies; other makers'
// libraries in the same terms. hw_models/calibration/collectives/<generation>.json.
struct CollectiveCosts {
  std::string name, title;
  StepCosts steps[collective_algorithm_count][collective_protocol_count];
  StepCosts send[collective_protocol_count];  // point to point: ll and simple
  // Ranks of one domain whose NICs one communicator keeps busy; absent: all of them.
  Sourced<double> network_ranks;

  const StepCosts& of(CollectiveAlgorithm a, CollectiveProtocol p) const {
    return steps[static_cast<int>(a)][static_cast<int>(p)];
  }
};

CollectiveCosts read_collective_costs(const JsonValue& file);
// The file of the device's generation; a generation without its own borrows, and its file says so.
CollectiveCosts load_collective_costs(Architecture architecture);
CollectiveCosts load_collective_costs(const Device& device);

template <class StepRef, class Visit>
void visit_step_values(StepRef& s, const std::string& path, Visit&& visit) {
  visit(path + ".base", s.base);
  visit(path + ".hop", s.hop);
  visit(path + ".network_hop", s.network_hop);
  visit(path + ".share", s.share);
  visit(path + ".network_share", s.network_share);
  visit(path + ".window", s.window);
  visit(path + ".copy", s.copy);
  visit(path + ".largest", s.largest);
  visit(path + ".least_ranks", s.least_ranks);
  visit(path + ".rank_exponent", s.rank_exponent);
}

// Calls visit(path, sourced) on every value that is there, in a fixed order.
template <class CostsRef, class Visit>
void visit_collective_values(CostsRef& c, Visit&& visit) {
  for (int a = 0; a < collective_algorithm_count; ++a)
    for (int p = 0; p < collective_protocol_count; ++p)
      if (c.steps[a][p].present)
        visit_step_values(c.steps[a][p],
                          std::string(to_text(static_cast<CollectiveAlgorithm>(a))) + "." +
                              std::string(to_text(static_cast<CollectiveProtocol>(p))),
                          visit);
  for (int p = 0; p < collective_protocol_count; ++p)
    if (c.send[p].present)
      visit_step_values(c.send[p],
                        "send." + std::string(to_text(static_cast<CollectiveProtocol>(p))), visit);
  visit("network_ranks", c.network_ranks);
}

}  // namespace orrery
