// SPDX-License-Identifier: Apache-2.0
// Lets jobs of RL take turns on GPUs that generate and on GPUs that train.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "sim/outcome/rl/rl_job.h"
#include "sim/outcome/rl/rl_step.h"

namespace orrery {

// For how long a step of one job holds pools that others use too.
struct PoolTurn {
  Seconds sync;                 // both pools
  Seconds rollout, validation;  // the rollout pool
  Seconds trains;               // the training pool
  // Copies between hosts and GPUs with which a job comes, and as long ones with which it goes:
  // engines' weights, and the policy's parameters.
  Seconds engines_copy, policy_copy;

  Seconds generates() const { return rollout + validation; }
  Seconds holds_rollout() const { return sync + generates(); }
  Seconds holds_training() const { return sync + trains; }
  Seconds alone() const { return sync + (rollout + (trains + validation)); }  // a step
};

// Whom the other pool waits for: the same one in all slots of a period, or either.
enum class PoolLimit { rollout, training, both };
std::string_view to_text(PoolLimit limit);

struct SharedPools {
  Seconds period;  // in which each job takes one step
  PoolLimit limit = PoolLimit::both;
  // No order is faster than what jobs hold each pool for, copies included, and the longest step.
  Seconds rollout_bound, training_bound, longest;
  // Shares of the period in which a pool generates or trains, or new weights go over.
  double rollout_busy = 0, training_busy = 0;
  double gain = 0;  // steps of all, each alone on as many GPUs, over the period
};

// Jobs come in this order again and again. In the slot of a job it trains while the one before it
// generates; then its new weights go to its engines, which takes both pools:
//   slot = max(generates and copies of the one before, trains and copies) + sync
//   period = sum of slots
// A single job takes its step, without copies.
SharedPools share_pools(const std::vector<PoolTurn>& turns);

// The order of turns with the shortest period, from the first job on; the given one where none is
// shorter, and of more jobs than `most_ordered`, whose orders are too many to try.
inline constexpr std::size_t most_ordered = 8;
struct PoolOrder {
  std::vector<std::size_t> jobs;
  Seconds period;
};
PoolOrder best_order(const std::vector<PoolTurn>& turns);

// The optimizer's states go to the host and come back once a step, shared or not: `trains` has it.
PoolTurn pool_turn(const RlJob& job, const RlStep& step);

// Memory of hosts for a GPU of each pool.
struct PoolHosts {
  Bytes rollout, training;  // that states of jobs take
  Bytes share;              // that there is; 0: not known
};

// States of all jobs stay there, whoever's turn it is: weights of engines, the policy's parameters
// and optimizer, parameters of a reference model. CannotExist where they do not fit.
PoolHosts pool_hosts(const std::vector<RlJob>& jobs, const std::vector<RlStep>& steps);

// Error for a job that cannot share pools with the first one: without GPUs of its own for both,
// with steps off, with pools of another size.
void check_shares_pools(const RlJob& job, const RlJob& first);

}  // namespace orrery
