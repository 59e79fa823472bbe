// SPDX-License-Identifier: Apache-2.0
// Serves requests: one clock for all engines, or one for each where none hears of another.
#include "sim/engine/serving/fleet.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "sim/base/errors/check.h"
#include "sim/base/parallel.h"
#include "sim/engine/serving/fleet_clock.h"

namespace orrery {
namespace {

void check_group(const ServingGroup& group, const RequestList& list, const std::string& path) {
  const auto want = [&](bool holds, const std::string& at, std::int64_t found,
                        const std::string& expected) {
    if (!holds)
      throw Error({.file = "fleet",
                   .path = path + at,
                   .found = fmt::format("{}", found),
                   .expected = expected});
  };
  check_policy(group.policy, "fleet." + path + "policy");
  want(group.replicas > 0, "replicas", group.replicas, "at least 1");
  want(group.shape.ranks > 0, "ranks", group.shape.ranks, "at least 1");
  want(group.shape.lanes > 0 && group.shape.lanes <= group.policy.max_sequences, "lanes",
       group.shape.lanes, "at least 1, and no more than sequences");
  want(group.shape.blocks > 0, "blocks", group.shape.blocks, "at least 1");
  const Speculation& drafts = group.shape.speculation;
  const auto accepted = static_cast<std::int64_t>(drafts.survival.size());
  want(drafts.drafts >= 0 && accepted <= drafts.drafts, "speculation", accepted,
       "a chance of acceptance for each draft at most");
  const std::int64_t rows = group.policy.max_sequences * (1 + drafts.drafts);
  want(group.policy.token_budget >= rows, "policy.token_budget", group.policy.token_budget,
       fmt::format("{} at least: all that run get a token in a step", rows));
  if (group.policy.prefix_cache && list.hash_tokens > 0)
    want(list.hash_tokens % group.policy.block_tokens == 0, "policy.block_tokens",
         group.policy.block_tokens,
         fmt::format("a divisor of {}, the tokens that requests share", list.hash_tokens));
  CHECK_THAT(group.prices != nullptr, "engines without prices");
}

// The follower of each request; empty where none follows another.
std::vector<std::int32_t> followers(const RequestList& list) {
  std::vector<std::int32_t> follower;
  for (std::size_t i = 0; i < list.requests.size(); ++i) {
    if (list.requests[i].after < 0) continue;
    if (follower.empty()) follower.assign(list.requests.size(), -1);
    follower[static_cast<std::size_t>(list.requests[i].after)] = static_cast<std::int32_t>(i);
  }
  return follower;
}

// What one clock adds up.
struct ClockResult {
  ServiceTotals totals;
  __int128 in_system = 0;
  Ticks end;
  bool stopped = false;
};

void add(StepLog* log, const StepLog& steps) {
  if (!log) return;
  log->steps.insert(log->steps.end(), steps.steps.begin(), steps.steps.end());
  log->cut = log->cut || steps.cut;
}

void add(ServiceTimeline& timeline, const ClockResult& result) {
  timeline.totals += result.totals;
  timeline.in_system += result.in_system;
  timeline.end = max(timeline.end, result.end);
  timeline.stopped = timeline.stopped || result.stopped;
}

// Engines of which none hears of another: each has its own requests from the start.
class SeparateEngines {
 public:
  SeparateEngines(const ServingRun& run, const ServingGroup& group,
                  const std::vector<std::int32_t>& follower, const ServingOptions& options)
      : run_(run), group_(group), follower_(follower), options_(options) {
    const auto engines = static_cast<std::size_t>(group.replicas);
    own_.resize(engines);
    RequestRouter router(group.router, run.requests, engines, run.seed);
    for (std::size_t i = 0; i < run.requests.requests.size(); ++i) {
      const auto request = static_cast<std::uint32_t>(i);
      // A later turn goes where its session's first went.
      if (run.requests.requests[i].after < 0) own_[router.choose(request)].push_back(request);
    }
    same_as_.resize(engines);
    for (std::size_t e = 0; e < engines; ++e) same_as_[e] = e;
    if (options.fold && !options.log) fold();
  }

  ServiceTimeline served() {
    ServiceTimeline timeline;
    timeline.requests.resize(run_.requests.requests.size());
    std::vector<std::size_t> different;
    for (std::size_t e = 0; e < own_.size(); ++e)
      if (same_as_[e] == e) different.push_back(e);
    std::vector<std::int64_t> copies(own_.size());
    for (const std::size_t e : same_as_) ++copies[e];
    std::vector<ClockResult> results(own_.size());
    std::vector<StepLog> logs(own_.size());
    std::mutex guard;
    parallel_for(different.size(), options_.threads, [&](std::size_t i) {
      const std::size_t e = different[i];
      if (own_[e].empty()) return;
      const ClockGroup group{run_, {.kind = RouterKind::round_robin}, 1};
      FleetClock clock({group}, nullptr, &own_[e], follower_, static_cast<std::int32_t>(e),
                       timeline.requests);
      clock.run(options_);
      results[e] = {clock.totals, clock.in_system.area, clock.end, clock.stopped};
      logs[e] = std::move(clock.steps);
      const std::lock_guard<std::mutex> lock(guard);  // sums of counts are the same in any order
      for (std::int64_t c = 0; c < copies[e]; ++c) timeline.gaps += clock.gaps;
    });
    for (std::size_t e = 0; e < own_.size(); ++e) {
      add(timeline, results[same_as_[e]]);
      if (same_as_[e] != e) copy_records(timeline, e);
      add(options_.log, logs[e]);
    }
    return timeline;
  }

 private:
  bool equal(std::size_t a, std::size_t b) const {
    if (own_[a].size() != own_[b].size()) return false;
    for (std::size_t i = 0; i < own_[a].size(); ++i) {
      const Request &x = run_.requests.requests[own_[a][i]],
                    &y = run_.requests.requests[own_[b][i]];
      if (x.arrival != y.arrival || x.prompt != y.prompt || x.output != y.output ||
          x.class_index != y.class_index)
        return false;
    }
    return true;
  }

  // Engines that get the same do the same. Shared texts and draws are a request's own.
  void fold() {
    if (run_.requests.hash_tokens > 0 || run_.shape.speculation.drafts > 0 || !follower_.empty())
      return;
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> seen;
    for (std::size_t e = 0; e < own_.size(); ++e) {
      std::uint64_t key = own_[e].size();
      for (const std::uint32_t i : own_[e]) {
        const Request& r = run_.requests.requests[i];
        for (const std::int64_t value : {r.arrival.ps, std::int64_t{r.prompt},
                                         std::int64_t{r.output}, std::int64_t{r.class_index}})
          key = (key ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;
      }
      auto& alike = seen[key];
      for (const std::size_t other : alike)
        if (same_as_[e] == e && equal(e, other)) same_as_[e] = other;
      if (same_as_[e] == e) alike.push_back(e);
    }
  }

  void copy_records(ServiceTimeline& timeline, std::size_t engine) const {
    const std::vector<std::uint32_t>& from = own_[same_as_[engine]];
    for (std::size_t i = 0; i < from.size(); ++i) {
      RequestRecord& record = timeline.requests[own_[engine][i]];
      record = timeline.requests[from[i]];
      record.replica = static_cast<std::int32_t>(engine);
    }
  }

  const ServingRun& run_;
  const ServingGroup& group_;
  const std::vector<std::int32_t>& follower_;
  const ServingOptions& options_;
  std::vector<std::vector<std::uint32_t>> own_;
  std::vector<std::size_t> same_as_;
};

// Of one lane of a pipeline: its part of what the engine has.
ServingGroup lane_of(ServingGroup group) {
  const std::int64_t lanes = group.shape.lanes;
  group.shape.blocks = std::max<std::int64_t>(group.shape.blocks / lanes, 1);
  group.policy.max_sequences = (group.policy.max_sequences + lanes - 1) / lanes;
  return group;
}

bool separate(const RequestList& list, const ServingFleet& fleet,
              const std::vector<std::int32_t>& follower) {
  const RouterKind kind = fleet.engines.router.kind;
  // Whether a later turn goes where the first one went.
  const bool stays = follower.empty() || kind == RouterKind::session;
  return !fleet.decode && list.concurrency == 0 && stays && RequestRouter::is_fixed(kind);
}

}  // namespace

ServiceTimeline serve(const RequestList& list, const ServingFleet& fleet,
                      const ServingOptions& options) {
  check_group(fleet.engines, list, "");
  if (fleet.decode) check_group(*fleet.decode, list, "decode.");
  ServingGroup engines = lane_of(fleet.engines);
  engines.shape.prefill_only = fleet.decode.has_value();
  const ServingRun first{list,         engines.policy, engines.shape, *engines.prices,
                         options.seed, options.leaps};
  const std::vector<std::int32_t> follower = followers(list);
  if (separate(list, fleet, follower))
    return SeparateEngines(first, engines, follower, options).served();
  std::vector<ClockGroup> groups = {
      {first, engines.router, static_cast<std::size_t>(engines.replicas)}};
  ServingGroup decoders = fleet.decode ? lane_of(*fleet.decode) : ServingGroup{};
  std::optional<ServingRun> second;
  if (fleet.decode) {
    CHECK_THAT(fleet.transfers != nullptr, "engines of two kinds without transfers between them");
    second.emplace(ServingRun{list, decoders.policy, decoders.shape, *decoders.prices, options.seed,
                              options.leaps});
    groups.push_back({*second, decoders.router, static_cast<std::size_t>(decoders.replicas)});
  }
  ServiceTimeline timeline;
  timeline.requests.resize(list.requests.size());
  FleetClock clock(groups, fleet.transfers, nullptr, follower, 0, timeline.requests);
  clock.run(options);
  add(timeline, {clock.totals, clock.in_system.area, clock.end, clock.stopped});
  timeline.gaps = clock.gaps;
  add(options.log, clock.steps);
  return timeline;
}

}  // namespace orrery
