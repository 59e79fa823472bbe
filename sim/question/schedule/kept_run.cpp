// SPDX-License-Identifier: Apache-2.0
// Lists the members of what a run of a point finds.
#include "sim/question/schedule/kept_run.h"

#include "sim/base/tasks/task_value.h"

namespace orrery {

// Beside the types, in their namespace, so that records find them.
auto fields(EitherConst<FleetTime> auto& t) {
  auto& [us] = t;
  return std::tie(us);
}
auto fields(EitherConst<TimeSpread> auto& t) {
  auto& [p50, p90, p99, most, sum_us, count] = t;
  return std::tie(p50, p90, p99, most, sum_us, count);
}
auto fields(EitherConst<FleetGroup> auto& g) {
  auto& [name, jobs, held_share, wait] = g;
  return std::tie(name, jobs, held_share, wait);
}
auto fields(EitherConst<FleetShares> auto& s) {
  auto& [useful, standby, in_vain, slowed, capped, saving, starting, lost, preempted, unshared,
         short_of, scattered, spare, repair, idle] = s;
  return std::tie(useful, standby, in_vain, slowed, capped, saving, starting, lost, preempted,
                  unshared, short_of, scattered, spare, repair, idle);
}
auto fields(EitherConst<ServiceMeasures> auto& m) {
  auto& [requests, refused, kept, worst_hour, worst_at, tokens, replicas, most_replicas, gpu_hours,
         standby_gpu_hours, power] = m;
  return std::tie(requests, refused, kept, worst_hour, worst_at, tokens, replicas, most_replicas,
                  gpu_hours, standby_gpu_hours, power);
}
auto fields(EitherConst<EnergyBill> auto& b) {
  auto& [dollars, kg] = b;
  return std::tie(dollars, kg);
}
auto fields(EitherConst<Slowdowns> auto& s) {
  auto& [mean, p50, p90, p99] = s;
  return std::tie(mean, p50, p90, p99);
}
auto fields(EitherConst<FleetFairness> auto& f) {
  auto& [jain, finish_time_worst, unfair_share] = f;
  return std::tie(jain, finish_time_worst, unfair_share);
}
auto fields(EitherConst<FleetGroups> auto& g) {
  auto& [by_size, by_queue] = g;
  return std::tie(by_size, by_queue);
}
auto fields(EitherConst<FleetDeadlines> auto& d) {
  auto& [jobs, met, too_long, late, delayed, delay] = d;
  return std::tie(jobs, met, too_long, late, delayed, delay);
}
auto fields(EitherConst<PowerRamp> auto& r) {
  auto& [rise, fall] = r;
  return std::tie(rise, fall);
}
auto fields(EitherConst<PowerRamps> auto& r) {
  auto& [minute, quarter] = r;
  return std::tie(minute, quarter);
}
auto fields(EitherConst<ThresholdTimes> auto& t) {
  auto& [low, lower, all] = t;
  return std::tie(low, lower, all);
}
auto fields(EitherConst<MeasuredPower> auto& p) {
  auto& [mean, peak, over_limit, ramps, suspended, stepped, bill] = p;
  return std::tie(mean, peak, over_limit, ramps, suspended, stepped, bill);
}
auto fields(EitherConst<BadEnds> auto& e) {
  auto& [failed, cancelled] = e;
  return std::tie(failed, cancelled);
}
auto fields(EitherConst<FleetDependencies> auto& d) {
  auto& [jobs, cancelled, still_held, held] = d;
  return std::tie(jobs, cancelled, still_held, held);
}
auto fields(EitherConst<FleetMeasures> auto& m) {
  auto& [submitted, finished, rejected, running, queued, bad_ends, dependencies, wait, completion,
         slowdown, fairness, shares, held, scattered, stops, preemptions, moves, waited_again,
         energy, power, span, most_waiting, groups, deadlines, services] = m;
  return std::tie(submitted, finished, rejected, running, queued, bad_ends, dependencies, wait,
                  completion, slowdown, fairness, shares, held, scattered, stops, preemptions,
                  moves, waited_again, energy, power, span, most_waiting, groups, deadlines,
                  services);
}
auto fields(EitherConst<JobRecord> auto& j) {
  auto& [start, end, promise, hosts, groups, rejected, cancelled, still_held, stops, preemptions,
         moves, waited_again, delayed, held] = j;
  return std::tie(start, end, promise, hosts, groups, rejected, cancelled, still_held, stops,
                  preemptions, moves, waited_again, delayed, held);
}
auto fields(EitherConst<FleetWork> auto& w) {
  auto& [useful, in_vain, slowed, capped, saving, starting, lost, preempted, unshared] = w;
  return std::tie(useful, in_vain, slowed, capped, saving, starting, lost, preempted, unshared);
}
auto fields(EitherConst<FleetUse> auto& u) {
  auto& [all, held, work, short_of, scattered, idle, spare, repair] = u;
  return std::tie(all, held, work, short_of, scattered, idle, spare, repair);
}
auto fields(EitherConst<BreakdownCount> auto& c) {
  auto& [struck, stopped, requeued] = c;
  return std::tie(struck, stopped, requeued);
}
auto fields(EitherConst<IncidentCount> auto& c) {
  auto& [happened, gpus, stopped, largest, lost, waited] = c;
  return std::tie(happened, gpus, stopped, largest, lost, waited);
}
auto fields(EitherConst<SizedUse> auto& u) {
  auto& [job, moves, held, time, since] = u;
  return std::tie(job, moves, held, time, since);
}
auto fields(EitherConst<FleetPower> auto& p) {
  auto& [nanojoules, most_milliwatts, over, hours, ramps, suspended, stepped] = p;
  return std::tie(nanojoules, most_milliwatts, over, hours, ramps, suspended, stepped);
}
auto fields(EitherConst<TimelinePart> auto& p) {
  auto& [held, blocked, idle, spare, repair, waiting, milliwatts] = p;
  return std::tie(held, blocked, idle, spare, repair, waiting, milliwatts);
}
auto fields(EitherConst<FleetTimeline> auto& t) {
  auto& [length, end, parts] = t;
  return std::tie(length, end, parts);
}
auto fields(EitherConst<WaitStory::Head> auto& h) {
  auto& [job, time] = h;
  return std::tie(job, time);
}
auto fields(EitherConst<WaitStory> auto& s) {
  auto& [behind, short_of, scattered, delayed, heads, ahead, free_then] = s;
  return std::tie(behind, short_of, scattered, delayed, heads, ahead, free_then);
}
auto fields(EitherConst<LemonCount> auto& c) {
  auto& [struck, exchanged, lemons_exchanged] = c;
  return std::tie(struck, exchanged, lemons_exchanged);
}
auto fields(EitherConst<GangParts> auto& g) {
  auto& [gpus, given_up, held] = g;
  return std::tie(gpus, given_up, held);
}
auto fields(EitherConst<StoreReads> auto& r) {
  auto& [count, most, alone, took, longest, waited] = r;
  return std::tie(count, most, alone, took, longest, waited);
}
// What each job did would be most of a folder: who asks for it runs the first seed again.
auto fields(EitherConst<FleetRecord> auto& r) {
  auto& [jobs, use, power, timeline, breakdowns, incidents, sized, reads, lemons, gangs, last_end,
         events, story, most_waiting, stopped, cut] = r;
  static_cast<void>(jobs);
  return std::tie(use, power, timeline, breakdowns, incidents, sized, reads, lemons, gangs,
                  last_end, events, story, most_waiting, stopped, cut);
}
auto fields(EitherConst<KeptRun> auto& k) {
  auto& [measures, record, watched, trainings] = k;
  return std::tie(measures, record, watched, trainings);
}

std::optional<KeptRun> kept_run(Tasks* tasks, std::uint64_t task,
                                const std::function<std::optional<KeptRun>()>& make) {
  return task_value<KeptRun>(tasks, task, make);
}

}  // namespace orrery
