// SPDX-License-Identifier: Apache-2.0
// Knows the ideal network: every collective takes what it takes alone, memoised by its shape.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>

#include "sim/engine/event_queue.h"
#include "sim/engine/network/loaded_transfer.h"
#include "sim/engine/network/network.h"

namespace orrery {

class IdealNetwork final : public Network {
 public:
  // What they are given must outlive networks. `loaded` remembers for others on the same fabric.
  IdealNetwork(const Fabric& fabric, const CollectiveCosts& costs,
               LoadedTransfers* loaded = nullptr);
  // Of a scattered job. `laid`: flows of its place; null: it lays them out itself.
  IdealNetwork(const Fabric& fabric, const CollectiveCosts& costs, LoadedTransfers* loaded,
               const JobGround& scattered, LaidFlows* laid);
  CollectiveId start(const Collective& collective, Ticks time) override;
  std::optional<Completion> next_completion() override;
  // The same in every stage.
  const CollectiveTime& price(const Collective& collective, std::int64_t stage = 0) override;

 private:
  const Fabric& fabric_;
  const CollectiveCosts& costs_;
  LoadedTransfers* loaded_;
  std::optional<LaidFlows> own_laid_;
  std::optional<ScatteredTransfers> scattered_;  // of a scattered job
  EventQueue queue_;
  std::int64_t started_ = 0;
  std::unordered_map<Collective, CollectiveTime, CollectiveHash>
      memo_;  // price() hands out references
};

}  // namespace orrery
