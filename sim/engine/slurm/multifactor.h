// SPDX-License-Identifier: Apache-2.0
// Gives waiting jobs priorities as Slurm's priority/multifactor: age, fair share, size, QOS.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace orrery {

// Of slurm.conf, with its defaults. Weights of 0: all are equal, so that the oldest is first.
struct MultifactorSettings {
  double age = 0, fairshare = 0, jobsize = 0, qos = 0;  // PriorityWeight*
  double max_age = 7 * 86'400;                          // PriorityMaxAge, seconds
  double half_life = 7 * 86'400;                        // PriorityDecayHalfLife, seconds
  double calc_period = 300;                             // PriorityCalcPeriod, seconds
  bool is_neutral() const { return age == 0 && fairshare == 0 && jobsize == 0 && qos == 0; }
};

// What a priority depends on. Queues are accounts, of equal shares, and so are their users.
struct MultifactorJob {
  std::int32_t queue = 0, user = -1;
  double submit = 0;  // seconds
  double gpus = 1;
  double qos = 0;  // share of the highest QOS priority
};

// priority = age w + fairshare w + jobsize w + qos w, cut to a whole number, where
//   age       time since submission over max_age, at most 1
//   jobsize   GPUs over those of the cluster
//   fairshare rank in the fair tree, from 1 down: accounts are ranked by share over usage, in each
//             its users alike; equal accounts rank as one; equal users have one rank
// Usage is GPU-time that was held, which halves every half_life.
// https://slurm.schedmd.com/priority_multifactor.html, https://slurm.schedmd.com/fair_tree.html
class Multifactor {
 public:
  Multifactor(const MultifactorSettings& settings, double cluster_gpus)
      : settings_(settings), cluster_gpus_(cluster_gpus) {}
  void know(std::int32_t queue, std::int32_t user);  // before it is asked for their jobs
  // It holds its GPUs from then on; gives them back. Times never go back.
  void begin(const MultifactorJob& job, double now);
  void end(const MultifactorJob& job, double now);
  // Ranks all users anew.
  void rank(double now);
  double fairshare(std::int32_t queue, std::int32_t user) const;  // as of the last ranking
  double usage(std::int32_t queue, std::int32_t user, double now);
  std::int64_t priority(const MultifactorJob& job, double now) const;

 private:
  struct User {
    double held = 0;  // GPUs, now
    double used = 0;  // GPU-seconds, as they count at `at`
    double at = 0;
    double fairshare = 1;
  };
  struct Ranked {
    double level = 0;  // share over usage, of those of one account
    User* user = nullptr;
  };
  double decayed(User& user, double now) const;
  std::vector<Ranked> users_of(std::map<std::int32_t, User>& users, double now) const;

  MultifactorSettings settings_;
  double cluster_gpus_;
  std::map<std::int32_t, std::map<std::int32_t, User>> accounts_;
};

}  // namespace orrery
