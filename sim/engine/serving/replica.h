// SPDX-License-Identifier: Apache-2.0
// Runs one serving engine: its ranks step together, one step after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/engine/serving/rank.h"
#include "sim/engine/serving/scheduler.h"

namespace orrery {

// Steps that equal each other but for their contexts are one event, until a request arrives that
// could change them (a leap). Whoever runs the clock calls settle() at the time of next(), then
// enqueue() of what arrives at that time, then start().
class Replica {
 public:
  // `number` is what its records and steps call it.
  Replica(const ServingRun& run, ServingLedger& ledger, std::int32_t number = 0);

  bool fits(const Request& request) const { return lanes_.front().ranks.front().fits(request); }
  // Requests that wait on the rank that the next one would go to.
  std::int64_t waiting() const;
  // Whether next() changed.
  bool enqueue(Ticks now, const Waiting& waiting);
  // Ends the steps that end now. Appends the requests that ended.
  void settle(Ticks now, std::vector<std::uint32_t>& ended);
  void sent(std::uint32_t request);  // to another engine: its blocks are free
  // How long after the steps that ended now the host reads what they made; known once it started.
  Ticks reads_late() const { return late_; }
  // Plans what starts now; an engine without work waits.
  void start(Ticks now);
  bool busy() const;                    // every lane is
  Ticks next() const { return next_; }  // the end of time where nothing will happen
  void close(Ticks now);
  bool consistent() const;

 private:
  struct Line {  // a rank's times: of the first step, and more for each next one
    Ticks first, slope;
  };
  // A batch in flight: one, unless the engine is a pipeline.
  struct Lane {
    std::vector<Rank> ranks;
    std::int64_t held = 0;  // steps since prompts were let in, or last waited as long as they may
    bool counts = false;    // a step of decodes counts on
    StepRun steps;          // none: it waits
    // Of the step that ended last: when it did, how long after its launching.
    Ticks ended, after_launching;
    std::vector<std::pair<std::size_t, Waiting>> unseen;  // came to a rank during the last step
    std::int64_t running = 0, queued = 0;  // since they were planned; kept for a log alone
    Ticks next;
    bool busy() const { return steps.steps > 0; }
  };
  static std::int64_t waiting(const Lane& lane, std::size_t rank);
  std::pair<std::size_t, std::size_t> choose() const;  // a lane and its rank
  void settle(Lane& lane, Ticks now, std::vector<std::uint32_t>& ended);
  void start(Lane& lane, Ticks now);
  void hold_prompts(Lane& lane);
  bool counts_on(const Lane& lane) const;  // towards the steps that prompts may be held
  bool next_is_planned(const Lane& lane, Ticks now) const;
  Ticks launching(const Lane& lane) const;
  void read_late(Lane& lane, Ticks now);
  bool matters(const Lane& lane, const Rank& to, const Waiting& waiting, Ticks now) const;
  static std::int64_t steps_before(const Lane& lane, Ticks now);
  void take_in(Lane& lane, Ticks now);
  static void cut(Lane& lane, Ticks now);
  static void share_rows(Lane& lane);
  void price(Lane& lane);
  Ticks stall(const Lane& lane, Ticks now) const;
  void count(const Lane& lane, Ticks now);
  StepRecord record(const Lane& lane) const;
  void keep(StepRecord record, const Lane& lane);

  const ServingRun& run_;
  ServingLedger& ledger_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<Lane> lanes_;
  std::vector<Line> lines_;
  std::size_t turn_ = 0;
  bool fresh_ = true;  // no prompt has been computed
  std::int32_t number_ = 0;
  std::size_t kept_ = 0;   // records of the log
  Ticks next_, entrance_;  // when the first stage of a pipeline is free
  Ticks late_;
};

}  // namespace orrery
