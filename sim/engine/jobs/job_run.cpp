// SPDX-License-Identifier: Apache-2.0
// Counts steps and saves of a run in closed form.
#include "sim/engine/jobs/job_run.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr GpuPicos ps_of_us = 1'000'000;

}  // namespace

// After every save_steps of its steps.
std::int64_t saves_between(const JobWork& work, std::int64_t from, std::int64_t to) {
  return work.save_steps > 0 ? to / work.save_steps - from / work.save_steps : 0;
}

std::int64_t steps_of(const JobWork& work, FleetTime length) {
  if (length.us == 0) return 0;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(length.us * ps_of_us / work.step_ps));
}

namespace {

FleetTime rounded_up(GpuPicos ps) {
  const GpuPicos us = (ps + ps_of_us - 1) / ps_of_us;
  if (us > fleet_never.us) fleet_time_overflow();
  return {static_cast<std::int64_t>(us)};
}

}  // namespace

FleetTime length_of(std::int64_t steps, std::int64_t step_ps) {
  return rounded_up(static_cast<GpuPicos>(steps) * step_ps);
}

FleetTime end_of(const JobWork& work, const JobRun& run, std::int64_t steps) {
  const GpuPicos ps = run.lead_ps + static_cast<GpuPicos>(steps - run.done) * run.step_ps +
                      static_cast<GpuPicos>(saves_between(work, run.done, steps)) * work.save_ps;
  return run.begin + rounded_up(ps);
}

namespace {

// Steps and saves of a run, `passed` after its lead.
struct Passed {
  GpuPicos steps = 0, saves = 0;
  GpuPicos into = 0;    // the step or save that is under way
  bool saving = false;  // it is a save
};
Passed passed_of(const JobWork& work, const JobRun& run, GpuPicos passed) {
  if (work.save_steps == 0) return {.steps = passed / run.step_ps, .into = passed % run.step_ps};
  // To the first save, and from each to the next.
  const std::int64_t first = work.save_steps - run.done % work.save_steps;
  const GpuPicos lead = static_cast<GpuPicos>(first) * run.step_ps;
  const GpuPicos cycle = static_cast<GpuPicos>(work.save_steps) * run.step_ps + work.save_ps;
  if (passed < lead) return {.steps = passed / run.step_ps, .into = passed % run.step_ps};
  const GpuPicos cycles = (passed - lead) / cycle, rest = (passed - lead) % cycle;
  Passed out{.steps = first + cycles * work.save_steps, .saves = cycles, .into = rest};
  out.saving = rest < work.save_ps;
  if (out.saving) return out;
  ++out.saves;
  out.steps += (rest - work.save_ps) / run.step_ps;
  out.into = (rest - work.save_ps) % run.step_ps;
  return out;
}

// Steps in the newest save that was taken by then, `passed` after the lead; those of before where
// there is none.
std::int64_t newest_save(const JobWork& work, const JobRun& run, GpuPicos passed) {
  if (work.save_steps == 0 || passed < 0) return run.saved;
  const std::int64_t saves = static_cast<std::int64_t>(passed_of(work, run, passed).saves);
  if (saves == 0) return run.saved;
  return (run.done / work.save_steps + saves) * work.save_steps;
}

GpuPicos after_lead(const JobRun& run, FleetTime at) {
  return (at - run.begin).us * ps_of_us - run.lead_ps;
}

}  // namespace

RunReach reach_of(const JobWork& work, const JobRun& run, std::int64_t steps, FleetTime at) {
  RunReach out{.steps = run.done, .saved = run.saved};
  if (at >= run.pending_at) out.saved = std::max(out.saved, run.pending);
  if (at <= run.begin && run.lead_ps == 0) return out;
  const GpuPicos passed = after_lead(run, at);
  if (passed < 0) {
    out.steps -= run.in_step ? 1 : 0;
    return out;
  }
  const Passed whole = passed_of(work, run, passed);
  out.steps = std::min(steps, run.done + static_cast<std::int64_t>(whole.steps));
  out.saves =
      std::min(saves_between(work, run.done, steps), static_cast<std::int64_t>(whole.saves));
  out.saved = std::min(steps, std::max(out.saved, newest_save(work, run, passed - work.write_ps)));
  return out;
}

LastSave last_save_of(const JobWork& work, const JobRun& run, std::int64_t steps, FleetTime at) {
  const RunReach reach = reach_of(work, run, steps, at);
  if (reach.saved >= reach.steps) return {at, at};
  const LastSave anew{at, at + rounded_up(GpuPicos{work.save_ps} + work.write_ps)};
  // The step that was under way as the speed changed is over, and its save is under way.
  if (run.pending > reach.steps && run.pending_at <= anew.counts)
    return {run.begin + rounded_up(run.lead_ps), run.pending_at};
  if (reach.steps == run.pending && run.pending_at != fleet_never) {
    // It was under way as the speed changed.
    const FleetTime stall = run.in_step ? FleetTime{} : rounded_up(run.lead_ps);
    return {std::max(at, run.begin + stall), run.pending_at};
  }
  const GpuPicos to_last =
      run.lead_ps + static_cast<GpuPicos>(reach.steps - run.done) * run.step_ps +
      static_cast<GpuPicos>(saves_between(work, run.done, reach.steps)) * work.save_ps;
  if (reach.steps > run.done && reach.steps % work.save_steps == 0)
    return {std::max(at, run.begin + rounded_up(to_last)),
            run.begin + rounded_up(to_last + work.write_ps)};
  return anew;
}

JobRun at_other_speed(const JobWork& work, const JobRun& run, std::int64_t steps, FleetTime now,
                      std::int64_t step_ps) {
  JobRun next = run;
  next.step_ps = step_ps;
  next.from = next.begin = now;
  const GpuPicos passed = after_lead(run, now);
  const RunReach reach = reach_of(work, run, steps, now);
  next.saved = reach.saved;
  if (passed < 0) {  // still in what was under way before
    next.lead_ps = static_cast<std::int64_t>(-passed);
    return next;
  }
  const Passed whole = passed_of(work, run, passed);
  next.done = run.done + static_cast<std::int64_t>(whole.steps) + (whole.saving ? 0 : 1);
  next.in_step = !whole.saving;
  next.lead_ps =
      static_cast<std::int64_t>((whole.saving ? work.save_ps : run.step_ps) - whole.into);
  // A step that ends with a save takes it along.
  const bool saves = work.save_steps > 0 && next.done % work.save_steps == 0;
  if (saves && next.in_step) next.lead_ps += work.save_ps;
  const std::int64_t newest = saves ? next.done : newest_save(work, run, passed);
  next.pending = newest;
  next.pending_at = fleet_never;
  if (newest > reach.saved) {
    const GpuPicos wait = work.write_ps + (saves ? next.lead_ps : 0);
    next.pending_at = now + FleetTime{static_cast<std::int64_t>((wait + ps_of_us - 1) / ps_of_us)};
  }
  return next;
}

RunParts parts_of(const JobWork& work, const JobRun& run, const RunReach& reach, std::int64_t kept,
                  FleetTime at, std::int64_t lead_ps) {
  RunParts out;
  const FleetTime begin = std::min(run.begin, at);
  out.starting = (begin - run.from).us * ps_of_us;
  const auto counted = static_cast<GpuPicos>(kept - run.done);
  out.useful = counted * work.step_ps;
  out.capped = counted * run.capped_ps;
  out.slowed = counted * (run.step_ps - run.capped_ps - work.step_ps);
  out.saving = static_cast<GpuPicos>(reach.saves) * work.save_ps;
  const GpuPicos rest = (at - begin).us * ps_of_us + lead_ps - run.lead_ps - out.useful -
                        out.slowed - out.capped - out.saving;
  // A run that came to its end has nothing left but what rounded the end up.
  (rest < ps_of_us && kept == reach.steps ? out.starting : out.lost) += rest;
  return out;
}

}  // namespace orrery
