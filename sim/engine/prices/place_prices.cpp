// SPDX-License-Identifier: Apache-2.0
// Runs the step of a training on the canonical place of each class.
#include "sim/engine/prices/place_prices.h"

#include <cmath>

#include "sim/engine/prices/trunk_traffic.h"
#include "sim/engine/step/step.h"

namespace orrery {

StepPlacePrices::StepPlacePrices(std::vector<Scenario> scenarios, std::vector<double> slower,
                                 SlotShape shape)
    : scenarios_(std::move(scenarios)),
      slower_(std::move(slower)),
      shape_(std::move(shape)),
      known_(scenarios_.size()) {}

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
  const std::size_t which = work - 1U;
  const std::scoped_lock lock(mutex_);
  OfWork& of = known_[which];
  const auto at = of.find(placed);
  if (at != of.end()) return at->second;
  return of.emplace(placed, price_of(scenarios_[which], placed, slower_[which])).first->second;
}

std::size_t StepPlacePrices::classes() const {
  const std::scoped_lock lock(mutex_);
  std::size_t sum = 0;
  for (const OfWork& of : known_) sum += of.size();
  return sum;
}

}  // namespace orrery
