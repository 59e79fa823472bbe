// SPDX-License-Identifier: Apache-2.0
// Counts the threads of each rank's kernels whose number follows the batch.
#include <algorithm>
#include <map>

#include "sim/diagnose/observed/observations.h"

namespace orrery {
namespace {

using observe::KernelClass;
using observe::KernelRow;
using observe::Profile;

bool may_follow_batch(KernelClass what) {
  return what == KernelClass::elementwise || what == KernelClass::norm ||
         what == KernelClass::softmax || what == KernelClass::attention;
}

double blocks_of(const KernelRow& row) {
  double blocks = static_cast<double>(row.count);
  for (const std::int64_t side : row.shape.grid)
    blocks *= static_cast<double>(std::max<std::int64_t>(1, side));
  return blocks;
}

// A kernel by its name: on each rank its blocks, and the time of all.
struct OnRanks {
  std::vector<double> blocks;
  double seconds = 0;
  // Every rank ran it, and not all in as many blocks.
  bool differs() const {
    const auto [least, most] = std::minmax_element(blocks.begin(), blocks.end());
    return *least > 0 && *least < *most;
  }
};

}  // namespace

std::vector<double> threads_of(const std::vector<Profile>& profiles) {
  std::map<std::string, OnRanks> kernels;
  for (std::size_t rank = 0; rank < profiles.size(); ++rank)
    for (const KernelRow& row : profiles[rank].kernels) {
      if (!may_follow_batch(row.what)) continue;
      OnRanks& kernel = kernels[row.name];
      kernel.blocks.resize(profiles.size());
      kernel.blocks[rank] += blocks_of(row);
      kernel.seconds += row.total.si();
    }
  double all_s = 0, differing_s = 0;
  for (const auto& [name, kernel] : kernels) {
    all_s += kernel.seconds;
    if (kernel.differs()) differing_s += kernel.seconds;
  }
  // Persistent kernels launch as many blocks whatever the batch, and casts of weights as many as
  // there are weights: both dilute what others say. A few that differ alone are chance, as where a
  // library chose otherwise. Judged.
  constexpr double few = 0.1;
  const bool some_differ = differing_s > few * all_s;
  std::vector<double> threads(profiles.size());
  for (const auto& [name, kernel] : kernels)
    if (!some_differ || kernel.differs())
      for (std::size_t rank = 0; rank < profiles.size(); ++rank)
        threads[rank] += kernel.blocks[rank];
  return threads;
}

}  // namespace orrery
