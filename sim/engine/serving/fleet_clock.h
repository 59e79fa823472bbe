// SPDX-License-Identifier: Apache-2.0
// Runs the clock of some engines: arrivals, steps, transfers and what follows an answer.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/serving/fleet.h"
#include "sim/engine/serving/replica.h"
#include "sim/engine/serving/winner_tree.h"

namespace orrery {

// Engines of a group as one clock runs them.
struct ClockGroup {
  const ServingRun& run;
  RouterPolicy router;
  std::size_t replicas = 1;
};

// At one time, first steps end, then requests arrive, then steps start: a step that starts at a
// time sees all that arrived by then, in whatever order that was found.
class FleetClock {
 public:
  // The requests that arrive by themselves are `own`, in order of arrival, or all of the list;
  // `follower` is of each request the one that follows its end or -1, empty where none does.
  // Records are shared with other clocks; each writes those of its requests alone.
  FleetClock(const std::vector<ClockGroup>& groups, const TransferPrices* transfers,
             const std::vector<std::uint32_t>* own, const std::vector<std::int32_t>& follower,
             std::int32_t first_replica, std::vector<RequestRecord>& records);

  void run(const ServingOptions& options);
  ServiceTotals totals;
  GapHistogram gaps;
  Gauge in_system;
  Ticks end;
  bool stopped = false;
  StepLog steps;  // where the options ask for it

 private:
  struct Group {
    RequestRouter router;
    std::size_t first, count;  // of replicas_
  };
  enum Kind : std::uint32_t { arrival, transferred, read };

  bool next_own(Ticks& time, std::uint32_t& request);
  bool arrivals_at(Ticks now);
  Ticks front_of(std::uint32_t request) const;
  void leave(Ticks at, std::uint32_t request);
  void arrive(Ticks now, std::uint32_t request);
  void send(Ticks now, std::size_t group, const Waiting& waiting);
  void settle(Ticks now, std::size_t replica);
  void hand_over(Ticks now);
  void ended(Ticks now, std::size_t replica, std::uint32_t request, Ticks late);
  void finished(Ticks now, std::uint32_t request);
  void answered(Ticks now, std::uint32_t request);

  const RequestList& list_;
  const EnginePolicy& policy_;  // of the engines that requests come to
  const TransferPrices* transfers_;
  const std::vector<std::uint32_t>* own_;
  const std::vector<std::int32_t>& follower_;
  std::int32_t first_replica_;
  std::vector<RequestRecord>& records_;
  ServingLedger ledger_;
  std::vector<Group> groups_;
  std::vector<Replica> replicas_;
  WinnerTree<Ticks> times_;
  EventQueue events_;
  std::vector<Ticks> links_;  // when the link of a prefill engine is free
  std::vector<std::uint32_t> awake_, ended_;
  bool reads_after_launch_;  // the engines that requests come to
  std::vector<std::pair<std::size_t, std::uint32_t>> read_late_;  // replica and request
  std::size_t next_ = 0;                                          // in own_ or the list
  std::int64_t done_ = 0;
};

}  // namespace orrery
