// SPDX-License-Identifier: Apache-2.0
// Prices steps of trainings on the hosts that a shared cluster gave them, each kind of place once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "hw_models/colocation.h"
#include "sim/engine/fleet/fleet_question.h"
#include "sim/engine/placement_class.h"
#include "sim/engine/prices/place_steps.h"
#include "sim/engine/prices/price_table.h"
#include "sim/engine/scenario.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// A kind of work: what is stepped, and what its steps take over the step model's.
struct PricedWork {
  std::uint16_t work = 0;
  Scenario scenario;
  double slower = 1;
};

// Levels of switches under which a place lies beyond those that as many accelerators need: 0 for a
// place inside one group of the lowest level that could hold it.
std::int32_t levels_beyond_need(const Grants& place, const SlotShape& shape);

// Any thread may ask. All get the same price, whoever asked first.
class StepPlacePrices final : public PlacePrices {
 public:
  // `scatter_cost`: what recorded lengths take times as long for each level beyond need.
  StepPlacePrices(std::vector<PricedWork> works, SlotShape shape, double scatter_cost = 1);
  // `work`: one of these, or 0: recorded lengths.
  PlacePrice price(std::uint16_t work, const Grants& place) override;
  // What jobs ask of one accelerator, by ClusterJob::uses - 1, and how it is shared; before anybody
  // asks for speeds.
  void set_uses(std::vector<DeviceUse> uses, DeviceShare how);
  std::vector<double> speeds(const std::vector<PartUser>& users) override;
  // Classes that were priced so far.
  std::size_t classes() const;

 private:
  PlacePrice price_of(PlaceSteps& steps, const PlacementClass& placed, double slower) const;

  struct Priced {
    PriceTable known;
    std::unique_ptr<PlaceSteps> steps;  // once a place was asked for
  };

  std::vector<PricedWork> works_;
  std::vector<std::size_t> places_;  // of works in the list, by their numbers
  SlotShape shape_;
  ClassMarker marker_;
  double scatter_cost_;
  std::vector<DeviceUse> uses_;
  DeviceShare how_ = DeviceShare::time_slices;
  mutable std::mutex mutex_;
  std::vector<Priced> priced_;
};

}  // namespace orrery
