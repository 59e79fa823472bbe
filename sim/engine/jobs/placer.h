// SPDX-License-Identifier: Apache-2.0
// Finds a place for a gang, by one rule.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "sim/base/random.h"
#include "sim/engine/jobs/policy.h"
#include "sim/engine/packing/fragment_table.h"
#include "topologies/slots.h"

namespace orrery {

// A gang of which nobody knows whose it is.
inline constexpr std::uint32_t no_job = UINT32_MAX;

// Says what jobs lose to each other on the links that they share.
class PlaceJudge {
 public:
  virtual ~PlaceJudge() = default;
  // A job would send over links there that others send over.
  virtual bool meets(std::uint32_t job, const Grants& place) = 0;
  // Accelerators that are as good as lost if it runs there, in the mean: of its own by the place
  // and by others, of these by it.
  virtual double lost(std::uint32_t job, const Grants& place) = 0;
  // How much of the links above a group is in use: comparable, 0 where nobody sends.
  virtual double used(std::size_t level, std::int32_t group) = 0;
};

// One that ever had a place has one on an empty cluster.
class Placer {
 public:
  // `seed`: of random places. `fragments`: for that rule, which is as pack without.
  Placer(JobPlace rule, std::uint64_t seed,
         std::shared_ptr<const FragmentTable> fragments = nullptr)
      : rule_(rule), random_(seed, 0) {
    if (rule == JobPlace::fragmentation) fragments_ = std::move(fragments);
  }
  // For least-contention, which is as least-level without. It must outlive this.
  void set_judge(PlaceJudge& judge) { judge_ = &judge; }
  // Whether there is a place; then `out` holds it, in order of hosts, and nothing is taken yet.
  // `job`: whose it is.
  bool find(const Slots& slots, std::int32_t gpus, Grants& out, std::int32_t within = no_level,
            std::uint32_t job = no_job);
  static bool fits(const Slots& slots, std::int32_t gpus, std::int32_t within = no_level);
  const FragmentTable* fragments() const { return fragments_.get(); }

 private:
  JobPlace rule_;
  RandomStream random_;
  std::shared_ptr<const FragmentTable> fragments_;
  PlaceJudge* judge_ = nullptr;
};

}  // namespace orrery
