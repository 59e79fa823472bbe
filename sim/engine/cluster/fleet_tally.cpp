// SPDX-License-Identifier: Apache-2.0
// Sums accelerator-time, energy and waits.
#include "sim/engine/cluster/fleet_tally.h"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

GpuMicros times(std::int64_t amount, FleetTime time) {
  return static_cast<GpuMicros>(amount) * static_cast<GpuMicros>(time.us);
}

// The head asks for no more than is free, and has no place.
bool is_scattered(const FleetState& state) {
  return !state.waiting().empty() && state.waiting().head().gpus <= state.slots().free();
}

// A thousandth of what runs spent. Their parts sum to a multiple of a thousand; what they leave of
// it one by one counts as time of starts.
FleetWork of_whole(FleetWork work) {
  GpuPicos left = 0;
  for (GpuPicos* part : {&work.useful, &work.in_vain, &work.slowed, &work.capped, &work.saving,
                         &work.lost, &work.preempted, &work.starting}) {
    left += *part % whole_gpu;
    *part /= whole_gpu;
  }
  work.starting += left / whole_gpu;
  return work;
}

}  // namespace

// What the accelerators do for so long; `scattered`: some are free and the head has no place.
void FleetTally::count(FleetTime passed, std::int64_t spare, bool scattered) {
  record_.power.nanojoules += times(state_.power().drawn(), passed);
  if (state_.power().is_over() || state_.feeds().is_over()) record_.power.over += passed;
  if (state_.power().thresholds() != nullptr)
    record_.power.stepped.add(std::max(state_.power().step(), state_.feeds().step()), passed);
  FleetUse& use = record_.use;
  const Slots& slots = state_.slots();
  use.all += times(slots.total(), passed);
  const std::int64_t parts = state_.gangs().gpus;
  state_.gangs().held += times(parts, passed);
  use.held += times(slots.held() - parts, passed);
  use.short_of += times(parts, passed);
  if (const std::int64_t milli = state_.shared().unshared(); milli > 0)
    unshared_ += times(milli, passed);
  use.spare += times(spare, passed);
  use.repair += times(slots.out() - spare, passed);
  const bool waits = !state_.waiting().empty();
  (scattered ? use.scattered : waits ? use.short_of : use.idle) += times(slots.free(), passed);
}

TimelinePart FleetTally::part(std::int64_t spare) const {
  const Slots& slots = state_.slots();
  const bool waits = !state_.waiting().empty();
  const std::int64_t parts = state_.gangs().gpus;
  return {.held = slots.held() - parts,
          .blocked = parts + (waits ? slots.free() : 0),
          .idle = waits ? 0 : slots.free(),
          .spare = spare,
          .repair = slots.out() - spare,
          .waiting = static_cast<GpuMicros>(state_.waiting().size()),
          .milliwatts = state_.power().drawn()};
}

void FleetTally::pass(FleetTime from, FleetTime passed, std::int64_t spare) {
  const bool scattered = is_scattered(state_);
  count(passed, spare, scattered);
  if (question_.hours.energy) add_energy(record_.power.hours, from, passed, state_.power().drawn());
  timeline_.add(from, passed, part(spare));
  teller_.pass(passed, scattered);
}

// Where it is other than was told before.
void FleetTally::tell_power(FleetTime now) {
  const std::int64_t drawn = state_.power().drawn();
  if (!question_.tell || drawn == told_) return;
  told_ = drawn;
  question_.tell({.at = now, .kind = FleetEventKind::power, .milliwatts = drawn});
}

void FleetTally::note(FleetTime now) {
  const std::int64_t drawn = state_.power().drawn();
  record_.power.most_milliwatts = std::max(record_.power.most_milliwatts, drawn);
  ++record_.events;
  ramps_.draw(now, drawn);
  tell_power(now);
}

FleetRecord FleetTally::take(FleetTime now) {
  record_.use.work = of_whole(state_.spent);
  record_.use.work.unshared = unshared_ * (1'000'000 / whole_gpu);
  record_.sized = state_.sized_uses();
  record_.gangs = state_.gangs();
  record_.most_waiting = static_cast<std::int64_t>(state_.waiting().most());
  record_.jobs = std::move(state_.records);
  record_.timeline = timeline_.take();
  record_.power.ramps = ramps_.most();
  if (question_.watch) record_.story = teller_.story.value_or(WaitStory{});
  record_.last_end = now;
  return std::move(record_);
}

}  // namespace orrery
