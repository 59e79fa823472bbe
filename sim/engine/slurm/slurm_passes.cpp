// SPDX-License-Identifier: Apache-2.0
// Places, tests and plans jobs by Slurm's rules.
#include "sim/engine/slurm/slurm_passes.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::int64_t minute = 60;
// Ends of running jobs are looked at in groups: the first to the half minute behind its first end
// and half a minute more, each further one twice as long (the manual: 30 s, doubled with each).
constexpr std::int64_t first_step = 30;

}  // namespace

SlurmPasses::SlurmPasses(const SlotShape& shape, const SlurmSettings& settings)
    : shape_(shape), settings_(settings), leaf_(shape.hosts) {
  for (const SlotLevel& level : shape.levels)
    if (level.name == "leaf group") leaf_ = level.reach;
  for (std::int32_t host = 0; host < shape.hosts; ++host) free_.push_back(shape.gpus_of(host));
}

void SlurmPasses::submit(std::uint32_t number, std::int32_t gpus, std::int64_t limit) {
  jobs_[number] = {.hosts = gpus / shape_.gpus_per_host,
                   .rest = gpus % shape_.gpus_per_host,
                   .limit = (limit + minute - 1) / minute * minute};
  queue_.insert(number);
}

void SlurmPasses::give(const Job& job, Free& free) const {
  for (const std::int32_t host : job.on)
    free[static_cast<std::size_t>(host)] += shape_.gpus_per_host;
  if (job.rest_on) free[static_cast<std::size_t>(*job.rest_on)] += job.rest;
}

void SlurmPasses::release(std::uint32_t number) {
  const Job& job = jobs_.at(number);
  give(job, free_);
  std::erase(running_, &job);
  jobs_.erase(number);
}

void SlurmPasses::begin(const Start& start, std::int64_t now) {
  Job& job = jobs_.at(start.job);
  job.ends = now + job.limit;
  job.on = start.hosts;
  job.rest_on = start.rest_host;
  for (const std::int32_t host : job.on)
    free_[static_cast<std::size_t>(host)] -= shape_.gpus_per_host;
  if (job.rest_on) free_[static_cast<std::size_t>(*job.rest_on)] -= job.rest;
  queue_.erase(start.job);
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &job, ends_before), &job);
}

// Leaf by leaf: of those that have enough the one with fewest, else the one with most; in each the
// hosts of lowest number.
bool SlurmPasses::take_hosts(const Free& free, const HostFlags* barred, std::int32_t of_host,
                             std::int32_t count, std::vector<std::int32_t>& taken) const {
  std::vector<std::vector<std::int32_t>> leaves;
  std::int32_t all = 0;
  for (std::int32_t first = 0; first < shape_.hosts; first += leaf_) {
    std::vector<std::int32_t>& leaf = leaves.emplace_back();
    for (std::int32_t host = first; host < std::min(first + leaf_, shape_.hosts); ++host) {
      const auto h = static_cast<std::size_t>(host);
      const bool taken_already = std::find(taken.begin(), taken.end(), host) != taken.end();
      if (free[h] >= of_host && (barred == nullptr || (*barred)[h] == 0) && !taken_already)
        leaf.push_back(host);
    }
    all += static_cast<std::int32_t>(leaf.size());
  }
  if (all < count) return false;
  while (count > 0) {
    auto best = leaves.begin();
    for (auto leaf = leaves.begin(); leaf != leaves.end(); ++leaf) {
      const bool enough = std::ssize(*leaf) >= count, enough_now = std::ssize(*best) >= count;
      if (enough ? !enough_now || leaf->size() < best->size()
                 : !enough_now && leaf->size() > best->size())
        best = leaf;
    }
    const auto part = std::min<std::ptrdiff_t>(count, std::ssize(*best));
    taken.insert(taken.end(), best->begin(), best->begin() + part);
    count -= static_cast<std::int32_t>(part);
    leaves.erase(best);
  }
  return true;
}

std::optional<SlurmPasses::Start> SlurmPasses::place(std::uint32_t number, const Free& free,
                                                     const HostFlags* barred) const {
  const Job& job = jobs_.at(number);
  Start start{.job = number};
  if (job.hosts > 0 && !take_hosts(free, barred, shape_.gpus_per_host, job.hosts, start.hosts))
    return std::nullopt;
  if (job.rest > 0) {
    std::vector<std::int32_t> with_rest = start.hosts;
    if (!take_hosts(free, barred, job.rest, 1, with_rest)) return std::nullopt;
    start.rest_host = with_rest.back();
  }
  std::sort(start.hosts.begin(), start.hosts.end());
  return start;
}

std::vector<SlurmPasses::Start> SlurmPasses::main_pass(std::int64_t now, bool whole_queue) {
  std::vector<Start> starts;
  std::size_t looked_at = 0;
  while (!queue_.empty() && (whole_queue || looked_at++ < settings_.depth)) {
    const auto start = place(*queue_.begin(), free_, nullptr);
    if (!start) break;
    begin(*start, now);
    starts.push_back(*start);
  }
  return starts;
}

bool SlurmPasses::is_barred(const Job& job, const HostFlags& barred) const {
  const auto is = [&](std::int32_t host) { return barred[static_cast<std::size_t>(host)] != 0; };
  return std::all_of(job.on.begin(), job.on.end(), is) && (!job.rest_on || is(*job.rest_on));
}

// When it would start if running jobs ended at their limits.
std::optional<SlurmPasses::Expected> SlurmPasses::expect(std::uint32_t number, std::int64_t now,
                                                         const HostFlags& barred) const {
  if (auto start = place(number, free_, &barred)) return Expected{now, std::move(*start)};
  Free free = free_;
  const std::vector<const Job*>& order = running_;
  std::optional<std::int64_t> until;
  std::int64_t step = first_step;
  for (std::size_t next = 0; next < order.size();) {
    for (; until && *until < order[next]->ends; step *= 2) *until += step;
    std::optional<std::int64_t> last;
    while (next < order.size()) {
      const Job& ending = *order[next++];
      if (is_barred(ending, barred)) continue;
      last = ending.ends;
      if (!until) until = *last / first_step * first_step + 2 * first_step;
      give(ending, free);
      if (next < order.size() && order[next]->ends > *until) break;
    }
    if (!last) continue;
    if (auto start = place(number, free, &barred))
      return Expected{std::max(now, *last), std::move(*start)};
  }
  return std::nullopt;
}

std::vector<SlurmPasses::Start> SlurmPasses::backfill_pass(std::int64_t now) {
  std::vector<Start> starts;
  SlurmPlan plan(now, now + settings_.window, shape_.hosts);
  const std::vector<std::uint32_t> order(queue_.begin(), queue_.end());
  for (std::size_t i = 0; i < std::min(order.size(), settings_.most_tested); ++i) {
    const std::int64_t limit = jobs_.at(order[i]).limit;
    std::optional<std::int64_t> earliest = now;
    while (earliest) {
      const SlurmPlan::Barred barred = plan.barred(*earliest, *earliest + limit);
      auto found = expect(order[i], now, barred.hosts);
      if (!found) {
        earliest = barred.later;
        continue;
      }
      const std::int64_t start = std::max(found->at, *earliest);
      if (start <= now) {
        begin(found->start, now);
        starts.push_back(std::move(found->start));
        break;
      }
      if (barred.later && start > *barred.later) {
        earliest = barred.later;
        continue;
      }
      if (start > now + settings_.window) break;
      const std::int64_t block = settings_.resolution;
      const std::int64_t from = start / block * block, to = (start + limit) / block * block;
      std::vector<std::int32_t> hosts = found->start.hosts;
      if (found->start.rest_host) hosts.push_back(*found->start.rest_host);
      if (plan.is_free(hosts, from, to)) {
        plan.reserve(hosts, from, to);
        break;
      }
      // Rounded down it begins before what it was tested against ends: the next instant will do.
      earliest = start > *earliest ? std::optional(start) : barred.later;
    }
  }
  return starts;
}

}  // namespace orrery
