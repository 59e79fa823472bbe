// SPDX-License-Identifier: Apache-2.0
// Tells when a gang would have a place if running jobs ended at their limits, as Slurm looks at it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/slurm/tree_places.h"
#include "topologies/slots.h"

namespace orrery {

// What is free, and running jobs by the ends of their limits, of equals by their starts. Times in
// seconds.
class SlurmFuture {
 public:
  // `blocks`: gangs go by the innermost groups of hosts, not by leaf groups.
  SlurmFuture(const SlotShape& shape, bool blocks);
  void begin(std::uint32_t job, const SlurmGang& gang, const SlurmPlace& place, std::int64_t ends);
  void release(std::uint32_t job);

  // On hosts that are not barred; nullopt: there is none.
  std::optional<SlurmPlace> place_now(const SlurmGang& gang, const HostWords& barred);

  // Slurm takes ends in groups, so that it sees a place late.
  struct Group {
    std::int32_t behind = 0;  // jobs up to its last one
    std::int64_t last = 0;    // end of the last one that was not passed over
  };
  // The first group with whose ends there is a place on hosts that are not barred; nullopt: there
  // is none by `latest`. There must be none now.
  std::optional<Group> see(const SlurmGang& gang, const HostWords& barred, std::int64_t latest);
  // Once so many jobs have ended; there is one.
  SlurmPlace place_behind(const SlurmGang& gang, const HostWords& barred, std::int32_t jobs);

 private:
  struct Running {
    std::int64_t ends = 0;
    std::uint32_t job = 0;
    SlurmGang gang;
    SlurmPlace place;
  };
  std::int32_t jobs_until_place(const SlurmGang& gang, const HostWords& barred,
                                std::int64_t latest) const;
  bool is_barred(std::int32_t index, const HostWords& barred) const;
  std::int32_t first_usable(std::int32_t from, const HostWords& barred) const;
  std::int32_t last_usable(const HostWords& barred) const;
  void change_free(std::int32_t host, std::int32_t by);
  void give(const Running& running, std::int32_t sign);
  void look_ahead();
  void select(std::int32_t gpus, std::int32_t jobs, const HostWords& barred, HostWords& out) const;
  std::int32_t nth_ready(std::int32_t gpus, std::int32_t n, const HostWords& barred,
                         std::int32_t most) const;

  SlotShape shape_;
  TreePlaces places_;
  std::vector<std::int32_t> free_;
  std::vector<HostWords> with_room_;  // by GPUs: hosts with so many free, or more
  std::vector<Running> running_;
  std::vector<std::int64_t> ends_;       // of running_
  std::vector<std::int32_t> only_host_;  // of running_; -1: it has several
  // By GPUs: hosts in the order in which they get so many free, and how many jobs have to end for
  // it. Renewed when asked for.
  struct Ready {
    std::int32_t host = 0, jobs = 0;
  };
  std::vector<std::vector<Ready>> ready_;
  bool looked_ahead_ = false;
  HostWords whole_, part_;  // scratch
};

}  // namespace orrery
