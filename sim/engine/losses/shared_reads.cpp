// SPDX-License-Identifier: Apache-2.0
// Shares a store max-min fairly, in whole bytes a second.
#include "sim/engine/losses/shared_reads.h"

#include <algorithm>
#include <numeric>

namespace orrery {

std::vector<std::int64_t> fair_shares(std::span<const std::int64_t> most, std::int64_t all) {
  std::vector<std::size_t> order(most.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return most[a] < most[b]; });
  std::vector<std::int64_t> out(most.size());
  auto others = static_cast<std::int64_t>(order.size());
  for (const std::size_t i : order) {
    out[i] = std::max<std::int64_t>(1, std::min(most[i], all / others--));
    all -= out[i];
  }
  return out;
}

void SharedReads::ask(std::uint32_t job, FleetTime at, const StoreRead& read) {
  forget(job);
  later_[job] = {.job = job,
                 .asked = read,
                 .begin = at,
                 .end = at + read.alone,
                 .left = static_cast<__int128>(read.bytes_per_s) * read.alone.us,
                 .bytes_per_s = read.bytes_per_s};
  begins_.insert({at, job});
}

void SharedReads::forget(std::uint32_t job) {
  if (const auto at = reads_.find(job); at != reads_.end()) {
    ends_.erase({at->second.end, job});
    reads_.erase(at);
    changed_ = true;
  }
  if (const auto at = later_.find(job); at != later_.end()) {
    begins_.erase({at->second.begin, job});
    later_.erase(at);
  }
}

FleetTime SharedReads::next() const {
  return std::min(ends_.empty() ? fleet_never : ends_.begin()->first,
                  begins_.empty() ? fleet_never : begins_.begin()->first);
}

std::vector<SharedReads::Read> SharedReads::pass_to(FleetTime now) {
  std::vector<Read> over;
  for (auto& [job, read] : reads_)
    read.left -= static_cast<__int128>(read.bytes_per_s) * (now - now_).us;
  now_ = now;
  while (!ends_.empty() && ends_.begin()->first <= now) {
    const std::uint32_t job = ends_.begin()->second;
    ends_.erase(ends_.begin());
    over.push_back(reads_.extract(job).mapped());
    changed_ = true;
  }
  while (!begins_.empty() && begins_.begin()->first <= now) {
    const std::uint32_t job = begins_.begin()->second;
    begins_.erase(begins_.begin());
    const Read& read = reads_.insert(later_.extract(job)).position->second;
    ends_.insert({read.end, job});
    changed_ = true;
  }
  return over;
}

std::vector<SharedReads::Read> SharedReads::share() {
  std::vector<Read> moved;
  if (!std::exchange(changed_, false)) return moved;
  std::vector<std::int64_t> most;
  for (const auto& [job, read] : reads_) most.push_back(read.asked.bytes_per_s);
  const std::vector<std::int64_t> shares = fair_shares(most, all_);
  std::size_t i = 0;
  for (auto& [job, read] : reads_) {
    read.bytes_per_s = shares[i++];
    const __int128 us = (read.left + read.bytes_per_s - 1) / read.bytes_per_s;
    const FleetTime end = now_ + FleetTime{static_cast<std::int64_t>(us)};
    if (end == read.end) continue;
    ends_.erase({read.end, job});
    ends_.insert({end, job});
    read.end = end;
    moved.push_back(read);
  }
  return moved;
}

}  // namespace orrery
