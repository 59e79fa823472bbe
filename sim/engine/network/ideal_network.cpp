// SPDX-License-Identifier: Apache-2.0
// Knows how collectives end when nothing disturbs them.
#include "sim/engine/network/ideal_network.h"

#include <utility>

namespace orrery {

IdealNetwork::IdealNetwork(const Fabric& fabric, const CollectiveCosts& costs,
                           LoadedTransfers* loaded)
    : fabric_(fabric), costs_(costs), loaded_(loaded) {}

IdealNetwork::IdealNetwork(const Fabric& fabric, const CollectiveCosts& costs,
                           LoadedTransfers* loaded, const JobGround& scattered, LaidFlows* laid)
    : IdealNetwork(fabric, costs, loaded) {
  if (laid == nullptr) laid = &own_laid_.emplace(ScatteredTransfers::lay(fabric, scattered));
  scattered_.emplace(*laid);
}

CollectiveId IdealNetwork::start(const Collective& collective, Ticks time) {
  const CollectiveId id{started_++};
  queue_.push(time + to_ticks(price(collective).time), {.kind = 0, .a = id.value, .b = 0});
  return id;
}

std::optional<Completion> IdealNetwork::next_completion() {
  Ticks time;
  Event event;
  if (!queue_.pop(time, event)) return std::nullopt;
  return Completion{.id = {event.a}, .time = time};
}

const CollectiveTime& IdealNetwork::price(const Collective& collective, std::int64_t) {
  const auto known = memo_.find(collective);
  if (known != memo_.end()) return known->second;
  CollectiveTime time = collective_time(collective, fabric_, costs_);
  Seconds loaded =
      loaded_ ? loaded_->of(collective, time, fabric_) : loaded_transfer(collective, time, fabric_);
  if (scattered_) loaded = std::max(loaded, scattered_->of(collective, time, fabric_));
  time.time += loaded - time.transfer;
  time.transfer = loaded;
  return memo_.emplace(collective, time).first->second;
}

}  // namespace orrery
