// SPDX-License-Identifier: Apache-2.0
// Holds the constants of collective libraries on one accelerator generation, with their evidence.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "hw_models/device.h"
#include "sim/base/json/json.h"
#include "sim/base/names.h"
#include "sim/base/token_exchange.h"
#include "sim/base/units/sourced.h"
#include "sim/base/units/units.h"

namespace orrery {

// One algorithm with one protocol. An absent value means that the term does not exist. Which terms
// an algorithm uses, and how, says sim/engine/collectives/collectives.cpp.
struct StepCosts {
  // Compiled once: it is long, and units all over the program hold one.
  StepCosts();
  StepCosts(const StepCosts&);
  StepCosts(StepCosts&&) noexcept;
  StepCosts& operator=(const StepCosts&);
  StepCosts& operator=(StepCosts&&) noexcept;
  ~StepCosts();

  bool present = false;
  Sourced<Seconds> base;         // one call, at zero bytes and zero hops
  Sourced<Seconds> hop;          // one step inside a scale-up domain; exchanges: one expert's count
  Sourced<Seconds> far_hop;      // the same where the ring goes on to other domains
  Sourced<Seconds> network_hop;  // one step over the network, beyond the fabric's own latency
  Sourced<double> share;         // of the scale-up bandwidth that large messages reach
  Sourced<double> network_share;  // of the NICs' rate that they reach
  Sourced<Bytes> window;          // bytes that fill the pipeline (per rank for nvls and nvls-tree)
  // Of a rank's own part from its source to its destination; exchanges: of one row through a warp.
  Sourced<BytesPerSecond> copy;
  Sourced<Bytes> largest;         // bytes per rank up to which the library picks the protocol
  Sourced<double> least_ranks;    // in a domain, from which the library picks the algorithm
  Sourced<double> rank_exponent;  // share falls with (ranks / 8) to this power beyond 8 ranks
  // Exchanges of tokens: what one SM needs for a token, for a copy of one and for a copy's bytes.
  Sourced<Seconds> token, row;
  Sourced<BytesPerSecond> sm_rate;
  Sourced<BytesPerSecond> network_sm_rate;  // of the copies between domains, besides
  // Rings: channels at most, bytes of a rank's part that keep the threads of one busy (fewer are
  // used while they have less), and what such bytes add to each step.
  Sourced<double> channels;
  Sourced<Bytes> channel;
  Sourced<Seconds> pass;
  // SMs that the kernel takes when nobody says how many; absent: not known (exchanges: one).
  Sourced<double> sms;
};

// A library's own constants, where they differ from what an algorithm costs by default.
struct LibraryStep {
  CollectiveLibrary library = CollectiveLibrary::nccl;
  ExchangePhase phase = ExchangePhase::dispatch;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  CollectiveProtocol protocol = CollectiveProtocol::simple;
  auto operator<=>(const LibraryStep&) const = default;
};
std::string to_text(const LibraryStep& step);  // its path in the file

// A kind of collective with constants of its own: an all-gather's kernel does not add, a
// broadcast's rank hands on what it gets.
struct KindStep {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  CollectiveProtocol protocol = CollectiveProtocol::simple;
  auto operator<=>(const KindStep&) const = default;
};
std::string to_text(const KindStep& step);  // its path in the file

// NCCL's tuner tables (src/graph/tuning.cc; source nccl-tuner of the catalogue) with fitted
// efficiencies; other makers' libraries in the same terms. Each value names its own source in
// hw_models/calibration/collectives/<architecture>.json.
struct CollectiveCosts {
  std::string name, title;
  StepCosts steps[collective_algorithm_count][collective_protocol_count];
  StepCosts send[collective_protocol_count];  // point to point: ll and simple
  std::map<LibraryStep, StepCosts> libraries;
  std::map<KindStep, StepCosts> kinds;  // whole: what the file leaves out is the algorithm's
  // Ranks of one domain whose NICs one communicator keeps busy; absent: all of them.
  Sourced<double> network_ranks;
  // Added to every step over EFA, whose messages pass the host; there is no LL or LL128 over it.
  Sourced<Seconds> efa_hop;

  const StepCosts& of(CollectiveAlgorithm a, CollectiveProtocol p) const {
    return steps[static_cast<int>(a)][static_cast<int>(p)];
  }
};

CollectiveCosts read_collective_costs(const JsonValue& file);
// The file of the device's generation; a generation without its own borrows, and its file says so.
CollectiveCosts load_collective_costs(Architecture architecture);
// The same under what our own measurements of the device changed: the section "collectives" of
// hw_models/calibration/<device>/fit.json, in the same keys.
CollectiveCosts load_collective_costs(const Device& device);

// Those of the generation with what the "collectives" of a calibration file replace; nothing where
// the file has none.
std::optional<CollectiveCosts> read_fitted_costs(Architecture architecture,
                                                 const JsonValue& calibration);

template <class StepRef, class Visit>
void visit_step_values(StepRef& s, const std::string& path, Visit&& visit) {
  visit(path + ".base", s.base);
  visit(path + ".hop", s.hop);
  visit(path + ".far_hop", s.far_hop);
  visit(path + ".network_hop", s.network_hop);
  visit(path + ".share", s.share);
  visit(path + ".network_share", s.network_share);
  visit(path + ".window", s.window);
  visit(path + ".copy", s.copy);
  visit(path + ".largest", s.largest);
  visit(path + ".least_ranks", s.least_ranks);
  visit(path + ".rank_exponent", s.rank_exponent);
  visit(path + ".token", s.token);
  visit(path + ".row", s.row);
  visit(path + ".sm_rate", s.sm_rate);
  visit(path + ".network_sm_rate", s.network_sm_rate);
  visit(path + ".channels", s.channels);
  visit(path + ".channel", s.channel);
  visit(path + ".pass", s.pass);
  visit(path + ".sms", s.sms);
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
  for (auto& [step, costs] : c.libraries) visit_step_values(costs, to_text(step), visit);
  for (auto& [step, costs] : c.kinds) visit_step_values(costs, to_text(step), visit);
  visit("network_ranks", c.network_ranks);
  visit("efa_hop", c.efa_hop);
}

}  // namespace orrery
