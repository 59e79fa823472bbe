// SPDX-License-Identifier: Apache-2.0
// Tests and plans jobs by Slurm's rules.
#include "sim/engine/slurm/slurm_passes.h"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

constexpr std::int64_t minute = 60;

}  // namespace

SlurmPasses::SlurmPasses(const SlotShape& shape, const SlurmSettings& settings)
    : settings_(settings),
      future_(shape, settings.blocks),
      hosts_(shape.hosts),
      gpus_per_host_(shape.gpus_per_host),
      barred_(words_for(shape.hosts)),
      out_(words_for(shape.hosts)) {}

void SlurmPasses::submit(std::uint32_t number, std::int32_t gpus, std::int64_t limit,
                         std::int64_t priority) {
  const Waiting job{.job = number,
                    .gang = {gpus / gpus_per_host_, gpus % gpus_per_host_},
                    .limit = std::max(minute, (limit + minute - 1) / minute * minute),
                    .priority = priority};
  queue_.insert(std::upper_bound(queue_.begin(), queue_.end(), job, is_before), job);
}

SlurmPasses::Start SlurmPasses::begin(const Waiting& job, SlurmPlace place, std::int64_t now) {
  future_.begin(job.job, job.gang, place, now + job.limit);
  return {job.job, std::move(place.hosts), place.rest_host};
}

std::vector<SlurmPasses::Start> SlurmPasses::main_pass(std::int64_t now, bool whole_queue) {
  std::vector<Start> starts;
  barred_ = out_;
  std::size_t gone = 0;
  for (; gone < queue_.size() && (whole_queue || gone < settings_.depth); ++gone) {
    auto place = future_.place_now(queue_[gone].gang, barred_);
    if (!place) break;
    starts.push_back(begin(queue_[gone], *std::move(place), now));
  }
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(gone));
  return starts;
}

bool SlurmPasses::reserve(Pass& pass, const SlurmPlace& place, std::int64_t start,
                          std::int64_t limit) {
  const std::int64_t block = settings_.resolution;
  const std::int64_t from = start / block * block, to = (start + limit) / block * block;
  if (!pass.plan.is_free(place, from, to)) return false;
  pass.plan.reserve(place, from, to);
  return true;
}

// The place of a job that starts now; of one that does not, it is planned.
std::optional<SlurmPlace> SlurmPasses::plan(Pass& pass, const Waiting& job) {
  const std::int64_t last_start = pass.now + settings_.window;
  std::optional<std::int64_t> earliest = pass.now;
  while (earliest) {
    const auto later = pass.plan.bar(*earliest, *earliest + job.limit, barred_);
    for (std::size_t w = 0; w < out_.size(); ++w) barred_[w] |= out_[w];
    auto place = future_.place_now(job.gang, barred_);
    std::int64_t start = *earliest;
    if (place) {
      if (start <= pass.now) return place;
    } else {
      const auto seen = future_.see(job.gang, barred_, later.value_or(INT64_MAX));
      if (!seen) {
        earliest = later;
        continue;
      }
      start = std::max({start, seen->last, pass.now + 1});
      place = future_.place_behind(job.gang, barred_, seen->behind);
    }
    if (start > last_start) break;
    if (reserve(pass, *place, start, job.limit)) return std::nullopt;
    // Rounded down it begins before what it was tested against ends: the next instant will do.
    earliest = start > *earliest ? std::optional(start) : later;
  }
  return std::nullopt;
}

std::vector<SlurmPasses::Start> SlurmPasses::backfill_pass(std::int64_t now) {
  std::vector<Start> starts;
  Pass pass{now, SlurmPlan(now, now + settings_.window, hosts_)};
  const std::size_t tested = std::min(queue_.size(), settings_.most_tested);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tested; ++i) {
    const Waiting& job = queue_[i];
    auto place = plan(pass, job);
    if (place)
      starts.push_back(begin(job, *std::move(place), now));
    else
      queue_[kept++] = job;
  }
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(kept),
               queue_.begin() + static_cast<std::ptrdiff_t>(tested));
  return starts;
}

}  // namespace orrery
