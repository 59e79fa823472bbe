// SPDX-License-Identifier: Apache-2.0
// Counts how many running jobs have to end until hosts are free.
#include "sim/engine/slurm/slurm_future.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// Ends of running jobs are looked at in groups: the first to the half minute behind its first end
// and half a minute more, each further one twice as long (the manual: 30 s, doubled with each).
constexpr std::int64_t first_step = 30;
constexpr std::int32_t never = INT32_MAX;

std::int32_t leaf_of(const SlotShape& shape, bool blocks) {
  if (blocks && !shape.levels.empty()) return shape.levels.front().reach;
  for (const SlotLevel& level : shape.levels)
    if (level.name == "leaf group") return level.reach;
  return shape.hosts;
}

}  // namespace

SlurmFuture::SlurmFuture(const SlotShape& shape, bool blocks)
    : shape_(shape),
      places_(shape.hosts, leaf_of(shape, blocks)),
      with_room_(static_cast<std::size_t>(shape.gpus_per_host) + 1,
                 HostWords(words_for(shape.hosts), 0)),
      ready_(static_cast<std::size_t>(shape.gpus_per_host) + 1),
      whole_(words_for(shape.hosts)),
      part_(words_for(shape.hosts)) {
  free_.resize(static_cast<std::size_t>(shape.hosts), 0);
  for (std::int32_t host = 0; host < shape.hosts; ++host) {
    add_host(with_room_[0], host);
    change_free(host, shape.gpus_of(host));
  }
}

void SlurmFuture::change_free(std::int32_t host, std::int32_t by) {
  std::int32_t& free = free_[static_cast<std::size_t>(host)];
  CHECK_THAT(free + by >= 0 && free + by <= shape_.gpus_of(host), "free accelerators of a host");
  for (; by > 0; --by) add_host(with_room_[static_cast<std::size_t>(++free)], host);
  for (; by < 0; ++by) remove_host(with_room_[static_cast<std::size_t>(free--)], host);
}

void SlurmFuture::give(const Running& running, std::int32_t sign) {
  for (const std::int32_t host : running.place.hosts)
    change_free(host, sign * shape_.gpus_per_host);
  if (running.place.rest_host) change_free(*running.place.rest_host, sign * running.gang.rest);
  looked_ahead_ = false;
}

void SlurmFuture::begin(std::uint32_t job, const SlurmGang& gang, const SlurmPlace& place,
                        std::int64_t ends) {
  const auto at = std::upper_bound(ends_.begin(), ends_.end(), ends) - ends_.begin();
  const auto added = running_.insert(running_.begin() + at, {ends, job, gang, place});
  ends_.insert(ends_.begin() + at, ends);
  const bool one = place.hosts.size() + (place.rest_host ? 1 : 0) == 1;
  const std::int32_t host = place.rest_host ? *place.rest_host : place.hosts.front();
  only_host_.insert(only_host_.begin() + at, one ? host : -1);
  give(*added, -1);
}

void SlurmFuture::release(std::uint32_t job) {
  const auto at = std::find_if(running_.begin(), running_.end(),
                               [&](const Running& running) { return running.job == job; });
  give(*at, 1);
  ends_.erase(ends_.begin() + (at - running_.begin()));
  only_host_.erase(only_host_.begin() + (at - running_.begin()));
  running_.erase(at);
}

std::optional<SlurmPlace> SlurmFuture::place_now(const SlurmGang& gang, const HostWords& barred) {
  const HostWords& part = with_room_[static_cast<std::size_t>(gang.rest)];
  for (std::size_t w = 0; w < barred.size(); ++w) {
    whole_[w] = with_room_.back()[w] & ~barred[w];
    part_[w] = part[w] & ~barred[w];
  }
  if (!TreePlaces::exists(gang, whole_, part_)) return std::nullopt;
  return places_.take(gang, whole_, part_);
}

// Jobs end in order; a host that gets so many free keeps the number of those that ended.
void SlurmFuture::look_ahead() {
  if (looked_ahead_) return;
  looked_ahead_ = true;
  for (auto& list : ready_) list.clear();
  std::vector<std::int32_t> free = free_;
  const auto mark = [&](std::int32_t host, std::int32_t from, std::int32_t to, std::int32_t jobs) {
    for (std::int32_t gpus = from; gpus <= to; ++gpus)
      ready_[static_cast<std::size_t>(gpus)].push_back({host, jobs});
  };
  for (std::int32_t host = 0; host < shape_.hosts; ++host)
    mark(host, 1, free[static_cast<std::size_t>(host)], 0);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const auto add = [&](std::int32_t host, std::int32_t gpus) {
      std::int32_t& now = free[static_cast<std::size_t>(host)];
      mark(host, now + 1, now + gpus, static_cast<std::int32_t>(i) + 1);
      now += gpus;
    };
    for (const std::int32_t host : running_[i].place.hosts) add(host, shape_.gpus_per_host);
    if (running_[i].place.rest_host) add(*running_[i].place.rest_host, running_[i].gang.rest);
  }
}

// The number of jobs with which the n-th host that is not barred has so many free; never: more than
// `most`.
std::int32_t SlurmFuture::nth_ready(std::int32_t gpus, std::int32_t n, const HostWords& barred,
                                    std::int32_t most) const {
  for (const Ready& ready : ready_[static_cast<std::size_t>(gpus)]) {
    if (ready.jobs > most) break;
    if (!has_host(barred, ready.host) && --n == 0) return ready.jobs;
  }
  return never;
}

// How many jobs have to end, in order, until there is a place; never: there is none by `latest`.
std::int32_t SlurmFuture::jobs_until_place(const SlurmGang& gang, const HostWords& barred,
                                           std::int64_t latest) const {
  const auto most = static_cast<std::int32_t>(std::upper_bound(ends_.begin(), ends_.end(), latest) -
                                              ends_.begin());
  std::int32_t jobs = 0;
  if (gang.hosts > 0) jobs = nth_ready(shape_.gpus_per_host, gang.hosts, barred, most);
  if (gang.rest > 0 && jobs != never)
    jobs = std::max(jobs, nth_ready(gang.rest, gang.hosts + 1, barred, most));
  return jobs;
}

// Jobs none of whose hosts are usable are passed over.
bool SlurmFuture::is_barred(std::int32_t index, const HostWords& barred) const {
  const auto i = static_cast<std::size_t>(index);
  if (only_host_[i] >= 0) return has_host(barred, only_host_[i]);
  const SlurmPlace& on = running_[i].place;
  const auto is = [&](std::int32_t host) { return has_host(barred, host); };
  return std::all_of(on.hosts.begin(), on.hosts.end(), is) && (!on.rest_host || is(*on.rest_host));
}

std::int32_t SlurmFuture::first_usable(std::int32_t from, const HostWords& barred) const {
  const auto count = static_cast<std::int32_t>(ends_.size());
  while (from < count && is_barred(from, barred)) ++from;
  return from;
}

std::int32_t SlurmFuture::last_usable(const HostWords& barred) const {
  auto last = static_cast<std::int32_t>(ends_.size()) - 1;
  while (is_barred(last, barred)) --last;
  return last;
}

// A group ends behind a job that is not passed over if the next one, passed over or not, ends after
// `until`.
std::optional<SlurmFuture::Group> SlurmFuture::see(const SlurmGang& gang, const HostWords& barred,
                                                   std::int64_t latest) {
  look_ahead();
  const std::int32_t jobs = jobs_until_place(gang, barred, latest);
  if (jobs == never) return std::nullopt;
  const auto count = static_cast<std::int32_t>(ends_.size());
  const auto end = [&](std::int32_t index) { return ends_[static_cast<std::size_t>(index)]; };
  std::int32_t at = first_usable(0, barred);
  std::int64_t until = end(at) / first_step * first_step + 2 * first_step;
  std::int64_t step = first_step;
  while (true) {
    const auto next = std::upper_bound(ends_.begin() + at, ends_.end(), until) - ends_.begin();
    std::int32_t last = std::max(at, static_cast<std::int32_t>(next) - 1);
    // Behind the last one within `until`, else behind the first one after that.
    if (next < count) last = first_usable(last, barred);
    if (next == count || last == count) last = last_usable(barred);
    if (end(last) > latest) return std::nullopt;
    if (next == count || last + 1 >= jobs) return Group{last + 1, end(last)};
    at = last + 1;
    for (; until < end(at); step *= 2) until += step;
  }
}

void SlurmFuture::select(std::int32_t gpus, std::int32_t jobs, const HostWords& barred,
                         HostWords& out) const {
  std::fill(out.begin(), out.end(), 0);
  for (const Ready& ready : ready_[static_cast<std::size_t>(gpus)]) {
    if (ready.jobs > jobs) break;
    if (!has_host(barred, ready.host)) add_host(out, ready.host);
  }
}

SlurmPlace SlurmFuture::place_behind(const SlurmGang& gang, const HostWords& barred,
                                     std::int32_t jobs) {
  select(shape_.gpus_per_host, jobs, barred, whole_);
  if (gang.rest > 0) select(gang.rest, jobs, barred, part_);
  return places_.take(gang, whole_, part_);
}

}  // namespace orrery
