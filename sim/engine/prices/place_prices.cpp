// SPDX-License-Identifier: Apache-2.0
// Runs the step of a training on the canonical place of each class.
#include "sim/engine/prices/place_prices.h"

#include <algorithm>
#include <cmath>

#include "sim/engine/prices/trunk_traffic.h"

namespace orrery {

std::int32_t levels_beyond_need(const Grants& place, const SlotShape& shape) {
  std::int64_t hosts = 0;
  std::int32_t first = place.front().host, last = first;
  for (const HostGrant& grant : place) {
    hosts += grant.hosts;
    first = std::min(first, grant.host);
    last = std::max(last, grant.host + grant.hosts - 1);
  }
  std::int32_t beyond = 0;
  for (const SlotLevel& level : shape.levels)
    if (hosts <= level.reach && first / level.reach != last / level.reach) ++beyond;
  return beyond;
}

StepPlacePrices::StepPlacePrices(std::vector<PricedWork> works, SlotShape shape,
                                 double scatter_cost)
    : works_(std::move(works)),
      shape_(std::move(shape)),
      marker_(shape_),
      scatter_cost_(scatter_cost),
      priced_(works_.size()) {
  for (std::size_t i = 0; i < works_.size(); ++i) {
    const std::size_t number = works_[i].work;
    if (number >= places_.size()) places_.resize(number + 1, works_.size());
    places_[number] = i;
  }
}

PlacePrice StepPlacePrices::price_of(PlaceSteps& steps, const PlacementClass& placed,
                                     double slower) const {
  const ScatteredRanks ranks = canonical_ranks(placed, shape_);
  const std::int64_t ps = steps.step_at(ranks, steps.scenario().network).step.ps;
  // Without slower steps the picoseconds of the step model, exactly.
  PlacePrice price{.step_ps = slower > 1 ? std::llround(static_cast<double>(ps) * slower) : ps};
  price.trunks = trunk_traffic(steps, ranks, shape_);
  return price;
}

PlacePrice StepPlacePrices::price(std::uint16_t work, const Grants& place) {
  if (work == 0) {
    const double times = std::pow(scatter_cost_, levels_beyond_need(place, shape_));
    return {.step_ps = std::llround(static_cast<double>(JobWork{}.step_ps) * times)};
  }
  const std::size_t which = places_.at(work);
  const std::scoped_lock lock(mutex_);
  Priced& priced = priced_.at(which);
  ClassMark mark;
  if (const PlacePrice* known = priced.known.find(place, marker_, mark)) return *known;
  const PricedWork& of = works_[which];
  if (!priced.steps) priced.steps = std::make_unique<PlaceSteps>(of.scenario);
  return priced.known.add(place, mark,
                          price_of(*priced.steps, placement_class(place, shape_), of.slower));
}

void StepPlacePrices::set_uses(std::vector<DeviceUse> uses, DeviceShare how) {
  uses_ = std::move(uses);
  how_ = how;
}

std::vector<double> StepPlacePrices::speeds(const std::vector<PartUser>& users) {
  std::vector<DeviceUse> known;
  for (const PartUser& user : users) {
    if (user.uses == 0) continue;
    known.push_back(uses_.at(user.uses - 1U));
    known.back().part = static_cast<double>(user.milli) / whole_gpu;
  }
  const std::vector<double> shared = shared_speeds(how_, known);
  std::vector<double> speeds(users.size(), 1.0);
  for (std::size_t i = 0, next = 0; i < users.size(); ++i)
    if (users[i].uses > 0) speeds[i] = shared[next++];
  return speeds;
}

std::size_t StepPlacePrices::classes() const {
  const std::scoped_lock lock(mutex_);
  std::size_t sum = 0;
  for (const Priced& priced : priced_) sum += priced.known.classes();
  return sum;
}

}  // namespace orrery
