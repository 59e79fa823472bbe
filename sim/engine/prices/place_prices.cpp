// SPDX-License-Identifier: Apache-2.0
// Runs the step of a training on the canonical place of each class.
#include "sim/engine/prices/place_prices.h"

#include <cmath>

#include "sim/engine/prices/trunk_traffic.h"
#include "sim/engine/step/step.h"

namespace orrery {

StepPlacePrices::StepPlacePrices(std::vector<PricedWork> works, SlotShape shape)
    : works_(std::move(works)), shape_(std::move(shape)), known_(works_.size()) {
  for (std::size_t i = 0; i < works_.size(); ++i) places_.emplace(works_[i].work, i);
}

PlacePrice StepPlacePrices::price_of(const Scenario& scenario, const PlacementClass& placed,
                                     double slower) const {
  Scenario here = scenario;
  here.ranks = canonical_ranks(placed, shape_);
  const std::int64_t ps =
      step(step_context(here), here.model, here.job, here.layout, here.stack).step.ps;
  // Without slower steps the picoseconds of the step model, exactly.
  PlacePrice price{.step_ps = slower > 1 ? std::llround(static_cast<double>(ps) * slower) : ps};
  price.trunks = trunk_traffic(here, shape_);
  return price;
}

PlacePrice StepPlacePrices::price(std::uint16_t work, const Grants& place) {
  const PlacementClass placed = placement_class(place, shape_);
  const std::size_t which = places_.at(work);
  const std::scoped_lock lock(mutex_);
  OfWork& of = known_[which];
  const auto at = of.find(placed);
  if (at != of.end()) return at->second;
  return of.emplace(placed, price_of(works_[which].scenario, placed, works_[which].slower))
      .first->second;
}

std::size_t StepPlacePrices::classes() const {
  const std::scoped_lock lock(mutex_);
  std::size_t sum = 0;
  for (const OfWork& of : known_) sum += of.size();
  return sum;
}

}  // namespace orrery
