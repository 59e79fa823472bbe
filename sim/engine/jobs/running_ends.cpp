// SPDX-License-Identifier: Apache-2.0
// Keeps blocks of ends in order.
#include "sim/engine/jobs/running_ends.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr std::size_t most_entries = 512;

bool before(const RunningEnd& a, const RunningEnd& b) {
  return a.at != b.at ? a.at < b.at : a.job < b.job;
}

}  // namespace

// The last block whose first entry is not behind `end`.
std::size_t RunningEnds::block_of(const RunningEnd& end) const {
  std::size_t low = 0, high = blocks_.size();
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    const Block& block = blocks_[middle];
    (before(end, block.entries[block.gone]) ? high : low) = middle;
  }
  return low;
}

void RunningEnds::insert(const RunningEnd& end) {
  if (blocks_.empty()) blocks_.emplace_back();
  const std::size_t at = block_of(end);
  Block& block = blocks_[at];
  const auto live = block.entries.begin() + static_cast<std::ptrdiff_t>(block.gone);
  block.entries.insert(std::upper_bound(live, block.entries.end(), end, before), end);
  block.gpus += end.gpus;
  ++size_;
  if (block.entries.size() < most_entries) return;
  if (block.gone > 0) {
    block.entries.erase(block.entries.begin(),
                        block.entries.begin() + static_cast<std::ptrdiff_t>(block.gone));
    block.gone = 0;
    if (block.entries.size() < most_entries / 2) return;
  }
  Block right;
  const auto middle = block.entries.begin() + most_entries / 2;
  if (middle >= block.entries.end()) return;
  right.entries.assign(middle, block.entries.end());
  block.entries.erase(middle, block.entries.end());
  for (const RunningEnd& e : right.entries) right.gpus += e.gpus;
  block.gpus -= right.gpus;
  blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(right));
}

void RunningEnds::pop_first() {
  Block& block = blocks_.front();
  block.gpus -= block.entries[block.gone].gpus;
  ++block.gone;
  --size_;
  if (block.gone == block.entries.size()) blocks_.erase(blocks_.begin());
}

void RunningEnds::erase(const RunningEnd& end) {
  const std::size_t at = block_of(end);
  Block& block = blocks_[at];
  const auto live = block.entries.begin() + static_cast<std::ptrdiff_t>(block.gone);
  const auto found = std::lower_bound(live, block.entries.end(), end, before);
  CHECK_THAT(found != block.entries.end() && found->job == end.job, "a job that runs ends");
  block.gpus -= found->gpus;
  block.entries.erase(found);
  --size_;
  if (block.gone == block.entries.size())
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
}

RunningEnds::Reach RunningEnds::reach(std::int64_t gpus) const {
  Reach reach{fleet_never, 0};
  for (const Block& block : blocks_) {
    if (reach.at == fleet_never && reach.gpus + block.gpus < gpus) {
      reach.gpus += block.gpus;
      continue;
    }
    for (std::size_t i = block.gone; i < block.entries.size(); ++i) {
      const RunningEnd& end = block.entries[i];
      if (reach.at < end.at) return reach;
      reach.gpus += end.gpus;
      if (reach.at == fleet_never && reach.gpus >= gpus) reach.at = end.at;
    }
  }
  return reach;
}

}  // namespace orrery
