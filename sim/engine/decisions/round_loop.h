// SPDX-License-Identifier: Apache-2.0
// Gives all jobs of a cluster their sizes and places anew, round by round.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/engine/elastic/round_policy.h"
#include "sim/engine/fleet/power_room.h"
#include "sim/engine/jobs/decision_loop.h"
#include "sim/engine/jobs/gang_places.h"

namespace orrery {

// At multiples of the question's round. Jobs of higher priority are sized first, those of lower
// ones share what is left; in each priority the question's rule sizes. Whoever is not preemptible
// keeps what it has once it runs. A job that lost its place to what broke gets another one of its
// size at once, if there is one. Sizes are chosen for as many accelerators as the
// limit and feeds of power carry if all draw what those that are active do in the mean; where less
// is carried, gangs of higher priority come first, and the others have their largest smaller size
// that is, or wait.
class RoundLoop final : public DecisionLoop {
 public:
  RoundLoop(FleetState& state, const FleetQuestion& question);
  FleetTime next() const override;
  void submit(std::uint32_t job) override;
  void settle(bool changed) override;
  void wake(FleetTime now) override;

 private:
  struct Active {
    std::uint32_t number = 0;
    ElasticJob asked;
    bool put_off = false;  // by a round
    std::int32_t moves = 0;
  };
  std::vector<WorkSize> sizes_of(const ClusterJob& job) const;
  ClusterJob sized(std::uint32_t number, WorkSize size) const;
  bool has_power(std::uint32_t number, WorkSize size) const;
  RoundJob round_job(const Active& active, FleetTime now) const;
  void forget_ended(FleetTime now);
  void begin_again(FleetTime now);
  void decide(FleetTime now);
  std::vector<SizedGang> choose_sizes(FleetTime now);
  void size_rank(std::int32_t rank, const std::vector<std::size_t>& which, std::int64_t& left,
                 FleetTime now, std::vector<SizedGang>& gangs);
  std::int64_t carried() const;
  void place(std::vector<SizedGang>& gangs);
  void move(const std::vector<SizedGang>& gangs, FleetTime now);

  FleetState& state_;
  const FleetQuestion& question_;
  ElasticQuestion rounds_;
  std::unique_ptr<JobPaces> paces_;
  std::map<std::int32_t, std::unique_ptr<RoundPolicy>> policies_;  // by priority
  Placer placer_;
  FeedGate feeds_;
  std::vector<Active> active_;  // submitted and not over, in the order of the list
  FleetTime from_;              // no round before
  std::int64_t idle_rounds_ = 0;
  bool changed_ = false;  // since the last round
  bool open_ = false;     // somebody waits or could be larger
};

}  // namespace orrery
