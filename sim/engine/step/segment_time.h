// SPDX-License-Identifier: Apache-2.0
// Prices one layer's phase on a rank: kernels, collectives and the host together.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "hw_models/power.h"
#include "sim/base/units/ticks.h"
#include "sim/engine/network/contention.h"
#include "sim/engine/network/flow_network.h"
#include "sim/engine/placement.h"
#include "sim/engine/step/context.h"
#include "sim/engine/step/host_pace.h"
#include "workloads/operations/program.h"

namespace orrery {

// Priced work of a rank: additive, so that a pass is the sum of its layers.
struct PhaseTime {
  std::array<Seconds, label_count> time{};  // on the compute stream, host waits included
  Seconds host;                             // that the host needs to dispatch it
  Seconds side_data;                        // data-parallel traffic on side streams
  Seconds side_host;     // weights and activations on their way to or from the host
  Seconds side_context;  // context-parallel traffic on a side stream
  // Exchanges that may run under another microbatch's pass, and of them those that are taken to:
  // not in `time`.
  Seconds beside_passes, hidden_by_passes;
  // Tensor-parallel traffic that outlasts the products it runs beside, segment by segment, at full
  // clocks: not in `time`, since a power limit that slows the products hides more of it.
  Seconds outlasts_products;
  Seconds paced;                          // of `time`: goes with the clock, beside `clocked`
  Joules energy;                          // above idle
  std::vector<ClockedWork> clocked;       // of it: tensor work
  Bytes scale_up_bytes, scale_out_bytes;  // sent by the rank

  void add(const PhaseTime& other, double times);
};

Seconds total_time(const PhaseTime& phase);  // of all labels

// On the compute stream, without communication and waits.
Seconds compute_time(const PhaseTime& phase);

// Shows what does not fit under the partner's compute. The hidden share of a pass' exchanges is
// that of its passes that have a partner, so it is that share of the compute that can hide them.
void cap_hidden_exchange(PhaseTime& phase, Seconds partner_compute);

// A finished pass: what each label takes, in engine time; the labels sum to `total`.
struct PassTicks {
  std::array<Ticks, label_count> label{};
  Ticks total;
  Ticks host;           // of its dispatch; in the total where hosts do not run ahead
  Joules energy;        // above idle
  double throttle = 1;  // sustained over burst time of its compute
};

// Host time that a debug wrapper adds to each collective, for every rank of its group.
struct DebugCalls {
  Seconds per_rank, per_remote_rank;  // the second for ranks on other hosts
  Seconds of(const GroupShape& group) const {
    return static_cast<double>(group.per_domain) * per_rank +
           static_cast<double>(group.size - group.per_domain) * per_remote_rank;
  }
};

// Everything that prices operations of one layout.
struct PriceContext {
  const StepContext& step;
  const ResolvedDevice& device;  // the step's, or slower
  const Placement& placement;
  Network& network;
  FlowNetwork* flow = nullptr;  // the same, where collectives beside each other contend
  std::int64_t stage = 0;       // whose groups collectives run in
  Seconds kernel_gap;           // between dependent kernels; their own times are without it
  bool in_graph = false;        // engines use a second stream inside of graphs alone
  double kernel_age = 1;        // time of library kernels over that of the calibrated ones
  DebugCalls debug;
};

PhaseTime price_segment(const Segment& segment, const PriceContext& context);

// A segment's operations as a stream: what waits for what. Collectives beside compute are left out.
std::vector<StreamItem> main_stream(const Segment& segment, const PriceContext& context);

// The collective that an operation runs; nullopt for groups of one and for nothing to send.
std::optional<Collective> collective_of(const CollectiveOperation& operation,
                                        const Placement& placement);

// Joins the streams of a pass: side traffic shows where it outlasts the compute it hides under, the
// device waits where its host, or one of those that it waits for, is slower, and the board's power
// limit stretches compute. Hidden traffic costs the compute `overlap_cost` of its own time.
PassTicks close_pass(PhaseTime phase, const ResolvedDevice& device, double overlap_cost,
                     const HostPace& pace);

const GroupShape& group_shape(const Placement& placement, GroupKind group);

// Bytes of an expert all-to-all as the network sees them: a token goes once to each rank inside a
// scale-up domain, once to each domain beyond.
Bytes deduplicated_bytes(Bytes bytes, const TokenExchange& exchange, const GroupShape& group);

}  // namespace orrery
