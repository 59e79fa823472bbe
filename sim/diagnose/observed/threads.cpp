// SPDX-License-Identifier: Apache-2.0
// Counts the threads of each rank's kernels whose number follows the batch.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

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
  // Every rank ran it, and all or not all in as many blocks.
  bool alike() const { return is_everywhere() && least() == most(); }
  bool differs() const { return is_everywhere() && least() < most(); }

 private:
  bool is_everywhere() const { return least() > 0; }
  double least() const { return *std::min_element(blocks.begin(), blocks.end()); }
  double most() const { return *std::max_element(blocks.begin(), blocks.end()); }
};

using KernelsByName = std::map<std::string, OnRanks>;

// Whether kernels say together that a rank has another batch: a larger one is larger for nearly
// all. Where a library chose otherwise on one rank, some have more blocks there and some fewer.
bool batches_differ(const KernelsByName& kernels, std::size_t ranks) {
  constexpr double few = 0.1;  // of the time of all: chance. Judged.
  double all_s = 0;
  // Of each rank the time of kernels with more blocks than the mean, less of those with fewer.
  std::vector<double> more_s(ranks);
  for (const auto& [name, kernel] : kernels) {
    all_s += kernel.seconds;
    if (!kernel.differs()) continue;
    const double mean = std::accumulate(kernel.blocks.begin(), kernel.blocks.end(), 0.0) /
                        static_cast<double>(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (kernel.blocks[rank] != mean)
        more_s[rank] += kernel.blocks[rank] > mean ? kernel.seconds : -kernel.seconds;
  }
  return std::any_of(more_s.begin(), more_s.end(),
                     [&](double seconds) { return std::abs(seconds) > few * all_s; });
}

}  // namespace

std::vector<double> threads_of(const std::vector<Profile>& profiles) {
  KernelsByName kernels;
  for (std::size_t rank = 0; rank < profiles.size(); ++rank)
    for (const KernelRow& row : profiles[rank].kernels) {
      if (!may_follow_batch(row.what)) continue;
      OnRanks& kernel = kernels[row.name];
      kernel.blocks.resize(profiles.size());
      kernel.blocks[rank] += blocks_of(row);
      kernel.seconds += row.total.si();
    }
  // Persistent kernels launch as many blocks whatever the batch, and casts of weights as many as
  // there are weights: both dilute what others say.
  const bool differ = batches_differ(kernels, profiles.size());
  std::vector<double> threads(profiles.size());
  for (const auto& [name, kernel] : kernels)
    if (differ ? kernel.differs() : kernel.alike())
      for (std::size_t rank = 0; rank < profiles.size(); ++rank)
        threads[rank] += kernel.blocks[rank];
  return threads;
}

}  // namespace orrery
