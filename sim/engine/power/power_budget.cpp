// SPDX-License-Identifier: Apache-2.0
// Finds the highest caps under which all that run stay within a limit.
#include "sim/engine/power/power_budget.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace orrery {

PowerBudget::PowerBudget(PowerRules rules)
    : rules_(std::move(rules)),
      caps_(rules_.policy != PowerPolicy::admit && (rules_.limit > 0 || rules_.feeds) &&
            std::any_of(rules_.curves.begin(), rules_.curves.end(),
                        [](const auto& curve) { return curve.has_value(); })),
      drawn_(rules_.idle * rules_.gpus),
      least_(drawn_) {}

std::int64_t PowerBudget::at(std::uint16_t work, std::int64_t level) const {
  if (!caps_ || work >= rules_.curves.size() || !rules_.curves[work]) return rules_.drawn[work];
  return (*rules_.curves[work])[static_cast<std::size_t>(level)].milliwatts;
}

std::int32_t PowerBudget::rank_of(std::int32_t priority) const {
  if (rules_.policy == PowerPolicy::thresholds) return threshold_rank(rules_.thresholds, priority);
  return rules_.policy == PowerPolicy::priority ? priority : 0;
}

std::int64_t PowerBudget::least_level(std::int32_t rank) const {
  if (rules_.policy != PowerPolicy::thresholds) return 0;
  return threshold_level(rules_.thresholds, rank, ThresholdStep::all);
}

void PowerBudget::begin(std::uint32_t job, PowerUser user, std::int64_t gpus) {
  least_ += extra(user, gpus);
  drawn_ += (rules_.drawn[user.work] - rules_.idle) * gpus;
  if (!caps_) return;
  const Running running{{rank_of(user.priority), user.work, cap_steps}, gpus};
  enter(job, running);
  running_[job] = running;
  fresh_.push_back(job);
  changed_ = true;
}

void PowerBudget::enter(std::uint32_t job, const Running& running) {
  Block& block = blocks_[running.block];
  block.gpus += running.gpus;
  block.jobs.insert(job);
}

void PowerBudget::leave(std::uint32_t job, const Running& running) {
  Block& block = blocks_[running.block];
  block.gpus -= running.gpus;
  block.jobs.erase(job);
  if (block.jobs.empty()) blocks_.erase(running.block);
}

std::int64_t PowerBudget::level_of(const BlockName& name) const {
  return std::min(blocks_.at(name).level, std::get<2>(name));
}

void PowerBudget::end(std::uint32_t job, PowerUser user, std::int64_t gpus) {
  least_ -= extra(user, gpus);
  if (!caps_) {
    drawn_ -= (rules_.drawn[user.work] - rules_.idle) * gpus;
    return;
  }
  const auto running = running_.find(job);
  const bool fresh = std::erase(fresh_, job) > 0;
  const std::int64_t level = fresh ? cap_steps : level_of(running->second.block);
  drawn_ -= (at(user.work, level) - rules_.idle) * gpus;
  leave(job, running->second);
  running_.erase(running);
  changed_ = true;
}

void PowerBudget::set_ceiling(std::uint32_t job, std::int64_t level) {
  Running& running = running_.at(job);
  moved_.push_back({job, level_of(running.block)});
  leave(job, running);
  std::get<2>(running.block) = level;
  enter(job, running);
  changed_ = true;
}

double PowerBudget::slower(std::uint32_t job) const {
  const auto running = running_.find(job);
  if (running == running_.end()) return 1;
  const BlockName& block = running->second.block;
  const std::uint16_t work = std::get<1>(block);
  if (work >= rules_.curves.size() || !rules_.curves[work]) return 1;
  return (*rules_.curves[work])[static_cast<std::size_t>(level_of(block))].slower;
}

// Above idle, by the blocks of a rank at a level.
std::int64_t PowerBudget::drawn_at(std::int32_t rank, std::int64_t level) const {
  std::int64_t sum = 0;
  for (auto block = blocks_.lower_bound({rank, 0, 0});
       block != blocks_.end() && std::get<0>(block->first) == rank; ++block) {
    const auto& [same, work, ceiling] = block->first;
    sum += (at(work, std::min(level, ceiling)) - rules_.idle) * block->second.gpus;
  }
  return sum;
}

// The highest level for which `left` suffices, above what the least takes. Whoever is capped leaves
// nothing to those below.
void PowerBudget::raise(std::int32_t rank, std::int64_t& left) {
  const std::int64_t least = drawn_at(rank, 0);
  const std::int64_t highest =
      highest_cap_level([&](std::int64_t level) { return drawn_at(rank, level) - least <= left; });
  left = highest == cap_steps ? left - (drawn_at(rank, highest) - least) : 0;
  for (auto& [name, block] : blocks_)
    if (std::get<0>(name) == rank) block.level = highest;
}

void PowerBudget::set_clocks() {
  const auto drawn = [&](ThresholdStep step) {
    std::int64_t sum = rules_.idle * rules_.gpus;
    for (const std::int32_t rank : {0, 1})
      sum += drawn_at(rank, threshold_level(rules_.thresholds, rank, step));
    return sum;
  };
  if (rules_.limit > 0) step_ = next_step(rules_.thresholds, step_, rules_.limit, drawn);
  for (auto& [name, block] : blocks_)
    block.level = threshold_level(rules_.thresholds, std::get<0>(name), step_);
  drawn_ = drawn(step_);
}

// Those of the highest rank first.
void PowerBudget::share_out() {
  std::int64_t left = rules_.limit > 0 ? std::max<std::int64_t>(0, rules_.limit - least_)
                                       : std::numeric_limits<std::int64_t>::max();
  std::set<std::int32_t> ranks;
  for (const auto& [name, block] : blocks_) ranks.insert(std::get<0>(name));
  for (auto rank = ranks.rbegin(); rank != ranks.rend(); ++rank) raise(*rank, left);
  drawn_ = rules_.idle * rules_.gpus;
  for (const auto& [name, block] : blocks_)
    drawn_ += (at(std::get<1>(name), level_of(name)) - rules_.idle) * block.gpus;
}

const std::vector<std::uint32_t>& PowerBudget::settle() {
  told_.clear();
  if (!changed_) return told_;
  changed_ = false;
  std::map<BlockName, std::int64_t> before;
  for (const auto& [name, block] : blocks_) before[name] = block.level;
  if (rules_.policy == PowerPolicy::thresholds)
    set_clocks();
  else
    share_out();
  for (const auto& [name, block] : blocks_)
    if (block.level != before[name])
      told_.insert(told_.end(), block.jobs.begin(), block.jobs.end());
  for (const std::uint32_t job : fresh_)
    if (level_of(running_.at(job).block) != cap_steps) told_.push_back(job);
  for (const Moved& one : moved_)
    if (level_of(running_.at(one.job).block) != one.level) told_.push_back(one.job);
  fresh_.clear();
  moved_.clear();
  std::sort(told_.begin(), told_.end());
  told_.erase(std::unique(told_.begin(), told_.end()), told_.end());
  return told_;
}

}  // namespace orrery
