// SPDX-License-Identifier: Apache-2.0
// Sums what is drawn feed by feed, and finds the highest caps below each.
#include "sim/engine/power/feed_budget.h"

#include <algorithm>
#include <limits>

namespace orrery {
namespace {

constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();

// What a feed has left, 0 or more.
std::int64_t left_of(const PowerFeed& feed, std::int64_t load) {
  return feed.limit == 0 ? no_end : std::max<std::int64_t>(0, feed.limit - load);
}

bool is_above(const PowerFeed& feed, std::int64_t load) {
  return feed.limit > 0 && load > feed.limit;
}

}  // namespace

FeedBudget::FeedBudget(const FeedTree& tree, const SlotShape& shape, const PowerBudget& power)
    : power_(power), tree_(tree), feeds_(feeds_of(tree, shape.hosts)) {
  std::size_t next = 0;
  for (const FeedLevel& level : tree_) {
    first_.push_back(next);
    next += static_cast<std::size_t>((shape.hosts + level.reach - 1) / level.reach);
  }
  for (const PowerFeed& feed : feeds_) {
    std::int64_t gpus = 0;
    for (std::int32_t host = feed.from; host < feed.to; ++host) gpus += shape.gpus_of(host);
    gpus_.push_back(gpus);
    loads_.push_back(power_.idle() * gpus);
    over_ += is_above(feed, loads_.back()) ? 1 : 0;
  }
  if (!power_.caps()) return;
  blocks_.resize(feeds_.size());
  jobs_.resize(feeds_.size());
  steps_.resize(feeds_.size(), ThresholdStep::none);
}

template <class Use>
void FeedBudget::each_feed(const Grants& place, const Use& use) const {
  for (std::size_t level = 0; level < tree_.size(); ++level) {
    const std::int32_t reach = tree_[level].reach;
    for (const HostGrant& grant : place)
      for (std::int32_t host = grant.host; host < grant.host + grant.hosts;) {
        const std::int32_t next = std::min(grant.host + grant.hosts, (host / reach + 1) * reach);
        use(first_[level] + static_cast<std::size_t>(host / reach),
            std::int64_t{next - host} * grant.gpus);
        host = next;
      }
  }
}

void FeedBudget::add(FeedLoads& loads, const Grants& place, std::int64_t each,
                     std::int32_t sign) const {
  each_feed(place, [&](std::size_t feed, std::int64_t gpus) { loads[feed] += sign * each * gpus; });
}

bool FeedBudget::binds(const FeedLoads& loads, std::int64_t each, std::int64_t gpus) const {
  if (each <= 0) return false;
  for (std::size_t i = 0; i < feeds_.size(); ++i)
    if (left_of(feeds_[i], loads[i]) / each < gpus) return true;
  return false;
}

bool FeedBudget::carries(const FeedLoads& loads, std::int64_t each, const Grants& place) const {
  if (each <= 0 || loads.empty()) return true;
  FeedLoads more(loads.size());
  add(more, place, each, 1);
  for (std::size_t i = 0; i < feeds_.size(); ++i)
    if (more[i] > 0 && feeds_[i].limit > 0 && loads[i] + more[i] > feeds_[i].limit) return false;
  return true;
}

std::int64_t FeedBudget::most_gpus(std::int64_t each) const {
  std::int64_t most = no_end;
  for (std::size_t level = 0; level < tree_.size() && each > 0; ++level) {
    if (tree_[level].limit == 0) continue;
    const std::size_t end = level + 1 < first_.size() ? first_[level + 1] : feeds_.size();
    std::int64_t sum = 0;
    for (std::size_t i = first_[level]; i < end; ++i)
      sum += std::min(gpus_[i], left_of(feeds_[i], power_.idle() * gpus_[i]) / each);
    most = std::min(most, sum);
  }
  return most;
}

bool FeedBudget::refuses(const FeedLoads& loads, std::int64_t each, std::int64_t gpus) const {
  if (each <= 0) return false;
  for (std::size_t level = 0; level < tree_.size(); ++level) {
    if (tree_[level].limit == 0) continue;
    const std::size_t end = level + 1 < first_.size() ? first_[level + 1] : feeds_.size();
    std::int64_t room = 0;
    for (std::size_t i = first_[level]; i < end && room < gpus; ++i)
      room += std::min(gpus, left_of(feeds_[i], loads[i]) / each);
    if (room < gpus) return true;
  }
  return false;
}

void FeedBudget::narrow(const FeedLoads& loads, std::int64_t each, Slots& view) const {
  if (each <= 0) return;
  for (std::size_t i = 0; i < feeds_.size(); ++i) {
    const PowerFeed& feed = feeds_[i];
    if (feed.limit == 0) continue;
    std::int64_t excess = -(left_of(feed, loads[i]) / each);
    std::vector<std::int32_t> hosts;
    for (std::int32_t host = feed.from; host < feed.to; ++host)
      if (view.free_of(host) > 0) {
        excess += view.free_of(host);
        hosts.push_back(host);
      }
    if (excess <= 0) continue;
    std::sort(hosts.begin(), hosts.end(), [&](std::int32_t a, std::int32_t b) {
      return view.free_of(a) != view.free_of(b) ? view.free_of(a) < view.free_of(b) : a > b;
    });
    for (std::size_t h = 0; excess > 0; ++h) {
      const auto gpus =
          static_cast<std::int32_t>(std::min<std::int64_t>(excess, view.free_of(hosts[h])));
      const HostGrant taken{.host = hosts[h], .hosts = 1, .gpus = gpus};
      view.take({&taken, 1});
      excess -= gpus;
    }
  }
}

void FeedBudget::load(const Grants& place, std::int64_t each, std::int32_t sign) {
  each_feed(place, [&](std::size_t feed, std::int64_t gpus) {
    over_ -= is_above(feeds_[feed], loads_[feed]) ? 1 : 0;
    loads_[feed] += sign * each * gpus;
    over_ += is_above(feeds_[feed], loads_[feed]) ? 1 : 0;
  });
}

void FeedBudget::begin(std::uint32_t job, PowerUser user, const Grants& place) {
  load(place, power_.extra(user, 1), 1);
  if (!power_.caps()) return;
  Running& running = running_[job];
  running = {.block = {power_.rank_of(user.priority), user.work}, .feeds = {}};
  each_feed(place, [&](std::size_t feed, std::int64_t gpus) {
    blocks_[feed][running.block].gpus += gpus;
    if (jobs_[feed].insert(job).second) running.feeds.push_back(feed);
    changed_.insert(feed);
  });
  begun_.push_back(job);
}

void FeedBudget::end(std::uint32_t job, PowerUser user, const Grants& place) {
  load(place, power_.extra(user, 1), -1);
  if (!power_.caps()) return;
  const auto running = running_.find(job);
  each_feed(place, [&](std::size_t feed, std::int64_t gpus) {
    const auto block = blocks_[feed].find(running->second.block);
    block->second.gpus -= gpus;
    if (block->second.gpus == 0) blocks_[feed].erase(block);
    jobs_[feed].erase(job);
    changed_.insert(feed);
  });
  running_.erase(running);
  std::erase(begun_, job);
}

void FeedBudget::set_limit(std::size_t feed, std::int64_t milliwatts) {
  over_ -= is_above(feeds_[feed], loads_[feed]) ? 1 : 0;
  feeds_[feed].limit = milliwatts;
  over_ += is_above(feeds_[feed], loads_[feed]) ? 1 : 0;
  if (power_.caps()) changed_.insert(feed);
}

std::int64_t FeedBudget::of_feed(std::size_t feed, PowerUser user, const Grants& place) const {
  std::int64_t sum = 0;
  each_feed(place, [&](std::size_t one, std::int64_t gpus) { sum += one == feed ? gpus : 0; });
  return sum * power_.extra(user, 1);
}

ThresholdStep FeedBudget::step() const {
  return steps_.empty() ? ThresholdStep::none : *std::max_element(steps_.begin(), steps_.end());
}

// Above what the least takes, by the jobs of a rank at a level.
std::int64_t FeedBudget::drawn_at(std::size_t feed, std::int32_t rank, std::int64_t level) const {
  const std::int64_t least = power_.least_level(rank);
  std::int64_t sum = 0;
  for (auto block = blocks_[feed].lower_bound({rank, 0});
       block != blocks_[feed].end() && block->first.first == rank; ++block)
    sum += (power_.at(block->first.second, level) - power_.at(block->first.second, least)) *
           block->second.gpus;
  return sum;
}

// As if no other feed capped any of its jobs further.
void FeedBudget::set_clocks(std::size_t feed, const PowerThresholds& rules) {
  const auto drawn = [&](ThresholdStep step) {
    std::int64_t sum = loads_[feed];
    for (const std::int32_t rank : {0, 1})
      sum += drawn_at(feed, rank, threshold_level(rules, rank, step));
    return sum;
  };
  if (feeds_[feed].limit > 0)
    steps_[feed] = next_step(rules, steps_[feed], feeds_[feed].limit, drawn);
  for (auto& [name, block] : blocks_[feed])
    block.level = threshold_level(rules, name.first, steps_[feed]);
}

// As PowerBudget does for all: the highest rank first, and whoever is capped leaves nothing.
void FeedBudget::share_out(std::size_t feed) {
  if (const PowerThresholds* rules = power_.thresholds()) return set_clocks(feed, *rules);
  std::int64_t left = left_of(feeds_[feed], loads_[feed]);
  for (auto one = blocks_[feed].rbegin(); one != blocks_[feed].rend();) {
    const std::int32_t rank = one->first.first;
    const std::int64_t highest =
        highest_cap_level([&](std::int64_t level) { return drawn_at(feed, rank, level) <= left; });
    left = highest == cap_steps ? left - drawn_at(feed, rank, highest) : 0;
    for (; one != blocks_[feed].rend() && one->first.first == rank; ++one)
      one->second.level = highest;
  }
}

std::int64_t FeedBudget::ceiling_of(const Running& running) const {
  std::int64_t ceiling = cap_steps;
  for (const std::size_t feed : running.feeds)
    ceiling = std::min(ceiling, blocks_[feed].at(running.block).level);
  return ceiling;
}

std::vector<std::pair<std::uint32_t, std::int64_t>> FeedBudget::settle() {
  std::vector<std::pair<std::uint32_t, std::int64_t>> told;
  if (changed_.empty()) return told;
  std::set<std::uint32_t> jobs(begun_.begin(), begun_.end());
  for (const std::size_t feed : changed_) {
    std::map<BlockName, std::int64_t> before;
    for (const auto& [name, block] : blocks_[feed]) before[name] = block.level;
    share_out(feed);
    const bool same = std::all_of(blocks_[feed].begin(), blocks_[feed].end(), [&](const auto& one) {
      return before.at(one.first) == one.second.level;
    });
    if (!same) jobs.insert(jobs_[feed].begin(), jobs_[feed].end());
  }
  changed_.clear();
  begun_.clear();
  for (const std::uint32_t job : jobs) {
    Running& running = running_.at(job);
    const std::int64_t ceiling = ceiling_of(running);
    if (ceiling == running.ceiling) continue;
    running.ceiling = ceiling;
    told.emplace_back(job, ceiling);
  }
  return told;
}

}  // namespace orrery
