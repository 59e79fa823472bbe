// Knows the ideal network: every collective takes what it takes alone, memoised by its shape.
#pragma once

#include <map>

#include "sim/engine/event_queue.h"
#include "sim/engine/network.h"

namespace orrery {

class IdealNetwork final : public Network {
 public:
  IdealNetwork(const Fabric& fabric, const CollectiveCosts& costs);
  CollectiveId start(const Collective& collective, Ticks time) override;
  std::optional<Completion> next_completion() override;
  // The time that start() would take; memoised, so asking is cheap.
  const CollectiveTime& price(const Collective& collective);

 private:
  const Fabric& fabric_;
  const CollectiveCosts& costs_;
  EventQueue queue_;
  std::int64_t started_ = 0;
  std::vector<std::pair<Collective, CollectiveTime>> memo_;  // few distinct shapes: linear search
};

}  // namespace orrery
