// SPDX-License-Identifier: Apache-2.0
// Knows how many accelerators a launch command starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/launch/read/reading.h"
#include "sim/launch/source/said.h"

namespace orrery {

// Collects counts of nodes and of processes of a node from torchrun, srun, #SBATCH, deepspeed,
// accelerate, mpirun and settings of programs.
class RankCounter {
 public:
  explicit RankCounter(GivenReading& reading) : reading_(reading) {}
  void nodes(const Said& said) { take(said, nodes_); }
  void per_node(const Said& said) { take(said, per_node_); }
  void total(const Said& said) { take(said, total_); }
  // The words before a program's own arguments, and the script around them.
  void launcher(const std::vector<Said>& words, const ShellScript& script);
  // Settles "gpus" where it can be told.
  void settle();

 private:
  struct Count {
    std::optional<std::int64_t> value;
    std::optional<Said> said;
  };
  void take(const Said& said, Count& count);

  GivenReading& reading_;
  Count nodes_, per_node_, total_;
};

}  // namespace orrery
