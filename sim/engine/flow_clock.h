// Knows when flows end: sizes in bytes, rates from the solver, one solve per instant.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/ticks.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/flow_solver.h"

namespace orrery {

// Bytes settle only when a flow's rate changes, in double precision from the flow's own last
// change, so that folded and unfolded runs settle alike. Time in picoseconds; a flow ends at the
// first picosecond at which all its bytes are through.
class FlowClock {
 public:
  explicit FlowClock(const FlowTable& table);

  // `time` never lies before the last end returned. Infinite flows never end.
  void start(FlowIndex flow, Ticks time);
  void start(FlowIndex flow, double bytes, Ticks time);  // with a size of its own
  void stop(FlowIndex flow, Ticks time);
  void set_capacity(LinkIndex link, double bytes_per_second, Ticks time);

  struct End {
    FlowIndex flow;
    Ticks time;
  };
  // The earliest end, after solving at every instant at which something changed; the flow leaves.
  // nullopt when no finite flow runs. Error when all running finite flows are cut off for ever.
  std::optional<End> next();
  // The same up to and including `until`; nullopt when nothing ends by then (time moves to until).
  std::optional<End> next_until(Ticks until);
  Ticks now() const;
  double bytes_moved(FlowIndex flow) const;  // by one flow of the entry, up to now()
  const FlowSolver& solver() const;
  std::uint64_t solves() const;
};

}  // namespace orrery
