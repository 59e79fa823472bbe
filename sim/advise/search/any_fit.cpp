// SPDX-License-Identifier: Apache-2.0
// Looks for a layout that fits where most is saved first, then elsewhere.
#include "sim/advise/search/any_fit.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/advise/search/memory_floor.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"
#include "sim/engine/memory_fit.h"

namespace orrery {
namespace {

enum class Look : std::uint8_t { where_most_is_saved, elsewhere };

class AnyFit {
 public:
  AnyFit(const SearchGround& ground, int threads) : ground_(ground), threads_(threads) {}
  bool run() {
    list_families();
    for (const Look look : {Look::where_most_is_saved, Look::elsewhere}) {
      parallel_for(families_.size(), threads_, [&](std::size_t i) { look_at(families_[i], look); });
      if (over()) break;
    }
    return found_;
  }

 private:
  void list_families();
  void look_at(Place at, Look look);
  bool fits_below(Place at) const;
  bool fits(const Place& at) const {
    return memory_fits(ground_.model, ground_.job, ground_.family(at).layout(at.point),
                       ground_.recipe(at).stack, ground_.device);
  }
  bool over() const { return found_ || interrupted(); }

  const SearchGround& ground_;
  int threads_;
  std::vector<Place> families_;  // that are not ruled out
  std::atomic<bool> found_ = false;
};

// By what lies on the fullest stage whatever runs: the least first.
void AnyFit::list_families() {
  const std::vector<Part> grid = whole_grid(ground_);
  std::vector<std::pair<Bytes, Place>> held(grid.size());
  parallel_for(grid.size(), threads_, [&](std::size_t i) {
    held[i] = {interrupted() ? Bytes(infinite) : least_static(ground_, grid[i].place),
               grid[i].place};
  });
  std::erase_if(held, [&](const auto& one) { return one.first > ground_.device.memory_capacity; });
  std::sort(held.begin(), held.end());
  for (const auto& one : held) families_.push_back(one.second);
}

// Ranks' order moves no memory, so that the first stands for all.
bool AnyFit::fits_below(Place at) const {
  if (all_too_large(ground_, at)) return false;
  const Family& family = ground_.family(at);
  GridPoint& p = at.point;
  for (const std::int32_t shard : shards_like(family, p.shard)) {
    p.shard = shard;
    const ShardOption& option = choice(family.shards, shard);
    const auto pipelines = choices(choice(family.micro_batches, p.micro_batch).pipelines);
    for (p.pipeline = 0; p.pipeline < pipelines; ++p.pipeline)
      for (p.zero = choices(option.zero_stages); p.zero-- > 0;)
        for (p.bucket = 0; p.bucket < choices(option.buckets); ++p.bucket)
          for (p.offload = choices(family.offloads); p.offload-- > 0;)
            if (fits(at)) return true;
  }
  return false;
}

void AnyFit::look_at(Place at, Look look) {
  const Family& family = ground_.family(at);
  GridPoint& p = at.point;
  const auto saves_most = [&] {
    const RecomputeOption& again = choice(family.recomputes, p.recompute);
    return p.micro_batch == 0 && (choices(family.recomputes) == 1 ||
                                  (again.choice.recompute == Recompute::full && again.layers == 0));
  };
  for (p.micro_batch = 0; p.micro_batch < choices(family.micro_batches); ++p.micro_batch)
    for (p.recompute = 0; p.recompute < choices(family.recomputes); ++p.recompute) {
      if (saves_most() != (look == Look::where_most_is_saved)) continue;
      for (p.sequence_parallel = 0; p.sequence_parallel < choices(family.sequence_parallel);
           ++p.sequence_parallel)
        for (p.exchange = 0; p.exchange < choices(family.exchanges); ++p.exchange)
          for (p.shard = 0; p.shard < choices(family.shards); ++p.shard) {
            if (shards_like(family, p.shard).front() != p.shard) continue;
            if (over()) return;
            if (fits_below(at)) found_ = true;
          }
    }
}

}  // namespace

bool any_fit(const SearchGround& ground, int threads) { return AnyFit(ground, threads).run(); }

}  // namespace orrery
