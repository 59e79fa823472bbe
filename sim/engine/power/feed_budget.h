// SPDX-License-Identifier: Apache-2.0
// Holds what jobs draw below each feed of power, where they may start, and how far feeds cap them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/engine/power/power_budget.h"
#include "sim/engine/power/power_feed.h"
#include "topologies/slots.h"

namespace orrery {

// By feed: milliwatts if all that runs were at its least cap.
using FeedLoads = std::vector<std::int64_t>;

class FeedBudget {
 public:
  // `power`, which knows what work draws, must outlive it. Without a tree it does nothing.
  FeedBudget(const FeedTree& tree, const SlotShape& shape, const PowerBudget& power);
  bool empty() const { return feeds_.empty(); }
  const std::vector<PowerFeed>& feeds() const { return feeds_; }
  const FeedLoads& loads() const { return loads_; }
  bool is_over() const { return over_ > 0; }  // some feed carries more than its limit

  // Adds a place that is taken (sign 1) or given back (-1) by work of which an accelerator draws so
  // much more at its least cap than idle.
  void add(FeedLoads& loads, const Grants& place, std::int64_t each, std::int32_t sign) const;
  // Takes from `view` what feeds with such loads cannot carry, so that any place in what is left
  // holds at all of them: of each, hosts of which least is free, of equals those of the highest
  // numbers.
  void narrow(const FeedLoads& loads, std::int64_t each, Slots& view) const;
  // Some feed has less left than a job of so many accelerators may need below it.
  bool binds(const FeedLoads& loads, std::int64_t each, std::int64_t gpus) const;

  // Each feed above a place has left what it takes there.
  bool carries(const FeedLoads& loads, std::int64_t each, const Grants& place) const;

  // Accelerators of an idle cluster that all feeds carry if each draws so much more than idle.
  std::int64_t most_gpus(std::int64_t each) const;
  // All feeds of some level together have less left than it needs.
  bool refuses(const FeedLoads& loads, std::int64_t each, std::int64_t gpus) const;

  void begin(std::uint32_t job, PowerUser user, const Grants& place);
  void end(std::uint32_t job, PowerUser user, const Grants& place);
  void set_limit(std::size_t feed, std::int64_t milliwatts);
  // The highest levels that the feeds above them let jobs have: those that changed, once.
  std::vector<std::pair<std::uint32_t, std::int64_t>> settle();
  // What a job takes at its least cap of a feed, above idle.
  std::int64_t of_feed(std::size_t feed, PowerUser user, const Grants& place) const;
  // How far clocks are down below the feed at which they are so most.
  ThresholdStep step() const;

 private:
  using BlockName = std::pair<std::int32_t, std::uint16_t>;  // rank, work
  struct Block {
    std::int64_t gpus = 0, level = cap_steps;
  };
  struct Running {
    BlockName block;
    std::vector<std::size_t> feeds;
    std::int64_t ceiling = cap_steps;
  };
  // Calls use(feed, accelerators) for each feed above a place.
  template <class Use>
  void each_feed(const Grants& place, const Use& use) const;
  void load(const Grants& place, std::int64_t each, std::int32_t sign);
  std::int64_t drawn_at(std::size_t feed, std::int32_t rank, std::int64_t level) const;
  void share_out(std::size_t feed);
  void set_clocks(std::size_t feed, const PowerThresholds& rules);
  std::int64_t ceiling_of(const Running& running) const;

  const PowerBudget& power_;
  FeedTree tree_;
  std::vector<std::size_t> first_;  // feed of each level
  std::vector<PowerFeed> feeds_;
  std::vector<std::int64_t> gpus_;  // by feed
  FeedLoads loads_;
  std::int64_t over_ = 0;                           // feeds above their limits
  std::vector<std::map<BlockName, Block>> blocks_;  // by feed; only where there are caps
  std::vector<std::set<std::uint32_t>> jobs_;       // likewise
  std::vector<ThresholdStep> steps_;                // likewise
  std::map<std::uint32_t, Running> running_;
  std::set<std::size_t> changed_;     // feeds since the last look
  std::vector<std::uint32_t> begun_;  // jobs since then
};

}  // namespace orrery
