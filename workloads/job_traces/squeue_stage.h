// SPDX-License-Identifier: Apache-2.0
// Knows from a state of Slurm and a reason whether a job runs, waits for room, or neither.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery {

enum class SqueueStage : std::uint8_t {
  runs,       // has its GPUs
  suspended,  // has its GPUs too
  waits,      // for room
  limited,    // until a limit of its account, QOS or array lets it
  held,       // by a user or an administrator
  depends,    // on another job
  later,      // begins at a time of its own, or in a reservation
  never,      // asks for what it may not have, or of a partition that starts nobody
  ends,       // now, or has ended
};

// Of columns STATE and REASON. Nothing: no state of Slurm. Sources: squeue(1), "JOB STATE CODES"
// and "JOB REASON CODES", https://slurm.schedmd.com/squeue.html and
// https://slurm.schedmd.com/resource_limits.html; GPUs stay a suspended job's:
// https://slurm.schedmd.com/gres.html
std::optional<SqueueStage> squeue_stage(std::string_view state, std::string_view reason);

}  // namespace orrery
