// SPDX-License-Identifier: Apache-2.0
// Knows how little the steps of a point's sizes take, whatever their pipeline.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "sim/advise/search/expand.h"

namespace orrery {

// Whether passes gather weights: all of ZeRO-3.
inline bool shards_all(const ShardOption& shard) { return shard.zero_stages.front() == 3; }

// All that the passes of a layout depend on of its place: groups, and ranks of a domain.
using PlaceOfPasses = std::pair<std::array<GroupShape, 12>, std::int64_t>;

// For points that are alike in recipe, family, micro-batch, sequence parallelism and exchange. What
// layers cost is priced once for points in a row that differ in pipeline or in how many layers run
// again, and by the search's floors for all others. For one thread at a time.
class PipelineFloor {
 public:
  // Both must outlive it.
  PipelineFloor(const SearchGround& ground, const Place& place)
      : ground_(ground),
        place_(place),
        family_(ground.family(place)),
        stack_(ground.recipe(place).stack) {}

  // Of all pipelines the least, with what runs again in place of the point's own; at the point's
  // place of ranks or, without links, at any.
  Seconds time(GridPoint p, const RecomputeOption& again, Links links);
  // At any place of ranks.
  StepLeast with_energy(GridPoint p, const RecomputeOption& again);
  PlaceOfPasses place_of_passes(const GridPoint& p) const;
  // Whether every layout at `more` runs again what the same one at `less` does, and is alike else.
  bool adds_to(GridPoint less, GridPoint more) const;

 private:
  struct Class {
    Layout like;
    Links links;
    std::optional<StepSeries> series;
    std::optional<WholeModel> whole;
  };
  Class& class_of(const Layout& layout, Links links);
  StepSeries& series_of(Class& of);
  WholeModel whole_of(Class& of, const Layout& layout);
  const std::vector<PipelineOption>& pipelines() const {
    return choice(family_.micro_batches, place_.point.micro_batch).pipelines;
  }
  Layout layout_at(const GridPoint& p, const RecomputeOption& again) const;

  const SearchGround& ground_;
  const Place& place_;
  const Family& family_;
  const Stack& stack_;
  std::vector<Class> classes_;
};

}  // namespace orrery
