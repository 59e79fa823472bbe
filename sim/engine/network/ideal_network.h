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
  // The first three must outlive the network. `loaded` remembers for other networks on the same
  // fabric, but not of a scattered job, whose groups are wherever `scattered` says.
  IdealNetwork(const Fabric& fabric, const CollectiveCosts& costs,
               LoadedTransfers* loaded = nullptr, JobGround scattered = {});
  CollectiveId start(const Collective& collective, Ticks time) override;
  std::optional<Completion> next_completion() override;
  // The same in every stage.
  const CollectiveTime& price(const Collective& collective, std::int64_t stage = 0) override;

 private:
  const Fabric& fabric_;
  const CollectiveCosts& costs_;
  LoadedTransfers* loaded_;
  JobGround scattered_;
  EventQueue queue_;
  std::int64_t started_ = 0;
  struct Hash {
    std::size_t operator()(const Collective& collective) const;
  };
  std::unordered_map<Collective, CollectiveTime, Hash> memo_;  // price() hands out references
};

}  // namespace orrery
