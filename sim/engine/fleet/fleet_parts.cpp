// SPDX-License-Identifier: Apache-2.0
// Lets jobs of a shared cluster begin and end on parts of accelerators.
#include <algorithm>

#include "sim/base/errors/check.h"
#include "sim/engine/fleet/fleet_state.h"

namespace orrery {

// None: it opens one, if there is one that is free.
std::optional<std::uint64_t> FleetState::gpu_to_join(std::uint32_t number) const {
  const std::int32_t milli = jobs_[number].milli;
  const FragmentTable* fragments = placer_.fragments();
  if (fragments == nullptr) return hosted_.shared.find(slots_, milli);
  return hosted_.shared.find_by(*fragments, slots_, milli);
}

std::uint64_t FleetState::gpu_for(std::uint32_t number, const Grants& place) const {
  if (const auto gpu = hosted_.shared.gpu_of(number)) return *gpu;
  if (place.front().gpus > 0) return hosted_.shared.next();
  const auto gpu = gpu_to_join(number);
  CHECK_THAT(gpu && hosted_.shared.host_of(*gpu) == place.front().host,
             "a part joins where it was found");
  return *gpu;
}

std::vector<std::uint32_t> FleetState::together_with(std::uint32_t number) const {
  const auto gpu = hosted_.shared.gpu_of(number);
  if (!gpu) return {number};
  std::vector<std::uint32_t> jobs;
  for (const GpuPart& part : hosted_.shared.gpus().at(*gpu).parts) jobs.push_back(part.job);
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

// On a place that is not taken yet.
void FleetState::begin_part(std::uint32_t number, const Grants& place) {
  hosted_.shared.join(gpu_for(number, place), place.front().host,
                      {.job = number, .milli = jobs_[number].milli});
}

// The slot of an accelerator stands with one of its jobs: with the next one, if that leaves.
void FleetState::end_part(std::uint32_t number) {
  const SharedGpus::Left left = hosted_.shared.leave(number);
  if (left.other && grants_[number].front().gpus > 0)
    std::swap(grants_[number].front().gpus, grants_[*left.other].front().gpus);
}

// Its share above idle. Under a limit where nobody shares it draws as much as all of it: rules that
// plan whole accelerators plan what these draw.
bool FleetState::draws_part(std::uint32_t number) const {
  if (!jobs_[number].is_part()) return false;
  const bool admits = hosted_.shared.share() && !power_.all.caps() && power_.feeds.empty();
  return power_.all.is_open() || admits;
}

// A job takes what it draws, or gives it back.
void FleetState::draw_part(std::uint32_t number, bool begins) {
  const std::int64_t drawn = extra_milliwatts(number);
  power_.all.add(begins ? drawn : -drawn);
}

}  // namespace orrery
