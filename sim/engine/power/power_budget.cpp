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

void PowerBudget::begin(std::uint32_t job, std::uint16_t work, std::int64_t gpus,
                        std::int32_t priority) {
  least_ += extra(work, gpus);
  drawn_ += (rules_.drawn[work] - rules_.idle) * gpus;
  if (!caps_) return;
  const Running running{{ranks() ? priority : 0, work, cap_steps}, gpus};
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

void PowerBudget::end(std::uint32_t job, std::uint16_t work, std::int64_t gpus) {
  least_ -= extra(work, gpus);
  if (!caps_) {
    drawn_ -= (rules_.drawn[work] - rules_.idle) * gpus;
    return;
  }
  const auto running = running_.find(job);
  const bool fresh = std::erase(fresh_, job) > 0;
  drawn_ -= (at(work, fresh ? cap_steps : level_of(running->second.block)) - rules_.idle) * gpus;
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

// Above idle, by the blocks of a priority at a level.
std::int64_t PowerBudget::drawn_at(std::int32_t priority, std::int64_t level) const {
  std::int64_t sum = 0;
  for (auto block = blocks_.lower_bound({priority, 0, 0});
       block != blocks_.end() && std::get<0>(block->first) == priority; ++block) {
    const auto& [rank, work, ceiling] = block->first;
    sum += (at(work, std::min(level, ceiling)) - rules_.idle) * block->second.gpus;
  }
  return sum;
}

// The highest level for which `left` suffices, above what the least takes. Whoever is capped leaves
// nothing to those below.
void PowerBudget::raise(std::int32_t priority, std::int64_t& left) {
  const std::int64_t least = drawn_at(priority, 0);
  std::int64_t low = 0, high = cap_steps;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (drawn_at(priority, middle) - least <= left)
      low = middle;
    else
      high = middle - 1;
  }
  left = low == cap_steps ? left - (drawn_at(priority, low) - least) : 0;
  for (auto& [name, block] : blocks_)
    if (std::get<0>(name) == priority) block.level = low;
}

// Those of the highest priority first.
void PowerBudget::share_out() {
  std::int64_t left = rules_.limit > 0 ? std::max<std::int64_t>(0, rules_.limit - least_)
                                       : std::numeric_limits<std::int64_t>::max();
  std::set<std::int32_t> priorities;
  for (const auto& [name, block] : blocks_) priorities.insert(std::get<0>(name));
  for (auto priority = priorities.rbegin(); priority != priorities.rend(); ++priority)
    raise(*priority, left);
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
