// SPDX-License-Identifier: Apache-2.0
// Counts steps and saves of a run in closed form.
#include "sim/engine/fleet/job_run.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr GpuPicos ps_of_us = 1'000'000;

// Saves that a job takes from one step to a later one: after every save_steps of its steps.
std::int64_t saves_between(const JobWork& work, std::int64_t from, std::int64_t to) {
  return work.save_steps > 0 ? to / work.save_steps - from / work.save_steps : 0;
}

}  // namespace

std::int64_t steps_of(const JobWork& work, FleetTime length) {
  if (length.us == 0) return 0;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(length.us * ps_of_us / work.step_ps));
}

FleetTime end_of(const JobWork& work, const JobRun& run, std::int64_t steps) {
  const GpuPicos ps = static_cast<GpuPicos>(steps - run.done) * run.step_ps +
                      static_cast<GpuPicos>(saves_between(work, run.done, steps)) * work.save_ps;
  const GpuPicos us = (ps + ps_of_us - 1) / ps_of_us;
  if (us > fleet_never.us) fleet_time_overflow();
  return run.begin + FleetTime{static_cast<std::int64_t>(us)};
}

RunReach reach_of(const JobWork& work, const JobRun& run, std::int64_t steps, FleetTime at) {
  RunReach out{.steps = run.done, .saved = run.done};
  if (at <= run.begin) return out;
  const GpuPicos passed = (at - run.begin).us * ps_of_us;
  if (work.save_steps == 0) {
    out.steps = std::min(steps, run.done + static_cast<std::int64_t>(passed / run.step_ps));
    return out;
  }
  // To the first save, and from each to the next.
  const std::int64_t first = work.save_steps - run.done % work.save_steps;
  const GpuPicos lead = static_cast<GpuPicos>(first) * run.step_ps;
  const GpuPicos cycle = static_cast<GpuPicos>(work.save_steps) * run.step_ps + work.save_ps;
  if (passed < lead) {
    out.steps += static_cast<std::int64_t>(passed / run.step_ps);
  } else {
    const GpuPicos cycles = (passed - lead) / cycle, rest = (passed - lead) % cycle;
    out.steps += first + static_cast<std::int64_t>(cycles) * work.save_steps;
    out.saves = static_cast<std::int64_t>(cycles) + (rest >= work.save_ps ? 1 : 0);
    if (rest >= work.save_ps)
      out.steps += static_cast<std::int64_t>((rest - work.save_ps) / run.step_ps);
  }
  const GpuPicos count = passed - work.write_ps - lead - work.save_ps;
  if (count >= 0) out.saved += first + static_cast<std::int64_t>(count / cycle) * work.save_steps;
  out.steps = std::min(out.steps, steps);
  out.saved = std::min(out.saved, steps);
  out.saves = std::min(out.saves, saves_between(work, run.done, steps));
  return out;
}

RunParts parts_of(const JobWork& work, const JobRun& run, const RunReach& reach, std::int64_t kept,
                  FleetTime at) {
  RunParts out;
  const FleetTime begin = std::min(run.begin, at);
  out.starting = (begin - run.from).us * ps_of_us;
  const auto counted = static_cast<GpuPicos>(kept - run.done);
  out.useful = counted * work.step_ps;
  out.slowed = counted * (run.step_ps - work.step_ps);
  out.saving = static_cast<GpuPicos>(reach.saves) * work.save_ps;
  const GpuPicos rest = (at - begin).us * ps_of_us - out.useful - out.slowed - out.saving;
  // A run that came to its end has nothing left but what rounded the end up.
  (rest < ps_of_us && kept == reach.steps ? out.starting : out.lost) += rest;
  return out;
}

}  // namespace orrery
