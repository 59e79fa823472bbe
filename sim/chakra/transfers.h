// SPDX-License-Identifier: Apache-2.0
// Knows what moves between the ranks of traces, and when it ends.
#pragma once

#include <memory>
#include <optional>

#include "sim/chakra/ground.h"
#include "sim/chakra/program.h"
#include "sim/engine/conditions.h"
#include "sim/engine/event_queue.h"

namespace orrery {

class Transfers {
 public:
  struct End {
    Ticks time;
    Event tag;
  };
  virtual ~Transfers() = default;
  // Begins a collective of a group of the program, or a message; its end comes back with `tag`.
  // `now` never lies before an end that was told, nor before an `until` that was asked for.
  virtual void collective(const Event& tag, std::size_t group, const TraceNode& node,
                          Ticks now) = 0;
  virtual void message(const Event& tag, std::int64_t from, std::int64_t to, double bytes,
                       Ticks now) = 0;
  // The earliest end that was not told yet, up to and including `until` (none: whenever it is).
  virtual std::optional<End> next(std::optional<Ticks> until) = 0;
};

// Each takes what it takes alone. All that is given must outlive the transfers.
std::unique_ptr<Transfers> ideal_transfers(TraceGround& ground, const TraceProgram& program);

// All that is under way shares the links of the cluster as it is wired, with its faults and others'
// traffic: max-min fair rates, anew whenever something begins or ends. Messages from one rank to
// another follow each other, as on one communicator. Error when the traces communicate over more
// links than a machine holds, or where faults leave no path.
std::unique_ptr<Transfers> flow_transfers(const TraceGround& ground, const Traces& traces,
                                          const TraceProgram& program,
                                          const Conditions& conditions);

}  // namespace orrery
