// SPDX-License-Identifier: Apache-2.0
// Knows when flows end: sizes in bytes, rates from the solver, one solve per instant.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/base/units/ticks.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/flows/solver.h"

namespace orrery {

// Bytes settle only when a flow's rate changes, in double precision from the flow's own last
// change, so that folded and unfolded runs settle alike. Time in picoseconds; a flow ends at the
// first picosecond at which all its bytes are through (but for 2^-50 of them, which is rounding),
// and not in the picosecond in which it starts unless it has no bytes at all.
//
// At an instant all ends leave first, then changes apply in the order of the calls, then one solve
// follows when time moves on.
class FlowClock {
 public:
  explicit FlowClock(const FlowTable& table);

  // When a flow ends that starts at 0 with so many bytes and keeps one rate; nullopt beyond the 106
  // days.
  static std::optional<Ticks> end_alone(double bytes, double rate);

  // `time` never lies before now(); a later one is a change to come, which next() passes through.
  // Infinite flows never end. start aborts when at that time the flow runs already; stop aborts
  // when it never started, and does nothing when it has ended by then.
  void start(FlowIndex flow, Ticks time) { start(flow, table_bytes_[flow], time); }
  void start(FlowIndex flow, double bytes, Ticks time);  // with a size of its own
  void stop(FlowIndex flow, Ticks time);
  void set_capacity(LinkIndex link, double bytes_per_second, Ticks time);

  struct End {
    FlowIndex flow;
    Ticks time;
  };
  // The earliest end; the flow has left. Ends of one instant come in ascending order of flow.
  // nullopt when no finite flow runs or is to start. Error (path "network") when what runs is cut
  // off for ever, or would end beyond the 106 days of engine time.
  std::optional<End> next();
  // The same up to and including `until`; nullopt when nothing ends by then (time moves to until).
  std::optional<End> next_until(Ticks until);
  Ticks now() const { return now_; }
  // By one flow of the entry since its last start, up to now().
  double bytes_moved(FlowIndex flow) const;
  bool idle() const { return finite_running_ == 0 && next_ready_ == ready_.size(); }
  // The greatest rate that it had so far, with the last solve.
  double most_rate(FlowIndex flow) const { return flows_[flow].most; }
  // The rest of what it was started with.
  double bytes_left(FlowIndex flow) const { return flows_[flow].bytes - bytes_moved(flow); }
  // Rates of the last solve: those of instants before now(), until next_until(now()) or next().
  const FlowSolver& solver() const { return solver_; }
  std::uint64_t solves() const { return solves_; }

 private:
  enum class State : std::uint8_t { never_started, running, ended };
  struct Flow {
    double bytes = 0, moved = 0;  // moved: up to `settled`
    double rate = 0, most = 0;    // since `settled`; ever
    Ticks settled;
    EventHandle end;
    State state = State::never_started;
  };

  void change(Ticks time, const Event& event);
  void apply(const Event& event);
  void apply_start(FlowIndex flow, double bytes);
  void apply_stop(FlowIndex flow);
  void solve();
  void settle(Flow& flow) const;
  void schedule_end(FlowIndex index);
  void drain(Ticks time);
  std::optional<End> advance(Ticks until);
  [[noreturn]] void fail_cut_off() const;

  FlowSolver solver_;
  std::vector<double> table_bytes_;
  std::vector<Flow> flows_;
  EventQueue queue_;
  Ticks now_;
  bool dirty_ = false;  // something changed since the last solve
  std::uint64_t solves_ = 0;
  std::int64_t finite_running_ = 0;  // flows that are to end
  std::vector<FlowIndex> ready_;     // ended at now_, from next_ready_ on not yet returned
  std::size_t next_ready_ = 0;
  std::vector<Event> changes_;  // scratch of drain()
};

}  // namespace orrery
