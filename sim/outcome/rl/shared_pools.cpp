// SPDX-License-Identifier: Apache-2.0
// Adds up the slots in which jobs of RL take turns.
#include "sim/outcome/rl/shared_pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/errors/cannot_exist.h"
#include "sim/base/errors/check.h"
#include "sim/base/text/enum_names.h"

namespace orrery {
namespace {

// Orders whose periods differ by less are the same: the first of them is told.
constexpr double rounding = 1e-13;

constexpr auto limit_text = enum_names<PoolLimit>({"rollout", "training", "both"});

[[noreturn]] void refuse_pools(std::string found, std::string expected) {
  throw Error({.file = "RL jobs that share pools",
               .found = std::move(found),
               .expected = std::move(expected)});
}

void check_fits(const char* pool, Bytes states, Bytes share) {
  if (share <= Bytes(0) || states <= share) return;
  throw CannotExist({.file = fmt::format("{} pool", pool),
                     .found = fmt::format("states of {} a GPU in host memory", to_text(states)),
                     .expected = fmt::format("at most the {} of a GPU's share", to_text(share))});
}

// What is said of a pool does not depend on the order.
void add_bounds(const PoolTurn& turn, bool shared, SharedPools& out) {
  const double copies = shared ? 2 : 0;
  out.rollout_bound += turn.holds_rollout() + copies * turn.engines_copy;
  out.training_bound += turn.holds_training() + copies * turn.policy_copy;
  out.longest = std::max(out.longest, turn.alone());
  out.rollout_busy += turn.holds_rollout() / out.period;
  out.training_busy += turn.holds_training() / out.period;
  out.gain += turn.alone() / out.period;
}

// Of the slot of a job: what the rollout pool does until the new weights go over, and the other
// one.
struct Slot {
  Seconds generates, trains;
};
Slot slot_of(const PoolTurn& turn, const PoolTurn& before) {
  return {.generates = before.generates() + before.engines_copy + turn.engines_copy,
          .trains = before.policy_copy + turn.policy_copy + turn.trains};
}

Seconds period_of(const std::vector<PoolTurn>& turns, const std::vector<std::size_t>& order) {
  Seconds period;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const PoolTurn& turn = turns[order[i]];
    const Slot slot = slot_of(turn, turns[order[i == 0 ? order.size() - 1 : i - 1]]);
    period += std::max(slot.generates, slot.trains) + turn.sync;
  }
  return period;
}

std::vector<std::size_t> given_order(std::size_t jobs) {
  std::vector<std::size_t> order(jobs);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

PoolLimit limit_of(const std::vector<PoolTurn>& turns) {
  bool rollout = true, training = true;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const Slot slot = slot_of(turns[i], turns[i == 0 ? turns.size() - 1 : i - 1]);
    rollout = rollout && slot.generates >= slot.trains;
    training = training && slot.trains >= slot.generates;
  }
  if (rollout == training) return PoolLimit::both;
  return rollout ? PoolLimit::rollout : PoolLimit::training;
}

}  // namespace

std::string_view to_text(PoolLimit limit) { return limit_text[limit]; }

SharedPools share_pools(const std::vector<PoolTurn>& turns) {
  SharedPools out;
  const bool shared = turns.size() > 1;
  out.period = shared ? period_of(turns, given_order(turns.size())) : turns.front().alone();
  if (shared) out.limit = limit_of(turns);
  for (const PoolTurn& turn : turns) add_bounds(turn, shared, out);
  return out;
}

PoolOrder best_order(const std::vector<PoolTurn>& turns) {
  std::vector<std::size_t> order = given_order(turns.size());
  PoolOrder best{.jobs = order, .period = share_pools(turns).period};
  if (turns.size() < 3 || turns.size() > most_ordered) return best;
  while (std::next_permutation(order.begin() + 1, order.end()))
    if (const Seconds period = period_of(turns, order); period < best.period * (1 - rounding))
      best = {.jobs = order, .period = period};
  return best;
}

PoolTurn pool_turn(const RlJob& job, const RlStep& step) {
  const BytesPerSecond link = job.cluster.device.resolved().host_bandwidth;
  const BytesPerSecond copy = std::min(job.program.host_copy.get(), link);
  return {.sync = step.sync.time(),
          .rollout = step.rollout.time,
          .validation = step.validation,
          .trains = step.trains,
          .engines_copy = step.rollout.weights / link,
          .policy_copy = step.passes.parameters / copy};
}

PoolHosts pool_hosts(const std::vector<RlJob>& jobs, const std::vector<RlStep>& steps) {
  PoolHosts out;
  const Cluster& cluster = jobs.front().cluster;
  out.share = cluster.host.memory.value.value_or(Bytes()) /
              static_cast<double>(std::max<std::int64_t>(1, cluster.gpus_per_host));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const PolicyPasses& passes = steps[i].passes;
    const double policies = jobs[i].training.reference ? 2 : 1;
    out.rollout += steps[i].rollout.weights;
    out.training += passes.optimizer + policies * passes.parameters;
  }
  check_fits("rollout", out.rollout, out.share);
  check_fits("training", out.training, out.share);
  return out;
}

void check_shares_pools(const RlJob& job, const RlJob& first) {
  if (!job.split())
    refuse_pools("a job that generates and trains on the same GPUs, which leaves none idle",
                 "generation.gpus: GPUs that only generate");
  if (job.steps_off > 0)
    refuse_pools(
        fmt::format("a job {} off, both of whose pools are at work at once",
                    job.steps_off == 1 ? "1 step" : fmt::format("{} steps", job.steps_off)),
        "steps_off 0");
  if (job.generation_gpus() != first.generation_gpus() ||
      job.training_gpus() != first.training_gpus())
    refuse_pools(
        fmt::format("{} GPUs that generate and {} that train", job.generation_gpus(),
                    job.training_gpus()),
        fmt::format("{} and {}, as the first job", first.generation_gpus(), first.training_gpus()));
}

}  // namespace orrery
