// SPDX-License-Identifier: Apache-2.0
// Prices steps of trainings on the hosts that a shared cluster gave them, each kind of place once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sim/engine/fleet/fleet_question.h"
#include "sim/engine/placement_class.h"
#include "sim/engine/scenario.h"

namespace orrery {

// A kind of work: what is stepped, and what its steps take over the step model's.
struct PricedWork {
  std::uint16_t work = 0;
  Scenario scenario;
  double slower = 1;
};

// Any thread may ask. All get the same price, whoever asked first.
class StepPlacePrices final : public PlacePrices {
 public:
  StepPlacePrices(std::vector<PricedWork> works, SlotShape shape);
  // `work`: one of these.
  PlacePrice price(std::uint16_t work, const Grants& place) override;
  // Classes that were priced so far.
  std::size_t classes() const;

 private:
  using OfWork = std::unordered_map<PlacementClass, PlacePrice, PlacementClassHash>;
  PlacePrice price_of(const Scenario& scenario, const PlacementClass& placed, double slower) const;

  std::vector<PricedWork> works_;
  std::unordered_map<std::uint16_t, std::size_t> places_;  // of works in the list
  SlotShape shape_;
  mutable std::mutex mutex_;
  std::vector<OfWork> known_;
};

}  // namespace orrery
