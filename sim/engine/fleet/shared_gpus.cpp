// SPDX-License-Identifier: Apache-2.0
// Opens accelerators, fills them by best fit, and closes them.
#include "sim/engine/fleet/shared_gpus.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {

std::optional<std::uint64_t> SharedGpus::find(const Slots& slots, std::int32_t milli) const {
  for (auto at = by_room_.lower_bound({milli, INT32_MIN, 0}); at != by_room_.end(); ++at)
    if (!slots.is_out(std::get<1>(*at))) return std::get<2>(*at);
  return std::nullopt;
}

std::optional<std::uint64_t> SharedGpus::find_by(const FragmentTable& fragments, const Slots& slots,
                                                 std::int32_t milli) const {
  std::optional<std::uint64_t> best;
  double least = 0;
  // Those of one room are alike: the first that stands on a host in use is looked at.
  for (auto at = by_room_.lower_bound({milli, INT32_MIN, 0}); at != by_room_.end();) {
    const auto [room, host, number] = *at;
    if (slots.is_out(host)) {
      ++at;
      continue;
    }
    const double growth = fragments.joins(room, milli);
    if (!best || growth < least - least_growth) {
      best = number;
      least = growth;
    }
    at = by_room_.lower_bound({room + 1, INT32_MIN, 0});
  }
  for (std::int32_t free = 1; best && free <= slots.shape().gpus_per_host; ++free)
    if (slots.with_free(free).size() > 0 && fragments.opens(free, milli) < least - least_growth)
      return std::nullopt;
  return best;
}

std::vector<std::uint64_t> SharedGpus::take_changed() {
  std::vector<std::uint64_t> taken;
  taken.swap(changed_);
  std::sort(taken.begin(), taken.end());
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  return taken;
}

void SharedGpus::list(std::uint64_t number, const SharedGpu& gpu) {
  unshared_ += gpu.room;
  if (share_ && gpu.room > 0) by_room_.insert({gpu.room, gpu.host, number});
}

void SharedGpus::unlist(std::uint64_t number, const SharedGpu& gpu) {
  unshared_ -= gpu.room;
  if (share_ && gpu.room > 0) by_room_.erase({gpu.room, gpu.host, number});
}

bool SharedGpus::join(std::uint64_t number, std::int32_t host, GpuPart part) {
  const auto [at, opened] = gpus_.try_emplace(number);
  SharedGpu& gpu = at->second;
  if (opened) {
    gpu.host = host;
    next_ = std::max(next_, number + 1);
  } else {
    unlist(number, gpu);
  }
  CHECK_THAT(gpu.host == host && gpu.room >= part.milli, "a part goes where it has room");
  gpu.room -= part.milli;
  gpu.parts.push_back(part);
  list(number, gpu);
  gpu_of_[part.job] = number;
  if (watched_) changed_.push_back(number);
  return opened;
}

SharedGpus::Left SharedGpus::leave(std::uint32_t job) {
  const auto where = gpu_of_.find(job);
  const auto at = gpus_.find(where->second);
  if (watched_) changed_.push_back(where->second);
  gpu_of_.erase(where);
  SharedGpu& gpu = at->second;
  unlist(at->first, gpu);
  const auto part = std::find_if(gpu.parts.begin(), gpu.parts.end(),
                                 [&](const GpuPart& one) { return one.job == job; });
  gpu.room += part->milli;
  gpu.parts.erase(part);
  Left left{.host = gpu.host, .other = {}};
  if (gpu.parts.empty()) {
    gpus_.erase(at);
    return left;
  }
  left.other = gpu.parts.front().job;
  list(at->first, gpu);
  return left;
}

std::optional<std::uint64_t> SharedGpus::gpu_of(std::uint32_t job) const {
  const auto at = gpu_of_.find(job);
  return at == gpu_of_.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace orrery
