// SPDX-License-Identifier: Apache-2.0
// Decides as Slurm's two loops do, plainly: the planner that the fast one is held against.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/engine/slurm/slurm_passes.h"

namespace orrery {

// A set of hosts by their numbers.
using HostFlags = std::vector<std::uint8_t>;

// Spans one after the other, each with the hosts that are reserved in it. Times in seconds.
class PlainSlurmPlan {
 public:
  PlainSlurmPlan(std::int64_t begin, std::int64_t end, std::int32_t hosts);
  struct Barred {
    HostFlags hosts;                    // reserved at some time of it
    std::optional<std::int64_t> later;  // when the first of them is freed
  };
  Barred barred(std::int64_t start, std::int64_t end) const;
  bool is_free(const std::vector<std::int32_t>& hosts, std::int64_t begin, std::int64_t end) const;
  void reserve(const std::vector<std::int32_t>& hosts, std::int64_t begin, std::int64_t end);

 private:
  void split(std::int64_t edge);

  std::vector<std::int64_t> edges_;
  std::vector<HostFlags> reserved_;
};

PlainSlurmPlan::PlainSlurmPlan(std::int64_t begin, std::int64_t end, std::int32_t hosts)
    : edges_{begin, end}, reserved_{HostFlags(static_cast<std::size_t>(hosts), 0)} {}

inline PlainSlurmPlan::Barred PlainSlurmPlan::barred(std::int64_t start, std::int64_t end) const {
  Barred out{HostFlags(reserved_.front().size(), 0), std::nullopt};
  const auto after = std::upper_bound(edges_.begin(), edges_.end(), start);
  for (auto i = static_cast<std::size_t>(after - edges_.begin()) - 1; i < reserved_.size(); ++i) {
    const HostFlags& here = reserved_[i];
    if (!out.later && i + 1 < reserved_.size()) {
      const HostFlags& next = reserved_[i + 1];
      for (std::size_t h = 0; h < here.size() && !out.later; ++h)
        if (here[h] != 0 && next[h] == 0) out.later = edges_[i + 1];
    }
    if (edges_[i] > end) break;
    for (std::size_t h = 0; h < here.size(); ++h) out.hosts[h] |= here[h];
  }
  return out;
}

inline bool PlainSlurmPlan::is_free(const std::vector<std::int32_t>& hosts, std::int64_t begin,
                                    std::int64_t end) const {
  for (std::size_t i = 0; i < reserved_.size(); ++i) {
    if (edges_[i + 1] <= begin || edges_[i] >= end) continue;
    for (const std::int32_t host : hosts)
      if (reserved_[i][static_cast<std::size_t>(host)] != 0) return false;
  }
  return true;
}

inline void PlainSlurmPlan::split(std::int64_t edge) {
  const auto at = std::lower_bound(edges_.begin(), edges_.end(), edge);
  if (at == edges_.end() || *at == edge) return;
  const auto index = at - edges_.begin();
  reserved_.insert(reserved_.begin() + index, reserved_[static_cast<std::size_t>(index) - 1]);
  edges_.insert(at, edge);
}

inline void PlainSlurmPlan::reserve(const std::vector<std::int32_t>& hosts, std::int64_t begin,
                                    std::int64_t end) {
  begin = std::max(begin, edges_.front());
  if (end <= begin) return;
  split(begin);
  split(end);
  for (std::size_t i = 0; i < reserved_.size(); ++i)
    if (edges_[i] >= begin && edges_[i] < end)
      for (const std::int32_t host : hosts) reserved_[i][static_cast<std::size_t>(host)] = 1;
  for (std::size_t i = reserved_.size(); i-- > 1;) {
    if (reserved_[i] != reserved_[i - 1]) continue;
    edges_.erase(edges_.begin() + static_cast<std::ptrdiff_t>(i));
    reserved_.erase(reserved_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Jobs are tested one by one against copies of all hosts.
class PlainSlurmPasses {
 public:
  PlainSlurmPasses(const SlotShape& shape, const SlurmSettings& settings);
  using Start = SlurmPasses::Start;
  // `limit`: seconds; rounded up to whole minutes, as Slurm does, and at least one.
  void submit(std::uint32_t job, std::int32_t gpus, std::int64_t limit);
  void release(std::uint32_t job);  // one that runs ended
  std::size_t waiting() const { return queue_.size(); }
  // Passes that begin in this second. What starts runs from then on.
  std::vector<Start> main_pass(std::int64_t now, bool whole_queue);
  std::vector<Start> backfill_pass(std::int64_t now);

 private:
  struct Job {
    std::int32_t hosts = 0, rest = 0;  // whole ones, GPUs of one more
    std::int64_t limit = 0, ends = 0;
    std::vector<std::int32_t> on;  // hosts, of one that runs
    std::optional<std::int32_t> rest_on;
  };
  using Free = std::vector<std::int32_t>;
  // Where a job goes; nullopt: nowhere.
  std::optional<Start> place(std::uint32_t number, const Free& free, const HostFlags* barred) const;
  bool take_hosts(const Free& free, const HostFlags* barred, std::int32_t of_host,
                  std::int32_t count, std::vector<std::int32_t>& taken) const;
  struct Expected {
    std::int64_t at = 0;
    Start start;
  };
  std::optional<Expected> expect(std::uint32_t number, std::int64_t now,
                                 const HostFlags& barred) const;
  bool is_barred(const Job& job, const HostFlags& barred) const;
  void begin(const Start& start, std::int64_t now);
  void give(const Job& job, Free& free) const;
  static bool ends_before(const Job* a, const Job* b) { return a->ends < b->ends; }

  SlotShape shape_;
  SlurmSettings settings_;
  std::int32_t leaf_;  // hosts of a leaf group
  Free free_;
  std::map<std::uint32_t, Job> jobs_;
  std::set<std::uint32_t> queue_;    // in order of submission
  std::vector<const Job*> running_;  // by the ends of their limits, of equals by their starts
};

inline constexpr std::int64_t minute = 60;
inline constexpr std::int64_t first_step = 30;

PlainSlurmPasses::PlainSlurmPasses(const SlotShape& shape, const SlurmSettings& settings)
    : shape_(shape), settings_(settings), leaf_(shape.hosts) {
  for (const SlotLevel& level : shape.levels)
    if (level.name == "leaf group") leaf_ = level.reach;
  for (std::int32_t host = 0; host < shape.hosts; ++host) free_.push_back(shape.gpus_of(host));
}

inline void PlainSlurmPasses::submit(std::uint32_t number, std::int32_t gpus, std::int64_t limit) {
  jobs_[number] = {.hosts = gpus / shape_.gpus_per_host,
                   .rest = gpus % shape_.gpus_per_host,
                   .limit = std::max(minute, (limit + minute - 1) / minute * minute)};
  queue_.insert(number);
}

inline void PlainSlurmPasses::give(const Job& job, Free& free) const {
  for (const std::int32_t host : job.on)
    free[static_cast<std::size_t>(host)] += shape_.gpus_per_host;
  if (job.rest_on) free[static_cast<std::size_t>(*job.rest_on)] += job.rest;
}

inline void PlainSlurmPasses::release(std::uint32_t number) {
  const Job& job = jobs_.at(number);
  give(job, free_);
  std::erase(running_, &job);
  jobs_.erase(number);
}

inline void PlainSlurmPasses::begin(const Start& start, std::int64_t now) {
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
inline bool PlainSlurmPasses::take_hosts(const Free& free, const HostFlags* barred,
                                         std::int32_t of_host, std::int32_t count,
                                         std::vector<std::int32_t>& taken) const {
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

inline std::optional<PlainSlurmPasses::Start> PlainSlurmPasses::place(
    std::uint32_t number, const Free& free, const HostFlags* barred) const {
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

inline std::vector<PlainSlurmPasses::Start> PlainSlurmPasses::main_pass(std::int64_t now,
                                                                        bool whole_queue) {
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

inline bool PlainSlurmPasses::is_barred(const Job& job, const HostFlags& barred) const {
  const auto is = [&](std::int32_t host) { return barred[static_cast<std::size_t>(host)] != 0; };
  return std::all_of(job.on.begin(), job.on.end(), is) && (!job.rest_on || is(*job.rest_on));
}

// When it would start if running jobs ended at their limits.
inline std::optional<PlainSlurmPasses::Expected> PlainSlurmPasses::expect(
    std::uint32_t number, std::int64_t now, const HostFlags& barred) const {
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

inline std::vector<PlainSlurmPasses::Start> PlainSlurmPasses::backfill_pass(std::int64_t now) {
  std::vector<Start> starts;
  PlainSlurmPlan plan(now, now + settings_.window, shape_.hosts);
  const std::vector<std::uint32_t> order(queue_.begin(), queue_.end());
  for (std::size_t i = 0; i < std::min(order.size(), settings_.most_tested); ++i) {
    const std::int64_t limit = jobs_.at(order[i]).limit;
    std::optional<std::int64_t> earliest = now;
    while (earliest) {
      const PlainSlurmPlan::Barred barred = plan.barred(*earliest, *earliest + limit);
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
